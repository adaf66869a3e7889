# SPDX-License-Identifier: Apache-2.0
"""Fields with a point's direction, as in the layout PointXYZIRCAEDT of Autoware's sensor drivers.

The convention of ``azimuth`` depends on the driver: radians, degrees or hundredths of them, from any axis, to the left
or to the right; ``elevation`` likewise. It is determined from the cloud itself, because field = unit · (sign · angle +
offset) for its returns, with azimuth atan2(y, x) and elevation atan2(z, √(x² + y²)). A field that fits no convention
stays unchanged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Singles
from mt_nodes.data.messages import Cloud, Points

At = slice | npt.NDArray[Any]

ANGLE_FIELDS = ("azimuth", "elevation")
#: Units of a field per radian: radians, degrees, hundredths of a degree.
_UNITS = (1.0, 180.0 / np.pi, 18000.0 / np.pi)
_SAMPLE, _GOLDEN = 300, (np.sqrt(5.0) - 1.0) / 2.0
#: Fewer returns, or returns within a smaller angle, do not determine the convention.
_FEWEST, _LEAST_RAD = 10, 0.1
#: How closely most returns must fit: sensors measure angles at a mirror a few centimetres off the origin.
_FIT_RAD, _MOST = 0.02, 0.95
#: An offset this close to a quarter turn is one.
_SNAP_RAD = 2e-3
_PROOF_RAD = 1e-4


@dataclass(frozen=True)
class _Rule:
    """Convention of one angle field."""

    unit: float
    sign: float
    offset_rad: float
    low_rad: float

    def values_of(self, angle_rad: Singles, kind: np.dtype[Any]) -> Points:
        """Return the field's values for angles (n,) of less than a turn."""
        turn, low = self.unit * 2.0 * np.pi, self.unit * self.low_rad
        values = angle_rad.astype(np.float64) * (self.sign * self.unit)
        values += self.unit * self.offset_rad
        values[values < low] += turn
        values[values >= low + turn] -= turn
        if kind.kind != "f":
            np.rint(values, out=values)
        written = values.astype(kind)
        # Rounding may reach the end of the turn, which is its beginning.
        written[written >= low + turn] = low
        return written

    def angles_rad(self, values: Points) -> Singles:
        """Return the angles (n,) of a field's values."""
        angle = values * (self.sign / self.unit) - self.sign * self.offset_rad
        return np.asarray(angle, dtype=np.float32)


_found: WeakKeyDictionary[Cloud, dict[str, _Rule]] = WeakKeyDictionary()


def angle_fields(cloud: Cloud) -> tuple[str, ...]:
    """Return the names of a cloud's fields that hold its points' directions in a known convention."""
    return tuple(_rules(cloud))


def write_angles(points: Points, cloud: Cloud, at: At) -> None:
    """Update the angle fields of ``points`` to their coordinates, in the conventions of ``cloud``."""
    for name, rule in _rules(cloud).items():
        along, across = _parts(points, name, at)
        points[name][at] = rule.values_of(np.arctan2(across, along), points.dtype[name])


def proof_of_angles(old: Cloud, new: Cloud, at: At) -> str | None:
    """Prove that angle fields of points (n,) of the new cloud fit: from products of vectors, not from angles."""
    for name, rule in _rules(old).items():
        values = new.points[name][at]
        along, across = _parts(new.points, name, at)
        angle_rad = rule.angles_rad(values)
        rounding = 0.5 / rule.unit if values.dtype.kind in "iu" else 0.0
        with np.errstate(invalid="ignore"):
            sine, cosine = np.sin(angle_rad), np.cos(angle_rad)
        ahead, off = cosine * along + sine * across, np.abs(sine * along - cosine * across)
        wrong = ~(off <= (_PROOF_RAD + rounding) * ahead)
        if wrong.any():
            return f"field '{name}' does not follow the coordinates of {int(wrong.sum())} points"
    return None


def _rules(cloud: Cloud) -> dict[str, _Rule]:
    if cloud not in _found:
        names = [name for name in ANGLE_FIELDS if cloud.single(name)]
        rules = {name: _rule(cloud, name) for name in names}
        _found[cloud] = {name: rule for name, rule in rules.items() if rule is not None}
    return _found[cloud]


def _rule(cloud: Cloud, name: str) -> _Rule | None:
    """Find the convention that fits most returns of a sample best; None if none does."""
    # Golden-section steps sample rings and columns of any scan evenly.
    rows = (np.arange(min(_SAMPLE, len(cloud))) * _GOLDEN % 1.0 * len(cloud)).astype(np.int64)
    along, across = _parts(cloud.points, name, rows)
    values = cloud.points[name][rows].astype(np.float64)
    known = np.isfinite(along) & np.isfinite(across) & np.isfinite(values) & ((along != 0.0) | (across != 0.0))
    angle, values = np.arctan2(across[known], along[known]), values[known]
    if len(angle) < _FEWEST or np.ptp(angle) < _LEAST_RAD:
        return None
    fits = [_fit(values, angle, unit, sign) for unit in _UNITS for sign in (1.0, -1.0)]
    worst_rad, rule = min(fits, key=lambda fit: fit[0])
    return rule if worst_rad <= _FIT_RAD else None


def _fit(values: Floats, angle_rad: Floats, unit: float, sign: float) -> tuple[float, _Rule]:
    offsets = np.exp(1j * (values / unit - sign * angle_rad))
    offset = float(np.angle(np.median(offsets.real) + 1j * np.median(offsets.imag)))
    quarter = np.pi / 2.0 * np.rint(offset / (np.pi / 2.0))
    off = np.sort(np.abs(np.angle(offsets * np.exp(-1j * offset))))
    low = 0.0 if values.min() >= 0.0 else -np.pi
    exact = float(quarter) if abs(offset - quarter) <= _SNAP_RAD else offset
    return float(off[int(_MOST * (len(off) - 1))]), _Rule(unit, sign, exact, low)


def _parts(points: Points, name: str, at: At) -> tuple[Singles, Singles]:
    """Return the parts (n,) along and across the axis from which an angle is measured, in single precision."""
    with np.errstate(over="ignore"):  # what is beyond single precision is no return
        x, y, z = (points[axis][at].astype(np.float32) for axis in "xyz")
        return (x, y) if name == "azimuth" else (np.sqrt(x * x + y * y), z)
