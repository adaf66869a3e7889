# SPDX-License-Identifier: Apache-2.0
"""Clouds with replaced, lost and new returns: applies such a draw, and checks the result.

In such a draw, ``rows`` with ``range_m`` and ``intensity`` are returns that move along their rays, ``lost`` those that
vanish. ``new_rows`` with ``new_xyz`` and ``new_intensity`` are returns on rays that had none: in an organised cloud the
places of empty ones, in another the returns after which they come. ``dimmed`` with ``dimmed_intensity`` are returns
that stay in place with a lower intensity, behind glass.
"""

from __future__ import annotations

import numpy as np

from mt_nodes.base.arrays import Floats, Rows
from mt_nodes.data.messages import Cloud, Points
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.lidar.angle_fields import angle_fields, proof_of_angles
from mt_nodes.relations.mutations.lidar.each_cloud import emptied
from mt_nodes.relations.mutations.lidar.placement import RANGE_FIELDS, empty_returns, write_points
from mt_nodes.world.scene.beams import beams_of
from mt_nodes.world.scene.returns import lengths, places

_RAY_TOLERANCE_RAD = 1e-4
#: How much returns of one ring may differ in elevation (beams start beside the frame's origin), plus a term per radian
#: of azimuth between them (the frame may be tilted against the sensor's axis).
_BEAM_RAD, _TILT = 0.01, 0.06
_PIECE = 1 << 13
_NONE: Rows = np.empty(0, dtype=np.int64)


def rows_of(draw: Draw, name: str) -> Rows:
    """Return rows (n,) of a draw, empty if it has none."""
    return np.asarray(draw.get(name, _NONE).astype(np.int64))


def changed(cloud: Cloud, draw: Draw) -> Cloud:
    """Return the cloud with the drawn returns, without the lost ones."""
    rows, lost, new_rows = (rows_of(draw, name) for name in ("rows", "lost", "new_rows"))
    if cloud.organised:
        raw, at, new_at = cloud.raw.copy(), rows, new_rows
    else:
        raw = _spliced(cloud.raw, lost, new_rows)
        at, new_at = _moved_to(rows, lost, new_rows), _inserted_at(lost, new_rows)
    points = raw.view(cloud.points.dtype)
    write_points(points, at, on_rays(cloud, draw), draw.get("intensity"), cloud)
    if "dimmed_intensity" in draw:
        dimmed = rows_of(draw, "dimmed")
        points[cloud.intensity_field][dimmed if cloud.organised else _moved_to(dimmed, lost, new_rows)] = draw[
            "dimmed_intensity"
        ]
    if len(new_rows):
        write_points(points, new_at, draw["new_xyz"], draw.get("new_intensity"), cloud)
    if not cloud.organised:
        return cloud.with_raw(raw)
    new = cloud.with_raw(raw, height=cloud.height)
    return emptied(new, lost) if len(lost) else new


def _spliced(raw: Points, lost: Rows, repeated: Rows) -> Points:
    """Return points (n,) without the lost ones (k,), and with some (m,) repeated right after their place.

    Joined from slices, which takes no more memory than the result.
    """
    if not len(repeated):
        return np.delete(raw, lost)
    start = np.concatenate([np.sort(np.concatenate([[0], lost + 1, repeated + 1])), repeated])
    end = np.concatenate([np.sort(np.concatenate([lost, repeated + 1, [len(raw)]])), repeated + 1])
    once_more = np.arange(len(start)) >= len(start) - len(repeated)
    order = np.lexsort((once_more, end))
    return np.concatenate([raw[i:j] for i, j in zip(start[order].tolist(), end[order].tolist(), strict=True) if i < j])


def on_rays(cloud: Cloud, draw: Draw) -> Floats:
    """Return the drawn returns (n, 3) that replace others, on the rays of those."""
    return along_rays(cloud, rows_of(draw, "rows"), draw["range_m"].astype(np.float64))


def along_rays(cloud: Cloud, rows: Rows, range_m: Floats) -> Floats:
    """Return points (n, 3) at ranges on the rays of returns."""
    old = places(cloud, rows)
    return np.asarray(old * (range_m / lengths(old))[:, None])


def placed_points(cloud: Cloud, draw: Draw) -> Floats:
    """Return every drawn return (n, 3)."""
    return np.concatenate([on_rays(cloud, draw), draw["new_xyz"]])


def source_rows(rows: Rows, lost: Rows) -> Rows:
    """Return the rows in a cloud of rows (n,) of the same cloud without the ``lost`` ones (k,)."""
    lost = np.sort(lost)
    return rows + np.searchsorted(lost - np.arange(len(lost)), rows, side="right")


def _moved_to(rows: Rows, lost: Rows, new_rows: Rows) -> Rows:
    """Return the new rows of remaining returns (n,) in a changed cloud that is not organised."""
    return rows - np.searchsorted(np.sort(lost), rows) + np.searchsorted(np.sort(new_rows), rows)


def _inserted_at(lost: Rows, new_rows: Rows) -> Rows:
    """Return the rows of new returns (k,) in such a cloud: those after one return come in the order of the draw."""
    order = np.argsort(new_rows, kind="stable")
    after = new_rows[order]
    at = np.empty(len(after), dtype=np.int64)
    at[order] = after + 1 - np.searchsorted(np.sort(lost), after, side="right") + np.arange(len(after))
    return at


