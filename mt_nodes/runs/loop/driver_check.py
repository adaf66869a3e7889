# SPDX-License-Identifier: Apache-2.0
"""A first look at a driver: what it is given, what it commands, how far it comes, and whether it does so again."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from mt_nodes.base.wording import counted
from mt_nodes.data.lanes import Lanes, SignalStates
from mt_nodes.data.messages import Bundle, Cloud, Image, Message, Odometry, WorldMessage
from mt_nodes.data.outputs import Control, Detections
from mt_nodes.data.outputs import Path as PosePath
from mt_nodes.data.radar import Radar
from mt_nodes.engine.arm import restart, start
from mt_nodes.runs.doctor import Finding
from mt_nodes.runs.loop.episode import BAD_COMMAND, SILENT, PlayedEpisode, play
from mt_nodes.runs.loop.episode_conductor import in_process_arms, player_of
from mt_nodes.runs.loop.scenario_request import ScenarioRequest
from mt_nodes.runs.loop.scenario_run import ScenarioRun
from mt_nodes.stacks.callable_host import BY_ROLE

SCENARIO = "bend"
#: So many objects, lights and lanes are named.
_NAMED = 3
#: Road wheels turn no farther, and no road is driven on faster: a number beyond is mostly of another unit.
_WHEELS_RAD, _ROAD_MPS = 1.2, 70.0
#: A driver that comes no farther stands.
_STANDS_M = 1.0


@dataclass(frozen=True, eq=False)
class DriverCheck:
    """What a first look at a driver found.

    Attributes:
        given: what it was given first. first, second: the same episode, driven twice. period_s: between two calls.
    """

    stack: str
    scenario: str
    given: Bundle
    first: PlayedEpisode
    second: PlayedEpisode
    period_s: float


def check_driver(stack: str, scenario: str = SCENARIO) -> DriverCheck:
    """Let a driver drive a scenario twice, in process.

    Raises UsageError: it is no Python callable that commands a vehicle. InfrastructureError: it failed, with the end of
    what it printed.
    """
    request = ScenarioRequest(scenarios=(scenario,), stack=stack, repeat=1, transport="inprocess")
    with tempfile.TemporaryDirectory(prefix="mt_driver_check_") as out:
        run = ScenarioRun.make(request, Path(out))
        planned = run.episodes[0]
        with ExitStack() as ending:
            arm, _ = in_process_arms(run, ending)
            start(arm)
            (first,) = play([player_of(run, planned, planned.setting, arm)])
            if not run.stack.stateless:
                restart(arm)
            player = player_of(run, planned, planned.setting, arm)
            (second,) = play([player])
        given = player_of(run, planned, planned.setting, None).look(0)
    return DriverCheck(run.stack.name, scenario, given, first, second, player.period_s)


def findings_of(check: DriverCheck) -> Iterator[Finding]:
    """Yield what it is given, what it commands, what became of that, and what is wrong."""
    for message in check.given.messages:
        yield Finding("info", f"given: {_name(message)}", _text(message))
    yield from command_ranges(check.first.commands)
    yield _drive(check.first)
    yield _repeatability(check)


def _name(message: Message) -> str:
    """Return what a callable calls a message."""
    if isinstance(message, WorldMessage):
        return message.role
    roles = {Cloud: "lidar", Radar: "radar", Image: "camera"}
    return BY_ROLE[roles.get(type(message), "camera_info")]


def _text(message: Message) -> str:
    if isinstance(message, WorldMessage):
        return f"{_TEXTS[message.role](message.data)}; in {message.frame_id}"
    if isinstance(message, Cloud):
        return f"{len(message):,} points; in {message.frame_id}"
    height, width = message.pixels.shape[:2] if isinstance(message, Image) else (message.height, message.width)
    return f"{width} by {height} pixels; in {message.frame_id}"


def _objects(objects: Detections) -> str:
    near = [
        f"{label} at ({x:.1f}, {y:.1f}, {z:.1f}) m"
        for label, (x, y, z) in zip(objects.label, objects.center_m, strict=True)
    ]
    return _listed("object", near)


def _odometry(odometry: Odometry) -> str:
    return (
        f"x {odometry.x_m:.1f} m, y {odometry.y_m:.1f} m, yaw {odometry.yaw_rad:.2f} rad, {odometry.speed_mps:.1f} m/s"
    )


def _route(route: PosePath) -> str:
    (x, y, _), (far_x, far_y, _) = route.pose[0], route.pose[-1]
    limit = f"{route.speed_mps.min():.1f} to {route.speed_mps.max():.1f} m/s"
    return f"{len(route.pose)} poses from ({x:.1f}, {y:.1f}) to ({far_x:.1f}, {far_y:.1f}) m, limits {limit}"


def _signals(signals: SignalStates) -> str:
    return _listed("light", [f"{name} {colour}" for name, colour in zip(signals.name, signals.colour, strict=True)])


def _lanes(lanes: Lanes) -> str:
    return _listed("lane", [f"{strip.name} ({strip.direction}, {strip.width_m:g} m)" for strip in lanes.strips])


def _listed(what: str, rows: Sequence[str]) -> str:
    more = ", …" if len(rows) > _NAMED else ""
    return counted(len(rows), what) + (": " if rows else "") + ", ".join(rows[:_NAMED]) + more


_TEXTS: dict[str, Callable[[Any], str]] = {
    "objects": _objects,
    "odometry": _odometry,
    "route": _route,
    "signals": _signals,
    "lanes": _lanes,
}


def command_ranges(commands: Iterable[Control | None]) -> Iterator[Finding]:
    """Yield the range of each number that is commanded."""
    known = [command for command in commands if command is not None]
    for name in [column.name for column in fields(Control) if column.name != "stamp_ns"]:
        values = [value for command in known if math.isfinite(value := getattr(command, name))]
        if values:
            yield _range(name, min(values), max(values))


def _range(name: str, least: float, most: float) -> Finding:
    title, text = f"commands: {name}", f"{least:.3g} to {most:.3g}"
    if name == "steering_rad" and max(-least, most) > _WHEELS_RAD:
        return Finding(
            "warn", title, text, "it is the angle of the road wheels in radians, to the left positive: not degrees"
        )
    if name == "speed_mps" and most > _ROAD_MPS:
        return Finding("warn", title, text, "metres a second are expected, not kilometres an hour")
    return Finding("ok", title, text)


def _drive(played: PlayedEpisode) -> Finding:
    """Return how far it came, and why it ended there."""
    driven = played.driven
    way_m, took_s = float(driven.way_m[-1]), float(driven.trace.time_s[-1])
    mean_ms = sum(played.answer_ms) / max(len(played.answer_ms), 1)
    hit = f" with {', '.join(driven.hit)}" if driven.hit else ""
    text = f"{way_m:.0f} m in {took_s:.1f} s of the world, ended by {played.ended}{hit}; {mean_ms:.2g} ms a call"
    if played.ended == BAD_COMMAND:
        return Finding("error", "drives", f"{text}: {played.reason}", "see docs/driver.md, Commands")
    if played.ended == SILENT:
        return Finding("error", "drives", f"{text}: {played.silence}", "return a Control at every call")
    if driven.hit:
        return Finding("warn", "drives", text, "look where objects are: x ahead, y left")
    if played.ended == "off_road":
        return Finding("warn", "drives", text, "poses of the route are in map: odometry.seen_from(route.pose[:, :2])")
    if way_m < _STANDS_M:
        return Finding("warn", "drives", text, "command a speed_mps or an acceleration_mps2 above 0")
    return Finding("ok", "drives", text)


def _repeatability(check: DriverCheck) -> Finding:
    """Return whether the same world makes it drive the same again, on which every control pair depends."""
    one, other = check.first.commands, check.second.commands
    apart = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if repr(a) != repr(b)), None)
    if apart is None and len(one) == len(other):
        return Finding("ok", "drives again", "the same commands")
    at_s = check.period_s * (min(len(one), len(other)) if apart is None else apart)
    fix = "controls will be violated: draw no random numbers without a seed, and keep what is remembered in a class"
    return Finding("warn", "drives again", f"other commands from {at_s:.1f} s on", fix)
