# SPDX-License-Identifier: Apache-2.0
"""What the host camera adds to whatever it sees: blur, colour fringes, and noise, measured in its picture."""

from __future__ import annotations

from functools import lru_cache

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.data.images.codecs import Picture
from mt_nodes.world.scene.object_rendering import Window

Singles = npt.NDArray[np.float32]
#: How far around a window the picture is looked at, in pixels; the widest fringe, and the least trust in it.
_AROUND_PX, _FRINGE_PX, _TRUST = 40, 0.8, 0.25
#: Width of the grain in pixels: demosaicing mixes neighbours (assumed).
_GRAIN_PX, _TILE_PX = 0.55, 512
_NOISE = np.array([[1.0, -2.0, 1.0], [-2.0, 4.0, -2.0], [1.0, -2.0, 1.0]], np.float32)


def blur_px(picture: Picture, window: Window) -> float:
    """Return the standard deviation in pixels of the camera's blur, measured on the sharpest edges around a window.

    A sharp edge blurred by s, blurred again by 1, has a gradient s / sqrt(s² + 1) times as steep (S. Zhuo and T. Sim,
    Defocus map estimation from a single image, Pattern
    Recognition 44, 2011, pp. 1852-1858).
    """
    rows, columns = (slice(max(0, s.start - _AROUND_PX), s.stop + _AROUND_PX) for s in window)
    luma = picture.luma()[rows, columns].astype(np.float32)
    blurred = cv2.GaussianBlur(luma, (0, 0), 1.0)
    first, second = (np.abs(np.diff(a, axis=1)) for a in (luma, blurred))
    steep = first >= max(float(np.quantile(first[::2, ::2], 0.99)), 1.0)
    if not steep.any():
        return 0.6
    ratio = float(np.median(first[steep] / np.maximum(second[steep], 1e-3)))
    return float(np.clip(1.0 / np.sqrt(max(ratio * ratio - 1.0, 0.2)), 0.45, 1.5))


def noise_level(picture: Picture, window: Window) -> float:
    """Return the standard deviation of the noise around a window, in the picture's samples.

    J. Immerkær, "Fast noise variance estimation", Computer Vision and Image Understanding 64(2), 1996, with the median
    in place of the mean, so that edges do not count.
    """
    rows, columns = (slice(max(0, s.start - _AROUND_PX), s.stop + _AROUND_PX) for s in window)
    luma = picture.luma()[rows, columns].astype(np.float32)
    rest = np.abs(cv2.filter2D(luma, -1, _NOISE)[1:-1:2, 1:-1:2])
    full = luma < 0.98 * picture.full_scale
    kept = rest[full[1:-1:2, 1:-1:2]]
    return float(np.median(kept) / 0.6745 / 6.0) if kept.size > 50 else 0.0


def grain(size: tuple[int, int], sigma: float, seed: int) -> Singles:
    """Return noise (h, w) of a standard deviation, as wide as the camera's grain; the same for the same seed."""
    top, left = (int(v) for v in np.random.Generator(np.random.SFC64(seed % 2**63)).integers(0, _TILE_PX, 2))
    rows, columns = (np.arange(first, first + n) % _TILE_PX for first, n in zip((top, left), size, strict=True))
    return np.asarray(_tile()[rows[:, None], columns] * np.float32(sigma))


@lru_cache
def _tile() -> Singles:
    """A tile of noise of mean 0 and standard deviation 1."""
    white = np.random.Generator(np.random.SFC64(0)).standard_normal((_TILE_PX, _TILE_PX), dtype=np.float32)
    soft = cv2.GaussianBlur(np.tile(white, (2, 2)), (0, 0), _GRAIN_PX)[8 : _TILE_PX + 8, 8 : _TILE_PX + 8]
    return np.asarray((soft - soft.mean()) / soft.std())


def fringe_px(picture: Picture, window: Window) -> npt.NDArray[np.float64]:
    """Return how far red and blue (2, 2: x, y) are shifted against green around a window, by phase correlation.

    C. Kuglin, D. Hines, "The phase correlation image alignment method", IEEE Conference on Cybernetics and Society,
    1975. A weak peak, or a shift above any lens's, counts as none.
    """
    shifts = np.zeros((2, 2))
    if picture.order == "mono":
        return shifts
    rows, columns = window
    middle = (rows.start + rows.stop) // 2, (columns.start + columns.stop) // 2
    top, left = (int(np.clip(m - 64, 0, max(0, n - 128))) for m, n in zip(middle, picture.size, strict=True))
    piece = picture.pixels[top : top + 128, left : left + 128].astype(np.float32)
    if min(piece.shape[:2]) < 32:
        return shifts
    green = np.ascontiguousarray(piece[..., picture.channel("g")])
    hanning = cv2.createHanningWindow(green.shape[::-1], cv2.CV_32F)
    for i, name in enumerate("rb"):
        other = np.ascontiguousarray(piece[..., picture.channel(name)])
        shift, trust = cv2.phaseCorrelate(green, other, hanning)
        if trust > _TRUST and max(map(abs, shift)) < _FRINGE_PX:
            shifts[i] = shift
    return shifts
