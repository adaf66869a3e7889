# SPDX-License-Identifier: Apache-2.0
"""The beam of a spinning LiDAR behind each point: from the cloud's fields, or found by analysis."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Ints, Mask, Singles
from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.messages import Cloud

Rings = npt.NDArray[np.int16]
Azimuths = npt.NDArray[np.float32]

RING_FIELDS = ("ring", "channel")
FEWEST, MOST = 2, 256
#: Rows of an organised cloud: those of a raster or of a matrix of pixels are more than a spinning sensor has beams.
MOST_ROWS = 2048
#: A cloud must fit an estimated pattern in at least this share of its returns.
LEAST_QUALITY = 0.95
#: Within a ring azimuth runs one way; a step back by more than this begins the next ring.
_STEP_BACK_TURNS = np.float32(20.0 / 360.0)
#: Where revolutions may begin: ahead, behind, at a side; slightly beside, for a first or last column right on it.
_ASIDE_TURNS = 2e-4
_SEAMS_TURNS = tuple(seam + aside for aside in (0.0, -_ASIDE_TURNS, _ASIDE_TURNS) for seam in (0.0, 0.5, 0.25, 0.75))
#: More than any azimuth: separates rings in a sort key.
_RING_KEY_RAD = 16.0
#: Single precision resolves azimuths to this.
_ROUNDING_RAD = 1e-6
#: Beams of calibrated sensors lie on cones; the narrowest spacing in use is 0.1 degrees (Pandar128, VLS-128).
_BIN_RAD = np.radians(0.02)
#: Elevations with fewer returns than this share of the fullest one lie between two beams.
_BETWEEN = 0.02
#: Clusters of exact cones are one bin wide, or two at an edge; real ones have hundreds of returns.
_WIDEST_BINS, _FEWEST_IN_HEAP = 3, 16


@dataclass(frozen=True, eq=False)
class Beams:
    """The beams behind one cloud.

    Attributes:
        ring: (N,) number of the ring, −1 if unknown. Numbers are those of the cloud's own field, else the row (or
            column) of the organised cloud, else counted from 0 in scan order or from the lowest up.
        azimuth_rad: (N,) −π to π from the x axis towards y; undefined without a return.
        rings: (K,) the numbers in use, ascending.
        elevations_rad: (K,) mean elevation of each ring's returns over the frame's origin; NaN without any.
        source: ``field ring``, ``rows``, ``columns``, ``scan order`` or ``elevation``.
        quality: share of the returns that fit the pattern, 1 if the cloud gives the rings itself.
    """

    ring: Rings
    azimuth_rad: Azimuths
    rings: Ints
    elevations_rad: Floats
    source: str
    quality: float

    @cached_property
    def upward(self) -> Ints:
        """The rings (K,) from the lowest to the highest; those without a return come last."""
        return self.rings[np.argsort(self.elevations_rad, kind="stable")]

    @cached_property
    def place(self) -> Rings:
        """(N,) index into ``rings`` of each point's ring, −1 if unknown."""
        table = np.full(int(self.rings[-1]) + 2, -1, dtype=np.int16)
        table[self.rings] = np.arange(len(self.rings))
        return np.asarray(table.take(self.ring))

    def without(self, lost: Ints) -> Beams:
        """Return the beams of a cloud that lacks some points (n,)."""
        return replace(self, ring=np.delete(self.ring, lost), azimuth_rad=np.delete(self.azimuth_rad, lost))

    def within(self, bearing_rad: float, half_width_rad: float) -> tuple[Ints, Azimuths]:
        """Return the points (n,), ascending, within a window of azimuth, and their angles (n,) to its left, radians."""
        wide = half_width_rad + _ROUNDING_RAD
        low, high = (np.float32(_around(bearing_rad + side)) for side in (-wide, wide))
        beyond, before = self.azimuth_rad >= low, self.azimuth_rad <= high
        if wide >= np.pi:
            rows = np.flatnonzero(np.isfinite(self.azimuth_rad))
        else:
            rows = np.flatnonzero(beyond | before if low > high else beyond & before)
        aside = self.azimuth_from(bearing_rad, rows)
        chosen = np.abs(aside) <= half_width_rad
        return rows[chosen], aside[chosen]

    def azimuth_from(self, bearing_rad: float, rows: Ints) -> Azimuths:
        """Return the angles of some points (n,) to the left of a bearing: −π to π."""
        aside = self.azimuth_rad[rows] - np.float32(bearing_rad)
        aside -= np.float32(2 * np.pi) * np.rint(aside / np.float32(2 * np.pi))
        return np.asarray(aside)

    def along_rings(self, bearing_rad: float, rows: Ints) -> Ints:
        """Return the order (n,) of some points ring by ring, each by angle to the left of a bearing."""
        return self.order(self.ring[rows], self.azimuth_from(bearing_rad, rows))

    @staticmethod
    def order(ring: npt.NDArray[Any], aside_rad: npt.NDArray[Any]) -> Ints:
        """Return the order (n,) ring by ring, then by azimuth; points are nearly sorted, which this sort exploits."""
        return np.argsort(ring * _RING_KEY_RAD + aside_rad, kind="stable")

    def of_rings(self, rings: npt.NDArray[Any], rows: Ints | slice = slice(None)) -> Mask:
        """Return which points (N,), or which of some of them (n,), belong to some rings."""
        table = np.zeros(int(self.rings[-1]) + 2, dtype=bool)
        table[rings.astype(np.int64)] = True
        return np.asarray(table.take(self.ring[rows]))


