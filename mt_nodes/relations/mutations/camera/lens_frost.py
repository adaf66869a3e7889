# SPDX-License-Identifier: Apache-2.0
"""Frost on the cover glass of a camera."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Singles
from mt_nodes.base.params import param
from mt_nodes.data.images.codecs import Pixels
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.camera.each_image import OnEachCamera, View
from mt_nodes.relations.mutations.camera.lens_film import spread_coarsely
from mt_nodes.world.camera.measures import Mask

#: Light of ice in daylight, red, green and blue in shares of full scale: an assumption.
_ICE = (0.78, 0.83, 0.88)
#: Share of ice's own light in what it shows; the rest comes through it.
_OWN_LIGHT = 0.3
#: Ice is thick where it has this share of its full cover.
_THICK = 0.6
#: By how much needles are brighter than the mean, as a share (assumed). Unit of the light that ice shows.
_GRAIN, _SCALE = 0.48, 2.0 / 255.0
#: Rows that are blended at a time, so that what lies between fits the processor's cache.
_STRIPE_PX = 64
#: Width in pixels of the picture in which frost grows.
_CANVAS_PX = 640
#: Stems from the rim, branches of a stem, and the angle of the branches of an ice crystal.
_STEMS, _BRANCHES, _BRANCH_RAD = 150, 14, np.radians(60.0)


@dataclass(frozen=True)
class LensFrost(OnEachCamera):
    """Grows frost on the cover glass, from its rim inward: ice that scatters the light behind it, with its grain.

    The front of the ice lies where the distance from the rim, wavering by a random field, covers the stated share; ice
    grows in needles across it. Behind ice, the picture is a mean over a twentieth of its width, brightened by the light
    that ice scatters, and modulated by needles. Shape, colour and contrast of the needles are assumptions; they are out
    of focus, as all is that lies on the glass. The same throughout a segment.

    Guaranteed: the stated share of the picture is covered, within a fifth of it; the picture's own detail (its
    Laplacian) fades behind thick ice, and outside of ice no pixel changes.
    """

    cover: float = param(0.35, low=0.02, high=0.9, neutral=0.02, help="share of the picture that ice covers")
    opacity: float = param(0.85, low=0.1, high=1.0, neutral=0.1, help="share of the light that thick ice scatters")

    def draw_image(self, rng: np.random.Generator, view: View, state: Any) -> Draw:
        """Take the segment's key."""
        return {"frost_key": self.key(rng, view, state)}

    def change_image(self, view: View, draw: Draw) -> Pixels:
        """Dim what is behind the ice, and add what the ice shows."""
        pixels, full_scale = view.picture.pixels, view.picture.full_scale
        through, shown = self._ice(view, draw)
        white = np.array(_ICE[:: -1 if view.picture.order == "bgr" else 1])
        own = tuple(_OWN_LIGHT * full_scale * (white if pixels.ndim == 3 else white[1:2]))
        coarse = cv2.multiply(spread_coarsely(pixels), (1.0 - _OWN_LIGHT,) * 4)
        new = cv2.resize(cv2.add(coarse, (*own, 0.0, 0.0, 0.0)[:4]), pixels.shape[1::-1])
        for first in range(0, len(pixels), _STRIPE_PX):
            rows = slice(first, first + _STRIPE_PX)
            passing, lit = (self._wide(part[rows], pixels) for part in (through, shown))
            behind = cv2.multiply(pixels[rows], passing, scale=1.0 / 255.0)
            cv2.add(behind, cv2.multiply(new[rows], lit, scale=_SCALE), dst=new[rows])
        return np.asarray(new)

    def affected(self, view: View, draw: Draw) -> Mask:
        """Where ice is."""
        return np.asarray(self._ice(view, draw)[0] < 255, np.uint8)

    def prove_image(self, old: View, new: View, draw: Draw) -> str | None:
        """Measure the covered share, and the contrast of fine detail where ice is thick."""
        through = self._ice(old, draw)[0]
        share = float(np.count_nonzero(through < 255)) / through.size
        if not 0.8 * self.cover <= share <= 1.2 * self.cover + 0.01:
            return f"{share:.3f} of the picture is covered, asked for {self.cover:g}"
        thick = through < 255.0 * (1.0 - _THICK * self.opacity)
        details = [cv2.Laplacian(view.picture.luma(), cv2.CV_32F)[thick] for view in (old, new)]
        was = float(np.square(details[0]).sum())
        left = float((details[0] * details[1]).sum()) / was if was else 0.0
        if left > 1.0 - 0.5 * _THICK * self.opacity:
            return f"{left:.0%} of the detail behind thick ice is left"
        return None

    def _ice(self, view: View, draw: Draw) -> tuple[Mask, Mask]:
        return _frost(draw["frost_key"], view.picture.size, self.cover, self.opacity)

    @staticmethod
    def _wide(part: Mask, pixels: Pixels) -> Pixels:
        """Return values (H, W) for each channel of pixels, in their type."""
        return (part if pixels.ndim == 2 else cv2.merge([part] * 3)).astype(pixels.dtype, copy=False)


