# SPDX-License-Identifier: Apache-2.0
"""Markings painted on the road."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Singles
from mt_nodes.base.errors import NoEffect
from mt_nodes.base.params import param
from mt_nodes.data.images.codecs import Pixels
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.camera.each_image import EachImage, View
from mt_nodes.world.camera import measures
from mt_nodes.world.camera.measures import Mask
from mt_nodes.world.camera.model import CameraModel
from mt_nodes.world.camera.relight import relit
from mt_nodes.world.camera.surroundings import surroundings_of
from mt_nodes.world.scene.road_marks import MARKS, MarkPlace

Quads = npt.NDArray[np.float64]
#: Points per side of a stripe in the projection: a wide lens bends it.
_PER_SIDE = 6
_SHIFT = 4
#: Less visible paint than this does not count.
_LEAST_PX = 60
#: Red, green and blue of yellow paint relative to white paint.
_YELLOW = (1.0, 0.66, 0.1)


@dataclass(frozen=True)
class RoadPainted(EachImage):
    """Paints lines, a crosswalk, or the symbols of a lane on the flat ground ahead.

    Paint multiplies the road's light by ``contrast``, so that shadows lie on it as on the road; objects in front, as
    known from clouds, hide it. Stripes of a crosswalk are 0.5 m wide with equal gaps, a stop line is 0.5 m deep, lines
    are 0.12 m wide: usual sizes on German roads. Bicycle, carpool, shared and left-turn lanes have the symbols of
    Californian roads, by eye. The LiDAR is unaffected here, although real paint reflects more of its light, too.

    Guaranteed: painted pixels get brighter; outside the paint, no pixel changes.
    """

    kind: str = param("crosswalk", choices=tuple(MARKS), help="what is painted")
    range_m: float = param(
        9.0, low=2.0, high=80.0, unit="m", aspect="place", help="where it begins, ahead of base_link"
    )
    length_m: float = param(
        4.0, low=0.3, high=60.0, unit="m", aspect="fixed", help="how far it goes along the road (not a stop line)"
    )
    left_m: float = param(
        0.0, low=-20.0, high=20.0, unit="m", aspect="place", help="its middle, to the left of the path"
    )
    width_m: float = param(7.0, low=0.5, high=30.0, unit="m", aspect="fixed", help="how wide it is, across the road")
    contrast: float = param(4.0, low=1.1, high=8.0, neutral=1.1, help="light of fresh paint over that of the road")
    random: ClassVar[bool] = False
    for_frames_between: ClassVar[bool] = False

    def draw_image(self, rng: np.random.Generator, view: View, state: Any) -> Draw:
        """Nothing is random.

        Raises NoEffect: the camera does not see the place. NotApplicable: how far away what it shows is, is not known.
        """
        painted = int(np.count_nonzero(self._cover(view)[0] > 0.5))
        if painted < _LEAST_PX:
            where = f"{self.range_m:g} m ahead"
            raise NoEffect(f"{view.image.topic}: {painted} pixels of road {where} are in sight, expected {_LEAST_PX}")
        return {}

    def change_image(self, view: View, draw: Draw) -> Pixels:
        """Multiply the light of what is painted."""
        cover, yellow = self._cover(view)
        rows, columns = np.flatnonzero(cover.any(axis=1)), np.flatnonzero(cover.any(axis=0))
        window = np.s_[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
        part, share = view.picture.with_pixels(np.ascontiguousarray(view.picture.pixels[window])), cover[window]
        gain = (1.0 + share * np.float32(self.contrast - 1.0)).astype(np.float32)
        if yellow.any():
            of_yellow = (share * yellow[window])[..., None] * np.float32(self.contrast)
            gain = gain[..., None] - of_yellow * (np.float32(1.0) - np.array(_YELLOW, np.float32))
        new = view.picture.pixels.copy()
        new[window] = np.where(_as(share > 0.0, part.pixels), relit(part, gain, np.zeros_like(gain), 1), part.pixels)
        return new

    def affected(self, view: View, draw: Draw) -> Mask:
        """The paint."""
        return np.asarray(self._cover(view)[0] > 0.0, np.uint8)

    def prove_image(self, old: View, new: View, draw: Draw) -> str | None:
        """Compare brightness where the paint is whole."""
        where = np.asarray(self._cover(old)[0] > 0.9, np.uint8)
        if not where.any():
            return None
        before, after = measures.brightness(old.picture, where), measures.brightness(new.picture, where)
        return None if after > before else f"the paint went from a brightness of {before:.3f} to {after:.3f}"

    def _cover(self, view: View) -> tuple[Singles, Singles]:
        """Return the painted, visible share (h, w) of each pixel, and the yellow share of the paint."""
        camera = view.camera()
        around = surroundings_of(view.bundle, view.image, camera)
        to_camera = np.asarray(view.bundle.transforms.lookup(view.image.frame_id, "base_link"))
        marks = MARKS[self.kind](MarkPlace(self.range_m, self.range_m + self.length_m, self.left_m, self.width_m))
        white, yellow = (_drawn(some, camera, to_camera, view.picture.size) for some in (marks.white, marks.yellow))
        ground = around.depth.in_picture(around.ground.astype(np.uint8), view.picture.size, smooth=False)
        cover = np.where(ground != 0, np.maximum(white, yellow), 0).astype(np.float32) / np.float32(255.0)
        return cover, np.asarray(yellow > white, np.float32)


def _drawn(outlines: tuple[Quads, ...], camera: CameraModel, to_camera: Quads, size: tuple[int, int]) -> Pixels:
    """Return how much (h, w) of each pixel lies within outlines (n, 2) on the ground, 0 to 255."""
    layer = np.zeros(size, np.uint8)
    for corners in outlines:
        pixels = camera.project(_outline(corners) @ to_camera[:3, :3].T + to_camera[:3, 3])
        if np.isfinite(pixels).all():
            fixed = np.rint(np.clip(pixels, -1e4, 1e4) * (1 << _SHIFT)).astype(np.int32)
            cv2.fillPoly(layer, [fixed], (255,), cv2.LINE_AA, _SHIFT)
    return layer


def _outline(corners: Quads) -> Quads:
    """Return points (n, 3) along the sides between corners (k, 2), on the ground."""
    share = np.arange(_PER_SIDE)[:, None] / _PER_SIDE
    flat = np.concatenate([a + share * (b - a) for a, b in zip(corners, np.roll(corners, -1, axis=0), strict=True)])
    return np.column_stack([flat, np.zeros(len(flat))])


def _as(mask: npt.NDArray[np.bool_], pixels: Pixels) -> npt.NDArray[np.bool_]:
    return mask if pixels.ndim == 2 else mask[..., None]
