# SPDX-License-Identifier: Apache-2.0
"""Reads YAML that people wrote: unknown keys and wrong shapes are errors that say what to type."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from mt_nodes.errors import UsageError, suggest


def read_mapping(path: Path) -> dict[str, Any]:
    """Return the mapping at the top of a YAML file.

    Raises:
        UsageError: unreadable, not YAML, or not a mapping.
    """
    data = _read(path)
    if not isinstance(data, dict):
        raise UsageError(f"{path}: got {type(data).__name__}, expected a mapping of keys to values")
    return data


def read_list(path: Path) -> list[Any]:
    """Return the list at the top of a YAML file; an empty file is an empty one.

    Raises:
        UsageError: unreadable, not YAML, or not a list.
    """
    data = _read(path)
    if data is None:
        return []
    if not isinstance(data, list):
        raise UsageError(f"{path}: got {type(data).__name__}, expected a list (lines that begin with '- ')")
    return data


def refuse_unknown(data: Mapping[str, Any], known: Iterable[str], where: str) -> None:
    """Raise when a mapping has a key that nothing reads."""
    names = list(known)
    for key in data:
        if key not in names:
            raise UsageError(f"{where}: unknown key '{key}'{suggest(str(key), names)}")


def named_items(value: Any, where: str) -> list[tuple[str, dict[str, Any]]]:
    """Read ``[{name: {parameter: value}}, name]`` as (name, parameters) rows; a single mapping is a list of one."""
    rows = value if isinstance(value, list) else [value]
    items: list[tuple[str, dict[str, Any]]] = []
    for i, row in enumerate(rows):
        if isinstance(row, str):
            items.append((row, {}))
        elif isinstance(row, dict) and len(row) == 1:
            name, params = next(iter(row.items()))
            items.append((str(name), {} if params is None else params))
        else:
            raise UsageError(f"{where}[{i}]: got {row!r}, expected 'name' or '{{name: {{parameter: value}}}}'")
    return items


def _read(path: Path) -> Any:
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read as UTF-8 text: {error}") from error
    except yaml.YAMLError as error:
        raise UsageError(f"{path}: not valid YAML: {' '.join(str(error).split())}") from error
