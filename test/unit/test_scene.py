# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from mt_nodes.data.messages import Bundle
from mt_nodes.world.scene import meshes
from mt_nodes.world.scene.drive import PERIOD_NS, START_NS, generate_drive
from mt_nodes.world.scene.lidar import LidarModel, hdl_64e
from mt_nodes.world.scene.raycast import VELODYNE_LAYOUT, cast, scan


@pytest.fixture(scope="module")
def drive() -> list[Bundle]:
    return list(generate_drive(5))


def test_same_arguments_same_bytes_and_a_longer_drive_begins_alike(drive: list[Bundle]) -> None:
    for longer, shorter in zip(drive, generate_drive(2), strict=False):
        assert longer.cloud().points.tobytes() == shorter.cloud().points.tobytes()


def test_some_bundles_of_a_drive_are_those_of_the_whole(drive: list[Bundle]) -> None:
    (some,) = generate_drive(5, only=[3])
    assert (some.index, some.stamp_ns) == (3, drive[3].stamp_ns)
    assert some.cloud().points.tobytes() == drive[3].cloud().points.tobytes()


def test_another_seed_is_another_drive(drive: list[Bundle]) -> None:
    assert next(generate_drive(1, seed=2)).cloud().points.tobytes() != drive[0].cloud().points.tobytes()


def test_bundles_follow_each_other_at_10_hz(drive: list[Bundle]) -> None:
    assert [b.index for b in drive] == list(range(5))
    assert [b.stamp_ns for b in drive] == [START_NS + i * PERIOD_NS for i in range(5)]
    for bundle in drive:
        cloud = bundle.cloud("/sensing/lidar/points")
        assert (cloud.frame_id, cloud.stamp_ns, cloud.height, cloud.is_dense) == ("velodyne", bundle.stamp_ns, 1, True)
        assert bundle.transforms.lookup("base_link", "velodyne")[:3, 3] == pytest.approx([0, 0, 1.73])


def test_layout_is_the_velodyne_drivers(drive: list[Bundle]) -> None:
    dtype = drive[0].cloud().points.dtype
    assert dtype.names == ("x", "y", "z", "intensity", "ring", "time")
    assert [dtype.fields[name][1] for name in dtype.names] == [0, 4, 8, 12, 16, 18]
    assert dtype.itemsize == 22


