# SPDX-License-Identifier: Apache-2.0
"""Finds the files that ship with the package: beside the source, in a wheel, or in a colcon install."""

from __future__ import annotations

import os
import sys
from functools import lru_cache
from pathlib import Path

from mt_nodes.errors import UsageError, suggest


@lru_cache
def config_dir() -> Path:
    """Return the directory that holds relations, stacks, regions and profiles."""
    here = Path(__file__).resolve()
    prefixes = [Path(p) for p in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if p]
    candidates = [
        here.parents[1] / "config",
        *(p / "share" / "mt_nodes" / "config" for p in (*here.parents[2:6], Path(sys.prefix), *prefixes)),
    ]
    for candidate in candidates:
        if (candidate / "relations").is_dir():
            return candidate
    raise UsageError(
        f"the shipped config directory is missing; looked in {', '.join(map(str, candidates))}; reinstall mt_nodes"
    )


def shipped(folder: str) -> dict[str, Path]:
    """Return the YAML files of ``config/<folder>`` by stem."""
    return {p.stem: p for p in sorted((config_dir() / folder).glob("*.yaml"))}


def find(folder: str, name: str) -> Path:
    """Return a shipped file by name, or the user's own when ``name`` is a path to one.

    Raises:
        UsageError: neither exists.
    """
    path = Path(name)
    if path.suffix in (".yaml", ".yml"):
        if path.is_file():
            return path
        raise UsageError(f"no file {path}")
    known = shipped(folder)
    if name not in known:
        raise UsageError(f"no {folder.rstrip('s')} '{name}'{suggest(name, known)} (or give the path of a .yaml file)")
    return known[name]
