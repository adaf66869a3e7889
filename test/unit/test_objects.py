# SPDX-License-Identifier: Apache-2.0
"""Objects as meshes, what rays see of them, and where they find room."""

from __future__ import annotations

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from made_bundles import made_cloud

from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.messages import Cloud
from mt_nodes.world.scene.lidar import hdl_64e
from mt_nodes.world.scene.meshes import box, merged
from mt_nodes.world.scene.nearest_object import Search, nearest_objects
from mt_nodes.world.scene.objects import KINDS, mesh_of
from mt_nodes.world.scene.placement_solver import Footprint, NoRoom, Wish, ground_plane, solve, stand, upright
from mt_nodes.world.scene.raycast import scan
from mt_nodes.world.scene.shadow import shadow
from mt_nodes.world.scene.sight import RaycastBody, body_of
from mt_nodes.world.scene.silent_rays import silent_rays

#: Least and most length, width and height.
SIZES_M = {
    "adult": ((0.2, 0.4, 1.7), (0.9, 0.8, 1.9)),
    "child": ((0.2, 0.3, 1.1), (0.9, 0.8, 1.3)),
    "elderly": ((0.3, 0.4, 1.5), (0.9, 0.8, 1.7)),
    "wheelchair_user": ((0.9, 0.6, 1.2), (1.2, 0.7, 1.5)),
    "roller_skater": ((0.6, 0.6, 1.75), (1.2, 1.1, 1.95)),
    "cyclist": ((1.6, 0.5, 1.6), (1.9, 0.7, 1.9)),
    "motor_cyclist": ((1.9, 0.6, 1.4), (2.3, 0.9, 1.8)),
    "dog": ((0.7, 0.15, 0.6), (1.1, 0.4, 0.85)),
    "cat": ((0.38, 0.08, 0.28), (0.52, 0.2, 0.4)),
    "deer": ((1.0, 0.2, 1.0), (1.4, 0.5, 1.3)),
    "boar": ((1.3, 0.3, 0.8), (1.9, 0.6, 1.0)),
    "cow": ((2.0, 0.5, 1.4), (2.8, 0.9, 1.8)),
    "car": ((4.0, 1.7, 1.4), (4.8, 1.9, 1.6)),
    "van": ((5.0, 1.9, 2.2), (6.0, 2.1, 2.7)),
    "truck": ((8.0, 2.4, 3.4), (12.0, 2.56, 4.0)),
    "bus": ((11.5, 2.5, 2.9), (13.5, 2.56, 3.3)),
    "school_bus": ((10.0, 2.4, 2.9), (12.0, 3.0, 3.3)),
    "emergency_vehicle": ((5.5, 1.9, 2.6), (6.5, 2.2, 3.0)),
    "construction_vehicle": ((6.0, 2.3, 3.0), (8.0, 2.6, 3.5)),
    "cone": ((0.35, 0.35, 0.7), (0.45, 0.45, 0.8)),
    "barrier": ((0.6, 2.9, 0.8), (0.62, 3.1, 0.82)),
    "box": ((0.6, 0.6, 0.6), (0.61, 0.61, 0.61)),
    "traffic_sign": ((0.05, 0.59, 2.5), (0.15, 0.61, 2.7)),
    "traffic_light": ((0.2, 0.4, 3.2), (0.4, 0.6, 3.4)),
    "scooter_rider": ((1.0, 0.4, 1.8), (1.2, 0.6, 2.0)),
    "skateboarder": ((0.8, 0.2, 1.5), (1.1, 0.5, 1.8)),
    "tricycle_rider": ((1.6, 0.65, 1.4), (1.9, 0.8, 1.6)),
    "quadricycle_rider": ((1.7, 0.7, 1.4), (2.0, 0.9, 1.6)),
    "flag_bearer": ((0.2, 1.0, 1.8), (0.5, 1.5, 2.0)),
    "tow_truck": ((6.0, 2.2, 2.4), (8.0, 2.56, 3.0)),
    "tram": ((13.9, 2.49, 4.4), (14.1, 2.51, 4.8)),
    "crossing_gate": ((0.4, 5.0, 1.0), (0.6, 6.0, 1.4)),
    "traffic_officer": ((0.3, 1.1, 2.1), (0.6, 1.5, 2.3)),
    "crossing_guard": ((0.3, 1.0, 2.0), (0.6, 1.4, 2.2)),
    "construction_worker": ((0.9, 0.8, 1.7), (1.4, 1.2, 1.9)),
    "horse_rider": ((2.1, 0.7, 2.3), (2.6, 1.0, 2.6)),
    "horse_carriage": ((5.2, 1.4, 1.9), (6.2, 1.7, 2.3)),
    "tractor": ((3.6, 2.2, 2.6), (4.2, 2.5, 2.9)),
    "trailer": ((3.6, 2.0, 2.2), (4.0, 2.2, 2.4)),
    "load_carrier": ((7.2, 2.0, 2.2), (8.0, 2.2, 2.5)),
    "delineator": ((0.1, 0.11, 0.99), (0.15, 0.13, 1.01)),
    "guardrail": ((7.9, 0.1, 0.74), (8.1, 0.3, 0.9)),
    "speed_bump": ((0.89, 3.3, 0.079), (0.91, 3.5, 0.081)),
    "traffic_island": ((4.5, 1.4, 1.1), (5.0, 1.6, 1.4)),
    "gantry_sign": ((0.2, 5.0, 6.3), (0.5, 5.5, 6.5)),
}  # fmt: skip


