# SPDX-License-Identifier: Apache-2.0
"""Holes filled in pictures of a plain scene, and measures of the fill."""

from __future__ import annotations

import numpy as np
import pytest

from mt_nodes.data.images.codecs import Picture
from mt_nodes.relations.mutations.objects.removal_proof import likeness
from mt_nodes.world.camera.cutout import aspect_rad, motion_refusal
from mt_nodes.world.camera.fill import Surfaces, fill, spread
from mt_nodes.world.camera.fill_quality import FillError, FillQuality, errors_of, seam_of
from mt_nodes.world.camera.model import CameraModel
from mt_nodes.world.camera.silhouette import Silhouette
from mt_nodes.world.camera.standing_object import CameraGround, StandingObject

HEIGHT, WIDTH = 120, 200
CAMERA = CameraModel(WIDTH, HEIGHT, np.array([[150.0, 0.0, 99.5], [0.0, 150.0, 30.0], [0.0, 0.0, 1.0]]), np.zeros(0))
GROUND = CameraGround(np.array([0.0, -1.0, 0.0]), 1.5)
WHOLE = slice(0, HEIGHT), slice(0, WIDTH)


def road() -> np.ndarray:
    """A road with a white line that runs ahead 1 m to the right, seen from 1.5 m above it; rows above 30 are sky."""
    rays = CAMERA.grid(1)
    with np.errstate(divide="ignore", invalid="ignore"):
        range_m = 1.5 / rays[..., 1]
        beside_m = rays[..., 0] * range_m
    pixels = np.where(np.abs(beside_m - 1.0) < 0.1, 0.9, 0.4)
    pixels[:32] = 0.7
    noise = np.random.default_rng(0).normal(0.0, 0.01, pixels.shape)
    return (pixels + noise).astype(np.float32)[..., None]


def surfaces(pixels: np.ndarray) -> Surfaces:
    ground = np.zeros((HEIGHT, WIDTH), bool)
    ground[32:] = True
    range_m = np.where(ground, 10.0, 1e4).astype(np.float32)
    return Surfaces(pixels, np.ones((HEIGHT, WIDTH), bool), ground, range_m, CAMERA, GROUND, WHOLE)


def hole(rows: slice, columns: slice) -> np.ndarray:
    mask = np.zeros((HEIGHT, WIDTH), bool)
    mask[rows, columns] = True
    return mask


def test_a_line_of_the_road_goes_on_through_a_hole() -> None:
    true, where = road(), hole(slice(58, 72), slice(110, 140))
    assert (true[where] > 0.8).sum() > 50, "the hole lies over the line"
    spoilt = true.copy()
    spoilt[where] = 0.0
    result = fill(surfaces(spoilt), where)
    assert result.given[where].mean() > 0.95
    assert errors_of(result.pixels, true, where).light < 0.02
    assert seam_of(result.pixels, where, np.ones_like(where)) < 1.5
    assert (result.pixels[~where] == spoilt[~where]).all()


def test_a_flat_fill_has_no_detail_and_a_wrong_one_a_seam() -> None:
    true, where = road(), hole(slice(80, 110), slice(20, 60))
    flat, bright = true.copy(), true.copy()
    flat[where] = true[where].mean()
    bright[where] += 0.3
    assert errors_of(flat, true, where).detail < 0.6
    assert errors_of(true, true, where) == FillError(0.0, pytest.approx(1.0, abs=1e-5), 1.0)
    usable = np.ones_like(where)
    assert seam_of(true, where, usable) < 1.3 < 5.0 < seam_of(bright, where, usable)
    assert seam_of(true, where, np.zeros_like(where)) == float("inf"), "without a border nothing is known"


def test_a_fill_is_refused_for_each_of_its_measures() -> None:
    good = FillError(0.05, 0.9, 1.0)
    assert FillQuality(0.95, 0.0, 1.0, (good,)).refusal() is None
    for quality, words in (
        (FillQuality(0.8, 0.0, 1.0, (good,)), "only 80%"),
        (FillQuality(0.95, 0.0, 2.5, (good,)), "steps of 2.5 times"),
        (FillQuality(0.95, 0.0, 1.0, ()), "no place like it"),
        (FillQuality(0.95, 0.0, 1.0, (good, FillError(0.2, 0.9, 1.0))), "0.200 of full light off"),
        (FillQuality(0.95, 0.0, 1.0, (FillError(0.05, 0.9, 0.3),)), "0.30 times the detail"),
    ):
        assert words in str(quality.refusal())


def test_known_values_are_spread_smoothly() -> None:
    known = np.zeros((HEIGHT, WIDTH), bool)
    known[:, 0], known[:, -1] = True, True
    values = np.zeros((HEIGHT, WIDTH, 1), np.float32)
    values[:, -1] = 1.0
    wide = spread(values, known)[..., 0]
    assert wide[:, 0].max() < 0.05 and wide[:, -1].min() > 0.95
    assert 0.35 < wide[60, 100] < 0.65


def test_pictures_are_alike_by_their_fine_structure_alone() -> None:
    rng = np.random.default_rng(1)
    pixels = rng.integers(60, 190, (HEIGHT, WIDTH), np.uint8)
    old, where = Picture(pixels, "mono"), np.full((HEIGHT, WIDTH), 255, np.uint8)
    brighter = Picture(pixels + np.uint8(40), "mono")
    other = Picture(rng.integers(60, 190, (HEIGHT, WIDTH), np.uint8), "mono")
    assert likeness(old, brighter, where) == pytest.approx(1.0, abs=0.01)
    assert abs(likeness(old, other, where) or 0.0) < 0.1
    assert likeness(old, Picture(np.full_like(pixels, 90), "mono"), where) is None


def test_a_cut_out_is_not_shown_from_another_side_or_in_another_light() -> None:
    returns = np.array([[x, y, 10.0] for x in (-0.3, 0.0, 0.3) for y in (0.0, 0.7, 1.4)])
    outline = np.array([[-0.5, 1.5, 9.5], [0.5, 1.5, 9.5], [0.5, 1.5, 10.5], [-0.5, 1.5, 10.5]])
    thing = StandingObject(CAMERA, returns, outline, 1.5, GROUND)
    empty = np.zeros((HEIGHT, WIDTH), bool)
    silhouette = Silhouette(WHOLE, hole(slice(30, 50), slice(95, 105)), empty, empty)
    assert motion_refusal(thing, silhouette, about(0.3, 0.0)) is None
    assert "another side" in str(motion_refusal(thing, silhouette, about(-0.6, 6.0)))
    assert "its light" in str(motion_refusal(thing, silhouette, about(0.9, 0.0)))
    hidden = Silhouette(WHOLE, silhouette.body, empty, hole(slice(30, 50), slice(105, 120)))
    assert "hides a part" in str(motion_refusal(thing, hidden, about(0.3, 0.0)))
    assert aspect_rad(thing, about(0.3, 0.0)) == pytest.approx(0.0, abs=1e-6)


def about(turn_rad: float, aside_m: float) -> np.ndarray:
    """Return the rotation about a vertical axis so far to the right of the camera."""
    c, s = np.cos(turn_rad), np.sin(turn_rad)
    motion = np.array([[c, 0.0, s, 0.0], [0.0, 1.0, 0.0, 0.0], [-s, 0.0, c, 0.0], [0.0, 0.0, 0.0, 1.0]])
    middle = np.array([aside_m, 0.0, 0.0])
    motion[:3, 3] = middle - motion[:3, :3] @ middle
    return motion