@lru_cache(maxsize=8)
def _frost(key: int, size: tuple[int, int], cover: float, opacity: float) -> tuple[Mask, Mask]:
    """Return the share of light (H, W) that passes ice, in parts of 255, and that it shows, in half such parts."""
    rng = np.random.default_rng(key)
    height, width = max(8, round(size[0] / size[1] * _CANVAS_PX)), _CANVAS_PX
    y, x = np.indices((height, width), dtype=np.float32)
    rim = np.minimum(np.minimum(x, width - 1 - x), np.minimum(y, height - 1 - y)) / np.float32(min(height, width) / 2)
    wavers = cv2.GaussianBlur(rng.standard_normal((height, width), dtype=np.float32), (0, 0), width / 24)
    front = rim + np.float32(0.16) * wavers / wavers.std()
    needles = _needles(rng, (height, width))
    front -= np.float32(0.12) * needles
    edge = np.float32(np.quantile(front, cover))
    ice = np.clip((edge - front) / np.float32(0.22), 0.0, 1.0)
    ice = ice * ice * (np.float32(3.0) - np.float32(2.0) * ice) * np.float32(opacity)
    grain = np.float32(1.0) + np.float32(_GRAIN) * (needles - needles.mean())
    how = cv2.INTER_CUBIC if size[1] > width else cv2.INTER_AREA
    large, fine = (cv2.resize(part, size[::-1], interpolation=how) for part in (ice, grain))
    share = np.rint(np.clip(large, 0.0, 1.0) * 255.0)
    return (255.0 - share).astype(np.uint8), np.rint(np.clip(share * fine / (255.0 * _SCALE), 0.0, 255.0)).astype(
        np.uint8
    )


def _needles(rng: np.random.Generator, shape: tuple[int, int]) -> Singles:
    """Return the needles (h, w), 0 to 1: stems from the rim inward, with branches at the angle of ice crystals."""
    height, width = shape
    canvas = np.zeros(shape, np.uint8)
    for _ in range(_STEMS):
        x, y = rng.random() * width, rng.choice([0.0, height])
        if rng.random() < 0.4:
            x, y = rng.choice([0.0, width]), rng.random() * height
        inward = np.arctan2(height / 2.0 - y, width / 2.0 - x) + rng.normal(0.0, 0.6)
        _draw_stem(canvas, np.array([x, y]), inward, width * rng.uniform(0.08, 0.4), rng)
    soft = cv2.GaussianBlur(canvas.astype(np.float32) / np.float32(255.0), (0, 0), 1.2)
    return np.asarray(np.minimum(soft * np.float32(1.3), np.float32(1.0)))


def _draw_stem(
    canvas: npt.NDArray[np.uint8], at: Floats, angle: float, length: float, rng: np.random.Generator
) -> None:
    """Draw a stem and its branches, which get shorter towards the tip."""
    bend = rng.normal(0.0, 0.5)
    shares = np.linspace(0.0, 1.0, _BRANCHES)
    angles = angle + bend * shares
    steps = np.stack([np.cos(angles), np.sin(angles)], axis=1) * length / _BRANCHES
    nodes = at + np.cumsum(steps, axis=0)
    shade = int(rng.integers(120, 256))
    cv2.polylines(canvas, [np.rint(nodes * 16).astype(np.int32)], False, (shade,), 1, cv2.LINE_AA, 4)
    for node, turn, share in zip(nodes, angles, shares, strict=True):
        for side in (-1.0, 1.0):
            reach = length * 0.3 * (1.0 - share) * rng.uniform(0.5, 1.0)
            tip = node + reach * np.array([np.cos(turn + side * _BRANCH_RAD), np.sin(turn + side * _BRANCH_RAD)])
            ends = np.rint(np.stack([node, tip]) * 16).astype(np.int32)
            cv2.polylines(canvas, [ends], False, (round(0.75 * shade),), 1, cv2.LINE_AA, 4)
