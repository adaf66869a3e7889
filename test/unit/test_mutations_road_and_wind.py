# SPDX-License-Identifier: Apache-2.0
"""Covered roads, leaves in the wind and hail: the formulas, what more of it does, what stays, and the proofs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loss_chances import chance_of_loss, unlikely
from made_bundles import cloud_bundle, in_bytes, made_cloud
from made_images import street, street_in
from recordings import KITTI

from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.bags.bundles import BagSource
from mt_nodes.data.messages import Bundle
from mt_nodes.data.transforms import move
from mt_nodes.relations.mutations.base import Followup, Mutation
from mt_nodes.relations.mutations.camera.each_image import View
from mt_nodes.relations.mutations.camera.road_painted import RoadPainted
from mt_nodes.relations.mutations.joint import blown_leaves, road_in_pictures
from mt_nodes.relations.mutations.joint.blown_leaves import BlownLeaves
from mt_nodes.relations.mutations.joint.echoes import Echoes
from mt_nodes.relations.mutations.joint.every_sensor import surroundings
from mt_nodes.relations.mutations.joint.rain_snow_hail import Hail
from mt_nodes.relations.mutations.joint.road_covered import RoadCovered
from mt_nodes.relations.mutations.joint.road_covers import COVERS, TILE_M, share_at
from mt_nodes.relations.mutations.lidar.each_cloud import marked, of_cloud
from mt_nodes.world.camera.light import light_of
from mt_nodes.world.camera.relight import coarse_light, grey
from mt_nodes.world.scene.appearance import Surface, paint_of
from mt_nodes.world.scene.road_marks import MARKS, MarkPlace


def derive(mutation: Mutation, bundle: Bundle, seed: int = 5, state: Any = None) -> tuple[Followup, Any]:
    state = mutation.begin(np.random.default_rng(seed), bundle) if state is None else state
    draw = mutation.draw(np.random.default_rng(seed), bundle, state)
    return mutation.apply(bundle, draw), draw


@lru_cache
def covered(kind: str, cover: float = 0.9) -> tuple[Followup, Any]:
    return derive(RoadCovered(kind=kind, cover=cover), street())


def light(bundle: Bundle) -> np.ndarray:
    """Red, green and blue light of a picture."""
    return light_of(View.of(bundle, bundle.images[0]).picture.rgb8() / 255.0)


def ground(bundle: Bundle) -> np.ndarray:
    """Which pixels show ground, less those at its edge."""
    around = surroundings(View.of(bundle, bundle.images[0]))
    cells = cv2.erode(around.ground.astype(np.uint8), np.ones((3, 3), np.uint8))
    return around.depth.in_picture(cells, street().images[0].pixels.shape[:2], smooth=False) != 0


# Covered roads


@pytest.mark.parametrize("kind", COVERS)
def test_nothing_but_the_road_is_covered_and_no_point_moves(kind: str) -> None:
    bundle, (followup, draw) = street(), covered(kind)
    assert RoadCovered(kind=kind).guarantee(bundle, followup, draw) is None
    old, new = bundle.cloud(), followup.first.cloud()
    echoes = RoadCovered(kind=kind).echoes(bundle, old, of_cloud(draw, old))
    kept = np.delete(np.arange(len(old)), echoes.lost)
    assert len(new) == len(kept) and np.array_equal(new.xyz, old.xyz[kept]) and len(echoes.rows) > 0.2 * len(old)
    assert followup.effects.numbers["returns_lost"] == len(echoes.lost)
    assert (len(echoes.lost) > 0) == (kind in ("ice", "mud"))
    height = move(bundle.transforms.lookup("base_link", old.frame_id), old.xyz)[:, 2]
    assert np.array_equal(new.raw[height[kept] > 0.6], old.raw[kept][height[kept] > 0.6])
    assert np.abs(height[np.union1d(echoes.rows, echoes.lost)]).max() < 0.6
    before, after, flat = light(bundle), light(followup.first), ground(bundle)
    around = surroundings(View.of(bundle, bundle.images[0]))
    near = cv2.dilate(around.ground.astype(np.uint8), np.ones((3, 3), np.uint8))
    outside = around.depth.in_picture(near, flat.shape, smooth=False) == 0
    assert outside.mean() > 0.3 and np.array_equal(before[outside], after[outside])
    assert (np.abs(after - before)[flat] > 0.004).any(axis=1).mean() > 0.8


def test_each_cover_has_its_own_colour() -> None:
    flat = ground(street())
    flat[: int(0.8 * len(flat))] = False  # right ahead, where little is mirrored
    bare = np.median(light(street())[flat], axis=0)
    seen = {kind: np.median(light(covered(kind)[0].first)[flat], axis=0) for kind in COVERS}
    assert seen["snow"].min() > 2.9 * bare.max() and seen["snow"][2] >= seen["snow"][0]
    assert seen["ice"].mean() > 1.5 * bare.mean() and seen["ice"][2] > seen["ice"][0]
    assert seen["mud"][0] > 1.3 * seen["mud"][1] > 1.3 * seen["mud"][2]
    assert seen["gravel"][0] > 1.1 * seen["gravel"][2] and seen["gravel"].mean() > 1.3 * bare.mean()


def road(intensity: np.ndarray | float) -> tuple[Bundle, np.ndarray]:
    """A level road of 100 rings seen from 1.73 m, and how far away they are over ground."""
    away, azimuth = (a.ravel() for a in np.meshgrid(np.linspace(4.0, 60.0, 100), np.linspace(-3.1, 3.1, 60)))
    points = np.zeros(len(away), np.dtype([(n, "<f4") for n in ("x", "y", "z", "intensity")]))
    points["x"], points["y"], points["z"] = away * np.cos(azimuth), away * np.sin(azimuth), -1.73
    points["intensity"] = intensity
    return cloud_bundle(in_bytes(replace(made_cloud("kitti"), points=points))), away


@pytest.mark.parametrize("kind", COVERS)
def test_a_covered_road_returns_what_the_formula_says(kind: str) -> None:
    """Written again by hand: 51 of 255 from bare road, all of it covered."""
    bundle, away = road(51.0)
    mutation = RoadCovered(kind=kind, cover=1.0, sensor="generic")
    followup, draw = derive(mutation, bundle)
    own = {"snow": 0.7, "ice": 0.12, "mud": 0.15, "gravel": 0.3}[kind]
    n = {"ice": 1.31, "mud": 1.33}.get(kind, 1.0)
    theta = np.arctan2(away, 1.73)
    inside = np.arcsin(np.sin(theta) / n)
    s = (np.cos(theta) - n * np.cos(inside)) / (np.cos(theta) + n * np.cos(inside))
    p = (n * np.cos(theta) - np.cos(inside)) / (n * np.cos(theta) + np.cos(inside))
    r = (s**2 + p**2) / 2
    times = own * (1 - r) ** 2 / (1 - own * r) / 0.18
    nominal = 0.2 / 0.9 * (120.0 / np.maximum(np.hypot(away, 1.73), 5.0)) ** 2
    cloud = bundle.cloud()
    lost = marked(len(away), mutation.echoes(bundle, cloud, of_cloud(draw, cloud)).lost)
    assert mutation.guarantee(bundle, followup, draw) is None
    assert followup.effects.numbers == {"returns_lost": lost.sum()} and lost.any() == (n > 1.0)
    chance = chance_of_loss(nominal, np.minimum(times, 1.0))
    assert not any(unlikely(lost[far], chance[far]) for far in (away < 30.0, away >= 30.0))
    new = followup.first.cloud().points["intensity"]
    assert len(new) == (~lost).sum() and np.abs(new - np.minimum(51.0 * times[~lost], 255.0)).max() < 0.05


def test_lines_vanish_under_snow_and_stay_beside_its_patches() -> None:
    lines = np.full(6000, 40.0)
    lines[::25] = 200.0
    bundle, _ = road(lines)
    whole = derive(RoadCovered(kind="snow", cover=1.0), bundle)[0].first.cloud().points["intensity"]
    assert np.ptp(whole) < 0.01 and whole[0] == pytest.approx(40.0 * 0.7 / 0.18, rel=1e-3)
    partly = derive(RoadCovered(kind="snow", cover=0.4), bundle)[0].first.cloud().points["intensity"]
    assert 0.3 < np.mean(partly == lines) < 0.65


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.floats(0.05, 1.0), min_size=2, max_size=2),
    st.floats(-500.0, 500.0),
    st.floats(-500.0, 500.0),
)
def test_more_cover_covers_more_everywhere_and_as_much_as_is_asked_for(
    amounts: list[float], x: float, y: float
) -> None:
    rows, columns = np.meshgrid(np.linspace(0.0, TILE_M, 80) + y, np.linspace(0.0, TILE_M, 80) + x, indexing="ij")
    few, many = (share_at(columns, rows, amount) for amount in sorted(amounts))
    assert few.min() >= 0.0 and many.max() <= 1.0 and (few <= many).all()
    assert float(many.mean()) == pytest.approx(max(amounts), abs=0.03)
    assert np.allclose(share_at(columns + TILE_M, rows, amounts[0]), share_at(columns, rows, amounts[0]), atol=0.02)
    assert np.array_equal(
        share_at(columns.ravel(), rows.ravel(), amounts[0]), share_at(columns, rows, amounts[0]).ravel()
    )


def test_camera_and_lidar_see_the_same_patches() -> None:
    """Where the cloud says that snow lies the picture is white, and where not it is as it was."""
    bundle, (followup, _) = street(), covered("snow", 0.5)
    old, new = bundle.cloud(), followup.first.cloud()
    to_ego = bundle.transforms.lookup("base_link", old.frame_id)
    at = move(to_ego, old.xyz.astype(np.float64))
    rows = np.flatnonzero((np.abs(at[:, 2]) < 0.1) & (at[:, 0] > 4.0) & (at[:, 0] < 9.0) & (np.abs(at[:, 1]) < 1.5))
    brighter = new.points["intensity"][rows].astype(float) / np.maximum(old.points["intensity"][rows], 1.0)
    view = View.of(bundle, bundle.images[0])
    to_camera = bundle.transforms.lookup(view.image.frame_id, "base_link")
    pixels = np.rint(view.camera().project(move(to_camera, at[rows]))).astype(int)
    inside = (pixels >= 0).all(axis=1) & (pixels < view.picture.size[::-1]).all(axis=1)
    x, y = pixels[inside].T
    whiter = light(followup.first)[y, x].mean(axis=1) / light(bundle)[y, x].mean(axis=1)
    assert inside.sum() > 200 and np.corrcoef(brighter[inside], whiter)[0, 1] > 0.7


def test_smooth_ice_mirrors_what_stands_beyond_it() -> None:
    """Far ground, seen at a grazing angle, shows the sky's light more than rough ground of its colour would."""
    flat = ground(street())
    flat[int(0.66 * len(flat)) :] = False
    rough = replace(COVERS["ice"], index=1.0)
    plain = RoadCovered(kind="ice")
    smooth = light(covered("ice")[0].first)[flat].mean(axis=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(COVERS, "ice", rough)
        dull = light(derive(plain, street())[0].first)[flat].mean(axis=0)
    assert np.abs(smooth - dull).max() > 0.02


SPOILT: dict[str, Callable[[Echoes], Echoes]] = {
    "one more is lost": lambda e: replace(
        e, rows=e.rows[1:], reflectivity=e.reflectivity[1:], lost=np.sort(np.append(e.lost, e.rows[0]))
    ),
    "one less is lost": lambda e: replace(
        e, rows=np.sort(np.append(e.rows, e.lost[0])), reflectivity=np.append(e.reflectivity, 0.0), lost=e.lost[1:]
    ),
    "brighter": lambda e: replace(e, reflectivity=np.minimum(e.reflectivity * 1.2 + 3.0 / 255.0, 1.0)),
    "the neighbours": lambda e: replace(e, rows=np.maximum(e.rows - 40, 0), lost=np.maximum(e.lost - 40, 0)),
}


@pytest.mark.parametrize("case", SPOILT)
def test_a_broken_cloud_fails_its_guarantee(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bundle, (_, draw) = street(), covered("ice")
    honest = RoadCovered.echoes
    monkeypatch.setattr(RoadCovered, "echoes", lambda self, *given: SPOILT[case](honest(self, *given)))
    mutation = RoadCovered(kind="ice")
    assert mutation.guarantee(bundle, mutation.apply(bundle, draw), draw)


def test_a_picture_of_another_cover_fails_its_guarantee() -> None:
    snowed, _ = covered("snow")
    muddy, draw = covered("mud")
    wrong = replace(muddy.first, images=snowed.first.images)
    told = RoadCovered(kind="mud").guarantee(street(), Followup(((0, wrong),)), draw)
    assert told is not None and "off the colour of what lies on it" in told


@pytest.mark.parametrize("kind", ["mono8", "rgb16", "jpeg", "bayer_grbg8"])
def test_pictures_of_every_kind_are_covered_and_proved(kind: str) -> None:
    bundle, mutation = street_in(kind), RoadCovered(kind="snow")
    followup, draw = derive(mutation, bundle)
    assert mutation.guarantee(bundle, followup, draw) is None


def test_a_cloud_without_ground_is_refused() -> None:
    with pytest.raises(NotApplicable, match=r"no ground in .*: \d+% of the returns within 30 m lie on a plane"):
        derive(RoadCovered(), cloud_bundle(made_cloud("kitti")))


@lru_cache(maxsize=1)
def recorded() -> Bundle:
    with BagSource(KITTI, require=("lidar", "camera", "camera_info"), limit=1) as source:
        return next(iter(source))


REAL: dict[str, Mutation] = {
    **{kind: RoadCovered(kind=kind) for kind in COVERS},
    "leaves": BlownLeaves(),
    "hail": Hail(),
    **{
        f"paint: {kind}": RoadPainted(kind=kind, length_m=12.0)
        for kind in ("bike_lane", "hov_lane", "center_left_turn")
    },
}


@pytest.mark.skipif(not KITTI.is_dir(), reason=f"no recorded drive in {KITTI}")
@pytest.mark.parametrize("which", REAL)
def test_a_recorded_drive_is_changed_and_proved(which: str) -> None:
    followup, draw = derive(REAL[which], recorded())
    assert REAL[which].guarantee(recorded(), followup, draw) is None
    assert not np.array_equal(followup.first.images[0].pixels, recorded().images[0].pixels)


# Leaves and hail


def leaves_in(bundle: Bundle, mutation: BlownLeaves, state: Any) -> np.ndarray:
    followup, draw = derive(mutation, bundle, state=state)
    assert mutation.guarantee(bundle, followup, draw) is None
    return np.abs(light(followup.first) - light(bundle)).max(axis=2) > 0.004


def test_leaves_fly_with_the_wind_and_all_else_stays() -> None:
    """At a shutter of nothing a leaf is a dot; a 50th of a second later it is where 15 m/s have carried it."""
    bundle, mutation = street(), BlownLeaves(leaves_per_m3=0.2, shutter_ms=0.05, ego_speed_mps=0.0)
    state = mutation.begin(np.random.default_rng(4), bundle)
    image = bundle.images[0]
    later = replace(bundle, images=(replace(image, stamp_ns=image.stamp_ns + 20_000_000),))
    first, again, second = (leaves_in(one, mutation, state) for one in (bundle, bundle, later))
    assert np.array_equal(first, again) and not np.array_equal(first, second)
    assert 10 < first.sum() < 0.05 * first.size
    shifts = range(-60, 61)
    overlap = [int((np.roll(first, shift, axis=1) & second).sum()) for shift in shifts]
    assert overlap[60] < max(overlap) and shifts[int(np.argmax(overlap))] < 0, "to the left of the ego"


def test_more_leaves_are_more_to_be_seen() -> None:
    bundle = street()
    few, many = (
        leaves_in(bundle, one, one.begin(np.random.default_rng(1), bundle)).sum()
        for one in (BlownLeaves(leaves_per_m3=0.1), BlownLeaves(leaves_per_m3=1.5))
    )
    assert 0 < 3 * few < many


def test_leaves_of_another_colour_fail_the_guarantee(monkeypatch: pytest.MonkeyPatch) -> None:
    bundle, mutation = street(), BlownLeaves(leaves_per_m3=1.5)
    _, draw = derive(mutation, bundle)
    honest = blown_leaves.with_streaks
    white = np.ones(3, np.float32)
    monkeypatch.setattr(blown_leaves, "with_streaks", lambda view, pixels, layer, _: honest(view, pixels, layer, white))
    assert mutation.guarantee(bundle, mutation.apply(bundle, draw), draw) == (
        f"{bundle.images[0].topic}: leaves have not the colour of leaves"
    )


def test_hail_has_the_stones_and_the_speed_that_are_asked_for() -> None:
    mutation = Hail(stones_per_m3=3.0, fold_mm=2.0)
    assert float(mutation.spectrum.per_m3(5.0, 50.0)) == pytest.approx(3.0, rel=1e-6)
    assert float(mutation.spectrum.per_m3(9.0, 50.0)) == pytest.approx(3.0 * np.exp(-2.0), rel=1e-6)
    assert mutation.fall_mps(np.array([10.0, 40.0])) == pytest.approx([13.9, 27.8])
    bundle = street()
    followup, draw = derive(mutation, bundle)
    assert mutation.guarantee(bundle, followup, draw) is None
    assert followup.effects.numbers["returns_scattered"] > 20


# Paint and lamps


@pytest.mark.parametrize("kind", MARKS)
def test_paint_lies_where_it_is_asked_for(kind: str) -> None:
    at = MarkPlace(8.0, 20.0, -1.5, 3.0)
    marks = MARKS[kind](at)
    for outline in (*marks.white, *marks.yellow):
        assert outline.shape[1] == 2 and len(outline) >= 3
        assert outline[:, 0].min() > 7.5 and outline[:, 0].max() < 20.5
        assert outline[:, 1].min() > -3.4 and outline[:, 1].max() < 0.4
    assert bool(marks.yellow) == (kind == "center_left_turn")


def test_lines_of_the_middle_lane_are_yellow_and_its_arrows_white() -> None:
    bundle, mutation = street(), RoadPainted(kind="center_left_turn", range_m=6.0, length_m=20.0, width_m=3.4)
    followup, draw = derive(mutation, bundle)
    assert mutation.guarantee(bundle, followup, draw) is None
    before, after = light(bundle), light(followup.first)
    painted = (after - before).max(axis=2) > 0.15
    blue = after[..., 2][painted] / after[..., 0][painted]
    assert (blue < 0.5).mean() > 0.2 and (blue > 0.8).mean() > 0.1


def test_one_headlamp_shines_and_the_other_is_dark() -> None:
    lamps = np.array([[2.2, 0.6, 0.62], [2.2, -0.6, 0.62]], np.float32)
    glow = paint_of("car", "one_headlamp")(Surface(lamps, np.full(2, 0.4, np.float32))).glow
    both = paint_of("car", "headlamps")(Surface(lamps, np.full(2, 0.4, np.float32))).glow
    assert glow is not None and both is not None
    assert glow[0].max() == 0.0 and glow[1].min() > 0.8 and both.min() > 0.8


def test_the_light_that_falls_on_the_road_leaves_lines_out() -> None:
    """A picture whose lines are painted white is taken to stand in the same light."""
    bundle = street()
    painted = derive(RoadPainted(kind="crosswalk", range_m=6.0), bundle)[0].first
    lit, raw = [], []
    for one in (bundle, painted):
        view = View.of(one, one.images[0])
        around = surroundings(view)
        lit.append(road_in_pictures._falling(view, around)[0] * road_in_pictures._ROAD_ALBEDO)
        raw.append(grey(coarse_light(view.picture, around.shape, around.depth.step_px)))
    lines = raw[1] > 2.0 * raw[0]
    assert lines.sum() > 10 and (lit[1] - lit[0])[lines].mean() < 0.3 * (raw[1] - raw[0])[lines].mean()
