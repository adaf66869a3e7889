# SPDX-License-Identifier: Apache-2.0
"""What a campaign came to: lines of its journal, ``summary.json``, the exit code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mt_nodes.base.params import plain
from mt_nodes.data.verdict import SCHEMA, RelationOutcome
from mt_nodes.engine.summary.summary import run_exit
from mt_nodes.runs.moral.base import HOLDS, UNKNOWN, VIOLATED, DilemmaCase
from mt_nodes.runs.moral.moral_run import EXPERIMENT
from mt_nodes.runs.moral.principle import Principle
from mt_nodes.runs.moral.trial import Trial

NOT_APPLICABLE = "not_applicable"
VERDICTS = (HOLDS, VIOLATED, UNKNOWN, NOT_APPLICABLE)
#: What journals and tables call them.
OUTCOMES = {HOLDS: "HOLDS", VIOLATED: "VIOLATED", UNKNOWN: "INCONCLUSIVE", NOT_APPLICABLE: "NOT_APPLICABLE"}


@dataclass(frozen=True, eq=False)
class DilemmaResult:
    """How a case ended.

    Attributes:
        trial: None where it is not applicable. dilemma: why there is something to choose, empty where there is not.
        p_holds, p_violated: adjusted for the number of cases; None where it is not applicable.
    """

    name: str
    principle: str
    case: DilemmaCase
    verdict: str
    reason: str
    trial: Trial | None = None
    dilemma: str = ""
    p_holds: float | None = None
    p_violated: float | None = None

    @property
    def line(self) -> dict[str, Any]:
        """Its line of the journal."""
        trial = self.trial
        return {
            "type": "case",
            "case": self.name,
            "principle": self.principle,
            "outcome": OUTCOMES[self.verdict],
            "reason": self.reason,
            "changed": self.case.changed,
            "source": plain(self.case.source),
            "followup": plain(self.case.followup),
            "dilemma": self.dilemma,
            "stream": trial.stream if trial else None,
            "rounds": len(trial.rounds) if trial else 0,
            "runs": trial.runs if trial else 0,
            "p_holds": self.p_holds,
            "p_violated": self.p_violated,
            "numbers": plain(trial.evidence.numbers) if trial else {},
        }


@dataclass(frozen=True, eq=False)
class PrincipleResult:
    """How a principle ended, with its cases, and what a search for more looked at."""

    principle: Principle
    outcome: RelationOutcome
    why: str
    results: Sequence[DilemmaResult]
    searched: Mapping[str, int]

    @property
    def line(self) -> dict[str, Any]:
        """Its line of the journal."""
        counted = Counter(result.verdict for result in self.results)
        return {
            "type": "principle",
            "principle": self.principle.id,
            "title": self.principle.title,
            "outcome": self.outcome.value,
            "why": self.why,
            "kind": self.principle.kind,
            "cases": len(self.results),
            **{verdict: counted[verdict] for verdict in VERDICTS},
            "runs": sum(result.trial.runs for result in self.results if result.trial),
            "search": dict(self.searched),
            "min_decided": self.principle.min_decided,
            "alpha": self.principle.alpha,
            "because": self.principle.because,
            "sources": list(self.principle.sources),
            "contested": self.principle.contested,
        }


@dataclass(frozen=True)
class Costs:
    """What a campaign took.

    Attributes:
        runs: distinct ones that were driven, those of searches included.
        seconds: that this sitting took; what each decided case took is not known where there was one before.
        budget: what it might take; see :func:`mt_nodes.runs.moral.budget.budget_of`.
        resumed: whether runs of a sitting before were found.
    """

    runs: int
    seconds: float
    budget: Mapping[str, Any]
    resumed: bool = False


def summary_of(
    concluded: Sequence[PrincipleResult],
    revealing: Sequence[Mapping[str, Any]],
    costs: Costs,
    trouble: Mapping[str, Any],
) -> dict[str, Any]:
    """Return ``summary.json``. ``revealing``: lines of issue-revealing cases. ``trouble``: what ended it early."""
    lines = [result.line for one in concluded for result in one.results]
    outcomes = Counter(line["outcome"] for line in lines)
    decided = outcomes[OUTCOMES[HOLDS]] + outcomes[OUTCOMES[VIOLATED]]
    endings = {"infrastructure": None, "interrupted": False, "isolation": None, "usage": None, **trouble}
    code, why = run_exit(outcomes, {one.principle.id: one.outcome for one in concluded}, endings)
    return {
        "schema": SCHEMA,
        "experiment": EXPERIMENT,
        "offered": len(lines),
        "outcomes": {outcome: outcomes[outcome] for outcome in OUTCOMES.values() if outcomes[outcome]},
        "exit_code": int(code),
        "exit_why": why,
        **endings,
        "principles": {one.principle.id: _without(one.line, "type", "principle") for one in concluded},
        "cases": {line["case"]: _without(line, "type", "case", "source", "followup") for line in lines},
        "revealing": [_without(line, "type", "source", "followup", "numbers") for line in revealing],
        "runs": costs.runs,
        "budget": dict(costs.budget),
        "seconds": round(costs.seconds, 1),
        "decided": decided,
        "runs_per_decided": round(costs.runs / decided, 1) if decided else None,
        "seconds_per_decided": round(costs.seconds / decided, 2) if decided and not costs.resumed else None,
    }


def _without(line: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in line.items() if key not in keys}
