# SPDX-License-Identifier: Apache-2.0
"""Laser attacks: budgets, beams, what is reported of them, and guarantees that can fail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from drives import street
from hypothesis import given, settings
from hypothesis import strategies as st
from made_bundles import made_bundle, made_cloud

from mt_nodes.base.errors import NotApplicable, UsageError
from mt_nodes.base.params import build
from mt_nodes.data.messages import Bundle
from mt_nodes.data.transforms import move
from mt_nodes.relations.mutations.base import Followup, Mutation
from mt_nodes.relations.mutations.lidar.placement import empty_returns
from mt_nodes.relations.mutations.lidar.spoofing import PointsSpoofed, SectorSpoofed
from mt_nodes.relations.mutations.objects.object_displaced import ObjectDisplaced

STREET = street()
AHEAD = {"bearing_deg": (-8.0, 8.0)}
ATTACKS: dict[str, Mutation] = {
    "points": PointsSpoofed(**AHEAD),
    "bright points": PointsSpoofed(points=200, width_deg=10.0, intensity="full_scale", **AHEAD),
    "sector": SectorSpoofed(),
    "sector near": SectorSpoofed(reported="near"),
    "most of a sector": SectorSpoofed(share=0.9),
    "object": ObjectDisplaced(),
    "some of an object": ObjectDisplaced(points=20, behind_m=(1.0, 1.5)),
}
FEW = settings(max_examples=20, deadline=None)


def derive(mutation: Mutation, bundle: Bundle = STREET, seed: int = 1) -> tuple[Followup, dict[str, Any]]:
    draw = mutation.draw(np.random.default_rng(seed), bundle, None)
    followup = mutation.apply(bundle, draw)
    assert mutation.guarantee(bundle, followup, draw) is None
    return followup, draw


def changed_rows(bundle: Bundle, followup: Followup) -> np.ndarray:
    return np.flatnonzero(bundle.cloud().raw != followup.first.cloud().raw)


def angles(xyz: np.ndarray) -> np.ndarray:
    return np.degrees(np.arctan2(xyz[:, 1], xyz[:, 0]))


def ranges(xyz: np.ndarray) -> np.ndarray:
    return np.linalg.norm(xyz.astype(float), axis=1)


@FEW
@given(st.integers(1, 200), st.floats(4.0, 10.0), st.integers(0, 1000))
def test_a_spoofed_car_keeps_to_the_attackers_budget(points: int, width: float, seed: int) -> None:
    mutation = PointsSpoofed(points=points, width_deg=width, **AHEAD)
    try:
        followup, _ = derive(mutation, seed=seed)
    except NotApplicable as reason:
        assert "beams" in str(reason)
        return
    rows = changed_rows(STREET, followup)
    assert len(rows) == points
    old, new = STREET.cloud().xyz[rows].astype(float), followup.first.cloud().xyz[rows].astype(float)
    assert np.ptp(angles(new)) <= width
    assert (ranges(new) < ranges(old)).all()
    np.testing.assert_allclose(old / ranges(old)[:, None], new / ranges(new)[:, None], atol=1e-5)
    on_road = move(STREET.transforms.lookup("base_link", "velodyne"), new)
    assert on_road[:, 2].min() > 0.15 and on_road[:, 2].max() < 1.65
    assert 4.8 < np.hypot(*new.T[:2]).mean() < 8.2
    [face] = followup.effects.added
    assert np.hypot(*face.center_m[:2]) == pytest.approx(np.hypot(*new.T[:2]).mean(), abs=0.3)


def test_a_saturated_receiver_reports_the_full_scale() -> None:
    followup, _ = derive(ATTACKS["bright points"])
    rows = changed_rows(STREET, followup)
    assert set(followup.first.cloud().points["intensity"][rows].tolist()) == {255.0}


@FEW
@given(st.floats(0.5, 45.0), st.floats(-180.0, 180.0), st.floats(0.05, 1.0), st.sampled_from(["none", "near"]))
def test_a_sector_vanishes_and_nothing_else(width: float, centre: float, share: float, reported: str) -> None:
    try:
        followup, _ = derive(SectorSpoofed(width, centre, share, reported))
    except NotApplicable as reason:
        assert "no return within" in str(reason)
        return
    aside = np.abs((angles(STREET.cloud().xyz) - centre + 180.0) % 360.0 - 180.0)
    inside = int((aside <= width / 2.0 - 1e-3).sum())
    new = followup.first.cloud()
    if reported == "none":
        assert len(STREET.cloud()) - len(new) == pytest.approx(share * inside, abs=1.5 + 0.01 * inside)
    else:
        rows = changed_rows(STREET, followup)
        assert (ranges(new.xyz[rows]) <= 0.5 + 1e-4).all() and (aside[rows] <= width / 2.0 + 1e-3).all()
        assert len(rows) == pytest.approx(share * inside, abs=1.5 + 0.01 * inside)


def test_an_object_is_reported_behind_itself_and_still_demanded() -> None:
    followup, _ = derive(ATTACKS["object"])
    rows = changed_rows(STREET, followup)
    assert 0 < len(rows) <= 200
    by = ranges(followup.first.cloud().xyz[rows]) - ranges(STREET.cloud().xyz[rows])
    assert by.min() >= 2.0 - 1e-3 and by.max() <= 15.0 + 1e-3
    assert not followup.effects.removed and not followup.effects.occluded


@pytest.mark.parametrize("case", ATTACKS)
def test_one_sensor_is_attacked_and_the_proof_says_so(case: str) -> None:
    other = replace(made_cloud("kitti"), topic="/rear")
    both = replace(STREET, clouds=(*STREET.clouds, other))
    mutation = ATTACKS[case]
    followup, draw = derive(mutation, both)
    assert followup.first.clouds[1] is other
    shorter = replace(followup.first, clouds=(followup.first.clouds[0], other.with_raw(other.raw[:-1])))
    assert mutation.guarantee(both, Followup(((0, shorter),)), draw)


TAMPERS: dict[str, Callable[[np.ndarray, int], None]] = {
    "moved off its beam": lambda points, row: points["y"].__setitem__(row, points["y"][row] + 0.2),
    "brought nearer": lambda points, row: [points[n].__setitem__(row, 0.5 * points[n][row]) for n in "xyz"] and None,
    "another field": lambda points, row: points["ring"].__setitem__(row, points["ring"][row] + 1),
}


@pytest.mark.parametrize("tamper", TAMPERS)
@pytest.mark.parametrize("case", ATTACKS)
def test_a_tampered_attack_is_seen(case: str, tamper: str) -> None:
    mutation = ATTACKS[case]
    followup, draw = derive(mutation)
    cloud = followup.first.cloud()
    raw = cloud.raw.copy()
    row = 5 if len(cloud) != len(STREET.cloud()) else int(changed_rows(STREET, followup)[0])
    TAMPERS[tamper](raw.view(cloud.points.dtype), row)
    broken = Followup(((0, followup.first.with_clouds([cloud.with_raw(raw)])),), followup.effects)
    assert mutation.guarantee(STREET, broken, draw)
    assert mutation.guarantee(STREET, Followup(((0, STREET),), followup.effects), draw)


def test_an_organised_cloud_keeps_its_places() -> None:
    grid = made_bundle(made_cloud("ouster", 8192, height=64, holes=0.3))
    followup, _ = derive(SectorSpoofed(), grid)
    new = followup.first.cloud()
    assert (new.height, len(new)) == (64, 8192)
    assert int(empty_returns(new).sum()) > int(empty_returns(grid.cloud()).sum())


@pytest.mark.parametrize(
    ("cls", "wrong"),
    [
        (PointsSpoofed, {"points": 201}),
        (PointsSpoofed, {"width_deg": 10.5}),
        (SectorSpoofed, {"width_deg": 46.0}),
        (ObjectDisplaced, {"points": 201}),
    ],
)
def test_more_than_a_published_attacker_can_do_is_refused(cls: type[Mutation], wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        build(cls, wrong, "here")
