# SPDX-License-Identifier: Apache-2.0
"""Dirt and drops on the lens."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import cv2
import numpy as np

from mt_nodes.base.arrays import Singles
from mt_nodes.base.params import param
from mt_nodes.data.images.codecs import Pixels
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.camera.each_image import OnEachCamera, View
from mt_nodes.world.camera import measures
from mt_nodes.world.camera.measures import Mask

#: By which shares of its radius the outline of a drop goes in and out, so many times around it, and that of dried mud,
#: which runs and splashes (assumed).
_ROUND, _RAGGED = ((2, 0.1), (3, 0.07)), ((2, 0.2), (3, 0.13), (5, 0.05), (7, 0.03))
#: Waves of more times around than this begin at an angle of their own.
_WAVES_IN_STEP = 3
#: A cover below half a step of 8 bits is invisible.
_LEAST_COVER = 0.5 / 255.0


@dataclass(frozen=True, eq=False)
class Spot:
    """A spot on the lens: its place in the picture, and the share of each pixel's light that it blocks.

    ``rows``, ``columns``: its rectangle of the picture. ``cover``: (h, w) 0 to 1.
    """

    rows: slice
    columns: slice
    cover: Singles


class OnTheLens(OnEachCamera):
    """Base: covers spots of the picture; places and sizes are drawn at a segment's first frame and stay.

    ``waves``: how many times around it, and by which share of its radius, a spot's outline goes in and out.
    """

    waves: ClassVar[tuple[tuple[int, float], ...]] = _ROUND

    def draw_image(self, rng: np.random.Generator, view: View, state: Any) -> Draw:
        """Choose the spots by the segment's key: rows of x, y, radius, all as shares of the picture's width."""
        key = self.key(rng, view, state)
        height, width = view.picture.size
        own = np.random.default_rng(key)
        count = self.spots_drawn()
        place = own.random((count, 2)) * (1.0, height / width)
        low, high = self.radii()
        radius = low * (high / low) ** own.random((count, 1))
        return {"spots": np.concatenate([place, radius], axis=1).astype(np.float32)}

    @abstractmethod
    def spots_drawn(self) -> int:
        """Return the number of spots."""

    @abstractmethod
    def radii(self) -> tuple[float, float]:
        """Return the least and the largest radius, as shares of the picture's width."""

    @abstractmethod
    def cover(self, distance: Singles) -> Singles:
        """Return the share of light stopped (h, w) at distances from a spot's middle, in its radii."""

    @abstractmethod
    def replacement(self, part: Pixels, view: View, spot: Spot) -> Pixels:
        """Return what replaces ``part`` (h, w[, 3]) of the picture where a spot covers it fully."""

    def spots(self, view: View, draw: Draw) -> Iterator[Spot]:
        """Yield the drawn spots that lie in the picture."""
        yield from _spots(self, view.picture.size, np.asarray(draw["spots"], dtype=np.float64).tobytes())

    def change_image(self, view: View, draw: Draw) -> Pixels:
        """Cover one spot after the other."""
        new = view.picture.pixels.copy()
        for spot in self.spots(view, draw):
            part = new[spot.rows, spot.columns]
            over = np.ascontiguousarray(self.replacement(part, view, spot), dtype=part.dtype)
            _mix_into(part, over, spot.cover)
        return new

    def affected(self, view: View, draw: Draw) -> Mask:
        """Where spots are."""
        mask = np.zeros(view.picture.size, np.uint8)
        for spot in self.spots(view, draw):
            mask[spot.rows, spot.columns] |= (spot.cover > 0.0).astype(np.uint8)
        return mask


@lru_cache(maxsize=8)
def _spots(mutation: OnTheLens, size: tuple[int, int], drawn: bytes) -> tuple[Spot, ...]:
    """Return the drawn spots, rows of x, y, radius, that lie in a picture (height, width): kept, for they stay."""
    height, width = size
    found = []
    for x, y, radius in np.frombuffer(drawn).reshape(-1, 3) * width:
        reach = radius * (1.0 + sum(share for _, share in mutation.waves))
        rows = slice(max(0, int(y - reach)), min(height, int(y + reach) + 2))
        columns = slice(max(0, int(x - reach)), min(width, int(x + reach) + 2))
        down = (np.arange(rows.start, rows.stop, dtype=np.float32) - np.float32(y))[:, None]
        right = np.arange(columns.start, columns.stop, dtype=np.float32) - np.float32(x)
        turn, own = np.arctan2(down, right), np.float32(x + y)  # each spot has its own shape
        outline = np.float32(1.0) + sum(
            np.float32(share) * np.sin(np.float32(times) * (turn + own) + own * np.float32(times > _WAVES_IN_STEP))
            for times, share in mutation.waves
        )
        cover = mutation.cover(np.sqrt(down * down + right * right) / (np.float32(radius) * outline))
        if cover.size:
            found.append(Spot(rows, columns, np.where(cover < _LEAST_COVER, np.float32(0.0), cover)))
    return tuple(found)


