# SPDX-License-Identifier: Apache-2.0
"""Returns that became weaker, were replaced by a nearer echo on their beam, or fell below the noise.

Power follows from the cloud: intensity over full scale is taken as the target's reflectivity times cosine of incidence,
compensated for range, as Velodyne's calibrated intensity is; the
:class:`~mt_nodes.relations.mutations.joint.attenuation.Receiver` decides what is detected.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.lidar.each_cloud import marked, proof_of_changes, proof_of_removal, without
from mt_nodes.relations.mutations.lidar.intensity_scale import full_scale
from mt_nodes.relations.mutations.lidar.placement import finite_range
from mt_nodes.relations.mutations.lidar.rays import (
    At,
    Floats,
    Rows,
    place_fields,
    proof_of_beams,
    ranges_m,
    with_ranges,
)


@dataclass(frozen=True, eq=False)
class Echoes:
    """Changes of some returns of a cloud; all others stay.

    Attributes:
        rows: (n,) returns with changed intensity, ascending. intensity: (n,) new value, on the cloud's own scale.
        moved: (m,) returns replaced by a nearer echo on the beam, ascending, a subset of ``rows``.
        range_m: (m,) range of that echo.
        lost: (k,) returns lost without replacement, ascending, disjoint from ``rows``.
    """

    rows: Rows
    intensity: Floats
    moved: Rows
    range_m: Floats
    lost: Rows


NO_ROWS: Rows = np.empty(0, dtype=np.int64)
NO_FLOATS: Floats = np.empty(0)


def reflectivity(cloud: Cloud, rows: At) -> tuple[Floats, float]:
    """Return intensities (n,) of returns over their full scale, 0 to 1, and that scale.

    Raises:
        NotApplicable: the cloud has no intensities, or they fit no known scale.
    """
    name = cloud.intensity_field
    if name is None:
        raise NotApplicable(
            f"{cloud.topic} has no intensity to tell weak returns by; its fields are {', '.join(cloud.fields)}"
        )
    values = cloud.points[name]
    found = finite_range(values)
    if found is None:
        raise NotApplicable(f"no intensity of {cloud.topic} is a finite number")
    scale = full_scale(*found, values.dtype, cloud.topic)
    chosen = values[rows].astype(np.float64)
    if not np.isfinite(chosen).all():
        raise NotApplicable(f"{int((~np.isfinite(chosen)).sum())} intensities of {cloud.topic} are not finite numbers")
    return chosen / scale, scale


def rows_at(cloud: Cloud, at: At) -> Rows:
    """Return points of a cloud as row indices (n,)."""
    return np.arange(*at.indices(len(cloud))) if isinstance(at, slice) else at


def with_echoes(cloud: Cloud, echoes: Echoes) -> Cloud:
    """Return the cloud with weaker returns, nearer echoes and without the lost ones."""
    name, moved = str(cloud.intensity_field), echoes.moved
    new = with_ranges(cloud, moved, ranges_m(cloud, moved), echoes.range_m.copy())
    field = new.points[name]  # of a cloud that was just made and is nobody else's yet
    field[echoes.rows] = as_field(cloud, echoes.intensity)
    return without(new, echoes.lost) if len(echoes.lost) else new


def moved_points(bundle: Bundle, draws: Mapping[str, Draw]) -> dict[str, Floats]:
    """Return the places (m, 3) of the drawn echoes, by topic: ``rows`` and ``range_m`` of each draw."""
    moved = {cloud.topic: (cloud, draws[cloud.topic]["rows"]) for cloud in bundle.clouds}
    return {
        topic: cloud.xyz[rows] * (draws[topic]["range_m"] / ranges_m(cloud, rows))[:, None]
        for topic, (cloud, rows) in moved.items()
    }


def as_field(cloud: Cloud, intensity: Floats) -> npt.NDArray[Any]:
    """Return intensities (n,) in the type of the cloud's field: rounded for integers."""
    kind = cloud.points.dtype[str(cloud.intensity_field)]
    return np.asarray((intensity if kind.kind == "f" else np.rint(intensity)).astype(kind))


def proof_of_echoes(old: Cloud, new: Cloud, echoes: Echoes) -> tuple[str | None, Cloud]:
    """Prove that only those returns changed, moved ones are nearer and on their beams, and lost ones gone.

    Also returns the new cloud with the old rows: lost returns are put back, so that rows can be compared.
    """
    rows, lost, moved = echoes.rows, echoes.lost, echoes.moved
    changed = marked(len(old), rows)
    if changed[lost].any() or not changed[moved].all():
        return "a return is both lost and changed, or moved without a new intensity", new
    whole = _with_lost(old, new, lost)
    if whole is None:
        return f"{len(new)} points, expected {len(old)} of which {len(lost)} are lost", new
    changes = (moved, place_fields(old)), (rows, (old.intensity_field,))
    broken = proof_of_removal(whole, new, lost) if len(lost) else None
    broken = broken or proof_of_changes(old, whole, changes) or proof_of_beams(old, whole, moved)
    if broken is None and not (ranges_m(whole, moved) < ranges_m(old, moved)).all():
        broken = "an echo is not nearer than the return it takes the place of"
    return broken, whole


def _with_lost(old: Cloud, new: Cloud, lost: Rows) -> Cloud | None:
    """Return the new cloud with the old points at the lost rows, or None when the number of points is wrong."""
    if len(new) != len(old) - (0 if old.organised else len(lost)):
        return None
    if old.organised:
        raw = new.raw.copy()
        raw[lost] = old.raw[lost]
    else:
        raw = old.raw.copy()
        raw[~marked(len(old), lost)] = new.raw
    return old.with_raw(raw, height=old.height)
