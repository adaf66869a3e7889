# SPDX-License-Identifier: Apache-2.0
"""Things moved and replaced: what rays see of them, where they stand, proofs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import cKDTree
from test_mutations_objects import derive, kitti, organised, part, street
from test_objects import room

from mt_nodes.base.errors import NotApplicable, UsageError
from mt_nodes.data.messages import Bundle
from mt_nodes.relations.mutations.base import Draw, Followup
from mt_nodes.relations.mutations.objects.object_exchange import ObjectExchange, Rectangle, rectangle
from mt_nodes.relations.mutations.objects.object_moved import ObjectMoved
from mt_nodes.relations.mutations.objects.object_replaced import ObjectReplaced
from mt_nodes.world.scene.lidar import hdl_64e
from mt_nodes.world.scene.meshes import box
from mt_nodes.world.scene.nearest_object import AROUND_M
from mt_nodes.world.scene.objects import KINDS
from mt_nodes.world.scene.placement_solver import Footprint

LIFT = np.array([0.0, 0.0, 1.73])
MOVED = ObjectMoved(ahead_m=(6.0, 30.0))
EXCHANGES = {"moved": MOVED, "replaced": ObjectReplaced(), "car": ObjectReplaced(size="car", by="van")}
SCANS = {"street": lambda: street()[0], "organised": organised, "recorded": kitti}


def put_points(followup: Followup, bundle: Bundle) -> np.ndarray:
    return np.asarray(followup.effects.added_points[bundle.cloud().topic], dtype=float)


def turned(xyz: np.ndarray, by_rad: float) -> np.ndarray:
    c, s = np.cos(by_rad), np.sin(by_rad)
    return xyz.astype(float) @ np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]])


def thing_of(draw: Draw, bundle: Bundle) -> np.ndarray:
    rows = np.concatenate([part(draw, bundle, name) for name in ("rows", "lost")]).astype(int)
    return bundle.cloud().xyz[rows].astype(float)


@pytest.mark.parametrize("name", SCANS)
def test_moved_thing_is_its_own_returns_turned_about_the_sensor(name: str) -> None:
    bundle = SCANS[name]()
    followup, draw = derive(MOVED, bundle)
    assert MOVED.guarantee(bundle, followup, draw) is None
    thing, new = thing_of(draw, bundle), put_points(followup, bundle)
    assert len(new) >= 0.6 * len(thing) > 15
    turn = float(part(draw, bundle, "turn_rad"))
    apart, nearest = cKDTree(turned(thing, turn)).query(new)
    assert apart.max() < 0.01 * np.linalg.norm(new, axis=1).max(), "a return that the thing never gave"
    ranges = np.linalg.norm(new, axis=1) - np.linalg.norm(thing, axis=1)[nearest]
    assert np.abs(np.median(ranges)) < 0.01
    there = followup.effects.added[0]
    gone = np.array(followup.effects.removed[0].outline_m).mean(axis=0)
    assert 2.5 < np.hypot(*(np.array(there.center_m[:2]) - gone)) < 8.5


def test_moved_thing_keeps_its_feet_on_the_ground() -> None:
    bundle = street()[0]
    followup, draw = derive(MOVED, bundle)
    feet = [float(points[:, 2].min()) for points in (thing_of(draw, bundle), put_points(followup, bundle))]
    assert feet[1] == pytest.approx(feet[0], abs=0.05)


@pytest.mark.parametrize("size", ["any", "person"])
def test_moved_thing_fills_the_volume_that_is_told(size: str) -> None:
    bundle, mutation = street()[0], ObjectMoved(ahead_m=(6.0, 30.0), size=size)
    followup, _ = derive(mutation, bundle)
    there, new = followup.effects.added[0], put_points(followup, bundle) + LIFT
    flat = turned(new - there.center_m, -there.yaw_rad)
    beyond = np.abs(flat) - 0.5 * np.array(there.size_m)
    assert (beyond < (AROUND_M, AROUND_M, 0.2)).all(axis=1).mean() > 0.98
    assert (beyond < 0.05).all(axis=1).mean() > 0.8
    assert np.ptp(flat, axis=0) == pytest.approx(there.size_m, abs=AROUND_M)


def test_moved_thing_hides_what_is_behind_its_returns() -> None:
    bundle = street()[0]
    followup, _ = derive(MOVED, bundle)
    shadow = shapely.Polygon(followup.effects.occluded[0].outline_m)
    new = put_points(followup, bundle)[:, :2]
    assert shapely.contains_xy(shadow, *(2.0 * new).T).mean() > 0.8, "nobody is told of what it hides"
    assert not shapely.contains_xy(shadow, *(0.8 * new).T).any(), "it hides what stands before it"


def test_a_thing_is_not_moved_onto_a_kerb() -> None:
    def beside(kerb_m: float) -> Bundle:
        things = [box((1.0, 1.0, 1.5), (10.0, 0.0, 0.75 - 1.73), 0.5)]
        sides = [box((14.0, 20.0, kerb_m), (10.0, y, kerb_m / 2 - 1.73), 0.3) for y in (-11.5, 11.5)]
        return replace(street()[0], clouds=(room(-1.73, *things, *sides),))

    mutation = ObjectMoved(shift_m=(6.0, 7.0), largest_m=3.0)
    followup, draw = derive(mutation, beside(0.05))
    assert mutation.guarantee(beside(0.05), followup, draw) is None
    with pytest.raises(NotApplicable, match="16 on ground of another height"):
        derive(mutation, beside(0.25))


@pytest.mark.parametrize("what", EXCHANGES)
def test_new_returns_lie_on_the_sensors_rays_one_on_each(what: str) -> None:
    bundle, lidar = street()[0], hdl_64e()
    followup, _ = derive(EXCHANGES[what], bundle)
    new = put_points(followup, bundle)
    chord, ray = cKDTree(lidar.directions).query(new / np.linalg.norm(new, axis=1)[:, None])
    assert chord.max() < np.pi / lidar.azimuths, "farther off a ray than half the azimuth step"
    assert len(np.unique(ray)) >= 0.98 * len(new), "two returns on one ray"
    cloud = followup.first.cloud().xyz.astype(float)
    _, rays = cKDTree(lidar.directions).query(cloud / np.linalg.norm(cloud, axis=1)[:, None])
    nearest = np.full(len(lidar.directions), np.inf)
    np.minimum.at(nearest, rays, np.linalg.norm(cloud, axis=1))
    behind = np.linalg.norm(cloud, axis=1) > nearest[rays] + 0.3
    assert not np.isin(rays[behind], ray).any(), "a return behind an opaque hit on its ray"


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 2), st.sampled_from(sorted(EXCHANGES)))
def test_any_draw_proves_itself_and_intersects_nothing(seed: int, number: int, what: str) -> None:
    bundle, mutation = street()[number], EXCHANGES[what]
    try:
        followup, draw = derive(mutation, bundle, seed)
    except NotApplicable as reason:
        assert "no free ground" in str(reason)
        return
    assert mutation.guarantee(bundle, followup, draw) is None
    volume, old = followup.effects.added[0], bundle.cloud().xyz.astype(float) + LIFT
    thing = thing_of(draw, bundle) + LIFT
    rest = old[cKDTree(thing).query(old)[0] > 1e-6]
    flat = turned(rest - volume.center_m, -volume.yaw_rad)
    inside = (np.abs(flat) < 0.5 * np.array(volume.size_m) - 0.05).all(axis=1) & (rest[:, 2] > 0.6)
    assert inside.sum() < 2, "it stands in something"


@pytest.mark.parametrize(("size", "by"), [("person", "child"), ("person", "dog"), ("car", "van"), ("any", "cone")])
def test_replaced_thing_is_the_kind_asked_for_on_the_same_spot(size: str, by: str) -> None:
    bundle, mutation = street()[0], ObjectReplaced(size=size, by=by)
    followup, draw = derive(mutation, bundle)
    assert mutation.guarantee(bundle, followup, draw) is None
    effects = followup.effects
    there, seen = effects.added[0], rectangle(np.array(effects.removed[0].outline_m))
    assert there.label == KINDS[by].label
    assert np.hypot(*(np.array(there.center_m[:2]) - seen.center_m)) < there.size_m[0] / 2 + max(seen.half_m)
    before, after = (np.linalg.norm(p, axis=1).min() for p in (thing_of(draw, bundle), put_points(followup, bundle)))
    assert after > before - 0.5, "it reaches nearer than what it stands for"
    assert effects.numbers["points_on_object"] >= 10


def test_a_replaced_car_looks_along_its_lane() -> None:
    followup, _ = derive(ObjectReplaced(size="car", by="van"), street()[0])
    yaw = followup.effects.added[0].yaw_rad
    assert np.cos(yaw) > 0.95, "the street's cars look along x, and it looks away from the ego"


@pytest.mark.parametrize("seen_rad", [0.3, 0.3 + np.pi, 0.3 - np.pi])
@pytest.mark.parametrize(("half_m", "turned_rad"), [((2.2, 0.9), 0.0), ((0.9, 0.1), np.pi / 2)])
def test_a_car_looks_along_its_flank_and_square_to_its_rear(
    seen_rad: float, half_m: tuple[float, float], turned_rad: float
) -> None:
    """A flank tells the heading but for its sign; a rear is seen across."""
    seen_rad += turned_rad
    footprint = Footprint((0.0, 0.0), (2.5, 1.0), 2.0)
    x, y, yaw = ObjectReplaced(size="car")._place(Rectangle((12.0, 4.0), seen_rad, half_m), footprint, 1.0)
    assert np.exp(1j * yaw) == pytest.approx(np.exp(0.3j))
    ahead, left = turned(np.array([[x, y, 0.0]]), -0.3)[0, :2] - turned(np.array([[12.0, 4.0, 0.0]]), -0.3)[0, :2]
    along, across = half_m if turned_rad == 0.0 else half_m[::-1]
    assert ahead == pytest.approx(2.5 - along), "its near end is where that of the thing was"
    assert left == pytest.approx(0.0 if abs(left) < 1e-6 else 1.0 - across, abs=1e-6)


def test_a_person_looks_any_way_but_the_same_over_an_episode() -> None:
    bundles, mutation = street(), ObjectReplaced()
    yaws = [derive(mutation, b, 5, bundles[0])[0].effects.added[0].yaw_rad for b in bundles[:2]]
    other = derive(mutation, bundles[0], 6)[0].effects.added[0].yaw_rad
    assert yaws[0] == pytest.approx(yaws[1], abs=0.05) and abs(other - yaws[0]) > 0.01


def test_refusals_have_reasons() -> None:
    bundle = street()[0]
    with pytest.raises(UsageError, match="shift_m: got 9 to 5"):
        ObjectMoved(shift_m=(9.0, 5.0))
    with pytest.raises(NotApplicable, match=r"no free ground for the moved thing: of .* places tried"):
        derive(ObjectMoved(clearance_m=15.0), bundle)
    with pytest.raises(NotApplicable, match=r"no free ground for 'bus': of .* places tried"):
        derive(ObjectReplaced(by="bus", clearance_m=6.0), bundle)
    with pytest.raises(NotApplicable, match=r"none of 0 things ahead, 4 to 6 m, has 30 returns, 0 to 1.2 m of length"):
        derive(ObjectReplaced(ahead_m=(4.0, 6.0), aside_m=0.5), bundle)


def tampered(followup: Followup, rows: np.ndarray, factor: float) -> Followup:
    cloud = followup.first.cloud()
    raw = cloud.raw.copy()
    for name in "xyz":
        raw.view(cloud.points.dtype)[name][rows] *= factor
    return Followup(((0, followup.first.with_clouds([cloud.with_raw(raw, height=cloud.height)])),), followup.effects)


def without(draw: Draw, bundle: Bundle, count: int, *names: str) -> Draw:
    """A draw that forgets some of what it should have written."""
    heads = tuple(f"{bundle.cloud().topic}|{name}" for name in names)
    return {name: value[count:] if name in heads else value for name, value in draw.items()}


@pytest.mark.parametrize("what", EXCHANGES)
def test_broken_copies_are_caught(what: str) -> None:
    bundle, mutation = organised(), EXCHANGES[what]
    followup, draw = derive(mutation, bundle)
    assert mutation.guarantee(bundle, followup, draw) is None
    put = part(draw, bundle, "put_rows").astype(int)
    own = np.concatenate([part(draw, bundle, n).astype(int) for n in ("rows", "lost", "put_rows", "put_lost")])
    other = np.setdiff1d(np.flatnonzero(np.isfinite(bundle.cloud().points["x"])), own)[:1]
    assert mutation.guarantee(bundle, Followup(((0, bundle),)), draw)
    assert mutation.guarantee(bundle, tampered(followup, other, 0.5), draw)
    assert mutation.guarantee(bundle, tampered(followup, put[:1], 0.9), draw)
    assert mutation.guarantee(bundle, tampered(followup, put[:1], -1.0), draw)


@pytest.mark.parametrize("what", EXCHANGES)
def test_a_thing_left_where_it_was_is_caught(what: str) -> None:
    bundle, mutation = street()[0], EXCHANGES[what]
    _, draw = derive(mutation, bundle)
    lazy = without(draw, bundle, 5, "rows", "range_m", "intensity")
    broken = mutation.guarantee(bundle, mutation.apply(bundle, lazy), lazy)
    assert broken and "left of the object" in broken


def aligned_turn(turn_rad: float) -> float:
    """The multiple of the azimuth step next to an angle: rays then meet the thing just as others did."""
    step = 2 * np.pi / hdl_64e().azimuths
    return round(turn_rad / step) * step


def test_returns_left_behind_the_moved_thing_are_caught() -> None:
    class Forgetful(ObjectMoved):
        def choose(self, bundle: Bundle, state: object) -> ObjectExchange:
            choice = super().choose(bundle, state)
            draw = {**choice.draw, "turn_rad": aligned_turn(choice.draw["turn_rad"])}
            return replace(choice, draw=draw, known=None)

        def draw_addition(self, *given: object) -> Draw:
            put = super().draw_addition(*given)  # type: ignore[arg-type]
            middle = slice(len(put["rows"]) // 2, len(put["rows"]) // 2 + 40)
            keep = np.setdiff1d(np.arange(len(put["rows"])), np.arange(len(put["rows"]))[middle])
            return {**put, **{name: put[name][keep] for name in ("rows", "range_m", "intensity")}}

    bundle, mutation = street()[0], Forgetful(ahead_m=(6.0, 30.0))
    followup, draw = derive(mutation, bundle)
    assert "left behind the thing" in str(mutation.guarantee(bundle, followup, draw))


def test_moved_ranges_that_are_not_the_things_own_are_caught() -> None:
    bundle = street()[0]
    _, draw = derive(MOVED, bundle)
    name = f"{bundle.cloud().topic}|put_range_m"
    off = {**draw, name: draw[name] * np.float32(0.98)}
    assert "none of the thing's own" in str(MOVED.guarantee(bundle, MOVED.apply(bundle, off), off))


@pytest.mark.parametrize("what", EXCHANGES)
def test_nothing_else_changes(what: str) -> None:
    bundle = organised()
    followup, draw = derive(EXCHANGES[what], bundle)
    own = np.concatenate(
        [part(draw, bundle, n).astype(int) for n in ("rows", "lost", "put_rows", "put_lost", "put_new_rows")]
    )
    old, new = bundle.cloud(), followup.first.cloud()
    assert len(own) < 0.1 * len(old)
    assert (np.delete(old.raw, own) == np.delete(new.raw, own)).all()
