# SPDX-License-Identifier: Apache-2.0
"""Encodings, camera models, measures and depth."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_images import COMPRESSED, ENCODINGS, HEIGHT, WIDTH, image_in, street, street_in

from mt_nodes.base.errors import NotApplicable, UsageError
from mt_nodes.data.images import jpeg
from mt_nodes.data.images.codecs import Picture, decode, encode, lossy, spread_px
from mt_nodes.data.messages import CameraInfo, Image
from mt_nodes.data.transforms import TransformTree
from mt_nodes.relations.mutations.camera.each_image import View
from mt_nodes.relations.mutations.joint.fog_dust_smoke import Fog
from mt_nodes.world.camera import depth, measures
from mt_nodes.world.camera.depth import depth_of
from mt_nodes.world.camera.light import colour_of_temperature, light_of, mapped_by_table, table, values_of
from mt_nodes.world.camera.model import CameraModel, rectified

IMAGE = street().images[0]


def info(model: str = "plumb_bob", d: tuple[float, ...] = (), size: tuple[int, int] = (480, 640)) -> CameraInfo:
    height, width = size
    k = np.array([[500.0, 0, width / 2], [0, 510.0, height / 2], [0, 0, 1]])
    p = np.c_[np.diag([400.0, 400.0, 1.0]), np.zeros(3)]
    return CameraInfo("/c/camera_info", 0, "camera", width, height, model, np.array(d), k, np.eye(3), p)


@pytest.mark.parametrize("encoding", [*ENCODINGS, *COMPRESSED])
def test_what_is_not_changed_keeps_its_bytes_and_what_is_shows(encoding: str) -> None:
    image = image_in(encoding, IMAGE)
    picture = decode(image)
    assert picture.size == (HEIGHT, WIDTH)
    if not lossy(image):
        assert content(encode(picture, image)) == content(image) or encoding == "png"
    new = picture.pixels.copy()
    new[40:80, 60:120] //= 2
    made = encode(picture.with_pixels(new), image)
    back, margin = decode(made).pixels, spread_px(image)
    outside = np.ones(picture.size, bool)
    outside[40 - margin : 80 + margin, 60 - margin : 120 + margin] = False
    step = picture.full_scale / 255
    loss = 0 if not lossy(image) else largest(decode(encode(picture, image)).pixels, picture.pixels) + 2 * step
    assert largest(back[outside], picture.pixels[outside]) <= loss
    inner = np.s_[44:76, 64:116]
    assert np.abs(back[inner].astype(float) - new[inner]).mean() < (6 if lossy(image) else 1.5) * step
    assert np.abs(back[inner].astype(float) - picture.pixels[inner]).mean() > 10 * step


def test_a_raw_image_keeps_its_bytes_around_a_single_changed_pixel() -> None:
    for encoding in ("bayer_rggb8", "yuv422", "rgba8", "mono16"):
        image = image_in(encoding, IMAGE)
        new = decode(image).pixels.copy()
        new[50, 70] = 0 if new[50, 70].max() > 100 else np.iinfo(new.dtype).max
        made = encode(decode(image).with_pixels(new), image)
        changed = np.argwhere((made.pixels != image.pixels).reshape(HEIGHT, WIDTH, -1).any(axis=2))
        assert len(changed) in (1, 2), encoding
        assert np.abs(changed - (50, 70)).max() <= 1


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("pattern", ["rggb", "bggr", "gbrg", "grbg"])
def test_a_mosaic_keeps_every_sample_whose_colour_stays(pattern: str, dtype: type) -> None:
    """Along the edges, too: one colour changes everywhere, samples of the others are those that they were."""
    raw = np.random.default_rng(8).integers(20, 230, (18, 22)).astype(dtype)
    image = replace(IMAGE, encoding=f"bayer_{pattern}{raw.itemsize * 8}", pixels=raw)
    picture = decode(image)
    for channel, colour in enumerate("bgr"):
        new = picture.pixels.copy()
        new[..., channel] += 9
        own = np.tile(np.array([c == colour for c in pattern]).reshape(2, 2), (9, 11))
        assert (encode(picture.with_pixels(new), image).pixels == raw + 9 * own.astype(dtype)).all()
    one_colour = np.broadcast_to(np.array([10, 90, 200], dtype), (18, 22, 3))
    flat = encode(picture.with_pixels(one_colour), image)
    assert (decode(flat).pixels == one_colour).all()


@pytest.mark.parametrize("encoding", ["rgb8", "bayer_bggr8", "yuv422", "rgba16", "mono8", "jpeg"])
def test_pictures_show_the_same_scene_as_red_green_blue(encoding: str) -> None:
    expected = cv2.cvtColor(np.asarray(IMAGE.pixels), cv2.COLOR_BGR2RGB)
    got = decode(image_in(encoding, IMAGE)).rgb8()
    assert got.dtype == np.uint8
    if encoding == "mono8":
        expected = np.repeat(expected[..., 1:2], 3, axis=2)
    assert np.abs(got.astype(float) - expected).mean() < (6 if encoding in ("bayer_bggr8", "jpeg", "yuv422") else 0.01)


@pytest.mark.parametrize("endian", ["<", ">"])
def test_byte_order_is_kept(endian: str) -> None:
    image = image_in("mono16", IMAGE)
    image = replace(image, pixels=image.pixels.astype(f"{endian}u2"))
    picture = decode(image)
    assert picture.pixels.dtype.isnative
    made = encode(picture.with_pixels(picture.pixels // 2), image)
    assert made.pixels.dtype == image.pixels.dtype
    assert (made.pixels.astype(int) == image.pixels.astype(int) // 2).all()


@pytest.mark.parametrize(
    ("image", "words"),
    [
        (replace(IMAGE, encoding="32FC1", pixels=np.zeros((4, 4), np.float32)), "encoding '32FC1'"),
        (replace(IMAGE, encoding="yuv422", pixels=np.zeros((4, 5, 2), np.uint8)), "in twos"),
        (replace(IMAGE, encoding="bayer_rggb8", pixels=np.zeros((5, 4), np.uint8)), "in twos"),
        (replace(IMAGE, pixels=np.zeros((0, 0, 3), np.uint8)), "shows nothing"),
        (replace(image_in("jpeg", IMAGE), compressed=b""), "expected JPEG or PNG"),
        (replace(image_in("jpeg", IMAGE), compressed=b"RIFF1234"), "expected JPEG or PNG"),
        (replace(image_in("jpeg", IMAGE), compressed=image_in("jpeg", IMAGE).compressed[:-900]), "cut off or damaged"),
        (replace(image_in("png", IMAGE), compressed=image_in("png", IMAGE).compressed[:-900]), "cut off or damaged"),
        (replace(image_in("jpeg", IMAGE), compressed=b"\xff\xd8\xff\xd9"), "cut off or damaged"),
    ],
    ids=["depth", "odd_yuv", "odd_bayer", "empty", "no_data", "webp", "torn_jpeg", "torn_png", "hollow_jpeg"],
)
def test_what_shows_no_picture_is_refused_by_name(image: Image, words: str) -> None:
    with pytest.raises(UsageError, match=words) as refused:
        decode(image)
    assert IMAGE.topic in str(refused.value)


def test_a_picture_that_does_not_fit_is_refused() -> None:
    for pixels in (np.zeros((4, 4, 3), np.uint8), np.zeros((HEIGHT, WIDTH, 3), np.uint16)):
        with pytest.raises(UsageError, match="expected"):
            encode(Picture(pixels, "bgr"), IMAGE)


@given(quality=st.integers(1, 100), sampling=st.sampled_from([0x221111, 0x211111, 0x111111, 0x411111]))
@settings(max_examples=25, deadline=None)
def test_a_jpeg_tells_how_it_was_coded(quality: int, sampling: int) -> None:
    given = [cv2.IMWRITE_JPEG_QUALITY, quality, cv2.IMWRITE_JPEG_SAMPLING_FACTOR, sampling]
    data = cv2.imencode(".jpg", np.asarray(IMAGE.pixels), given)[1].tobytes()
    assert jpeg.settings_of(data) == given


def test_the_light_of_values_and_back() -> None:
    values = np.linspace(0, 1, 257)
    np.testing.assert_allclose(values_of(light_of(values)), values, atol=1e-6)
    assert light_of(0.5) == pytest.approx(0.21404, abs=1e-5)  # IEC 61966-2-1, worked by hand
    double = table(lambda v: v * 2, np.dtype(np.uint8))
    assert (mapped_by_table(np.array([[0, 10, 200]], np.uint8), double) == [[0, 20, 255]]).all()


@pytest.mark.parametrize(("kelvin", "redder"), [(2000.0, True), (3000.0, True), (10000.0, False)])
def test_black_bodies_are_red_when_cool_and_blue_when_hot(kelvin: float, redder: bool) -> None:
    red, green, blue = colour_of_temperature(kelvin)
    assert (red > green > blue) == redder
    white = colour_of_temperature(6504.0)
    assert max(white) / min(white) < 1.07  # the daylight white of sRGB lies beside the black body, not on it


@pytest.mark.parametrize(
    ("model", "d"),
    [
        ("plumb_bob", ()),
        ("plumb_bob", (-0.3, 0.1, 0.001, -0.002, 0.0)),
        ("rational_polynomial", (0.2, -0.1, 0.0, 0.0, 0.01, 0.1, 0.0, 0.0)),
        ("equidistant", (0.02, -0.01, 0.003, 0.0)),
    ],
    ids=["none", "plumb_bob", "rational", "fisheye"],
)
def test_pixels_look_where_they_are_projected_from(model: str, d: tuple[float, ...]) -> None:
    camera = CameraModel.of(info(model, d), (480, 640))
    grid = camera.grid(16)
    pixels = camera.project(grid.reshape(-1, 3) * 7.0)
    x, y = np.meshgrid(np.arange(0, 640, 16) + 7.5, np.arange(0, 480, 16) + 7.5)
    np.testing.assert_allclose(pixels, np.column_stack([x.ravel(), y.ravel()]), atol=0.05)
    np.testing.assert_allclose(np.linalg.norm(grid, axis=2), 1.0)


def test_a_pinhole_is_the_one_of_the_textbook() -> None:
    camera = CameraModel.of(info(), (480, 640))
    np.testing.assert_allclose(camera.project([[1.0, -0.5, 10.0]]), [[320 + 50.0, 240 - 25.5]])
    assert np.isnan(camera.project([[0.0, 0.0, -1.0], [np.nan, 0, 1], [9.0, 0.0, 0.1]])).all()


def test_distortion_does_not_fold_what_is_far_aside_into_the_picture() -> None:
    camera = CameraModel.of(info(d=(-0.35, 0.15, 0.0, 0.0, -0.04)), (480, 640))
    aside = camera.project([[np.tan(a), 0.0, 1.0] for a in np.radians(np.arange(55, 89))])
    assert np.isnan(aside).any(axis=1).all()


def test_calibrations_follow_a_scaled_picture_and_refuse_another_shape() -> None:
    half = CameraModel.of(info(), (240, 320))
    full = CameraModel.of(info(), (480, 640))
    point = [[1.0, -0.5, 10.0]]
    np.testing.assert_allclose(half.project(point), (full.project(point) + 0.5) / 2 - 0.5)
    with pytest.raises(UsageError, match="640 x 480"):
        CameraModel.of(info(), (300, 640))
    with pytest.raises(UsageError, match="not calibrated"):
        CameraModel.of(replace(info(), k=np.zeros((3, 3))), (480, 640))
    with pytest.raises(UsageError, match="'omni'"):
        CameraModel.of(info("omni"), (480, 640))


def test_rectified_topics_are_seen_by_the_projection_matrix() -> None:
    assert rectified("/front/image_rect_color")
    assert not rectified("/rectifier/image_raw")
    camera = CameraModel.of(info(d=(-0.3, 0.1, 0.0, 0.0, 0.0)), (480, 640), rectified=True)
    assert camera.k[0, 0] == 400.0
    assert not len(camera.d)


def made(**what: np.ndarray) -> Picture:
    return Picture(what["pixels"].astype(np.uint8), "rgb")


def test_measures_tell_what_they_are_named_for() -> None:
    rng = np.random.default_rng(0)
    grey = np.full((64, 64, 3), 100, np.uint8)
    plain = made(pixels=grey)
    noisy = made(pixels=np.clip(grey + rng.normal(0, 8, (64, 64, 1)), 0, 255))
    assert measures.brightness(plain) == pytest.approx(100 / 255, abs=0.002)
    assert measures.contrast(plain) == 0.0
    assert measures.noise(plain) == 0.0
    assert measures.noise(noisy) == pytest.approx(8 / 255, rel=0.25)
    assert measures.sharpness(noisy) > measures.sharpness(plain)
    assert measures.saturation(plain) == 0.0
    assert measures.saturation(made(pixels=grey + np.array([50, 0, 0]))) == pytest.approx(50 / 255)
    assert measures.colour(made(pixels=grey + np.array([50, 0, 0])))[0] == pytest.approx(150 / 255)
    assert measures.ends(noisy)[0] < measures.ends(noisy)[1]
    half = np.zeros((64, 64), np.uint8)
    half[:32] = 255
    bright = grey.copy()
    bright[:32] += 90
    assert measures.brightness(made(pixels=bright), half) == pytest.approx(190 / 255, abs=0.002)
    assert measures.share_at_least(made(pixels=bright), 0.5) == 0.5
    assert measures.share_changed(plain, made(pixels=bright), 0.1) == 0.5
    assert measures.largest_difference(plain, made(pixels=bright), 255 - half) == 0.0
    assert measures.mean_difference(plain, made(pixels=bright)) == pytest.approx(45 / 255)


def test_blocks_are_seen_in_a_poor_jpeg() -> None:
    poor = cv2.imdecode(cv2.imencode(".jpg", np.asarray(IMAGE.pixels), [cv2.IMWRITE_JPEG_QUALITY, 8])[1], 1)
    assert measures.blockiness(Picture(poor, "bgr")) > 1.2 * measures.blockiness(decode(IMAGE))


def test_depth_is_that_of_the_scene() -> None:
    bundle = street()
    view = View.of(bundle, bundle.images[0])
    camera, depth = view.camera(), depth_of(bundle, bundle.images[0], view.camera())
    assert depth_of(bundle, bundle.images[0], camera) is depth
    assert depth.range_m.shape == depth.measured.shape
    assert 0.2 < depth.measured.mean() < 1.0
    # Flat road right ahead: the range follows from the camera's height alone.
    pose = bundle.transforms.lookup("base_link", "camera")
    down = -(camera.grid(depth.step_px) @ pose[2, :3])
    road = np.s_[-6:, depth.range_m.shape[1] // 2]
    np.testing.assert_allclose(depth.range_m[road], (pose[2, 3] / down)[road], rtol=0.1)
    full = depth.in_picture(depth.range_m, view.picture.size)
    assert full.shape == view.picture.size


def test_below_the_lowest_beam_lies_flat_ground() -> None:
    bundle = street()
    cloud = bundle.clouds[0]
    high = np.degrees(np.arctan2(cloud.xyz[:, 2], np.hypot(cloud.xyz[:, 0], cloud.xyz[:, 1]))) > -8.0
    narrow = replace(bundle, images=(replace(bundle.images[0]),)).with_clouds([cloud.with_raw(cloud.raw[high])])
    camera = View.of(narrow, narrow.images[0]).camera()
    depth = depth_of(narrow, narrow.images[0], camera)
    pose = narrow.transforms.lookup("base_link", "camera")
    down = -(camera.grid(depth.step_px) @ pose[2, :3])
    bottom = np.s_[-3:, depth.range_m.shape[1] // 2]
    assert not depth.measured[bottom].any()
    np.testing.assert_allclose(depth.range_m[bottom], (pose[2, 3] / down)[bottom], rtol=0.01)


def test_depth_says_what_it_lacks() -> None:
    bundle = street()
    image, camera = bundle.images[0], View.of(bundle, bundle.images[0]).camera()
    for odd, words in (
        (replace(bundle, clouds=()), "no cloud"),
        (replace(bundle, transforms=TransformTree()), "where /sensing/lidar/points lies is not known"),
    ):
        with pytest.raises(NotApplicable, match=words):
            depth_of(odd, replace(image), camera)


def test_fog_says_where_the_depth_that_it_goes_by_is_not_known() -> None:
    bundle = street()
    fog = Fog(visibility_m=60.0, ego_speed_mps=0.0)
    followup = fog.apply(bundle, fog.draw(np.random.default_rng(0), bundle, None))
    doubtful = followup.effects.doubtful_depth[bundle.images[0].topic]
    assert (
        doubtful.cells.shape
        == depth_of(bundle, bundle.images[0], View.of(bundle, bundle.images[0]).camera()).range_m.shape
    )
    assert 0.0 < doubtful.cells.mean() < 1 / 3
    cloud = bundle.clouds[0]
    low = np.degrees(np.arctan2(cloud.xyz[:, 2], np.hypot(cloud.xyz[:, 0], cloud.xyz[:, 1]))) < -9.0
    blind = replace(bundle, images=(replace(bundle.images[0]),)).with_clouds([cloud.with_raw(cloud.raw[low])])
    with pytest.raises(
        NotApplicable, match=r"do not tell how far away \d+% of it is well enough; expected 33% at most"
    ):
        fog.draw(np.random.default_rng(0), blind, None)


def test_a_network_s_depth_counts_above_the_beams_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    bundle = street()
    image, camera = replace(bundle.images[0]), View.of(bundle, bundle.images[0]).camera()
    without = depth_of(bundle, bundle.images[0], camera)
    says = (np.full_like(without.range_m, 33.0), 0.1)
    monkeypatch.setattr(depth, "monocular_m", lambda *_: says)
    found = depth_of(bundle, image, camera)
    row = np.arange(len(found.range_m))[:, None]
    above = (row < np.where(found.measured.any(axis=0), found.measured.argmax(axis=0), 0)) & np.isfinite(found.range_m)
    told = above & (found.range_m == 33.0)
    assert told.sum() > 0.9 * above.sum() > 100
    np.testing.assert_allclose(found.bounds_m[0][told], 29.7, rtol=1e-5)
    np.testing.assert_allclose(found.bounds_m[1][told], 36.3, rtol=1e-5)
    assert (found.through_m[found.measured] == without.through_m[found.measured]).all()


def test_a_view_finds_its_calibration_or_says_what_there_is() -> None:
    bundle = street_in("bgr8")
    view = View.of(bundle, bundle.images[0])
    assert view.info is bundle.camera_infos[0]
    for infos, words in (
        ((), "no CameraInfo"),
        ((replace(bundle.camera_infos[0], topic="/other/info", frame_id="rear"),), "/other/info"),
        ((replace(bundle.camera_infos[0], k=np.zeros((3, 3)), p=np.zeros((3, 4))),), "not calibrated"),
        ((replace(bundle.camera_infos[0], width=100),), "the calibration is of 100"),
    ):
        with pytest.raises(NotApplicable, match=words):
            View.of(replace(bundle, camera_infos=infos), bundle.images[0]).camera()


def content(image: Image) -> bytes:
    return image.compressed if image.compressed is not None else image.pixels.tobytes()


def largest(some: np.ndarray, others: np.ndarray) -> float:
    return float(np.abs(some.astype(float) - others).max())
