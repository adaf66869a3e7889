# SPDX-License-Identifier: Apache-2.0
"""Proof for the strengths of echoes: every field with one, in decibels, on its own convention."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Mask
from mt_nodes.data.intensity.echo_fields import EchoField
from mt_nodes.data.messages import Cloud, Points
from mt_nodes.relations.mutations.lidar.rays import At

#: Relative rounding of single precision in a chain of operations, and the slack in decibels that it makes.
_SINGLE = 2e-6
_SLACK_DB = 1e-3


def power_db(reflectivity: Floats) -> Floats:
    """Return reflectivities (n,) in decibels over a white surface, -inf for none."""
    with np.errstate(divide="ignore"):
        return np.asarray(10.0 * np.log10(reflectivity))


def off_strength(
    field: EchoField, points: Points, at: At, expected_db: Floats, range_m: Floats, slack_db: npt.ArrayLike = 0.0
) -> Mask:
    """Return which of some points (n,) are not of the expected strength, rounding and the end of the scale apart.

    ``expected_db``: (n,) in decibels over a white surface. ``range_m``: (n,) at which the values are understood.
    """
    value, slack = points[field.name][at].astype(np.float64), np.asarray(slack_db) + _SLACK_DB
    whole = points.dtype[field.name].kind in "iu"
    grain = np.full(len(value), 0.51) if whole else _SINGLE * np.abs(value) + 1e-30
    limit = min(field.convention.top, float(np.iinfo(points.dtype[field.name]).max) if whole else np.inf)
    low = field.convention.decibels(np.maximum(value - grain, 0.0), range_m)
    high = np.where(value >= limit - grain, np.inf, field.convention.decibels(value + grain, range_m))
    return np.asarray(~((low - slack <= expected_db) & (expected_db <= high + slack)))


def stronger_than(cloud: Cloud, at: At, reflectivity: Floats, range_m: Floats) -> Mask:
    """Return which of some points (n,) are stronger, in any field, than surfaces of a reflectivity (n,) at (n,) m."""
    most, stronger = power_db(reflectivity), np.zeros(len(range_m), dtype=bool)
    for field in cloud.echoes.fields:
        value = cloud.points[field.name][at].astype(np.float64)
        grain = 0.51 if cloud.points.dtype[field.name].kind in "iu" else _SINGLE * np.abs(value)
        stronger |= field.convention.decibels(np.maximum(value - grain, 0.0), range_m) > most + _SLACK_DB
    return stronger


def proof_of_strengths(
    cloud: Cloud, at: At, reflectivity: Floats, range_m: Floats, slack_db: npt.ArrayLike = 0.0, old: Cloud | None = None
) -> str | None:
    """Prove that some points (n,) of a cloud have these reflectivities (n,) in every field, at their ranges (n,).

    With ``old``, the same points before: where they became darker, other fields than the leading one changed by as many
    decibels as that one.
    """
    expected = power_db(reflectivity)
    for field in cloud.echoes.fields:
        wanted = expected
        if old is not None and field is not cloud.echoes.leading:
            wanted = _as_much_darker(old, field, at, expected, range_m)
        off = off_strength(field, cloud.points, at, wanted, range_m, slack_db)
        if off.any():
            return f"{int(off.sum())} values of '{field.name}' are not those of the promised reflectivity"
    return None


def _as_much_darker(old: Cloud, field: EchoField, at: At, expected_db: Floats, range_m: Floats) -> Floats:
    """Return what a field (n,) says, in dB, if it changed as much as the leading one became darker."""
    leading = old.echoes.leading
    before, own = (f.convention.decibels(old.points[f.name][at], range_m) for f in (leading, field))
    fall = np.subtract(expected_db, before, out=np.zeros(len(own)), where=np.isfinite(before))
    return np.where(expected_db <= before + _SLACK_DB, own + fall, expected_db)
