# SPDX-License-Identifier: Apache-2.0
"""Wet ground, sun glare and spray: the formulas, what a stronger one does, what persists, and the proofs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from drives import street
from hypothesis import given, settings
from hypothesis import strategies as st
from loss_chances import chance_of_loss, unlikely
from made_bundles import cloud_bundle, in_bytes, made_cloud

from mt_nodes.base.errors import NotApplicable, UsageError
from mt_nodes.base.params import build
from mt_nodes.data.messages import Bundle
from mt_nodes.data.transforms import move
from mt_nodes.relations.mutations.base import Followup, Mutation
from mt_nodes.relations.mutations.joint.echoes import Echoes
from mt_nodes.relations.mutations.joint.plume import PATCH_M, PATCHES, Plume, depth, within
from mt_nodes.relations.mutations.joint.spray import Spray
from mt_nodes.relations.mutations.joint.sun_glare import SunGlare
from mt_nodes.relations.mutations.joint.vehicle_backs import VehicleBack, nearest_vehicle
from mt_nodes.relations.mutations.joint.wet_ground import WetGround
from mt_nodes.relations.mutations.lidar.each_cloud import marked
from mt_nodes.relations.mutations.lidar.placement import empty_returns

STREET = street()
SCAN = STREET.cloud()
MUTATIONS: dict[str, Mutation] = {
    "wet ground": WetGround(),
    "sun glare": SunGlare(azimuth_rad=0.0, false_share=0.2),  # at the open end of the street
    "spray": Spray(),
}


def organised() -> Bundle:
    """The street as a sensor that keeps its grid gives it: 64 rows of 1,800, NaN where nothing came back."""
    dtype = np.dtype([*[(n, "<f4") for n in ("x", "y", "z", "intensity")], ("range", "<u4")])
    points = np.zeros(64 * 1800, dtype=dtype)
    for name in "xyz":
        points[name] = np.nan
    column = np.rint(SCAN.points["time"] / np.float32(0.1 / 1800)).astype(int)
    at = SCAN.points["ring"].astype(int) * 1800 + column
    for name in ("x", "y", "z", "intensity"):
        points[name][at] = SCAN.points[name]
    points["range"][at] = np.rint(1000.0 * np.linalg.norm(SCAN.xyz, axis=1))
    return replace(STREET, clouds=(replace(SCAN, points=points, height=64, is_dense=False),))


def other_scale(kind: str, factor: float) -> Bundle:
    """The street with intensities of another type and scale."""
    dtype = np.dtype([*[(n, "<f4") for n in "xyz"], ("intensity", kind)])
    points = np.zeros(len(SCAN), dtype=dtype)
    for name in "xyz":
        points[name] = SCAN.points[name]
    points["intensity"] = SCAN.points["intensity"] * factor
    return replace(STREET, clouds=(replace(SCAN, points=points),))


BUNDLES = {
    "street": STREET,
    "grid": organised(),
    "bytes": other_scale("u1", 1.0),
    "shares": other_scale("<f8", 1.0 / 255.0),
    "words": other_scale(">u2", 257.0),
}


def derive(mutation: Mutation, bundle: Bundle = STREET, seed: int = 5, state: Any = None) -> tuple[Followup, Any]:
    state = mutation.begin(np.random.default_rng(seed), bundle) if state is None else state
    draw = mutation.draw(np.random.default_rng(seed), bundle, state)
    return mutation.apply(bundle, draw), draw


def echoes_of(mutation: Any, draw: dict[str, Any], bundle: Bundle = STREET) -> Echoes:
    own = {name.partition("|")[2]: value for name, value in draw.items()}
    match mutation:
        case WetGround():
            return mutation.echoes(bundle.cloud(), own)
        case SunGlare():
            return mutation.echoes(bundle.cloud(), own)
        case _:
            return mutation.echoes(bundle, bundle.cloud(), own)  # type: ignore[no-any-return]


@lru_cache
def derived(which: str, where: str) -> tuple[Followup, Any]:
    return derive(MUTATIONS[which], BUNDLES[where])


# What all of them promise


@pytest.mark.parametrize("where", BUNDLES)
@pytest.mark.parametrize("which", MUTATIONS)
def test_returns_stay_on_their_beams_and_intensities_in_their_scale(which: str, where: str) -> None:
    bundle, mutation = BUNDLES[where], MUTATIONS[which]
    followup, draw = derived(which, where)
    old, new = bundle.cloud(), followup.first.cloud()
    assert mutation.guarantee(bundle, followup, draw) is None
    echoes = echoes_of(mutation, draw, bundle)
    kept = np.arange(len(old)) if old.organised else np.delete(np.arange(len(old)), echoes.lost)
    before, after = old.xyz[kept].astype(np.float64), new.xyz.astype(np.float64)
    there = ~empty_returns(new)
    assert len(echoes.rows) + len(echoes.lost) > 100 and there.sum() == (~empty_returns(old)).sum() - len(echoes.lost)
    far, near = (np.linalg.norm(xyz[there], axis=1) for xyz in (before, after))
    assert near.min() > 0.9 and (near <= far * (1.0 + 1e-6)).all()
    cosine = (before[there] * after[there]).sum(axis=1) / (near * far)
    assert cosine.min() > 1.0 - 1e-10
    high = {"bytes": 255, "shares": 1, "words": 65535}.get(where, 255)
    assert new.points["intensity"][there].min() >= 0 and new.points["intensity"][there].max() <= high
    if "range" in new.fields:
        assert np.abs(new.points["range"][there] - 1000.0 * near).max() <= 1.01
        assert (new.points["range"][~there] == 0).all()


def more_lost(echoes: Echoes) -> Echoes:
    return replace(
        echoes,
        rows=echoes.rows[1:],
        reflectivity=echoes.reflectivity[1:],
        lost=np.sort(np.append(echoes.lost, echoes.rows[0])),
    )


def stronger(echoes: Echoes) -> Echoes:
    return replace(echoes, reflectivity=np.minimum(echoes.reflectivity * 1.2 + 3.0 / 255.0, 1.0))


def beyond(echoes: Echoes) -> Echoes:
    return replace(echoes, range_m=echoes.range_m + 150.0)


def neighbours(echoes: Echoes) -> Echoes:
    return replace(echoes, **{name: np.maximum(getattr(echoes, name) - 40, 0) for name in ("rows", "moved", "lost")})


BROKEN: dict[str, tuple[str, Callable[[Echoes], Echoes]]] = {
    "wet ground: one more is lost": ("wet ground", more_lost),
    "wet ground: brighter": ("wet ground", stronger),
    "wet ground: the neighbours": ("wet ground", neighbours),
    "sun glare: all that was false is lost": (
        "sun glare",
        lambda e: replace(
            e, rows=e.rows[1:], reflectivity=e.reflectivity[1:], moved=e.moved[1:], range_m=e.range_m[1:]
        ),
    ),
    "sun glare: brighter": ("sun glare", stronger),
    "sun glare: beyond": ("sun glare", beyond),
    "sun glare: one less is lost": ("sun glare", lambda e: replace(e, lost=e.lost[1:])),
    "spray: brighter": ("spray", stronger),
    "spray: beyond": ("spray", beyond),
    "spray: before the plume": ("spray", lambda e: replace(e, range_m=np.full_like(e.range_m, 0.5))),
    "spray: the neighbours": ("spray", neighbours),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_copy_fails_its_guarantee(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    which, spoil = BROKEN[case]
    mutation, (_, draw) = MUTATIONS[which], derived(which, "street")
    honest = type(mutation).echoes  # type: ignore[attr-defined]
    monkeypatch.setattr(type(mutation), "echoes", lambda self, *given: spoil(honest(self, *given)))
    assert mutation.guarantee(STREET, mutation.apply(STREET, draw), draw)


@pytest.mark.parametrize("which", MUTATIONS)
def test_a_tampered_point_is_seen(which: str) -> None:
    mutation, (followup, draw) = MUTATIONS[which], derived(which, "street")
    for field in ("x", "intensity", "ring"):
        raw = followup.first.cloud().raw.copy()
        raw.view(SCAN.points.dtype)[field][-5] += 1
        changed = followup.first.with_clouds([followup.first.cloud().with_raw(raw)])
        assert mutation.guarantee(STREET, Followup(((0, changed),)), draw)


STRONGER: dict[str, Callable[[float], Mutation]] = {
    "wet ground": lambda much: WetGround(water_mm=0.01 + 1.5 * much),
    "sun glare": lambda much: SunGlare(azimuth_rad=0.0, background=1.0 + 1e4 * much),
    "spray": lambda much: Spray(water_mm=0.01 + 4.0 * much),
    "spray by speed": lambda much: Spray(speed_mps=2.0 + 40.0 * much),
}


@pytest.mark.parametrize("which", STRONGER)
@settings(max_examples=6, deadline=None)
@given(shares=st.lists(st.floats(0.0, 1.0), min_size=2, max_size=2, unique=True), seed=st.integers(0, 2**32))
def test_more_of_it_leaves_a_subset_of_the_returns(which: str, shares: list[float], seed: int) -> None:
    survivors = []
    for share in sorted(shares):
        mutation = STRONGER[which](share)
        echoes = echoes_of(mutation, drawn(mutation, seed))
        gone = np.union1d(echoes.lost, echoes.moved)
        weak = dict(zip(echoes.rows.tolist(), echoes.reflectivity.tolist(), strict=True))
        survivors.append((set(gone.tolist()), weak))
    (few, before), (many, after) = survivors
    assert few <= many
    for row in before.keys() & after.keys() - many:
        assert after[row] <= before[row] * (1.0 + 1e-9)


def drawn(mutation: Mutation, seed: int) -> dict[str, Any]:
    """A draw, or one of nothing where so little changes nothing."""
    try:
        return derive(mutation, seed=seed)[1]
    except NotApplicable:
        return {
            "|sun": np.zeros(3),
            "|visible": 0.0,
            "|noise_key": 0,
            "|sensor": "generic",
            "|rows": np.empty(0, np.uint8),
            "|range_m": np.empty(0, np.float32),
        }


@pytest.mark.parametrize("which", MUTATIONS)
def test_draws_are_small(which: str) -> None:
    _, draw = derived(which, "street")
    assert sum(np.asarray(value).nbytes for value in draw.values()) < 0.1 * SCAN.points.nbytes


@pytest.mark.parametrize("which", MUTATIONS)
def test_clouds_without_sense_are_refused(which: str) -> None:
    mutation = MUTATIONS[which]
    wrong = {
        "has no intensity": made_cloud("no_intensity"),
        "fit none of the scales": other_scale("<f4", 1e4).cloud(),
        "are not finite": other_scale("<f4", np.nan).cloud(),
    }
    for message, cloud in wrong.items():
        with pytest.raises(NotApplicable, match=f"{message}|no intensity of"):
            derive(mutation, cloud_bundle(cloud) if len(cloud) < 5000 else replace(STREET, clouds=(cloud,)))


# Wet ground


def test_a_road_returns_what_fresnel_lets_through() -> None:
    """On a made road: 100 rings on a plane, reflectivity 0.2; the formula is written again by hand."""
    ground, azimuth = (a.ravel() for a in np.meshgrid(np.linspace(4.0, 60.0, 100), np.linspace(-3.1, 3.1, 60)))
    bundle = road(ground * np.cos(azimuth), ground * np.sin(azimuth), np.full(len(ground), -1.73), 51.0)
    mutation = WetGround(water_mm=0.6, sensor="generic")  # 0.9 at 120 m, nearer than 5 m out of focus
    followup, draw = derive(mutation, bundle)
    echoes = echoes_of(mutation, draw, bundle)
    theta = np.arctan2(ground, 1.73)
    inside = np.arcsin(np.sin(theta) / 1.33)
    s = (np.cos(theta) - 1.33 * np.cos(inside)) / (np.cos(theta) + 1.33 * np.cos(inside))
    p = (1.33 * np.cos(theta) - np.cos(inside)) / (1.33 * np.cos(theta) + np.cos(inside))
    r = (s**2 + p**2) / 2
    share = 0.5 + 0.5 * (1 - r) ** 2 / (1 - 0.2 * r)
    nominal = 0.2 / 0.9 * (120.0 / np.maximum(np.hypot(ground, 1.73), 5.0)) ** 2
    lost, chance = marked(len(ground), echoes.lost), chance_of_loss(nominal, share)
    assert chance.max() > 0.2 and chance[ground < 10.0].max() < 0.02
    for rings in (ground < 20.0, (ground >= 20.0) & (ground < 40.0), ground >= 40.0):
        assert not unlikely(lost[rings], chance[rings]) and lost[rings].any() and not lost[rings].all()
    assert followup.effects.numbers == {"returns_lost": len(echoes.lost)}
    assert np.abs(followup.first.cloud().points["intensity"] / 51.0 - share[~lost]).max() < 1e-4
    assert share[np.argmin(ground)] > 0.9 and share[np.argmax(ground)] < 0.55


def road(x: np.ndarray, y: np.ndarray, z: np.ndarray, intensity: float | np.ndarray) -> Bundle:
    dtype = np.dtype([(n, "<f4") for n in ("x", "y", "z", "intensity")])
    points = np.zeros(len(x), dtype=dtype)
    for name, values in zip(dtype.names or (), (x, y, z, intensity), strict=True):
        points[name] = values
    return cloud_bundle(in_bytes(replace(made_cloud("kitti"), points=points)))


def test_what_stands_on_the_road_stays_byte_for_byte() -> None:
    followup, draw = derived("wet ground", "street")
    echoes = echoes_of(MUTATIONS["wet ground"], draw)
    height = move(STREET.transforms.lookup("base_link", SCAN.frame_id), SCAN.xyz)[:, 2]
    touched = np.union1d(echoes.rows, echoes.lost)
    assert np.abs(height[touched]).max() < 0.6 and len(touched) > 0.3 * len(SCAN)
    kept = np.delete(np.arange(len(SCAN)), echoes.lost)
    same = followup.first.cloud().raw == SCAN.raw[kept]
    assert same[height[kept] > 0.6].all()


def test_no_road_no_water() -> None:
    with pytest.raises(NotApplicable, match=r"no ground in .*: \d+% of the returns within 30 m lie on a plane"):
        derive(WetGround(), cloud_bundle(made_cloud("kitti")))


# Sun glare


def test_the_noise_floor_rises_around_the_sun() -> None:
    """A wall all around at 20 m, the sun above it: returns are lost as likely as their share of the noise makes it."""
    azimuth = np.linspace(-np.pi, np.pi, 20_000, endpoint=False)
    bundle = road(20.0 * np.cos(azimuth), 20.0 * np.sin(azimuth), np.zeros(20_000), 51.0)
    sun: dict[str, Any] = {"azimuth_rad": 1.0, "elevation_rad": 0.5, "half_angle_rad": 0.8, "background": 100.0}
    mutation = SunGlare(**sun, false_share=0.0, sensor="generic")
    _, draw = derive(mutation, bundle)
    lost = marked(20_000, echoes_of(mutation, draw, bundle).lost)
    apart = np.abs(np.angle(np.exp(1j * (azimuth - 1.0))))
    middles, angle = np.arange(0.05, 3.1, 0.1), np.arccos(np.cos(0.5) * np.cos(np.arange(0.05, 3.1, 0.1)))
    background = 100.0 * np.exp(-0.5 * (angle / 0.8) ** 2)
    chance = chance_of_loss(np.full(len(middles), 0.2 / 0.9 * 6.0**2), 1.0 / np.sqrt(1.0 + background))
    assert (np.diff(chance) < 0.0).all() and chance[0] > 0.4 and chance[-1] < 0.01
    for middle, expected in zip(middles.tolist(), chance.tolist(), strict=True):
        here = np.abs(apart - middle) < 0.05
        assert not unlikely(lost[here], np.full(here.sum(), expected)), middle


def test_false_returns_are_uniform_in_range_and_just_seen() -> None:
    azimuth = np.linspace(-np.pi, np.pi, 60_000, endpoint=False)
    bundle = road(119.0 * np.cos(azimuth), 119.0 * np.sin(azimuth), np.zeros(60_000), 250.0)
    mutation = SunGlare(azimuth_rad=0.0, elevation_rad=0.1, background=1.0, half_angle_rad=0.2, false_share=0.5)
    followup, draw = derive(mutation, bundle)
    range_m = draw[f"{SCAN.topic}|range_m"]
    expected = 60_000 / (2.0 * np.pi) * 0.5 * 0.2 * np.sqrt(2.0 * np.pi) * (0.95 * 119.0 - 1.0) / 119.0
    expected *= np.exp(-0.5 * (0.1 / 0.2) ** 2)  # all beams are level, the sun is not
    assert len(range_m) == pytest.approx(expected, abs=4.0 * np.sqrt(expected))
    quarters = 1.0 + (0.95 * 119.0 - 1.0) * np.array([0.25, 0.5, 0.75])
    assert np.quantile(range_m, [0.25, 0.5, 0.75]) == pytest.approx(quarters, abs=5.0)
    assert followup.effects.numbers["returns_false"] == len(range_m)
    seen = np.linalg.norm(followup.effects.added_points[SCAN.topic], axis=1)
    assert seen == pytest.approx(range_m, rel=1e-5)


def test_the_sun_stands_still_for_an_episode_and_is_chosen_where_the_sensor_looks() -> None:
    ahead = np.flatnonzero(SCAN.points["x"] > np.abs(SCAN.points["y"]))
    bundle = replace(STREET, clouds=(SCAN.with_raw(SCAN.raw[ahead]),))
    mutation = SunGlare()
    suns = [mutation.begin(np.random.default_rng(seed), bundle) for seed in range(20)]
    assert (np.abs(np.arctan2([s[1] for s in suns], [s[0] for s in suns])) < 0.8).all()
    assert len({tuple(s) for s in suns}) == 20
    draws = [derive(mutation, bundle, seed, suns[0])[1] for seed in (1, 2)]
    assert np.array_equal(draws[0][f"{SCAN.topic}|sun"], draws[1][f"{SCAN.topic}|sun"])
    with pytest.raises(UsageError, match="min_range_m 50 is not below"):
        build(SunGlare, {"min_range_m": 50.0, "max_range_m": 20.0}, "here")


# Spray

VEHICLE = VehicleBack(rear_x_m=20.0, middle_y_m=0.5, half_width_m=0.9, ground_z_m=0.1)
PLUME = Plume(VEHICLE, extinction_per_m=0.3, length_m=4.0, height_m=0.8, drift_m=3.3, key=12345)


def test_the_integral_of_the_plume_is_right() -> None:
    rng = np.random.default_rng(1)
    origin = np.array([0.0, 0.0, 1.7])
    aim = np.stack([rng.uniform(10.0, 20.0, 200), rng.uniform(-0.8, 1.8, 200), rng.uniform(0.1, 2.0, 200)])
    way = aim - origin[:, None]
    way /= np.linalg.norm(way, axis=0)
    enter, leave = within(origin, way, PLUME.box_m)
    assert (leave > enter).all() and enter.min() > 9.0
    at = np.linspace(enter, leave, 4001)
    fine = np.trapezoid(PLUME.mean_per_m(*(o + w * at for o, w in zip(origin, way, strict=True))), at, axis=0)
    assert depth(PLUME, origin, way, enter, leave) == pytest.approx(fine, rel=2e-3)
    missed = within(origin, -way, PLUME.box_m)
    assert (missed[1] < missed[0]).all()


def test_the_plume_thins_out_behind_above_and_aside() -> None:
    x, y, z = np.array([20.0, 16.0, 20.0, 20.0]), np.array([0.5, 0.5, 1.4, 0.5]), np.array([0.1, 0.1, 0.1, 0.9])
    expected = 0.3 * np.array([1.0, np.exp(-1.0), np.exp(-0.5), np.exp(-1.0)])
    assert PLUME.mean_per_m(x, y, z) == pytest.approx(expected)


def test_patches_rest_in_the_air_while_the_vehicle_goes_on() -> None:
    rng = np.random.default_rng(2)
    x, y, z = rng.uniform(5.0, 20.0, 5000), rng.uniform(-1.0, 2.0, 5000), rng.uniform(0.1, 2.0, 5000)
    now = PLUME.patchiness(x, y, z)
    gone_m = 2.0
    later = replace(PLUME, vehicle=replace(VEHICLE, rear_x_m=20.0 + gone_m), drift_m=PLUME.drift_m + gone_m)
    assert (later.patchiness(x, y, z) == now).mean() > 0.999
    resting = replace(later, vehicle=VEHICLE)  # seen from an ego as fast: the patch has fallen back
    assert (resting.patchiness(x - gone_m, y, z) == now).mean() > 0.999
    assert (resting.patchiness(x, y, z) == now).mean() < 0.01
    every = PLUME.patchiness(*(g.ravel() for g in np.meshgrid(*(np.arange(n) * PATCH_M for n in PATCHES))))
    assert every.mean() == pytest.approx(1.0, abs=0.05) and every.std() == pytest.approx(1.0, abs=0.08)


def test_the_plume_depends_on_the_stamp_not_on_the_frames_before() -> None:
    mutation = Spray()
    state = mutation.begin(np.random.default_rng(3), STREET)
    later = replace(STREET, index=1, stamp_ns=STREET.stamp_ns + 400_000_000)
    draws = [derive(mutation, bundle, 9, state)[1] for bundle in (STREET, later, later)]
    name = f"{SCAN.topic}|drift_m"
    assert [d[name] for d in draws] == pytest.approx([0.0, 8.0, 8.0])
    assert all(np.array_equal(draws[1][key], draws[2][key]) for key in draws[1])
    assert not np.array_equal(draws[0][f"{SCAN.topic}|rows"], draws[1][f"{SCAN.topic}|rows"])


def wall(distance_m: float) -> tuple[np.ndarray, ...]:
    y, z = (a.ravel() for a in np.meshgrid(np.linspace(-8.0, 8.0, 161), np.linspace(-1.7, 3.0, 48)))
    return np.full(len(y), distance_m), y, z


def car_before_a_wall() -> Bundle:
    """Level ground, a car's back 12 m ahead, 1.8 m wide and 1.5 m high, and a wall at 30 m."""
    x, y = (a.ravel() for a in np.meshgrid(np.arange(3.0, 29.0, 0.2), np.arange(-8.0, 8.0, 0.2)))
    ground = x, y, np.full(len(x), -1.73)
    ys, zs = (a.ravel() for a in np.meshgrid(np.linspace(-0.9, 0.9, 37), np.linspace(-1.5, -0.23, 26)))
    back = np.full(len(ys), 12.0), ys, zs
    return road(*(np.concatenate(c) for c in zip(ground, back, wall(30.0), strict=True)), 60.0)


