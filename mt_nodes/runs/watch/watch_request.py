# SPDX-License-Identifier: Apache-2.0
"""What a run that only watches is asked for, on the command line and in a configuration file."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mt_nodes.base import plugins
from mt_nodes.base.errors import UsageError, suggest
from mt_nodes.base.params import build, param, plain
from mt_nodes.base.plain_data import PlainData
from mt_nodes.base.yaml_files import read_mapping
from mt_nodes.relations.stream_checks.base import StreamCheck
from mt_nodes.runs.live.config import NOT_GIVEN, LiveConfig
from mt_nodes.stacks.stack import Stack

#: Where outputs come from: topics of a live system, a bag that has them, or the stack's callable, called here.
SOURCES = ("live", "recorded", "inprocess")
SECOND_CAMERA = "second camera"


def listed(value: Any, where: str) -> tuple[tuple[str, dict[str, Any]], ...]:
    """Read a list of names, each alone or with parameters. Raises UsageError."""
    rows: Sequence[Any] = value.split(",") if isinstance(value, str) else value
    if not isinstance(rows, (list, tuple)):
        raise UsageError(f"{where}: got {value!r}, expected a list of names, or of {{name: {{parameter: value}}}}")
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        if isinstance(row, Mapping) and len(row) == 1:
            name, parameters = next(iter(row.items()))
        else:  # a pair, as it is kept in run.json
            name, parameters = row if isinstance(row, (list, tuple)) and len(row) == 2 else (row, None)
        if not isinstance(name, str) or name.strip() in found:
            raise UsageError(f"{where}: got {row!r}, expected a name once, or {{name: {{parameter: value}}}}")
        found[name.strip()] = dict(parameters or {})
    return tuple(found.items())


@dataclass(frozen=True)
class WatchSettings(PlainData):
    """The part ``watch`` of a configuration file."""

    relations: tuple[Any, ...] = param(
        (),
        convert=listed,
        help="checks of one stream, each a name or {name: {parameter: value}}; empty: all that fit the stack",
    )
    cameras: dict[str, str] = param({}, help="further topics of boxes in images: {topic: message type}")
    tolerated_per_h: dict[str, float] = param(
        {}, help="violations an hour that a good stack may show: {relation: rate}; without it none is tolerated"
    )
    min_frames: int = param(20, low=1, high=10_000_000, help="fewer frames with something to watch are INCONCLUSIVE")
    event_gap_s: float = param(
        2.0, low=0.0, high=600.0, unit="s", help="breaches of one subject are one violation until so long without any"
    )
    weather: str = param("", help="weather of the run, such as rain; empty: unknown")
    road: str = param("", help="kind of road, such as motorway; empty: unknown")
    light: str = param(
        "", help="light of the run, such as night; empty: by the brightness of the picture, else unknown"
    )
    ego_motion: str = param(
        "published",
        choices=("published", "clouds", "off"),
        help="published: /tf or odometry; clouds: also KISS-ICP, which costs 50 ms a cloud",
    )
    speed_edges_mps: tuple[float, ...] = param((0.5, 8.4, 14.0, 28.0), help="borders of cells of the ego's speed")
    range_edges_m: tuple[float, ...] = param((10.0, 20.0, 40.0), help="borders of cells of distance")
    record_every_s: float = param(60.0, low=1.0, high=3600.0, unit="s", help="times in the journal are so far apart")

    def __post_init__(self) -> None:
        for name in ("speed_edges_mps", "range_edges_m"):
            edges = getattr(self, name)
            if list(edges) != sorted(set(edges)):
                raise UsageError(f"{name}: got {list(edges)}, expected rising numbers")
        if bad := [f"{name}: {rate}" for name, rate in self.tolerated_per_h.items() if not float(rate) > 0.0]:
            raise UsageError(f"tolerated_per_h: got {bad[0]}, expected a rate above 0")


@dataclass(frozen=True)
class WatchRequest(PlainData):
    """Everything that a run depends on, kept in ``run.json``."""

    stack: str
    source: str = "live"
    bags: tuple[str, ...] = ()
    topics: Mapping[str, str] = param({})
    limit: int | None = None
    faults: tuple[str, ...] = ()
    live_domain: int = NOT_GIVEN
    transforms: str = ""
    plugins: tuple[str, ...] = ()
    window_s: float = 0.1
    gap_s: float = 2.0
    duration_s: float = 0.0
    watch: WatchSettings = WatchSettings()

    def as_plain(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        return {field.name: plain(getattr(self, field.name)) for field in dataclasses.fields(self)}


#: Keys of the configuration of ``mt live`` that a run which only watches takes, too.
SHARED = ("stack", "live_domain", "transforms", "plugins", "window_s", "gap_s", "duration_s")


def watch_settings(given: Any, where: str) -> WatchSettings:
    """Check the part ``watch`` of a configuration. Raises UsageError."""
    return build(WatchSettings, given, where)


def live_request(config: LiveConfig, settings: WatchSettings) -> WatchRequest:
    """Return what a configuration of ``mt live`` asks a run for that only watches."""
    return WatchRequest(watch=settings, limit=config.bundles or None, **{n: getattr(config, n) for n in SHARED})


def named_checks(settings: WatchSettings, stack: Stack) -> tuple[dict[str, StreamCheck], dict[str, str]]:
    """Return the checks by name, and those that were left out because they do not fit the stack, with the reason.

    Raises UsageError: one that is named does not fit, or none does.
    """
    wanted = settings.relations or tuple((name, {}) for name in plugins.catalogue("stream_checks"))
    checks: dict[str, StreamCheck] = {}
    left_out: dict[str, str] = {}
    for name, parameters in wanted:
        cls = plugins.find("stream_checks", name, "watch.relations")
        reason = misfit(cls, stack, settings)
        if reason and settings.relations:
            raise UsageError(f"watch.relations: {name} needs {reason}")
        if reason:
            left_out[name] = f"needs {reason}"
        else:
            checks[name] = build(cls, parameters, f"watch.relations.{name}")
    if not checks:
        raise UsageError(f"watch: no relation fits stack '{stack.name}': {'; '.join(map(': '.join, left_out.items()))}")
    if unknown := sorted(set(settings.tolerated_per_h) - set(checks)):
        raise UsageError(f"watch.tolerated_per_h: {unknown[0]} is not watched{suggest(unknown[0], checks)}")
    return checks, left_out


def misfit(cls: type[StreamCheck], stack: Stack, settings: WatchSettings) -> str:
    """Return what a check needs that there is not; empty if it can be watched."""
    there = {*stack.outputs, *stack.inputs, *((SECOND_CAMERA,) if _cameras(stack, settings) > 1 else ())}
    return next((f"{' or '.join(row)} of the stack" for row in cls.needs if not there & set(row)), "")


def _cameras(stack: Stack, settings: WatchSettings) -> int:
    return int("boxes" in stack.outputs) + len(settings.cameras)


def bag_request(
    config: Path | None, *, bags: Sequence[str], inprocess: bool, relations: Sequence[str] | None, **given: Any
) -> WatchRequest:
    """Return what the command line asks for; Raises UsageError: a setting is none.

    ``config``: file with a part ``watch``, such as one of ``mt live``. ``relations``: names, in place of the file's.
    """
    rows = dict(read_mapping(config).get("watch") or {}) if config is not None else {}
    if relations:
        known = {str(name): row for row in rows.get("relations", ()) if isinstance(row, dict) for name in row}
        rows["relations"] = [known.get(name, name) for name in relations]
    settings = watch_settings(rows, f"{config}: watch" if config is not None else "watch")
    return WatchRequest(source="inprocess" if inprocess else "recorded", bags=tuple(bags), watch=settings, **given)
