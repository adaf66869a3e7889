# SPDX-License-Identifier: Apache-2.0
"""Short cuts of mutations say what the long way says, and what a proof holds in memory at once is bounded."""

from __future__ import annotations

import gc
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from drives import street
from hypothesis import given, settings
from hypothesis import strategies as st
from made_bundles import made_bundle, made_cloud
from scipy import integrate, special  # noqa: F401  (weather imports them late: modules are not what a mutation holds)

from mt_nodes.data.messages import Cloud, Points
from mt_nodes.relations.mutations.base import Mutation
from mt_nodes.relations.mutations.joint.attenuation import Receiver
from mt_nodes.relations.mutations.joint.fog_dust_smoke import Dust, Fog
from mt_nodes.relations.mutations.joint.plume import Plume, places, within
from mt_nodes.relations.mutations.joint.plume_beams import PlumeBeams, passed_by_steps, ways_to
from mt_nodes.relations.mutations.joint.rain_snow_hail import Rain, Snow
from mt_nodes.relations.mutations.joint.spray import Spray
from mt_nodes.relations.mutations.joint.sun_glare import SunGlare
from mt_nodes.relations.mutations.joint.vehicle_backs import VehicleBack
from mt_nodes.relations.mutations.joint.wet_ground import WetGround
from mt_nodes.relations.mutations.lidar.added_points import added_rows, proof_of_addition, with_added
from mt_nodes.relations.mutations.lidar.density_increased import DensityIncreased
from mt_nodes.relations.mutations.lidar.each_cloud import proof_of_changes
from mt_nodes.relations.mutations.lidar.ghost_reflections import GhostReflections
from mt_nodes.relations.mutations.lidar.placement import empty_returns
from mt_nodes.relations.mutations.lidar.region_cut_out import RegionCutOut
from mt_nodes.relations.mutations.lidar.scan_limits import DensityDecreased

STREET = street()
SCAN = STREET.cloud()
SENSOR = np.array([0.0, 0.0, 1.73])
#: A vehicle ahead, and one beside the ego, whose plume goes past the sensor.
PLUMES = [
    Plume(VehicleBack(rear_x_m, y_m, 0.9, 0.0), 0.3, 4.0, 0.8, 3.3, 12345)
    for rear_x_m, y_m in ((20.0, 0.5), (6.0, -3.2))
]


@pytest.mark.parametrize(
    "mutation",
    [
        *(Fog(), Dust(), Rain(), Snow(), SunGlare(azimuth_rad=0.3), WetGround(), Spray()),
        *(RegionCutOut(), DensityIncreased(), DensityDecreased(), GhostReflections()),
    ],
    ids=lambda mutation: type(mutation).__name__,
)
def test_no_more_than_three_times_the_cloud_is_held(mutation: Mutation) -> None:
    """The most that is allocated at once: by making the follow-up, and by proving it."""
    bundle = replace(STREET, clouds=(replace(SCAN),))  # of which nothing is known from before
    state = mutation.begin(np.random.default_rng(1), bundle)
    gc.collect()
    tracemalloc.start()
    try:
        draw = mutation.draw(np.random.default_rng(1), bundle, state)
        followup = mutation.apply(bundle, draw)
        made = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        tracemalloc.start()
        assert mutation.guarantee(bundle, followup, draw) is None
        proved = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert made < 3.0 * SCAN.points.nbytes
    assert proved < 3.0 * SCAN.points.nbytes


# --- empty returns


@pytest.mark.parametrize("kind", ["<f4", ">f4", "<f8", "i2", "u1", "i4"])
def test_empty_is_what_is_not_finite_or_at_the_origin(kind: str) -> None:
    numbers = [0.0, -0.0, 1.0, -1.0, 100.0]
    if np.dtype(kind).kind == "f":
        numbers += [np.nan, np.inf, -np.inf, 1e-45, -1e-40, 1e30]
    elif np.dtype(kind).kind == "i":
        numbers += [float(np.iinfo(kind).min), float(np.iinfo(kind).max)]
    else:
        numbers = [0.0, 1.0, 255.0]
    x, y, z = (axis.ravel() for axis in np.meshgrid(numbers, numbers, numbers))
    points = np.zeros(len(x), dtype=[(name, kind) for name in "xyz"])
    for name, column in zip("xyz", (x, y, z), strict=True):
        points[name] = column
    xyz = np.stack([points[name].astype(np.float64) for name in "xyz"])
    expected = ~np.isfinite(xyz).all(axis=0) | (xyz == 0.0).all(axis=0)
    np.testing.assert_array_equal(empty_returns(Cloud("/l", 0, "l", points)), expected)


