# SPDX-License-Identifier: Apache-2.0
"""Beams through a plume, and the share of their power that it transmits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Rows, Singles
from mt_nodes.data.messages import Cloud
from mt_nodes.data.transforms import Matrix
from mt_nodes.relations.mutations.joint.echoes import rows_at
from mt_nodes.relations.mutations.joint.plume import Plume, depth, places, within
from mt_nodes.relations.mutations.lidar.rays import At, blocks, columns

Ways = tuple[Rows, Singles]

#: An echo nearer than this to the beam's return merges with it.
_APART_M = 0.2
#: Sampling points on a beam in the proof, and beams per block.
_STEPS, _PART, _PROOF_PART = 32, 8192, 512
#: Sampling points on a beam for echoes.
_PLACES = 8
#: Extinction over back-scatter of water droplets at 905 nm (E. O'Connor et al., 2004).
_LIDAR_RATIO_SR = 18.8
#: Half the length of a pulse of 10 ns: the depth that scatters at once.
_PULSE_M = 1.5


@dataclass(frozen=True, eq=False)
class PlumeBeams:
    """Beams through a plume: rows (n,), unit directions (3, n) in the ego's frame, own ranges, way through (n,)."""

    rows: Rows
    direction: Singles
    own_m: Floats
    enter_m: Singles
    leave_m: Singles

    @classmethod
    def of(cls, ways: list[Ways], origin: Floats, plume: Plume, least_m: float) -> PlumeBeams:
        """Return the beams from ``origin`` (3,) that go through the plume farther away than ``least_m``."""
        parts = [_through(rows, way, origin, plume, least_m) for rows, way in ways]
        columns_ = ([getattr(part, field.name) for part in parts] for field in fields(cls))
        return cls(*(np.concatenate(column, axis=-1) for column in columns_))

    def parts(self) -> Iterator[PlumeBeams]:
        """Yield the beams in blocks of some thousands, which fit the processor's cache."""
        for start in range(0, len(self.rows), _PART):
            of = slice(start, start + _PART)
            yield PlumeBeams(self.rows[of], self.direction[:, of], self.own_m[of], self.enter_m[of], self.leave_m[of])

    def passed(self, plume: Plume, origin: Floats) -> Floats:
        """Return the share (n,) of the power of each beam's return left after the way out and back."""
        depths = [depth(plume, origin, part.direction, part.enter_m, part.leave_m) for part in self.parts()]
        return np.asarray(np.exp(-2.0 * np.concatenate([np.empty(0), *depths])))


#: Of a cloud's last plume: the rows and ranges of its beams, and what passes.
_found: WeakKeyDictionary[Cloud, tuple[tuple[Any, ...], Rows, Floats, Floats]] = WeakKeyDictionary()


def beams_through(cloud: Cloud, to_ego: Matrix, plume: Plume, least_m: float) -> tuple[PlumeBeams, Floats]:
    """Return a cloud's beams through a plume, and the share (n,) of the power of each beam's return that passes."""
    beams = PlumeBeams.of(ways_to(cloud, to_ego), to_ego[:3, 3], plume, least_m)
    passed = beams.passed(plume, to_ego[:3, 3])
    _found[cloud] = _key(to_ego, plume, least_m), beams.rows, beams.own_m, passed
    return beams, passed


def known_beams(cloud: Cloud, to_ego: Matrix, plume: Plume, least_m: float) -> tuple[Rows, Floats, Floats]:
    """Return rows, own ranges and passing shares (n,) of :func:`beams_through`; cached for a cloud's last plume."""
    found = _found.get(cloud)
    if found is None or found[0] != _key(to_ego, plume, least_m):
        beams_through(cloud, to_ego, plume, least_m)
        found = _found[cloud]
    return found[1:]


def _key(to_ego: Matrix, plume: Plume, least_m: float) -> tuple[Any, ...]:
    return plume, to_ego.tobytes(), least_m


def reflectivity_of(extinction_per_m: Singles | Floats) -> npt.NDArray[Any]:
    """Return the reflectivity (n,) of the surface, 0 to 1, whose echo is as strong as that of droplets."""
    return np.minimum(np.pi * _PULSE_M / _LIDAR_RATIO_SR * extinction_per_m, 1.0)


