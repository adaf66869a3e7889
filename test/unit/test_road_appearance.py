# SPDX-License-Identifier: Apache-2.0
"""Obstacles by their looks: bodies on a grey road are found where they stand; paint and shadow are road."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from mt_nodes.stacks.reference.road_appearance import standing_on_road
from mt_nodes.world.camera.model import CameraModel

HEIGHT_M, FOCAL = 1.4, 800.0
CAMERA = CameraModel(960, 540, np.array([[FOCAL, 0, 480], [0, FOCAL, 270], [0, 0, 1]]), np.zeros(0))
Pixels = npt.NDArray[np.uint8]


def road(noise: float = 2.0) -> Pixels:
    """Return an empty grey road below a blue sky."""
    picture = np.full((540, 960, 3), (100.0, 102.0, 106.0))
    picture[:270] = (150, 190, 240)
    return np.clip(picture + np.random.default_rng(0).normal(0, noise, picture.shape), 0, 255).astype(np.uint8)


def block(
    picture: Pixels,
    ahead_m: float,
    left_m: float,
    size_m: tuple[float, float],
    rgb: tuple[int, int, int],
    up_m: float = 0,
) -> None:
    """Paint an upright block of a width and height that stands, or hangs, at a place."""
    per_m = FOCAL / ahead_m
    x, foot = 480 - left_m * per_m, 270 + (HEIGHT_M - up_m) * per_m
    rows = slice(max(0, round(foot - size_m[1] * per_m)), round(foot))
    picture[rows, round(x - size_m[0] / 2 * per_m) : round(x + size_m[0] / 2 * per_m)] = rgb


def places(picture: Pixels) -> list[tuple[float, float]]:
    """Return how far ahead and to the left what is found stands, in metres."""
    x0, _, x1, foot = standing_on_road(picture, CAMERA, HEIGHT_M).box_px.T
    ahead = FOCAL * HEIGHT_M / (foot + 0.5 - 270)
    return list(zip(ahead.tolist(), (-((x0 + x1 + 1) / 2 - 480) / FOCAL * ahead).tolist(), strict=True))


def test_on_an_empty_road_stands_nothing() -> None:
    assert places(road()) == []


@pytest.mark.parametrize("rgb", [(230, 200, 20), (60, 90, 180), (25, 25, 28), (120, 70, 40)])
@pytest.mark.parametrize(("ahead_m", "left_m"), [(8.0, 0.0), (20.0, 2.5), (35.0, -2.0)])
def test_a_body_is_found_where_it_stands(rgb: tuple[int, int, int], ahead_m: float, left_m: float) -> None:
    picture = road()
    block(picture, ahead_m, left_m, (0.4, 1.1), rgb)
    ((ahead, left),) = places(picture)
    assert ahead == pytest.approx(ahead_m, rel=0.05)
    assert left == pytest.approx(left_m, abs=0.15)


def test_two_people_side_by_side_are_two() -> None:
    picture = road()
    for left in (0.0, 1.0):
        block(picture, 25.0, left, (0.35, 1.75), (60, 90, 180))
    assert [round(left, 1) for _, left in sorted(places(picture))] == pytest.approx([0.0, 1.0], abs=0.2)


def test_a_body_with_legs_is_one_and_as_wide_as_it_is() -> None:
    picture = road()
    block(picture, 20.0, 0.0, (1.2, 0.4), (60, 40, 30), up_m=0.4)
    for left in (-0.5, 0.5):
        block(picture, 20.0, left, (0.15, 0.45), (60, 40, 30))
    boxes = standing_on_road(picture, CAMERA, HEIGHT_M)
    assert len(boxes) == 1
    assert (boxes.box_px[0, 2] - boxes.box_px[0, 0]) * 20.0 / FOCAL == pytest.approx(1.2, abs=0.1)


def test_paint_and_shadow_are_road() -> None:
    picture = road()
    picture[400:420, 300:600] = 235
    picture[330:380] = (0.68 * picture[330:380]).astype(np.uint8)
    assert places(picture) == []
