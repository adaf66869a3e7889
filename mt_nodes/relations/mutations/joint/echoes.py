# SPDX-License-Identifier: Apache-2.0
"""Returns that became weaker, were replaced by a nearer echo on their beam, or fell below the noise.

Power follows from the cloud: what its intensities say of the target's reflectivity times cosine of incidence
(:mod:`mt_nodes.data.intensity`); the :class:`~mt_nodes.relations.mutations.joint.attenuation.Receiver` decides what is
detected.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mt_nodes.base.arrays import Floats, Rows
from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.intensity.echo_fields import EchoField, write_values
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.lidar.each_cloud import marked, proof_of_changes, proof_of_removal, without
from mt_nodes.relations.mutations.lidar.rays import At, place_fields, proof_of_beams, ranges_m, with_ranges


@dataclass(frozen=True, eq=False)
class Echoes:
    """Changes of some returns of a cloud; all others stay.

    Attributes:
        rows: (n,) returns of changed strength, ascending. reflectivity: (n,) of a surface that gives this echo at the
            range where it is reported; 1 is white.
        moved: (m,) returns replaced by a nearer echo on the beam, ascending, a subset of ``rows``.
        range_m: (m,) range of that echo.
        lost: (k,) returns lost without replacement, ascending, disjoint from ``rows``.
    """

    rows: Rows
    reflectivity: Floats
    moved: Rows
    range_m: Floats
    lost: Rows


NO_ROWS: Rows = np.empty(0, dtype=np.int64)
NO_FLOATS: Floats = np.empty(0)


def reflectivity(cloud: Cloud, rows: At) -> Floats:
    """Return what the intensities of returns (n,) say of their surfaces: reflectivity times cosine, 1 is white.

    Raises NotApplicable: the cloud has no intensities, one is no number, or their convention is in doubt.
    """
    if not cloud.echo_names:
        raise NotApplicable(
            f"{cloud.topic} has no intensity to tell weak returns by; its fields are {', '.join(cloud.fields)}"
        )
    cloud.echoes.refuse_doubt()
    field = cloud.echoes.leading
    values = cloud.points[field.name][rows].astype(np.float64)
    if not np.isfinite(values).all():
        raise NotApplicable(f"{int((~np.isfinite(values)).sum())} intensities of {cloud.topic} are not finite numbers")
    return np.asarray(field.convention.reflectivity(values, _ranges_if_needed(field, cloud, rows)))


def _ranges_if_needed(field: EchoField, cloud: Cloud, rows: At) -> Floats:
    return NO_FLOATS if field.convention.at_any_range else ranges_m(cloud, rows)


def rows_at(cloud: Cloud, at: At) -> Rows:
    """Return points of a cloud as row indices (n,)."""
    return np.arange(*at.indices(len(cloud))) if isinstance(at, slice) else at


def with_echoes(cloud: Cloud, echoes: Echoes) -> Cloud:
    """Return the cloud with weaker returns, nearer echoes and without the lost ones."""
    moved, rows = echoes.moved, echoes.rows
    new = with_ranges(cloud, moved, ranges_m(cloud, moved), echoes.range_m.copy())
    # The cloud was just made and is nobody else's yet.
    range_m, far = ranges_m(new, rows), np.searchsorted(rows, moved)
    values = cloud.echoes.relit(cloud.points, rows, echoes.reflectivity, range_m)
    for name, nearer in cloud.echoes.values(cloud.points, echoes.reflectivity[far], range_m[far]).items():
        values[name][far] = nearer
    write_values(new.points, rows, values)
    return without(new, echoes.lost) if len(echoes.lost) else new


def moved_points(bundle: Bundle, draws: Mapping[str, Draw]) -> dict[str, Floats]:
    """Return the places (m, 3) of the drawn echoes, by topic: ``rows`` and ``range_m`` of each draw."""
    moved = {cloud.topic: (cloud, draws[cloud.topic]["rows"]) for cloud in bundle.clouds}
    return {
        topic: cloud.xyz[rows] * (draws[topic]["range_m"] / ranges_m(cloud, rows))[:, None]
        for topic, (cloud, rows) in moved.items()
    }


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
    changes = (moved, place_fields(old)), (rows, old.echo_names)
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