def room(floor_z: float = -1.73, *things: object) -> Cloud:
    """What an HDL-64E sees of a level floor with things on it; sensor at the origin."""
    floor = box((200, 200, 0.1), (0, 0, floor_z - 0.05), 0.2)
    points = scan(merged([floor, *things]), (0.0, 0.0, 0.0), hdl_64e(), np.random.default_rng(2))  # type: ignore[list-item]
    return Cloud("/points", 0, "velodyne", points)


def ahead(x_m: float, floor_z: float = -1.73) -> np.ndarray:
    pose = upright((x_m, 0.0, 0.0))
    pose[2, 3] = floor_z
    return pose


@pytest.fixture(scope="module")
def empty_floor() -> Cloud:
    return room()


def test_every_kind_has_its_size() -> None:
    assert set(SIZES_M) == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_mesh_is_closed_stands_on_the_ground_and_shines_within_limits(kind: str) -> None:
    mesh = mesh_of(kind)
    low, high = SIZES_M[kind]
    size = np.ptp(mesh.vertices_m, axis=0)
    assert (size >= np.array(low) - 1e-6).all() and (size <= np.array(high) + 1e-6).all(), size
    assert mesh.vertices_m[:, 2].min() == pytest.approx(0.0, abs=0.03)
    assert ((mesh.reflectivity > 0) & (mesh.reflectivity <= 1)).all()
    edges = np.sort(np.concatenate([mesh.triangles[:, [i, j]] for i, j in ((0, 1), (1, 2), (2, 0))]), axis=1)
    _, count = np.unique(edges, axis=0, return_counts=True)
    assert (count == 2).all(), "an edge with another number of faces than two"


def test_rays_that_meet_a_box_and_which_of_them_see_it() -> None:
    body, pose = RaycastBody(box((1, 1, 1.5), (0, 0, 0.75), 0.5)), ahead(10.0)
    behind_wall = room(-1.73, box((0.2, 4, 4), (5, 0, 0), 0.3))
    before_wall = room(-1.73, box((0.2, 8, 8), (20, 0, 0), 0.3))
    hidden, seen = body.cast(behind_wall, pose), body.cast(before_wall, pose)
    assert len(hidden.rows) > 100 and not hidden.visible.any()
    assert len(seen.rows) > 100 and seen.visible.all()
    assert seen.range_m == pytest.approx(9.5, abs=0.3) and seen.own_m.min() > 9.5
    assert 0.45 <= seen.brightness.max() <= 0.5
    assert len(body.hides(before_wall, pose, 0.2)) == len(seen.rows) and not len(body.hides(behind_wall, pose, 0.2))


