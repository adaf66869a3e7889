# SPDX-License-Identifier: Apache-2.0
"""A configuration file of ``mt live``, with what was typed in place of what it says."""

from __future__ import annotations

import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_origin

from mt_nodes.base.errors import UsageError
from mt_nodes.base.yaml_files import read_mapping
from mt_nodes.runs.live.config import PARTS, LiveConfig, live_config
from mt_nodes.runs.watch.watch_request import WatchRequest, WatchSettings, live_request, watch_settings


def watch_configured(file: Path, typed: Mapping[str, Any]) -> WatchRequest:
    """Read a configuration file for a run that only watches: its part ``watch``, and what else such a run takes.

    Raises UsageError: as :func:`configured`.
    """
    part = "watch."
    rows = _split(file)[1]
    own = {name.removeprefix(part): value for name, value in typed.items() if name.startswith(part)}
    others = {name: value for name, value in typed.items() if not name.startswith(part)}
    hints = typing.get_type_hints(WatchSettings)
    rows |= {name: _several(value, hints.get(name)) for name, value in own.items()}
    return live_request(configured(file, others), watch_settings(rows, "--set watch" if own else f"{file}: watch"))


def _split(file: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the rows of a file, and those of its part ``watch``, which a run that tests checks and leaves alone."""
    rows = read_mapping(file)
    part = rows.pop("watch", None)
    watch_settings(part, f"{file}: watch")
    return rows, dict(part or {})


def configured(file: Path, typed: Mapping[str, Any], seed: int | None = None) -> LiveConfig:
    """Read a configuration file and put what was typed into it.

    Raises UsageError: naming file or option, key, what was got and what was expected.

    Args:
        file: the YAML file.
        typed: values by name, those of a part as ``segments.test_bundles``; lists also as texts with commas.
        seed: what every draw depends on; None: the file's.
    """
    rows, _ = _split(file)
    live_config(rows, str(file))  # what is wrong in the file is told as the file's
    hints = typing.get_type_hints(LiveConfig)
    for name, value in {**typed, **({} if seed is None else {"seed": seed})}.items():
        part, dot, key = name.partition(".")
        if dot and part in PARTS:
            rows[part] = {**(rows.get(part) or {}), key: _several(value, PART_HINTS[part].get(key))}
        elif dot or part in PARTS:
            raise UsageError(f"--set: got {name}, expected a key such as segments.test_bundles or mode")
        else:
            rows[name] = _several(value, hints.get(name))
    return live_config(rows, "--set" if typed else str(file))


#: Types of the keys of each part.
PART_HINTS = {part: typing.get_type_hints(typing.get_type_hints(LiveConfig)[part]) for part in PARTS}


def _several(value: Any, hint: Any) -> Any:
    """Take a text with commas apart where a list of texts is expected."""
    if get_origin(hint) is tuple and isinstance(value, str):
        return [word.strip() for word in value.split(",")]
    return value
