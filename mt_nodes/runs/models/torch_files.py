# SPDX-License-Identifier: Apache-2.0
"""Reads and writes what ``torch.save`` makes; import it only where PyTorch is wanted."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from mt_nodes.base.directories import cannot_write
from mt_nodes.base.errors import UsageError


def read_torch(path: Path) -> dict[str, Any]:
    """Return the mapping that ``torch.save`` wrote. Raises UsageError: it cannot be read, or holds something else."""
    try:
        data = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError as error:
        raise UsageError(f"no file {path}; `mt models train` makes such files") from error
    except Exception as error:
        what = str(error).strip().splitlines() or [type(error).__name__]
        raise UsageError(f"{path}: no file of weights can be read from it: {what[0]:.200}") from error
    if not isinstance(data, Mapping):
        raise UsageError(f"{path}: got a {type(data).__name__}, expected a mapping that torch.save wrote")
    return dict(data)


def write_torch(path: Path, data: Mapping[str, Any]) -> None:
    """Write a mapping of plain values and tensors, whole or not at all.

    Raises InfrastructureError: it cannot be written.
    """
    fresh = path.with_name(f".{path.name}-{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        torch.save(dict(data), fresh)
        fresh.replace(path)
    except (OSError, RuntimeError) as error:  # PyTorch tells of a full disk by the latter
        with suppress(OSError):
            fresh.unlink()
        cause = error if isinstance(error, OSError) else OSError(None, str(error).splitlines()[0])
        raise cannot_write(path.parent, cause) from error
