# SPDX-License-Identifier: Apache-2.0
"""Pictures mirrored, shifted, scaled, turned and sheared; calibrations that follow."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import cv2
import numpy as np
import pytest

from mt_nodes.base.errors import NotApplicable, UsageError
from mt_nodes.base.seeds import generator
from mt_nodes.data.effects import Effects, ImageBox
from mt_nodes.data.images.codecs import decode
from mt_nodes.data.messages import Bundle, CameraInfo, Image
from mt_nodes.relations.mutations.base import Followup
from mt_nodes.relations.mutations.camera.image_warped import ImageWarped
from mt_nodes.relations.mutations.camera.image_warps import (
    ImageMirrored,
    ImageRotated,
    ImageScaled,
    ImageSheared,
    ImageTranslated,
)
from mt_nodes.world.camera.model import CameraModel

WIDTH, HEIGHT = 96, 64
MUTATIONS: tuple[ImageWarped, ...] = (
    ImageMirrored(),
    ImageTranslated(right=0.05, down=-0.04),
    ImageScaled(factor=1.2),
    ImageScaled(factor=0.8, border="edge"),
    ImageRotated(angle_deg=7.0),
    ImageSheared(shear=0.1, border="mirror"),
)
FOLLOWING = [m for m in MUTATIONS if m.follows()]
NAMES = [f"{type(m).__name__}_{i}" for i, m in enumerate(MUTATIONS)]


@lru_cache
def scene() -> Any:
    """Blobs and edges of every size, the same always: (H, W, 3) uint8."""
    noise = generator(3, "scene", 0, None, 0).integers(0, 256, (HEIGHT // 4, WIDTH // 4, 3)).astype(np.uint8)
    return cv2.resize(noise, (WIDTH, HEIGHT), interpolation=cv2.INTER_CUBIC)


def image(encoding: str = "bgr8") -> Image:
    pixels = scene()
    if encoding == "jpeg":
        coded = bytes(cv2.imencode(".jpg", pixels, [cv2.IMWRITE_JPEG_QUALITY, 80])[1])
        return Image("/camera/image", 5, "camera", np.zeros((0, 0), np.uint8), "jpeg", coded)
    made = {
        "bgr8": pixels,
        "mono16": pixels[..., 1].astype(np.uint16) * 257,
        "bayer_rggb8": np.ascontiguousarray(pixels[..., 1]),
        "uyvy": cv2.cvtColor(pixels, cv2.COLOR_BGR2YUV_UYVY),
    }
    return Image("/camera/image", 5, "camera", made[encoding], encoding)


def calibration(model: str = "plumb_bob", binned: int = 1) -> CameraInfo:
    distortion = {
        "plumb_bob": [-0.3, 0.1, 0.003, -0.004, 0.02],
        "rational_polynomial": [0.2, -0.1, 0.002, 0.003, 0.01, 0.3, -0.05, 0.02],
        "equidistant": [0.03, -0.01, 0.002, 0.0],
    }[model]
    k = np.array([[90.0, 0.0, 49.5], [0.0, 88.0, 30.2], [0.0, 0.0, 1.0]])
    k[:2] *= binned
    k[:2, 2] += (binned - 1) / 2.0
    p = np.column_stack([k, [-40.0, 0.0, 0.0]])
    size = WIDTH * binned, HEIGHT * binned
    return CameraInfo("/camera/camera_info", 5, "camera", *size, model, np.array(distortion), k, np.eye(3), p)


def bundle(encoding: str = "bgr8", info: CameraInfo | None = None) -> Bundle:
    return Bundle(0, 0, 5, images=(image(encoding),), camera_infos=(info or calibration(),))


def derive(mutation: ImageWarped, source: Bundle) -> Followup:
    return mutation.apply(source, mutation.draw(generator(1, "t", 0, 0, 0), source, None))


@pytest.mark.parametrize("encoding", ["bgr8", "mono16", "bayer_rggb8", "uyvy", "jpeg"])
@pytest.mark.parametrize("mutation", MUTATIONS, ids=NAMES)
def test_every_encoding_is_carried_and_proved(mutation: ImageWarped, encoding: str) -> None:
    source = bundle(encoding)
    followup = derive(mutation, source)
    assert mutation.guarantee(source, followup, {}) is None
    assert (decode(followup.first.images[0]).pixels != decode(source.images[0]).pixels).any()


@pytest.mark.parametrize("mutation", MUTATIONS, ids=NAMES)
def test_a_picture_carried_by_a_pixel_too_many_is_found(mutation: ImageWarped) -> None:
    source = bundle()
    made = derive(mutation, source).first
    moved = replace(made.images[0], pixels=np.roll(made.images[0].pixels, 1, axis=1))
    broken = mutation.guarantee(source, Followup(((0, replace(made, images=(moved,))),)), {})
    assert broken is not None and "places differ" in broken


@pytest.mark.parametrize("mutation", MUTATIONS, ids=NAMES)
def test_origin_is_where_the_matrix_came_from(mutation: ImageWarped) -> None:
    there, size = np.array([[40.0, 31.0], [60.0, 20.0]]), (HEIGHT, WIDTH)
    came = mutation.origin(there, size)
    back = mutation.matrix(size) @ np.column_stack([came, np.ones(2)]).T
    np.testing.assert_allclose(back[:2].T, there, atol=1e-9)


def test_mirrored_is_the_picture_from_right_to_left() -> None:
    followup = derive(ImageMirrored(), bundle())
    np.testing.assert_array_equal(followup.first.images[0].pixels, scene()[:, ::-1])
    assert followup.effects.image_mirrored
    assert not derive(ImageScaled(), bundle()).effects.image_mirrored
    twice = followup.effects.merged(derive(ImageMirrored(), followup.first).effects)
    assert not twice.image_mirrored
    np.testing.assert_allclose(twice.image_transforms["/camera/image"], np.eye(3), atol=1e-12)


def test_translated_moves_whole_pixels_and_leaves_black() -> None:
    made = derive(ImageTranslated(right=0.1), bundle()).first.images[0].pixels
    np.testing.assert_array_equal(made[:, 10:], scene()[:, :-10])
    assert not made[:, :10].any()


@pytest.mark.parametrize("binned", [1, 2])
@pytest.mark.parametrize("model", ["plumb_bob", "rational_polynomial", "equidistant"])
@pytest.mark.parametrize("mutation", FOLLOWING, ids=lambda m: type(m).__name__)
def test_the_calibration_follows(mutation: ImageWarped, model: str, binned: int) -> None:
    """What the carried camera sees lies where the matrix takes it, as far as distortion, tilt and scale go."""
    source = bundle(info=calibration(model, binned))
    followup = derive(mutation, source)
    xyz = np.array([[0.3, -0.2, 4.0], [-1.1, 0.4, 5.0], [0.9, 0.8, 3.0], [0.0, 0.0, 7.0]])
    before = CameraModel.of(source.camera_infos[0], (HEIGHT, WIDTH)).project(xyz)
    mirrored = xyz * (-1.0 if followup.effects.image_mirrored else 1.0, 1.0, 1.0)
    after = CameraModel.of(followup.first.camera_infos[0], (HEIGHT, WIDTH)).project(mirrored)
    expected = mutation.matrix((HEIGHT, WIDTH)) @ np.column_stack([before, np.ones(len(before))]).T
    np.testing.assert_allclose(after, expected[:2].T, atol=1e-6)


def test_the_rectified_projection_follows_with_its_stereo_base() -> None:
    info = calibration()
    mirrored = derive(ImageMirrored(), bundle()).first.camera_infos[0]
    assert mirrored.k[0, 2] == pytest.approx(WIDTH - 1 - info.k[0, 2])
    assert mirrored.p[0, 3] == -info.p[0, 3]
    assert mirrored.p[0, 0] == info.p[0, 0]
    scaled = derive(ImageScaled(factor=1.5), bundle()).first.camera_infos[0]
    assert scaled.p[0, 3] == pytest.approx(1.5 * info.p[0, 3])


@pytest.mark.parametrize("mutation", [ImageMirrored(intrinsics="kept"), ImageRotated(), ImageSheared()], ids=str)
def test_calibrations_that_stay_are_the_very_object(mutation: ImageWarped) -> None:
    source = bundle()
    assert derive(mutation, source).first.camera_infos[0] is source.camera_infos[0]


def test_one_colour_is_refused() -> None:
    grey = Image("/camera/image", 5, "camera", np.full((32, 32, 3), 90, np.uint8), "bgr8")
    with pytest.raises(NotApplicable, match="shows nothing"):
        derive(ImageMirrored(), Bundle(0, 0, 5, images=(grey,)))


@pytest.mark.parametrize(
    "make",
    [
        lambda: ImageTranslated(right=0.0),
        lambda: ImageScaled(factor=1.0),
        lambda: ImageRotated(angle_deg=0.0),
        lambda: ImageSheared(shear=0.0),
    ],
)
def test_what_would_change_nothing_is_refused(make: Any) -> None:
    with pytest.raises(UsageError, match="expected"):
        make()


def test_effects_of_images_come_back_from_the_ledger() -> None:
    box = ImageBox("/camera/image", (10.0, 20.0, 30.0, 50.0), 0.8, "pedestrian")
    effects = Effects(image_boxes=(box,)).merged(derive(ImageMirrored(), bundle()).effects)
    assert effects.image_boxes[0].box_px == (WIDTH - 31.0, 20.0, WIDTH - 11.0, 50.0)
    again = Effects.from_plain(effects.as_plain())
    assert again.image_boxes == effects.image_boxes and again.image_mirrored
    np.testing.assert_array_equal(again.image_transforms["/camera/image"], effects.image_transforms["/camera/image"])
