# SPDX-License-Identifier: Apache-2.0
"""Metamorphic tests of a detector: `pytest --mt-bag my_bag`."""

from __future__ import annotations

from typing import Any

import pytest
from detector import detect

import mt_nodes as mt

#: The detector takes points in base_link, and each answer depends on one cloud alone.
SETTINGS = {"points_frame": "base_link", "stateless": True}
RELATIONS = ["noise_outside_roi_1000", "beams_lost_4"]


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_detector_holds(relation: str, assert_holds: Any, mt_bag: str) -> None:
    """Over a whole bag: FAIL, but also INCONCLUSIVE, UNSTABLE and any error, fail the test."""
    assert_holds(mt_bag, detect, relation, settings=SETTINGS)


def test_fog_hides_no_near_obstacle(mt_bag: str) -> None:
    """On single frames, in milliseconds each: no statistics, no results directory."""
    judged = 0
    for frame in mt.frames(mt_bag, limit=5):
        foggy = mt.mutate(frame, "fog_keeps_near_obstacles")
        answers = [detect(each.points_in("base_link")) for each in (frame, foggy)]
        verdict = mt.judge("fog_keeps_near_obstacles", *answers, foggy, settings=SETTINGS)
        assert verdict.outcome in ("HOLDS", "NOT_APPLICABLE"), str(verdict)
        judged += verdict.outcome == "HOLDS"
    assert judged, "nothing was demanded in any frame"
