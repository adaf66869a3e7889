# SPDX-License-Identifier: Apache-2.0
"""What mutations have in common that put things on a camera's lens, the same ones over a segment."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.data.images.codecs import Pixels
from mt_nodes.data.messages import Bundle
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.camera.each_image import EachImage, View
from mt_nodes.world.camera.measures import Mask

Singles = npt.NDArray[np.float32]
#: What covers less than half a step of a byte is not there.
_LEAST_COVER = 0.5 / 255.0


@dataclass(frozen=True, eq=False)
class Spot:
    """One thing on the lens: where it is in the picture, and which share of the light of each pixel it stops.

    Attributes:
        rows, columns: its rectangle of the picture.
        cover: (h, w) 0 to 1.
    """

    rows: slice
    columns: slice
    cover: Singles


class OnTheLens(EachImage):
    """Covers round spots of the picture; places and sizes are drawn at a segment's first frame and stay."""

    def begin(self, rng: np.random.Generator, bundle: Bundle) -> int:
        """Choose what lies on the lens for a segment: a key."""
        return int(rng.integers(2**62))

    def draw_image(self, rng: np.random.Generator, view: View, state: Any) -> Draw:
        """Choose the spots by the segment's key: rows of x, y, radius, all as shares of the picture's width."""
        key = int(rng.integers(2**62)) if state is None else state
        height, width = view.picture.size
        own = np.random.default_rng(key)
        count = self.spots_drawn()
        place = own.random((count, 2)) * (1.0, height / width)
        low, high = self.radii()
        radius = low * (high / low) ** own.random((count, 1))
        return {"spots": np.concatenate([place, radius], axis=1).astype(np.float32)}

    @abstractmethod
    def spots_drawn(self) -> int:
        """Return how many spots there are."""

    @abstractmethod
    def radii(self) -> tuple[float, float]:
        """Return the least and the largest radius, as shares of the picture's width."""

    @abstractmethod
    def cover(self, distance: Singles) -> Singles:
        """Return the share of light stopped (h, w) at distances from a spot's middle, in its radii."""

    @abstractmethod
    def shown(self, part: Pixels, view: View, spot: Spot) -> Pixels:
        """Return what is seen in place of ``part`` (h, w[, 3]) of the picture where a spot covers it fully."""

    def spots(self, view: View, draw: Draw) -> Iterator[Spot]:
        """Yield what is in the picture of the spots drawn."""
        height, width = view.picture.size
        for x, y, radius in np.asarray(draw["spots"], dtype=np.float64) * width:
            rows = slice(max(0, int(y - radius)), min(height, int(y + radius) + 2))
            columns = slice(max(0, int(x - radius)), min(width, int(x + radius) + 2))
            down = (np.arange(rows.start, rows.stop, dtype=np.float32) - np.float32(y))[:, None]
            right = np.arange(columns.start, columns.stop, dtype=np.float32) - np.float32(x)
            cover = self.cover(np.sqrt(down * down + right * right) / np.float32(radius))
            if cover.size:
                yield Spot(rows, columns, np.where(cover < _LEAST_COVER, np.float32(0.0), cover))

    def change_image(self, view: View, draw: Draw) -> Pixels:
        """Cover spot after spot."""
        new = view.picture.pixels.copy()
        for spot in self.spots(view, draw):
            part = new[spot.rows, spot.columns]
            over = np.ascontiguousarray(self.shown(part, view, spot), dtype=part.dtype)
            part[...] = _mixed(part, over, spot.cover)
        return new

    def affected(self, view: View, draw: Draw) -> Mask:
        """Where spots are."""
        mask = np.zeros(view.picture.size, np.uint8)
        for spot in self.spots(view, draw):
            mask[spot.rows, spot.columns] |= (spot.cover > 0.0).astype(np.uint8)
        return mask


def _mixed(under: Pixels, over: Pixels, cover: Singles) -> Pixels:
    """Return what is seen of both, the shares of ``over`` (h, w) given; what is not covered stays as it was."""
    if under.dtype == np.uint8:
        mixed = np.asarray(cv2.blendLinear(np.ascontiguousarray(under), over, np.float32(1.0) - cover, cover))
    else:
        share = cover if under.ndim == 2 else cover[..., None]
        mixed = np.rint(under + (over.astype(np.float32) - under) * share).astype(under.dtype)
    return np.asarray(cv2.copyTo(under, (cover == 0.0).astype(np.uint8), mixed))