def test_the_scan_turns_clockwise_from_straight_ahead(drive: list[Bundle]) -> None:
    points = drive[0].cloud().points
    assert (np.diff(points["time"]) >= 0).all() and points["time"][0] >= 0.0 and points["time"][-1] < 0.1
    azimuth = np.degrees(np.arctan2(points["y"], points["x"]))
    assert np.abs(azimuth[:60]).max() < 0.5
    assert azimuth[len(points) // 4] == pytest.approx(-90, abs=5)
    assert (azimuth[-500:] > 0).all() and (azimuth[-500:] < 3).all()


def test_noise_lies_on_the_ray(drive: list[Bundle]) -> None:
    points, lidar = drive[0].cloud().points, hdl_64e()
    xyz = np.column_stack([points[n] for n in "xyz"]).astype(np.float64)
    column = np.round(points["time"] / (lidar.period_s / lidar.azimuths)).astype(int)
    ray = lidar.directions[column * 64 + points["ring"]]
    assert np.abs(xyz / np.linalg.norm(xyz, axis=1)[:, None] - ray).max() < 1e-6


def test_clouds_are_as_large_and_as_dim_as_real_ones(drive: list[Bundle]) -> None:
    for bundle in drive:
        points = bundle.cloud().points
        assert 80_000 < len(points) < 110_000
        assert 0.45 * 255 < points["intensity"].max() <= 0.6 * 255
        assert points["intensity"].min() >= 0


def test_the_street_moves_by(drive: list[Bundle]) -> None:
    """The pole at the pavement comes 0.8 m nearer a frame."""
    places = []
    for bundle in drive:
        p = bundle.cloud().points
        pole = p[(np.abs(p["y"] + 9.6) < 0.15) & (p["z"] > 0.2) & (p["x"] > 8) & (p["x"] < 14)]
        places.append(np.median(pole["x"]))
    assert [a - b for a, b in pairwise(places)] == pytest.approx([0.8] * 4, abs=0.05)


def test_cast_gives_range_triangle_and_incidence() -> None:
    world = meshes.merged([meshes.box((1, 4, 4), (10.5, 0, 0), 0.2), meshes.box((1, 4, 4), (-20.5, 0, 0), 0.9)])
    c = np.sqrt(0.5)
    range_m, triangle, cosine = cast(world, (0, 0, 0), np.array([[1.0, 0, 0], [-1.0, 0, 0], [0, 0, 1.0], [c, c, 0]]))
    assert range_m[:2] == pytest.approx([10, 20]) and np.isinf(range_m[2:]).all()
    assert world.reflectivity[triangle[:2]].tolist() == [0.2, 0.9]
    assert cosine[:2] == pytest.approx([1, 1])


def test_incidence_is_the_cosine_to_the_normal() -> None:
    floor = meshes.box((100, 100, 1), (0, 0, -0.5), 0.5)
    angle = np.radians(30)
    _, _, cosine = cast(floor, (0, 0, 2), np.array([[np.cos(angle), 0, -np.sin(angle)]]))
    assert cosine[0] == pytest.approx(np.sin(angle), abs=1e-6)


def small_lidar(**other: float) -> LidarModel:
    values = {"range_min_m": 1.0, "range_max_m": 50.0, "range_sigma_m": 0.0, "dropout": 0.0, "sensitivity": 0.0} | other
    return LidarModel((0.0,), 360, **values)


@pytest.mark.parametrize(
    ("lidar", "share"),
    [
        (small_lidar(), 1.0),
        (small_lidar(range_max_m=9.0), 0.0),
        (small_lidar(range_min_m=20.0), 0.0),
        (small_lidar(dropout=0.5), 0.5),
        (small_lidar(sensitivity=40.0), 0.0),
    ],
)
def test_what_a_sensor_reports_of_a_room(lidar: LidarModel, share: float) -> None:
    walls = [meshes.box((1, 21, 4), (s * 10.5, 0, 0), 0.5) for s in (1, -1)]
    walls += [meshes.box((21, 1, 4), (0, s * 10.5, 0), 0.5) for s in (1, -1)]
    points = scan(meshes.merged(walls), (0, 0, 0), lidar, np.random.default_rng(0))
    assert points.dtype == VELODYNE_LAYOUT
    assert len(points) / 360 == pytest.approx(share, abs=0.1)


@pytest.mark.parametrize(
    ("mesh", "size"),
    [
        (meshes.car(0.3, 4.4, 1.8, 1.5), (4.4, 1.82, 1.5)),
        (meshes.van(0.3, 5.6, 2.0, 2.4), (5.6, 2.02, 2.4)),
        (meshes.pedestrian(0.3, 1.8, 1.0), (0.5, 0.6, 1.8)),
        (meshes.cyclist(0.3, 0.4), (1.75, 0.6, 1.75)),
        (meshes.pole(0.3, 5.0), (0.16, 0.16, 5.0)),
        (meshes.building((10.0, 6.0, 8.0), 0.3), (10.0, 6.0, 8.0)),
    ],
)
def test_things_have_their_size_and_stand_on_the_ground(mesh: meshes.Mesh, size: tuple[float, float, float]) -> None:
    assert np.ptp(mesh.vertices_m, axis=0) == pytest.approx(size, abs=0.17)
    assert mesh.vertices_m[:, 2].min() == pytest.approx(0.0, abs=0.25)
    assert len(mesh.reflectivity) == len(mesh.triangles) and mesh.triangles.max() < len(mesh.vertices_m)


def test_a_placed_mesh_is_turned_then_moved() -> None:
    turned = meshes.box((4, 2, 1), (0, 0, 0.5), 0.5).placed(10.0, 5.0, np.pi / 2)
    assert turned.vertices_m.min(axis=0) == pytest.approx([9, 3, 0])
    assert turned.vertices_m.max(axis=0) == pytest.approx([11, 7, 1])


def test_a_walker_swings_its_legs() -> None:
    stand, stride = (np.ptp(meshes.pedestrian(0.3, 1.8, phase).vertices_m[:, 0]) for phase in (0.0, np.pi / 2))
    assert stride > stand + 0.1


def test_hdl_64e_beams() -> None:
    degrees = np.degrees(hdl_64e().elevations_rad)
    assert len(degrees) == 64 and (np.diff(degrees) < 0).all()
    assert degrees[[0, 31, 32, 63]] == pytest.approx([2.02, -8.52, -8.95, -24.71])