@settings(max_examples=15, deadline=None)
@given(st.floats(4.0, 40.0), st.floats(-np.pi, np.pi), st.sampled_from(["adult", "car", "cone", "bus"]))
def test_cone_leaves_no_ray_out(empty_floor: Cloud, range_m: float, bearing: float, kind: str) -> None:
    pose = upright((range_m * np.cos(bearing), range_m * np.sin(bearing), 0.3))
    pose[2, 3] = -1.73
    body = body_of(kind)
    known = empty_floor.xyz.astype(np.float64)
    everywhere = body._hits(np.arange(len(known)), known / np.linalg.norm(known, axis=1)[:, None],
                            np.linalg.norm(known, axis=1), pose)  # fmt: skip
    found = body.cast(empty_floor, pose)
    assert set(everywhere.rows[everywhere.visible]) <= set(found.rows)


def test_the_sky_is_found_as_rays_of_the_sensor() -> None:
    lidar, cloud = hdl_64e(), room()
    rays = silent_rays(cloud, 0.3, 0.1)
    elevation = np.arcsin(rays.direction[:, 2])
    assert len(rays.rows) > 100 and (elevation < 0.05).all()
    nearest = np.abs(elevation[:, None] - np.array(lidar.elevations_rad)[None]).min(axis=1)
    assert nearest.max() < np.radians(0.2)
    azimuth = np.arctan2(rays.direction[:, 1], rays.direction[:, 0])
    assert (np.abs(azimuth - 0.3) <= 0.1 + 1e-6).all()


def test_no_beams_no_silent_rays() -> None:
    assert not len(silent_rays(made_cloud("kitti", 200), 0.0, 0.2).rows)


def floor_points(slope: float = 0.0, seed: int = 0) -> np.ndarray:
    xy = np.random.default_rng(seed).uniform(-30, 30, (20_000, 2))
    return np.column_stack([xy, slope * xy[:, 0]])


FOOT = Footprint((0.0, 0.0), (1.0, 0.5), 1.7)


@settings(max_examples=20, deadline=None)
@given(st.floats(-0.15, 0.15), st.floats(5, 15), st.floats(-8, 8))
def test_ground_is_found_under_its_slope(slope: float, x: float, y: float) -> None:
    points = floor_points(slope) * (1.0, 1.0, 1.0)
    near = points[np.hypot(points[:, 0] - x, points[:, 1] - y) < 4] - (0, 0, slope * x)
    assert ground_plane(near, (x, y)) == pytest.approx([0.0, slope, 0.0], abs=0.02)


def test_an_object_stands_on_the_ground_and_tilts_with_it() -> None:
    pose = stand(floor_points(0.05), FOOT, (10.0, 2.0, 0.7), 1.0)
    assert pose[:3, 3] == pytest.approx([10.0, 2.0, 0.5], abs=0.01)
    assert pose[:3, 2] == pytest.approx(np.array([-0.05, 0, 1]) / np.hypot(0.05, 1), abs=0.01)
    assert np.linalg.det(pose[:3, :3]) == pytest.approx(1.0)
    assert np.arctan2(pose[1, 0], pose[0, 0]) == pytest.approx(0.7, abs=0.01)


@pytest.mark.parametrize(
    ("points", "why"),
    [
        (np.concatenate([floor_points(), np.tile([[11.0, 0.4, 1.0]], (5, 1))]), "occupied"),
        (floor_points()[:20], "without ground points"),
        (floor_points() + np.array([0.0, 0.0, 30.0]), "without ground points"),
    ],
)
def test_no_room_has_a_reason(points: np.ndarray, why: str) -> None:
    with pytest.raises(NoRoom, match=why):
        stand(points, FOOT, (10.0, 0.0, 0.0), 1.0)


