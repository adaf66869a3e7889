# SPDX-License-Identifier: Apache-2.0
"""Finds the files that ship with the package: in a source checkout, a wheel, or a colcon install."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from functools import lru_cache
from pathlib import Path

from mt_nodes.base.errors import UsageError, suggest

#: An error lists up to so many names; beyond that it says how to list them.
_SCREENFUL = 20


@lru_cache
def config_dir() -> Path:
    """Return the directory that holds relations, stacks, regions and profiles."""
    module = Path(__file__).resolve()
    prefixes = [Path(p) for p in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if p]
    candidates = [
        module.parents[2] / "config",
        *(p / "share" / "mt_nodes" / "config" for p in (*module.parents[3:7], Path(sys.prefix), *prefixes)),
    ]
    for candidate in candidates:
        if (candidate / "relations").is_dir():
            return candidate
    raise UsageError(
        f"the shipped config directory is missing; looked in {', '.join(map(str, candidates))}; reinstall mt_nodes"
    )


def shipped(folder: str, suffix: str = ".yaml") -> dict[str, Path]:
    """Return the files of ``config/<folder>`` with a suffix, by stem."""
    return {name: config_dir() / folder / f"{name}{suffix}" for name in _stems(config_dir() / folder, suffix)}


def find(folder: str, name: str, suffixes: Sequence[str] = (".yaml", ".yml"), also: str = "") -> Path:
    """Return a shipped file by name, or the user's own if ``name`` is a path. Raises UsageError: neither exists.

    ``folder``: folder of ``config``. ``name``: name of a file in it, or a path. ``suffixes``: allowed for paths;
    shipped files have the first one. ``also``: another folder of ``config`` that is searched.
    """
    path = Path(name)
    if path.suffix in suffixes:
        if path.is_file():
            return path
        raise UsageError(f"no file {path}")
    places = [config_dir() / one for one in (also, folder) if one]
    for place in places:
        if name in _stems(place, suffixes[0]):
            return place / f"{name}{suffixes[0]}"
    names = [known for place in places for known in _stems(place, suffixes[0])]
    listed = f"`mt list {folder}` shows all {len(names)}" if len(names) > _SCREENFUL else ""
    hint = suggest(name, names, listed)
    raise UsageError(f"no {folder.rstrip('s')} '{name}'{hint} (or give the path of a {suffixes[0]} file)")


@lru_cache
def _stems(place: Path, suffix: str) -> tuple[str, ...]:
    """Return the stems of a directory's files with a suffix, sorted; cached, because shipped files do not change."""
    with os.scandir(place) if place.is_dir() else nullcontext(()) as entries:
        return tuple(sorted(entry.name.removesuffix(suffix) for entry in entries if entry.name.endswith(suffix)))
