# SPDX-License-Identifier: Apache-2.0
"""Tables of Apache Arrow, Feather and Parquet, through PyArrow."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from mt_nodes.base.errors import InfrastructureError, UsageError, needs_extra


def arrow(module: str, dataset: str) -> ModuleType:
    """Return a module of PyArrow. Raises UsageError: it is not installed."""
    import importlib

    with needs_extra("datasets", f"{dataset}: needs PyArrow; type"):
        return importlib.import_module(f"pyarrow.{module}")


def read_feather(path: Path, columns: Sequence[str], dataset: str) -> dict[str, Any]:
    """Return columns (N,) of a file of Feather as arrays of NumPy, by name.

    Raises UsageError: there is no such file, or PyArrow is missing. InfrastructureError: it is damaged, or lacks a
    column.
    """
    feather = arrow("feather", dataset)
    if not path.is_file():
        raise UsageError(f"no {path}; expected a table with {', '.join(columns)}")
    try:
        # One thread: several files are read side by side already.
        table = feather.read_table(str(path), use_threads=False, memory_map=False)
    except (OSError, ValueError) as error:
        raise InfrastructureError(f"{path}: cannot be read as Feather: {error}") from error
    if missing := [name for name in columns if name not in table.column_names]:
        raise InfrastructureError(
            f"{path}: has columns {', '.join(table.column_names)}, expected also {', '.join(missing)}"
        )
    return {name: table[name].to_numpy() for name in columns}
