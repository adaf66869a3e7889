# SPDX-License-Identifier: Apache-2.0
"""Makes the content of a plan: finds the relations of each requirement, and checks that the planned run can decide."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mt_nodes.base import plugins
from mt_nodes.base.errors import UsageError
from mt_nodes.base.wording import counted
from mt_nodes.engine.compatibility import check_requirements
from mt_nodes.engine.plan import ReplayRequest, check_request
from mt_nodes.relations.relation import load_relation, load_suite, sham_for
from mt_nodes.runs.replay.replay_run import Run
from mt_nodes.runs.safety_case.preregistration import frames_needed, plan_content, sha256_of_bags
from mt_nodes.runs.safety_case.requirements import SafetyRequirement
from mt_nodes.stacks.callables import with_faults
from mt_nodes.stacks.stack import load_stack


def planned(
    requirements: Sequence[SafetyRequirement], request: ReplayRequest, drives: int | None, stack_version: str
) -> dict[str, Any]:
    """Return what a plan says.

    ``request``: of the run to come; its bags are the drives, where they are recorded already, its relations those that
    name their requirements themselves. ``drives``: their number, where they are not.
    Raises UsageError: nothing could be tested, the stack cannot be tested so, or so few frames cannot show a rate.
    """
    plugins.add_directories(map(Path, request.plugins))
    linked, names = _linked(requirements, request.relations)
    request = dataclasses.replace(request, relations=names)
    stack = with_faults(load_stack(request.stack, request.stack_settings), request.faults)
    check_request(request, stack)
    suite = load_suite(request.relations, sham_for(stack.inputs), stack.traits)
    check_requirements(suite, stack, over_topics=request.transport == "ros")
    relations = [relation.as_plain() for relation in suite.all]
    if not request.bags:
        number: dict[str, Any] = {"count": drives, "sha256": []}
        return plan_content(linked, request, relations, stack, number, stack_version=stack_version)
    run = Run.make(request, Path())
    _refuse_too_few(linked, run.bundles_to_come)
    known = {"count": len(request.bags), "sha256": sha256_of_bags(request.bags)}
    pairs = run.pairs_to_come
    return plan_content(linked, request, relations, stack, known, stack_version=stack_version, pairs=pairs)


def _linked(
    requirements: Sequence[SafetyRequirement], own: Iterable[str]
) -> tuple[list[SafetyRequirement], tuple[str, ...]]:
    """Return the requirements with the ids of all relations that test them, and the names or files of these relations.

    ``own``: relations that name their requirements in their files.
    """
    ids: dict[str, str] = {}
    tests: dict[str, list[str]] = {one.id: [] for one in requirements}
    for one in requirements:
        for name in one.relations:
            ids[name] = load_relation(name).id
            tests[one.id].append(ids[name])
    for name in own:
        relation = load_relation(name)
        ids[name] = relation.id
        if not (wanted := [named for named in relation.requirement if named in tests]):
            says = ", ".join(relation.requirement) or "none"
            raise UsageError(f"--relations: {name} names the requirements {says}, expected one of {', '.join(tests)}")
        for requirement in wanted:
            tests[requirement].append(relation.id)
    if not ids:
        raise UsageError("got no relation for any requirement: nothing would be tested; name some under `relations`")
    return [dataclasses.replace(one, relations=tuple(dict.fromkeys(tests[one.id]))) for one in requirements], _once(ids)


def _once(ids: Mapping[str, str]) -> tuple[str, ...]:
    """Return one name for each relation."""
    first: dict[str, str] = {}
    for name, identifier in ids.items():
        first.setdefault(identifier, name)
    return tuple(first.values())


def _refuse_too_few(requirements: Iterable[SafetyRequirement], frames: int) -> None:
    for one in requirements:
        if one.relations and frames < frames_needed(one.max_rate):
            raise UsageError(
                f"requirement {one.id}: {counted(frames, 'frame')} cannot show a rate of at most {one.max_rate:g} with "
                f"95 % confidence, {frames_needed(one.max_rate)} can; plan with more, or accept a larger max_rate"
            )