def strongest_echoes(
    beams: PlumeBeams, plume: Plume, origin: Floats, chance: Singles, focus_m: float
) -> tuple[Singles, Singles]:
    """Return the strongest echo of a plume on each beam (n,), as a reflectivity of 0 to 1, and its range (n,).

    ``chance``: a number of 0 to 1 for every point of the cloud, by which places on its beam are shifted.
    """
    found = [_strongest_of(part, plume, origin, chance[part.rows], np.float32(focus_m)) for part in beams.parts()]
    soft, soft_m = (np.concatenate(column) for column in zip(*found, strict=True))
    return soft, soft_m


def _strongest_of(
    beams: PlumeBeams, plume: Plume, origin: Floats, chance: Singles, focus_m: np.float32
) -> tuple[Singles, Singles]:
    way, step_m = plume.along(origin, beams.direction), (beams.leave_m - beams.enter_m) / _PLACES
    at_m = beams.enter_m + step_m * (np.float32(0.05) + np.float32(0.9) * chance)
    before, best, best_m = np.zeros_like(at_m), np.zeros_like(at_m), at_m.copy()
    for _ in range(_PLACES):
        mean = way.mean_per_m(at_m)
        power = reflectivity_of(mean * way.patchiness(at_m)) * np.exp((before + mean) * -step_m)
        power /= np.square(np.maximum(at_m, focus_m))
        np.copyto(best_m, at_m, where=power > best)
        np.maximum(best, power, out=best)
        before += 2 * mean
        at_m += step_m
    return best * np.square(np.maximum(best_m, focus_m)), best_m


def ways_to(cloud: Cloud, to_ego: Matrix) -> list[Ways]:
    """Return rows (n,) of the returns, in blocks of some thousands, and the vector (3, n) to each in the ego's frame.

    Single precision suffices: a tenth of a millimetre does not matter here.
    """
    turn = to_ego[:3, :3].astype(np.float32)
    return [(rows_at(cloud, at), turn @ _singles(cloud, at)) for at in blocks(cloud)]


def passed_by_steps(cloud: Cloud, rows: Rows, plume: Plume, to_ego: Matrix, least_m: float) -> Floats:
    """Return the same as :meth:`PlumeBeams.passed` for returns (n,), in double precision and by the midpoint rule."""
    cuts = np.arange(_PROOF_PART, len(rows), _PROOF_PART)
    return np.concatenate([_passed_part(cloud, part, plume, to_ego, least_m) for part in np.split(rows, cuts)])


def _singles(cloud: Cloud, at: At) -> Singles:
    return np.stack([cloud.points[name][at].astype(np.float32) for name in "xyz"])


def _through(rows: Rows, way: Singles, origin: Floats, plume: Plume, least_m: float) -> PlumeBeams:
    # Most beams end before the plume or miss it: a test of the box around each beam saves the rest.
    near = np.ones(len(rows), dtype=bool)
    for end, low, high in zip(way, *((side - origin).tolist() for side in plume.box_m), strict=True):
        if low >= 0.0:
            near &= end > low
        if high <= 0.0:
            near &= end < high
    rows, way = rows[near], way[:, near]
    own_m = np.sqrt(np.einsum("ij,ij->j", way, way))
    enter_m, leave_m = (share * own_m for share in within(origin, way, plume.box_m))
    enter_m, leave_m = np.maximum(enter_m, least_m), np.minimum(leave_m, own_m - _APART_M)
    hit = np.flatnonzero(leave_m > enter_m)
    own_m, way = own_m[hit], way[:, hit]
    return PlumeBeams(rows[hit], way / own_m, own_m.astype(np.float64), enter_m[hit], leave_m[hit])


def _passed_part(cloud: Cloud, rows: Rows, plume: Plume, to_ego: Matrix, least_m: float) -> Floats:
    origin, direction = to_ego[:3, 3], to_ego[:3, :3] @ np.stack(columns(cloud, rows))
    own_m = np.sqrt(np.square(direction).sum(axis=0))
    direction /= own_m
    enter_m, leave_m = within(origin, direction, plume.box_m)
    enter_m, leave_m = np.maximum(enter_m, least_m), np.minimum(leave_m, own_m - _APART_M)
    step_m = np.maximum(leave_m - enter_m, 0.0) / _STEPS
    at_m = np.where(step_m > 0.0, enter_m, 0.0) + step_m * (np.arange(_STEPS) + 0.5)[:, None]
    mean = plume.mean_per_m(*places(origin, direction, at_m))
    return np.asarray(np.exp(-2.0 * np.where(step_m > 0.0, mean.sum(axis=0) * step_m, 0.0)))
