# SPDX-License-Identifier: Apache-2.0
"""Which results directories one directory stands for: a run's itself, a campaign's cells, what a search found."""

from __future__ import annotations

from pathlib import Path

from mt_nodes.base.errors import UsageError

#: Of a campaign: where the results of its cells lie. Of a search: where those of what it found do.
CELLS, CONFIRMED = "cells", "confirmed"
_JOURNAL = "result.jsonl"


def cells_of(directory: Path) -> dict[str, Path]:
    """Return the results directories of a campaign's cells by name; none where it has none, or is no campaign."""
    return {place.name: place for place in sorted((directory / CELLS).glob("*")) if (place / _JOURNAL).is_file()}


def results_of(directory: Path) -> list[Path]:
    """Return the results directories that one stands for: itself, a campaign's cells, or what a search found.

    Raises UsageError: there is none.
    """
    for places in ([directory], list(cells_of(directory).values()), [directory / CONFIRMED]):
        if found := [place for place in places if (place / _JOURNAL).is_file()]:
            return found
    raise UsageError(f"{directory}: no {_JOURNAL}; expected a results directory of a run, or one of a campaign")
