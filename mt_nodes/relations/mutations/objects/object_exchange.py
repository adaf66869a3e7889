# SPDX-License-Identifier: Apache-2.0
"""Base of mutations that remove an object and add one elsewhere, or in its place."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import shapely

from mt_nodes.base.arrays import Floats, Rows
from mt_nodes.base.errors import NotApplicable, UsageError
from mt_nodes.base.params import param
from mt_nodes.data.association import footprints
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.data.transforms import Matrix, UnknownTransform, move
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.lidar.rays import refuse_whole_numbers
from mt_nodes.relations.mutations.objects.changed_returns import changed, placed_points, rows_of, source_rows
from mt_nodes.relations.mutations.objects.object_removed import (
    ObjectRemoved,
    ground_around,
    standing_within,
    things_ahead,
)
from mt_nodes.relations.mutations.objects.picture_exchange import ObjectExchange
from mt_nodes.world.scene.nearest_object import AROUND_M, Search
from mt_nodes.world.scene.scan_lines import keep_lines

#: Lengths and heights in metres of the visible part of an object. A person's are those of walkers, from children to the
#: tallest; a car may show its rear alone, which is at least 1.2 m wide. Both are deliberately wide: assumed.
SIZES = {"any": ((0.0, np.inf), (0.0, 4.0)), "person": ((0.0, 1.2), (0.9, 2.2)), "car": ((1.2, 6.0), (0.9, 2.6))}
_PUT = "put_"


@dataclass(frozen=True)
class Rectangle:
    """An object seen from above: centre (x, y), direction of its longer side, half sizes along and across, metres."""

    center_m: tuple[float, float]
    yaw_rad: float
    half_m: tuple[float, float]


@dataclass(frozen=True)
class ObjectExchanged(ObjectRemoved):
    """Removes an object as ``object_removed`` does, then adds one to the remaining cloud.

    The proof covers both steps, each against the cloud before it.
    """

    size: str = param("any", choices=tuple(SIZES), help="what is looked for: as large as a person, a car, or any")

    @property
    def search(self) -> Search:
        """The search parameters."""
        length, height = SIZES[self.size]
        return Search(
            self.ahead_m, self.aside_m, self.least_points, (length[0], min(length[1], self.largest_m)), height
        )

    @abstractmethod
    def choose(self, bundle: Bundle, state: Any) -> ObjectExchange:
        """Choose an object and its replacement, without randomness. Raises NotApplicable: nothing can be exchanged."""

    @abstractmethod
    def draw_addition(
        self, rng: np.random.Generator, bundle: Bundle, old: Cloud, left: Cloud, draw: Draw, known: Any
    ) -> Draw:
        """Return the draw of the returns that are added, as :func:`.in_scene.draw_hits` does.

        ``known`` comes from :meth:`choose` for this cloud, None for a cloud other than the first.
        """

    @abstractmethod
    def prove_addition(self, bundle: Bundle, left: Cloud, new: Cloud, draw: Draw, addition: Draw) -> str | None:
        """Prove the added returns, and that nothing else changed."""

    @abstractmethod
    def describe_addition(self, bundle: Bundle, draw: Draw) -> Effects:
        """Report the new object and what it hides."""

    def draw(self, rng: np.random.Generator, bundle: Bundle, state: Any) -> Draw:
        """Draw for every cloud and every picture."""
        for cloud in bundle.clouds:
            refuse_whole_numbers(cloud)
        return super().draw(rng, bundle, state)

    def draw_cloud(self, rng: np.random.Generator, bundle: Bundle, cloud: Cloud, state: Any) -> Draw:
        """Remove the object, and measure its replacement."""
        choice: ObjectExchange = state()
        outline, plane = choice.draw["outline_m"], choice.draw["plane"]
        rows, known = choice.rows, choice.known
        if cloud is not bundle.clouds[0]:
            rows, known = standing_within(cloud, self.to_ego(bundle, cloud), outline, plane), None
        draw = {**choice.draw, **self.draw_removal(rng, bundle, cloud, outline, plane, rows)}
        addition = self.draw_addition(rng, bundle, cloud, self._left(bundle, cloud, draw), draw, known)
        return {**draw, **{f"{_PUT}{name}": value for name, value in addition.items()}}

    def touched(self, cloud: Cloud, draw: Draw) -> Floats:
        """Return the places (n, 3) of removed and added returns."""
        return np.concatenate([super().touched(cloud, draw), _placed(cloud, draw)])

    def change_cloud(self, bundle: Bundle, cloud: Cloud, draw: Draw) -> Cloud:
        """Apply both steps."""
        return changed(super().change_cloud(bundle, cloud, draw), _addition_of(draw))

    def prove_cloud(self, bundle: Bundle, old: Cloud, new: Cloud, draw: Draw) -> str | None:
        """Prove both steps."""
        left = self._left(bundle, old, draw)
        return super().prove_cloud(bundle, old, left, draw) or self.prove_addition(
            bundle, left, new, draw, _addition_of(draw)
        )

    def describe_change(self, bundle: Bundle, clouds: Mapping[str, Cloud], draws: Mapping[str, Draw]) -> Effects:
        """Report what was removed and what was added."""
        placed = {c.topic: _placed(c, draws[c.topic]) for c in bundle.clouds}
        addition = self.describe_addition(bundle, next(iter(draws.values())))
        effects = self.describe_removal(bundle, draws).merged(addition)
        count = float(sum(map(len, placed.values())))
        return replace(effects, numbers={**effects.numbers, "points_on_object": count}, added_points=placed)

    def _left(self, bundle: Bundle, cloud: Cloud, draw: Draw) -> Cloud:
        """Return the cloud without the object, on its original beams."""
        left = super().change_cloud(bundle, cloud, draw)
        keep_lines(left, cloud, _removed_rows(cloud, draw))
        return left


def rectangle(outline: Floats) -> Rectangle:
    """Return the rectangle around an outline (k, 2) of returns."""
    corners = shapely.get_coordinates(shapely.Polygon(outline).minimum_rotated_rectangle)[:4]
    sides = np.diff(corners[:3], axis=0)
    side_m = np.hypot(*sides.T)
    long = int(np.argmax(side_m))
    half = np.maximum(np.sort(side_m)[::-1] / 2 - AROUND_M, 0.01).tolist()
    (x, y), (dx, dy) = corners.mean(axis=0).tolist(), sides[long].tolist()
    return Rectangle((x, y), float(np.arctan2(dy, dx)), (half[0], half[1]))


def _removed_rows(cloud: Cloud, draw: Draw) -> Rows:
    """Return the rows (n,) of a cloud that are missing in the cloud without the object."""
    return rows_of({} if cloud.organised else draw, "lost")


def left_rows(cloud: Cloud, draw: Draw, rows: Rows) -> Rows:
    """Return the rows of some points (n,) in the cloud without the object; none of them is the object's."""
    return rows - np.searchsorted(np.sort(_removed_rows(cloud, draw)), rows)


