# SPDX-License-Identifier: Apache-2.0
"""Makes the content of a plan: finds the relations of each requirement, and checks that the planned run can decide."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mt_nodes.base import plugins
from mt_nodes.base.errors import UsageError
from mt_nodes.base.stats.cluster_sums import MIN_CLUSTERS, Clusters, ClusterSums
from mt_nodes.base.stats.exceedance import needed_in
from mt_nodes.base.stats.intervals import interval_of, more_for_upper
from mt_nodes.base.wording import counted
from mt_nodes.engine.compatibility import check_requirements
from mt_nodes.engine.plan import ReplayRequest, check_request
from mt_nodes.relations.relation import load_relation, load_suite, sham_for
from mt_nodes.runs.replay.replay_run import Run
from mt_nodes.runs.safety_case.preregistration import plan_content, sha256_of_bags
from mt_nodes.runs.safety_case.requirements import SafetyRequirement
from mt_nodes.stacks.callables import with_faults
from mt_nodes.stacks.stack import load_stack

#: So many times as many drives are looked at, to say how many more would do.
_MOST_TIMES = 400


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
    _refuse_too_few(linked, run)
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


def observations(run: Run) -> Clusters:
    """Return what counts as one observation of a planned run, each decided and clean: frames, scenes, blocks or drives.

    The same as :class:`~mt_nodes.engine.summary.arm_sums.ArmSums` will find if every pair is decided.
    """
    sums = ClusterSums(needed_in(len(run.suite.relations)), 2)
    for bundle in itertools.chain.from_iterable(episode() for episode in run.episodes):
        if bundle.scene is not None:
            sums.one = "scene"
        sums.add((bundle.episode, bundle.index if bundle.scene is None else bundle.scene), 0, 1)
    return sums.enough(MIN_CLUSTERS)


def _refuse_too_few(requirements: Iterable[SafetyRequirement], run: Run) -> None:
    """Refuse drives that cannot show a rate even if no pair is violated."""
    clusters = observations(run)
    best = interval_of(clusters)
    for one in requirements:
        if not one.relations or (best is not None and best.high <= one.max_rate):
            continue
        upper = 1.0 if best is None else best.high
        more = more_for_upper(clusters, one.max_rate, _MOST_TIMES) if best else None
        needed = f"plan with {counted(more, f'more {clusters.one}')}" if more else "plan with far more"
        raise UsageError(
            f"requirement {one.id}: even without a violation these drives ({clusters}) show only that at most "
            f"{100 * upper:.3g} % of pairs are violated (95 % confidence), {100 * one.max_rate:g} % are accepted; "
            f"{needed}, or accept a larger max_rate"
        )
