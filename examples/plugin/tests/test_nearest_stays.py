# SPDX-License-Identifier: Apache-2.0
"""Test of the check."""

from __future__ import annotations

import pytest
from example_plugin.nearest_stays import NearestStays

from mt_nodes.plugin import Effects, Outcome, Output
from mt_nodes.plugin.testing import obstacles, street

NEAR, FAR, NONE = obstacles((10.0, 0.0), (30.0, 2.0)), obstacles((30.0, 2.0)), obstacles()


@pytest.mark.parametrize(
    ("source", "followup", "expected"),
    [
        (NEAR, NEAR, Outcome.HOLDS),
        (NEAR, obstacles((10.4, 0.0)), Outcome.HOLDS),
        (NEAR, obstacles((10.6, 0.0)), Outcome.VIOLATED),
        (NEAR, FAR, Outcome.VIOLATED),
        (NEAR, NONE, Outcome.VIOLATED),
        (FAR, NEAR, Outcome.HOLDS),
        (NONE, NEAR, Outcome.NOT_APPLICABLE),
    ],
)
def test_pairs(source: Output, followup: Output, expected: Outcome) -> None:
    (bundle,) = street()
    assert NearestStays().judge(source, followup, Effects(), bundle).outcome is expected


def test_what_is_too_near_does_not_count() -> None:
    (bundle,) = street()
    judgement = NearestStays(beyond_m=12.0).judge(NEAR, FAR, Effects(), bundle)
    assert judgement.outcome is Outcome.HOLDS and judgement.measured == pytest.approx(30.07, abs=0.01)
