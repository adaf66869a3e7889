# SPDX-License-Identifier: Apache-2.0
"""Squares of labelled pictures, changed so that a network learns more, and what it is to find in them."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Singles
from mt_nodes.base.errors import NotApplicable
from mt_nodes.base.params import build
from mt_nodes.base.plugins import find
from mt_nodes.data.images.codecs import decode
from mt_nodes.data.messages import Bundle
from mt_nodes.relations.mutations.base import Mutation
from mt_nodes.runs.models.labelled_pictures import LabelledPicture

#: What the pictures of the training are changed by -> the parameter that is drawn, and from where to where.
AUGMENTATIONS: dict[str, tuple[str, float, float]] = {
    "brightness_changed": ("offset", -0.25, 0.25),
    "contrast_changed": ("gain", 0.5, 1.6),
    "exposure_changed": ("stops", -1.5, 1.5),
    "gamma_changed": ("gamma", 0.6, 1.7),
    "white_balance_shifted": ("temperature_k", 4000.0, 9500.0),
    "saturation_changed": ("factor", 0.0, 1.8),
    "sensor_noise": ("read_noise_e", 5.0, 100.0),
    "image_defocused": ("radius_px", 0.6, 2.5),
    "jpeg_compressed": ("quality", 10.0, 80.0),
    "impulse_noise": ("share", 0.0005, 0.01),
}
#: Objects in a square, and the numbers that each has: class or :data:`IGNORED` or :data:`NOBODY`, edges in pixels.
MOST, IGNORED, NOBODY = 24, -1, -2
#: What shows less than this of itself, or is smaller, is neither to be found nor wrong.
LEAST_VISIBLE, LEAST_HEIGHT_PX, LEAST_WIDTH_PX = 0.25, 8.0, 4.0
_GREY = (114, 114, 114)


def augmented(picture: LabelledPicture, rng: np.random.Generator) -> LabelledPicture:
    """Return a picture that three of five times is changed by one of :data:`AUGMENTATIONS`."""
    if rng.random() >= 0.6:
        return picture
    return mutated(picture, str(rng.choice(list(AUGMENTATIONS))), rng)


def mutated(picture: LabelledPicture, name: str, rng: np.random.Generator) -> LabelledPicture:
    """Return a picture changed by a mutation of a strength that is drawn; as it is where that cannot be."""
    what, low, high = AUGMENTATIONS[name]
    mutation: Mutation = build(find("mutations", name, "augmentation"), {what: float(rng.uniform(low, high))}, name)
    bundle = Bundle(0, 0, 0, (), images=(picture.message(),))
    try:
        draw = mutation.draw(rng, bundle, mutation.begin(rng, bundle))
    except NotApplicable:
        return picture
    return replace(picture, rgb=np.asarray(decode(mutation.apply(bundle, draw).first.images[0]).pixels))


def square(picture: LabelledPicture, side_px: int, rng: np.random.Generator) -> tuple[npt.NDArray[np.uint8], Singles]:
    """Cut out a square (side, side, 3) in a scale of its own, perhaps mirrored; three of four have an object in it.

    Returns:
        the square, and its objects (:data:`MOST`, 5).
    """
    height, width = picture.rgb.shape[:2]
    scale = float(np.exp(rng.uniform(np.log(0.5), np.log(1.7))))
    aim = rng.uniform(0.0, 1.0, 2) * (width, height)
    if len(picture.kind) and rng.random() < 0.75:
        box = picture.box_px[int(rng.integers(len(picture.kind)))]
        aim = box[:2] + rng.uniform(0.0, 1.0, 2) * (box[2:] - box[:2])
    corner = rng.uniform(0.2, 0.8, 2) * side_px - scale * aim
    mirror = -1.0 if rng.random() < 0.5 else 1.0
    flip = np.array([mirror * scale, scale])
    corner[0] = side_px - corner[0] if mirror < 0.0 else corner[0]
    # Of a pixel the middle lies at a whole number, of a square's edges the corner: half a pixel apart.
    affine = np.array([[flip[0], 0.0, corner[0]], [0.0, flip[1], corner[1]]])
    affine[:, 2] += 0.5 * flip - 0.5
    pixels = cv2.warpAffine(picture.rgb, affine, (side_px, side_px), flags=cv2.INTER_LINEAR, borderValue=_GREY)
    edges = (picture.box_px + 0.5) * np.tile(flip, 2) + np.tile(corner, 2)
    if mirror < 0.0:
        edges[:, [0, 2]] = edges[:, [2, 0]]
    return np.asarray(pixels), _objects(picture, edges, side_px)


def _objects(picture: LabelledPicture, edges: Floats, side_px: int) -> Singles:
    """Return what is to be found (:data:`MOST`, 5), the largest first."""
    out = np.full((MOST, 5), NOBODY, dtype=np.float32)
    cut = np.clip(edges, 0.0, side_px)
    extent = cut[:, 2:] - cut[:, :2]
    area = np.maximum(extent, 0.0).prod(axis=1)
    shown = picture.visible * area / np.maximum((edges[:, 2:] - edges[:, :2]).prod(axis=1), 1e-6)
    expected = (shown >= LEAST_VISIBLE) & (extent[:, 1] >= LEAST_HEIGHT_PX) & (extent[:, 0] >= LEAST_WIDTH_PX)
    kind = np.where(expected, picture.kind, IGNORED)
    rows = [row for row in np.argsort(-area, kind="stable").tolist() if area[row] > 0.0][:MOST]
    out[: len(rows), 0], out[: len(rows), 1:] = kind[rows], cut[rows]
    return out
