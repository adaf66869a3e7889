# SPDX-License-Identifier: Apache-2.0
"""``mt replay --failures``: stored failing cases are judged first, or, without a bag, they alone are replayed."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mt_nodes.base.directories import new_directory, write_whole
from mt_nodes.base.errors import ExitCode, MtError, UsageError
from mt_nodes.base.wording import counted
from mt_nodes.cli.fresh_replay import Rows, exit_code_of, outcome_words, print_fresh, read_before
from mt_nodes.cli.replay_execution import execute_replay
from mt_nodes.cli.terminal import table, text
from mt_nodes.data.verdict import Outcome
from mt_nodes.engine.journal import read_journal
from mt_nodes.engine.plan import ReplayRequest
from mt_nodes.runs.campaign.campaign_summary import ORDER
from mt_nodes.runs.campaign.cases import OWN, Together, expired, stack_name, together
from mt_nodes.runs.campaign.failures import FILE, FailureCase, Failures
from mt_nodes.runs.campaign.fresh_draws import fresh
from mt_nodes.runs.campaign.regression import note, outcomes_of, retired_words, stored_for
from mt_nodes.runs.replay.replay_run import Run
from mt_nodes.stacks.stack import load_stack

COLUMNS = ("case", "pair", "bag", "now", "results")
#: In place of an outcome: nothing was judged, for the reason in ``why``.
NOT_PLAYED = "not played"


def replay_stored_first(
    request: ReplayRequest, out: str | None, file: Path | None, *, keep_expired: bool = False, as_json: bool = False
) -> dict[str, Any]:
    """Replay, stored cases first, and store what fails; return the summary.

    Raises MtError: nothing was run, or the suite process ended without a summary. A damaged database after the run is a
    warning: it changes no result.

    Args:
        request: what is replayed. out: results directory.
        file: database; None: the one in the working directory.
        keep_expired: keep cases whose mutation's code has changed.
        as_json: print the summary instead of a table.
    """
    with Failures(file or Path(FILE)) as failures:
        stored = stored_for(failures, Run.make(request, Path(out or ".")))
        _print_lines(stored.words(), as_json)
        run = Run.create(dataclasses.replace(request, first_pairs=stored.pairs), out)
        summary = execute_replay(run, as_json=as_json)
        try:
            _print_lines(note(failures, stored, run, summary, read_journal(run.out / "result.jsonl")), as_json)
            if not keep_expired:
                failures.forget(case.key for case in stored.expired)
        except MtError as error:
            print(f"mt: warning: {error}; the results of the run are unaffected", file=sys.stderr)
    return summary


def _print_lines(lines: Iterable[str], as_json: bool) -> None:
    for line in lines:
        if as_json:
            print(f"mt: {line}", file=sys.stderr)
        else:
            text(line)


@dataclass
class StoredReplay:
    """How stored cases ended when they were replayed.

    ``out``: directory of the replays. ``rows``: one a case, as ``failures.json`` has them; ``fresh``: the same of fresh
    draws. ``code``: the most important
    exit code of a replay that went wrong; None: none did. ``notes``: further lines to print.
    """

    out: Path
    rows: list[dict[str, Any]] = field(default_factory=list)
    fresh: list[dict[str, Any]] = field(default_factory=list)
    code: ExitCode | None = None
    notes: list[str] = field(default_factory=list)

    def add_exit_code(self, code: int) -> None:
        """Take in the exit code of one replay."""
        if code >= ExitCode.USAGE and code != ExitCode.UNDECIDED:
            self.code = min(filter(None, (self.code, ExitCode(code))), key=ORDER.index)

    @property
    def exit_code(self) -> ExitCode:
        """1 where a case failed again, 3 where one was not decided, unless something went wrong."""
        outcomes = [row["outcome"] for row in self.rows]
        if self.code is not None:
            return self.code
        if Outcome.VIOLATED.value in outcomes:
            return ExitCode.FAIL
        return ExitCode.PASS if outcomes and set(outcomes) == {Outcome.HOLDS.value} else ExitCode.UNDECIDED

    def counts(self) -> str:
        """Say how many cases ended how."""
        outcomes = [row["outcome"] for row in self.rows]
        failed, hold, not_played = map(outcomes.count, (Outcome.VIOLATED.value, Outcome.HOLDS.value, NOT_PLAYED))
        words = f"{counted(len(outcomes), 'case')}: {failed} failed again, {hold} hold"
        words += f", {not_played} not played" if not_played else ""
        undecided = len(outcomes) - failed - hold - not_played
        return words + (f", {undecided} not decided" if undecided else "")


def replay_stored(
    request: ReplayRequest,
    out: str | None,
    file: Path | None,
    *,
    keep_expired: bool = False,
    as_json: bool = False,
    fresh_draws: int = 0,
    before: Path | None = None,
) -> int:
    """Replay every stored case of a stack, store and print how it ended, and return the exit code.

    Raises UsageError: there is no database, or the request sets what each case has of its own.

    Args:
        request: the stack, and how it is replayed. out: directory of the replays.
        file: database; None: the one in the working directory.
        keep_expired: keep cases whose mutation's code has changed.
        as_json: print one object instead of a table.
        fresh_draws: how many draws more of each case's relation on its frame.
        before: directory of the same replay with the former stack.
    """
    path, former = file or Path(FILE), None if before is None else read_before(before)
    _refuse(request, path)
    with Failures(path) as failures:
        cases = failures.cases(stack=stack_name(load_stack(request.stack).name, request.faults))
        expired_keys = {case.key for case in expired(cases)}
        replays = StoredReplay(new_directory(out).resolve())
        if not any((replays.out / "evidence").iterdir()):  # each replay has its own; one with files is the user's
            (replays.out / "evidence").rmdir()
        if expired_keys:
            replays.notes.append(f"{counted(len(expired_keys), 'case')} expired: the mutation's code has changed")
        if others := len(failures.cases()) - len(cases):
            replays.notes.append(
                f"{counted(others, 'case')} of other stacks or faults; choose with --stack and --fault"
            )
        for some in together(case for case in cases if case.key not in expired_keys):
            if replays.code is not ExitCode.INTERRUPTED:
                replays.rows += _replay_together(some, request, replays, failures)
                for number in range(1, fresh_draws + 1):
                    if drawn := fresh(some, number):
                        replays.fresh += _replay_together(drawn, request, replays, failures, stored=False)
        if not keep_expired:
            failures.forget(expired_keys)
    return _print_replays(replays, as_json, former, fresh_draws)


def _refuse(request: ReplayRequest, path: Path) -> None:
    default = ReplayRequest(bags=())
    for name in OWN:
        if getattr(request, name) != getattr(default, name):
            raise UsageError(f"--failures without a bag: each case has its own --{name}; leave --{name} out")
    refuse_no_database(path)


def refuse_no_database(path: Path) -> None:
    """Refuse a database that does not exist. Raises UsageError: saying how to make one."""
    if not path.is_file():
        raise UsageError(
            f"{path}: no such file; `mt replay failures add DIR` makes it from results, "
            "and so does `mt replay BAG --failures` when a pair fails"
        )


def _replay_together(
    some: Together, request: ReplayRequest, replays: StoredReplay, failures: Failures, *, stored: bool = True
) -> Iterator[dict[str, Any]]:
    out, ended, why = replays.out / some.name, {}, ""
    try:
        replay = some.request(request, replays.out / "relations" / some.name, replays.out / "bags", failures.path)
        summary = execute_replay(Run.create(replay, str(out)), quiet=True)
        replays.add_exit_code(summary["exit_code"])
        why = summary["exit_why"]
        ended = {line["pair"]: line for line in read_journal(out / "result.jsonl") if line["type"] == "verdict"}
    except MtError as error:
        replays.add_exit_code(int(error.exit_code))
        why = str(error)
    if stored:
        replays.notes += retired_words(failures.record_outcomes(outcomes_of(some.cases, ended)))
    for case in some.cases:
        yield _row(case, ended.get(str(case.pair)), out, why)


def _row(case: FailureCase, line: Any, out: Path, why: str) -> dict[str, Any]:
    row = {"key": case.key, "pair": str(case.pair), "bag": case.bag, "seed": case.seed, "results": str(out)}
    if line is None:
        return {**row, "outcome": NOT_PLAYED, "why": why}
    return {**row, "outcome": line["outcome"], "why": line["reason"]}


def _print_replays(replays: StoredReplay, as_json: bool, before: Rows | None, fresh_draws: int) -> int:
    rows = {"cases": replays.rows, "fresh": replays.fresh}
    code = exit_code_of(replays.exit_code, rows, before) if fresh_draws else replays.exit_code
    words = [mending.as_plain() for mending in outcome_words(rows, before)]
    content = json.dumps({**rows, "mended": words, "notes": replays.notes, "exit_code": int(code)}, indent=2)
    write_whole(replays.out / "failures.json", content + "\n")
    if as_json:
        print(content)
        return int(code)
    if replays.rows and not fresh_draws:  # then there may be hundreds, and what counts is their sum
        table(COLUMNS, [_cells(row) for row in replays.rows])
    for why in dict.fromkeys(row["why"] for row in replays.rows if row["outcome"] == NOT_PLAYED):
        text(f"not played: {why}")
    for line in replays.notes:
        text(line)
    text(replays.counts())
    if fresh_draws:
        print_fresh(rows, before, replays.out)
    text(f"exit code {int(code)}; results in {replays.out}")
    return int(code)


def _cells(row: dict[str, Any]) -> Sequence[str]:
    return row["key"][:12], row["pair"], Path(row["bag"]).name, row["outcome"], Path(row["results"]).name
