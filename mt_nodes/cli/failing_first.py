# SPDX-License-Identifier: Apache-2.0
"""A replay with the database of failing cases: what failed before is judged first, what fails now is kept."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mt_nodes.base.errors import MtError
from mt_nodes.cli.replay_execution import replayed
from mt_nodes.engine.journal import read_journal
from mt_nodes.engine.plan import ReplayRequest
from mt_nodes.runs.campaign.failures import FILE, Failures
from mt_nodes.runs.campaign.regression import note, stored_for
from mt_nodes.runs.replay.replay_run import Run


def replay_failing_first(
    request: ReplayRequest, out: str | None, file: Path | None, *, keep_expired: bool = False, as_json: bool = False
) -> dict[str, Any]:
    """Carry out a replay, stored cases first, and keep what came of it in the database; return the summary.

    Args:
        request: what is replayed. out: results directory.
        file: database, None: the one in the directory of work.
        keep_expired: keep cases whose follow-ups are made otherwise by now.
        as_json: print the summary instead of a table.

    Raises:
        MtError: nothing was run, or the suite process ended without a summary. What is wrong with the database after
            the run is a warning: it changes no result.
    """
    with Failures(file or Path(FILE)) as failures:
        stored = stored_for(failures, Run.make(request, Path(out or ".")))
        _tell(stored.words(), as_json)
        run = Run.create(dataclasses.replace(request, first_pairs=stored.pairs), out)
        summary = replayed(run, as_json=as_json)
        try:
            _tell(note(failures, stored, run, summary, read_journal(run.out / "result.jsonl")), as_json)
            if not keep_expired:
                failures.forget(case.key for case in stored.expired)
        except MtError as error:
            print(f"mt: warning: {error}; the results of the run are not concerned", file=sys.stderr)
    return summary


def _tell(words: Iterable[str], as_json: bool) -> None:
    from mt_nodes.cli.terminal import text

    for line in words:
        if as_json:
            print(f"mt: {line}", file=sys.stderr)
        else:
            text(line)
