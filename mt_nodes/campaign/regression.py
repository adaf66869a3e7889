# SPDX-License-Identifier: Apache-2.0
"""What a run takes from the database of failing cases, and what it leaves there."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mt_nodes import pipeline, seeds
from mt_nodes.campaign.failures import RETIRE_AFTER, Case, Failures
from mt_nodes.campaign.inputs import drives
from mt_nodes.errors import UsageError
from mt_nodes.jsonl import jsonable
from mt_nodes.mutations.base import Mutation
from mt_nodes.relations import Relation
from mt_nodes.runs import Run
from mt_nodes.verdict import Outcome, Pair, RelationOutcome
from mt_nodes.wording import counted

#: New cases that a run leaves of one bag and relation: those violated most.
MOST_NEW = 20
#: What every follow-up is made by, beside its mutation.
_MODULES = (pipeline, seeds, inspect.getmodule(Mutation))


@dataclass(frozen=True)
class Stored:
    """What the database holds for a run.

    Attributes:
        bags: SHA-256 of the content, one each bag of the run.
        first: cases that are pairs of the run, to be judged first.
        expired: cases whose follow-up is made otherwise by now.
        others: cases of the run's bags and stack that are no pairs of the run: of another seed, place or relation.
    """

    bags: tuple[str, ...]
    first: tuple[Case, ...]
    expired: tuple[Case, ...]
    others: tuple[Case, ...]

    @property
    def pairs(self) -> tuple[str, ...]:
        """Identities of the cases that are judged first."""
        return tuple(str(case.pair) for case in self.first)

    def words(self) -> list[str]:
        """Say what becomes of the cases that are stored."""
        told = []
        if self.first:
            told.append(f"{counted(len(self.first), 'case')} that failed before: judged first")
        if self.expired:
            told.append(
                f"{counted(len(self.expired), 'case')} expired: the mutation's code or the relation has changed"
            )
        if self.others:
            count = counted(len(self.others), "stored case")
            told.append(f"{count} of these bags not judged first: of another seed, place of the bag or relation")
        return told


def stored_for(failures: Failures, run: Run) -> Stored:
    """Return what the database holds for a run that has not begun.

    Raises:
        UsageError: the run judges pairs in an order of its own.
        InfrastructureError: a bag cannot be read.
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
    return Stored(bags, first, expired, tuple(case for case in cases if case not in (*expired, *first)))


def _is_pair_of(run: Run, bags: Sequence[str], case: Case) -> bool:
    request, pair = run.request, case.pair
    place = pair.episode - request.first_episode
    here = 0 <= place < len(bags) and bags[place] == case.bag_sha256
    reached = pair.bundle is None or request.limit is None or pair.bundle < request.limit
    return here and reached and case.seed == request.seed and int(pair.draw) < request.draws


def note(
    failures: Failures, stored: Stored, run: Run, summary: Mapping[str, Any], lines: Iterable[Mapping[str, Any]]
) -> list[str]:
    """Keep what came of a run, and say so: how stored cases ended, and what else was violated.

    Violations of a relation that does not stand out from its control and sham, which were violated too, are no cases.

    Args:
        failures: the database. stored: what it held for the run. run: which one.
        summary: of the run. lines: of its journal.
    """
    ended = {line["pair"]: line for line in lines if line["type"] == "verdict"}
    outcomes = [(c.key, Outcome(ended[str(c.pair)]["outcome"])) for c in stored.first if str(c.pair) in ended]
    retired = failures.judged(outcomes)
    known = {case.key for case in stored.first}
    new = failures.failed([case for case in _violated(stored, run, summary, ended.values()) if case.key not in known])
    failed = sum(outcome is Outcome.VIOLATED for _, outcome in outcomes)
    told = [f"of {counted(len(outcomes), 'case')} that failed before, {failed} failed again"] if outcomes else []
    told += [f"{counted(new, 'new case')} kept in {failures.path}"] if new else []
    return told + ([f"{counted(len(retired), 'case')} held {RETIRE_AFTER} times: taken out"] if retired else [])


def _violated(stored: Stored, run: Run, summary: Mapping[str, Any], lines: Iterable[Mapping[str, Any]]) -> list[Case]:
    """Return the violated pairs of relations that failed, of each bag and relation the worst."""
    relations = {r.id: r for r in run.suite.relations}
    judged = summary.get("relations", {})
    found: dict[tuple[int, str], list[Case]] = {}
    for line in lines:
        pair, name = Pair.parse(line["pair"]), line["relation"]
        if name in relations and line["outcome"] == Outcome.VIOLATED.value and _steady(judged.get(name, {})):
            found.setdefault((pair.episode, name), []).append(_case(stored, run, relations[name], pair, line["margin"]))
    worst = (sorted(cases, key=_how_bad)[:MOST_NEW] for cases in found.values())
    return [case for cases in worst for case in cases]


def _steady(relation: Mapping[str, Any]) -> bool:
    """Whether violations say something of the change: they stand out, or control and sham were never violated."""
    background = sum(relation.get(arm, {}).get("violated", 0) for arm in ("control", "sham"))
    return relation.get("outcome") == RelationOutcome.FAIL.value or background == 0


def _how_bad(case: Case) -> tuple[float, Pair]:
    return (-float("inf") if case.margin is None else case.margin, case.pair)


def _case(stored: Stored, run: Run, relation: Relation, pair: Pair, margin: float | None) -> Case:
    place = pair.episode - run.request.first_episode
    bag = str(Path(run.request.bags[place]).resolve())
    plain = json.dumps(jsonable(relation.as_plain()), sort_keys=True)
    return Case(bag, stored.bags[place], stack_of(run), pair, run.request.seed, plain, code_of(relation), margin)


def stack_of(run: Run) -> str:
    """Return what a stack is called, with the faults that are planted in it."""
    return "+".join((run.stack.name, *run.request.faults))


def code_of(relation: Relation) -> str:
    """Return the SHA-256 of what a relation's follow-ups are made by: its own words, and the source files.

    Those are of its mutations, of all that these inherit from, and of what draws and applies them.
    """
    mutations = (type(mutation) for mutation in (*relation.mutate, *relation.baseline))
    bases = (base for mutation in mutations for base in mutation.__mro__ if base.__module__ not in ("builtins", "abc"))
    files = {inspect.getsourcefile(found) for found in (*bases, *_MODULES) if found is not None}
    digest = hashlib.sha256(json.dumps(jsonable(relation.as_plain()), sort_keys=True).encode())
    for file in sorted(str(file) for file in files):
        digest.update(hashlib.sha256(Path(file).read_bytes()).digest())
    return digest.hexdigest()
