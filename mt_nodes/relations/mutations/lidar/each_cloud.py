# SPDX-License-Identifier: Apache-2.0
"""Base of mutations that change each cloud of a bundle separately."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from mt_nodes.base.arrays import Mask, Rows
from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.cdr.outgoing import unwritten_points
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle, Cloud, Points
from mt_nodes.relations.mutations.base import Draw, Followup, Mutation
from mt_nodes.relations.mutations.lidar.placement import RANGE_FIELDS, empty_returns
from mt_nodes.relations.mutations.untouched import UNTOUCHED, drawn, refuse_without_effect

#: A cloud in its map's frame may be a quarter of the Earth away from the origin; no place is farther away.
MOST_M = 1e7
#: A nearer point that is not the origin is neither a return nor an empty one; a thousandth of a LiDAR's resolution.
LEAST_M = 1e-6
#: Points that are copied at a time.
_BLOCK = 1 << 14


def refuse_implausible(cloud: Cloud) -> None:
    """Refuse returns beyond :data:`MOST_M` or within :data:`LEAST_M` of the origin.

    Squares and ratios of such coordinates exceed the range of floating point, and no proof would hold. Points that are
    not finite, or at the origin, are empty returns and pass.
    Raises NotApplicable: there are such returns.
    """
    nearest_m, farthest_m = cloud.reach_m
    if nearest_m >= LEAST_M and farthest_m <= MOST_M:
        return
    with np.errstate(all="ignore"):
        x, y, z = (np.abs(cloud.points[name], dtype=np.result_type(cloud.points[name], np.float32)) for name in "xyz")
        span = np.fmax(np.fmax(x, y, out=x), z, out=x)
    if not len(span) or (np.fmax.reduce(span) <= MOST_M and np.fmin.reduce(span) >= LEAST_M):
        return
    known = np.isfinite(cloud.points["x"]) & np.isfinite(cloud.points["y"]) & np.isfinite(cloud.points["z"])
    implausible = known & (span != 0) & ((span > MOST_M) | (span < LEAST_M))
    if count := int(implausible.sum()):
        point = [float(cloud.points[name][implausible.argmax()]) for name in "xyz"]
        raise NotApplicable(
            f"{count} of {len(cloud)} points of {cloud.topic} are at no place, the first at {point}: "
            f"expected 0, or {LEAST_M:g} to {MOST_M:g} m"
        )


_PIECE = 1 << 12


class EachCloud(Mutation):
    """Draws, changes and proves cloud by cloud; draws have keys ``<topic>|<name>``.

    Everything but the clouds stays, and so do topic, stamp, frame and layout of each cloud: this class proves that, so
    that subclasses prove only what they promise about the points.
    """

    sensors: ClassVar[tuple[str, ...]] = ("lidar",)
    #: Part of a bundle that holds what it changes.
    part: ClassVar[str] = "clouds"

    def draw_cloud(self, rng: np.random.Generator, bundle: Bundle, cloud: Cloud, state: Any) -> Draw:
        """Make every random choice of one cloud; by default nothing is random.

        Raises NotApplicable: there is no honest follow-up of it. NoEffect: the change does not reach it.
        """
        return {}

    @abstractmethod
    def change_cloud(self, bundle: Bundle, cloud: Cloud, draw: Draw) -> Cloud:
        """Return the changed cloud; never writes into ``cloud``."""

    @abstractmethod
    def prove_cloud(self, bundle: Bundle, old: Cloud, new: Cloud, draw: Draw) -> str | None:
        """Check the two clouds; return the broken promise, or None."""

    def clouds_of(self, bundle: Bundle) -> tuple[Cloud, ...]:
        """Return what it changes of a bundle."""
        clouds: tuple[Cloud, ...] = getattr(bundle, self.part)
        return clouds

    def refuse_unfit(self, cloud: Cloud) -> None:
        """Refuse a cloud that cannot be changed. Raises NotApplicable: with the reason."""
        refuse_implausible(cloud)

    def describe_change(self, bundle: Bundle, clouds: Mapping[str, Cloud], draws: Mapping[str, Draw]) -> Effects:
        """Return the effects on the world, from the changed clouds and the draws by topic."""
        return Effects()

    def draw(self, rng: np.random.Generator, bundle: Bundle, state: Any) -> Draw:
        """Draw for every cloud, one after the other."""
        clouds = self.clouds_of(bundle)
        if not clouds:
            raise NotApplicable(f"bundle {bundle.index} has no {'cloud' if self.part == 'clouds' else self.part[:-1]}")
        for cloud in clouds:
            self.refuse_unfit(cloud)
        draws = self.draw_clouds(rng, bundle, state)
        refuse_without_effect(draws, [cloud.topic for cloud in clouds])
        return draws

    def draw_clouds(self, rng: np.random.Generator, bundle: Bundle, state: Any) -> Draw:
        """Draw for every cloud; where the change does not reach one, why."""
        draws: Draw = {}
        for cloud in self.clouds_of(bundle):
            draws |= drawn(cloud.topic, partial(self.draw_cloud, rng, bundle, cloud, state))
        return draws

    def apply(self, bundle: Bundle, draw: Draw) -> Followup:
        """Change every cloud that the change reaches."""
        clouds = self.clouds_of(bundle)
        reasons = {c.topic: why for c in clouds if (why := of_cloud(draw, c).get(UNTOUCHED)) is not None}
        reached = tuple(cloud for cloud in clouds if cloud.topic not in reasons)
        parts: dict[str, Any] = {self.part: reached}
        draws = {cloud.topic: of_cloud(draw, cloud) for cloud in reached}
        changed = {c.topic: self.change_cloud(bundle, c, draws[c.topic]) for c in reached}
        effects = self.describe_change(replace(bundle, **parts), changed, draws) if changed else Effects()
        effects = replace(effects, unchanged={**effects.unchanged, **reasons}) if reasons else effects
        return Followup(((0, bundle.with_clouds(changed.values())),), effects)

    def guarantee(self, source: Bundle, followup: Followup, draw: Draw) -> str | None:
        """Prove the promise for every cloud, and that nothing else changed."""
        if len(followup.bundles) != 1:
            return f"{len(followup.bundles)} bundles, expected one"
        before, after = self.clouds_of(source), self.clouds_of(followup.first)
        if others := followup.first.changed_topics(source) - {c.topic for c in before}:
            return f"{', '.join(sorted(others))} changed, too"
        for old, new in zip(before, after, strict=True):
            of_this = of_cloud(draw, old)
            if UNTOUCHED in of_this:
                broken = None if new is old else "changed, and it was drawn to stay as it is"
            else:
                broken = same_kind(old, new) or self.prove_cloud(source, old, new, of_this)
            if broken is not None:
                return f"{old.topic}: {broken}"
        return None


def of_cloud(draw: Draw, cloud: Cloud) -> Draw:
    """Return the part of a draw for one cloud, with the names of ``draw_cloud``."""
    head = f"{cloud.topic}|"
    return {name.removeprefix(head): value for name, value in draw.items() if name.startswith(head)}


def same_kind(old: Cloud, new: Cloud) -> str | None:
    """Prove that a cloud's stamp, frame, layout and, if organised, rows are unchanged."""
    for what in ("stamp_ns", "frame_id", "is_dense"):
        if getattr(new, what) != getattr(old, what) and not (what == "is_dense" and not new.is_dense):
            return f"{what}: got {getattr(new, what)!r}, was {getattr(old, what)!r}"
    if new.points.dtype != old.points.dtype:
        return f"layout: got {new.points.dtype}, was {old.points.dtype}"
    if old.organised and (new.height, new.width) != (old.height, old.width):
        return f"got {new.height} x {new.width} points, was {old.height} x {old.width}"
    return None


