# SPDX-License-Identifier: Apache-2.0
"""The generated drive's camera, and the road that bends: for pictures and clouds alike."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt_nodes.data.images.codecs import decode
from mt_nodes.data.messages import Bundle
from mt_nodes.data.transforms import move
from mt_nodes.world.camera.model import CameraModel
from mt_nodes.world.scene import meshes, paint
from mt_nodes.world.scene.camera_rendering import CameraSensor, photograph
from mt_nodes.world.scene.drive import CAMERA_INFO_TOPIC, IMAGE_TOPIC, generate_drive
from mt_nodes.world.scene.lidar import hdl_64e
from mt_nodes.world.scene.road import WAVE_M, Road
from mt_nodes.world.scene.street import GROUND, PERSON, Piece, Street

THIN = replace(hdl_64e(), azimuths=90)
SMALL = CameraSensor(width=320, height=240)
BEND_1PM = 1.0 / 70.0


@cache
def drive(bend_1pm: float = 0.0) -> tuple[Bundle, ...]:
    return tuple(generate_drive(3, lidar=THIN, camera=SMALL, bend_1pm=bend_1pm))


def model(bundle: Bundle) -> CameraModel:
    return CameraModel.of(bundle.camera_infos[0], (SMALL.height, SMALL.width))


def test_a_camera_takes_nothing_from_the_clouds() -> None:
    for with_camera, without in zip(drive(), generate_drive(3, lidar=THIN), strict=True):
        assert with_camera.cloud().raw.tobytes() == without.cloud().raw.tobytes()
        assert (
            not without.images and not without.camera_infos and without.transforms.frames == {"base_link", "velodyne"}
        )


def test_image_and_calibration_belong_together() -> None:
    for bundle in drive():
        (image,), (info,) = bundle.images, bundle.camera_infos
        assert (image.topic, info.topic) == (IMAGE_TOPIC, CAMERA_INFO_TOPIC)
        assert image.stamp_ns == info.stamp_ns == bundle.stamp_ns and image.frame_id == info.frame_id == "camera"
        assert (image.encoding, image.pixels.shape, image.pixels.dtype) == ("bgr8", (240, 320, 3), np.uint8)
        assert decode(image).order == "bgr" and (info.width, info.height) == (320, 240)
        ahead = move(bundle.transforms.lookup("camera", "base_link"), np.array([[10.3, 2.0, 1.5]]))
        np.testing.assert_allclose(ahead, [[-2.0, 0.0, 10.0]], atol=1e-12)


def test_the_same_arguments_give_the_same_picture_and_another_seed_another() -> None:
    again, other = (next(generate_drive(3, seed, THIN, SMALL)).images[0].pixels for seed in (1, 2))
    assert np.array_equal(again, drive()[0].images[0].pixels)
    assert not np.array_equal(other, again)


def test_a_longer_drive_begins_with_the_shorter_ones_pictures() -> None:
    longer = next(generate_drive(20, lidar=THIN, camera=SMALL, bend_1pm=BEND_1PM))
    assert np.array_equal(longer.images[0].pixels, drive(BEND_1PM)[0].images[0].pixels)


def test_the_lines_are_where_the_calibration_says() -> None:
    """A place on the right line, 6 m before the camera, is bright, and the road 0.4 m beside it is not."""
    bundle = drive()[0]
    places = np.array([[6.3, -2.0, 0.0], [6.3, -1.6, 0.0], [6.3, -2.4, 0.0]])
    xyz = move(bundle.transforms.lookup("camera", "base_link"), places)
    columns, rows = np.rint(model(bundle).project(xyz)).astype(int).T
    line, *road = decode(bundle.images[0]).luma()[rows, columns].astype(int)
    assert line > 180 and max(road) < line - 60


@pytest.mark.parametrize("bend_1pm", [0.0, BEND_1PM, -BEND_1PM])
def test_camera_and_lidar_see_one_scene(bend_1pm: float) -> None:
    """What stands up before the sky for the LiDAR does for the camera: at its returns the picture shows no sky."""
    bundle = drive(bend_1pm)[1]
    xyz = move(bundle.transforms.lookup("camera", "velodyne"), bundle.cloud().xyz)
    xyz = xyz[(xyz[:, 2] > 5.0) & (xyz[:, 1] < -0.2)]
    pixels = np.rint(model(bundle).project(xyz))
    inside = np.isfinite(pixels).all(axis=1) & (pixels >= 1).all(axis=1) & (pixels < (319, 239)).all(axis=1)
    columns, rows = pixels[inside].astype(int).T
    blue, _, red = np.moveaxis(bundle.images[0].pixels[rows, columns].astype(int), 1, 0)
    sky = (blue > 185) & (blue > red)
    assert len(sky) > 60 and sky.mean() < 0.08


def test_a_bend_turns_the_road_for_the_lidar_too() -> None:
    """The pavement's edge, 4.4 m to the right, is further to the left 30 m ahead where the road bends to the left."""
    road = Road(BEND_1PM, 200.0)
    edge = meshes.Mesh(np.array([[0.0, -4.4, 0.0], [30.0, -4.4, 0.0]]), np.empty((0, 3), np.uint32), np.empty(0))
    near, far = road.on_road(edge, 0.0).vertices_m
    np.testing.assert_allclose(near, [0.0, -4.4, 0.0], atol=1e-6)
    assert far[1] > -4.4 + 30.0**2 * BEND_1PM / 2.0 * 0.8
    clouds = [drive(bend)[0].cloud().xyz for bend in (0.0, BEND_1PM)]
    assert len(clouds[0]) != len(clouds[1]) or not np.array_equal(*clouds)


