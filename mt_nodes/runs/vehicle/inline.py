# SPDX-License-Identifier: Apache-2.0
"""What ``mt inline --config FILE`` is told: topics that a relay stands in, and what must hold before it changes any."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import build, param
from mt_nodes.base.plain_data import PlainData
from mt_nodes.base.safety_settings import Caps
from mt_nodes.base.yaml_files import read_mapping
from mt_nodes.runs.vehicle.interlock import SafetySignal, checked


@dataclass(frozen=True)
class Between:
    """A topic that comes under another name, so that a relay alone publishes the name that the stack listens to."""

    raw: str = param("", help="topic that the sensor publishes now, such as /lidar/points_raw")
    topic: str = param("", help="topic that the stack subscribes to, such as /lidar/points")


def _list_of(cls: type) -> Any:
    def convert(value: Any, where: str) -> tuple[Any, ...]:
        if not isinstance(value, (list, tuple)):
            raise UsageError(f"{where}: got {value!r}, expected a list")
        return tuple(v if isinstance(v, cls) else build(cls, v, f"{where}[{i}]") for i, v in enumerate(value))

    return convert


def _one(cls: type) -> Any:
    return lambda value, where: value if isinstance(value, cls) else build(cls, value, where)


@dataclass(frozen=True)
class InlineConfig(PlainData):
    """One configuration file."""

    topics: tuple[Between, ...] = param((), convert=_list_of(Between), help="raw and topic of each; leading one first")
    relation: str = param("noise_outside_roi_1000", help="whose mutations are applied; name or .yaml file")
    permits: tuple[SafetySignal, ...] = param(
        (), convert=_list_of(SafetySignal), help="all must hold: that the vehicle stands still, or is not engaged"
    )
    dead_man: SafetySignal = param(
        SafetySignal(), convert=_one(SafetySignal), help="the switch that the operator holds"
    )
    hold_s: float = param(
        0.03, low=0.001, high=0.5, unit="s", help="how long an original waits for what may take its place"
    )
    frozen_s: float = param(
        0.3, low=0.1, high=10.0, unit="s", help="a relay without a sign of life for so long is killed and replaced"
    )
    domain: int = param(-1, low=-1, high=232, help="ROS domain of the vehicle; -1: ROS_DOMAIN_ID")
    depth: int = param(5, low=1, high=1000, help="history depth of the topics; a remote depth cannot be seen")
    sync_s: float = param(0.02, low=0.0, high=1.0, unit="s", help="how far apart the messages of one instant may be")
    seed: int = param(0, low=0, high=2**31 - 1, help="what every draw depends on")
    transforms: str = param("", help="YAML file of transforms, where live /tf does not give them")
    plugins: tuple[str, ...] = param((), help="directories with your own plugins")
    caps: Caps = param(Caps(), convert=_one(Caps), help="what the mutator may take of the computer")


def inline_config(given: Mapping[str, Any], where: str) -> InlineConfig:
    """Check a configuration. Raises UsageError: naming the key, what was got and what was expected."""
    config: InlineConfig = build(InlineConfig, given, where)
    _check_topics(config.topics, where)
    if not config.permits:
        raise UsageError(f"{where}: permits: got none, expected a signal of standstill or of disengagement")
    for number, signal in enumerate(config.permits):
        checked(signal, f"{where}: permits[{number}]")
    checked(config.dead_man, f"{where}: dead_man")
    if config.dead_man in config.permits:
        raise UsageError(f"{where}: dead_man: got one of the permits, expected a switch of its own")
    return config


def _check_topics(topics: Sequence[Between], where: str) -> None:
    if not topics:
        raise UsageError(f"{where}: topics: got none, expected at least one raw and topic")
    names = [name for row in topics for name in (row.raw, row.topic)]
    for name in names:
        if not name.startswith("/") or names.count(name) > 1:
            raise UsageError(f"{where}: topics: got '{name}', expected whole names that begin with /, each once")


def load_inline_config(path: Path) -> InlineConfig:
    """Read a configuration file. Raises UsageError: naming file, key, what was got and what was expected."""
    return inline_config(read_mapping(path), str(path))
