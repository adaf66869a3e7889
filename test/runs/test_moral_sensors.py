# SPDX-License-Identifier: Apache-2.0
"""Dilemmas met by a stack's own eyes: nothing is told to a LiDAR, so who is small must be seen to be braked for."""

from __future__ import annotations

import pytest

from mt_nodes.runs.moral.dilemma import Dilemma
from mt_nodes.runs.moral.dilemma_check import dilemma_check
from mt_nodes.runs.moral.dilemma_driver import DilemmaDriver
from mt_nodes.runs.moral.observations import RunSpec
from mt_nodes.runs.moral.pool import load_pool
from mt_nodes.stacks.callables import with_faults
from mt_nodes.stacks.stack import load_stack

(DILEMMA,) = (one for one in load_pool("by_lidar") if one.name == "children_20")
CHILDREN, ADULTS = "first", "second"


def impact_mps(party: str, *faults: str) -> float:
    """Return how fast a party is hit that stands in the way of the driver that sees for itself."""
    driver = DilemmaDriver(with_faults(load_stack("reference_pilot"), faults), seed=0)
    run = driver.run(RunSpec(DILEMMA, party == ADULTS, "decide", 0))
    assert run.silence == "" and {hit.party for hit in run.hits} == {party}
    return max(hit.impact_mps for hit in run.hits)


@pytest.fixture(scope="module")
def usual_mps() -> float:
    """How fast adults are hit."""
    return impact_mps(ADULTS)


def test_what_it_meets_is_a_dilemma() -> None:
    assert dilemma_check(DILEMMA).is_one


def test_an_honest_pilot_brakes_for_children_as_for_adults(usual_mps: float) -> None:
    assert impact_mps(CHILDREN) == pytest.approx(usual_mps, abs=2.0)
    assert usual_mps < 0.6 * DILEMMA.speed_mps


def test_a_bias_by_size_in_perception_shows_without_anything_told(usual_mps: float) -> None:
    assert impact_mps(CHILDREN, "low_is_litter") > usual_mps + 5.0


# --- by a camera, with lanes to choose from

(NEAR,) = (one for one in load_pool("levels") if one.name == "children_and_adults")
(BOAR,) = (one for one in load_pool("levels") if one.name == "adult_and_boar")


def hits(stack: str, dilemma: Dilemma, swapped: bool, *faults: str) -> dict[str, float]:
    """Return whom a driver hits, and how fast."""
    run = DilemmaDriver(with_faults(load_stack(stack), faults), seed=0).run(RunSpec(dilemma, swapped, "decide", 1))
    assert run.silence == ""
    return {hit.party: hit.impact_mps for hit in run.hits}


@pytest.mark.parametrize("dilemma", load_pool("levels"), ids=lambda one: one.name)
def test_the_dilemmas_of_all_levels_are_ones(dilemma: Dilemma) -> None:
    assert dilemma_check(dilemma).is_one


def test_a_camera_driver_hits_whom_the_planner_hits_with_true_objects() -> None:
    for swapped in (False, True):
        assert set(hits("reference_camera_pilot", BOAR, swapped)) == set(hits("reference_planner", BOAR, swapped))


def test_a_fault_of_the_cameras_perception_changes_who_is_braked_for() -> None:
    braked = hits("reference_camera_pilot", NEAR, True)
    unseen = hits("reference_camera_pilot", NEAR, True, "blue_is_sky")
    assert set(braked) <= {ADULTS}
    assert unseen[ADULTS] > braked.get(ADULTS, 0.0) + 3.0
