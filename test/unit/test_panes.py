# SPDX-License-Identifier: Apache-2.0
"""What stands behind a recorded car's glass: cameras see a share of it, beams with a return beyond meet it."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import cv2
import numpy as np
import pytest

from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.relations.mutations.camera.each_image import View
from mt_nodes.relations.mutations.objects.in_pictures import TWO_PANES, shot_of
from mt_nodes.relations.mutations.objects.in_scene import look_at
from mt_nodes.relations.mutations.objects.picture_proof import sight_of
from mt_nodes.world.camera.depth import depth_of
from mt_nodes.world.scene.camera_rendering import CameraSensor
from mt_nodes.world.scene.drive import generate_drive
from mt_nodes.world.scene.enclosed_rays import enclosing_m
from mt_nodes.world.scene.figures import figure_of
from mt_nodes.world.scene.materials import PANE
from mt_nodes.world.scene.sight import body_of

#: The back of a car 8 m ahead, and its window: y and z in base_link.
CAR_M, WINDOW_M = ((-0.9, 0.9), (0.1, 1.5)), ((-0.3, 0.3), (0.95, 1.2))
WALL_M, CAR_X_M = 40.0, 8.0
LIDAR_M = 1.73
POSE = np.array([[1.0, 0, 0, 14.0], [0, 1, 0, 0.0], [0, 0, 1, 0], [0, 0, 0, 1]])


@lru_cache(maxsize=2)
def scene(window: str) -> Bundle:
    """Before a wall stands a car whose window lets beams through (``clear``), or gives no return (``dark``)."""
    street = next(iter(generate_drive(1, camera=CameraSensor(640, 480))))
    azimuth, elevation = np.meshgrid(np.radians(np.arange(-45, 45, 0.18)), np.radians(np.arange(-24.0, 4.0, 0.42)))
    rays = np.stack([np.cos(elevation) * np.cos(azimuth), np.cos(elevation) * np.sin(azimuth), np.sin(elevation)], -1)
    rays = rays.reshape(-1, 3)
    at_car = rays * (CAR_X_M / rays[:, :1])
    car = _within(at_car, CAR_M)
    glass = car & _within(at_car, WINDOW_M)
    away_m = np.full(len(rays), WALL_M) / rays[:, 0]
    ground_m = np.where(rays[:, 2] < 0.0, -LIDAR_M / np.minimum(rays[:, 2], -1e-9), np.inf)
    range_m = np.where(car & ~glass, CAR_X_M / rays[:, 0], np.minimum(away_m, ground_m))
    keep = ~glass if window == "dark" else np.ones(len(rays), bool)
    points = np.zeros(int(keep.sum()), street.cloud().points.dtype)
    for axis, name in enumerate("xyz"):
        points[name] = (rays * range_m[:, None])[keep, axis]
    points["ring"] = np.repeat(np.arange(len(elevation)), azimuth.shape[1])[keep]
    points["intensity"] = 60.0
    cloud = replace(street.cloud(), points=points)
    return replace(street, clouds=(cloud,), images=(replace(street.images[0]),))


def _within(places: np.ndarray, box: tuple[tuple[float, float], tuple[float, float]]) -> np.ndarray:
    (left, right), (low, high) = box
    return (
        (places[:, 1] > left)
        & (places[:, 1] < right)
        & (places[:, 2] + LIDAR_M > low)
        & (places[:, 2] + LIDAR_M < high)
    )


def window_px(view: View, box: tuple[tuple[float, float], tuple[float, float]]) -> np.ndarray:
    """The pixels of a part of the car's back, as a mask."""
    to_camera = np.asarray(view.bundle.transforms.lookup("camera", "base_link"))
    corners = np.array(
        [[CAR_X_M, y, z, 1.0] for y, z in zip((*box[0], *box[0][::-1]), np.repeat(box[1], 2), strict=True)]
    )
    outline = view.camera().project((corners @ to_camera.T)[:, :3])
    mask = np.zeros(view.picture.size, np.uint8)
    cv2.fillConvexPoly(mask, np.rint(outline).astype(np.int32), 1)
    return mask != 0


