# SPDX-License-Identifier: Apache-2.0
"""Viewers of the drives of a report."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mt_nodes.base.errors import InfrastructureError
from mt_nodes.data.verdict import Pair
from mt_nodes.engine.recorded_drives import episode_lines, load_recorded_drives
from mt_nodes.report.episode_svg import from_above, plots, seconds
from mt_nodes.report.episode_view import EpisodeView
from mt_nodes.report.episode_words import in_words

#: Violated drives that a report shows by default.
SHOWN = 20


def viewers(results_dir: Path, verdicts: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the verdict lines of drives with the contents of their viewers.

    A drive that cannot be shown has a ``note`` instead: it must not make the report fail.
    """
    pairs = {Pair.parse(line["pair"]): line for line in verdicts}
    lines = episode_lines(results_dir, pairs) if pairs else {}
    return [{**line, **_viewer(results_dir, lines.get(pair.followup))} for pair, line in pairs.items()]


def _viewer(results_dir: Path, line: Mapping[str, Any] | None) -> dict[str, Any]:
    if line is None:
        return {"note": "No drive to show: nothing was driven, or the ledger is missing."}
    try:
        recorded = load_recorded_drives(results_dir, line)
    except InfrastructureError as error:
        return {"note": f"No drive to show: {error}"}
    return {"note": "", "words": in_words(recorded), **playable(EpisodeView.of(recorded))}


def playable(view: EpisodeView) -> dict[str, Any]:
    """Return what the template needs to show and play two drives."""
    data = view.script_data()
    return {
        "top": from_above(view),
        "plots": plots(view),
        "seconds": seconds(view),
        "end_ms": data["end"],
        # Only "<" could end the script element.
        "script": json.dumps(data, separators=(",", ":")).replace("<", "\\u003c"),
    }
