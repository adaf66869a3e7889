# SPDX-License-Identifier: Apache-2.0
"""The lanes and traffic lights around a vehicle, as from a map."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

#: Direction of a lane: the vehicle's own, the same direction, or oncoming.
OWN, ALONG, ONCOMING = "own", "along", "oncoming"


class Strip(NamedTuple):
    """A piece of one lane: name, direction, width in metres, and (K, 2) its middle line in the order of driving."""

    name: str
    direction: str
    width_m: float
    middle_m: npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Lanes:
    """Lanes for vehicles: a row for each point of a centre line, in driving order.

    Attributes:
        name: (K,) of the lane; rows of a lane stand together. direction: (K,) :data:`OWN`, :data:`ALONG` or
            :data:`ONCOMING`, relative to the vehicle's route. width_m: (K,).
        point_m: (K, 2) x, y in ``frame_id``.
    """

    frame_id: str
    stamp_ns: int | None
    name: npt.NDArray[np.str_]
    direction: npt.NDArray[np.str_]
    width_m: npt.NDArray[np.float64]
    point_m: npt.NDArray[np.float64]

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
    """States of the traffic lights and their stop lines, as from a map and a camera together.

    Attributes:
        name: (K,) texts. colour: (K,) ``red``, ``yellow``, ``green``, or ``off``.
        stop: (K, 3) x, y in metres and yaw in radians, in ``frame_id``: middle of the lane at the stop line, and the
            direction in which it is crossed.
    """

    frame_id: str
    stamp_ns: int | None
    name: npt.NDArray[np.str_]
    colour: npt.NDArray[np.str_]
    stop: npt.NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.name)

    @classmethod
    def make(
        cls, frame_id: str, stamp_ns: int | None, name: Iterable[str], colour: Iterable[str], stop: npt.ArrayLike
    ) -> SignalStates:
        """Build from columns. Raises ValueError: they differ in length."""
        names, colours = np.array([*name], dtype=np.str_), np.array([*colour], dtype=np.str_)
        places = np.asarray(stop, dtype=np.float64).reshape(-1, 3)
        if not len(names) == len(colours) == len(places):
            raise ValueError(f"got {len(names)} names, {len(colours)} colours and {len(places)} stop lines")
        return cls(frame_id, stamp_ns, names, colours, places)
