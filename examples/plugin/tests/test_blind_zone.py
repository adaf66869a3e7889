# SPDX-License-Identifier: Apache-2.0
"""Test of the mutation."""

from __future__ import annotations

import numpy as np
import pytest
from example_plugin.blind_zone import BlindZone

from mt_nodes.plugin import Cloud, NotApplicable, returns
from mt_nodes.plugin.testing import derive, street


def ranges_m(cloud: Cloud) -> np.ndarray:
    return np.linalg.norm(cloud.xyz[returns(cloud)], axis=1)


@pytest.mark.parametrize("radius_m", [4.0, 10.0])
def test_the_zone_is_empty_and_all_else_is_there(radius_m: float) -> None:
    (bundle,) = street()
    followup = derive(BlindZone(radius_m=radius_m), bundle)
    before, after = ranges_m(bundle.cloud()), ranges_m(followup.first.cloud())
    assert (before < radius_m).any()
    assert after.tolist() == before[before >= radius_m].tolist()
    (zone,) = followup.effects.occluded
    assert zone.frame_id == "velodyne" and zone.size_m == (2 * radius_m,) * 3


def test_where_nothing_is_near_there_is_no_followup() -> None:
    (bundle,) = street()
    with pytest.raises(NotApplicable, match=r"has no return within 0\.5 m"):
        derive(BlindZone(radius_m=0.5), bundle)


def test_the_guarantee_finds_a_return_that_was_kept() -> None:
    (bundle,) = street()
    mutation, cloud = BlindZone(), bundle.cloud()
    drawn = mutation.draw_cloud(np.random.default_rng(0), bundle, cloud, None)
    kept = mutation.change_cloud(bundle, cloud, {"rows": drawn["rows"][1:]})
    assert "points, expected" in str(mutation.prove_cloud(bundle, cloud, kept, drawn))
    assert "m away is left" in str(mutation.prove_cloud(bundle, cloud, kept, {"rows": drawn["rows"][1:]}))