# --- what is allowed to change


def changed(cloud: Cloud, row: int, field: str) -> Cloud:
    raw = cloud.raw.copy()
    raw.view(cloud.points.dtype)[field][row] += 1
    return cloud.with_raw(raw, height=cloud.height)


def test_each_change_is_allowed_at_its_own_rows_and_fields_alone() -> None:
    """9,000 points: the last ones are looked at in another piece than the first."""
    cloud = made_cloud("ouster", 9000)
    allowed = ((np.array([3, 8500]), ("x", "range")), (np.array([5]), ("intensity",)))
    for row, field in ((3, "x"), (8500, "x"), (3, "range"), (5, "intensity")):
        assert proof_of_changes(cloud, changed(cloud, row, field), allowed) is None
    for row, field in ((3, "intensity"), (8500, "y"), (5, "x"), (8999, "range")):
        assert "something else changed than x, range, intensity" in str(
            proof_of_changes(cloud, changed(cloud, row, field), allowed)
        )
    whole = (slice(None), ("x", "y", "z", "range", "intensity", "t", "reflectivity", "ring"))
    bytes_ = cloud.raw.copy().view(np.uint8)
    bytes_[8998 * 48 + 40] ^= 1  # padding
    assert proof_of_changes(cloud, cloud.with_raw(bytes_.view("V48")), (whole,)) is not None


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 40), min_size=1, max_size=60), st.sampled_from(["velodyne", "double", "ouster"]))
def test_points_are_put_where_they_are_said_to_be(places: list[int], layout: str) -> None:
    """Also before the first point, several at one place, and after the last."""
    cloud, rows = made_cloud(layout, 40), np.sort(np.array(places))
    xyz = np.random.default_rng(len(places)).uniform(1.0, 50.0, (len(rows), 3))
    new = with_added(cloud, rows, xyz, None)
    assert proof_of_addition(cloud, new, rows) is None
    at = added_rows(cloud, rows)
    np.testing.assert_allclose(new.xyz[at], xyz, rtol=1e-6)
    untold = [name for name in cloud.fields if name not in (*"xyz", "range")]
    before = cloud.points[np.maximum(rows - 1, 0)]
    assert all(np.array_equal(new.points[name][at], before[name]) for name in untold)


# --- density and ghosts


@pytest.mark.parametrize("kind", ["<f4", "<f8"])
@pytest.mark.parametrize(("jump_m", "gap_deg"), [(0.1, 1.0), (0.002, 0.25), (5.0, 0.19)])
def test_gaps_on_one_surface_are_those_of_the_formula(kind: str, jump_m: float, gap_deg: float) -> None:
    """By the scalar product, in double precision; the rounding of single precision may decide a few."""
    points = np.zeros(len(SCAN), dtype=[*[(name, kind) for name in "xyz"], ("ring", "<u2")])
    for name in (*"xyz", "ring"):
        points[name] = SCAN.points[name]
    cloud, mutation = replace(SCAN, points=points), DensityIncreased(share=1.0, jump_m=jump_m, gap_deg=gap_deg)
    draw = mutation.draw_cloud(np.random.default_rng(1), STREET, cloud, None)
    xyz, expected = cloud.xyz.astype(np.float64), set()
    for ring in range(64):
        rows = np.flatnonzero(points["ring"] == ring)
        far = np.linalg.norm(xyz[rows], axis=1)
        cosine = (xyz[rows[1:]] * xyz[rows[:-1]]).sum(axis=1) / (far[1:] * far[:-1])
        fits = (cosine >= np.cos(np.radians(gap_deg))) & (np.abs(np.diff(far)) <= jump_m)
        expected |= set(zip(rows[:-1][fits].tolist(), rows[1:][fits].tolist(), strict=True))
    told = set(zip(draw["earlier"].tolist(), draw["later"].tolist(), strict=True))
    assert (points["ring"][draw["earlier"]] == points["ring"][draw["later"]]).all()
    assert len(expected) > 1000 and len(told ^ expected) <= (0.002 if kind == "<f4" else 0.0002) * len(expected)


