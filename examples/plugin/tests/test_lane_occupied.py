# SPDX-License-Identifier: Apache-2.0
"""Test of the condition."""

from __future__ import annotations

import pytest
from example_plugin.lane_occupied import LaneOccupied

from mt_nodes.plugin import Output
from mt_nodes.plugin.testing import obstacles, street


def test_it_is_met_by_an_obstacle_in_the_corridor() -> None:
    (bundle,) = street()
    assert LaneOccupied().unmet(bundle, obstacles((90.0, 0.0), (10.0, 1.9))) is None


@pytest.mark.parametrize(
    "source", [obstacles(), obstacles((-10.0, 0.0)), obstacles((10.0, 2.1)), obstacles((40.1, 0.0)), Output()]
)
def test_otherwise_it_says_why(source: Output) -> None:
    (bundle,) = street()
    assert LaneOccupied().unmet(bundle, source)
