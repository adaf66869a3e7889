# SPDX-License-Identifier: Apache-2.0
"""The sham of cameras, and when a run takes it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import cv2
import numpy as np
import pytest

from mt_nodes.data.images.codecs import decode
from mt_nodes.data.messages import Bundle, Image
from mt_nodes.relations.mutations.base import Followup
from mt_nodes.relations.mutations.camera.pixels_dithered import PixelsDithered
from mt_nodes.relations.relation import CAMERA_SHAM, CONTROL, JOINT_SHAM, SHAM, load_suite, sham_for

HIGH, WIDE = 60, 80


def image(encoding: str, pixels: Any = None, compressed: bytes | None = None) -> Image:
    if pixels is None:
        channels = () if encoding == "mono8" else (3,)
        pixels = np.random.default_rng(0).integers(0, 256, (HIGH, WIDE, *channels), dtype=np.uint8)
    return Image("/camera/image", 5, "camera", pixels, encoding, compressed)


def bundle(one: Image) -> Bundle:
    return Bundle(0, 0, 5, images=(one,))


def made(one: Image, number: int = 0) -> tuple[Followup, Any]:
    draw = PixelsDithered().draw(np.random.default_rng(number), bundle(one), None)
    return PixelsDithered().apply(bundle(one), draw), draw


def changed(one: Image) -> Any:
    new = made(one)[0].first.images[0].pixels
    return new.astype(np.int64) - one.pixels.astype(np.int64)


@pytest.mark.parametrize("encoding", ["mono8", "rgb8", "bgr8"])
def test_a_quarter_of_the_samples_change_by_one_step_up_and_down(encoding: str) -> None:
    apart = changed(image(encoding))
    assert set(np.unique(apart)) == {-1, 0, 1}
    assert (apart == 1).mean() == pytest.approx(0.125, abs=0.02) == (apart == -1).mean()


def test_what_would_leave_the_scale_stays_and_alpha_and_padding_do() -> None:
    ends = np.zeros((HIGH, WIDE, 4), np.uint8)
    ends[::2] = 255
    apart = changed(image("bgra8", ends))
    assert (apart[1::2, :, :3] >= 0).all() and (apart[::2, :, :3] <= 0).all() and (apart[..., 3] == 0).all()
    assert (apart[..., :3] != 0).mean() == pytest.approx(0.125, abs=0.02)


def test_a_step_is_one_of_255_in_16_bits_too() -> None:
    pixels = np.random.default_rng(0).integers(1000, 64000, (HIGH, WIDE), dtype=np.uint16)
    assert set(np.unique(changed(image("mono16", pixels)))) == {-257, 0, 257}


@pytest.mark.parametrize("encoding", ["bayer_rggb8", "yuv422_yuy2"])
def test_encodings_whose_pixels_share_samples_are_dithered_within_the_bound(encoding: str) -> None:
    channels = (2,) if "yuv" in encoding else ()
    smooth = np.random.default_rng(0).integers(110, 140, (HIGH, WIDE, *channels), dtype=np.uint8)
    one = image(encoding, smooth)
    followup, draw = made(one)
    assert PixelsDithered().guarantee(bundle(one), followup, draw) is None
    assert set(np.unique(changed(one))) == {-1, 0, 1}


def coded(kind: str, pixels: Any, *settings: int) -> Image:
    data = cv2.imencode(kind, pixels, settings)[1].tobytes()
    return image("bgr8; compressed", np.empty((0, 0), np.uint8), data)


def test_a_png_is_dithered_as_its_pixels_are() -> None:
    one = coded(".png", image("bgr8").pixels)
    followup, draw = made(one)
    assert PixelsDithered().guarantee(bundle(one), followup, draw) is None


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("quality", [30, 75, 95])
def test_a_jpeg_differs_by_a_few_steps_whatever_it_shows_and_however_it_was_coded(quality: int, channels: int) -> None:
    noise = np.random.default_rng(quality).integers(0, 256, (HIGH, WIDE, channels), dtype=np.uint8)
    ramp = np.broadcast_to(np.linspace(0, 255, WIDE)[:, None], (HIGH, WIDE, channels)).astype(np.uint8)
    for pixels in (noise, ramp):
        one = coded(".jpg", pixels, cv2.IMWRITE_JPEG_QUALITY, quality)
        followup, draw = made(one)
        assert PixelsDithered().guarantee(bundle(one), followup, draw) is None
        before, after = (decode(i).pixels.astype(int) for i in (one, followup.first.images[0]))
        assert 0.1 < np.abs(after - before).mean() < 1.0
        assert 1 <= np.abs(after - before).max() <= 6


@pytest.mark.parametrize("tamper", ["coarse", "brighter"])
def test_the_guarantee_catches_a_jpeg_that_lost_more_than_rounding(tamper: str) -> None:
    noise = np.random.default_rng(0).integers(20, 236, (HIGH, WIDE, 3), dtype=np.uint8)
    one = coded(".jpg", noise, cv2.IMWRITE_JPEG_QUALITY, 90)
    followup, draw = made(one)
    pixels = decode(one).pixels
    worse = cv2.imencode(".jpg", pixels, (cv2.IMWRITE_JPEG_QUALITY, 90))[1]
    if tamper == "brighter":  # by two steps everywhere: each sample is within the bound, their mean is not
        best = (cv2.IMWRITE_JPEG_QUALITY, 100, cv2.IMWRITE_JPEG_SAMPLING_FACTOR, 0x111111)
        worse = cv2.imencode(".jpg", cv2.add(pixels, (2, 2, 2, 0)), best)[1]
    wrong = replace(followup.first, images=(replace(one, compressed=worse.tobytes()),))
    told = PixelsDithered().guarantee(bundle(one), Followup(((0, wrong),)), draw)
    assert told is not None
    assert ("on average" in told) == (tamper == "brighter")


@pytest.mark.parametrize("tamper", ["two_steps", "nothing", "a_patch"])
def test_the_guarantee_catches_tampering(tamper: str) -> None:
    one = image("bgr8")
    followup, draw = made(one)
    assert PixelsDithered().guarantee(bundle(one), followup, draw) is None
    pixels = followup.first.images[0].pixels.copy()
    if tamper == "two_steps":
        row, column, channel = np.argwhere((one.pixels > 2) & (one.pixels < 253))[0]
        pixels[row, column, channel] = one.pixels[row, column, channel] + 2
    elif tamper == "nothing":
        pixels = one.pixels.copy()
    else:
        pixels[10:20, 10:20] = 0
    wrong = replace(followup.first, images=(replace(followup.first.images[0], pixels=pixels),))
    assert PixelsDithered().guarantee(bundle(one), Followup(((0, wrong),)), draw)


def test_another_draw_is_another_pattern_and_the_same_one_the_same() -> None:
    one = image("bgr8")
    (first, draw), (other, _) = made(one), made(one, 1)
    again = PixelsDithered().apply(bundle(one), draw)
    a, b, c = (followup.first.images[0].pixels for followup in (first, again, other))
    assert np.array_equal(a, b) and not np.array_equal(a, c)


@pytest.mark.parametrize(
    ("sensors", "sham"),
    [
        ({"lidar"}, SHAM),
        ({"lidar", "camera", "camera_info"}, JOINT_SHAM),
        ({"camera"}, CAMERA_SHAM),
        ({"camera", "camera_info"}, CAMERA_SHAM),
    ],
)
def test_a_stack_gets_the_sham_of_what_it_looks_through(sensors: set[str], sham: str) -> None:
    assert sham_for(sensors) == sham
    suite = load_suite(["image_mirrored_steering"], sham_for(sensors))
    assert [r.id for r in suite.all] == [CONTROL, sham, "image_mirrored_steering"]
    assert suite.sham.role == "sham"
