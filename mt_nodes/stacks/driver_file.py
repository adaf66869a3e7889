# SPDX-License-Identifier: Apache-2.0
"""A Python file as a stack: a driver for the closed loop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mt_nodes.base.errors import UsageError
from mt_nodes.data.stack_topics import WORLD_TYPES


def driver_file(name: str) -> tuple[Path, dict[str, Any]] | None:
    """Return the stack of a Python file, ``file.py`` or ``file.py:name``: a driver for the closed loop.

    Raises UsageError: there is no such file, or its name is no module name.
    """
    file, _, attribute = name.partition(":")
    path = Path(file)
    if path.suffix != ".py":
        return None
    if not path.is_file():
        raise UsageError(f"no file {path}")
    if not path.stem.isidentifier():
        raise UsageError(
            f"{path}: got '{path.stem}', expected letters, digits and _, because it is imported as a module"
        )
    module = {"callable": f"{path.stem}:{attribute or 'drive'}", "directory": str(path.parent.resolve())}
    return path, {**module, "inputs": dict.fromkeys(WORLD_TYPES), "outputs": {"control": None}}
