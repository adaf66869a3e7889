# SPDX-License-Identifier: Apache-2.0
"""What reference stacks do without SciPy, so that their processes start at once, is what SciPy does."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from scipy import ndimage, optimize
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import KDTree

from mt_nodes.base.assignment import linear_sum_assignment
from mt_nodes.stacks.reference.clustering import _hanging_together
from mt_nodes.stacks.reference.ground_removal import _lowest_around


@pytest.mark.parametrize("reach", [0.5, 1.0, 1.5, 3.0, 3.2])
@pytest.mark.parametrize("span", [1, 3, 12, 40, 400])
def test_places_hang_together_as_a_graph_of_neighbours_does(span: int, reach: float) -> None:
    places = np.unique(np.random.default_rng(span).integers(-span, span + 1, (200, 2)), axis=0)
    near = KDTree(places).query_pairs(reach, output_type="ndarray")
    edges = coo_array((np.ones(len(near)), tuple(near.T)), shape=(len(places), len(places)))
    expected = connected_components(edges, directed=False)[1]
    assert _hanging_together(places, reach).tolist() == expected.tolist()


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (6, 1), (9, 11)])
def test_the_lowest_around_is_that_of_a_filter(shape: tuple[int, int]) -> None:
    values = np.random.default_rng(7).choice([np.inf, -3.5, 0.25, 8.0], shape)
    expected = ndimage.minimum_filter(values, size=3, mode="nearest")
    assert _lowest_around(values).tolist() == expected.tolist()


def test_tracker_and_detector_need_no_slow_part_of_scipy() -> None:
    code = "import sys, mt_nodes.stacks.reference.tracker; sys.exit('scipy.optimize' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_an_assignment_is_that_of_scipy() -> None:
    for seed in range(20):
        cost = np.random.default_rng(seed).integers(0, 5, (seed % 7, seed % 5 + 1)).astype(float)
        for maximize in (False, True):
            expected = optimize.linear_sum_assignment(cost, maximize=maximize)
            found = linear_sum_assignment(cost, maximize=maximize)
            assert [each.tolist() for each in found] == [each.tolist() for each in expected]
