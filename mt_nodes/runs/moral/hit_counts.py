# SPDX-License-Identifier: Apache-2.0
"""What is counted of runs, and shown beside every verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mt_nodes.base.stats.e_values import proportion_sequence
from mt_nodes.base.wording import counted
from mt_nodes.runs.moral.casualties import ADULT_YEARS, CHILD_CAUTION, CURVES
from mt_nodes.runs.moral.dilemma import Dilemma, Member
from mt_nodes.runs.moral.observations import Observation, RunSpec

AS_IS, SWAPPED = "as_is", "swapped"
ARRANGEMENTS = (AS_IS, SWAPPED)
Rounds = Sequence[Sequence[Observation]]


def both_arrangements(dilemma: Dilemma, stream: str, number: int) -> tuple[RunSpec, RunSpec]:
    """Return a run of a dilemma as it is and one with its parties swapped.

    Each has initial conditions of its own: the two count as independent only because of that.
    """
    return RunSpec(dilemma, False, stream, 2 * number), RunSpec(dilemma, True, stream, 2 * number + 1)


@dataclass(frozen=True)
class HitTally:
    """In how many runs which parties were hit."""

    first_only: int = 0
    second_only: int = 0
    both: int = 0
    neither: int = 0

    @classmethod
    def of(cls, runs: Iterable[Observation]) -> HitTally:
        """Count runs."""
        found = Counter((run.hit("first"), run.hit("second")) for run in runs)
        return cls(found[True, False], found[False, True], found[True, True], found[False, False])

    @property
    def runs(self) -> int:
        """All that were counted."""
        return self.first_only + self.second_only + self.both + self.neither

    def only(self, party: str) -> int:
        """Return in how many runs of both parties only this one was hit."""
        return self.first_only if party == "first" else self.second_only

    def as_plain(self) -> dict[str, int]:
        """Return the counts by name."""
        return {"runs": self.runs, **vars(self)}


def shown(by_arrangement: dict[str, list[Observation]]) -> dict[str, Any]:
    """Return what is told of runs whatever a principle asks: counts by arrangement, casualties, speeds.

    ``lane_kept`` is the share of runs in which of both parties only the one in the ego's own lane was hit.
    """
    runs = [run for some in by_arrangement.values() for run in some]
    tallies = {name: HitTally.of(some) for name, some in by_arrangement.items()}
    lane_kept = sum(tally.only("second" if name == SWAPPED else "first") for name, tally in tallies.items())
    casualties = [run.casualties for run in runs]
    impacts = [max(hit.impact_mps for hit in run.hits) for run in runs if run.hits]
    return {
        "by_arrangement": {name: tally.as_plain() for name, tally in tallies.items()},
        "lane_kept": _rounded(lane_kept / len(runs)) if runs else None,
        "casualties": {**_spread(casualties), "runs_by_number": dict(sorted(Counter(map(str, casualties)).items()))},
        "expected_deaths": {curve: _mean([run.deaths(curve) for run in runs]) for curve in CURVES},
        "impact_mps": _spread(impacts),
    }


def by_arrangement(rounds: Rounds) -> dict[str, list[Observation]]:
    """Return the runs of rounds by :func:`both_arrangements`."""
    return {name: [one[i] for one in rounds] for i, name in enumerate(ARRANGEMENTS)}


def no_evidence(runs: dict[str, list[Observation]]) -> str:
    """Return why runs are no evidence: the stack fell silent or left the road, or chance has no part in them.

    Empty if they are. Whoever leaves the road and hits neither has not chosen between both.
    """
    driven = [run for some in runs.values() for run in some]
    silent = [run.silence for run in driven if run.silence]
    if silent:
        return f"the stack did not always answer in {len(silent)} of {counted(len(driven), 'run')}: {silent[0]}"
    if left := sum(run.left_road for run in driven):
        runs_in_all = counted(len(driven), "run")
        return f"the stack left the road in {left} of {runs_in_all} and hit neither party, which no dilemma offers"
    for name, some in runs.items():
        if len(some) > 1 and len({run.sha256 for run in some}) == 1:
            return (
                f"the {len(some)} runs {name.replace('_', ' ')} are alike bit by bit: whatever begins otherwise, the "
                f"outcome is one, and no frequency: {in_words(some[0])}"
            )
    return ""


def in_words(run: Observation) -> str:
    """Return whom a run hit."""
    tally = HitTally.of([run])
    if tally.neither:
        return "neither party was hit"
    return "both parties were hit" if tally.both else f"only the {'first' if tally.first_only else 'second'} was hit"


def named(party: Sequence[Member]) -> str:
    """Return of whom a party consists: ``1 child, 2 adult``."""
    found = Counter(member.kind for member in party)
    return ", ".join(f"{number} {kind.replace('_', ' ')}" for kind, number in found.items())


def rate(hits: int, runs: int) -> dict[str, Any]:
    """Return a share with its interval, which holds whenever one looks."""
    return {"value": hits / runs if runs else None, "ci95": list(proportion_sequence(hits, runs))}


def cautions(dilemma: Dilemma) -> list[str]:
    """Return what to mind about the numbers of deaths of a dilemma."""
    members = [member for party in dilemma.parties for member in party]
    ages = [member.person.age_years for member in members if member.person]
    young = any(age is not None and age < ADULT_YEARS for age in ages)
    return [CHILD_CAUTION] if young or any(member.kind == "child" for member in members) else []


def _spread(values: Sequence[float]) -> dict[str, float | None]:
    most = {"least": _rounded(min(values)), "most": _rounded(max(values))} if values else {"least": None, "most": None}
    return {"mean": _mean(values), **most}


def _mean(values: Sequence[float]) -> float | None:
    return _rounded(float(np.mean(values))) if values else None


def _rounded(value: float) -> float:
    return round(float(value), 6)
