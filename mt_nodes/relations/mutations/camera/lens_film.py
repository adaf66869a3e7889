# SPDX-License-Identifier: Apache-2.0
"""Films of water, ice or patterned glass before the lens."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import cv2
import numpy as np

from mt_nodes.base.params import param
from mt_nodes.data.images.codecs import Pixels, lossy, spread_px
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.camera.each_image import OnEachCamera, View
from mt_nodes.world.camera import measures
from mt_nodes.world.camera.relight import means_of_cells

#: Largest deflection, in root mean squares: the rest of a normal distribution is cut off.
_MOST_RMS = 3.0
#: Patches of the film are made of this many samples to a side.
_SAMPLES = 4
#: Share of the difference from a picture moved as a whole that a film makes at least.
_LEAST_SHARE, _MOST_MOVED_PX = 0.3, 3.0
#: Share of a re-coded picture's pixels that may leave their bounds.
_CODED_SHARE = 0.03


@dataclass(frozen=True)
class LensFilm(OnEachCamera):
    """Shows the scene through an uneven film before the lens: water, ice, or patterned glass.

    A thin prism of slope s deflects rays by (n - 1) s (E. Hecht, "Optics", section 5.5), which moves a pixel by f times
    that; a rough film is one prism beside the other. Its height is a smooth random field with the stated spread of
    slopes and size of patches, the same throughout a segment: large patches are a film of water that distorts, small
    ones are the blur of frosted or ribbed glass. ``milkiness`` is the share of light that small-angle scattering in ice
    or dried water takes from the picture and spreads over a twentieth of its width.

    Guaranteed: every pixel lies within the range of those that its deflection can reach, and of the mean around it for
    the scattered share; pixels differ by as much as that deflection makes; the mean brightness stays within 2 % of full
    scale.
    """

    slope_mrad: float = param(
        15.0, low=0.1, high=300.0, unit="mrad", neutral=0.1, help="root mean square of the film's slope"
    )
    patch: float = param(
        0.03, low=0.0005, high=0.3, aspect="fixed", help="size of its unevenness, as a share of the picture's width"
    )
    index: float = param(
        1.33, low=1.01, high=2.0, aspect="fixed", help="refractive index: water 1.33, ice 1.31, glass 1.52"
    )
    milkiness: float = param(0.0, low=0.0, high=0.9, neutral=0.0, help="share of the light that is scattered")

    def draw_image(self, rng: np.random.Generator, view: View, state: Any) -> Draw:
        """Take the segment's key, and the focal length in pixels.

        Raises NotApplicable: there is no calibration: how many pixels an angle is, is unknown.
        """
        focal_px = float(view.camera().k[0, 0])
        return {"film_key": self.key(rng, view, state), "focal_px": focal_px}

    def change_image(self, view: View, draw: Draw) -> Pixels:
        """Fetch each pixel from where its ray comes from, then mix in what is scattered."""
        pixels = view.picture.pixels
        size = view.picture.size
        places, shares = _film(draw["film_key"], size, self._patch_px(size[1]), self.rms_px(draw))
        seen = cv2.remap(pixels, places, shares, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT_101)
        if self.milkiness:
            seen = cv2.addWeighted(seen, 1.0 - self.milkiness, spread_light(pixels), self.milkiness, 0.0, dst=seen)
        return np.asarray(seen)

    def rms_px(self, draw: Draw) -> float:
        """Return the root mean square of the deflection in pixels, along each axis."""
        return float(np.sqrt(0.5) * draw["focal_px"] * (self.index - 1.0) * self.slope_mrad * 1e-3)

    def prove_image(self, old: View, new: View, draw: Draw) -> str | None:
        """Compare with the darkest and the brightest pixel within reach."""
        reach = int(np.ceil(_MOST_RMS * self.rms_px(draw))) + 1 + spread_px(old.image)
        before, after = old.picture.luma(), new.picture.luma()
        least, most = (_extreme(before, reach, how) for how in (cv2.erode, cv2.dilate))
        if self.milkiness:
            mean = spread_light(before)
            least, most = (
                cv2.addWeighted(bound, 1.0 - self.milkiness, mean, self.milkiness, 0.0) for bound in (least, most)
            )
        slack = round((8.0 if lossy(old.image) or spread_px(old.image) else 2.0) * old.picture.full_scale / 255.0)
        beyond = cv2.max(cv2.subtract(least, after), cv2.subtract(after, most))
        share = float(np.count_nonzero(beyond > slack)) / beyond.size
        if share > (_CODED_SHARE if slack > 2 else 0.0):
            return f"{share:.2%} of the pixels are outside of what lies within {reach} px of them"
        differs, least_difference = float(cv2.mean(cv2.absdiff(before, after))[0]), self._least_difference(before, draw)
        if differs < least_difference:
            return f"samples differ by {differs:.2f} on average, expected {least_difference:.2f} behind such a film"
        moved = measures.brightness(new.picture) - measures.brightness(old.picture)
        return f"the mean brightness moved by {moved:+.4f}, it was to stay" if abs(moved) > 0.02 else None

    def _least_difference(self, luma: Pixels, draw: Draw) -> float:
        """Return a part of the mean difference from the picture moved by the root mean square, at most by 3 pixels."""
        moved_px = min(self.rms_px(draw), _MOST_MOVED_PX)
        step = max(1, round(moved_px))
        apart = float(cv2.mean(cv2.absdiff(luma[:, step:], luma[:, :-step]))[0])
        return _LEAST_SHARE * min(1.0, moved_px) * apart * (1.0 - self.milkiness)

    def _patch_px(self, width: int) -> float:
        return max(1.0, self.patch * width)


def spread_light(pixels: Pixels) -> Pixels:
    """Return the mean (H, W[, 3]) over a twentieth of the width around each pixel."""
    return np.asarray(cv2.resize(spread_coarsely(pixels), pixels.shape[1::-1]))


def spread_coarsely(pixels: Pixels) -> Pixels:
    """Return the same, (h, w[, 3]) for squares of 8 by 8 pixels."""
    height, width = pixels.shape[:2]
    if height % 8 or width % 8:
        small = cv2.resize(pixels, (max(8, width // 8), max(8, height // 8)), interpolation=cv2.INTER_AREA)
    else:
        small = means_of_cells(pixels, 8).astype(pixels.dtype, copy=False)
    side = 2 * (small.shape[1] // 40) + 1
    return np.asarray(cv2.blur(cv2.blur(small, (side, side)), (side, side)))


def _extreme(luma: Pixels, reach: int, how: Any) -> Pixels:
    """Return the least or largest sample (H, W) within a square of ``reach`` pixels around each."""
    return np.asarray(how(luma, cv2.getStructuringElement(cv2.MORPH_RECT, (2 * reach + 1,) * 2)))


@lru_cache(maxsize=8)
def _film(key: int, size: tuple[int, int], patch_px: float, rms_px: float) -> tuple[Any, Any]:
    """Return where each pixel's ray comes from: OpenCV's maps of whole pixels and of their parts."""
    step = max(1.0, patch_px / _SAMPLES)
    shape = tuple(int(np.ceil(n / step)) + 3 for n in size)
    noise = np.random.default_rng(key).standard_normal(shape, dtype=np.float32)
    sigma = patch_px / step / 2.0
    height = cv2.GaussianBlur(noise, (0, 0), sigma) if sigma > 0.4 else noise
    down, right = np.gradient(height)
    slopes = np.stack([right, down], axis=-1).astype(np.float32)
    slopes *= np.float32(1.0 / np.sqrt((slopes**2).mean()))
    slopes = np.clip(slopes, -_MOST_RMS, _MOST_RMS) * np.float32(rms_px)
    rows, columns = (round(n * step) for n in shape)
    moved = cv2.resize(slopes, (columns, rows), interpolation=cv2.INTER_LINEAR)[: size[0], : size[1]]
    y, x = np.indices(size, dtype=np.float32)
    return cv2.convertMaps(moved[..., 0] + x, moved[..., 1] + y, cv2.CV_16SC2)
