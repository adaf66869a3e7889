# SPDX-License-Identifier: Apache-2.0
"""The lanes and traffic lights around a vehicle, as from a map."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Mask

#: Direction of a lane: the vehicle's own, the same direction, or oncoming.
OWN, ALONG, ONCOMING = "own", "along", "oncoming"


class Strip(NamedTuple):
    """A piece of one lane: name, direction, width in metres, and (K, 2) its middle line in the order of driving."""

    name: str
    direction: str
    width_m: float
    middle_m: Floats


@dataclass(frozen=True, eq=False)
class Lanes:
    """Lanes for vehicles: a row for each point of a centre line, in driving order.

    ``name``: (K,) of the lane; rows of a lane stand together. ``direction``: (K,) :data:`OWN`, :data:`ALONG` or
    :data:`ONCOMING`, relative to the vehicle's route. ``width_m``: (K,). ``point_m``: (K, 2) x, y in ``frame_id``.
    """

    frame_id: str
    stamp_ns: int | None
    name: npt.NDArray[np.str_]
    direction: npt.NDArray[np.str_]
    width_m: Floats
    point_m: Floats

    def __len__(self) -> int:
        return len(self.name)

    @classmethod
    def make(cls, frame_id: str, stamp_ns: int | None, strips: Iterable[Strip] = ()) -> Lanes:
        """Build from pieces of lanes."""
        rows = list(strips)
        counts = [len(strip.middle_m) for strip in rows]
        points = [np.asarray(strip.middle_m, dtype=np.float64).reshape(-1, 2) for strip in rows]
        return cls(
            frame_id,
            stamp_ns,
            np.repeat(np.array([strip.name for strip in rows], dtype=np.str_), counts),
            np.repeat(np.array([strip.direction for strip in rows], dtype=np.str_), counts),
            np.repeat(np.array([strip.width_m for strip in rows], dtype=np.float64), counts),
            np.concatenate([np.empty((0, 2)), *points]),
        )

    @property
    def strips(self) -> Iterator[Strip]:
        """The pieces: consecutive rows with the same name, direction and width."""
        keys = zip(self.name.tolist(), self.direction.tolist(), self.width_m.tolist(), strict=True)
        begin = 0
        for (name, direction, width_m), rows in groupby(keys):
            end = begin + sum(1 for _ in rows)
            yield Strip(name, direction, width_m, self.point_m[begin:end])
            begin = end


@dataclass(frozen=True, eq=False)
class SignalStates:
    """States of traffic lights: as from a map and a camera together, or as a stack detects them.

    Attributes:
        name: (K,) texts, empty where a light has no name. colour: (K,) ``red``, ``yellow``, ``green``, ``off`` or
            ``unknown``; of several lamps, and of arrows, :func:`joined_states`.
        stop: (K, 3) x, y in metres and yaw in radians, in ``frame_id``: middle of the lane at the stop line, and the
            direction in which it is crossed; of a stack the place that it gives the light; NaN where unknown.
        score: (K,) in 0..1, 1 where none is given.
        box_px: (K, 4) left, upper, right and lower edge in the image of ``frame_id``; NaN where it is in no image.
    """

    frame_id: str
    stamp_ns: int | None
    name: npt.NDArray[np.str_]
    colour: npt.NDArray[np.str_]
    stop: Floats
    score: Floats
    box_px: Floats

    def __len__(self) -> int:
        return len(self.name)

    @classmethod
    def make(
        cls,
        frame_id: str,
        stamp_ns: int | None,
        name: Iterable[str],
        colour: Iterable[str],
        stop: npt.ArrayLike | None = None,
        score: npt.ArrayLike | None = None,
        box_px: npt.ArrayLike | None = None,
    ) -> SignalStates:
        """Build from columns. Raises ValueError: they differ in length."""
        names, colours = np.array([*name], dtype=np.str_), np.array([*colour], dtype=np.str_)
        count = len(names)
        places = np.full((count, 3), np.nan) if stop is None else np.asarray(stop, dtype=np.float64).reshape(-1, 3)
        scores = np.ones(count) if score is None else np.asarray(score, dtype=np.float64).reshape(-1)
        boxes = np.full((count, 4), np.nan) if box_px is None else np.asarray(box_px, dtype=np.float64).reshape(-1, 4)
        if not count == len(colours) == len(places):
            raise ValueError(f"got {count} names, {len(colours)} colours and {len(places)} stop lines")
        if not count == len(scores) == len(boxes):
            raise ValueError(f"got {count} names, {len(scores)} scores and {len(boxes)} boxes")
        return cls(frame_id, stamp_ns, names, colours, places, scores, boxes)

    def renamed(self, classes: Mapping[str, str]) -> SignalStates:
        """Return it with renamed states; see :meth:`~mt_nodes.data.outputs.Output.renamed`."""
        return replace(self, colour=np.array([classes.get(own, own) for own in self.colour.tolist()], dtype=np.str_))

    @property
    def label(self) -> npt.NDArray[np.str_]:
        """(K,) states, as the classes of other outputs."""
        return self.colour

    @property
    def in_image(self) -> Mask:
        """(K,) whether a light has a box in an image."""
        return np.asarray(np.isfinite(self.box_px).all(axis=1))


def joined_states(lamps: Iterable[tuple[str, str]]) -> str:
    """Return the state of a light from the colours and shapes of its lamps that shine: ``red+green_left_arrow``.

    A circle is not named; a lamp of unknown colour makes the whole light ``unknown``, no lamp at all ``off``.
    """
    shining = sorted({f"{colour}_{shape}" if shape not in ("", "circle") else colour for colour, shape in lamps})
    if any(state.partition("_")[0] == "unknown" for state in shining):
        return "unknown"
    return "+".join(shining) or "off"
