# SPDX-License-Identifier: Apache-2.0
"""Objects added to clouds and removed from them: rays, proofs, places."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from itertools import islice

import numpy as np
import pytest
import shapely
from drives import KITTI
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import cKDTree

from mt_nodes.base.errors import NotApplicable, UsageError
from mt_nodes.base.seeds import generator
from mt_nodes.data.bags.bundles import BagSource
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.data.transforms import Transform, pose_matrix
from mt_nodes.relations.mutations.base import Draw, Followup, Mutation
from mt_nodes.relations.mutations.objects.object_added import ObjectAdded
from mt_nodes.relations.mutations.objects.object_removed import ObjectRemoved
from mt_nodes.world.scene.drive import generate_drive
from mt_nodes.world.scene.lidar import hdl_64e
from mt_nodes.world.scene.objects import KINDS

#: Corners of boxes within every car's body: between front and rear wheels, and, longer, between left and right ones.
CORES_M = (
    (np.array([-0.8, -0.6, 0.5]), np.array([0.8, 0.6, 0.8])),
    (np.array([-1.3, -0.5, 0.5]), np.array([1.3, 0.5, 0.8])),
)
AHEAD = {"where": "bearing", "bearing_rad": (-0.6, 0.6), "range_m": (8.0, 30.0)}


@lru_cache
def street(count: int = 3) -> tuple[Bundle, ...]:
    return tuple(generate_drive(count))


@lru_cache
def kitti() -> Bundle:
    if not KITTI.is_dir():
        pytest.skip(f"no recorded drive at {KITTI}")
    with BagSource(KITTI) as source:
        return replace(next(islice(iter(source), 1)), images=(), camera_infos=())  # as a LiDAR stack gets it


@lru_cache
def organised() -> Bundle:
    """The generated scan as an organised cloud: a row a ring, a column an azimuth, NaN where nothing came back."""
    bundle, lidar = street()[0], hdl_64e()
    old = bundle.cloud()
    points = np.zeros(64 * lidar.azimuths, dtype=old.points.dtype)
    for name in "xyz":
        points[name] = np.nan
    column = np.rint(old.points["time"] / (lidar.period_s / lidar.azimuths)).astype(int)
    points[old.points["ring"].astype(int) * lidar.azimuths + column] = old.points
    return bundle.with_clouds([Cloud(old.topic, old.stamp_ns, old.frame_id, points, 64, False)])


SCANS = {"street": lambda: street()[0], "organised": organised, "recorded": kitti}


@pytest.fixture(params=SCANS, ids=str)
def scan(request: pytest.FixtureRequest) -> Bundle:
    return SCANS[request.param]()


def derive(mutation: Mutation, bundle: Bundle, seed: int = 3, first: Bundle | None = None) -> tuple[Followup, Draw]:
    state = mutation.begin(generator(seed, "objects", 0, None, 0), first or bundle)
    draw = mutation.draw(generator(seed, "objects", 0, bundle.index, 0), bundle, state)
    return mutation.apply(bundle, draw), draw


def part(draw: Draw, bundle: Bundle, name: str) -> np.ndarray:
    return np.asarray(draw[f"{bundle.cloud().topic}|{name}"])


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_finds_room_and_proves_itself(kind: str) -> None:
    bundle, mutation = street()[0], ObjectAdded(kind=kind, **{**AHEAD, "range_m": (8.0, 20.0)}, clearance_m=0.2)
    followup, draw = derive(mutation, bundle)
    assert mutation.guarantee(bundle, followup, draw) is None
    assert followup.effects.added[0].label == KINDS[kind].label
    assert followup.effects.numbers["points_on_object"] >= 10


def test_added_returns_lie_on_the_sensors_rays() -> None:
    bundle = street()[0]
    followup, draw = derive(ObjectAdded(kind="van", **AHEAD), bundle)
    new, lidar = followup.effects.added_points[bundle.cloud().topic], hdl_64e()
    assert len(part(draw, bundle, "new_rows")) > 0, "the van stands out against nothing"
    unit = new / np.linalg.norm(new, axis=1)[:, None]
    chord, ray = cKDTree(lidar.directions).query(unit)
    assert chord.max() < np.pi / lidar.azimuths, "farther off a ray than half the azimuth step"
    assert len(np.unique(ray)) >= 0.98 * len(new), "two returns on one ray"


def test_nothing_is_left_behind_and_rays_that_miss_stay(scan: Bundle) -> None:
    mutation = ObjectAdded(kind="car", clearance_m=0.5, **AHEAD)
    followup, draw = derive(mutation, scan)
    assert mutation.guarantee(scan, followup, draw) is None
    old, new = scan.cloud(), followup.first.cloud()
    touched = np.concatenate([part(draw, scan, name) for name in ("rows", "lost", "dimmed")]).astype(int)
    if old.organised:
        touched = np.concatenate([touched, part(draw, scan, "new_rows").astype(int)])
        assert (np.delete(old.raw, touched) == np.delete(new.raw, touched)).all()
    else:
        missed = set(np.delete(old.raw, touched).tolist())
        assert missed <= set(new.raw.tolist())
    pose = np.linalg.inv(scan.transforms.lookup("base_link", old.frame_id)) @ part(draw, scan, "pose")
    before, after = (share_before_core(cloud.xyz, pose) for cloud in (old, new))
    assert (before < 1.0).sum() >= 10, "hardly a ray of the source goes through the car: nothing is tested"
    assert not (after < 1.0).any(), "a return inside the body of the car or behind it"


def share_before_core(xyz: np.ndarray, pose: np.ndarray) -> np.ndarray:
    """Return the share of each ray, from the sensor to its return, before it enters a core of a car, else infinity."""
    to_car = np.linalg.inv(pose)
    end = xyz[np.isfinite(xyz).all(axis=1)] @ to_car[:3, :3].T + to_car[:3, 3]
    start, entries = to_car[:3, 3], []
    for low, high in CORES_M:
        at = (np.stack([low, high])[:, None] - start) / (end - start)
        enters, leaves = at.min(axis=0).max(axis=1), at.max(axis=0).min(axis=1)
        entries.append(np.where((enters < leaves) & (enters > 0.0), enters, np.inf))
    return np.minimum(*entries)


def test_intensities_stay_in_the_clouds_scale(scan: Bundle) -> None:
    followup, draw = derive(ObjectAdded(kind="traffic_sign", yaw_rad=0.0, **AHEAD), scan)
    values = followup.first.cloud().points["intensity"]
    assert np.nanmin(values) >= 0 and np.nanmax(values) <= (1.0 if scan.cloud().points["intensity"].max() <= 1 else 255)
    assert part(draw, scan, "intensity").dtype == scan.cloud().points["intensity"].dtype


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(["adult", "cyclist", "box", "deer"]))
def test_any_place_chosen_is_free_and_proves_itself(seed: int, kind: str) -> None:
    bundle, mutation = street()[0], ObjectAdded(kind=kind, **AHEAD)
    followup, draw = derive(mutation, bundle, seed)
    assert mutation.guarantee(bundle, followup, draw) is None
    volume, to_ego = followup.effects.added[0], bundle.transforms.lookup("base_link", "velodyne")
    x, y, _ = volume.center_m
    assert 7.0 < np.hypot(x, y) < 31.0
    before = bundle.cloud().xyz @ to_ego[:3, :3].T + to_ego[:3, 3]
    near = np.hypot(before[:, 0] - x, before[:, 1] - y) < 1.0
    assert (before[near, 2] > 0.5).sum() < 2, "it was put into something"


def test_it_stays_where_it_is_put_and_comes_nearer_when_told() -> None:
    bundles = street()
    along = {**AHEAD, "frame_id": "base_link"}
    still, closing = ObjectAdded(**along), ObjectAdded(**along, closing_mps=5.0)
    places = [[derive(m, b, first=bundles[0])[0].effects.added[0].center_m for b in bundles] for m in (still, closing)]
    assert np.ptp([p[0] for p in places[0]]) < 0.05
    assert np.diff([p[0] for p in places[1]]) == pytest.approx([-0.5, -0.5], abs=0.05)


def test_it_stands_still_in_a_fixed_frame_while_the_ego_drives() -> None:
    def driving(bundle: Bundle) -> Bundle:
        pose = pose_matrix((0.8 * bundle.index, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0))
        return replace(bundle, transforms=bundle.transforms.extended([Transform("map", "base_link", pose)]))

    bundles = [driving(b) for b in street()]
    mutation = ObjectAdded(**AHEAD, frame_id="map")
    x = [derive(mutation, b, first=bundles[0])[0].effects.added[0].center_m[0] for b in bundles]
    assert np.diff(x) == pytest.approx([-0.8, -0.8], abs=0.05)


def test_refusals_have_reasons() -> None:
    bundle = street()[0]
    with pytest.raises(NotApplicable, match="no free ground for 'bus' on the path at 8 to 20 m: of 64 places tried"):
        derive(ObjectAdded(kind="bus", where="path", clearance_m=8.0), bundle)
    with pytest.raises(UsageError, match="range_m: got 9 to 5"):
        ObjectAdded(range_m=(9.0, 5.0))
    with pytest.raises(UsageError, match="no transform from frame"):
        derive(ObjectAdded(ego_frame_id="nowhere"), bundle)


def tampered(followup: Followup, rows: np.ndarray, factor: float) -> Followup:
    cloud = followup.first.cloud()
    raw = cloud.raw.copy()
    for name in "xyz":
        raw.view(cloud.points.dtype)[name][rows] *= factor
    return Followup(((0, followup.first.with_clouds([cloud.with_raw(raw, height=cloud.height)])),), followup.effects)


@pytest.mark.parametrize("mutation", [ObjectAdded(kind="car", **AHEAD), ObjectRemoved()], ids=["added", "removed"])
def test_broken_copies_are_caught(mutation: Mutation) -> None:
    bundle = organised()
    followup, draw = derive(mutation, bundle)
    rows = part(draw, bundle, "rows").astype(int)
    other = np.setdiff1d(np.flatnonzero(np.isfinite(bundle.cloud().points["x"])), rows)[:1]
    assert mutation.guarantee(bundle, followup, draw) is None
    assert mutation.guarantee(bundle, Followup(((0, bundle),)), draw)
    assert mutation.guarantee(bundle, tampered(followup, other, 0.5), draw)
    assert mutation.guarantee(bundle, tampered(followup, rows[:1], -1.0), draw)
    # Those that hide what is farthest: behind a tyre's lowest millimetres, the road is as near as the noise.
    range_m = np.linalg.norm(bundle.cloud().xyz[rows].astype(float), axis=1)
    kept = np.sort(np.argsort(range_m)[:-3])
    forgotten = {name: value[kept] if name.endswith(("|rows", "|range_m", "|intensity")) else value
                 for name, value in draw.items()}  # fmt: skip
    assert mutation.guarantee(bundle, mutation.apply(bundle, forgotten), forgotten)


@pytest.mark.parametrize("factor", [0.8, 1.05])
def test_a_return_off_the_surface_is_caught(factor: float) -> None:
    bundle, mutation = street()[0], ObjectAdded(kind="car", **AHEAD, frame_id="base_link")
    _, draw = derive(mutation, bundle)
    name = f"{bundle.cloud().topic}|range_m"
    off = {**draw, name: np.where(np.arange(len(draw[name])) == 5, draw[name] * np.float32(factor), draw[name])}
    broken = mutation.guarantee(bundle, mutation.apply(bundle, off), off)
    assert broken and ("off its surface" in broken or "not nearer" in broken)


def test_removed_object_leaves_its_ground(scan: Bundle) -> None:
    mutation = ObjectRemoved()
    followup, draw = derive(mutation, scan)
    assert mutation.guarantee(scan, followup, draw) is None
    rows = part(draw, scan, "rows").astype(int)
    assert len(rows) + len(part(draw, scan, "lost")) > 30 and len(rows)
    before = np.linalg.norm(scan.cloud().xyz[rows].astype(float), axis=1)
    assert (part(draw, scan, "range_m") > before).mean() > 0.9, "rays end where the object was"
    effects = followup.effects
    (gone,), (shadow,) = effects.removed, effects.revealed
    outline, behind = (shapely.Polygon(volume.outline_m) for volume in (gone, shadow))
    middle = np.mean(gone.outline_m, axis=0)
    assert behind.contains(shapely.Point(2.0 * middle)) and not behind.contains(shapely.Point(0.5 * middle))
    assert outline.intersection(behind).area < 1e-6 and Effects.from_plain(effects.as_plain()).revealed == (shadow,)


def test_what_is_put_in_can_be_taken_out_again() -> None:
    """Added, then removed: the ground comes back to within centimetres."""
    bundle = street()[0]
    added, _ = derive(ObjectAdded(kind="box", where="path", range_m=(6.0, 8.0), clearance_m=0.8), bundle)
    removed, _ = derive(ObjectRemoved(ahead_m=(4.0, 9.0), aside_m=1.5, least_points=20), added.first)
    x, y, _ = added.effects.added[0].center_m
    outline = np.array(removed.effects.removed[0].outline_m)
    assert (outline.min(axis=0) < (x, y)).all() and (outline.max(axis=0) > (x, y)).all()
    new = removed.first.cloud().xyz + np.array([0, 0, 1.73])
    here = np.hypot(new[:, 0] - x, new[:, 1] - y) < 1.0
    assert here.sum() > 50 and np.abs(new[here, 2]).max() < 0.15


def test_an_empty_road_has_nothing_to_remove() -> None:
    with pytest.raises(NotApplicable, match="none of 0 things ahead, 4 to 6 m"):
        derive(ObjectRemoved(ahead_m=(4.0, 6.0), aside_m=0.5), street()[0])
