# SPDX-License-Identifier: Apache-2.0
"""The parts of a world, their differences between two worlds, and worlds with some parts reverted.

Parts are named ``actor <name>``, ``obstacle <name>``, ``signal <name>``, ``weather <number>``, and ``ego``,
``duration``, ``road`` and ``noise``.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import fields, replace
from typing import Any

from mt_nodes.relations.world_changes.base import Setting, WorldEffects
from mt_nodes.world.drive.road_map import RoadMap
from mt_nodes.world.drive.scenario import Environment

#: Kinds of parts that may be absent, and the scenario's field for each.
_THINGS = {"actor": "actors", "obstacle": "obstacles"}
#: Parts that are a named value.
_NAMED = ("weather", "signal")


def parts_of(setting: Setting) -> dict[str, Any]:
    """Return every part of a world by name."""
    scenario = setting.scenario
    things = {f"{kind} {one.name}": one for kind, names in _THINGS.items() for one in getattr(scenario, names)}
    weather = {f"weather {field.name}": getattr(scenario.environment, field.name) for field in fields(Environment)}
    signals = {f"signal {name}": programme for name, programme in scenario.signals.items()}
    whole = {"ego": scenario.ego, "duration": scenario.duration_s, "road": setting.road, "noise": setting.noise}
    return {**things, **weather, **signals, **whole}


def differing(one: Setting, other: Setting) -> tuple[str, ...]:
    """Return the names of the parts that differ, those of ``other`` first."""
    was, now = parts_of(one), parts_of(other)
    return tuple(name for name in {**now, **was} if not _equal(was.get(name), now.get(name)))


def restored(source: Setting, followup: Setting, back: Collection[str]) -> Setting:
    """Return the follow-up's world with some parts as in the source, or without them if it lacks them."""
    if not back:
        return followup
    was, now = parts_of(source), parts_of(followup)
    parts = {name: now.get(name) if name not in back else was.get(name) for name in {**now, **was}}
    return _of_parts(followup, source, {name: part for name, part in parts.items() if part is not None})


def without(setting: Setting, names: Collection[str]) -> Setting:
    """Return a world without some of its actors and obstacles."""
    parts = {name: part for name, part in parts_of(setting).items() if name not in names}
    return _of_parts(setting, setting, parts)


def things(setting: Setting) -> tuple[str, ...]:
    """Return the names of the actors and obstacles of a world."""
    return tuple(name for name in parts_of(setting) if name.partition(" ")[0] in _THINGS)


def left_of(effects: WorldEffects, back: Sequence[str]) -> WorldEffects:
    """Return the remaining effects after parts were reverted: without the names of reverted actors."""
    reverted = {name.partition(" ")[2] for name in back}
    added, changed = (
        tuple(name for name in names if name not in reverted) for names in (effects.added, effects.changed)
    )
    return replace(effects, added=added, changed=changed)


def _equal(one: Any, other: Any) -> bool:
    # Maps hold arrays; every change makes a new map.
    return one is other or (not isinstance(one, RoadMap) and bool(one == other))


def _of_parts(setting: Setting, source: Setting, parts: dict[str, Any]) -> Setting:
    """Return a world of these parts; a map that is the source's gets the source's name."""
    scenario = setting.scenario
    things = {of: tuple(p for n, p in parts.items() if n.startswith(f"{kind} ")) for kind, of in _THINGS.items()}
    weather, signals = ({n.partition(" ")[2]: p for n, p in parts.items() if n.startswith(f"{k} ")} for k in _NAMED)
    road = source.scenario.road if parts["road"] is source.road else scenario.road
    fields: dict[str, Any] = {"ego": parts["ego"], "duration_s": parts["duration"], "signals": signals, "road": road}
    fields |= {**things, "environment": replace(scenario.environment, **weather)}
    return Setting(replace(scenario, **fields), parts["road"], parts["noise"])
