# SPDX-License-Identifier: Apache-2.0
"""Trace files ``episodes/*.npz``, and their SHA-256."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from mt_nodes.base.errors import InfrastructureError
from mt_nodes.world.drive.trace import Collision, Trace

FOLDER = "episodes"
_COLUMNS = ("time_s", "ego", "actors", "commands", "answered")


def trace_file(results_dir: Path, name: str) -> Path:
    """Return the path of an episode's trace; the file may be missing."""
    return results_dir / FOLDER / f"{name}.npz"


def save_trace(path: Path, trace: Trace) -> None:
    """Write a trace; equal traces give equal files."""
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, about=np.array(_about(trace)), **_columns(trace))


def load_trace(path: Path) -> Trace:
    """Read a file of :func:`save_trace`. Raises InfrastructureError: it is missing or damaged."""
    try:
        with np.load(path, allow_pickle=False) as file:
            about, columns = json.loads(str(file["about"])), {name: file[name] for name in _COLUMNS}
        collisions = tuple(Collision(**fields) for fields in about["collisions"])
        return Trace(
            scenario=about["scenario"],
            names=tuple(about["names"]),
            collisions=collisions,
            ended=about["ended"],
            **columns,
        )
    # For a damaged archive zipfile, zlib and the array header's parser raise errors of many kinds.
    except Exception as error:
        raise InfrastructureError(f"{path}: cannot be read: {error}; expected the trace of an episode") from error


def sha256_of_trace(trace: Trace) -> str:
    """Return the SHA-256 (hex) of a trace's content."""
    digest = hashlib.sha256(_about(trace).encode())
    for name, column in _columns(trace).items():
        digest.update(f"{name}{column.shape}{column.dtype.str}".encode())
        digest.update(column.tobytes())
    return digest.hexdigest()


def _about(trace: Trace) -> str:
    about: dict[str, Any] = {"scenario": trace.scenario, "names": trace.names, "ended": trace.ended}
    return json.dumps({**about, "collisions": [asdict(collision) for collision in trace.collisions]})


def _columns(trace: Trace) -> dict[str, Any]:
    types = dict.fromkeys(_COLUMNS, "<f8") | {"answered": "?"}
    return {name: np.ascontiguousarray(getattr(trace, name), dtype=types[name]) for name in _COLUMNS}
