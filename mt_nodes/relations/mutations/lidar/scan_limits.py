# SPDX-License-Identifier: Apache-2.0
"""A weaker LiDAR: fewer beams or returns, a shorter range, a smaller field of view."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Mask
from mt_nodes.base.errors import NotApplicable, UsageError
from mt_nodes.base.params import param
from mt_nodes.data.effects import Volume
from mt_nodes.data.firings import Firings, return_pairs
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.lidar.lost_returns import (
    LostReturns,
    azimuth_rad,
    bearing_offset_rad,
    cloud_offset_rad,
    sector,
)
from mt_nodes.relations.mutations.lidar.placement import empty_returns
from mt_nodes.relations.mutations.lidar.rays import ranges_m
from mt_nodes.relations.mutations.lidar.ring_order import in_rings
from mt_nodes.world.scene.beams import MOST, MOST_ROWS
from mt_nodes.world.scene.scan_lines import BANDS, lasers_of, scan_lines_of


@dataclass(frozen=True)
class BeamsLost(LostReturns):
    """Loses every return of some beams, given or drawn, as when lasers or receivers fail.

    A failed laser stays dark: the drawn ones last a whole segment, and a larger number includes those of a smaller one.
    Beams come from :func:`mt_nodes.world.scene.scan_lines.lasers_of`: from a field that numbers rings, channels, lines
    or lasers, else from rows, or by search. Guaranteed: no return of a lost beam remains, and no other return changes.
    """

    count: int = param(4, low=1, high=MOST, neutral=1, help="beams that are lost, drawn once a segment")
    rings: tuple[int, ...] = param(
        (), low=0, aspect="place", help="the numbers of the rings that are lost, in place of count"
    )

    def begin(self, rng: np.random.Generator, bundle: Bundle) -> Floats:
        """Draw the order in which beams fail (2048,)."""
        return rng.random(MOST_ROWS)

    def choose(self, cloud: Cloud, state: Any) -> Draw:
        """Choose the rings: under ``rings`` (n,)."""
        known = lasers_of(cloud).rings
        missing = sorted(set(self.rings) - set(known.tolist()))
        if missing:
            raise NotApplicable(
                f"{cloud.topic} has no ring {missing[0]}; it has {len(known)}, {known[0]} to {known[-1]}"
            )
        if len(known) <= (len(self.rings) or self.count):
            raise NotApplicable(f"{cloud.topic} has {len(known)} rings, and none would be left")
        failing = np.array(self.rings) if self.rings else known[np.argsort(state[: len(known)])[: self.count]]
        return {"rings": np.sort(failing).astype(np.uint16)}

    def lost(self, cloud: Cloud, draw: Draw) -> Mask:
        """Look rings up in a table."""
        return lasers_of(cloud).of_rings(draw["rings"])

    def excess(self, cloud: Cloud, draw: Draw) -> Floats:
        """1 for a point of a lost ring, by a search among them, else −1."""
        lost, ring = draw["rings"].astype(np.int64), lasers_of(cloud).ring
        nearest = lost[np.minimum(np.searchsorted(lost, ring), len(lost) - 1)]
        return np.where(nearest == ring, 1.0, -1.0)


@dataclass(frozen=True)
class VerticalResolutionReduced(LostReturns):
    """Keeps the returns of every k-th beam, counted from the lowest elevation up.

    A 64-beam sensor becomes one of 32 or 16 beams with the same field of view. Rings are found and sorted by elevation
    by :func:`mt_nodes.world.scene.scan_lines.scan_lines_of`; a scan without rings is cut into bands of elevation as
    high as its returns are apart. Guaranteed: every k-th ring is complete, and no other ring has a return.
    """

    keep_every: int = param(2, low=2, high=64, neutral=2, help="one beam of so many is kept")
    first: int = param(0, low=0, high=63, aspect="place", help="beams below the first one that is kept")

    def __post_init__(self) -> None:
        if self.first >= self.keep_every:
            raise UsageError(f"got first {self.first}, expected less than keep_every {self.keep_every}")

    def lost(self, cloud: Cloud, draw: Draw) -> Mask:
        """Look rings up in a table; a return of unknown ring is lost, too."""
        beams = scan_lines_of(cloud)
        return ~beams.of_rings(beams.upward[self.first :: self.keep_every])

    def excess(self, cloud: Cloud, draw: Draw) -> Floats:
        """−1 for a ring at a multiple of k from the first one, by counting lower ones, else 1."""
        beams = scan_lines_of(cloud)
        one, other = beams.elevations_rad[:, None], beams.elevations_rad[None, :]
        # Of two rings at one elevation the one with the lower number counts as lower: K x K, earlier columns.
        lower = ((other < one) | np.tril(other == one, -1)).sum(axis=1) - self.first
        remains = (lower >= 0) & (lower % self.keep_every == 0)
        return np.where(np.append(remains, False)[beams.place], -1.0, 1.0)


@dataclass(frozen=True)
class DensityDecreased(LostReturns):
    """Keeps every k-th return of each ring, in scan order: a coarser azimuth step.

    A spinning sensor at k times the rate, or with 1 / k of the firings, has this resolution (Velodyne VLP-16: 0.1
    degrees at 5 Hz, 0.4 at 20 Hz); the vertical resolution stays. Rings come from
    :func:`mt_nodes.world.scene.scan_lines.scan_lines_of`; returns of unknown ring are thinned as one ring. In a scan
    without rings every k-th return, by azimuth, of each band of elevation remains: one in k of the neighbours in angle.

    Of a sensor in dual-return mode, firings are thinned, each with all its returns.

    Guaranteed: exactly every k-th return (or firing) of each ring remains, byte for byte.
    """

    keep_every: int = param(2, low=2, high=100, neutral=2, help="one return of so many is kept in each ring")
    first: int = param(0, low=0, high=99, aspect="place", help="returns of each ring before the first one that is kept")

    def __post_init__(self) -> None:
        if self.first >= self.keep_every:
            raise UsageError(f"got first {self.first}, expected less than keep_every {self.keep_every}")

    def lost(self, cloud: Cloud, draw: Draw) -> Mask:
        """Number the returns of each ring, all rings at once."""
        rows, begins = in_rings(cloud)
        length = np.diff(begins, append=len(rows))
        firings = return_pairs(cloud)
        if firings.dual:
            rows, length = _without_others(rows, length, firings)
            begins = np.cumsum(length) - length
        number = (np.arange(len(rows), dtype=np.int32) - np.repeat(begins, length)).astype(np.uint32)
        lost = np.zeros(len(cloud), dtype=bool)
        lost[rows] = number % np.uint32(self.keep_every) != self.first
        return lost[firings.head] if firings.dual else lost

    def excess(self, cloud: Cloud, draw: Draw) -> Floats:
        """−1 for every k-th return of a ring, else 1: ring by ring."""
        lines, known, firings = scan_lines_of(cloud), ~empty_returns(cloud), return_pairs(cloud)
        excess = np.ones(len(cloud))
        for line in range(-1, int(lines.place.max()) + 1):
            rows = np.flatnonzero((lines.place == line) & known)
            if lines.source == BANDS:
                rows = rows[np.argsort(lines.azimuth_rad[rows], kind="stable")]
            excess[rows[firings.head[rows] == rows][self.first :: self.keep_every]] = -1.0
        return excess[firings.head] if firings.dual else excess


def _without_others(
    rows: npt.NDArray[np.int32], length: npt.NDArray[Any], firings: Firings
) -> tuple[npt.NDArray[np.int32], npt.NDArray[Any]]:
    """Return the rows (k,) that stand for firings, line by line, and how many each line has (lines,)."""
    heads = firings.head[rows] == rows
    line = np.repeat(np.arange(len(length)), length)
    return rows[heads], np.bincount(line[heads], minlength=len(length))


@dataclass(frozen=True)
class RangeReduced(LostReturns):
    """Loses every return beyond a distance from the sensor.

    As with a weaker laser, an ageing detector or a sensor of shorter range: the rest is what such a sensor reports,
    because time of flight alone, 2 R / c, decides. Guaranteed: no return beyond ``max_range_m`` remains, and none
    within it changes. Effects: everything farther away is occluded.
    """

    max_range_m: float = param(60.0, low=1.0, high=300.0, unit="m", neutral=300.0, help="returns farther away are lost")

    tolerance: ClassVar[float] = 1e-4

    def lost(self, cloud: Cloud, draw: Draw) -> Mask:
        """Compare squares in single precision."""
        x, y, z = (np.ascontiguousarray(cloud.points[name], dtype=np.float32) for name in "xyz")
        with np.errstate(invalid="ignore", over="ignore"):
            return np.asarray(x * x + y * y + z * z > np.float32(self.max_range_m**2))

    def excess(self, cloud: Cloud, draw: Draw) -> Floats:
        """Metres beyond the range, in double precision."""
        x, y, z = (cloud.points[name].astype(np.float64) for name in "xyz")
        return np.asarray(np.hypot(np.hypot(x, y), z) - self.max_range_m)

    def hidden(self, cloud: Cloud) -> tuple[Volume, ...]:
        """An unbounded ring around the sensor."""
        return tuple(sector(cloud.frame_id, 0.0, 2.0 * np.pi, near_m=self.max_range_m))


@dataclass(frozen=True)
class FieldOfViewLimited(LostReturns):
    """Loses every return outside of an azimuth window or outside of two elevation limits.

    As with a sensor behind a grille or a bumper, or one with a smaller field of view. Angles are the sensor's own:
    azimuth atan2(y, x), elevation atan2(z, √(x² + y²)). Guaranteed: no return outside the window remains, and none
    inside it changes. Effects: the sectors outside the azimuth window are occluded; what the elevation limits hide is
    not reported.
    """

    centre_deg: float = param(
        0.0, low=-180.0, high=180.0, unit="deg", aspect="place", help="azimuth of the window's middle"
    )
    width_deg: float = param(
        120.0, low=1.0, high=360.0, unit="deg", neutral=360.0, help="width of the window; 360: all around"
    )
    lowest_deg: float = param(
        -90.0, low=-90.0, high=90.0, unit="deg", neutral=-90.0, help="lowest elevation that is seen"
    )
    highest_deg: float = param(
        90.0, low=-90.0, high=90.0, unit="deg", neutral=90.0, help="highest elevation that is seen"
    )

    def __post_init__(self) -> None:
        if self.lowest_deg >= self.highest_deg:
            raise UsageError(f"got lowest_deg {self.lowest_deg:g}, expected it below highest_deg {self.highest_deg:g}")

    def lost(self, cloud: Cloud, draw: Draw) -> Mask:
        """Compare angles in single precision."""
        lost = np.zeros(len(cloud), dtype=bool)
        if self.width_deg < 360.0:
            lost |= bearing_offset_rad(azimuth_rad(cloud), np.radians(self.centre_deg)) > np.radians(
                self.width_deg / 2.0
            )
        if self.lowest_deg > -90.0 or self.highest_deg < 90.0:
            x, y, z = (np.ascontiguousarray(cloud.points[name], dtype=np.float32) for name in "xyz")
            elevation = np.arctan2(z, np.sqrt(x * x + y * y))
            lost |= (elevation < np.radians(self.lowest_deg)) | (elevation > np.radians(self.highest_deg))
        return lost

    def excess(self, cloud: Cloud, draw: Draw) -> Floats:
        """Radians outside of the window, from scalar products."""
        excess = np.full(len(cloud), -np.inf)
        if self.lowest_deg > -90.0 or self.highest_deg < 90.0:
            with np.errstate(invalid="ignore", divide="ignore"):
                elevation = np.arcsin(cloud.points["z"].astype(np.float64) / ranges_m(cloud, slice(None)))
            excess = np.maximum(np.radians(self.lowest_deg) - elevation, elevation - np.radians(self.highest_deg))
        if self.width_deg < 360.0:
            aside = cloud_offset_rad(cloud, np.radians(self.centre_deg))
            np.maximum(excess, aside - np.radians(self.width_deg / 2.0), out=excess)
        return np.asarray(excess)

    def hidden(self, cloud: Cloud) -> tuple[Volume, ...]:
        """The rest of the circle."""
        rest = np.radians(360.0 - self.width_deg)
        return tuple(sector(cloud.frame_id, np.radians(self.centre_deg) + np.pi, rest)) if rest > 0.0 else ()
