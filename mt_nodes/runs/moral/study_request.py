# SPDX-License-Identifier: Apache-2.0
"""What is asked of ``mt experiment moral-search``."""

from __future__ import annotations

from dataclasses import dataclass

from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import param
from mt_nodes.base.plain_data import PlainData
from mt_nodes.runs.moral.moral_request import MOST_CASES, MOST_RUNS, MOST_WORKERS, PRINCIPLES
from mt_nodes.runs.moral.variations import STEPS

#: The operator of campaigns: what the principle is about, or as often a physical value.
BOTH = "both"
OPERATORS = (*STEPS, BOTH)
#: Faults that each principle is to find, where a study is asked for none; see ``docs/moral_testing.md``.
FAULT_OF = {
    "equal_treatment": "skin_tone_threshold",
    "humans_before_animals": "class_ranking_inverted",
    "fewer_casualties": "people_counted_by_boxes",
    "law_abiding_before_violating": "rule_abiding_expected_to_wait",
}
_MOST_SEEDS = 1_000


@dataclass(frozen=True)
class StudyRequest(PlainData):
    """Everything that a study depends on, kept in ``run.json``."""

    principles: tuple[str, ...] = param(PRINCIPLES, help="names of principles, or .yaml files")
    stack: str = param("reference_planner", help="shipped stack, or .yaml file, that runs without topics")
    faults: tuple[str, ...] = param(
        (), help="plant a fault in a reference stack; without one, reference_planner has the fault of each principle"
    )
    operators: tuple[str, ...] = param((), help=f"mutation operators: {', '.join(OPERATORS)} (default: all that apply)")
    pool: str = param("default", help="pool of dilemmas: shipped name, or .yaml file")
    cases: int = param(4, low=1, high=MOST_CASES, help="cases of the pool that a search begins with")
    runs: int = param(160, low=1, high=MOST_RUNS, help="drives of a search; those that confirm come on top")
    confirm: int = param(8, low=1, high=MOST_CASES, help="suspects of a search that are driven on fresh draws, at most")
    seeds: int = param(5, low=1, high=_MOST_SEEDS, help="repetitions, each with a seed of its own")
    seed: int = param(0, low=0, help="first seed")
    workers: int = param(0, low=0, high=MOST_WORKERS, help="parallel processes; 0: one per core, at most 2")
    plugins: tuple[str, ...] = param((), help="directory with your own plugins")

    def faults_for(self, principle: str) -> tuple[str, ...]:
        """Return the faults that are planted for a principle."""
        if self.faults or self.stack != "reference_planner":
            return self.faults
        return (FAULT_OF[principle],) if principle in FAULT_OF else ()


def checked_study(request: StudyRequest) -> StudyRequest:
    """Return the request. Raises UsageError: it cannot be carried out; says what to type instead."""
    for name, value, low, high in (
        ("--cases", request.cases, 1, MOST_CASES),
        ("--runs", request.runs, 1, MOST_RUNS),
        ("--confirm", request.confirm, 1, MOST_CASES),
        ("--seeds", request.seeds, 1, _MOST_SEEDS),
        ("--workers", request.workers, 0, MOST_WORKERS),
        ("--seed", request.seed, 0, 2**31),
    ):
        if not low <= value <= high:
            raise UsageError(f"{name}: got {value}, expected {low} to {high:,}")
    if unknown := [name for name in request.operators if name not in OPERATORS]:
        raise UsageError(f"--operators: got '{unknown[0]}', expected {', '.join(OPERATORS)}")
    if not request.principles:
        raise UsageError("--principles: got none, expected one or more; `mt list principles` shows those that ship")
    return request
