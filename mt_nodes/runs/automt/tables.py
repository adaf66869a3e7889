# SPDX-License-Identifier: Apache-2.0
"""The paper's tables VIII and IX of what was judged, the floor beside them, what a run came to: ``automt.json``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mt_nodes.base.errors import ExitCode
from mt_nodes.base.stats.cluster_sums import ClusterSums, Unit
from mt_nodes.base.stats.exceedance import exceedance, needed_in
from mt_nodes.base.stats.intervals import at_least, holm
from mt_nodes.data.verdict import Outcome, RelationOutcome
from mt_nodes.engine.summary.outcomes import PairTally, RelationEvidence, relation_outcome
from mt_nodes.engine.summary.summary import run_exit
from mt_nodes.rules.published_figures import published
from mt_nodes.rules.rates import NOT_RUN, RatedCase, rate, validation_table, violation_table
from mt_nodes.runs.automt.automt_request import METHODS, OURS, AutomtRequest
from mt_nodes.runs.automt.model_pool import summed
from mt_nodes.runs.automt.proposal_results import Results
from mt_nodes.runs.automt.proposals import Proposal, ProposalSet, plain_cut

#: 2: ``usage`` is a list, a row for each task and model.
SCHEMA = 2
#: So many valid cases must be decided before a stack is said to pass or to fail, as of the pairs of a relation.
LEAST_DECIDED = 20
Table = dict[str, Any]
_PAPER = "figures of the paper: of its data, its edited images and its driving models, judged by its public code"


def tabulate(
    request: AutomtRequest,
    stacks: Sequence[str],
    proposed: ProposalSet,
    results: Results,
    summaries: Mapping[str, Mapping[str, Any]],
) -> Table:
    """Return everything that the experiment came to.

    ``stacks``: names. ``summaries``: of the replay into each stack.
    """
    standing = _standing(stacks, results)
    code, why = _exit(standing, summaries)
    return {
        "schema": SCHEMA,
        "experiment": "automt",
        "request": request.as_plain(),
        "stacks": list(stacks),
        "sources": len(proposed.cases),
        "bound": {"asked": request.bound, "kind": results.bound, "from": list(results.hows)},
        "not_run": dict(proposed.not_run),
        "usage": summed(proposed.usage, results.usage),
        "regions": {region: _region(region, request, stacks, proposed, results) for region in request.regions},
        "identity": {stack: _identity(stack, results.identity) for stack in stacks},
        "standing": standing,
        "replays": {
            name: {"outcomes": summary["outcomes"], "exit_code": summary["exit_code"], "exit_why": summary["exit_why"]}
            for name, summary in summaries.items()
        },
        "exit_code": int(code),
        "exit_why": why,
        "cases": list(map(plain_cut, proposed.cases)),
        "judged": [one.as_plain() for one in results.proposals],
    }


def methods_of(request: AutomtRequest) -> list[str]:
    """Return the methods that are asked for, in the order of the paper's tables with ours first."""
    return [method for method in METHODS if method in request.methods]


def _region(
    region: str, request: AutomtRequest, stacks: Sequence[str], proposed: ProposalSet, results: Results
) -> Table:
    methods: dict[str, list[RatedCase] | None] = {
        method: None if method in proposed.not_run else results.of(region, method) for method in methods_of(request)
    }
    paper = published()
    return {
        "counts": {
            method: _counts(proposed.of(region, method)) for method in methods if method not in proposed.not_run
        },
        "validation": validation_table(methods),
        "violation": _with_decided(violation_table(methods, stacks), methods, stacks),
        "published": {
            "of": _PAPER,
            "cases": paper.cases[region],
            "rounds": paper.rounds,
            "validation": paper.validation[region],
            "violation": paper.violation[region],
            "notes": list(paper.notes),
        },
    }


def _counts(proposals: Sequence[Proposal]) -> Table:
    """Return how many cases a method was given, how many of them had a relation to run, and how many different ones."""
    run = [one.relation for one in proposals if one.relation]
    behaviours = [one.statement.behaviour for one in proposals if one.statement and one.relation]
    return {
        "cases": len(proposals),
        "run": len(run),
        "relations": len(set(run)),
        "behaviours": {name: behaviours.count(name) for name in sorted(set(behaviours))},
    }