def test_the_vehicle_is_found_and_its_wake_lies_behind_it() -> None:
    bundle = car_before_a_wall()
    mutation = Spray(water_mm=2.0)
    followup, draw = derive(mutation, bundle)
    assert draw[f"{SCAN.topic}|vehicle"] == pytest.approx([12.0, 0.0, 0.9, 0.0], abs=0.02)
    assert mutation.guarantee(bundle, followup, draw) is None
    added = followup.effects.added_points[SCAN.topic]
    assert len(added) > 30 and added[:, 0].min() > 2.0 - 0.01 and added[:, 0].max() < 12.0
    assert np.abs(added[:, 1]).max() < 1.36 and added[:, 2].min() > -1.74 and added[:, 2].max() < 0.28


def test_what_is_behind_the_spray_weakens_by_its_integral() -> None:
    """Along the axis, low over the road: by hand, α₀ = 3 c v / (d v), integrated over the exponential."""
    bundle = car_before_a_wall()
    mutation = Spray(water_mm=1.0, speed_mps=20.0, airborne_share=0.02)
    _, draw = derive(mutation, bundle)
    echoes = echoes_of(mutation, draw, bundle)
    xyz = bundle.cloud().xyz.astype(np.float64)
    row = int(np.argmin(np.abs(xyz - [12.0, 0.0, -0.5]).sum(axis=1)))
    assert row in echoes.rows and row not in echoes.moved
    alpha = 3.0 * (0.02 * 0.4 * 1e-3 / 1.5) / (0.8e-3 * 6.0 / 20.0)
    at = np.linspace(2.0, 12.0 - 0.2, 20_001)
    height = 1.73 + (xyz[row, 2] / xyz[row, 0]) * at
    there = height < 2.0
    dense = alpha * np.exp(-(12.0 - at) / 4.0 - height / 0.8) * there
    tau = np.trapezoid(dense, at) * np.linalg.norm(xyz[row]) / xyz[row, 0]
    after = 255.0 * float(echoes.reflectivity[np.searchsorted(echoes.rows, row)])
    assert after == pytest.approx(60.0 * np.exp(-2.0 * tau), rel=2e-3) and after < 58.0


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"half_m": 0.9, "x_m": 12.0, "y_m": 0.0}, True),
        ({"half_m": 0.3, "x_m": 12.0, "y_m": 0.0}, False),  # a pedestrian
        ({"half_m": 2.5, "x_m": 12.0, "y_m": 0.0}, False),  # a wall
        ({"half_m": 0.9, "x_m": 60.0, "y_m": 0.0}, False),  # too far
        ({"half_m": 0.9, "x_m": 12.0, "y_m": 6.0}, False),  # in another street
        ({"half_m": 0.9, "x_m": 12.0, "y_m": 0.0, "top_m": 0.7}, False),  # a kerb
    ],
)
def test_only_what_is_as_big_as_a_vehicle_is_one(change: dict[str, float], found: bool) -> None:
    y, z = (
        a.ravel()
        for a in np.meshgrid(
            np.linspace(-1.0, 1.0, 40) * change["half_m"], np.linspace(0.2, change.get("top_m", 1.5), 20)
        )
    )
    back = np.column_stack([np.full(len(y), change["x_m"]), y + change["y_m"], z])
    x, side = (a.ravel() for a in np.meshgrid(np.arange(4.0, 70.0, 0.5), np.arange(-9.0, 9.0, 0.5)))
    xyz = np.concatenate([np.column_stack([x, side, np.zeros(len(x))]), back])
    if found:
        vehicle = nearest_vehicle(xyz, (5.0, 50.0), 4.0, 50)
        assert (vehicle.rear_x_m, vehicle.middle_y_m) == pytest.approx((change["x_m"], change["y_m"]))
        assert vehicle.half_width_m == pytest.approx(change["half_m"]) and vehicle.ground_z_m == 0.0
    else:
        with pytest.raises(NotApplicable, match=r"none of \d+ things 5 to 50 m ahead and within 4 m of the path"):
            nearest_vehicle(xyz, (5.0, 50.0), 4.0, 50)


def test_an_empty_road_has_no_spray() -> None:
    x, y = (a.ravel() for a in np.meshgrid(np.arange(3.0, 40.0, 0.2), np.arange(-8.0, 8.0, 0.2)))
    with pytest.raises(NotApplicable, match="none of 0 things"):
        derive(Spray(), road(x, y, np.full(len(x), -1.73), 60.0))
    with pytest.raises(UsageError, match=r"ahead_m: got 9 to 8, expected near before far"):
        build(Spray, {"ahead_m": [9.0, 8.0]}, "here")
