# SPDX-License-Identifier: Apache-2.0
"""What a search of dilemmas finds: per principle, per mutation operator, with and without guidance, over several seeds.

A search begins with cases of the pool, breeds others by one mutation operator and ends after a number of runs, whatever
they take. The first of its suspects are then driven on fresh draws until they are decided: those that are violated are
issue-revealing cases. As a search is to find diverse ones, it is measured by how many sorts of them it finds: cases
that differ in what they are about, or in how they were driven. With guidance, children that come near to a violation or
are driven in a new way become parents; without, parents are drawn evenly from the cases it began with. Both have the
same seed, cases and budget.

A search is a function of what was asked and of what its runs came to, no clock takes part. ``study.jsonl`` has a line
for each, and a study that was cut short goes on from there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from mt_nodes.base.jsonl import LineFile, read_lines
from mt_nodes.runs.moral.base import VIOLATED, Expectation
from mt_nodes.runs.moral.case_order import cases_in_turn
from mt_nodes.runs.moral.dilemma import Dilemma
from mt_nodes.runs.moral.dilemma_filter import Check, Refusing
from mt_nodes.runs.moral.pool import load_pool
from mt_nodes.runs.moral.principle import Principle
from mt_nodes.runs.moral.principle_verdicts import enough, verdicts
from mt_nodes.runs.moral.revealing_cases import sorts
from mt_nodes.runs.moral.runs import Runs
from mt_nodes.runs.moral.search import PROBES, Breed, search
from mt_nodes.runs.moral.study_request import BOTH, StudyRequest
from mt_nodes.runs.moral.trial import Drive, Driving, Trial, settle
from mt_nodes.runs.moral.variations import STEPS, bred

FILE, RUNS = "study.jsonl", "runs"
Line = dict[str, Any]
#: Opens what drives runs and checks dilemmas, for a principle and a seed.
OpenDrivers = Callable[["StudyCell"], Any]


@dataclass(frozen=True)
class StudyCell:
    """One search: of a principle, by a mutation operator, guided or not, with a seed."""

    principle: str
    operator: str
    guided: bool
    seed: int


def cells_of(request: StudyRequest, principles: Sequence[Principle]) -> list[StudyCell]:
    """Return every search of a study: those of one principle and seed one after another, as they share runs."""
    return [
        StudyCell(principle.id, operator, guided, request.seed + number)
        for principle in principles
        for number in range(request.seeds)
        for operator in operators_of(principle, request.operators)
        for guided in (True, False)
    ]


def operators_of(principle: Principle, asked: Sequence[str]) -> list[str]:
    """Return the mutation operators that make cases of a principle: its own, physical values, and both mixed."""
    own = (principle.expect.varies, "physical", BOTH)
    return [name for name in own if not asked or name in asked]


def breed_by(operator: str) -> Breed:
    """Return what makes the next dilemma by a mutation operator alone."""
    if operator == BOTH:
        return bred

    def step(dilemma: Dilemma, expect: Expectation, rng: np.random.Generator) -> Dilemma:
        return STEPS[operator](dilemma, rng)

    return step


def carry_out_study(
    out: Path,
    request: StudyRequest,
    principles: Sequence[Principle],
    open_drivers: OpenDrivers,
    progress: Callable[[int, int, Line], None] = lambda done, all_of_them, line: None,
) -> list[Line]:
    """Carry out every search that is not in ``study.jsonl`` yet, and return the lines of all.

    Raises MtError: the stack died, or the results cannot be written.

    Args:
        out: the directory of the study. open_drivers: context manager of what drives runs and checks dilemmas.
        progress: called after each search with how many are done, of how many, and its line.
    """
    by_id = {principle.id: principle for principle in principles}
    cells = cells_of(request, principles)
    done = {_cell_of(line): line for line in read_lines(out / FILE)} if (out / FILE).is_file() else {}
    file = LineFile(out / FILE)
    try:
        for cell in cells:
            if cell not in done:
                with open_drivers(cell) as (drive, check):
                    line = one_search(out, request, cell, by_id[cell.principle], drive, check)
                file.append(line)
                done[cell] = line
            progress(len(done), len(cells), done[cell])
    finally:
        file.close()
    return [done[cell] for cell in cells]


def one_search(
    out: Path, request: StudyRequest, cell: StudyCell, principle: Principle, drive: Drive, check: Check
) -> Line:
    """Carry out one search and return what it found."""
    began_s = time.monotonic()
    condition = {"experiment": "moral-search", "principle": cell.principle, "seed": cell.seed}
    path = out / RUNS / f"{cell.principle}_{cell.seed}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    runs = Runs(path, condition)
    try:
        refusing = Refusing(runs, check)
        searching, confirming = Driving(runs, drive, request.runs), Driving(runs, drive)
        known = _first_trials(request, cell, principle, refusing)
        settle(known, searching, lambda trial: len(trial.rounds) >= PROBES)
        tried, suspects = search(
            cell.principle,
            principle.expect,
            known,
            request.runs,
            seed=cell.seed,
            driving=searching,
            breed=breed_by(cell.operator),
            refusing=refusing,
            guided=cell.guided,
            every_suspect=True,
        )
        chosen = suspects[: request.confirm]
        trials = [Trial(one.trial.name, principle.expect, one.trial.case, "confirm") for one in chosen]
        settle(trials, confirming, lambda trial: enough(trial.evidence, request.confirm, principle.alpha))
    finally:
        runs.close()
    violated = _violated(trials, principle, request.confirm)
    counts = {"first": len(known), "candidates": tried, "suspects": len(suspects), "confirmed": len(chosen)}
    return {
        **{"type": "search", **asdict(cell), **counts},
        **{"revealing": len(violated), "sorts": len(sorts(violated))},
        **{"runs": searching.used, "confirming_runs": confirming.used},
        **{"spent": bool(searching.spent), "seconds": round(time.monotonic() - began_s, 2)},
    }


def _first_trials(request: StudyRequest, cell: StudyCell, principle: Principle, refusing: Refusing) -> list[Trial]:
    """Return the cases that a search begins with: the first of the pool in which there is something to choose."""
    named = cases_in_turn(principle, (), load_pool(request.pool), cell.seed)
    dilemmas = ((name, case) for name, case in named if not refusing.why(case))
    most = min(PROBES, principle.expect.most_rounds)
    return [Trial(name, principle.expect, case, "search", most=most) for name, case in islice(dilemmas, request.cases)]


def _violated(trials: Sequence[Trial], principle: Principle, family: int) -> list[Trial]:
    found = verdicts([trial.evidence for trial in trials], family, principle.alpha)
    return [trial for trial, verdict in zip(trials, found, strict=True) if verdict == VIOLATED]


def _cell_of(line: Mapping[str, Any]) -> StudyCell:
    return StudyCell(line["principle"], line["operator"], line["guided"], line["seed"])
