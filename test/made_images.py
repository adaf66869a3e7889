# SPDX-License-Identifier: Apache-2.0
"""The generated street as cameras send it: one picture in every encoding, with the cloud of the same instant."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import cv2
import numpy as np

from mt_nodes.data.ego.ego_motion import EgoMotion
from mt_nodes.data.images.codecs import ENCODINGS
from mt_nodes.data.messages import Bundle, Image
from mt_nodes.world.scene.camera_rendering import CameraSensor
from mt_nodes.world.scene.drive import generate_drive
from mt_nodes.world.scene.street import EGO_SPEED_MPS

WIDTH, HEIGHT = 192, 144
COMPRESSED = ("jpeg", "png")
#: One of each way of holding a picture: order, depth, alpha, no colour, mosaic, shared colours, lossy.
KINDS = ("bgr8", "rgba8", "rgb16", "mono8", "bayer_grbg8", "yuv422", "jpeg")
#: The drive of which :func:`street_with_pedestrian` is one instant.
PEDESTRIAN_SEED, PEDESTRIAN_CAMERA, PEDESTRIAN_FRAMES, PEDESTRIAN_FRAME = 2, CameraSensor(), 13, 12


@cache
def street() -> Bundle:
    """One instant of the generated drive with a small camera, bgr8, and with a sun in the sky."""
    bundle = next(iter(generate_drive(1, camera=CameraSensor(WIDTH, HEIGHT))))
    pixels = cv2.circle(np.array(bundle.images[0].pixels), (130, 20), 12, (255, 255, 255), -1)
    return replace(bundle, images=(replace(bundle.images[0], pixels=pixels),))


@cache
def street_in(encoding: str) -> Bundle:
    """The same instant in another encoding, ``jpeg`` or ``png``."""
    bundle = street()
    return replace(bundle, images=(image_in(encoding, bundle.images[0]),))


@cache
def street_with_pedestrian() -> Bundle:
    """The thirteenth instant of a street, a pedestrian on the left lane ahead, with what it looks back on."""
    kept = (2, 4, 6, 8, 9, 10, 11, PEDESTRIAN_FRAME)
    drive = generate_drive(PEDESTRIAN_FRAMES, PEDESTRIAN_SEED, camera=PEDESTRIAN_CAMERA, only=kept)
    instants = [_moving(bundle) for bundle in drive]
    return replace(instants[-1], earlier=tuple(instants[:-1]))


@cache
def street_with_pedestrian_in(encoding: str) -> Bundle:
    """The same in another encoding, what it looks back on, too."""
    bundle = street_with_pedestrian()
    now, *earlier = (replace(b, images=(image_in(encoding, b.images[0]),)) for b in (bundle, *bundle.earlier))
    return replace(now, earlier=tuple(earlier))


def _moving(bundle: Bundle) -> Bundle:
    pose = np.eye(4)
    pose[0, 3] = EGO_SPEED_MPS * 0.1 * bundle.index
    return replace(bundle, motion=EgoMotion(pose, np.array([EGO_SPEED_MPS, 0.0, 0.0]), 0.0, "tf", "test"))


def image_in(encoding: str, image: Image) -> Image:
    """A bgr8 image in another encoding, written down here once more and not with the code under test."""
    bgr = np.asarray(image.pixels)
    if encoding in COMPRESSED:
        data = cv2.imencode(f".{encoding}", bgr)[1].tobytes()
        return replace(image, pixels=np.empty((0, 0), np.uint8), encoding=encoding, compressed=data)
    samples = bgr.astype(np.uint16) * 257 if encoding.endswith("16") else bgr
    return replace(image, pixels=_samples(encoding, samples), encoding=encoding)


def _samples(encoding: str, bgr: np.ndarray) -> np.ndarray:
    if encoding.startswith("bayer_"):
        pattern, mosaic = encoding[6:10], np.empty(bgr.shape[:2], bgr.dtype)
        for i, colour in enumerate(pattern):
            mosaic[i // 2 :: 2, i % 2 :: 2] = bgr[i // 2 :: 2, i % 2 :: 2, "bgr".index(colour)]
        return mosaic
    if encoding.startswith("mono") or encoding == "8UC1":
        return bgr[..., 1].copy()
    if encoding in ("yuv422", "uyvy"):
        return cv2.cvtColor(bgr, cv2.COLOR_BGR2YUV_UYVY)
    if encoding in ("yuv422_yuy2", "yuyv"):
        return cv2.cvtColor(bgr, cv2.COLOR_BGR2YUV_YUY2)
    colours = bgr[..., ::-1] if encoding.startswith("rgb") else bgr
    if encoding.startswith(("rgba", "bgra")) or encoding == "8UC4":
        alpha = np.arange(bgr.shape[1], dtype=bgr.dtype)[None, :, None].repeat(bgr.shape[0], axis=0)
        return np.concatenate([colours, alpha], axis=2)
    return np.ascontiguousarray(colours)


__all__ = [
    "COMPRESSED",
    "ENCODINGS",
    "HEIGHT",
    "KINDS",
    "PEDESTRIAN_CAMERA",
    "PEDESTRIAN_FRAME",
    "PEDESTRIAN_FRAMES",
    "PEDESTRIAN_SEED",
    "WIDTH",
    "image_in",
    "street",
    "street_in",
    "street_with_pedestrian",
    "street_with_pedestrian_in",
]
