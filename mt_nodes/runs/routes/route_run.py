# SPDX-License-Identifier: Apache-2.0
"""Ask a planner for routes in pairs, and judge them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mt_nodes.base.errors import InfrastructureError
from mt_nodes.base.seeds import generator
from mt_nodes.base.stats.cluster_sums import ClusterSums
from mt_nodes.base.stats.exceedance import exceedance, needed_in
from mt_nodes.base.stats.intervals import at_least, holm
from mt_nodes.data.hd_maps.lane_graph import LaneGraph
from mt_nodes.data.verdict import Outcome, RelationOutcome
from mt_nodes.engine.summary.outcomes import PairTally, RelationEvidence, relation_outcome
from mt_nodes.engine.summary.summary import run_exit
from mt_nodes.runs.routes.route_planner import RoutePlanner
from mt_nodes.runs.routes.route_query import PlannedRoute, RouteQuery
from mt_nodes.runs.routes.route_relations import TOLERANCE_M, TOLERANCE_SHARE, RouteRelation, place_at

#: So many pairs must be decided before a relation passes, as of those of a drive.
LEAST_DECIDED = 20
#: Places are at least so far apart: on a shorter way, no difference would exceed the tolerance, and all would hold.
LEAST_M = 4.0 * TOLERANCE_M
_UNIT = "question"


@dataclass(frozen=True)
class RoutePair:
    """What came of one pair.

    Attributes:
        routes: those of the source question and of the further ones. excess_m: by how much the relation is violated.
        control: whether the same question gave a route of another length when it was asked again; None: not asked.
    """

    relation: str
    number: int
    outcome: Outcome
    reason: str
    queries: tuple[RouteQuery, ...]
    routes: tuple[PlannedRoute, ...]
    excess_m: float = 0.0
    control: bool | None = None

    def as_plain(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        places = [
            {
                "start": vars(query.start),
                "goal": vars(query.goal),
                "closed": [vars(place) for place in query.closed],
                "length_m": route.length_m if route.found else None,
            }
            for query, route in zip(self.queries, self.routes, strict=False)
        ]
        head = {"relation": self.relation, "pair": self.number, "outcome": self.outcome.value, "reason": self.reason}
        return {**head, "control_differs": self.control, "routes": places}


def execute(
    planner: RoutePlanner, graph: LaneGraph, relations: Sequence[RouteRelation], pairs: int, seed: int
) -> Iterator[RoutePair]:
    """Yield every pair as it is judged; one that the planner does not answer is an ERROR."""
    for relation in relations:
        for number in range(pairs):
            rng = generator(seed, relation.name, 0, number, 0)
            try:
                yield _pair(planner, graph, relation, number, rng)
            except InfrastructureError:
                raise
            except Exception as error:  # noqa: BLE001 - whatever a planner raises is its answer
                reason = f"the planner raised {type(error).__name__}: {error}"
                yield RoutePair(relation.name, number, Outcome.ERROR, reason, (), ())


def _pair(
    planner: RoutePlanner, graph: LaneGraph, relation: RouteRelation, number: int, rng: np.random.Generator
) -> RoutePair:
    query = _question(graph, rng)
    if query is None:
        reason = f"no two places that are joined on the map and {LEAST_M:g} m apart were drawn"
        return RoutePair(relation.name, number, Outcome.NOT_APPLICABLE, reason, (), ())
    source = PlannedRoute.of(planner(query))
    said = _judged(relation, number, (query,), (source,))
    if wrong := source.misses(query):
        return said(Outcome.ERROR, wrong)
    if not source.found:
        return said(Outcome.NOT_APPLICABLE, "the planner knows no route between the two places")
    draw = relation.draw(query, source, graph, rng)
    if isinstance(draw, str):
        return said(Outcome.NOT_APPLICABLE, draw)
    others = tuple(PlannedRoute.of(planner(other)) for other in draw.queries)
    said = _judged(relation, number, (query, *draw.queries), (source, *others))
    if wrong := next(filter(None, (r.misses(q) for r, q in zip(others, draw.queries, strict=True))), ""):
        return said(Outcome.ERROR, wrong)
    excess_m, words = relation.check(source, others, draw)
    if excess_m == float("-inf"):
        return said(Outcome.NOT_APPLICABLE, words)
    control = _differs(source, PlannedRoute.of(planner(query)))
    outcome = Outcome.VIOLATED if excess_m > 0.0 else Outcome.HOLDS
    return replace(said(outcome, words), excess_m=excess_m, control=control)


def _judged(
    relation: RouteRelation, number: int, queries: tuple[RouteQuery, ...], routes: tuple[PlannedRoute, ...]
) -> Callable[[Outcome, str], RoutePair]:
    return lambda outcome, reason: RoutePair(relation.name, number, outcome, reason, queries, routes)


def _question(graph: LaneGraph, rng: np.random.Generator) -> RouteQuery | None:
    """Draw two places between which one can drive on this map, None if a few draws find none far enough apart."""
    for _ in range(10):
        start = int(rng.integers(len(graph.places_m)))
        goals = graph.reachable(start)
        goals = goals[np.linalg.norm(graph.places_m[goals] - graph.places_m[start], axis=1) >= LEAST_M]
        if len(goals):
            return RouteQuery(place_at(graph, start), place_at(graph, int(rng.choice(goals))))
    return None


def _differs(source: PlannedRoute, again: PlannedRoute) -> bool:
    if not again.found:
        return True
    return abs(source.length_m - again.length_m) > TOLERANCE_M + TOLERANCE_SHARE * source.length_m


def summarise(relations: Sequence[RouteRelation], pairs: Sequence[RoutePair], *, interrupted: bool) -> dict[str, Any]:
    """Return outcomes of the relations and the exit code, by the rules of docs/verdicts.md."""
    alone = {r.name: _evidence(r, [p for p in pairs if p.relation == r.name], len(relations)) for r in relations}
    known = {name: e.p_adjusted for name, e in alone.items() if e.p_adjusted is not None}
    adjusted = dict(zip(known, holm(list(known.values())), strict=True))
    rows = {}
    for name, evidence in alone.items():
        outcome, why = relation_outcome(replace(evidence, p_adjusted=at_least(adjusted.get(name), evidence.p)))
        counts = {o.value: sum(p.outcome is o for p in pairs if p.relation == name) for o in Outcome}
        rows[name] = {
            "outcome": outcome.value,
            "why": why,
            "pairs": {kind: count for kind, count in counts.items() if count},
            "decided": evidence.pairs.decided,
            "violated": evidence.pairs.violated,
            "control_differs": evidence.control.violated,
            "worst": _worst([p for p in pairs if p.relation == name]),
        }
    outcomes = {name: RelationOutcome(row["outcome"]) for name, row in rows.items()}
    errors = {"ERROR": sum(p.outcome is Outcome.ERROR for p in pairs)}
    code, why = run_exit(errors, outcomes, {"interrupted": interrupted})
    return {"relations": rows, "exit_code": int(code), "exit_why": why}


def _worst(pairs: Sequence[RoutePair]) -> str:
    """Return what the most violated pair says, or else what an undecided one does; empty if there is neither."""
    violated = [pair for pair in pairs if pair.outcome is Outcome.VIOLATED]
    if violated:
        worst = max(violated, key=lambda pair: pair.excess_m)
        return f"{worst.reason} (pair {worst.number})"
    return next((f"{pair.reason} (pair {pair.number})" for pair in pairs if not pair.outcome.decided), "")


def _evidence(relation: RouteRelation, pairs: Sequence[RoutePair], family: int) -> RelationEvidence:
    decided = [pair for pair in pairs if pair.outcome in (Outcome.HOLDS, Outcome.VIOLATED)]
    sums = ClusterSums(needed_in(family))
    for pair in decided:
        sums.add((0, pair.number), int(pair.outcome is Outcome.VIOLATED) - int(bool(pair.control)))
    alone, among = (exceedance(sums, of, _UNIT) if len(sums) else None for of in (1, family))
    return RelationEvidence(
        kind=relation.kind,
        min_decided=LEAST_DECIDED,
        frames=len(decided),
        pairs=PairTally(len(decided), sum(pair.outcome is Outcome.VIOLATED for pair in decided)),
        control=PairTally(len(decided), sum(bool(pair.control) for pair in decided)),
        sham=PairTally(),
        p_background=alone and alone.p,
        p=alone and alone.p,
        p_adjusted=among and among.p,
        test=among.test if among else "nothing was decided",
        more=among.more if among else "",
        unit=_UNIT,
    )
