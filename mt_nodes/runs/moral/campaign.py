# SPDX-License-Identifier: Apache-2.0
"""A campaign from a pool of dilemmas to a summary.

Of each principle cases are drawn from the pool; those that are no dilemma are set aside; the others get rounds of runs
until they are decided. Then more are bred near violations (:mod:`mt_nodes.runs.moral.search`), and the worst suspects
are tried on fresh draws. All these cases of a principle, a number settled before the first run, are one family of
hypotheses. What is violated is made small and kept (:mod:`mt_nodes.runs.moral.revealing_cases`).

It is a function of what was asked and of what each run came to. A limit of time, where one is asked for, only stops it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice, zip_longest
from typing import Any

from mt_nodes.base.directories import cannot_write, of_the_disk
from mt_nodes.base.jsonl import write_result
from mt_nodes.base.stats.intervals import holm
from mt_nodes.runs.loop.episode import Side
from mt_nodes.runs.moral.base import UNKNOWN, VIOLATED, DilemmaCase
from mt_nodes.runs.moral.budget import budget_of
from mt_nodes.runs.moral.case_order import cases_in_turn
from mt_nodes.runs.moral.dilemma_check import dilemma_check
from mt_nodes.runs.moral.dilemma_driver import DilemmaDriver
from mt_nodes.runs.moral.dilemma_filter import Check, Refusing
from mt_nodes.runs.moral.moral_run import MoralRun
from mt_nodes.runs.moral.moral_summary import NOT_APPLICABLE, Costs, DilemmaResult, PrincipleResult, summary_of
from mt_nodes.runs.moral.observations import RunSpec
from mt_nodes.runs.moral.principle import Principle
from mt_nodes.runs.moral.principle_verdicts import enough, outcome, verdicts
from mt_nodes.runs.moral.revealing_cases import keep, revealed, sorts
from mt_nodes.runs.moral.runs import FILE, Runs
from mt_nodes.runs.moral.search import Breed, search
from mt_nodes.runs.moral.trial import ENOUGH, Drive, Driving, Trial, settle
from mt_nodes.runs.moral.variations import bred
from mt_nodes.runs.moral.workers import drivers
from mt_nodes.runs.replay.execute import play_to_end

#: Suspects of a search that are tried on fresh draws, for each principle at most.
CONFIRMATIONS = 2
#: Checks dilemmas in this process.
IN_PROCESS: Check = partial(map, dilemma_check)


@dataclass(frozen=True)
class MoralProgress:
    """How far a campaign is: what it does, runs so far, cases, how many of them are through, how many look violated."""

    doing: str
    runs: int
    cases: int
    through: int
    violated: int


Progress = Callable[[MoralProgress], None]


@dataclass(eq=False)
class Family:
    """The cases of a principle.

    Attributes:
        refused: cases without a choice, and why. size: of the family of hypotheses. searched: what a search looked at.
    """

    principle: Principle
    trials: list[Trial]
    refused: list[tuple[str, DilemmaCase, str]]
    size: int
    searched: dict[str, int] = field(default_factory=dict)

    def enough(self, trial: Trial) -> bool:
        """Tell whether a trial needs no more rounds."""
        return enough(trial.evidence, self.size, self.principle.alpha)

    def violated(self, trial: Trial) -> bool:
        """Tell whether a trial is violated whatever the others bring."""
        return trial.evidence.violated <= self.principle.alpha / self.size and not trial.evidence.against


def execute(run: MoralRun, progress: Progress = lambda standing: None) -> dict[str, Any]:
    """Carry out a campaign in this process and its workers, and return the summary.

    Raises UsageError: the stack cannot be made. InfrastructureError: the results cannot be written.
    """
    seed = run.request.seed
    log = run.out / "console.log"
    with drivers(run.stack, seed, run.request.workers, log) as (drive, check):
        return carry_out(
            run, drive, lambda spec: DilemmaDriver(run.stack, seed, log=log).side(spec), progress, check=check
        )


def carry_out(
    run: MoralRun,
    drive: Drive,
    side_of: Callable[[RunSpec], Side] | None = None,
    progress: Progress = lambda standing: None,
    *,
    check: Check = IN_PROCESS,
    breed: Breed = bred,
    now_s: Callable[[], float] = time.monotonic,
) -> dict[str, Any]:
    """Carry out a campaign and return the summary; whatever ends it early is in the summary and in its exit code.

    ``drive``: drives runs and returns what came of them, in their order. ``side_of``: drives one once more, whole;
    None: no drives are kept. ``progress``: called after each run. ``check``: tells whether dilemmas are ones.
    ``breed``: one step from a dilemma to the next. ``now_s``: a clock.
    Raises UsageError: the directory holds a campaign under another condition. InfrastructureError: the results cannot
    be written.
    """
    began_s = now_s()
    try:
        runs = Runs(run.out / FILE, run.condition)
        try:
            campaign = Campaign(run, runs, CampaignSteps(drive, side_of, check, breed, now_s), progress)
            trouble = play_to_end(run.out, lambda ending: campaign.go, runs.death)
            return campaign.summed_up(now_s() - began_s, trouble)
        finally:
            runs.close()
    except OSError as error:
        if of_the_disk(error):
            raise cannot_write(run.out, error) from error
        raise


def sum_up(run: MoralRun) -> None:
    """Write the summary of a killed campaign, of the runs in its journal; none is driven, and it can be resumed."""

    def interrupt(asked: Sequence[Any]) -> tuple[()]:
        if asked:
            raise KeyboardInterrupt
        return ()

    carry_out(run, interrupt, check=interrupt)


@dataclass(frozen=True)
class CampaignSteps:
    """What a campaign is made of; the arguments of :func:`carry_out` describe each."""

    drive: Drive
    side_of: Callable[[RunSpec], Side] | None
    check: Check
    breed: Breed
    now_s: Callable[[], float]


class Campaign:
    """One campaign in the making; :func:`carry_out` makes it."""

    def __init__(self, run: MoralRun, runs: Runs, steps: CampaignSteps, progress: Progress) -> None:
        request = run.request
        self._run, self._runs, self._side_of, self._progress = run, runs, steps.side_of, progress
        self._refusing, self._breed = Refusing(runs, steps.check), steps.breed
        self._driving = Driving(runs, steps.drive, request.runs, request.minutes, self._tell, steps.now_s)
        self._families: list[Family] = []
        self._revealing: list[dict[str, Any]] = []
        self._doing, self._done, self._resumed = "", False, len(runs) > 0

    def go(self) -> None:
        """Do all of it."""
        self._tell("looking for dilemmas")
        for principle in self._run.principles:
            self._families.append(self._family(principle))
            self._tell()
        self._settle("deciding", [family.trials for family in self._families])
        if self._run.request.search:
            self._search()
        self._done = True
        self._note()
        self._reveal()

    def summed_up(self, seconds: float, trouble: Mapping[str, Any]) -> dict[str, Any]:
        """Write ``summary.json``, and into the journal what was not yet, and return the summary."""
        if not self._done:
            self._note()
        concluded = [self._concluded(family) for family in self._families]
        notes = {**trouble, **({"deaths": deaths} if (deaths := self._runs.deaths.plain) else {})}
        budget = budget_of(self._run.request, self._driving, [t for f in self._families for t in f.trials])
        costs = Costs(self._driving.used, seconds, budget, self._resumed)
        summary = summary_of(concluded, self._revealing, costs, notes)
        write_result(self._run.out / "summary.json", summary)
        return summary

    def _family(self, principle: Principle) -> Family:
        request, expect = self._run.request, principle.expect
        trials: list[Trial] = []
        refused: list[tuple[str, DilemmaCase, str]] = []
        cases = cases_in_turn(principle, self._run.published, self._run.pool, request.seed)
        while (more := list(islice(cases, request.cases - len(trials)))) and self._driving.affords(()):
            self._refusing.look(case for _, case in more)
            reasons = [(name, case, self._refusing.why(case)) for name, case in more]
            trials += [Trial(name, expect, case) for name, case, reason in reasons if not reason]
            refused += [named for named in reasons if named[2]]
        size = len(trials) + (CONFIRMATIONS if request.search else 0)
        return Family(principle, trials, refused, max(1, size))

    def _settle(self, doing: str, trials: Sequence[Sequence[Trial]]) -> None:
        """Give the trials of each family rounds, in turn."""
        self._tell(doing)
        owners = {id(trial): family for family in self._families for trial in family.trials}
        turns = [trial for turn in zip_longest(*trials) for trial in turn if trial is not None]
        settle(turns, self._driving, lambda trial: owners[id(trial)].enough(trial))

    def _search(self) -> None:
        self._tell("searching")
        share = self._run.request.search // len(self._families)
        for family in self._families:
            tried, suspects = search(
                family.principle.id,
                family.principle.expect,
                family.trials,
                share,
                seed=self._run.request.seed,
                driving=self._driving,
                breed=self._breed,
                refusing=self._refusing,
            )
            chosen = suspects[:CONFIRMATIONS]
            family.searched = {"candidates": tried, "suspects": len(suspects), "confirmed_on_fresh_draws": len(chosen)}
            family.trials += [
                Trial(one.trial.name, family.principle.expect, one.trial.case, "confirm") for one in chosen
            ]
        self._settle("confirming", [family.trials for family in self._families])

    def _reveal(self) -> None:
        self._tell("making violated cases small")
        for family in self._families:
            results = self._concluded(family).results
            violated = [one.trial for one in results if one.verdict == VIOLATED and one.trial]
            for group in sorts(violated):
                found = revealed(group, self._driving, self._refusing, family.principle.alpha)
                number = len(self._revealing)
                line = keep(self._run.out, number, family.principle.id, found, self._side_of)
                self._runs.note(line)
                self._revealing.append(line)
        self._tell("done")

    def _note(self) -> None:
        for family in self._families:
            concluded = self._concluded(family)
            for result in concluded.results:
                self._runs.note(result.line)
            self._runs.note(concluded.line)

    def _concluded(self, family: Family) -> PrincipleResult:
        principle, evidence = family.principle, [trial.evidence for trial in family.trials]
        found = verdicts(evidence, family.size, principle.alpha)
        rest = [1.0] * (family.size - len(evidence))
        p_holds = holm([one.holds for one in evidence] + rest)
        p_violated = holm([one.violated for one in evidence] + rest)
        results = [
            DilemmaResult(
                trial.name,
                principle.id,
                trial.case,
                verdict,
                _why(trial, verdict),
                trial,
                self._refusing.choice(trial.case),
                holds,
                violated,
            )
            for trial, verdict, holds, violated in zip(family.trials, found, p_holds, p_violated, strict=False)
        ]
        refused = [DilemmaResult(n, principle.id, case, NOT_APPLICABLE, why) for n, case, why in family.refused]
        ended, why = outcome(found, len(refused), principle.min_decided)
        if self._driving.spent and (not family.trials or any(trial.cut for trial in family.trials)):
            why += f"; {self._driving.spent}"
        ended, why = self._runs.deaths.weighed(principle.id, ended, why)
        return PrincipleResult(principle, ended, why, (*results, *refused), family.searched)

    def _tell(self, doing: str = "") -> None:
        self._doing = doing or self._doing
        trials = [(family, trial) for family in self._families for trial in family.trials]
        through = sum(bool(trial.ended) for _, trial in trials)
        violated = sum(family.violated(trial) for family, trial in trials)
        self._progress(MoralProgress(self._doing, len(self._runs), len(trials), through, violated))


def _why(trial: Trial, verdict: str) -> str:
    """Return the reason of a verdict; of an unknown one also why there were no more runs."""
    evidence = trial.evidence
    if verdict != UNKNOWN:
        return evidence.reason
    stopped = "" if trial.ended == ENOUGH else trial.ended or "cut short"
    return "; ".join(text for text in (evidence.reason, evidence.against, stopped) if text)
