# SPDX-License-Identifier: Apache-2.0
"""``mt replay --failures --fresh-draws N --before DIR``: what became of each relation, as a table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mt_nodes.base.errors import ExitCode, UsageError
from mt_nodes.cli.terminal import table, text
from mt_nodes.data.verdict import Outcome
from mt_nodes.runs.campaign.fresh_draws import BY_HEART, MENDED, NOT_MENDED, Counts, Mending, mendings

#: What a replay of stored cases leaves.
FILE = "failures.json"
Rows = Mapping[str, Sequence[Mapping[str, Any]]]


def read_before(directory: Path) -> Rows:
    """Return the rows of a former replay of the stored cases.

    Raises UsageError: there is none, or it had no fresh draws.
    """
    path = directory / FILE
    try:
        rows: Rows = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"--before {directory}: no {FILE} can be read there: {error}") from error
    if not rows.get("fresh"):
        raise UsageError(f"--before {directory}: has no fresh draws; replay the former stack with --fresh-draws, too")
    return rows


def outcome_words(now: Rows, before: Rows | None) -> list[Mending]:
    """Return what became of each relation; none where nothing is known of the former stack."""
    return [] if before is None else list(mendings(now, before))


def exit_code_of(code: ExitCode, now: Rows, before: Rows | None) -> ExitCode:
    """Return the exit code of a replay of stored cases, ``code``, with fresh draws.

    1 where one of these is violated or a relation is not mended, 3 where that is not decided.
    """
    if code not in (ExitCode.PASS, ExitCode.UNDECIDED):
        return code
    words = {mending.word for mending in outcome_words(now, before)}
    failed = any(row["outcome"] == Outcome.VIOLATED.value for row in now["fresh"])
    if failed or words & {BY_HEART, NOT_MENDED}:
        return ExitCode.FAIL
    return code if words == {MENDED} else ExitCode.UNDECIDED


def print_fresh(now: Rows, before: Rows | None, out: Path) -> None:
    """Print how fresh draws ended, beside those of the former stack."""
    rows = now["fresh"]
    failed = sum(row["outcome"] == Outcome.VIOLATED.value for row in rows)
    text(f"fresh draws: {len(rows)} on the same frames, {failed} violated")
    found = outcome_words(now, before)
    if found:
        columns = ("relation", "same draws: violated before, now", "fresh draws: violated before, now", "so")
        table(columns, [(m.relation, _shown(m.same), _shown(m.fresh), m.word) for m in found])
        for mending in found:
            if mending.why:
                text(f"{mending.relation}: {mending.word}: {mending.why}")
    elif rows:
        text(f"replay the same with the stack as it will be, and --before {out}: that says what was mended")
    if not rows:
        text("no fresh draw: the stored cases' relations draw nothing at random; replay other bags instead")


def _shown(counts: Counts) -> str:
    if counts.interval is None:
        return "none decided both times"
    low, high = counts.interval.low, counts.interval.high
    return f"{counts.before}, {counts.now} of {counts.decided} ({low:.0%} to {high:.0%})"
