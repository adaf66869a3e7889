# SPDX-License-Identifier: Apache-2.0
"""Imports Open3D when the first ray is cast, and without its browser visualisation."""

from __future__ import annotations

import importlib
import os
import sys
from functools import lru_cache
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

#: Open3D imports this for visualisation in a browser only; with its own dependencies, it is two thirds of the import.
_DRAWS = "dash"
#: In a notebook, Open3D would otherwise start a server for pictures, and say so at every import.
_NO_VIEWER = "OPEN3D_DISABLE_WEB_VISUALIZER"


@lru_cache
def open3d() -> Any:
    """Import Open3D, or return the module imported earlier; other imports of it get the same module."""
    if "open3d" in sys.modules or _DRAWS in sys.modules:
        return importlib.import_module("open3d")
    os.environ.setdefault(_NO_VIEWER, "true")
    sys.modules[_DRAWS] = _Later(_DRAWS)
    try:
        return importlib.import_module("open3d")
    finally:
        del sys.modules[_DRAWS]


def tensor(array: npt.NDArray[Any]) -> Any:
    """Return an array as an Open3D tensor; contiguous memory is shared."""
    return open3d().core.Tensor.from_numpy(np.ascontiguousarray(array))


class _Later(ModuleType):
    """Placeholder for a module and its contents, which imports the real one at first use."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Part(name)


class _Part:
    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real(), name)

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self._real()(*args, **named)

    def _real(self) -> Any:
        return getattr(importlib.import_module(_DRAWS), self._name)
