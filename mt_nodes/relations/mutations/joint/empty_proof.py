# SPDX-License-Identifier: Apache-2.0
"""Proof for echoes of the air: those on empty beams are on rays of the sensor, and which there are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mt_nodes.base.arrays import Floats, Mask, Rows, Singles
from mt_nodes.data.messages import Cloud
from mt_nodes.relations.mutations.joint.empty_beams import EmptyEchoes, counts_of, spliced
from mt_nodes.relations.mutations.lidar.angle_fields import angle_fields, proof_of_angles
from mt_nodes.relations.mutations.lidar.each_cloud import emptied, empty_value, without
from mt_nodes.relations.mutations.lidar.placement import RANGE_FIELDS, empty_returns
from mt_nodes.relations.mutations.lidar.rays import At, ranges_m

_NO_ROWS: Rows = np.empty(0, np.int64)


@dataclass(frozen=True, eq=False)
class Fate:
    """What happens to the returns of one cloud.

    Attributes:
        old_m, new_m: their ranges (n,) before and after.
        passing: share (n,) of the light that the air transmits.
        reads: (k,) apparent reflectivity of the echoes of the air.
        scattered: returns (n,) replaced by an echo of the air. lost: returns (n,) without replacement.
        on_empty: echoes of the air on beams without a return; None where the air is too thin for any.
    """

    at: At
    old_m: Singles
    new_m: Singles
    passing: Singles
    reads: Singles
    scattered: Mask
    lost: Mask
    on_empty: EmptyEchoes | None = None

    @property
    def reflectivity(self) -> Singles:
        """Apparent reflectivity (n,) of an echo of the air, 0 where there is none."""
        whole = np.zeros(len(self.scattered), np.float32)
        whole[self.scattered] = self.reads
        return whole

    def rows(self, mask: Mask) -> Rows:
        """Return the rows of the cloud that a mask (n,) over the returns names."""
        return np.flatnonzero(mask) if isinstance(self.at, slice) else self.at[mask]

    def echo_places(self, cloud: Cloud) -> Floats:
        """Return the places (k, 3) of the echoes of the air: those before returns, then those on empty beams."""
        rows, share = self.rows(self.scattered), (self.new_m / self.old_m)[self.scattered]
        places = np.stack([cloud.points[name][rows] * share for name in "xyz"], axis=1).astype(np.float64)
        return places if self.on_empty is None else np.concatenate([places, self.on_empty.xyz])

    def splice(self, cloud: Cloud) -> tuple[Cloud, Rows]:
        """Return a fresh cloud without the lost returns and with room for echoes on empty beams, and their rows."""
        lost, empty = self.rows(self.lost), self._empty_rows
        if cloud.organised or not len(empty):
            return without(cloud, lost), empty
        raw, copies = spliced(cloud.raw, lost, empty)
        return cloud.with_raw(raw), copies

    def blocks(self, cloud: Cloud) -> Iterator[tuple[slice, Mask, Rows]]:
        """Yield the returns in blocks: which they are of all returns, which of them (k,) stay, and their new rows."""
        lost, empty = (_NO_ROWS, _NO_ROWS) if cloud.organised else (self.rows(self.lost), self._empty_rows)
        begin = 0
        for start, count in counts_of(len(cloud), lost, empty):
            bounds = [start, start + len(count)]
            index = slice(*(bounds if isinstance(self.at, slice) else np.searchsorted(self.at, bounds)))
            own = np.arange(len(count)) if isinstance(self.at, slice) else self.at[index] - start
            stay, new = ~self.lost[index], np.cumsum(count) - count + begin
            yield index, stay, new[own[stay]]
            begin += int(count.sum())

    @property
    def _empty_rows(self) -> Rows:
        return _NO_ROWS if self.on_empty is None else self.on_empty.rows


#: The sensor reports nothing nearer.
NEAREST_M = 1.0
#: How much an echo may differ in elevation from its ring (beams start beside the frame's origin), plus a term per
#: radian of azimuth to the return beside it (the frame may be tilted against the sensor's axis).
_BEAM_RAD, _TILT = 0.01, 0.06
#: Beams that are looked at, of returns and of empty ones, with an echo of the air and without.
_SAMPLE_SIZE = 80
_BLOCK = 8192


@dataclass(frozen=True, eq=False)
class RowMap:
    """Where the points of a cloud are in the changed one: by counting what is missing and what is new before each.

    ``lost``: (k,) rows, ascending, of points that are gone. ``after``: (m,) rows, ascending, after which new ones come,
    or which they fill if ``organised``.
    """

    lost: Rows
    after: Rows
    organised: bool

    @classmethod
    def of(cls, old: Cloud, fate: Fate) -> RowMap:
        """Return that of a fate."""
        lost = np.flatnonzero(fate.lost) if isinstance(fate.at, slice) else fate.at[fate.lost]
        after = np.empty(0, np.int64) if fate.on_empty is None else fate.on_empty.rows
        return cls(lost, after, old.organised)

    @property
    def growth(self) -> int:
        """Number of points by which the cloud grows."""
        return 0 if self.organised else len(self.after) - len(self.lost)

    def moved(self, rows: Rows) -> Rows:
        """Return the new rows (n,) of points that stay (n,)."""
        if self.organised:
            return rows
        return np.asarray(rows - np.searchsorted(self.lost, rows) + np.searchsorted(self.after, rows))

    @property
    def added(self) -> Rows:
        """New rows (m,) of the new points."""
        if self.organised:
            return self.after
        return self.after + 1 - np.searchsorted(self.lost, self.after, side="right") + np.arange(len(self.after))


@dataclass(frozen=True, eq=False)
class SeenEchoes:
    """Some beams of a changed cloud: which show an echo of the air, where, and how bright it is.

    Attributes:
        index: (n,) among the returns, or among the empty beams if ``empty``. empty: (n,) whether no return was there.
        target_m: (n,) range of what is behind, infinite for nothing. xyz: (n, 3) points on the beams.
        echoed: (n,) whether the air is reported. range_m: (k,) of those. darkest, brightest: (k,) reflectivity that
            they read as, rounding apart; 0 and infinite without intensities, the latter at the end of a scale.
    """

    index: Rows
    empty: Mask
    target_m: Floats
    xyz: Floats
    echoed: Mask
    range_m: Floats
    darkest: Floats
    brightest: Floats

    @classmethod
    def of(cls, old: Cloud, new: Cloud, fate: Fate, rows_of: RowMap) -> SeenEchoes:
        """Read some from the new cloud."""
        index = _sample(fate.scattered)
        rows = index if isinstance(fate.at, slice) else fate.at[index]
        xyz, echoed = old.xyz[rows].astype(np.float64), fate.scattered[index]
        target, empties, shown = (
            np.sqrt(np.einsum("ij,ij->i", xyz, xyz)),
            np.empty(0, np.int64),
            rows_of.moved(rows[echoed]),
        )
        if fate.on_empty is not None:
            own = np.zeros(len(fate.on_empty.beams), bool)
            own[fate.on_empty.hit] = True
            empties = _sample(own)
            xyz = np.concatenate([xyz, fate.on_empty.beams.unit[:, empties].T])
            shown = np.append(shown, rows_of.added[np.cumsum(own)[empties[own[empties]]] - 1])
            echoed, target = np.append(echoed, own[empties]), np.append(target, np.full(len(empties), np.inf))
        empty = np.arange(len(echoed)) >= len(index)
        range_m = ranges_m(new, shown)
        return cls(
            np.append(index, empties), empty, target, xyz, echoed, range_m, *_brightness(new, shown, range_m, old)
        )


def _sample(echoed: Mask) -> Rows:
    """Return beams (n,), ascending: some with an echo, and some without."""
    some = (np.flatnonzero(which) for which in (echoed, ~echoed))
    return np.sort(np.concatenate([rows[:: max(1, len(rows) // _SAMPLE_SIZE)] for rows in some]))


def _brightness(new: Cloud, rows: Rows, range_m: Floats, old: Cloud) -> tuple[Floats, Floats]:
    """Return the least and the largest reflectivity (k,) that echoes read as, by the decibels of the leading field."""
    if not old.echoes.fields:
        return np.zeros(len(rows)), np.full(len(rows), np.inf)
    field = old.echoes.leading
    value, whole = new.points[field.name][rows].astype(np.float64), new.points.dtype[field.name].kind in "iu"
    grain = np.full(len(rows), 0.51) if whole else 1e-5 * np.abs(value) + 1e-30
    low, high = (
        10.0 ** (field.convention.decibels(np.maximum(value + side * grain, 0.0), range_m) / 10.0)
        for side in (-1.0, 1.0)
    )
    # An echo reads as white at most, however strong it is.
    limit = float(np.iinfo(new.points.dtype[field.name]).max) if whole else np.inf
    return low, np.where((high >= 1.0) | (value >= limit - grain), np.inf, high)


def blocks_of_rest(old: Cloud, new: Cloud, rows_of: RowMap) -> Iterator[tuple[slice, Cloud, Cloud]]:
    """Yield blocks of the old cloud without lost returns and of the new one without echoes on empty beams.

    First the rows of the old cloud that a block is of. In an organised cloud lost returns are empty.
    """
    empty = empty_value(old)
    for start in range(0, len(old), _BLOCK):
        end = min(start + _BLOCK, len(old))
        lost = rows_of.lost[slice(*np.searchsorted(rows_of.lost, [start, end]))] - start
        here = slice(*np.searchsorted(rows_of.after, [start, end]))
        before = old.raw[start:end]
        if old.organised:
            filled = rows_of.after[here] - start
            left = emptied(old.with_raw(before), lost, empty)
            rest = old.with_raw(np.delete(new.raw[start:end], filled))
            yield slice(start, end), old.with_raw(np.delete(left.raw, filled)), rest
            continue
        first, last = (int(row - np.searchsorted(rows_of.lost, row)) for row in (start, end))
        first, last = first + here.start, last + here.stop
        after = np.delete(new.raw[first:last], rows_of.added[here] - first)
        yield slice(start, end), old.with_raw(np.delete(before, lost)), new.with_raw(after)


def proof_of_empty_beams(old: Cloud, new: Cloud, rows_of: RowMap) -> str | None:
    """Prove that echoes on empty beams are on rays of the sensor, and have the other fields of their neighbours."""
    after, at = rows_of.after, rows_of.added
    if not len(after):
        return None
    if old.organised and not empty_returns(old)[after].all():
        return "an echo was put over an existing return"
    xyz = new.xyz[at].astype(np.float64)
    range_m = np.sqrt(np.einsum("ij,ij->i", xyz, xyz))
    if not (range_m >= NEAREST_M * (1.0 - 1e-5)).all():
        return f"an echo on an empty beam is at {range_m.min():.3f} m, nearer than {NEAREST_M:g} m"
    return _on_rays(old, after, xyz, range_m) or _other_fields(old, after, new, at) or proof_of_angles(old, new, at)


def _on_rays(old: Cloud, after: Rows, xyz: Floats, range_m: Floats) -> str | None:
    """Check elevations and azimuths against the returns beside: the next ones of the ring on both sides, or the one."""
    elevation, azimuth = np.arcsin(xyz[:, 2] / range_m), np.arctan2(xyz[:, 1], xyz[:, 0])
    if not old.organised:
        a, b, c = old.xyz[after].astype(np.float64).T
        turned = np.abs(_around(azimuth - np.arctan2(b, a)))
        off = np.abs(elevation - np.arctan2(c, np.hypot(a, b))) - _TILT * turned
        return None if (off <= _BEAM_RAD).all() else f"an echo is {off.max():.2g} rad off the ring of its empty beam"
    by_row, empty = old.height <= old.width, empty_returns(old)
    ring, column = (after // old.width, after % old.width) if by_row else (after % old.width, after // old.width)
    for one in np.unique(ring):
        here = ring == one
        own = np.arange(old.width) + one * old.width if by_row else np.arange(old.height) * old.width + one
        known = np.flatnonzero(~empty[own])
        a, b, c = old.xyz[own[known]].astype(np.float64).T
        level, bearing = np.arctan2(c, np.hypot(a, b)), np.unwrap(np.arctan2(b, a))
        off = np.abs(elevation[here] - np.median(level))
        aside = np.abs(_around(azimuth[here] - np.interp(column[here], known, bearing)))
        # Before the first return of a ring and after its last, the next one is as far as they are.
        step = np.median(np.abs(np.diff(bearing) / np.diff(known)))
        inside = (column[here] > known[0]) & (column[here] < known[-1])
        if (off > _BEAM_RAD).any() or (aside[inside] > _BEAM_RAD + step).any():
            return f"an echo is {max(off.max(), aside[inside].max(initial=0.0)):.2g} rad off the ring of its empty beam"
    return None


def _around(angle_rad: Floats) -> Floats:
    return np.asarray(angle_rad - 2.0 * np.pi * np.rint(angle_rad / (2.0 * np.pi)))


def _other_fields(old: Cloud, rows: Rows, new: Cloud, at: Rows) -> str | None:
    """Check that nothing but place and intensity differs from the point that was there, or the neighbour."""
    fields = (*"xyz", *filter(old.single, RANGE_FIELDS), *angle_fields(old), *old.echo_names)
    were, are = old.raw[rows].copy(), new.raw[at].copy()
    for name in filter(None, fields):
        are.view(new.points.dtype)[name] = were.view(old.points.dtype)[name]
    return None if were.tobytes() == are.tobytes() else "an echo on an empty beam has fields of its own"
