# SPDX-License-Identifier: Apache-2.0
"""The assignment of rows to columns at the least cost, from SciPy's routine.

``scipy.optimize`` takes 0.3 s of processor time to import, which every process of a stack would pay at its start, and
every run before its first pair. The routine is an extension module that needs nothing else of it.
"""

from __future__ import annotations

from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from types import ModuleType
from typing import Any


def _routine() -> Any:
    """Return ``linear_sum_assignment``, with all of ``scipy.optimize`` only where it does not stand alone."""
    try:
        return _extension().linear_sum_assignment
    except (ImportError, AttributeError):
        from scipy.optimize import linear_sum_assignment

        return linear_sum_assignment


def _extension() -> ModuleType:
    scipy = find_spec("scipy")
    places = [str(Path(place) / "optimize") for place in (scipy and scipy.submodule_search_locations) or ()]
    spec = PathFinder.find_spec("_lsap", places)
    if spec is None or spec.loader is None:
        raise ImportError("no _lsap in scipy.optimize")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


linear_sum_assignment = _routine()
"""``scipy.optimize.linear_sum_assignment``: (cost (R, C), maximize) to the numbers of rows and of their columns."""