def _with_decided(table: Table, methods: Mapping[str, Sequence[RatedCase] | None], stacks: Sequence[str]) -> Table:
    """Add how many of the valid cases could be judged at all: of a stack that stands no slowing down can be asked."""
    return {
        method: row
        if row == NOT_RUN
        else {stack: {**row[stack], "decided": _tally(methods[method] or (), stack).decided} for stack in stacks}
        for method, row in table.items()
    }


def _identity(stack: str, cases: Sequence[RatedCase]) -> Table:
    floor = rate(cases, lambda case: case.violated(stack))
    return {"per_case": floor.as_plain(), "decided": _tally(cases, stack).decided}


def _tally(cases: Sequence[RatedCase], stack: str) -> PairTally:
    decided = [
        case.judgements[stack]
        for case in cases
        if case.validation.valid and stack in case.judgements and case.judgements[stack].outcome.decided
    ]
    return PairTally(len(decided), sum(one.outcome is Outcome.VIOLATED for one in decided))


def _standing(stacks: Sequence[str], results: Results) -> dict[str, Table]:
    """Return how each stack ended: violations of our relations, or of all without ours, against the floor."""
    ours = [one.case for one in results.proposals if one.proposal.method == OURS]
    cases = ours or [one.case for one in results.proposals]
    ended = {stack: _evidence(cases, results.identity, stack, len(stacks)) for stack in stacks}
    known = {stack: e.p_adjusted for stack, e in ended.items() if e.p_adjusted is not None}
    adjusted = dict(zip(known, holm(list(known.values())), strict=True))
    found = {}
    for stack, alone in ended.items():
        evidence = replace(alone, p_adjusted=at_least(adjusted.get(stack), alone.p))
        outcome, why = relation_outcome(evidence)
        found[stack] = {
            "outcome": outcome.value,
            "why": why,
            **vars(evidence.pairs),
            "identity": vars(evidence.control),
            "p": evidence.p,
            "p_adjusted": evidence.p_adjusted,
        }
    return found


def _evidence(cases: Sequence[RatedCase], identity: Sequence[RatedCase], stack: str, family: int) -> RelationEvidence:
    """Return what a stack's valid cases come to beside those in which nothing was changed, the tests not adjusted."""
    changed, unchanged = _by_unit(cases, stack), _by_unit(identity, stack)
    sums = ClusterSums(needed_in(family))
    for unit in (unit for unit in changed if unit in unchanged):
        sums.add(
            unit, changed[unit].violated * unchanged[unit].decided - unchanged[unit].violated * changed[unit].decided
        )
    alone, among = (exceedance(sums, of) if len(sums) else None for of in (1, family))
    return RelationEvidence(
        kind="expected",
        min_decided=LEAST_DECIDED,
        frames=len(changed),
        pairs=_tally(cases, stack),
        control=_tally(identity, stack),
        sham=PairTally(),
        p_background=alone and alone.p,
        p=alone and alone.p,
        p_adjusted=among and among.p,
        test=among.test if among else "no case decided in both",
        more=among.more if among else "",
    )


def _by_unit(cases: Sequence[RatedCase], stack: str) -> dict[Unit, PairTally]:
    units: dict[Unit, list[RatedCase]] = {}
    for case in cases:
        units.setdefault(case.unit, []).append(case)
    tallies = {unit: _tally(group, stack) for unit, group in units.items()}
    return {unit: tally for unit, tally in tallies.items() if tally.decided}


def _exit(
    standing: Mapping[str, Mapping[str, Any]], summaries: Mapping[str, Mapping[str, Any]]
) -> tuple[ExitCode, str]:
    pairs = {"ERROR": sum(summary["outcomes"].get("ERROR", 0) for summary in summaries.values())}
    trouble = {
        key: next((summary[key] for summary in summaries.values() if summary.get(key)), None)
        for key in ("infrastructure", "isolation", "usage")
    }
    interrupted = any(summary["interrupted"] for summary in summaries.values())
    outcomes = {name: RelationOutcome(row["outcome"]) for name, row in standing.items()}
    deaths = [death for summary in summaries.values() for death in summary.get("deaths", ())]
    return run_exit(pairs, outcomes, {**trouble, "interrupted": interrupted, "deaths": deaths})
