# SPDX-License-Identifier: Apache-2.0
"""Finds the files that ship with the package: beside the source, in a wheel, or in a colcon install."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from functools import lru_cache
from pathlib import Path

from mt_nodes.base.errors import UsageError, suggest

#: So many names are told in an error; of more, how to have them listed.
_SCREENFUL = 20


@lru_cache
def config_dir() -> Path:
    """Return the directory that holds relations, stacks, regions and profiles."""
    here = Path(__file__).resolve()
    prefixes = [Path(p) for p in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if p]
    candidates = [
        here.parents[2] / "config",
        *(p / "share" / "mt_nodes" / "config" for p in (*here.parents[3:7], Path(sys.prefix), *prefixes)),
    ]
    for candidate in candidates:
        if (candidate / "relations").is_dir():
            return candidate
    raise UsageError(
        f"the shipped config directory is missing; looked in {', '.join(map(str, candidates))}; reinstall mt_nodes"
    )


def shipped(folder: str, suffix: str = ".yaml") -> dict[str, Path]:
    """Return the files of ``config/<folder>`` that end so, by stem."""
    return {name: config_dir() / folder / f"{name}{suffix}" for name in _stems(config_dir() / folder, suffix)}


def find(folder: str, name: str, suffixes: Sequence[str] = (".yaml", ".yml"), also: str = "") -> Path:
    """Return a shipped file by name, or the user's own when ``name`` is a path to one.

    Args:
        folder: of ``config``. name: of a file there, or a path. suffixes: of paths; shipped files have the first.
        also: another folder of ``config`` with files of the kind, if there is one.

    Raises:
        UsageError: neither exists.
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
    """Names of the files of a directory that end so, without that, sorted; what is shipped stays as it is."""
    with os.scandir(place) if place.is_dir() else nullcontext(()) as entries:
        return tuple(sorted(entry.name.removesuffix(suffix) for entry in entries if entry.name.endswith(suffix)))
