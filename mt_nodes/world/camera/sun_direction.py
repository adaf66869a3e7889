# SPDX-License-Identifier: Apache-2.0
"""Where the sun stands, found from the shadows on the ground of a picture with a cloud.

For each of many directions, the shadows that the returns would cast on the ground are predicted: whatever stands is
taken for a column from the ground up to its returns. The direction whose shadows agree best with the dark places of the
picture's ground is the sun's, if it agrees much better than most; else the sky is taken for overcast.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Ints, Mask, Singles

#: Cells of the map of heights, its reach ahead and to each side, in metres.
_CELL_M, _AHEAD_M, _ASIDE_M = 0.25, 35.0, 16.0
#: Ground lies this near the lowest return around it; a column stands higher than this.
_FLAT_M, _STANDS_M, _TALLEST_M = 0.18, 0.35, 9.0
#: Columns farther than this from a place shade it too seldom to be looked for.
_FARTHEST_M = 18.0
_AZIMUTHS, _ELEVATIONS_DEG = 36, (25.0, 32.0, 40.0, 48.0, 56.0)
#: Ground up to this far is compared: farther away its light changes with the angle to the sun.
NEAREST_M, _NEARER_M = 4.0, 18.0
#: Fewest places of the ground, of each predicted light and shade; least correlation, and how far above that of the
#: best direction that is _RIVALS azimuths or more away.
_PLACES, _FEWEST, _CORRELATION, _ABOVE, _RIVALS = 400, 40, 0.3, 0.02, 7
#: Ground in the sun is at least so many times as bright as in the shade.
_CONTRAST = 1.5
#: Light in the shade, at least, as a share of that in the sun.
_DARKEST_SHADE = 0.02
#: Share of the sky in the light of level ground in the sun, at least: 10 to 15 % under a clear sky (ASHRAE Handbook of
#: Fundamentals, clear-sky model). Ground between cars sees less of the sky than what stands there.
SKY_SHARE = 0.1
#: Of ground that no return shades, so much is darker: shades of what was not measured. Steepest growth, 1/m.
_BRIGHT, _STEEPEST = 0.7, 0.2
_GAMMA = 2.2


@dataclass(frozen=True, eq=False)
class SunLight:
    """The sun.

    Attributes:
        to_sun: (3,) unit, towards it.
        lit: light of the ground in the sun, in shares of full scale, at the range NEAREST_M: asphalt scatters forwards,
            so that it grows with the range against the sun. growth: of its logarithm, in 1/m.
        shade: light of the ground in the shade.
    """

    to_sun: Floats
    lit: float
    growth: float
    shade: float

    def share(self, light: npt.ArrayLike, range_m: npt.ArrayLike, least: float = 0.0) -> Floats:
        """Return the share of the sun in the light of ground that gives ``light`` (…) at ranges (…) from the camera.

        ``least``: of the light in the sun, so much at least is the sky's.
        """
        lit = self.lit_at(range_m)
        shade = np.clip(self.shade, least * lit, lit / _CONTRAST)
        sunny = np.clip((np.asarray(light) - shade) / (lit - shade), 0.0, 1.0) * (lit - shade)
        return np.asarray(sunny / (shade + sunny))

    def lit_at(self, range_m: npt.ArrayLike) -> Floats:
        """Return the light of the ground in the sun at ranges (…), as far as it was seen."""
        away = np.clip(range_m, NEAREST_M, _NEARER_M) - NEAREST_M
        return np.asarray(np.minimum(self.lit * np.exp(self.growth * away), 1.0))

    def turned(self, turn: Floats) -> SunLight:
        """Return it in another frame, by the rotation (3, 3) into that."""
        return replace(self, to_sun=turn @ self.to_sun)

    def numbers(self) -> Floats:
        """Return it as (6,) numbers: its direction, and the light in the sun, its growth, and in the shade."""
        return np.array([*self.to_sun, self.lit, self.growth, self.shade])

    @classmethod
    def of_numbers(cls, numbers: Floats) -> SunLight:
        """Return the sun of :meth:`numbers`."""
        lit, growth, shade = (float(v) for v in numbers[3:])
        return cls(np.asarray(numbers[:3], np.float64), lit, growth, shade)


def sun_of(xyz_m: Floats, pixels: Floats, luma: npt.NDArray[np.integer], full_scale: float) -> SunLight | None:
    """Return the sun over a scene; None if the picture does not tell.

    ``xyz_m``: (n, 3) returns in a frame on the road: x ahead, y left, z up. ``pixels``: (n, 2) where the picture shows
    them, not finite for none. ``luma``: (h, w) of the picture.
    """
    heights = _heights(xyz_m)
    ground, light = _ground(xyz_m, pixels, luma, full_scale)
    if len(ground) < _PLACES:
        return None
    scores = np.zeros((_AZIMUTHS, len(_ELEVATIONS_DEG)))
    shades = {}
    for i, azimuth in enumerate(np.arange(_AZIMUTHS) * 2.0 * np.pi / _AZIMUTHS):
        towards = _heights_towards(heights, ground, azimuth)
        for j, elevation in enumerate(np.radians(_ELEVATIONS_DEG)):
            shade = _shaded(towards, np.tan(elevation))
            shades[i, j] = shade
            if min(shade.sum(), (~shade).sum()) >= _FEWEST:
                scores[i, j] = -np.corrcoef(shade, np.sqrt(light))[0, 1]
    around = (np.roll(scores, 1, axis=0) + 2.0 * scores + np.roll(scores, -1, axis=0)) / 4.0
    i, j = divmod(int(around.argmax()), len(_ELEVATIONS_DEG))
    turned = np.abs((np.arange(_AZIMUTHS) - i + _AZIMUTHS // 2) % _AZIMUTHS - _AZIMUTHS // 2)
    if around[i, j] < max(_CORRELATION, float(around[turned >= _RIVALS].max()) + _ABOVE):
        return None
    shade = shades[i, j]
    azimuth, elevation = i * 2.0 * np.pi / _AZIMUTHS, np.radians(_ELEVATIONS_DEG[j])
    lit, growth = _light_by_range(ground[~shade], light[~shade])
    dark = float(np.quantile(light[shade], 0.35))
    if lit * np.exp(growth * (_NEARER_M - NEAREST_M) / 2.0) < _CONTRAST * dark:
        return None
    to_sun = np.array([np.cos(elevation) * np.cos(azimuth), np.cos(elevation) * np.sin(azimuth), np.sin(elevation)])
    return SunLight(to_sun, lit, growth, max(dark, _DARKEST_SHADE * lit))


def _light_by_range(ground: Floats, light: Floats) -> tuple[float, float]:
    """Return the light of places (n, 3) at the nearest range, and the growth of its logarithm with the range, 1/m.

    The median of slopes between ranges (H. Theil, P. K. Sen, 1950 and 1968) is not misled by a few in the shade.
    """
    range_m = np.linalg.norm(ground[:, :2], axis=1)
    edges = np.linspace(NEAREST_M, _NEARER_M, 8)
    middles, levels = [], []
    for low, high in pairwise(edges.tolist()):
        if np.count_nonzero(own := (range_m >= low) & (range_m < high)) >= 10:
            middles.append((low + high) / 2.0)
            levels.append(np.log(max(float(np.quantile(light[own], _BRIGHT)), 1e-4)))
    if len(levels) < 3:
        return float(np.quantile(light, _BRIGHT)), 0.0
    away, level = np.array(middles) - NEAREST_M, np.array(levels)
    first, second = np.triu_indices(len(away), 1)
    slopes = (level[second] - level[first]) / (away[second] - away[first])
    growth = float(np.clip(np.median(slopes), 0.0, _STEEPEST))
    return float(np.exp(np.median(level - growth * away))), growth


def _cells(x: Floats, y: Floats) -> tuple[Ints, Ints]:
    return ((x + _AHEAD_M / 4) / _CELL_M).astype(np.int64), ((y + _ASIDE_M) / _CELL_M).astype(np.int64)


def _heights(xyz_m: Floats) -> Singles:
    """Return the height (rows, columns) of what stands in each cell of the map, 0 for nothing."""
    x, y, z = xyz_m.T
    low = _lowest(xyz_m)
    size = low.shape
    rows, columns = _cells(x, y)
    inside = (rows >= 0) & (rows < size[0]) & (columns >= 0) & (columns < size[1])
    height = np.zeros(size, np.float32)
    above = z[inside] - low[rows[inside], columns[inside]]
    kept = (above > _STANDS_M) & (above < _TALLEST_M)
    np.maximum.at(height, (rows[inside][kept], columns[inside][kept]), above[kept].astype(np.float32))
    return np.asarray(cv2.dilate(height, np.ones((3, 3), np.uint8)))


def _lowest(xyz_m: Floats) -> Singles:
    """Return the ground's height (rows, columns), the least within some cells around."""
    size = int(1.25 * _AHEAD_M / _CELL_M) + 1, int(2 * _ASIDE_M / _CELL_M) + 1
    x, y, z = xyz_m.T
    rows, columns = _cells(x, y)
    inside = (rows >= 0) & (rows < size[0]) & (columns >= 0) & (columns < size[1])
    low = np.full(size, 1e3, np.float32)
    np.minimum.at(low, (rows[inside], columns[inside]), z[inside].astype(np.float32))
    return np.asarray(cv2.erode(low, np.ones((9, 9), np.uint8)))


