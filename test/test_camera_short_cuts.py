# SPDX-License-Identifier: Apache-2.0
"""Short cuts of the camera's side say what the long way says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from made_images import street_in

from mt_nodes.camera import depth
from mt_nodes.camera.codecs import Picture, decode
from mt_nodes.camera.light import light_of, values_of
from mt_nodes.camera.relight import relit
from mt_nodes.frames import Cloud
from mt_nodes.mutations.camera.each_image import View
from mt_nodes.mutations.camera.image_motion_blurred import ImageMotionBlurred, _tiles
from mt_nodes.mutations.joint.particles_in_pictures import with_streaks
from mt_nodes.transforms import move


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("order", ["bgr", "rgb", "mono"])
def test_relit_is_the_formula_to_a_step(order: str, dtype: type) -> None:
    """Gains from a thousandth to three, light beyond white, and picture sizes that cells do not fill."""
    rng, top = np.random.default_rng(3), np.iinfo(dtype).max
    pixels = rng.integers(0, top + 1, (45, 70) if order == "mono" else (45, 70, 3), dtype=dtype)
    gain = (10.0 ** rng.uniform(-3.0, 0.48, pixels.shape)).astype(np.float32)
    offset = (rng.random((*pixels.shape[:2], 3)) ** 4 * 1.2).astype(np.float32)
    gain_rgb = gain if order != "bgr" else gain[..., ::-1]
    new = relit(Picture(pixels, order), gain_rgb, offset, 1)
    own = {"rgb": offset, "bgr": offset[..., ::-1], "mono": offset @ np.array([0.2126, 0.7152, 0.0722])}[order]
    expected = values_of(light_of(pixels / top) * gain + own) * top
    assert np.abs(new - expected).max() <= (1.0 if dtype == np.uint8 else 2.0)


def test_the_depth_of_cells_is_that_of_their_nearest_returns() -> None:
    bundle = street_in("bgr8")
    view = View.of(bundle, bundle.images[0])
    camera, cloud, step = view.camera(), bundle.clouds[0], 4
    points = cloud.points.copy()
    for row, odd in enumerate((np.nan, np.inf, -np.inf, 1e30, 0.0)):
        points["x"][row] = odd
    points["y"][4] = points["z"][4] = 0.0
    cloud = Cloud(cloud.topic, cloud.stamp_ns, cloud.frame_id, points)
    to_camera = bundle.transforms.lookup(view.image.frame_id, cloud.frame_id)
    shape = -(-camera.height // step), -(-camera.width // step)
    told, on_top = np.full(shape, np.inf, np.float32), np.zeros(shape, bool)
    depth._put(cloud, to_camera, camera, step, told, on_top)
    expected, seen = np.full(shape, np.inf), move(to_camera, cloud.xyz)
    ranges, pixels = np.linalg.norm(seen, axis=1), camera.project(seen)
    for at in np.flatnonzero(np.isfinite(pixels).all(axis=1) & np.isfinite(ranges)):
        column, row = ((pixels[at] + 0.5) // step).astype(np.int64)
        if 0 <= column < shape[1] and 0 <= row < shape[0] and cloud.xyz[at, :2].any():
            expected[row, column] = min(expected[row, column], ranges[at])
    np.testing.assert_allclose(told, expected, rtol=1e-6)
    top = np.argwhere(on_top)
    assert len(top) and not on_top[np.isinf(told)].any() and top[:, 0].max() < shape[0] / 2


def test_what_a_camera_sees_is_told_without_angles() -> None:
    camera = View.of(street_in("bgr8"), street_in("bgr8").images[0]).camera()
    xyz = np.random.default_rng(1).normal(size=(5000, 3)) * (0.5, 0.5, 1.0)
    xyz[:6, 2] = np.nan, np.inf, -np.inf, 1e300, 0.0, -1.0
    xyz[6], xyz[7] = (np.inf, 0.0, 1.0), (np.nan, 0.0, 1.0)
    off_axis = np.arctan2(np.hypot(xyz[:, 0], xyz[:, 1]), xyz[:, 2])
    expected = np.isfinite(xyz).all(axis=1) & (off_axis < camera.widest_rad)
    expected[3] = False  # so far away that its range is beyond all numbers
    assert (np.isfinite(camera.project(xyz)).all(axis=1) == expected).all() and 500 < expected.sum() < 4500


def test_streaks_are_mixed_in_linear_light() -> None:
    rng = np.random.default_rng(2)
    light = np.array([0.7, 0.6, 0.5], np.float32)
    for kind in ("bgr8", "mono8", "rgb16"):
        view = View.of(street_in(kind), street_in(kind).images[0])
        pixels, top = view.picture.pixels, view.picture.full_scale
        layer = (rng.random(view.picture.size) < 0.1) * rng.integers(0, 256, view.picture.size)
        new = with_streaks(view, pixels, layer.astype(np.uint8), light)
        share = layer / 255.0 if pixels.ndim == 2 else layer[..., None] / 255.0
        own: Any = {"bgr": light[::-1], "rgb": light, "mono": light.mean()}[view.picture.order]
        expected = values_of(light_of(pixels / top) * (1.0 - share) + share * own) * top
        assert np.abs(new - expected).max() <= (1.0 if top == 255 else 2.0)
        assert (new[layer == 0] == pixels[layer == 0]).all()
        assert with_streaks(view, pixels, np.zeros(view.picture.size, np.uint8), light) is pixels


def test_tiles_cover_what_moves_and_nothing_twice() -> None:
    length = np.zeros((30, 41))
    length[3:9, 5:20], length[15:, 30:], length[25, 2] = 3.0, 40.0, 0.51
    size, counted = (30 * 6 - 2, 41 * 6 - 5), np.zeros((30 * 6 - 2, 41 * 6 - 5), np.int64)
    for tile, steps in _tiles(length, 6, size):
        counted[tile] += 100 + steps
    assert counted.max() < 200
    full = np.repeat(np.repeat(length, 6, axis=0), 6, axis=1)[: size[0], : size[1]]
    assert (counted[full > 0.5] > 100).all() and (counted[full == 40.0] == 104).all()
    assert not counted[:48, 150:].any()  # far from all that moves


@pytest.mark.parametrize(("length_px", "places"), [(0.4, 1), (1.5, 2), (8.0, 4), (30.0, 16)])
def test_a_path_is_averaged_from_its_one_end_to_the_other(
    length_px: float, places: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A picture that brightens to the right, on a path that is the same everywhere."""
    bundle = street_in("bgr8")
    height, width = View.of(bundle, bundle.images[0]).picture.size
    ramp = np.broadcast_to(np.minimum(np.arange(width) * 2, 255).astype(np.uint8)[:, None], (height, width, 3))
    view = View.of(bundle, replace(bundle.images[0], pixels=ramp.copy()))
    path = np.zeros((*depth.depth_of(bundle, bundle.images[0], view.camera()).range_m.shape, 2))
    path[..., 0] = length_px
    monkeypatch.setattr(ImageMotionBlurred, "_path_px", lambda *_, **__: path)
    new = ImageMotionBlurred().change_image(view, {})
    if places == 1:
        assert new is view.picture.pixels
        return
    reached = np.linspace(0.0, length_px, places) if places > 1 else np.zeros(1)
    x = np.arange(90.0)
    expected = np.mean([2.0 * (x + r) for r in reached], axis=0)
    inside = expected + length_px < 255
    assert np.abs(new[height // 2, :90, 0] - expected)[inside].max() <= 1.2
    assert decode(view.image) is view.picture
