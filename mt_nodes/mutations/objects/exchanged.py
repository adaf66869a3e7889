# SPDX-License-Identifier: Apache-2.0
"""What mutations that take a thing away and put something elsewhere, or in its place, have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import shapely

from mt_nodes.effects import Effects
from mt_nodes.frames import Bundle, Cloud
from mt_nodes.mutations.base import Draw
from mt_nodes.mutations.lidar.plausible import refuse_implausible
from mt_nodes.mutations.lidar.rays import refuse_whole_numbers
from mt_nodes.mutations.objects.in_scene import changed, placed_points
from mt_nodes.mutations.objects.object_removed import Floats, ObjectRemoved, Rows
from mt_nodes.params import param
from mt_nodes.scene.beams import keep_beams
from mt_nodes.scene.nearest_object import AROUND_M, Search

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
    def choose(self, bundle: Bundle, state: Any) -> Draw:
        """Choose a thing, ``outline_m`` and ``plane`` as from :meth:`things`, and what becomes of it, without chance.

        Raises:
            NotApplicable: nothing can be exchanged; with the reasons.
        """

    @abstractmethod
    def draw_put(self, rng: np.random.Generator, bundle: Bundle, old: Cloud, left: Cloud, draw: Draw) -> Draw:
        """Return the returns put into what is left, as :func:`mt_nodes.mutations.objects.in_scene.draw_hits` does."""

    @abstractmethod
    def prove_put(self, bundle: Bundle, left: Cloud, new: Cloud, draw: Draw, put: Draw) -> str | None:
        """Prove them, and that nothing else changed."""

    @abstractmethod
    def describe_put(self, bundle: Bundle, draw: Draw) -> Effects:
        """Say what is there now and what it hides."""

    def draw(self, rng: np.random.Generator, bundle: Bundle, state: Any) -> Draw:
        """Choose once for all clouds, then draw for each."""
        for cloud in bundle.clouds:
            refuse_implausible(cloud)
            refuse_whole_numbers(cloud)
        return super().draw(rng, bundle, self.choose(bundle, state) if bundle.clouds else None)

    def draw_cloud(self, rng: np.random.Generator, bundle: Bundle, cloud: Cloud, state: Any) -> Draw:
        """Take the thing away, and measure what is put."""
        draw = {**state, **self.draw_gone(rng, bundle, cloud, state["outline_m"], state["plane"])}
        put = self.draw_put(rng, bundle, cloud, self._left(bundle, cloud, draw), draw)
        return {**draw, **{f"{_PUT}{name}": value for name, value in put.items()}}

    def change_cloud(self, bundle: Bundle, cloud: Cloud, draw: Draw) -> Cloud:
        """Do both."""
        return changed(self._left(bundle, cloud, draw), _put(draw))

    def prove_cloud(self, bundle: Bundle, old: Cloud, new: Cloud, draw: Draw) -> str | None:
        """Prove both."""
        left = self._left(bundle, old, draw)
        return super().prove_cloud(bundle, old, left, draw) or self.prove_put(bundle, left, new, draw, _put(draw))

    def describe_change(self, bundle: Bundle, clouds: Mapping[str, Cloud], draws: Mapping[str, Draw]) -> Effects:
        """Say what was removed, and what is there now."""
        put = {c.topic: _placed(c, draws[c.topic]) for c in bundle.clouds}
        effects = super().describe_change(bundle, clouds, draws)
        effects = effects.merged(self.describe_put(bundle, draws[bundle.clouds[0].topic]))
        count = float(sum(map(len, put.values())))
        return replace(effects, numbers={**effects.numbers, "points_on_object": count}, added_points=put)

    def _left(self, bundle: Bundle, cloud: Cloud, draw: Draw) -> Cloud:
        """Return the cloud without the thing, on the beams that it was on."""
        left = super().change_cloud(bundle, cloud, draw)
        keep_beams(left, cloud, _kept(cloud, draw))
        return left


def rectangle(outline: Floats) -> Rectangle:
    """Return the rectangle around the returns whose outline (k, 2) is given."""
    corners = shapely.get_coordinates(shapely.Polygon(outline).minimum_rotated_rectangle)[:4]
    sides = np.diff(corners[:3], axis=0)
    lengths = np.hypot(*sides.T)
    long = int(np.argmax(lengths))
    half = np.maximum(np.sort(lengths)[::-1] / 2 - AROUND_M, 0.01).tolist()
    (x, y), (dx, dy) = corners.mean(axis=0).tolist(), sides[long].tolist()
    return Rectangle((x, y), float(np.arctan2(dy, dx)), (half[0], half[1]))


def _kept(cloud: Cloud, draw: Draw) -> Rows:
    """Return the rows (n,) of a cloud that the cloud without the thing has."""
    rows = np.arange(len(cloud))
    return rows if cloud.organised else np.delete(rows, draw["lost"].astype(np.int64))


def _placed(cloud: Cloud, draw: Draw) -> Floats:
    """Return every return put (n, 3); rays go on without the thing, so those of the source tell where."""
    put = _put(draw)
    return placed_points(cloud, {**put, "rows": _kept(cloud, draw)[put["rows"].astype(np.int64)]})


def _put(draw: Draw) -> Draw:
    return {name.removeprefix(_PUT): value for name, value in draw.items() if name.startswith(_PUT)}
