# SPDX-License-Identifier: Apache-2.0
"""The drives of a report: a viewer of each, and the one script that plays them all."""

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
from mt_nodes.report.scripts import PageScript, script_of

#: Violated drives that a report shows without being asked.
SHOWN = 20


def viewers(results_dir: Path, verdicts: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return what the template shows of verdict lines over drives: the lines, and what belongs to each viewer.

    Whatever keeps a drive from being shown is a ``note`` in its place: it must not cost the whole report.
    """
    pairs = {Pair.parse(line["pair"]): line for line in verdicts}
    lines = episode_lines(results_dir, pairs) if pairs else {}
    return [{**line, **_viewer(results_dir, lines.get(pair.followup))} for pair, line in pairs.items()]


def script() -> PageScript:
    """Return the script that plays drives, and the source by which a policy lets it run."""
    return script_of("episode.js")


def _viewer(results_dir: Path, line: Mapping[str, Any] | None) -> dict[str, Any]:
    if line is None:
        return {"note": "No drive to show: nothing was driven, or the ledger was not kept."}
    try:
        kept = load_recorded_drives(results_dir, line)
    except InfrastructureError as error:
        return {"note": f"No drive to show: {error}"}
    return {"note": "", "words": in_words(kept), **playable(EpisodeView.of(kept))}


def playable(view: EpisodeView) -> dict[str, Any]:
    """Return what the template needs of two drives to show and play them."""
    data = view.script_data()
    return {
        "top": from_above(view),
        "plots": plots(view),
        "seconds": seconds(view),
        "end_ms": data["end"],
        # Within a script element only "<" could end it.
        "script": json.dumps(data, separators=(",", ":")).replace("<", "\\u003c"),
    }
