# SPDX-License-Identifier: Apache-2.0
"""Where results go: a directory for each run, and a link to the newest."""

from __future__ import annotations

import datetime
import os
from pathlib import Path

from mt_nodes.errors import InfrastructureError, UsageError

DEFAULT_ROOT = Path("mt_results")


def new_directory(out: str | None, now: datetime.datetime | None = None) -> Path:
    """Make the directory of a new run, and the link ``latest`` beside it where the place is the default one.

    Raises:
        UsageError: it holds the results of another run.
        InfrastructureError: it cannot be made.
    """
    stamp = (now or datetime.datetime.now()).strftime("%Y%m%d_%H%M%S")
    path = Path(out) if out else unused(DEFAULT_ROOT / stamp)
    if (path / "result.jsonl").exists():
        raise UsageError(f"--out {path}: holds the results of a run already; choose another directory")
    try:
        path.mkdir(parents=True, exist_ok=True)
        (path / "evidence").mkdir(exist_ok=True)
        if not out:
            _link_latest(path)
    except OSError as error:
        raise InfrastructureError(f"cannot write results to {path}: {error.strerror}; choose another --out") from error
    return path


def unused(path: Path) -> Path:
    """Return the path, or if it exists the first of ``<path>_2``, ``<path>_3``… that does not."""
    candidates = (path, *(path.with_name(f"{path.name}_{i}") for i in range(2, 1000)))
    return next(c for c in candidates if not c.exists())


def _link_latest(path: Path) -> None:
    link = path.parent / "latest"
    fresh = path.parent / f".latest-{os.getpid()}"
    fresh.symlink_to(path.name)
    fresh.replace(link)
