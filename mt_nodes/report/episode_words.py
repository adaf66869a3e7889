# SPDX-License-Identifier: Apache-2.0
"""A pair of drives in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from mt_nodes.engine.recorded_drives import RecordedDrives
from mt_nodes.world.drive.clearance import least_m
from mt_nodes.world.drive.driven import ScenarioTrace
from mt_nodes.world.drive.trace import Collision

#: More than so many are not named one by one.
_NAMED = 5


def in_words(kept: RecordedDrives) -> list[str]:
    """Return a line each about the world, the source, the follow-up, and how far apart they were."""
    source, followup = kept.drives
    return [_world(kept), f"source: {_drive(source)}", f"follow-up: {_drive(followup)}", _apart(kept)]


def _world(kept: RecordedDrives) -> str:
    setting, effects = kept.settings[0], kept.effects
    done = ", then ".join(f"{name}{_numbers(draw)}" for name, draw in kept.changes) or "nothing"
    both = (("added", effects.added), ("changed", effects.changed))
    told = [f"{what} {_listed(names)}" for what, names in both if names]
    listed = f" ({'; '.join(told)})" if told else ""
    return f"scenario {setting.scenario.name} on the map {setting.road.name}; done to the world: {done}{listed}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= _NAMED else f"{', '.join(names[:_NAMED])} and {len(names) - _NAMED} more"


def _numbers(draw: Mapping[str, Any]) -> str:
    numbers = {name: value for name, value in draw.items() if isinstance(value, (int, float))}
    return f" ({', '.join(f'{name} {value:.4g}' for name, value in numbers.items())})" if numbers else ""


def _drive(drive: ScenarioTrace) -> str:
    trace = drive.trace
    speed, along = trace.column("speed_mps"), trace.column("acceleration_mps2")
    hardest = int(np.argmin(along))
    braked = (
        f", braked by {-along[hardest]:.1f} m/s² at most (at {trace.time_s[hardest]:.1f} s)"
        if along[hardest] < -0.1
        else ""
    )
    silent = int((~trace.answered).sum())
    unanswered = f", {silent} of {len(trace)} instants without an answer" if silent else ""
    return (
        f"ended by {trace.ended} after {trace.time_s[-1]:.1f} s and {drive.way_m[-1]:.1f} m; "
        f"{speed.min():.1f} to {speed.max():.1f} m/s{braked}{unanswered}; {'; '.join(_met(drive))}"
    )


def _met(drive: ScenarioTrace) -> Iterator[str]:
    for collision in drive.trace.collisions:
        yield _hit(collision)
    if not drive.trace.collisions:
        near = least_m(drive)
        name = min(near, key=lambda one: near[one], default="")
        yield f"hit nobody, nearest {name} at {near[name]:.2f} m" if near else "hit nobody"


def _hit(collision: Collision) -> str:
    risks = (("fatal", collision.fatal), ("injured", collision.injured))
    chances = "".join(f", {name} {100.0 * chance:.0f} %" for name, chance in risks if chance is not None)
    return (
        f"hit {collision.name} ({collision.kind}) with its {collision.side} at {collision.time_s:.2f} s, "
        f"{collision.closing_mps:.1f} m/s{chances}"
    )


def _apart(kept: RecordedDrives) -> str:
    expected, driven = kept.effects.carried.places(kept.drives[0].places_m), kept.drives[1].places_m
    rows = min(len(expected), len(driven))
    apart_m = np.linalg.norm(expected[:rows] - driven[:rows], axis=1)
    most = int(np.argmax(apart_m))
    return f"apart by {apart_m[most]:.2f} m at most (at {kept.drives[0].trace.time_s[most]:.1f} s)"