def test_depth_has_panes_and_what_is_seen_through_them() -> None:
    view = View.of(scene("clear"), scene("clear").images[0])
    depth = depth_of(view.bundle, view.image, view.camera())
    window = cv2.erode(window_px(view, WINDOW_M).astype(np.uint8), np.ones((9, 9)))
    cells = window[depth.step_px // 2 :: depth.step_px, depth.step_px // 2 :: depth.step_px] != 0
    assert cells.sum() > 20
    closed, through = (
        depth.pane_m[: cells.shape[0], : cells.shape[1]],
        depth.through_m[: cells.shape[0], : cells.shape[1]],
    )
    assert np.median(closed[cells]) == pytest.approx(CAR_X_M, abs=0.5)
    assert np.median(through[cells]) > 20.0
    assert (depth.far_m >= depth.through_m).all() and (depth.through_m >= depth.pane_m - 1e-4).all()


def test_a_camera_sees_the_stated_share_of_what_is_behind_the_glass() -> None:
    assert pytest.approx(PANE.visible_transmission**2) == TWO_PANES
    bundle = scene("clear")
    view, figure = View.of(bundle, bundle.images[0]), figure_of("adult")
    shot = shot_of(view, figure, POSE, "person", "base_link")
    assert shot is not None
    sight = np.zeros(view.picture.size, np.float32)
    sight[shot.window] = shot.sight
    cover = np.zeros_like(sight)
    cover[shot.rendering.window] = shot.rendering.cover
    whole = cover > 0.99
    behind_glass = whole & cv2.erode(window_px(view, WINDOW_M).astype(np.uint8), np.ones((11, 11))).astype(bool)
    low = whole & window_px(view, ((-0.8, 0.8), (0.3, 0.8)))
    assert behind_glass.sum() > 50 and np.median(sight[behind_glass]) == pytest.approx(TWO_PANES, abs=0.05)
    assert low.sum() > 50 and np.median(sight[low]) == 0.0
    to_camera = np.asarray(bundle.transforms.lookup("camera", "base_link"))
    may = sight_of(view, body_of("adult"), to_camera @ POSE, figure.feet_m).may
    assert (may[behind_glass] != 0).mean() > 0.95


def test_hits_through_the_glass_lie_in_the_drawn_silhouette() -> None:
    bundle = scene("clear")
    view, figure = View.of(bundle, bundle.images[0]), figure_of("adult")
    shot = shot_of(view, figure, POSE, "person", "base_link")
    assert shot is not None
    to_lidar = np.linalg.inv(np.asarray(bundle.transforms.lookup("base_link", "velodyne")))
    hits = look_at(bundle.cloud(), body_of("adult"), to_lidar @ POSE).hits
    rows = hits.rows[hits.visible]
    xyz = bundle.cloud().xyz[rows] * (hits.range_m / hits.own_m)[hits.visible][:, None]
    pixels = np.rint(view.camera().project(xyz @ _turn(bundle).T + _place(bundle))).astype(int)
    sight = np.zeros(view.picture.size, np.float32)
    sight[shot.window] = shot.sight
    seen = cv2.dilate(sight, np.ones((3, 3)))[pixels[:, 1], pixels[:, 0]] > 0.1
    by_lidar, by_camera = xyz / xyz[:, :1] * CAR_X_M, _at_car_from(_camera_m(bundle), xyz)
    through = _within(by_lidar, WINDOW_M) & _within(by_camera, WINDOW_M)
    assert through.sum() > 20 and seen[through].mean() > 0.9 and seen[by_camera[:, 2] + LIDAR_M > 0.95].mean() > 0.9
    # The camera is lower than the LiDAR: what the lowest beams meet lies behind the door to it.
    below = _within(by_lidar, WINDOW_M) & (by_camera[:, 2] + LIDAR_M < 0.9)
    assert below.sum() > 3 and not seen[below].any()


def _camera_m(bundle: Bundle) -> np.ndarray:
    return np.asarray(bundle.transforms.lookup("velodyne", "camera"))[:3, 3]


def _at_car_from(eye_m: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Where the sight lines from a place to others pass the back of the car."""
    return np.asarray(eye_m + (places - eye_m) * ((CAR_X_M - eye_m[0]) / (places[:, 0] - eye_m[0]))[:, None])


def _turn(bundle: Bundle) -> np.ndarray:
    return np.asarray(bundle.transforms.lookup("camera", "velodyne"))[:3, :3]


def _place(bundle: Bundle) -> np.ndarray:
    return np.asarray(bundle.transforms.lookup("camera", "velodyne"))[:3, 3]


def test_beams_that_end_in_the_glass_meet_nothing_behind_it() -> None:
    """Their directions lie amid the car's returns; those over its roof do not."""
    cloud: Cloud = scene("dark").cloud()
    inside = np.array([[CAR_X_M, y, z - LIDAR_M] for y in (-0.05, 0.05) for z in (1.05, 1.1)])
    above = np.array([[CAR_X_M, y, 2.6 - LIDAR_M] for y in (-0.2, 0.0, 0.2)])
    directions = np.concatenate([inside, above])
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    found = enclosing_m(cloud, directions)
    assert found[: len(inside)] == pytest.approx(CAR_X_M, abs=0.6) and (found[len(inside) :] > 30.0).all()
    assert np.isinf(enclosing_m(replace(cloud, points=cloud.points[:1]), directions)).all()
    assert len(enclosing_m(cloud, np.empty((0, 3)))) == 0
