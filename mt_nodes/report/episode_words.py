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

#: Names that are listed; further ones are counted.
_MAX_NAMES = 5


def in_words(recorded: RecordedDrives) -> list[str]:
    """Return one line each about the world, the source, the follow-up, and the distance between both."""
    source, followup = recorded.drives
    return [_world(recorded), f"source: {_drive(source)}", f"follow-up: {_drive(followup)}", _apart(recorded)]


def _world(recorded: RecordedDrives) -> str:
    setting, effects = recorded.settings[0], recorded.effects
    done = ", then ".join(f"{name}{_numbers(draw)}" for name, draw in recorded.changes) or "nothing"
    both = (("added", effects.added), ("changed", effects.changed))
    parts = [f"{what} {_listed(names)}" for what, names in both if names]
    listed = f" ({'; '.join(parts)})" if parts else ""
    return f"scenario {setting.scenario.name} on the map {setting.road.name}; change of the world: {done}{listed}"


def _listed(names: Sequence[str]) -> str:
    return (
        ", ".join(names)
        if len(names) <= _MAX_NAMES
        else f"{', '.join(names[:_MAX_NAMES])} and {len(names) - _MAX_NAMES} more"
    )


def _numbers(draw: Mapping[str, Any]) -> str:
    numbers = {name: value for name, value in draw.items() if isinstance(value, (int, float))}
    return f" ({', '.join(f'{name} {value:.4g}' for name, value in numbers.items())})" if numbers else ""


def _drive(drive: ScenarioTrace) -> str:
    trace = drive.trace
    speed, along = trace.column("speed_mps"), trace.column("acceleration_mps2")
    hardest = int(np.argmin(along))
    braked = (
        f", braked by at most {-along[hardest]:.1f} m/s² (at {trace.time_s[hardest]:.1f} s)"
        if along[hardest] < -0.1
        else ""
    )
    silent = int((~trace.answered).sum())
    unanswered = f", {silent} of {len(trace)} instants without a command" if silent else ""
    return (
        f"ended by {trace.ended} after {trace.time_s[-1]:.1f} s and {drive.way_m[-1]:.1f} m; "
        f"{_tenths(speed.min())} to {_tenths(speed.max())} m/s{braked}{unanswered}; {'; '.join(_collisions(drive))}"
    )


def _tenths(value: float) -> str:
    # Adding zero turns a negative zero into zero.
    return f"{round(float(value), 1) + 0.0:.1f}"


def _collisions(drive: ScenarioTrace) -> Iterator[str]:
    for collision in drive.trace.collisions:
        yield _hit(collision)
    if not drive.trace.collisions:
        near = least_m(drive)
        name = min(near, key=lambda one: near[one], default="")
        yield f"no collision, nearest {name} at {near[name]:.2f} m" if near else "no collision"


def _hit(collision: Collision) -> str:
    risks = (("fatal", collision.fatal), ("injured", collision.injured))
    chances = "".join(f", {name} {100.0 * chance:.0f} %" for name, chance in risks if chance is not None)
    return (
        f"hit {collision.name} ({collision.kind}) with its {collision.side} at {collision.time_s:.2f} s, "
        f"{collision.closing_mps:.1f} m/s{chances}"
    )


def _apart(recorded: RecordedDrives) -> str:
    expected, driven = recorded.effects.carried.places(recorded.drives[0].places_m), recorded.drives[1].places_m
    rows = min(len(expected), len(driven))
    apart_m = np.linalg.norm(expected[:rows] - driven[:rows], axis=1)
    most = int(np.argmax(apart_m))
    return f"at most {apart_m[most]:.2f} m apart (at {recorded.drives[0].trace.time_s[most]:.1f} s)"
