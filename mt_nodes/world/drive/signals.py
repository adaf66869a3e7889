# SPDX-License-Identifier: Apache-2.0
"""Programmes of traffic lights."""

from __future__ import annotations

from collections.abc import Mapping

from mt_nodes.world.drive.road_map import RoadMap

COLOURS = ("red", "yellow", "green")
Programme = tuple[tuple[str, float], ...]


def programmes(road: RoadMap, own: Mapping[str, Programme]) -> dict[str, Programme]:
    """Return the programme of each light of a map: the scenario's own, else the map's."""
    return {signal.name: own.get(signal.name, signal.programme) for signal in road.signals}


def colour_at(programme: Programme, time_s: float) -> str:
    """Return the colour at a time; a programme repeats."""
    left = time_s % sum(seconds for _, seconds in programme)
    for colour, seconds in programme:
        if left < seconds:
            return colour
        left -= seconds
    return programme[-1][0]
