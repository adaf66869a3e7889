# SPDX-License-Identifier: Apache-2.0
"""``mt replay --failures`` without a bag: every stored case of a stack is played again, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mt_nodes.base.directories import new_directory, write_whole
from mt_nodes.base.errors import ExitCode, MtError, UsageError
from mt_nodes.base.wording import counted
from mt_nodes.cli.replay_execution import replayed
from mt_nodes.cli.terminal import table, text
from mt_nodes.data.verdict import Outcome
from mt_nodes.engine.journal import read_journal
from mt_nodes.engine.plan import ReplayRequest
from mt_nodes.runs.campaign.campaign_summary import ORDER
from mt_nodes.runs.campaign.cases import stack_name
from mt_nodes.runs.campaign.failures import FILE, FailureCase, Failures
from mt_nodes.runs.campaign.item_replay import OWN, Together, expired, together
from mt_nodes.runs.campaign.regression import outcomes_of, retired_words
from mt_nodes.runs.replay.replay_run import Run
from mt_nodes.stacks.stack import load_stack

COLUMNS = ("case", "pair", "bag", "now", "results")
#: In place of an outcome: nothing was judged, ``why`` tells.
NOT_PLAYED = "not played"


@dataclass
class Again:
    """How stored cases ended when they were played again.

    Attributes:
        out: directory of the replays. rows: one a case, as ``failures.json`` has them.
        code: the first that any replay ended with, of those that say that it went wrong; None: none did.
        notes: what else is to be told.
    """

    out: Path
    rows: list[dict[str, Any]] = field(default_factory=list)
    code: ExitCode | None = None
    notes: list[str] = field(default_factory=list)

    def went_wrong(self, code: int) -> None:
        """Take in how a replay ended."""
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
        """Say how many ended how."""
        known = (Outcome.VIOLATED.value, Outcome.HOLDS.value, NOT_PLAYED)
        outcomes = [row["outcome"] for row in self.rows]
        told = [outcomes.count(name) for name in known]
        words = f"{counted(len(outcomes), 'case')}: {told[0]} failed again, {told[1]} hold"
        words += f", {told[2]} not played" if told[2] else ""
        return words + (f", {rest} not decided" if (rest := len(outcomes) - sum(told)) else "")


def replay_failing_again(
    asked: ReplayRequest, out: str | None, file: Path | None, *, keep_expired: bool = False, as_json: bool = False
) -> int:
    """Play every stored case of a stack again, note how it ended, print that, and return the exit code.

    Args:
        asked: the stack, and how it is replayed. out: directory of the replays.
        file: database, None: the one in the directory of work.
        keep_expired: keep cases whose follow-ups are made otherwise by now.
        as_json: print one object instead of a table.

    Raises:
        UsageError: there is no database, or more was asked for than a case leaves open.
    """
    path = file or Path(FILE)
    _refuse(asked, path)
    with Failures(path) as failures:
        cases = failures.cases(stack=stack_name(load_stack(asked.stack).name, asked.faults))
        gone = {case.key for case in expired(cases)}
        again = Again(new_directory(out).resolve())
        if not any((again.out / "evidence").iterdir()):  # each replay has its own; what is there already is somebody's
            (again.out / "evidence").rmdir()
        if gone:
            again.notes.append(f"{counted(len(gone), 'case')} expired: the mutation's code has changed")
        if others := len(failures.cases()) - len(cases):
            again.notes.append(f"{counted(others, 'case')} of other stacks or faults; --stack and --fault name them")
        for some in together(case for case in cases if case.key not in gone):
            if again.code is not ExitCode.INTERRUPTED:
                again.rows += _played(some, asked, again, failures)
        if not keep_expired:
            failures.forget(gone)
    _tell(again, as_json)
    return int(again.exit_code)


def _refuse(asked: ReplayRequest, path: Path) -> None:
    usual = ReplayRequest(bags=())
    for name in OWN:
        if getattr(asked, name) != getattr(usual, name):
            raise UsageError(f"--failures without a bag: cases say themselves what is judged; leave --{name} out")
    if not path.is_file():
        raise UsageError(
            f"{path}: no such file; `mt replay failures add DIR` makes it of results, `mt replay BAG --failures` too"
        )


def _played(some: Together, asked: ReplayRequest, again: Again, failures: Failures) -> Iterator[dict[str, Any]]:
    place, ended, why = again.out / some.name, {}, ""
    try:
        request = some.request(asked, again.out / "relations" / some.name, again.out / "bags", failures.path)
        summary = replayed(Run.create(request, str(place)), quiet=True)
        again.went_wrong(summary["exit_code"])
        why = summary["exit_why"]
        ended = {line["pair"]: line for line in read_journal(place / "result.jsonl") if line["type"] == "verdict"}
    except MtError as error:
        again.went_wrong(int(error.exit_code))
        why = str(error)
    again.notes += retired_words(failures.judged(outcomes_of(some.cases, ended)))
    for case in some.cases:
        yield _row(case, ended.get(str(case.pair)), place, why)


def _row(case: FailureCase, line: Any, place: Path, why: str) -> dict[str, Any]:
    told = {"key": case.key, "pair": str(case.pair), "bag": case.bag, "seed": case.seed, "results": str(place)}
    if line is None:
        return {**told, "outcome": NOT_PLAYED, "why": why}
    return {**told, "outcome": line["outcome"], "why": line["reason"]}


def _tell(again: Again, as_json: bool) -> None:
    plain = {"cases": again.rows, "notes": again.notes, "exit_code": int(again.exit_code)}
    told = json.dumps(plain, indent=2)
    write_whole(again.out / "failures.json", told + "\n")
    if as_json:
        print(told)
        return
    if again.rows:
        table(COLUMNS, [_cells(row) for row in again.rows])
    for why in dict.fromkeys(row["why"] for row in again.rows if row["outcome"] == NOT_PLAYED):
        text(f"not played: {why}")
    for note in again.notes:
        text(note)
    text(again.counts())
    text(f"exit code {int(again.exit_code)}; results in {again.out}")


def _cells(row: dict[str, Any]) -> Sequence[str]:
    return row["key"][:12], row["pair"], Path(row["bag"]).name, row["outcome"], Path(row["results"]).name