def without(cloud: Cloud, rows: Rows) -> Cloud:
    """Return a cloud without some points; in an organised one they become empty returns."""
    if not cloud.organised:
        return cloud.with_raw(_only(cloud, ~marked(len(cloud), rows)))
    return emptied(cloud, rows)


def _only(cloud: Cloud, wanted: Mask) -> Points:
    """Return the points of a cloud that are wanted (N,), written in place; by blocks, whose numbers take no memory."""
    counts = np.add.reduceat(wanted, np.arange(0, len(cloud), _BLOCK), dtype=np.intp) if len(cloud) else ()
    left, end = unwritten_points(cloud, int(np.sum(counts, dtype=np.intp))), 0
    for number, count in enumerate(counts):
        block = slice(number * _BLOCK, (number + 1) * _BLOCK)
        cloud.raw[block].take(np.flatnonzero(wanted[block]), out=left[end : end + count], mode="clip")
        end += count
    return left


def emptied(cloud: Cloud, rows: Rows, value: float | None = None) -> Cloud:
    """Return a cloud whose points at ``rows`` (n,) are empty returns in this sensor's convention.

    Coordinates become those of the cloud's own empty returns, zero or NaN (NaN if there are none and the type has it),
    or ``value`` if given; ranges and intensities become 0. ``is_dense`` becomes false with the first NaN.
    """
    raw = cloud.raw.copy()
    points, value = raw.view(cloud.points.dtype), empty_value(cloud) if value is None else value
    for name in "xyz":
        points[name][rows] = value
    for number in (*cloud.echo_names, *filter(cloud.single, RANGE_FIELDS)):
        points[number][rows] = 0
    changed = cloud.with_raw(raw, height=cloud.height)
    return changed if value == 0 or not len(rows) else replace(changed, is_dense=False).read_as(cloud.reading)