def _ground(xyz_m: Floats, pixels: Floats, luma: npt.NDArray[np.integer], full_scale: float) -> tuple[Floats, Floats]:
    """Return places (n, 3) of the ground that the picture shows, and their light (n,)."""
    x, y, z = xyz_m.T
    rows, columns = _cells(x, y)
    low = _lowest(xyz_m)
    with np.errstate(invalid="ignore"):
        shown = (pixels >= 0).all(axis=1) & (pixels[:, 0] < luma.shape[1] - 1) & (pixels[:, 1] < luma.shape[0] - 1)
    shown &= (
        (rows >= 0)
        & (rows < low.shape[0])
        & (columns >= 0)
        & (columns < low.shape[1])
        & (x > 2.0)
        & (np.hypot(x, y) < _NEARER_M)
    )
    at = np.flatnonzero(shown)
    at = at[np.abs(z[at] - low[rows[at], columns[at]]) < _FLAT_M]
    at = at[:: max(1, len(at) // 2000)]
    soft = cv2.blur(luma, (3, 3))
    u, v = np.rint(pixels[at]).astype(np.int64).T
    return xyz_m[at], (soft[v, u] / full_scale) ** _GAMMA


def _heights_towards(heights: Singles, ground: Floats, azimuth: float) -> Singles:
    """Return the heights (steps, n) of columns at steps from places (n, 3) of the ground towards an azimuth."""
    steps = np.arange(1, int(_FARTHEST_M / _CELL_M) + 1)[:, None] * _CELL_M
    rows, columns = _cells(ground[:, 0] + steps * np.cos(azimuth), ground[:, 1] + steps * np.sin(azimuth))
    inside = (rows >= 0) & (rows < heights.shape[0]) & (columns >= 0) & (columns < heights.shape[1])
    return np.asarray(np.where(inside, heights.take(rows * heights.shape[1] + columns, mode="clip"), np.float32(0.0)))


def _shaded(heights: Singles, slope: float) -> Mask:
    """Return which places (n,) of the ground a column hides from the sun, ``slope`` up a metre.

    ``heights``: (steps, n) of the columns between them and the sun.
    """
    reach_m = min(_TALLEST_M / slope, _FARTHEST_M)
    rise_m = np.arange(1, int(reach_m / _CELL_M) + 1) * _CELL_M * slope
    return np.asarray((heights[: len(rise_m)] > rise_m[:, None]).any(axis=0))