def test_solver_tells_the_reasons_and_takes_the_first() -> None:
    def accepts(place: tuple[float, float, float]) -> str:
        if place[0] < 5.0:
            raise NoRoom("occupied")
        return "here"

    assert solve([(1.0, 0.0, 0.0), (6.0, 0.0, 0.0), (7.0, 0.0, 0.0)], accepts, "a thing") == (1, "here")
    with pytest.raises(NotApplicable, match="no free ground for a thing: of 2 places tried 2 occupied"):
        solve([(1.0, 0.0, 0.0)] * 2, accepts, "a thing")


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1000), st.sampled_from(["path", "beside", "bearing"]))
def test_wishes_are_granted(seed: int, where: str) -> None:
    x, y, yaw = Wish(where, (8.0, 20.0), (-0.5, 0.2), None).place(np.random.default_rng(seed))
    assert 8.0 <= np.hypot(x, y) <= 20.0 and -np.pi <= yaw <= np.pi
    if where == "bearing":
        assert -0.5 <= np.arctan2(y, x) <= 0.2
    else:
        assert x > 0 and (abs(y) <= 0.8) == (where == "path")


@settings(max_examples=30, deadline=None)
@given(st.floats(6, 40), st.floats(-3, 3), st.floats(-3, 3))
def test_shadow_lies_behind_the_object_and_not_on_it(range_m: float, bearing: float, yaw: float) -> None:
    place = np.array([range_m * np.cos(bearing), range_m * np.sin(bearing)])
    turn = np.array([[np.cos(yaw), -np.sin(yaw)], [np.sin(yaw), np.cos(yaw)]])
    corners = np.array([[2, 1], [-2, 1], [-2, -1], [2, -1]]) @ turn.T + place
    volume = shadow(corners, np.zeros(2), "base_link", 100.0)
    outline, own = shapely.Polygon(volume.outline_m), shapely.Polygon(corners)
    assert outline.is_valid and outline.intersection(own).area < 1e-6
    beyond = shapely.Point(*(place * (range_m + 10) / range_m))
    assert outline.contains(beyond) and not outline.contains(shapely.Point(*(place * 0.5)))


def test_nearest_object_is_outlined_and_walls_are_none() -> None:
    things = [box((1, 1, 1.5), (x, 0.5, 0.75 - 1.73), 0.5) for x in (12.0, 20.0)]
    wall = box((0.3, 12, 3), (8, 0, 1.5 - 1.73), 0.4)
    lift = np.array([0.0, 0.0, 1.73])
    outline = shapely.Polygon(next(nearest_objects(room(-1.73, *things).xyz + lift, Search((4, 30), 6, 30, (0, 6)))))
    assert outline.contains(shapely.Point(11.6, 0.5)) and outline.area < 4.0
    with pytest.raises(NotApplicable, match="none of 1 things ahead"):
        nearest_objects(room(-1.73, wall).xyz + lift, Search((4, 30), 8, 30, (0, 6)))
    with pytest.raises(NotApplicable, match="none of 0 things"):
        nearest_objects(room().xyz + lift, Search((4, 30), 6, 30, (0, 6)))


def test_a_thing_across_the_limits_of_a_search_is_not_cut_off_by_them() -> None:
    """A parked car 5 to 9 m ahead is found from 4.5 m on, and no part of it from 6 m on or up to 8 m."""
    car, wall = box((4, 1.8, 1.5), (7.0, 4.0, 0.75 - 1.73), 0.5), box((14, 0.3, 3), (15, -3, 1.5 - 1.73), 0.4)
    xyz = room(-1.73, car, wall).xyz + np.array([0.0, 0.0, 1.73])
    (outline,) = nearest_objects(xyz, Search((4.5, 12), 6, 30, (0, 6)))
    assert (outline.min(axis=0)[0], outline.max(axis=0)[0]) == pytest.approx((4.65, 9.35), abs=0.3)
    for limits, aside_m in (((6, 12), 6), ((4, 8), 6), ((4, 12), 3.6)):
        with pytest.raises(NotApplicable):
            nearest_objects(xyz, Search(limits, aside_m, 30, (0, 6)))
