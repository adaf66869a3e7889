# SPDX-License-Identifier: Apache-2.0
"""Mutations of what a sensor is and how it is mounted: which returns go, where others come to lie, and the proofs."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import shapely
from drives import street
from hypothesis import given, settings
from hypothesis import strategies as st
from made_bundles import LAYOUTS, made_bundle, made_cloud

from mt_nodes.base.errors import NotApplicable, UsageError
from mt_nodes.base.params import build
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.data.outputs import Detections, Output
from mt_nodes.data.verdict import Outcome
from mt_nodes.relations.checks.obstacle_checks import ObstaclesKept
from mt_nodes.relations.mutations.base import Followup, Mutation
from mt_nodes.relations.mutations.lidar.beams_miscalibrated import BeamsMiscalibrated
from mt_nodes.relations.mutations.lidar.crosstalk import Crosstalk
from mt_nodes.relations.mutations.lidar.extrinsic_shifted import ExtrinsicShifted
from mt_nodes.relations.mutations.lidar.ghost_reflections import GhostReflections
from mt_nodes.relations.mutations.lidar.lost_returns import LostReturns, sector
from mt_nodes.relations.mutations.lidar.motion_distorted import MotionDistorted
from mt_nodes.relations.mutations.lidar.placement import empty_returns
from mt_nodes.relations.mutations.lidar.scan_limits import (
    BeamsLost,
    FieldOfViewLimited,
    RangeReduced,
    VerticalResolutionReduced,
)
from mt_nodes.relations.mutations.lidar.sector_blocked import SectorBlocked
from mt_nodes.relations.mutations.lidar.time_shifted import TimeShifted
from mt_nodes.world.scene.beams import beams_of

STREET = street()
SCAN = STREET.cloud()


def organised() -> Bundle:
    """The street as a sensor that keeps its grid gives it: 64 rows of 1,800, NaN where nothing came back, a range."""
    dtype = np.dtype([*[(n, "<f4") for n in ("x", "y", "z", "intensity")], ("range", "<u4"), ("time", "<f4")])
    points = np.zeros(64 * 1800, dtype=dtype)
    for name in "xyz":
        points[name] = np.nan
    column = np.rint(SCAN.points["time"] / np.float32(0.1 / 1800)).astype(int)
    at = SCAN.points["ring"].astype(int) * 1800 + column
    for name in ("x", "y", "z", "intensity", "time"):
        points[name][at] = SCAN.points[name]
    points["range"][at] = np.rint(1000.0 * np.linalg.norm(SCAN.xyz, axis=1))
    cloud = replace(SCAN, points=points, height=64, is_dense=False)
    return replace(STREET, clouds=(cloud,))


GRID = organised()
BUNDLES = {"street": STREET, "grid": GRID}


def derive(mutation: Mutation, bundle: Bundle = STREET, seed: int = 5) -> tuple[Followup, dict[str, Any]]:
    rng = np.random.default_rng(seed)
    draw = mutation.draw(rng, bundle, mutation.begin(rng, bundle))
    return mutation.apply(bundle, draw), draw


def changed(mutation: Mutation, bundle: Bundle = STREET, seed: int = 5) -> Cloud:
    return derive(mutation, bundle, seed)[0].first.cloud()


def xyz_of(cloud: Cloud) -> np.ndarray:
    return cloud.xyz[~empty_returns(cloud)].astype(np.float64)


LOSERS: dict[str, LostReturns] = {
    "range": RangeReduced(30.0),
    "view": FieldOfViewLimited(centre_deg=30.0, width_deg=90.0, lowest_deg=-15.0, highest_deg=1.0),
    "blocked": SectorBlocked(centre_deg=-170.0, width_deg=40.0),
    "dimmed": SectorBlocked(centre_deg=0.0, width_deg=120.0, attenuation=0.4),
    "beams": BeamsLost(count=5),
    "named beams": BeamsLost(rings=(0, 17, 63)),
    "every third": VerticalResolutionReduced(keep_every=3, first=1),
}
MOVERS: dict[str, tuple[Mutation, Mutation]] = {  # what is promised, and a broken copy that does something else
    "calibration": (BeamsMiscalibrated(0.1, 0.1, 0.02), BeamsMiscalibrated(0.1, 0.11, 0.02)),
    "calibrated range": (BeamsMiscalibrated(0.0, 0.0, 0.02), BeamsMiscalibrated(0.0, 0.0, 0.03)),
    "elevation": (BeamsMiscalibrated(0.1, 0.0, 0.0), BeamsMiscalibrated(0.12, 0.0, 0.0)),
    "mounting": (ExtrinsicShifted(1.0, -2.0, 3.0, 0.1, -0.2, 0.3), ExtrinsicShifted(1.0, -2.0, 3.0, 0.1, -0.2, 0.31)),
    "turned": (ExtrinsicShifted(yaw_deg=0.5), ExtrinsicShifted(yaw_deg=0.51)),
    "speed": (MotionDistorted(10.0), MotionDistorted(10.5)),
    "bend": (MotionDistorted(10.0, 30.0), MotionDistorted(10.0, 31.0)),
    "crosstalk": (Crosstalk(0.002, 5.0), Crosstalk(0.002, 1.0)),
}  # fmt: skip


# What is lost


@pytest.mark.parametrize("case", LOSERS)
@pytest.mark.parametrize("where", BUNDLES)
def test_returns_are_lost_as_promised(case: str, where: str) -> None:
    mutation, bundle = LOSERS[case], BUNDLES[where]
    followup, draw = derive(mutation, bundle)
    old, new = bundle.cloud(), followup.first.cloud()
    assert mutation.guarantee(bundle, followup, draw) is None
    kept, was = (~empty_returns(new)).sum(), (~empty_returns(old)).sum()
    assert 0 < kept < was and followup.effects.numbers == {"points_removed": was - kept}
    if old.organised:
        assert (new.height, len(new), new.is_dense) == (old.height, len(old), False)
        gone = empty_returns(new)
        assert np.isnan(new.points["x"][gone]).all() and (new.points["range"][gone] == 0).all()
        assert (new.points["time"] == old.points["time"]).all()
    else:
        assert len(new) == kept


@pytest.mark.parametrize("case", LOSERS)
@pytest.mark.parametrize("where", BUNDLES)
@pytest.mark.parametrize("wrong", ["one more", "one less", "the neighbours"])
def test_a_broken_loss_is_seen(case: str, where: str, wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation, bundle = LOSERS[case], BUNDLES[where]
    draw, honest = derive(mutation, bundle)[1], type(mutation).lost

    def broken(self: Any, cloud: Cloud, draw: Any) -> np.ndarray:
        lost, known = honest(self, cloud, draw).copy(), ~empty_returns(cloud)
        if wrong == "the neighbours":
            return np.roll(lost, 999)
        known &= np.abs(self.excess(cloud, draw)) > 1e-3  # on the edge either is right
        row = np.flatnonzero(known & (lost if wrong == "one less" else ~lost))[7]
        lost[row] = wrong == "one more"
        return lost

    monkeypatch.setattr(type(mutation), "lost", broken)
    assert "had to" in str(mutation.guarantee(bundle, mutation.apply(bundle, draw), draw))


@pytest.mark.parametrize("case", LOSERS)
def test_a_return_that_comes_back_or_changes_is_seen(case: str) -> None:
    mutation = LOSERS[case]
    followup, draw = derive(mutation)
    cloud = followup.first.cloud()
    touched = cloud.raw.copy()
    touched.view(cloud.points.dtype)["time"][100] += np.float32(1e-4)
    for raw in (touched, cloud.raw[1:], np.concatenate([cloud.raw, SCAN.raw[:1]])):
        tampered = Followup(((0, followup.first.with_clouds([cloud.with_raw(raw)])),))
        assert mutation.guarantee(STREET, tampered, draw)


@given(centre=st.floats(-180, 180), width=st.floats(1, 360), more=st.floats(0, 90))
@settings(max_examples=15, deadline=None)
def test_a_wider_sector_loses_more_and_only_itself(centre: float, width: float, more: float) -> None:
    narrow, wide = (SectorBlocked(centre, min(w, 360.0)) for w in (width, width + more))
    lost, all_lost = (m.lost(SCAN, {}) for m in (narrow, wide))
    assert not (lost & ~all_lost).any()
    aside = np.abs((np.degrees(np.arctan2(SCAN.xyz[:, 1], SCAN.xyz[:, 0])) - centre + 180.0) % 360.0 - 180.0)
    clear = np.abs(aside - width / 2) > 1e-3
    assert (lost[clear] == (aside < width / 2)[clear]).all()


@given(near=st.floats(2, 100), far=st.floats(2, 100))
@settings(max_examples=15, deadline=None)
def test_a_shorter_range_loses_more(near: float, far: float) -> None:
    near, far = sorted((near, far))
    assert not (RangeReduced(far).lost(SCAN, {}) & ~RangeReduced(near).lost(SCAN, {})).any()


def test_failing_beams_stay_dark_and_more_of_them_include_those_before() -> None:
    four, nine = BeamsLost(count=4), BeamsLost(count=9)
    state = four.begin(np.random.default_rng(2), STREET)
    draws = [m.draw(np.random.default_rng(n), STREET, state) for n, m in enumerate((four, four, nine))]
    name = f"{SCAN.topic}|rings"
    assert (draws[0][name] == draws[1][name]).all() and len(draws[0][name]) == 4
    assert set(draws[0][name]) < set(draws[2][name])
    left = np.unique(four.apply(STREET, draws[0]).first.cloud().points["ring"])
    assert sorted({*left.tolist(), *draws[0][name].tolist()}) == list(range(64))


def test_a_named_ring_must_be_there_and_one_must_be_left() -> None:
    with pytest.raises(NotApplicable, match=r"has no ring 64; it has 64, 0 to 63"):
        derive(BeamsLost(rings=(3, 64)))
    with pytest.raises(NotApplicable, match="has 64 rings, and none would be left"):
        derive(BeamsLost(count=64))


def test_every_kth_ring_counts_by_elevation() -> None:
    left = np.unique(changed(VerticalResolutionReduced(keep_every=4)).points["ring"])
    assert left.tolist() == list(range(3, 64, 4)), "ring 63 is the lowest of this sensor"


def test_dirt_takes_the_weak_returns_and_dims_the_others() -> None:
    counts, sums = [], []
    for attenuation in (0.1, 0.3, 0.5, 0.7, 1.0):
        new = changed(SectorBlocked(width_deg=90.0, attenuation=attenuation))
        inside = np.abs(np.arctan2(new.points["y"], new.points["x"])) < np.radians(44.9)
        counts.append(int(inside.sum()))
        sums.append(float(new.points["intensity"][inside].sum()))
        outside = np.abs(np.arctan2(SCAN.points["y"], SCAN.points["x"])) > np.radians(45.1)
        assert outside.sum() == (np.abs(np.arctan2(new.points["y"], new.points["x"])) > np.radians(45.1)).sum()
    assert counts == sorted(counts, reverse=True) and counts[0] > counts[2] > counts[-1] == 0
    assert sums == sorted(sums, reverse=True)
    with pytest.raises(NotApplicable, match="no intensities, which partial attenuation needs"):
        derive(SectorBlocked(attenuation=0.5), made_bundle(made_cloud("no_intensity")))
    with pytest.raises(NotApplicable, match="fit none of the scales"):
        loud = SCAN.points.copy()
        loud["intensity"] *= 1000.0
        derive(SectorBlocked(attenuation=0.5), replace(STREET, clouds=(replace(SCAN, points=loud),)))


def test_a_dimmed_sector_must_be_as_dim_as_promised(monkeypatch: pytest.MonkeyPatch) -> None:
    mutation = SectorBlocked(width_deg=90.0, attenuation=0.3)
    draw, honest = derive(mutation)[1], SectorBlocked.weakened

    def brighter(self: SectorBlocked, cloud: Cloud) -> Cloud:
        new = honest(self, cloud)
        new.points["intensity"][:] *= 1.05
        return new

    monkeypatch.setattr(SectorBlocked, "weakened", brighter)
    assert mutation.guarantee(STREET, mutation.apply(STREET, draw), draw)


def test_nothing_to_lose_is_said() -> None:
    near = replace(SCAN, points=SCAN.points[np.linalg.norm(SCAN.xyz, axis=1) < 20.0])
    with pytest.raises(NotApplicable, match=r"none of the \d+ returns of .* would be lost"):
        derive(RangeReduced(50.0), replace(STREET, clouds=(near,)))


# What can no longer be seen


@pytest.mark.parametrize("case", ["range", "blocked"])
def test_what_is_hidden_is_where_returns_are_lost(case: str) -> None:
    mutation = LOSERS[case]
    effects = derive(mutation)[0].effects
    area = shapely.union_all([shapely.Polygon(v.outline_m) for v in effects.occluded])
    lost = mutation.lost(SCAN, {})
    flat = np.abs(SCAN.xyz[:, 2]) < 0.05 * np.linalg.norm(SCAN.xyz, axis=1)
    inside = shapely.contains_xy(area, *SCAN.xyz[:, :2].T)
    depth = shapely.distance(area.boundary, shapely.points(SCAN.xyz[:, :2].astype(np.float64)))
    clear = flat & (depth > 0.3)
    assert lost[clear].sum() > 1000 and (inside == lost)[clear].all()
    plain = json.loads(json.dumps(effects.as_plain()))
    assert Effects.from_plain(plain).occluded == effects.occluded


@pytest.mark.parametrize("width_deg", [1.0, 90.0, 200.0, 360.0])
def test_a_sector_is_at_least_as_large_as_it_says(width_deg: float) -> None:
    volumes = list(sector("lidar", 1.0, np.radians(width_deg), near_m=10.0, far_m=50.0))
    area = shapely.union_all([shapely.Polygon(v.outline_m) for v in volumes])
    assert area.is_valid
    exact = np.radians(width_deg) / 2 * (50.0**2 - 10.0**2)
    assert exact <= area.area <= 1.01 * exact + 1e-9
    for volume in volumes:
        x, y = np.array(volume.outline_m).T
        assert (np.abs(x - volume.center_m[0]) <= volume.size_m[0] / 2 + 1e-9).all()
        assert (np.abs(y - volume.center_m[1]) <= volume.size_m[1] / 2 + 1e-9).all()


def test_a_check_demands_nothing_behind_dirt() -> None:
    def seen(*places: tuple[float, float]) -> Output:
        centres = [(x, y, 0.8) for x, y in places]
        count = len(places)
        return Output(detections=Detections.make("base_link", 0, centres, [(4.0, 1.8, 1.6)] * count, [0.0] * count))

    ahead, aside = (20.0, 0.0), (20.0, 6.0)
    blocked = derive(SectorBlocked(centre_deg=0.0, width_deg=10.0))[0].effects
    judge = ObstaclesKept().judge
    assert judge(seen(ahead, aside), seen(aside), blocked, STREET).outcome is Outcome.HOLDS
    assert judge(seen(ahead, aside), seen(ahead), blocked, STREET).outcome is Outcome.VIOLATED
    assert judge(seen(ahead), seen(), blocked, STREET).outcome is Outcome.NOT_APPLICABLE
    short = derive(RangeReduced(15.0))[0].effects
    assert judge(seen(ahead, (8.0, 0.0)), seen((8.0, 0.0)), short, STREET).outcome is Outcome.HOLDS
    assert judge(seen(ahead, (8.0, 0.0)), seen(), short, STREET).outcome is Outcome.VIOLATED


# What moves


@pytest.mark.parametrize("case", MOVERS)
@pytest.mark.parametrize("where", BUNDLES)
def test_returns_move_as_promised_and_a_broken_copy_is_seen(case: str, where: str) -> None:
    (promised, broken), bundle = MOVERS[case], BUNDLES[where]
    followup, draw = derive(promised, bundle)
    old, new = bundle.cloud(), followup.first.cloud()
    assert promised.guarantee(bundle, followup, draw) is None
    assert (empty_returns(old) == empty_returns(new)).all() and new.height == old.height
    known = ~empty_returns(new)
    if "range" in new.fields:
        assert np.abs(new.points["range"][known] - 1000.0 * np.linalg.norm(new.xyz[known], axis=1)).max() < 1.6
    other, other_draw = derive(broken, bundle)
    assert promised.guarantee(bundle, other, draw) or promised.guarantee(bundle, other, other_draw)


@pytest.mark.parametrize("case", MOVERS)
@pytest.mark.parametrize(("field", "by"), [("x", 0.01), ("time", 1e-3), ("intensity", 500.0), ("y", np.nan)])
def test_one_touched_return_is_seen(case: str, field: str, by: float) -> None:
    mutation = MOVERS[case][0]
    followup, draw = derive(mutation)
    cloud = followup.first.cloud()
    raw = cloud.raw.copy()
    row = int(draw[f"{SCAN.topic}|rows"][3]) if isinstance(mutation, Crosstalk) else 1234
    raw.view(cloud.points.dtype)[field][row] += np.float32(by)
    tampered = Followup(((0, followup.first.with_clouds([cloud.with_raw(raw)])),))
    assert mutation.guarantee(STREET, tampered, draw)


def test_a_beam_is_turned_and_shifted_by_its_own_errors() -> None:
    mutation = BeamsMiscalibrated(0.2, 0.3, 0.05)
    followup, draw = derive(mutation)
    offsets, ring = draw[f"{SCAN.topic}|offsets"], SCAN.points["ring"].astype(int)
    x, y, z = SCAN.xyz.T.astype(np.float64)
    elevation, azimuth, range_m = np.arctan2(z, np.hypot(x, y)), np.arctan2(y, x), np.linalg.norm(SCAN.xyz, axis=1)
    elevation, azimuth, range_m = elevation + offsets[ring, 0], azimuth + offsets[ring, 1], range_m + offsets[ring, 2]
    ground = range_m * np.cos(elevation)
    expected = np.column_stack([ground * np.cos(azimuth), ground * np.sin(azimuth), range_m * np.sin(elevation)])
    assert np.abs(followup.first.cloud().xyz - expected).max() < 1e-4
    assert offsets.std(axis=0) == pytest.approx(np.array([np.radians(0.2), np.radians(0.3), 0.05]), rel=0.3)


def test_false_returns_are_nearer_and_spread_evenly_in_time() -> None:
    followup, draw = derive(Crosstalk(0.05))
    rows = draw[f"{SCAN.topic}|rows"]
    before, after = (np.linalg.norm(c.xyz[rows], axis=1) for c in (SCAN, followup.first.cloud()))
    assert len(rows) == round(0.05 * len(SCAN)) and rows.dtype == np.uint32
    assert (after < before).all() and after.min() >= 1.0 - 1e-5
    place = (after - 1.0) / (0.95 * before - 1.0)
    assert np.quantile(place, [0.25, 0.5, 0.75]) == pytest.approx([0.25, 0.5, 0.75], abs=0.03)
    assert len(followup.effects.added_points[SCAN.topic]) == len(rows)


def before_a_window() -> Bundle:
    """A window pane 6 m to the left, along x, and a small ball of returns between it and the sensor; a post behind."""
    along, up = (a.ravel() for a in np.meshgrid(np.arange(-4.0, 4.0, 0.01), np.arange(-1.0, 1.0, 0.05)))
    window = np.column_stack([along, np.full(len(along), 6.0), up])
    ball = np.random.default_rng(3).normal((2.0, 2.0, 0.0), 0.02, (400, 3))
    behind = np.random.default_rng(4).normal((2.0, 9.0, 0.0), 0.02, (400, 3))
    points = np.zeros(len(window) + 800, dtype=LAYOUTS["kitti"])
    for i, name in enumerate("xyz"):
        points[name] = np.concatenate([window[:, i], ball[:, i], behind[:, i]])
    points["intensity"] = np.repeat([40.0, 100.0, 7.0], [len(window), 400, 400])
    return bundle_of(points)


def test_ghosts_are_mirror_images_on_beams_through_the_surface() -> None:
    """The image of the ball at (2, 2) in the pane y = 6 is at (2, 10), seen through the pane at (1.2, 6)."""
    bundle, mutation = before_a_window(), GhostReflections(ghosts=8)
    old = bundle.cloud()
    followup, draw = derive(mutation, bundle)
    rows = draw[f"{SCAN.topic}|rows"].astype(int)
    ghosts = followup.first.cloud().points[rows + 1 + np.arange(8)]
    assert mutation.guarantee(bundle, followup, draw) is None
    assert np.abs(np.column_stack([ghosts[n] for n in "xyz"]) - [2.0, 10.0, 0.0]).max() < 0.1
    assert np.abs(old.xyz[rows] - [1.2, 6.0, 0.0]).max() < 0.06
    assert ghosts["intensity"] == pytest.approx(np.full(8, 20.0))
    with pytest.raises(NotApplicable, match=r"the best of 32 places .* shows \d+ mirror images in .* 500 are needed"):
        derive(GhostReflections(ghosts=500), bundle)


def test_ghosts_of_a_street_are_behind_their_surface_and_tampering_is_seen() -> None:
    mutation = GhostReflections(ghosts=40)
    followup, draw = derive(mutation)
    new, rows = followup.first.cloud(), draw[f"{SCAN.topic}|rows"].astype(int)
    at = rows + 1 + np.arange(40)
    far, near = np.linalg.norm(new.xyz[at], axis=1), np.linalg.norm(SCAN.xyz[rows], axis=1)
    assert (far > near + 0.2).all() and far.max() <= 120.0
    assert (new.points["ring"][at] == SCAN.points["ring"][rows]).all()
    for tamper in ("x", "intensity", "ring"):
        raw = new.raw.copy()
        raw.view(new.points.dtype)[tamper][at[5]] += 20
        assert mutation.guarantee(STREET, Followup(((0, followup.first.with_clouds([new.with_raw(raw)])),)), draw)
    other = {**draw, f"{SCAN.topic}|images": draw[f"{SCAN.topic}|images"][::-1]}
    assert "not at mirror images" in str(mutation.guarantee(STREET, mutation.apply(STREET, other), other))
    moved = {**draw, f"{SCAN.topic}|plane": draw[f"{SCAN.topic}|plane"] + [0.0, 0.0, 0.0, 0.5]}
    assert "does not hit the surface" in str(mutation.guarantee(STREET, mutation.apply(STREET, moved), moved))
    with pytest.raises(NotApplicable, match=r"organised .* of 64 x 1800 holds one return a beam"):
        derive(mutation, GRID)


def test_without_de_skewing_the_world_comes_nearer_over_the_sweep() -> None:
    shift = changed(MotionDistorted(20.0)).xyz.astype(np.float64) - SCAN.xyz
    time_s = SCAN.points["time"].astype(np.float64)
    middle = (time_s.min() + time_s.max()) / 2
    assert np.abs(shift[:, 0] + 20.0 * (time_s - middle)).max() < 1e-4
    assert np.abs(shift[:, 1:]).max() < 1e-5
    turned = changed(MotionDistorted(0.0, 100.0))
    angle = np.arctan2(turned.points["y"], turned.points["x"]) - np.arctan2(SCAN.points["y"], SCAN.points["x"])
    angle = (angle + np.pi) % (2.0 * np.pi) - np.pi
    assert np.abs(angle + np.radians(100.0) * (time_s - middle)).max() < 1e-5


@pytest.mark.parametrize(("field", "unit"), [("time", 1.0), ("t", 1e9), ("timestamp", 1e6)])
def test_time_is_taken_from_any_field_in_any_unit_or_from_the_azimuth(field: str, unit: float) -> None:
    dtype = [(n, "<f4") for n in "xyz"]
    timed = np.empty(len(SCAN), dtype=[*dtype, (field, "<f8" if unit == 1.0 else "<u4")])
    untimed = np.empty(len(SCAN), dtype=dtype)
    for name in "xyz":
        timed[name] = untimed[name] = SCAN.points[name]
    timed[field] = SCAN.points["time"].astype(np.float64) * unit
    plain = changed(MotionDistorted(10.0)).xyz
    assert np.abs(changed(MotionDistorted(10.0), bundle_of(timed)).xyz - plain).max() < 1e-3
    by_azimuth = changed(MotionDistorted(10.0), bundle_of(untimed)).xyz - SCAN.xyz
    azimuth = np.arctan2(SCAN.points["y"], SCAN.points["x"])
    assert np.abs(by_azimuth[:, 0] - 10.0 * 0.1 * azimuth / (2.0 * np.pi)).max() < 1e-4
    timed[field] = (timed[field] * 1e-4).astype(timed[field].dtype)
    with pytest.raises(NotApplicable, match=r"is no sweep of 0\.02 to 0\.5 s"):
        derive(MotionDistorted(10.0), bundle_of(timed))


def bundle_of(points: np.ndarray) -> Bundle:
    return replace(STREET, clouds=(replace(SCAN, points=points),))


def test_the_sensors_pose_on_the_vehicle_counts() -> None:
    with pytest.raises(UsageError, match="ego_frame_id 'nowhere'"):
        derive(MotionDistorted(10.0, ego_frame_id="nowhere"))


def test_a_shifted_mounting_shifts_what_is_expected() -> None:
    mutation = ExtrinsicShifted(roll_deg=1.0, pitch_deg=2.0, yaw_deg=3.0, x_m=0.5)
    followup, _ = derive(mutation)
    matrix = followup.effects.output_transform
    assert matrix is not None and followup.effects.output_frame_id == SCAN.frame_id
    expected = SCAN.xyz @ matrix[:3, :3].T + matrix[:3, 3]
    assert np.abs(followup.first.cloud().xyz - expected).max() < 1e-4
    other = replace(SCAN, topic="/second")
    assert derive(mutation, replace(STREET, clouds=(SCAN, other)))[0].effects.output_transform is None


def test_only_stamps_are_shifted() -> None:
    mutation, bundle = TimeShifted(offset_s=-0.25), made_bundle(replace(made_cloud(), stamp_ns=10**9))
    bundle = replace(bundle, stamp_ns=10**9)
    followup, draw = derive(mutation, bundle)
    new = followup.first
    assert (new.cloud().stamp_ns, new.stamp_ns, new.images[0]) == (750_000_000, 750_000_000, bundle.images[0])
    assert new.cloud().points is bundle.cloud().points and draw == {}
    assert mutation.guarantee(bundle, followup, draw) is None
    for wrong in (bundle.cloud(), replace(made_cloud(seed=9), stamp_ns=750_000_000)):
        assert mutation.guarantee(bundle, Followup(((0, new.with_clouds([wrong])),)), draw)
    assert mutation.guarantee(bundle, Followup(((0, replace(new, stamp_ns=10**9)),)), draw)
    led_by_camera = replace(bundle, stamp_ns=5)
    assert derive(mutation, led_by_camera)[0].first.stamp_ns == 5
    with pytest.raises(NotApplicable, match="time begins at 0"):
        derive(TimeShifted(offset_s=-2.0), bundle)


# What no parameter may be


WRONG: dict[str, tuple[type[Mutation], dict[str, Any], str]] = {
    "view upside down": (FieldOfViewLimited, {"lowest_deg": 5.0, "highest_deg": -5.0}, "below highest_deg"),
    "first beyond": (VerticalResolutionReduced, {"keep_every": 2, "first": 2}, "expected less than keep_every 2"),
    "no error": (
        BeamsMiscalibrated,
        {"elevation_sigma_deg": 0.0, "azimuth_sigma_deg": 0.0, "range_sigma_m": 0.0},
        "expected one",
    ),
    "no shift": (ExtrinsicShifted, {"yaw_deg": 0.0}, "no rotation and no translation"),
    "no motion": (MotionDistorted, {"speed_mps": 0.0}, "no speed and no yaw rate"),
    "no offset": (TimeShifted, {"offset_s": 0.0}, "a nanosecond at least"),
    "negative ring": (BeamsLost, {"rings": [-1]}, "expected 0 to inf"),
    "range": (RangeReduced, {"max_range_m": 0.0}, "expected 1 to 300"),
    "attenuation": (SectorBlocked, {"attenuation": 1.5}, "expected 0.01 to 1"),
    "share": (Crosstalk, {"share": 0.5}, "expected 1e-06 to 0.2"),
    "no ghosts": (GhostReflections, {"ghosts": 0}, "expected 1 to"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_makes_no_sense_is_refused(case: str) -> None:
    cls, given_, message = WRONG[case]
    with pytest.raises(UsageError, match=message):
        build(cls, given_, "here")


WHOLE = made_bundle(
    replace(made_cloud("kitti"), points=made_cloud("kitti").points.astype([(n, "<i4") for n in LAYOUTS["kitti"].names]))
)


@pytest.mark.parametrize("mutation", [m for m, _ in MOVERS.values()], ids=list(MOVERS))
def test_whole_metres_are_too_coarse_to_move(mutation: Mutation) -> None:
    with pytest.raises(NotApplicable, match="whole-number coordinates"):
        derive(mutation, WHOLE)


def test_rings_found_in_a_scan_are_lost_like_those_that_are_said() -> None:
    order = np.lexsort((SCAN.points["time"], SCAN.points["ring"]))
    points = np.empty(len(SCAN), dtype=LAYOUTS["kitti"])
    for name in points.dtype.names or ():
        points[name] = SCAN.points[name][order]
    bare = bundle_of(points)
    assert beams_of(bare.cloud()).source == "scan order"
    mutation = BeamsLost(rings=(10, 11))
    followup, draw = derive(mutation, bare)
    assert mutation.guarantee(bare, followup, draw) is None
    expected = points[~np.isin(SCAN.points["ring"][order], [10, 11])]
    assert abs(len(followup.first.cloud()) - len(expected)) <= 4
