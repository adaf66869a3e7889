# SPDX-License-Identifier: Apache-2.0
"""Open3D, imported when the first ray is cast, and without what it draws with in a browser."""

from __future__ import annotations

import importlib
import sys
from functools import lru_cache
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

#: Open3D imports this for a picture in a browser alone; with what it needs itself, it is two thirds of the import.
_DRAWS = "dash"


@lru_cache
def open3d() -> Any:
    """Import Open3D, or return what was imported; an import of it before or after this one gets the same module."""
    if "open3d" in sys.modules or _DRAWS in sys.modules:
        return importlib.import_module("open3d")
    sys.modules[_DRAWS] = _Later(_DRAWS)
    try:
        return importlib.import_module("open3d")
    finally:
        del sys.modules[_DRAWS]


def tensor(array: npt.NDArray[Any]) -> Any:
    """Return an array as Open3D takes it; its memory is shared where the array has no gaps."""
    return open3d().core.Tensor.from_numpy(np.ascontiguousarray(array))


class _Later(ModuleType):
    """Stands for a module, and for what is imported from it: the real one is imported by whoever first uses it."""

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
