# SPDX-License-Identifier: Apache-2.0
"""What mutations that take a thing away and put something elsewhere, or in its place, have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
import shapely

from mt_nodes.base.params import param
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.lidar.rays import refuse_whole_numbers
from mt_nodes.relations.mutations.objects.changed_returns import changed, placed_points, rows_of, source_rows
from mt_nodes.relations.mutations.objects.object_removed import Floats, ObjectRemoved, Rows, standing_within
from mt_nodes.world.scene.beams import keep_beams
from mt_nodes.world.scene.nearest_object import AROUND_M, Search

#: Lengths and heights in metres of what returns show of a thing. A person's are those of walkers, children included,
#: up to the tallest; a car may show its rear alone, which is at least 1.2 m wide. Both are wide on purpose: assumed.
SIZES = {"any": ((0.0, np.inf), (0.0, 4.0)), "person": ((0.0, 1.2), (0.9, 2.2)), "car": ((1.2, 6.0), (0.9, 2.6))}
_PUT = "put_"


@dataclass(frozen=True)
class Rectangle:
    """A thing seen from above: centre (x, y), direction of its longer side, half sizes along and across, metres."""

    center_m: tuple[float, float]
    yaw_rad: float
    half_m: tuple[float, float]


@dataclass(frozen=True, eq=False)
class ObjectExchange:
    """A thing, and what becomes of it.

    Attributes:
        draw: its ``outline_m`` and ``plane`` as from :meth:`ObjectRemoved.things`, and what becomes of it.
        rows: (n,) its returns in the first cloud. known: whatever else was learned of that cloud and is of use again.
    """

    draw: Draw
    rows: Rows
    known: Any = None


@dataclass(frozen=True)
class ObjectExchanged(ObjectRemoved):
    """Takes a thing away as ``object_removed`` does, then puts something into the cloud that is left.

    The proof is that of both steps, each against the cloud before it.
    """

    size: str = param("any", choices=tuple(SIZES), help="what is looked for: as large as a person, a car, or any")

    @property
    def search(self) -> Search:
        """What is looked for."""
        length, height = SIZES[self.size]
        return Search(
            self.ahead_m, self.aside_m, self.least_points, (length[0], min(length[1], self.largest_m)), height
        )

    @abstractmethod
    def choose(self, bundle: Bundle, state: Any) -> ObjectExchange:
        """Choose a thing, and what becomes of it, without chance.

        Raises:
            NotApplicable: nothing can be exchanged; with the reasons.
        """

    @abstractmethod
    def draw_put(
        self, rng: np.random.Generator, bundle: Bundle, old: Cloud, left: Cloud, draw: Draw, known: Any
    ) -> Draw:
        """Return the returns put into what is left, as :func:`mt_nodes.relations.mutations.objects.in_scene.draw_hits`
        does.

        ``known`` is what :meth:`choose` learned of this cloud, None for another than the first.
        """

    @abstractmethod
    def prove_put(self, bundle: Bundle, left: Cloud, new: Cloud, draw: Draw, put: Draw) -> str | None:
        """Prove them, and that nothing else changed."""

    @abstractmethod
    def describe_put(self, bundle: Bundle, draw: Draw) -> Effects:
        """Say what is there now and what it hides."""

    def draw(self, rng: np.random.Generator, bundle: Bundle, state: Any) -> Draw:
        """Draw for every cloud; what is exchanged is chosen once, when the first was found plausible."""
        for cloud in bundle.clouds:
            refuse_whole_numbers(cloud)
        return super().draw(rng, bundle, cache(partial(self.choose, bundle, state)))

    def draw_cloud(
        self, rng: np.random.Generator, bundle: Bundle, cloud: Cloud, state: Callable[[], ObjectExchange]
    ) -> Draw:
        """Take the thing away, and measure what is put."""
        choice = state()
        outline, plane = choice.draw["outline_m"], choice.draw["plane"]
        rows, known = choice.rows, choice.known
        if cloud is not bundle.clouds[0]:
            rows, known = standing_within(cloud, self.to_ego(bundle, cloud), outline, plane), None
        draw = {**choice.draw, **self.draw_gone(rng, bundle, cloud, outline, plane, rows)}
        put = self.draw_put(rng, bundle, cloud, self._left(bundle, cloud, draw), draw, known)
        return {**draw, **{f"{_PUT}{name}": value for name, value in put.items()}}

    def touched(self, cloud: Cloud, draw: Draw) -> Floats:
        """Return the places (n, 3) of what is gone and of what was put."""
        return np.concatenate([super().touched(cloud, draw), _placed(cloud, draw)])

    def change_cloud(self, bundle: Bundle, cloud: Cloud, draw: Draw) -> Cloud:
        """Do both."""
        return changed(super().change_cloud(bundle, cloud, draw), _put(draw))

    def prove_cloud(self, bundle: Bundle, old: Cloud, new: Cloud, draw: Draw) -> str | None:
        """Prove both."""
        left = self._left(bundle, old, draw)
        return super().prove_cloud(bundle, old, left, draw) or self.prove_put(bundle, left, new, draw, _put(draw))

    def describe_change(self, bundle: Bundle, clouds: Mapping[str, Cloud], draws: Mapping[str, Draw]) -> Effects:
        """Say what was removed, and what is there now."""
        put = {c.topic: _placed(c, draws[c.topic]) for c in bundle.clouds}
        effects = self.describe_gone(draws).merged(self.describe_put(bundle, draws[bundle.clouds[0].topic]))
        count = float(sum(map(len, put.values())))
        return replace(effects, numbers={**effects.numbers, "points_on_object": count}, added_points=put)

    def _left(self, bundle: Bundle, cloud: Cloud, draw: Draw) -> Cloud:
        """Return the cloud without the thing, on the beams that it was on."""
        left = super().change_cloud(bundle, cloud, draw)
        keep_beams(left, cloud, _gone(cloud, draw))
        return left


def rectangle(outline: Floats) -> Rectangle:
    """Return the rectangle around the returns whose outline (k, 2) is given."""
    corners = shapely.get_coordinates(shapely.Polygon(outline).minimum_rotated_rectangle)[:4]
    sides = np.diff(corners[:3], axis=0)
    side_m = np.hypot(*sides.T)
    long = int(np.argmax(side_m))
    half = np.maximum(np.sort(side_m)[::-1] / 2 - AROUND_M, 0.01).tolist()
    (x, y), (dx, dy) = corners.mean(axis=0).tolist(), sides[long].tolist()
    return Rectangle((x, y), float(np.arctan2(dy, dx)), (half[0], half[1]))


def _gone(cloud: Cloud, draw: Draw) -> Rows:
    """Return the rows (n,) of a cloud that the cloud without the thing lacks."""
    return rows_of({} if cloud.organised else draw, "lost")


def left_rows(cloud: Cloud, draw: Draw, rows: Rows) -> Rows:
    """Return where some points (n,) of a cloud are in the cloud without the thing; none of them is the thing's."""
    return rows - np.searchsorted(np.sort(_gone(cloud, draw)), rows)


def _placed(cloud: Cloud, draw: Draw) -> Floats:
    """Return every return put (n, 3); rays go on without the thing, so those of the source tell where."""
    put = _put(draw)
    return placed_points(cloud, {**put, "rows": source_rows(rows_of(put, "rows"), _gone(cloud, draw))})


def _put(draw: Draw) -> Draw:
    return {name.removeprefix(_PUT): value for name, value in draw.items() if name.startswith(_PUT)}