def _placed(cloud: Cloud, draw: Draw) -> Floats:
    """Return every added return (n, 3); rays are those of the source."""
    addition = _addition_of(draw)
    return placed_points(
        cloud, {**addition, "rows": source_rows(rows_of(addition, "rows"), _removed_rows(cloud, draw))}
    )


def _addition_of(draw: Draw) -> Draw:
    return {name.removeprefix(_PUT): value for name, value in draw.items() if name.startswith(_PUT)}


CHOICES = ("auto", "cloud", "labels")
#: Labels enclose an object tightly; its returns scatter around by range noise.
_AROUND_LABEL_M = 0.1


Outline = tuple[Floats, Floats]
"""An object: its outline (k, 2) in the ego's frame, and the ground (5,) around it."""


def search_of(size: str, ahead_m: tuple[float, float], aside_m: float, least_points: int, largest_m: float) -> Search:
    """Return the search for objects as large as ``size``, one of :data:`SIZES`."""
    (shortest, longest), height = SIZES[size]
    return Search(ahead_m, aside_m, least_points, (shortest, min(longest, largest_m)), height)


def objects_of(bundle: Bundle, to_ego: Matrix, search: Search, by: str, ego_frame_id: str) -> Iterator[Outline]:
    """Yield outline (k, 2) and ground (5,) of objects ahead in the ego's frame, nearest first.

    ``to_ego``: of the first cloud. ``by``: ``labels``, ``cloud``, or ``auto``: labels where the recording has them.
    Raises NotApplicable: there is none; or no label, or no ground around one.
    """
    if by == "cloud" or (by == "auto" and bundle.truth is None):
        yield from things_ahead(bundle, to_ego, search)
        return
    outlines = _labelled(bundle, search, ego_frame_id)
    if not outlines:
        count = 0 if bundle.truth is None else len(bundle.truth.objects)
        raise NotApplicable(f"none of {count} labelled objects is ahead and as large as is asked for")
    for outline in outlines:
        yield outline, ground_around(bundle.clouds[0], to_ego, outline)


def _labelled(bundle: Bundle, search: Search, ego_frame_id: str) -> list[Floats]:
    """Return the outlines (4, 2) of labelled objects that fit a search, nearest first."""
    if bundle.truth is None:
        raise NotApplicable(f"bundle {bundle.index} has no labels")
    boxes = bundle.truth.objects
    try:
        matrix = bundle.transforms.lookup(ego_frame_id, boxes.frame_id)
    except UnknownTransform as error:
        raise UsageError(f"labels: {error}") from error
    center = move(matrix, boxes.center_m)
    yaw = boxes.yaw_rad + float(np.arctan2(matrix[1, 0], matrix[0, 0]))
    (near, far), longest = search.ahead_m, boxes.size_m[:, :2].max(axis=1, initial=0.0)
    fits = (center[:, 0] >= near) & (center[:, 0] <= far) & (np.abs(center[:, 1]) <= search.aside_m)
    fits &= (longest >= search.length_m[0]) & (longest <= search.length_m[1])
    fits &= (boxes.size_m[:, 2] >= search.height_m[0]) & (boxes.size_m[:, 2] <= search.height_m[1])
    fits &= (bundle.truth.points < 0) | (bundle.truth.points >= search.least_points)
    order = np.flatnonzero(fits)[np.argsort(np.hypot(*center[fits, :2].T), kind="stable")]
    margin = np.array([2.0 * _AROUND_LABEL_M, 2.0 * _AROUND_LABEL_M, 0.0])
    around = replace(boxes, center_m=center, size_m=boxes.size_m + margin, yaw_rad=yaw).take(order)
    return [shapely.get_coordinates(outline)[:-1] for outline in footprints(around)]