def empty_value(cloud: Cloud) -> float:
    """Return the coordinate value of empty returns in this cloud: 0.0 or NaN."""
    if any(cloud.points.dtype[name].kind != "f" for name in "xyz"):
        return 0.0
    empty = np.flatnonzero(empty_returns(cloud))
    return 0.0 if len(empty) and cloud.points["x"][empty[0]] == 0 else float("nan")


def proof_of_removal(old: Cloud, new: Cloud, rows: Rows) -> str | None:
    """Prove that exactly the points at ascending ``rows`` (n,) are gone, and every other one is there, in order."""
    if (rows[1:] <= rows[:-1]).any() or (len(rows) and not 0 <= rows[0] <= rows[-1] < len(old)):
        return "the rows drawn are not rows of the cloud, each once, rising"
    if not old.organised:
        if len(new) != len(old) - len(rows):
            return f"{len(new)} points, expected {len(old)} less {len(rows)}"
        return None if same_bytes(np.delete(old.raw, rows), new.raw) else "a point that was to stay changed"
    fields = (*"xyz", *RANGE_FIELDS, *old.echo_names)
    broken = proof_of_change(old, new, rows, fields)
    if broken is not None:
        return broken
    return None if empty_returns(new)[rows].all() else "a return that was to be lost is still there"


def proof_of_change(old: Cloud, new: Cloud, rows: Rows | slice, fields: tuple[str | None, ...]) -> str | None:
    """Prove that no byte differs but in some fields of the points at ``rows`` (n,)."""
    return proof_of_changes(old, new, ((rows, fields),))


def proof_of_changes(
    old: Cloud, new: Cloud, changes: tuple[tuple[Rows | slice, tuple[str | None, ...]], ...]
) -> str | None:
    """Prove that no byte differs but in the fields of each change, of the points at its rows (n,).

    In blocks of some thousands of points, to save memory.
    """
    if len(new) != len(old) or new.height != old.height:
        return f"{len(new)} points in {new.height} rows, expected {len(old)} in {old.height}"
    allowed = [(marked(len(old), rows), set(fields) & set(old.fields)) for rows, fields in changes]
    for start in range(0, len(old), _PIECE):
        piece = slice(start, start + _PIECE)
        whole = new.raw[piece].copy()  # a copy of points with fields would leave their padding out
        restored, before = whole.view(old.points.dtype), old.points[piece]
        for mark, names in allowed:
            at = slice(None) if mark[piece].all() else mark[piece]  # a slice is read without a copy
            for name in names:
                restored[name][at] = before[name][at]
        if whole.tobytes() != old.raw[piece].tobytes():
            changed_fields = dict.fromkeys(name for _, fields in changes for name in fields if name)
            return f"something else changed than {', '.join(changed_fields)} of the points drawn"
    return None


def marked(count: int, rows: Rows | slice) -> Mask:
    """Return a mask (count,) of the points at rows (n,)."""
    mark = np.zeros(count, dtype=bool)
    mark[rows] = True
    return mark


def same_bytes(some: Points, others: Points) -> bool:
    """Return whether points (n,) of one layout are the same, byte for byte; in blocks, to save memory."""
    pieces = (slice(start, start + _PIECE) for start in range(0, len(some), _PIECE))
    return len(some) == len(others) and all(some[piece].tobytes() == others[piece].tobytes() for piece in pieces)
