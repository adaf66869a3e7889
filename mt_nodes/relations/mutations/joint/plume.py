# SPDX-License-Identifier: Apache-2.0
"""A plume of droplets in the wake of a vehicle: its density over space and time, with patches."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Singles
from mt_nodes.relations.mutations.joint.chance import words
from mt_nodes.relations.mutations.joint.vehicle_backs import VehicleBack

Floats = npt.NDArray[np.floating[Any]]

#: Edge of a patch, and period of the pattern in patches, powers of 2: behind, aside, up.
PATCH_M, PATCHES = 0.3, (64, 16, 16)
#: The plume ends after so many decay lengths behind, and so many above; it is wider than the vehicle by this factor.
_BEHIND, _ABOVE, _WIDER = 2.5, 2.5, 1.5
#: Shares of a distance and weights of the Gauss-Legendre rule, exact to 1e-4 here.
_NODES, _WEIGHTS = ((a + s) / 2.0 for a, s in zip(np.polynomial.legendre.leggauss(6), (1.0, 0.0), strict=True))


@dataclass(frozen=True)
class Plume:
    """A plume in a frame on the road (x ahead, y left, z up), behind a vehicle, towards the ego.

    Attributes:
        vehicle: the vehicle. extinction_per_m: at the vehicle's back, on the ground.
        length_m, height_m: decay lengths (1/e) of the extinction, behind and upwards.
        drift_m: distance that the vehicle has gone since the pattern began: patches rest in the air, so they fall back
            behind it by as much. key: of the pattern.
    """

    vehicle: VehicleBack
    extinction_per_m: float
    length_m: float
    height_m: float
    drift_m: float
    key: int

    @property
    def box_m(self) -> tuple[Floats, Floats]:
        """Lowest and highest corner (3,) of the plume's box."""
        v = self.vehicle
        low = [v.rear_x_m - _BEHIND * self.length_m, v.middle_y_m - _WIDER * v.half_width_m, v.ground_z_m]
        high = [v.rear_x_m, v.middle_y_m + _WIDER * v.half_width_m, v.ground_z_m + _ABOVE * self.height_m]
        return np.array(low), np.array(high)

    def mean_per_m(self, x: Floats, y: Floats, z: Floats) -> Floats:
        """Return the mean extinction at places within the box, in 1/m: exponential behind and up, Gaussian aside."""
        v = self.vehicle
        exponent = (v.rear_x_m - x) / self.length_m + (z - v.ground_z_m) / self.height_m
        exponent += np.square((y - v.middle_y_m) / (math.sqrt(2.0) * v.half_width_m))
        return np.asarray(self.extinction_per_m * np.exp(-exponent))

    def patchiness(self, x: Floats, y: Floats, z: Floats) -> Floats:
        """Return the density relative to the mean at places: exponentially distributed, mean 1."""
        v, (_, wide, high) = self.vehicle, PATCHES
        ahead_m = v.rear_x_m - self.drift_m % (PATCHES[0] * PATCH_M)
        behind, aside, up = (
            np.floor(m / PATCH_M).astype(np.int32) & (n - 1)
            for m, n in zip((ahead_m - x, y - v.middle_y_m, z - v.ground_z_m), PATCHES, strict=True)
        )
        return np.asarray(self._pattern.take((behind * wide + aside) * high + up))

    def along(self, origin: Floats, direction: Floats) -> PlumeRays:
        """Return the plume along rays (3, n) from a place, in the type of the rays."""
        v, wide_m, kind = self.vehicle, math.sqrt(2.0) * self.vehicle.half_width_m, direction.dtype
        x, y, z = origin.tolist()
        side = (y - v.middle_y_m) / wide_m
        start = (v.rear_x_m - x) / self.length_m + (z - v.ground_z_m) / self.height_m + side * side
        bend = np.square(direction[1] / kind.type(wide_m))
        slope = direction[2] / kind.type(self.height_m) - direction[0] / kind.type(self.length_m)
        slope += direction[1] * kind.type(2.0 * side / wide_m)
        ahead_m = v.rear_x_m - self.drift_m % (PATCHES[0] * PATCH_M)
        # Two more periods of the pattern: numbers within the plume are then positive, and truncation to integers is
        # correct.
        starts_m = ahead_m - x, y - v.middle_y_m, z - v.ground_z_m
        first = tuple(m / PATCH_M + 2 * n for m, n in zip(starts_m, PATCHES, strict=True))
        patches = direction * np.array([[-1.0], [1.0], [1.0]], kind) / kind.type(PATCH_M)
        return PlumeRays(math.log(self.extinction_per_m) - start, slope, bend, first, patches, self._pattern)

    @cached_property
    def _pattern(self) -> Singles:
        unit = (words(self.key, math.prod(PATCHES)) + 0.5) * 2.0**-64
        return np.asarray(-np.log(unit), dtype=np.float32)


@dataclass(frozen=True, eq=False)
class PlumeRays:
    """A plume along rays: its extinction is the exponential of a quadratic in the distance from their origin.

    Attributes:
        start: logarithm of the extinction at the origin. slope, bend: (n,) how it falls, per metre and metre squared.
        first: patch at the origin, along each axis. patches: (3, n) patches a metre. pattern: of all patches.
    """

    start: float
    slope: Floats
    bend: Floats
    first: tuple[float, ...]
    patches: Floats
    pattern: Singles

    def mean_per_m(self, at_m: Floats) -> Floats:
        """Return what :meth:`Plume.mean_per_m` does at distances (…, n)."""
        exponent = self.bend * at_m
        exponent += self.slope
        exponent *= at_m
        np.subtract(self.start, exponent, out=exponent)
        return np.asarray(np.exp(exponent, out=exponent))

    def patchiness(self, at_m: Floats) -> Floats:
        """Return what :meth:`Plume.patchiness` does at distances (n,)."""
        index = np.zeros(len(at_m), np.int32)
        for first, step, count in zip(self.first, self.patches, PATCHES, strict=True):
            index *= count
            index += (step * at_m + first).astype(np.int32) & (count - 1)
        return self.pattern.take(index)


def within(origin: Floats, direction: Floats, box_m: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """Return where rays (3, n) from a place enter and leave a box, in units of their direction (n,).

    A ray that misses leaves before it enters.
    """
    enter, leave = np.zeros_like(direction[0]), np.full_like(direction[0], np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        for along, low, high in zip(direction, *((side - origin).tolist() for side in box_m), strict=True):
            first, second = low / along, high / along
            # NaN: the ray runs within a face; fmax and fmin let the other faces decide.
            enter = np.fmax(enter, np.fmin(first, second), out=enter)
            leave = np.fmin(leave, np.fmax(first, second), out=leave)
    return enter, leave


def depth(plume: Plume, origin: Floats, direction: Floats, enter_m: Floats, leave_m: Floats) -> Floats:
    """Return the optical depth (n,) on rays (3, n) between two distances from their origin, by Gauss-Legendre."""
    length, way = leave_m - enter_m, plume.along(origin, direction)
    total = np.zeros_like(length)
    for node, weight in zip(_NODES.tolist(), _WEIGHTS.tolist(), strict=True):
        total += weight * way.mean_per_m(enter_m + node * length)
    return total * length


def places(origin: Floats, direction: Floats, at_m: Floats) -> tuple[Floats, Floats, Floats]:
    """Return x, y and z (k, n) at distances (k, n) on rays (3, n) from a place."""
    x, y, z = (start + along * at_m for start, along in zip(origin.tolist(), direction, strict=True))
    return x, y, z
