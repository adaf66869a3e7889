# SPDX-License-Identifier: Apache-2.0
"""What a run takes from the database of failing cases, and what it leaves there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mt_nodes.base.errors import UsageError
from mt_nodes.base.wording import counted
from mt_nodes.data.datasets.dataset_name import located
from mt_nodes.data.verdict import Outcome
from mt_nodes.engine.results_dirs import results_of
from mt_nodes.runs.campaign.cases import CaseSource, code_of, of_results, stack_name, violated
from mt_nodes.runs.campaign.failures import RETIRE_AFTER, FailureCase, Failures
from mt_nodes.runs.campaign.inputs import drives
from mt_nodes.runs.replay.replay_run import Run


@dataclass(frozen=True)
class FormerCases:
    """What the database holds for a run.

    Attributes:
        bags: SHA-256 of the content, one each bag of the run.
        first: cases that are pairs of the run, to be judged first.
        expired: cases whose follow-up is made otherwise by now.
        others: cases of the run's bags and stack that are no pairs of the run: of another seed, place or relation.
    """

    bags: tuple[str, ...]
    first: tuple[FailureCase, ...]
    expired: tuple[FailureCase, ...]
    others: tuple[FailureCase, ...]

    @property
    def pairs(self) -> tuple[str, ...]:
        """Identities of the cases that are judged first."""
        return tuple(str(case.pair) for case in self.first)

    def words(self) -> list[str]:
        """Say what becomes of the cases that are stored."""
        lines = []
        if self.first:
            lines.append(f"{counted(len(self.first), 'case')} that failed before: judged first")
        if self.expired:
            lines.append(
                f"{counted(len(self.expired), 'case')} expired: the mutation's code or the relation has changed"
            )
        if self.others:
            count = counted(len(self.others), "stored case")
            lines.append(
                f"{count} of these bags not judged first: of another seed, place of the bag or relation; "
                "`mt replay --failures` without a bag plays them"
            )
        return lines


def stored_for(failures: Failures, run: Run) -> FormerCases:
    """Return what the database holds for a run that has not begun.

    Raises UsageError: the run judges pairs in an order of its own. InfrastructureError: a bag cannot be read.
    """
    request = run.request
    for given, option in ((request.cases, "--cases"), (request.only, "the one pair to judge"), (request.pace, "")):
        if given and (option or given != "lockstep"):
            raise UsageError(f"--failures: cannot go with {option or '--pace ' + given}; leave one of them out")
    bags = tuple(drives([bag], failures.path)[0].sha256 for bag in request.bags)
    relations = {r.id: r for r in run.suite.relations}
    codes = {name: code_of(relation) for name, relation in relations.items()}
    cases = failures.cases(bags, stack_of(run))
    known = [case for case in cases if case.pair.relation in relations]
    expired = tuple(case for case in known if case.code != codes[case.pair.relation])
    fresh = [case for case in known if case not in expired]
    first = tuple(case for case in fresh if _is_pair_of(run, bags, case))
    return FormerCases(bags, first, expired, tuple(case for case in cases if case not in (*expired, *first)))


def _is_pair_of(run: Run, bags: Sequence[str], case: FailureCase) -> bool:
    request, pair = run.request, case.pair
    place = pair.episode - request.first_episode
    same_bag = 0 <= place < len(bags) and bags[place] == case.bag_sha256
    reached = pair.bundle is None or request.limit is None or pair.bundle < request.limit
    return same_bag and reached and case.seed == request.seed and int(pair.draw) < request.draws


def note(
    failures: Failures, stored: FormerCases, run: Run, summary: Mapping[str, Any], lines: Iterable[Mapping[str, Any]]
) -> list[str]:
    """Keep what came of a run, and say so: how stored cases ended, and what else was violated.

    ``failures``: the database. ``stored``: what it held for the run. ``run``: which one. ``summary``: of the run.
    ``lines``: of its journal.
    """
    ended = {line["pair"]: line for line in lines if line["type"] == "verdict"}
    outcomes = outcomes_of(stored.first, ended)
    retired = failures.record_outcomes(outcomes)
    known = {case.key for case in stored.first}
    new = failures.failed(
        [case for case in violated(_case_source(stored, run), summary, ended.values()) if case.key not in known]
    )
    failed = sum(outcome is Outcome.VIOLATED for _, outcome in outcomes)
    words = [f"of {counted(len(outcomes), 'case')} that failed before, {failed} failed again"] if outcomes else []
    words += [f"{counted(new, 'new case')} kept in {failures.path}"] if new else []
    return words + retired_words(retired)


def outcomes_of(cases: Iterable[FailureCase], ended: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, Outcome]]:
    """Return how cases ended, by their keys, from verdict lines by pair; those without a line are left out."""
    return [(case.key, Outcome(ended[str(case.pair)]["outcome"])) for case in cases if str(case.pair) in ended]


def retired_words(retired: Sequence[FailureCase]) -> list[str]:
    """Say how many cases held so often that they were taken out."""
    return [f"{counted(len(retired), 'case')} held {RETIRE_AFTER} times: taken out"] if retired else []


def add(failures: Failures, directories: Iterable[Path]) -> tuple[int, int]:
    """Keep the violated pairs of finished runs, campaigns and searches; return how many are new, and how many known.

    Raises UsageError: one of them holds no results of replays; nothing was kept. MtError: something of them is damaged.
    """
    places = [place for directory in directories for place in results_of(directory)]
    found = {case.key: case for place in places for case in of_results(place, failures.path)}
    new = failures.failed(list(found.values()))
    return new, len(found) - new


def stack_of(run: Run) -> str:
    """Return what a stack is called, with the faults that are planted in it."""
    return stack_name(run.stack.name, run.request.faults)


def _case_source(stored: FormerCases, run: Run) -> CaseSource:
    def drive(episode: int) -> tuple[str, str]:
        place = episode - run.request.first_episode
        return located(run.request.bags[place], Path()), stored.bags[place]

    return CaseSource(stack_of(run), run.request.seed, {r.id: r for r in run.suite.relations}, drive)
