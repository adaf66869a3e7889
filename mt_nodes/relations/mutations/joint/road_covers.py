# SPDX-License-Identifier: Apache-2.0
"""Covers of a road: their reflectance for LiDARs and cameras, and their patches.

Albedos and patches are chosen to look like what one meets. Reflectivities at LiDARs' wavelengths near 0.9 µm: snow 0.9
(M. Hahner et al., CVPR 2022); that of snow that has aged falls in the near infrared, by how much depends on its history
(H. O'Brien, R. Munis, "Red and Near-Infrared Spectral Reflectance of Snow", CRREL Research Report 332, 1975), so that
0.7 is assumed for packed snow. Those of milky ice, of mud and of gravel are assumed: no measurement was found.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Singles

Rgb = tuple[float, float, float]
WATER, ICE = 1.33, 1.31

#: Period of the pattern in metres, and its resolution.
TILE_M, _STEPS = 32.0, 512
#: Correlation lengths of patches along and across the road, and of their finer grain; how soft a patch's edge is.
_PATCH_M, _GRAIN_M, _SOFT = (3.0, 0.7), (0.16, 0.09), 0.25


@dataclass(frozen=True)
class Cover:
    """A kind of road cover.

    Attributes:
        reflectivity: diffuse, of what lies there, at LiDARs' wavelengths. albedo: red, green, blue.
        index: refractive index of its smooth surface, which mirrors; 1 for a rough one.
        grain: standard deviation of its lighter and darker places, relative to the mean. finer: how many times smaller
            these places are than others'. pressed: how much darker wheels have left it in their tracks.
    """

    reflectivity: float
    albedo: Rgb
    index: float
    grain: float
    finer: tuple[float, ...] = (1.0,)
    pressed: float = 0.0


COVERS: dict[str, Cover] = {
    "snow": Cover(0.7, (0.8, 0.82, 0.86), 1.0, 0.13, (1.0, 5.0), 0.3),
    "ice": Cover(0.12, (0.34, 0.38, 0.42), ICE, 0.1),
    "mud": Cover(0.15, (0.105, 0.066, 0.036), WATER, 0.3),
    "gravel": Cover(0.3, (0.3, 0.26, 0.21), 1.0, 0.4, (5.0,)),
}


def share_at(x_m: npt.NDArray[np.floating], y_m: npt.NDArray[np.floating], amount: float) -> Singles:
    """Return the covered share of the ground at places, if ``amount`` of it is covered on average.

    ``x_m``, ``y_m``: (n,) or (h, w), along and across the road. ``amount``: 0 to 1; everything is covered at 1.
    """
    edge = _edge(amount)
    found = tile_values(_patches(), x_m, y_m)
    np.subtract(np.float32(edge), found, out=found)
    found *= np.float32(1.0 / _SOFT)
    found += np.float32(0.5)
    return np.clip(found, 0.0, 1.0, out=found)


def _edge(amount: float) -> float:
    """Return the value below which a tile is covered, with soft edges, so that this share of it is on average.

    The share of uniform values is the edge itself, but where a soft edge goes beyond 0 or 1: there it is the area of
    the rest of a triangle.
    """
    if amount < _SOFT / 2.0:
        return float(np.sqrt(2.0 * _SOFT * amount)) - _SOFT / 2.0
    if amount > 1.0 - _SOFT / 2.0:
        return 1.0 + _SOFT / 2.0 - float(np.sqrt(2.0 * _SOFT * (1.0 - amount)))
    return amount


def grain_at(x_m: Singles, y_m: Singles) -> Singles:
    """Return the relative lightness of the grain at places (h, w): mean 0 and deviation 1."""
    return tile_values(_grain(), x_m, y_m)


def tile_values(tile: Singles, x_m: npt.NDArray[np.floating], y_m: npt.NDArray[np.floating]) -> Singles:
    """Return the values of a periodic tile at places (n,) or (h, w), interpolated."""
    shape, per_m = x_m.shape, np.float32(_STEPS / TILE_M)
    # cv2.remap takes at most 32,767 rows or columns, and needs contiguous rows.
    width = shape[1] if len(shape) == 2 else 4096
    at = [_within(np.asarray(m, np.float32).reshape(-1) * per_m, width) for m in (x_m, y_m)]
    parts = [
        cv2.remap(tile, at[0][i : i + 30_000], at[1][i : i + 30_000], cv2.INTER_LINEAR, borderMode=cv2.BORDER_WRAP)
        for i in range(0, len(at[0]), 30_000)
    ]
    found = np.concatenate(parts).reshape(-1) if parts else np.empty(0, np.float32)
    return np.asarray(found[: x_m.size].reshape(shape), np.float32)


def _within(places: Singles, width: int) -> Singles:
    """Return places (n,) along a tile, in rows of a width, within its period: beyond it, remapping is slow."""
    places -= np.floor(places * np.float32(1.0 / _STEPS)) * np.float32(_STEPS)
    missing = -len(places) % width
    return (np.pad(places, (0, missing)) if missing else places).reshape(-1, width)


@lru_cache(maxsize=1)
def _patches() -> Singles:
    """Return a tile with values uniform in 0 to 1: the share of values below any value is that value."""
    noise = _noise(1, _PATCH_M) + 0.35 * _noise(2, _GRAIN_M)
    ranks = np.empty(noise.size, np.float32)
    ranks[np.argsort(noise.reshape(-1))] = (np.arange(noise.size) + 0.5) / noise.size
    return np.asarray(ranks.reshape(noise.shape))


@lru_cache(maxsize=1)
def _grain() -> Singles:
    noise = _noise(3, _GRAIN_M) + 0.5 * _noise(4, (4.0, 0.35))
    return np.asarray(noise / noise.std(), np.float32)


def _noise(seed: int, length_m: tuple[float, float]) -> Floats:
    """Return periodic Gaussian noise of deviation 1, of these correlation lengths along columns and along rows."""
    frequency = 2.0 * np.pi * np.fft.fftfreq(_STEPS, TILE_M / _STEPS)
    along, across = (np.exp(-0.25 * np.square(frequency * m)) for m in length_m)
    white = np.random.default_rng(seed).standard_normal((_STEPS, _STEPS))
    smooth = np.fft.ifft2(np.fft.fft2(white) * across[:, None] * along[None]).real
    return np.asarray((smooth - smooth.mean()) / smooth.std())
