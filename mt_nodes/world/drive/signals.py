# SPDX-License-Identifier: Apache-2.0
"""Traffic lights by the clock."""

from __future__ import annotations

from collections.abc import Mapping

from mt_nodes.world.drive.road_map import RoadMap

COLOURS = ("red", "yellow", "green")
Programme = tuple[tuple[str, float], ...]


def programmes(road: RoadMap, own: Mapping[str, Programme]) -> dict[str, Programme]:
    """Return the programme of each light of a map, where a scenario has none of its own for it."""
    return {signal.name: own.get(signal.name, signal.programme) for signal in road.signals}


def colour_at(programme: Programme, time_s: float) -> str:
    """Return which colour shines at a time from the beginning; a programme begins again at its end."""
    left = time_s % sum(seconds for _, seconds in programme)
    for colour, seconds in programme:
        if left < seconds:
            return colour
        left -= seconds
    return programme[-1][0]