def _mix_into(under: Pixels, over: Pixels, cover: Singles) -> None:
    """Blend ``over`` into ``under`` by its shares (h, w); uncovered pixels stay."""
    if under.dtype == np.uint8:
        mixed = np.asarray(cv2.blendLinear(np.ascontiguousarray(under), over, np.float32(1.0) - cover, cover))
    else:
        share = cover if under.ndim == 2 else cover[..., None]
        mixed = np.rint(under + (over.astype(np.float32) - under) * share).astype(under.dtype)
    under[...] = cv2.copyTo(np.ascontiguousarray(under), (cover == 0.0).astype(np.uint8), mixed)


#: Dry mud, red, green and blue in shares of full scale: an assumption.
_MUD = (0.23, 0.19, 0.15)


@dataclass(frozen=True)
class LensDirt(OnTheLens):
    """Puts blots of mud on the lens: far out of focus, so with soft edges, and at fixed places throughout a segment.

    Number, size and opacity are the user's; the softness (half of the radius) and the colour are assumptions.

    Guaranteed: inside the blots, contrast falls or samples change by 2 % of full scale on average; outside them, no
    pixel changes.
    """

    waves: ClassVar[tuple[tuple[int, float], ...]] = _RAGGED

    blots: int = param(12, low=1, high=200, neutral=1, help="how many")
    opacity: float = param(0.8, low=0.05, high=1.0, neutral=0.05, help="share of light that the middle of a blot stops")
    radius_min: float = param(
        0.01, low=0.002, high=0.3, aspect="fixed", help="smallest radius, as a share of the picture's width"
    )
    radius_max: float = param(
        0.05, low=0.002, high=0.3, aspect="fixed", help="largest radius, as a share of the picture's width"
    )

    def spots_drawn(self) -> int:
        """The requested number."""
        return self.blots

    def radii(self) -> tuple[float, float]:
        """The requested radii."""
        return min(self.radius_min, self.radius_max), max(self.radius_min, self.radius_max)

    def cover(self, distance: Singles) -> Singles:
        """Full within half of the radius, then falling smoothly to nothing."""
        edge = np.clip(np.float32(2.0) - np.float32(2.0) * distance, 0.0, 1.0)
        return np.asarray(edge * edge * (np.float32(3.0) - np.float32(2.0) * edge) * np.float32(self.opacity))

    def replacement(self, part: Pixels, view: View, spot: Spot) -> Pixels:
        """Mud everywhere."""
        colours = [_MUD["rgb".index(c)] for c in view.picture.order] if part.ndim == 3 else _MUD[1]
        return np.broadcast_to((np.array(colours) * view.picture.full_scale).astype(part.dtype), part.shape)

    def prove_image(self, old: View, new: View, draw: Draw) -> str | None:
        """Compare contrast where blots are."""
        where = self.affected(old, draw)
        before, after = measures.contrast(old.picture, where), measures.contrast(new.picture, where)
        difference = measures.mean_difference(old.picture, new.picture, where)
        if after < before or difference > 0.02:
            return None
        return f"within the blots contrast went from {before:.4f} to {after:.4f}, samples by {difference:.4f}"


#: Darkening of a drop's rim, where it sends light away from the lens; radius at which the rim begins, in radii.
_RIM, _EDGE = 0.55, 0.5
#: The disc of a drop's blur by a lens that is focused on the road, in its radii (assumed).
_BLUR = 0.22
#: A wiper's pivot, in picture widths and heights, the radii of its arcs, in heights, and their width, in widths.
_PIVOT, _ARCS, _ARC_WIDE = (0.42, 1.35), (0.55, 0.74, 0.97, 1.16), 0.006
#: Share of light that the film of an arc stops.
_FILM = 0.45