@given(st.floats(-0.02, 0.02), st.floats(-60.0, 60.0), st.floats(-60.0, 60.0))
def test_a_road_keeps_lengths_and_has_the_curvature_it_tells(bend: float, ego: float, s: float) -> None:
    road = Road(bend, 200.0)
    steps = s + np.array([-0.5, 0.0, 0.5])
    mesh = meshes.Mesh(np.column_stack([steps, np.zeros((3, 2))]), np.empty((0, 3), np.uint32), np.empty(0))
    a, b, c = road.on_road(mesh, ego).vertices_m[:, :2]
    assert np.linalg.norm(b - a) == pytest.approx(0.5, abs=0.01) == np.linalg.norm(c - b)
    (x0, y0), (x1, y1) = b - a, c - b
    turned = np.arctan2(x0 * y1 - y0 * x1, x0 * x1 + y0 * y1)
    assert turned / 0.5 == pytest.approx(road.curvature_1pm(s), abs=2e-3)
    assert road.curvature_1pm(s + WAVE_M) == pytest.approx(road.curvature_1pm(s), abs=1e-9)


def test_the_ego_stands_where_it_stands_on_a_straight_road_and_looks_along_its_lane() -> None:
    mesh = meshes.Mesh(np.array([[16.0, 0, 0], [17.0, 0, 0]]), np.empty((0, 3), np.uint32), np.empty(0))
    here, ahead = Road(BEND_1PM, 100.0).on_road(mesh, 16.0).vertices_m
    np.testing.assert_allclose(here, [16.0, 0.0, 0.0], atol=1e-9)
    assert ahead[0] == pytest.approx(17.0, abs=1e-3) and abs(ahead[1]) < 0.02


def test_a_straight_street_is_not_touched() -> None:
    pieces = Street(1, 1.0).pieces(0.0)
    merged = meshes.merged(piece.mesh for piece in pieces)
    assert Road(0.0, 100.0).on_road(merged, 5.0) is merged
    assert sum(piece.kind == GROUND for piece in Street(1, 1.0, BEND_1PM).pieces(0.0)) > sum(
        piece.kind == GROUND for piece in pieces
    )


def test_people_wear_trousers_under_a_jacket_and_hair_on_their_heads() -> None:
    person = Piece(PERSON, meshes.pedestrian(0.3, 1.8), tone=0.0)
    z = person.mesh.vertices_m[:, 2][person.mesh.triangles].mean(axis=1)
    colours = paint.albedo(person)
    legs, trunk, top = colours[z < 0.5], colours[(z > 1.0) & (z < 1.4)], colours[z > 1.76]
    assert legs.mean() < 0.2 < trunk.mean() and top.mean() < 0.1
    assert ((colours >= 0.0) & (colours <= 1.0)).all()


def test_what_the_sun_does_not_reach_is_darker() -> None:
    """A wall between sun and ground: the ground in its shadow, to the right of it, is darker than that to its left."""
    ground = Piece(GROUND, meshes.box((60.0, 60.0, 0.2), (20.0, 0.0, -0.1), 0.2))
    wall = Piece("pole", meshes.box((4.0, 0.2, 3.0), (10.0, 0.0, 1.5), 0.2))
    laid = meshes.merged([ground.mesh, wall.mesh])
    picture = photograph([ground, wall], laid, 0.0, SMALL, np.random.default_rng(0)).astype(int).sum(axis=2)
    places = np.array([[9.0, 1.0, 0.0], [9.0, -0.8, 0.0]]) - (SMALL.forward_m, 0.0, SMALL.height_m)
    optical = places @ SMALL.mount[:3, :3]
    camera = CameraModel.of(SMALL.info("", 0, ""), (SMALL.height, SMALL.width))
    (sunny_x, sunny_y), (shady_x, shady_y) = np.rint(camera.project(optical)).astype(int)
    assert picture[shady_y, shady_x] < 0.75 * picture[sunny_y, sunny_x]