def proof_of_rays(old: Cloud, new: Cloud, draw: Draw) -> tuple[Floats, str | None]:
    """Return the drawn returns (n, 3) in the new cloud; prove that they are on rays, and that nothing else changed."""
    rows, new_rows = rows_of(draw, "rows"), rows_of(draw, "new_rows")
    replaced, added, broken = replaced_and_added(old, new, draw)
    if broken is None:
        before = places(old, rows)
        broken = _nearer(before, replaced) or proof_of_direction(before, replaced) or _on_beams(old, new_rows, added)
    return np.concatenate([replaced, added]), broken


def replaced_and_added(old: Cloud, new: Cloud, draw: Draw) -> tuple[Floats, Floats, str | None]:
    """Return the replaced (n, 3) and the added (k, 3) points of the new cloud, and what else changed."""
    rows, lost, new_rows = (rows_of(draw, name) for name in ("rows", "lost", "new_rows"))
    drawn = np.concatenate([rows, lost, new_rows if old.organised else _NONE])
    nothing = np.empty((0, 3))
    if len(np.unique(drawn)) != len(drawn):
        return nothing, nothing, "a return is drawn twice"
    count = len(old) if old.organised else len(old) - len(lost) + len(new_rows)
    if len(new) != count:
        return nothing, nothing, f"{len(new)} points, expected {count}"
    if old.organised:
        everything = np.arange(len(old))
        broken = _only_changed(
            emptied(old, lost) if len(lost) else old, new, everything, everything, np.append(rows, new_rows), draw
        )
        if broken is None and not empty_returns(old)[new_rows].all():
            broken = "a point was put over an existing return"
        return places(new, rows), places(new, new_rows), broken or proof_of_angles(old, new, np.append(rows, new_rows))
    inserted = _inserted_at(lost, new_rows)
    moved = _moved_to(rows, lost, new_rows)
    broken = _only_changed(old, new, _all_but(len(old), lost), _all_but(len(new), inserted), rows, draw)
    return places(new, moved), places(new, inserted), broken or proof_of_angles(old, new, np.append(moved, inserted))


def _all_but(count: int, rows: Rows) -> Rows:
    stay = np.ones(count, dtype=bool)
    stay[rows] = False
    return np.flatnonzero(stay)


def _only_changed(old: Cloud, new: Cloud, before: Rows, after: Rows, rows: Rows, draw: Draw) -> str | None:
    """Prove that points (n,) are the same byte for byte, but for places at ``rows`` (k,), and dimmed intensities."""
    dim = rows_of(draw, "dimmed")
    dims, bright = np.isin(before, dim), old.intensity_field
    if len(dim):
        if dims.sum() != len(dim) or np.isin(dim, rows).any():
            return "a dimmed return is lost or replaced"
        if (new.points[bright][after[dims]] > old.points[bright][before[dims]]).any():
            return "a return became brighter behind glass"
    place = (*"xyz", *filter(old.single, RANGE_FIELDS), *angle_fields(old))
    fields = [*place, *old.echo_names]
    may = np.zeros(len(old), dtype=bool)
    may[rows] = True
    for start in range(0, len(before), _PIECE):
        at = before[start : start + _PIECE]
        were, are = old.raw[at], new.raw[after[start : start + _PIECE]]
        drawn = np.flatnonzero(may[at])
        for name in fields if len(drawn) else ():
            are.view(new.points.dtype)[name][drawn] = were.view(old.points.dtype)[name][drawn]
        if len(dim):
            through = np.flatnonzero(dims[start : start + _PIECE])
            are.view(new.points.dtype)[bright][through] = were.view(old.points.dtype)[bright][through]
        if were.tobytes() != are.tobytes():
            return f"something else changed than {', '.join(fields)} of the points drawn"
    return None


def _nearer(before: Floats, after: Floats) -> str | None:
    if not np.isfinite(after).all():
        return "a new return is not finite"
    if not (lengths(after) < lengths(before)).all():
        return "a new return is not nearer than the one it replaces"
    return None


def proof_of_direction(before: Floats, after: Floats) -> str | None:
    """Prove that returns (n, 3) are still on their rays."""
    turned = np.arctan2(lengths(np.cross(before, after)), np.einsum("ij,ij->i", before, after))
    return None if (turned <= _RAY_TOLERANCE_RAD).all() else f"a return left its ray by {turned.max():.2g} rad"


def _on_beams(old: Cloud, rows: Rows, added: Floats) -> str | None:
    """Check that returns on rays that had none are at the elevation of the other returns of their ring."""
    if not len(rows):
        return None
    x, y, z = added.T
    if old.organised:
        beams = beams_of(old)
        ring, turned = beams.elevations_rad[beams.place[rows]], 0.0
    else:
        a, b, c = places(old, rows).T
        ring, turned = np.arctan2(c, np.hypot(a, b)), np.abs(np.arctan2(a * y - b * x, a * x + b * y))
    off = np.abs(np.arctan2(z, np.hypot(x, y)) - ring) - _TILT * turned
    return None if (off <= _BEAM_RAD).all() else f"an added return is {off.max():.2g} rad off its ring"