@dataclass(frozen=True)
class LensDrops(OnTheLens):
    """Puts drops of water on the lens: each shows the surroundings upside down, small and out of focus.

    A drop is a strong, short lens, modelled as showing ``view_widths`` of its own width, rotated by half a turn,
    blurred, and darker at its rim; it is far out of focus, so that its edge is soft. A wiper takes a share ``wiped`` of
    the drops that it reaches, and leaves arcs of a film that blurs what is behind it. Places, sizes and appearance are
    assumptions, not measured optics; drops stay in place throughout a segment.

    Guaranteed: inside drops and arcs, samples differ by 1 % of full scale or more on average; outside them, no pixel
    changes.
    """

    drops: int = param(25, low=1, high=300, neutral=1, help="how many")
    radius_min: float = param(
        0.006, low=0.002, high=0.2, aspect="fixed", help="smallest radius, as a share of the picture's width"
    )
    radius_max: float = param(
        0.03, low=0.002, high=0.2, aspect="fixed", help="largest radius, as a share of the picture's width"
    )
    view_widths: float = param(
        4.0, low=1.0, high=20.0, aspect="fixed", help="how wide a drop's view is, in its own widths"
    )
    wiped: float = param(
        0.0, low=0.0, high=1.0, neutral=0.0, help="share of drops gone from where a wiper goes, which leaves arcs"
    )

    def spots_drawn(self) -> int:
        """The requested number."""
        return self.drops

    def radii(self) -> tuple[float, float]:
        """The requested radii."""
        return min(self.radius_min, self.radius_max), max(self.radius_min, self.radius_max)

    def cover(self, distance: Singles) -> Singles:
        """Full within half of the radius, with a soft edge."""
        edge = np.clip((np.float32(1.0) - distance) * np.float32(1.0 / (1.0 - _EDGE)), 0.0, 1.0)
        return np.asarray(edge * edge * (np.float32(3.0) - np.float32(2.0) * edge))

    def spots(self, view: View, draw: Draw) -> Iterator[Spot]:
        """Yield the drops that the wiper leaves."""
        drops = np.asarray(draw["spots"])
        if self.wiped:
            height, width = view.picture.size
            away = np.hypot(drops[:, 0] - _PIVOT[0], drops[:, 1] - _PIVOT[1] * height / width) * width / height
            swept = (away > _ARCS[0]) & (away < _ARCS[-1])
            drops = drops[~swept | (np.arange(len(drops)) % 100 >= 100.0 * self.wiped)]
        return super().spots(view, {"spots": drops})

    def change_image(self, view: View, draw: Draw) -> Pixels:
        """Cover arcs, then drops."""
        new = super().change_image(view, draw)
        if self.wiped:
            film, reach = self._film(view), max(3, round(_ARC_WIDE * view.picture.size[1]))
            _mix_into(new, np.asarray(cv2.blur(new, (2 * reach + 1, 6 * reach + 1))), film)
        return new

    def affected(self, view: View, draw: Draw) -> Mask:
        """Where drops and arcs are."""
        drops = super().affected(view, draw)
        return drops | (self._film(view) > 0.0).astype(np.uint8) if self.wiped else drops

    def _film(self, view: View) -> Singles:
        """Return the share (H, W) of light that the film of a wiper's arcs stops."""
        height, width = view.picture.size
        layer, pivot = np.zeros((height, width), np.uint8), (round(_PIVOT[0] * width), round(_PIVOT[1] * height))
        for arc in _ARCS:
            axes = (round(arc * height),) * 2
            cv2.ellipse(layer, pivot, axes, 0.0, 180.0, 360.0, (255,), max(1, round(_ARC_WIDE * width)), cv2.LINE_AA)
        soft = cv2.GaussianBlur(layer, (0, 0), max(1.0, 0.4 * _ARC_WIDE * width)).astype(np.float32)
        film = soft * np.float32(self.wiped * _FILM / 255.0)
        return np.where(film < _LEAST_COVER, np.float32(0.0), film)

    def replacement(self, part: Pixels, view: View, spot: Spot) -> Pixels:
        """The picture around, turned by half a turn, blurred, with a dark rim."""
        pixels = view.picture.pixels
        height, width = part.shape[:2]
        # Column 0 shows the rightmost part, the last column the leftmost; the same for rows.
        right, bottom = (
            (part.start + part.stop) / 2.0 + self.view_widths * side / 2.0
            for part, side in ((spot.columns, width), (spot.rows, height))
        )
        left, top = right - self.view_widths * (width - 1), bottom - self.view_widths * (height - 1)
        first_row, first_column = (max(0, int(end) - 8) for end in (top, left))
        near = pixels[first_row : int(bottom) + 8, first_column : int(right) + 8]
        # Without the blur, subsampling by four would alias.
        soft = cv2.blur(near, (2 * int(self.view_widths) + 1,) * 2)
        back = np.array([[-self.view_widths, 0.0, right - first_column], [0.0, -self.view_widths, bottom - first_row]])
        how = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
        refracted = cv2.warpAffine(soft, back, (width, height), flags=how, borderMode=cv2.BORDER_REFLECT_101)
        disc = 2 * round(_BLUR * max(width, height) / 2.0) + 1
        refracted = cv2.blur(cv2.blur(refracted, (disc, disc)), (disc, disc))
        rim = np.float32(1.0) - np.float32(_RIM) * (np.float32(1.0) - spot.cover)
        return np.asarray(refracted * (rim if refracted.ndim == 2 else rim[..., None]))

    def prove_image(self, old: View, new: View, draw: Draw) -> str | None:
        """Compare samples where drops are."""
        difference = measures.mean_difference(old.picture, new.picture, self.affected(old, draw))
        return (
            None
            if difference >= 0.01
            else f"within the drops samples differ by {difference:.4f} of full scale, expected 0.01"
        )
