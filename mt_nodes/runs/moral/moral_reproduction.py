# SPDX-License-Identifier: Apache-2.0
"""Runs of a finished campaign once more: driven again and compared, bit for bit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mt_nodes.base.errors import UsageError
from mt_nodes.runs.moral.moral_run import MoralRun
from mt_nodes.runs.moral.observations import Observation, RunSpec
from mt_nodes.runs.moral.report_journal import Line, MoralJournal
from mt_nodes.runs.moral.trial import Drive
from mt_nodes.runs.moral.workers import drivers


@dataclass(frozen=True)
class RepeatedRun:
    """A run that was driven again.

    Attributes:
        spec: which one. key: of it in the journal. expected: SHA-256 of its trace there. now: what came of it.
    """

    spec: RunSpec
    key: str
    expected: str
    now: Observation

    @property
    def same(self) -> bool:
        """Whether it came again bit for bit."""
        return self.now.sha256 == self.expected


def chosen(journal: MoralJournal, name: str) -> dict[RunSpec, Line]:
    """Return the runs of a case, or the one run of that key.

    Raises UsageError: there is no such case or run, or nothing was driven for it.
    """
    if name in journal.runs:
        cases = [*journal.cases.values(), *journal.revealing.values()]
        found = {spec: line for case in cases for spec, line in journal.driven(case).items() if line["run"] == name}
        if not found:
            raise UsageError(f"run {name} was one of a search, whose dilemma was not kept; expected one of a case")
        return dict([next(iter(found.items()))])
    case = journal.case(name)
    if not (driven := journal.driven(case)):
        raise UsageError(f"case '{name}' was not driven: {case['reason']}")
    return driven


def repeat_runs(drive: Drive, runs: Mapping[RunSpec, Line]) -> Iterator[RepeatedRun]:
    """Yield what comes of runs now, in their order."""
    for (spec, line), now in zip(runs.items(), drive(list(runs)), strict=True):
        yield RepeatedRun(spec, line["run"], line["sha256"], now)


def repeat_campaign_runs(run: MoralRun, runs: Mapping[RunSpec, Line]) -> list[RepeatedRun]:
    """Drive runs of a campaign again in this process and its workers.

    Raises UsageError: its stack is no Python callable.
    """
    if not run.stack.callable:
        raise UsageError(
            f"stack '{run.stack.name}' is no Python callable, so that no single runs of it are driven again; "
            "`mt experiment moral` with the same options drives the whole campaign again"
        )
    with drivers(run.stack, run.request.seed, min(run.request.workers, len(runs))) as (drive, _):
        return list(repeat_runs(drive, runs))