def test_images_are_looked_for_where_they_are() -> None:
    """What has an image in reach and in the cone, told without making images, is what made images show."""
    rng, mutation = np.random.default_rng(4), GhostReflections(max_range_m=60.0)
    xyz = rng.uniform(-40.0, 40.0, (3, 20_000)).astype(np.float32)
    normal = np.array([0.8, 0.6, 0.0])
    plane, axis, cosine = np.array([*normal, -12.0]), np.array([0.7, 0.7, 0.1]) / np.linalg.norm([0.7, 0.7, 0.1]), 0.9
    height = (normal @ xyz + plane[3]).astype(np.float32)
    squares = np.square(xyz).sum(axis=0)
    told = mutation._behind(xyz, squares, plane, height, (axis, cosine))
    image = xyz - 2.0 * height * normal[:, None]
    image_m = np.linalg.norm(image, axis=0)
    seen = (height < -0.3) & (axis @ image > cosine * image_m) & (image_m < 60.0)
    assert 100 < seen.sum() < 10_000 and len(np.setxor1d(told, np.flatnonzero(seen))) <= 2


# --- a plume


@pytest.mark.parametrize("plume", PLUMES)
def test_a_plume_along_a_beam_is_the_plume_at_its_places(plume: Plume) -> None:
    low, high = plume.box_m
    aim = np.random.default_rng(2).uniform(low, high, (3000, 3)).T
    way = aim - SENSOR[:, None]
    away_m = np.linalg.norm(way, axis=0)
    way = (way / away_m).astype(np.float32)
    along = plume.along(SENSOR, way)
    at = away_m.astype(np.float32)
    there = places(SENSOR, way.astype(np.float64), at)
    np.testing.assert_allclose(along.mean_per_m(at), plume.mean_per_m(*there), rtol=2e-5)
    # At the edge of a patch rounding decides whose it is.
    assert (np.abs(along.patchiness(at) - plume.patchiness(*there)) > 1e-5).mean() < 1e-3


@pytest.mark.parametrize("plume", PLUMES)
def test_beams_through_a_plume_are_those_that_enter_its_box(plume: Plume) -> None:
    to_ego = STREET.transforms.lookup("base_link", SCAN.frame_id)
    beams = PlumeBeams.of(ways_to(SCAN, to_ego), to_ego[:3, 3], plume, 1.0)
    way = to_ego[:3, :3] @ SCAN.xyz.T.astype(np.float64)
    own_m = np.linalg.norm(way, axis=0)
    enter_m, leave_m = within(to_ego[:3, 3], way / own_m, plume.box_m)
    inside_m = np.minimum(leave_m, own_m - 0.2) - np.maximum(enter_m, 1.0)
    told = np.zeros(len(SCAN), dtype=bool)
    told[beams.rows] = True
    # A beam that only touches the box may or may not be one.
    assert (inside_m > 1e-3).sum() > 1000 and told[inside_m > 1e-3].all() and not told[inside_m < -1e-3].any()
    other_way = passed_by_steps(SCAN, beams.rows, plume, to_ego, 1.0)
    np.testing.assert_allclose(beams.passed(plume, to_ego[:3, 3]), other_way, atol=0.01)


# --- the receiver


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_receiver_keeps_the_precision_of_what_it_is_asked(kind: type) -> None:
    receiver = Receiver(120.0, 5.0, 0.4)
    range_m, reflectivity = np.array([1.0, 5.0, 60.0, 120.0], kind), np.array([0.4, 0.02, 0.4, 0.4], kind)
    signal = receiver.signal(reflectivity, range_m)
    assert signal.dtype == kind and signal == pytest.approx([576.0, 28.8, 4.0, 1.0])
    assert receiver.reflectivity(signal, range_m) == pytest.approx(reflectivity)
    just = receiver.threshold_reflectivity(range_m)
    assert just.dtype == kind and receiver.signal(just, range_m) == pytest.approx(np.ones(4))


def test_rows_of_the_last_piece_are_looked_at() -> None:
    """A return that was lost from outside the region, and one that was left in it, far down a large cloud."""
    bundle = made_bundle(made_cloud("velodyne", 9000))
    cloud, mutation = bundle.cloud(), RegionCutOut()
    draw = mutation.draw(np.random.default_rng(0), bundle, None)
    name = f"{cloud.topic}|rows"
    inside, outside = draw[name].astype(np.int64), np.setdiff1d(np.arange(8500, 9000), draw[name])
    wrong: dict[str, Points] = {
        r"outside region 'cut_out' was lost": np.union1d(inside, outside[:1]),
        r"1 returns are on the wrong side": inside[1:],
    }
    for says, rows in wrong.items():
        other = {**draw, name: rows}
        assert says in str(mutation.guarantee(bundle, mutation.apply(bundle, other), other))