@dataclass(frozen=True)
class Angles:
    """Azimuth and elevation (N,) of every point, and which are returns."""

    azimuth_rad: Singles
    elevation_rad: Singles
    known: Mask


_found: WeakKeyDictionary[Cloud, Beams | str] = WeakKeyDictionary()


def beams_of(cloud: Cloud) -> Beams:
    """Return the beams of a cloud in its sensor's own frame; cached per cloud.

    The first source that works: a field ``ring`` or ``channel``; the rows of an organised cloud (its columns, if those
    are fewer); the order of the scan, if each ring is one revolution, as in KITTI's files; clusters of elevations, as
    on the cones of a calibrated sensor's beams.
    Raises NotApplicable: none of them works; with the numbers.
    """
    if cloud not in _found:
        _found[cloud] = _find(cloud)
    found = _found[cloud]
    if isinstance(found, str):
        raise NotApplicable(found)
    return found


def keep_beams(cloud: Cloud, of: Cloud, lost: Ints) -> None:
    """Declare that a cloud's points are those of another except some (n,), on the same beams, if any."""
    with suppress(NotApplicable):
        beams_of(of)
    found = _found[of]
    _found[cloud] = found if isinstance(found, str) else found.without(lost)


def _around(angle_rad: float) -> float:
    """Return an angle normalised to −π to π."""
    return float(angle_rad - 2 * np.pi * np.rint(angle_rad / (2 * np.pi)))


def _find(cloud: Cloud) -> Beams | str:
    angles = angles_of(cloud)
    returns = int(np.count_nonzero(angles.known))
    if not returns:
        return f"{cloud.topic} has no return to tell beams by among {len(cloud)} points"
    tried = []
    for ring, source, quality in _ways(cloud, angles):
        rings = np.flatnonzero(np.bincount(ring + np.int16(1))[1:])
        most = MOST_ROWS if source in ("rows", "columns") else MOST
        if FEWEST <= len(rings) <= most and quality >= LEAST_QUALITY:
            elevations = elevations_of(ring, rings, angles)
            return Beams(ring, angles.azimuth_rad, rings, elevations, source, quality)
        tried.append(f"{source} {len(rings)} rings that fit {quality:.0%}")
    return (
        f"no beams can be told in {cloud.topic}: of {returns} returns found by {', by '.join(tried)}; expected "
        f"{FEWEST} to {MOST} rings that fit at least {LEAST_QUALITY:.0%}, or a field {' or '.join(RING_FIELDS)}"
    )


def _ways(cloud: Cloud, angles: Angles) -> Iterator[tuple[Rings, str, float]]:
    """Yield ring (N,), name and quality of each source of rings, most reliable first."""
    for name in filter(cloud.single, RING_FIELDS):
        values = np.array(cloud.points[name])  # joined: its limits are then found ten times as fast
        if len(values) and values.dtype.kind in "iu" and values.min() >= 0 and values.max() < 4 * MOST:
            yield values.astype(np.int16), f"field {name}", 1.0
    if cloud.organised and cloud.width > 1:
        row, column = np.divmod(np.arange(len(cloud)), cloud.width)
        by_row = cloud.height <= cloud.width
        yield (row if by_row else column).astype(np.int16), "rows" if by_row else "columns", 1.0
    yield _by_scan_order(angles)
    yield _by_elevation(angles)


