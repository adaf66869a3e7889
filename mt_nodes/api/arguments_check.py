# SPDX-License-Identifier: Apache-2.0
"""Arguments of the Python interface, checked: who mixes two up is told at once, not by a later error."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from mt_nodes.base.errors import UsageError

AnyPath = str | os.PathLike[str]


def texts_of(given: Any, name: str) -> tuple[str, ...]:
    """Return one text or path, or several, as texts.

    Raises:
        UsageError: it is something else.
    """
    rows = (given,) if isinstance(given, (str, os.PathLike)) else given
    if not isinstance(rows, Iterable) or isinstance(rows, Mapping):
        raise UsageError(f"{name}: got {_shown(given)}, expected a text or path, or a list of several")
    several = tuple(rows)
    if wrong := [row for row in several if not isinstance(row, (str, os.PathLike))]:
        raise UsageError(f"{name}: got {_shown(wrong[0])} among them, expected texts or paths")
    return tuple(str(os.fspath(row)) for row in several)


def mapping_of(given: Any, name: str) -> dict[str, Any]:
    """Return a mapping, an empty one for None.

    Raises:
        UsageError: it is something else.
    """
    if given is not None and not isinstance(given, Mapping):
        raise UsageError(f"{name}: got {_shown(given)}, expected a dict")
    return dict(given or {})


def whole_number_of(given: Any, name: str) -> int:
    """Return a whole number.

    Raises:
        UsageError: it is something else.
    """
    if isinstance(given, bool) or not hasattr(given, "__index__"):
        raise UsageError(f"{name}: got {_shown(given)}, expected a whole number")
    return int(given)


def _shown(value: Any) -> str:
    return f"{type(value).__name__} {value!r:.80}"
