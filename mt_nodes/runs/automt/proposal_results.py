# SPDX-License-Identifier: Apache-2.0
"""What came of every proposal: whether its follow-up was valid, and how each stack did, by its own behaviour.

The published code judges every relation as slow-down; here each is judged by what it asks for
(:func:`mt_nodes.rules.prediction_judging.judge`). Each source case is judged once more with a follow-up that equals it,
as keep_current: what is violated there is no answer to anything, and so the floor of false alarms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mt_nodes.base.jsonl import jsonable
from mt_nodes.data.verdict import Judgement
from mt_nodes.relations.checks.base import nothing_to_judge
from mt_nodes.rules.case_planning import CaseFrames
from mt_nodes.rules.ontology import load_ontology
from mt_nodes.rules.prediction_judging import Bounds, judge
from mt_nodes.rules.prompts import Prompts
from mt_nodes.rules.rates import RatedCase
from mt_nodes.rules.validation import Factor, Validation
from mt_nodes.runs.automt.automt_request import CONTROL_BOUND
from mt_nodes.runs.automt.automt_run import ANSWERS, AutomtRun, finished
from mt_nodes.runs.automt.followup_check import FollowupCheck
from mt_nodes.runs.automt.followup_validity import key_of, rate_followups, validation_of
from mt_nodes.runs.automt.model_pool import ModelPool
from mt_nodes.runs.automt.predictions import (
    Both,
    StackPredictions,
    bounds_by_control,
    bounds_of,
    of_stack,
    predicted,
    undisturbed,
)
from mt_nodes.runs.automt.proposals import Proposal, ProposalSet, unit_of
from mt_nodes.runs.replay.replay_run import Run

#: What a follow-up that equals its source asks for.
UNCHANGED = "keep_current"
_VALID = Validation(*[Factor(True, "nothing was changed")] * 3)


@dataclass(frozen=True)
class ProposalResult:
    """A proposal and what came of it."""

    proposal: Proposal
    case: RatedCase

    def as_plain(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        judgements = {stack: _plain(one) for stack, one in self.case.judgements.items()}
        return {**self.proposal.as_plain(), "validation": self.case.validation.as_plain(), "judgements": judgements}


@dataclass(frozen=True)
class Results:
    """All that the tables are made of.

    ``identity``: every source case against itself. ``bound``: kind of the bounds that were used. ``hows``: where from,
    each once. ``usage``: what the language model that looked at follow-ups took.
    """

    proposals: tuple[ProposalResult, ...]
    identity: tuple[RatedCase, ...]
    bound: str
    hows: tuple[str, ...]
    usage: Sequence[Mapping[str, Any]] = ()

    def of(self, region: str, method: str) -> list[RatedCase]:
        """Return what came of a method in a region."""
        return [one.case for one in self.proposals if (one.proposal.region, one.proposal.method) == (region, method)]


class _Judge:
    """Judges cases of several stacks by one kind of bound."""

    def __init__(self, kind: str, tables: Mapping[str, StackPredictions], cases: Sequence[CaseFrames]) -> None:
        self.kind = kind if len(tables) > 1 else CONTROL_BOUND
        self._names, self._tables = list(tables), list(tables.values())
        own = self.kind == CONTROL_BOUND
        self._controls = bounds_by_control(self._tables, cases) if own else [""] * len(tables)
        self.hows: dict[str, None] = {}

    def proposal(self, case: CaseFrames, one: Proposal) -> dict[str, Judgement]:
        """Return how each stack did on what was proposed."""
        if one.statement is None or not one.relation:
            return {}
        return self._all(case, one.statement.behaviour, predicted(self._tables, case, one.relation, one.round))

    def identity(self, case: CaseFrames) -> RatedCase:
        """Return how each stack did on what was not changed."""
        return RatedCase(unit_of(case), _VALID, self._all(case, UNCHANGED, undisturbed(self._tables, case)))

    def _all(self, case: CaseFrames, behaviour: str, both: Both) -> dict[str, Judgement]:
        source, followup = both
        # Over the whole case, whichever of its frames could be changed.
        bounds = bounds_of(self.kind, undisturbed(self._tables, case)[0], self._controls)
        pairs = [(of_stack(source, row), of_stack(followup, row)) for row in range(len(bounds))]
        return {
            name: self._one(behaviour, pair, bound)
            for name, pair, bound in zip(self._names, pairs, bounds, strict=True)
        }

    def _one(self, behaviour: str, both: Both, bounds: Bounds | str) -> Judgement:
        if not both[0].speed_mps.size:
            return nothing_to_judge("no follow-up of it was answered")
        if isinstance(bounds, str):
            self.hows.setdefault(bounds)
            return nothing_to_judge(bounds)
        self.hows.setdefault(bounds.how)
        return judge(behaviour, *both, bounds)[0]


def judge_all(
    run: AutomtRun,
    proposed: ProposalSet,
    replays: Mapping[str, Run],
    progress: Callable[[int], None] = lambda count: None,
) -> Results:
    """Return what came of every proposal. Raises MtError: the results of a replay, or a bag, are damaged.

    Args:
        replays: the finished replay into each stack, by its name.
        progress: is told of each follow-up that was looked at.
    """
    words = load_ontology()
    cases = {case.name: case for case in proposed.cases}
    # What is sent is the same for all stacks, but not all of it to one that broke down, or whose arms had to agree.
    whole = max(replays.values(), key=lambda one: (finished(one.out), one.stack.stateless))
    request = run.request
    with ModelPool(request.models_file, run.out / ANSWERS) as pool:
        check = None
        if request.check_model:
            check = FollowupCheck(pool.named(request.check_model, "checking follow-ups"), Prompts(words))
        followups = rate_followups(whole, proposed, progress, check)
        usage = tuple(pool.usage())
    judge = _Judge(
        request.bound, {name: StackPredictions.load(one.out) for name, one in replays.items()}, proposed.cases
    )
    results = []
    for one in proposed.proposals:
        case = cases[one.case]
        validation = validation_of(one, case, followups.get(key_of(one)), words)
        results.append(ProposalResult(one, RatedCase(unit_of(case), validation, judge.proposal(case, one))))
    identity = tuple(judge.identity(case) for case in proposed.cases)
    return Results(tuple(results), identity, judge.kind, tuple(judge.hows), usage)


def _plain(one: Judgement) -> dict[str, Any]:
    fields = ("measured", "bound", "margin", "unit", "reason")
    return {"outcome": one.outcome.value, **{name: jsonable(getattr(one, name)) for name in fields}}
