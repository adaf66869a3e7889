# SPDX-License-Identifier: Apache-2.0
"""Namespace, remappings, time, parameters and log level of a launch file, as ROS arguments of what it starts.

What encloses the launch file counts, too: ``PushRosNamespace`` and ``SetRemap`` of ``launch_ros`` leave what they set
among the configurations of the launch, where ``Node`` actions find it. Other processes find it here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mt_nodes.base.errors import UsageError, suggest

LOG_LEVELS = ("debug", "info", "warn", "error", "fatal")
_NAMESPACE = re.compile(r"/?[A-Za-z_]\w*(/[A-Za-z_]\w*)*")


def place_of(texts: Mapping[str, str], configurations: Mapping[str, Any]) -> str:
    """Return the whole namespace, with a slash before and none behind; empty for the root.

    Raises UsageError: what was typed is no name.
    """
    own, around = namespace(texts), str(configurations.get("ros_namespace") or "")
    parts = [own] if own.startswith("/") else [around, own]
    return "".join(f"/{part.strip('/')}" for part in parts if part.strip("/"))


def remappings(texts: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the remappings that were typed. Raises UsageError: one has another form."""
    pairs = [word.split(":=") for word in texts["remap"].split()]
    for pair in pairs:
        if len(pair) != 2 or not all(pair):
            raise UsageError(f"remap: got '{':='.join(pair)}', expected FROM:=TO such as mt/verdicts:=verdicts")
    return [(old, new) for old, new in pairs]


def namespace(texts: Mapping[str, str]) -> str:
    """Return the namespace that was typed, empty for none. Raises UsageError: it is no name."""
    name = texts["namespace"]
    if name and not _NAMESPACE.fullmatch(name):
        raise UsageError(f"namespace: got '{name}', expected a name such as bench or fleet/car_1")
    return name


def use_sim_time(texts: Mapping[str, str]) -> bool:
    """Return whether nodes take the time from ``/clock``. Raises UsageError: neither true nor false was typed."""
    if texts["use_sim_time"].lower() not in ("true", "false"):
        raise UsageError(f"use_sim_time: got '{texts['use_sim_time']}', expected true or false")
    return texts["use_sim_time"].lower() == "true"


def log_words(texts: Mapping[str, str]) -> list[str]:
    """Return the ROS arguments of the log level. Raises UsageError: there is no such level."""
    level = texts["log_level"]
    if level not in LOG_LEVELS:
        raise UsageError(f"log_level: got '{level}'{suggest(level, LOG_LEVELS)}")
    return ["--log-level", level]


def params_file(texts: Mapping[str, str]) -> list[str]:
    """Return the file of parameters that was typed, if any. Raises UsageError: there is no such file."""
    file = texts.get("params_file", "")
    if file and not Path(file).is_file():
        raise UsageError(f"params_file: no file {file}")
    return [file] if file else []


def ros_words(texts: Mapping[str, str], configurations: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what is put behind the command of a process that is no ``Node`` action.

    ``texts``: arguments of the launch file. ``configurations``: of the launch, with what its surroundings set.
    Raises UsageError: an argument is not what it must be.
    """
    place = place_of(texts, configurations)
    rules = [f"__ns:={place}"] if place else []
    rules += [f"{old}:={new}" for old, new in (*configurations.get("ros_remaps", ()), *remappings(texts))]
    files = [word for file in params_file(texts) for word in ("--params-file", file)]
    clock = ["-p", "use_sim_time:=true"] if use_sim_time(texts) else []
    words = [*(word for rule in rules for word in ("-r", rule)), *files, *clock, *log_words(texts)]
    return ("--ros-args", *words)
