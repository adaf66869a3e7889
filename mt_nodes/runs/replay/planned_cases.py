# SPDX-License-Identifier: Apache-2.0
"""Whether planned cases can be run: by a request, on its bags, with its stack; and the schedule that they make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mt_nodes.base.errors import UsageError
from mt_nodes.base.wording import counted
from mt_nodes.data.bags.bundles import Source
from mt_nodes.engine.case_plan import CasePlan, load_cases
from mt_nodes.engine.compatibility import incompatibility
from mt_nodes.engine.plan import ReplayRequest
from mt_nodes.engine.schedule import EVERYTHING, Schedule
from mt_nodes.relations.checks.sequence import SequenceCheck
from mt_nodes.relations.relation import Relation, load_relation
from mt_nodes.stacks.stack import Stack


def plan_of(request: ReplayRequest, stack: Stack) -> CasePlan | None:
    """Return the cases of a request, None of one without.

    Raises UsageError: the file is none, or they cannot be run so; names the file and the case.
    """
    if not request.cases:
        return None
    for option, given, expected in (("--pace", request.pace, "lockstep"), ("--draws", request.draws, 1)):
        if given != expected:
            raise UsageError(f"--cases: got {option} {given}, too, expected {expected}: cases say what is drawn")
    plan = load_cases(Path(request.cases))
    if not plan.relations:
        raise UsageError(f"{request.cases}: none of {counted(len(plan.cases), 'case')} has a relation to run")
    for i, case in enumerate(plan.cases):
        if case.relation:
            try:
                _refuse_relation(load_relation(case.relation), stack)
            except UsageError as error:
                raise UsageError(f"{request.cases}: cases[{i}].relation: {error}") from error
    return plan


def schedule_of(plan: CasePlan | None) -> Schedule:
    """Return what is offered on which bundles: the relations of cases on their frames; without cases everything."""
    if plan is None:
        return EVERYTHING
    ids = {"": "", **{name: load_relation(name).id for name in plan.relations}}
    return Schedule([replace(case, relation=ids[case.relation]) for case in plan.cases])


def refuse_missing_frames(plan: CasePlan, request: ReplayRequest, sources: Sequence[Source]) -> None:
    """Refuse cases whose frames are in no bag.

    ``sources``: of all bags, one an episode. Raises UsageError: names the file, the case and what the bag has.
    """
    for i, case in enumerate(plan.cases):
        where = f"{request.cases}: cases[{i}]"
        if case.bag >= len(sources):
            raise UsageError(f"{where}.bag: got {case.bag}, and {counted(len(sources), 'bag')}, numbered from 0")
        source = sources[case.bag]
        count = source.info[source.lead].count
        if request.limit is not None and request.limit <= case.last < count:
            raise UsageError(f"{where}.last: got {case.last}, and --limit {request.limit}; leave --limit out")
        if case.last >= count:
            raise UsageError(
                f"{where}.last: got {case.last}, and {source.reader.path} has {counted(count, 'frame')}, numbered "
                "from 0; are the bags in the order in which they were matched?"
            )


def _refuse_relation(relation: Relation, stack: Stack) -> None:
    if relation.role != "relation":
        raise UsageError(f"'{relation.id}' is the {relation.role}, which is offered on the frames of all cases anyway")
    if isinstance(relation.check, SequenceCheck):
        raise UsageError(
            f"'{relation.id}' judges whole episodes, and a case is a few frames of one: its rates and delays would say "
            "nothing; give it by --relations"
        )
    if reason := incompatibility(relation, stack):
        raise UsageError(f"{reason}; match for it (`mt rules match --stack {stack.name}`), or take the case out")
