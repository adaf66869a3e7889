# SPDX-License-Identifier: Apache-2.0
"""Short cuts of the camera's side say what the long way says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import cv2
import numpy as np
import pytest
from made_images import street_in

from mt_nodes.base.errors import NotApplicable
from mt_nodes.base.plugins import catalogue
from mt_nodes.data.images.codecs import Picture, Pixels, decode
from mt_nodes.data.messages import Bundle, Cloud, Image
from mt_nodes.data.transforms import move
from mt_nodes.relations.mutations.camera import white_balance
from mt_nodes.relations.mutations.camera.each_image import View
from mt_nodes.relations.mutations.camera.image_blurred import ImageDefocused, ImageMotionBlurred, _tiles, _widths
from mt_nodes.relations.mutations.camera.image_warped import ImageWarped
from mt_nodes.relations.mutations.camera.image_warps import ImageScaled, ImageSheared, ImageTranslated
from mt_nodes.relations.mutations.camera.on_the_lens import LensDrops
from mt_nodes.relations.mutations.joint.particles_in_pictures import _widest, with_streaks
from mt_nodes.relations.pipeline import MutationPipeline
from mt_nodes.world.camera import depth, local_relight, relight, sparse_depth
from mt_nodes.world.camera.depth_completion import _gaps
from mt_nodes.world.camera.light import light_of, values_of
from mt_nodes.world.camera.relight import blended, relit
from mt_nodes.world.camera.sky_cells import like_hit, sky_in


def view_of(pixels: Pixels) -> View:
    """A view of pixels alone."""
    encoding = ("mono" if pixels.ndim == 2 else "bgr") + str(8 * pixels.itemsize)
    image = Image("/camera/image", 5, "camera", pixels, encoding)
    return View.of(Bundle(0, 0, 5, images=(image,)), image)


def blobs(height: int, width: int, dtype: type = np.uint8) -> Pixels:
    """Blobs and soft edges, (H, W, 3)."""
    coarse = np.random.default_rng(4).random((height // 8, width // 8, 3), np.float32)
    return (cv2.resize(coarse, (width, height)) * np.iinfo(dtype).max).astype(dtype)


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
    far = np.zeros(shape, np.float32)
    sparse_depth.project_returns(cloud, to_camera, camera, step, (told, far), on_top)
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
    monkeypatch.setattr(ImageMotionBlurred, "path_px", lambda *_, **__: path)
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


AIRS = [(0.6, 0.6, 0.6), (0.02, 0.02, 0.02), (0.85, 0.7, 0.5), (1.0, 1.0, 1.0), (0.02, 0.015, 0.0)]


@pytest.mark.parametrize("air", AIRS, ids=str)
@pytest.mark.parametrize("order", ["bgr", "rgb", "mono"])
def test_blended_is_the_formula_to_a_step(order: str, air: tuple[float, ...]) -> None:
    """Every sample, with shares near nothing and near all."""
    shares = np.concatenate([np.geomspace(1e-4, 1.0, 90), 1.0 - np.geomspace(1e-4, 1.0, 90), np.linspace(0, 1, 60)])
    gain = np.repeat(shares[:, None], 256, axis=1).astype(np.float32)
    samples = np.broadcast_to(np.arange(256, dtype=np.uint8), gain.shape)
    pixels = samples.copy() if order == "mono" else np.repeat(samples[..., None], 3, axis=2)
    light = np.array(air, np.float32)
    new = blended(Picture(pixels, order), gain, light, 1)
    own = {"rgb": light, "bgr": light[::-1], "mono": light @ np.array([0.2126, 0.7152, 0.0722])}[order]
    share = gain if order == "mono" else gain[..., None]
    expected = values_of(light_of(pixels / 255.0) * share + own * (1.0 - share)) * 255.0
    assert np.abs(new - expected).max() <= 1.25
    assert (new[shares == 1.0] == pixels[shares == 1.0]).all()


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_blended_interpolates_between_cells_as_relit_does(dtype: type) -> None:
    picture, air = Picture(blobs(83, 77, dtype), "rgb"), np.array([0.5, 0.4, 0.3], np.float32)
    share = np.random.default_rng(5).random((14, 13), np.float32)
    apart = cv2.absdiff(blended(picture, share, air, 6), relit(picture, share, (1.0 - share)[..., None] * air, 6))
    assert apart.max() <= 1


@pytest.mark.parametrize("size", [(90, 128), (91, 128), (90, 130), (5, 131)])
def test_light_of_cells_beyond_an_edge_is_that_of_the_edge(size: tuple[int, int]) -> None:
    pixels, cell_px = np.random.default_rng(6).integers(0, 256, (*size, 3), np.uint8), 6
    shape = -(-size[0] // cell_px), -(-size[1] // cell_px)
    beyond = [(0, n * cell_px - side) for n, side in zip(shape, size, strict=True)]
    wide = np.pad(pixels, (*beyond, (0, 0)), mode="edge").reshape(shape[0], cell_px, shape[1], cell_px, 3)
    expected = light_of(wide.mean(axis=(1, 3)) / 255.0)
    assert np.abs(relight.coarse_light(Picture(pixels, "rgb"), shape, cell_px) - expected).max() < 0.006


@pytest.mark.parametrize("radius_px", [0.5, 3.0, 30.0])
def test_stripes_are_blurred_as_one(radius_px: float) -> None:
    pixels = np.random.default_rng(7).integers(0, 256, (150, 40, 3), np.uint8)
    expected = pixels
    for width in _widths(radius_px):
        expected = cv2.blur(expected, (width, width), borderType=cv2.BORDER_REFLECT_101)
    assert (ImageDefocused(radius_px).change_image(view_of(pixels), {}) == expected).all()


@pytest.mark.parametrize("border", ["black", "edge", "mirror"])
@pytest.mark.parametrize(
    "mutation",
    [
        *(ImageScaled(factor=factor) for factor in (1.05, 2.0, 1.37, 0.8, 0.5, 0.9997)),
        *(ImageSheared(shear=shear) for shear in (0.02, -0.3, 0.5)),
        *(ImageTranslated(right=right, down=down) for right, down in ((0.1, 0.2), (-0.5, 0.0), (0.3, -0.5))),
    ],
    ids=str,
)
def test_short_ways_carry_pixels_as_the_matrix_does(mutation: ImageWarped, border: str) -> None:
    """Within what places rounded to the 32nd of a pixel make."""
    for pixels in (blobs(96, 136), blobs(67, 91, np.uint16), blobs(67, 91)[..., 0]):
        own, view = replace(mutation, border=border), view_of(pixels)
        short, long = own.change_image(view, {}), ImageWarped.change_image(own, view, {})
        assert (short.shape, short.dtype) == (pixels.shape, pixels.dtype)
        apart = cv2.absdiff(np.ascontiguousarray(short), long)[1:-1, 1:-1] / np.iinfo(pixels.dtype).max
        assert apart.max() <= 0.05 and apart.mean() <= 0.003


def test_a_drop_shows_its_surroundings_upside_down() -> None:
    """A picture that brightens to the right and, in another colour, downward."""
    right, down = np.meshgrid(np.arange(240.0), np.arange(160.0))
    view = view_of(np.stack([right, down, right], axis=-1).astype(np.uint8))
    spots = np.array([[120.0 / 240, 80.0 / 240, 12.3 / 240]], np.float32)
    new = LensDrops(view_widths=3.0).change_image(view, {"spots": spots}).astype(float)
    y, x = np.mgrid[77:84, 117:124]  # where it covers fully, within half of the radius: its edge is soft
    # The middle of a spot's rectangle of whole pixels lies half a pixel beside its own.
    assert np.abs(new[77:84, 117:124, 0] - (120.5 - 3.0 * (x - 120.5))).max() <= 1.0
    assert np.abs(new[77:84, 117:124, 1] - (80.5 - 3.0 * (y - 80.5))).max() <= 1.0
    assert (new[:60] == view.picture.pixels[:60]).all()


def test_one_pixel_is_enough_for_a_picture_to_show_something() -> None:
    pixels = np.full((64, 64, 3), 90, np.uint8)
    with pytest.raises(NotApplicable, match="shows nothing"):
        ImageSheared().draw(np.random.default_rng(0), view_of(pixels).bundle, None)
    pixels[37, 21] = 200
    assert ImageSheared().draw(np.random.default_rng(0), view_of(pixels).bundle, None) == {}


def test_the_widest_particles_of_all_classes_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mt_nodes.relations.mutations.joint.particles_in_pictures._MOST", 3)
    at = np.arange(15, dtype=np.float32).reshape(5, 3).T
    near = [
        (at, np.arange(5, dtype=np.float32), np.array([0, 2, 4]), np.array([9.0, 1.0, 5.0], np.float32)),
        (at + 100, np.arange(5, dtype=np.float32), np.array([1, 3]), np.array([4.0, 7.0], np.float32)),
    ]
    place, diameter, width = _widest(near)
    assert width.tolist() == [9.0, 5.0, 7.0] and diameter.tolist() == [0.0, 4.0, 3.0]
    assert place.tolist() == [[0, 1, 2], [12, 13, 14], [109, 110, 111]]
    assert [len(part) for part in _widest([])] == [0, 0, 0]


@pytest.mark.parametrize(
    ("wall", "goes_on", "seen_as_sky"),
    [
        (0.5, True, False),  # half as bright as the sky, and it goes on above what the topmost beams hit
        (0.5, False, True),  # nothing was hit there that could go on
        (0.9, True, True),  # as bright as the sky: no picture says for sure
        (0.3, False, False),  # too dark for sky, whatever was hit
    ],
)
def test_a_wall_above_the_topmost_beam_is_no_sky(wall: float, goes_on: bool, seen_as_sky: bool) -> None:
    light = np.ones((20, 30, 3), np.float32)
    light[4:, 10:20] = wall
    above = np.zeros((20, 30), bool)
    above[:12] = True
    top = np.full((1, 30), 12)
    sky = sky_in(light, above, top, np.full((1, 30), goes_on))
    assert sky[:3].all()
    assert (sky[6:11, 12:18] == seen_as_sky).all()
    assert sky[6:11, :8].all(), "the sky beside it is as bright as itself"


@pytest.mark.parametrize(("colour", "seen_as_sky"), [((0.6, 0.8, 0.9), True), ((0.55, 0.8, 0.3), False)])
def test_leaves_as_bright_as_the_sky_are_none(colour: tuple[float, ...], seen_as_sky: bool) -> None:
    light = np.ones((20, 30, 3), np.float32)
    light[4:, 10:20] = colour
    above = np.arange(20)[:, None] < np.full((1, 30), 12)
    sky = sky_in(light, above, np.full((1, 30), 12), np.zeros((1, 30), bool))
    assert (sky[6:11, 12:18] == seen_as_sky).all() and sky[:3].all()


def test_a_wall_as_bright_as_the_sky_but_of_another_colour_is_none() -> None:
    """Above a low car, too, which hides it from the topmost beams; where the sky has its colour, nobody can tell."""
    for sky, is_wall in (((0.35, 0.5, 0.8), True), ((0.5, 0.55, 0.52), False)):
        light = np.full((24, 36, 3), sky, np.float32)
        light[4:, 6:30] = (0.5, 0.55, 0.52)
        top = np.full((1, 36), 19)
        above = np.arange(24)[:, None] < top
        goes_on = np.zeros((1, 36), bool)
        goes_on[:, 6:14] = goes_on[:, 20:30] = True
        found = sky_in(light, above, top, goes_on)
        assert found[:3].all()
        assert (found[7:18, 8:28] != is_wall).all()


def test_what_looks_like_the_wall_below_it_may_be_that_wall() -> None:
    light = np.ones((20, 30, 3), np.float32)
    light[:, 10:20] = 0.5
    alike = like_hit(light, np.full((1, 30), 12))
    assert alike.all()
    light[:6, 10:20] = 0.9
    assert not like_hit(light, np.full((1, 30), 12))[:6, 10:20].any()


def test_gaps_between_beams_are_those_between_the_next_rows_above_and_below() -> None:
    measured = np.random.default_rng(8).random((60, 50)) < 0.2
    rows = np.arange(60)[:, None]
    above = np.maximum.accumulate(np.where(measured, rows, -1), axis=0)
    below = np.minimum.accumulate(np.where(measured, rows, 60)[::-1], axis=0)[::-1]
    within = ~measured & (above >= 0) & (below < 60) & (below - above <= 8)
    up, down = (rows - above)[within], (below - rows)[within]
    for found, expected in zip(_gaps(measured), (np.flatnonzero(within), up, down), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("module", [local_relight, white_balance])
def test_stripes_of_a_picture_have_no_seams(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pixels, rng = np.clip(blobs(203, 150).astype(int) * 2, 0, 255).astype(np.uint8), np.random.default_rng(9)
    samples = np.sort(rng.random((3, 2, 34, 25), np.float32), axis=1)
    light = rng.random((3, 2, 34, 25), np.float32)
    made = []
    for cells in (4, 1000):
        monkeypatch.setattr(module, "_STRIPE_CELLS", cells)
        if module is local_relight:
            made.append(local_relight.relit_locally(Picture(pixels, "bgr"), samples, light, 6, negative=True))
        else:
            made.append(white_balance.WhiteBalanceShifted().change_image(view_of(pixels), {}))
    np.testing.assert_array_equal(*made)
    assert (made[0] != pixels).any()


@pytest.mark.parametrize("name", ["rain", "fog", "dusk", "white_balance_shifted"])
def test_what_is_cached_of_one_bundle_does_not_reach_another(name: str) -> None:
    """The others have the same camera at the same time, and another picture, or no returns from farther than 20 m."""
    street = street_in("bgr8")
    source, image = replace(street, clouds=(), extra_clouds=street.clouds), street.images[0]
    darker = replace(image, pixels=image.pixels // 2)
    front = tuple(c.with_raw(c.raw[c.xyz[:, 0] < 20.0]) for c in street.clouds)
    others = [replace(source, images=(darker,)), replace(source, images=(replace(image),), extra_clouds=front)]
    first = _changed(name, replace(source, images=(replace(image),)))
    made = [_changed(name, other) for other in others]
    np.testing.assert_array_equal(_changed(name, replace(source, images=(replace(image),))), first)
    assert (made[0] != first).any(), "another picture"
    assert name == "white_balance_shifted" or (made[1] != first).any(), "other ranges"


def _changed(name: str, bundle: Bundle) -> Pixels:
    pipeline = MutationPipeline([catalogue("mutations")[name]()], 0, "test")
    return decode(pipeline.derive(bundle).followup.first.images[0]).pixels