def angles_of(cloud: Cloud) -> Angles:
    """Return the directions of a cloud's points over its frame's origin."""
    x, y, z = (np.ascontiguousarray(cloud.points[name], dtype=np.float32) for name in "xyz")
    with np.errstate(invalid="ignore", over="ignore"):
        ground = np.sqrt(x * x + y * y)
        known = np.isfinite(ground + z) & ((ground > 0.0) | (z != 0.0))
        return Angles(np.arctan2(y, x), np.arctan2(z, ground), known)


def elevations_of(ring: Rings, rings: Ints, angles: Angles) -> Floats:
    """Return the mean elevation (K,) of the returns of each ring; NaN without any."""
    known = angles.known & (ring >= 0)
    number, elevation = (ring, angles.elevation_rad) if known.all() else (ring[known], angles.elevation_rad[known])
    count = np.bincount(number, minlength=int(rings[-1]) + 1)
    total = np.bincount(number, weights=elevation, minlength=len(count))
    with np.errstate(invalid="ignore"):
        return np.asarray((total / count)[rings])


def _by_scan_order(angles: Angles) -> tuple[Rings, str, float]:
    """Number the runs of ascending (or descending) azimuth; quality is the share of steps in that direction.

    The seam between two revolutions is where the fewest rings are cut.
    """
    turns = angles.azimuth_rad[angles.known] * np.float32(0.5 / np.pi)
    step = np.diff(turns)
    step -= np.rint(step)
    back = np.count_nonzero(step < 0.0) / max(1, len(step))
    quality = float(max(back, np.count_nonzero(step > 0.0) / max(1, len(step))))
    ring = np.full(len(angles.known), -1, dtype=np.int16)
    if quality < LEAST_QUALITY:
        return ring, "scan order", quality
    turns = turns if back < 0.5 else -turns
    # A full first ring begins at the seam, wherever that is.
    seams = (*_SEAMS_TURNS, float(turns[0]) - _ASIDE_TURNS)
    begins = min((_begins(turns, np.float32(seam)) for seam in seams), key=np.count_nonzero)
    # Limited: more rings than this are too many anyway.
    ring[angles.known] = np.minimum(np.cumsum(begins, dtype=np.int32), 4 * MOST)
    return ring, "scan order", quality


def _begins(turns: Singles, seam: np.float32) -> Mask:
    """Return which returns (M,), azimuths in turns, begin a new ring if revolutions begin at ``seam``."""
    turned = turns - seam
    turned -= np.floor(turned)
    begins = np.zeros(len(turns), dtype=bool)
    np.less(turned[1:] - turned[:-1], -_STEP_BACK_TURNS, out=begins[1:])
    return begins


def _by_elevation(angles: Angles) -> tuple[Rings, str, float]:
    """Number the clusters of elevations from the lowest up; quality is the share of returns in one.

    Quality is 0 if chance would give such clusters, too: scattered returns that leave enough bins empty for clusters
    this narrow have about five per cluster.
    """
    floor = np.floor(angles.elevation_rad[angles.known] / _BIN_RAD).astype(np.int16)
    floor -= floor.min()
    count, bins = np.bincount(floor), np.zeros(len(angles.known), dtype=np.int16)
    bins[angles.known] = floor
    heap = count > _BETWEEN * count.max()
    number = np.where(heap, np.cumsum(heap & ~np.append(False, heap[:-1])) - 1, -1).astype(np.int16)
    ring = np.where(angles.known, number[bins], np.int16(-1))
    returns, heaps = np.count_nonzero(angles.known), int(number.max()) + 1
    chance = np.count_nonzero(heap) > _WIDEST_BINS * heaps or returns < _FEWEST_IN_HEAP * heaps
    quality = 0.0 if chance else float(np.count_nonzero(ring >= 0) / returns)
    return ring, "elevation", quality
