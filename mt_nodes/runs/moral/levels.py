# SPDX-License-Identifier: Apache-2.0
"""The same dilemmas at three levels: which module chose, perception or planning.

Three drivers with one planner are driven at the same dilemmas. At the level ``object`` the planner gets the true
objects; at ``lidar`` and at ``camera`` it gets what its perception makes of a sensor's data. Each case is decided as in
a campaign. Where the choice is wrong with true objects, perception cannot have made it; where it is right with true
objects and wrong with a sensor, nothing else but what perception says differs (:func:`blame`).

A case is here a dilemma whose two parties a principle compares: no follow-up dilemma takes part. ``<level>.jsonl`` is
the journal of a level; what is in it is not driven again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mt_nodes.base.errors import ExitCode, UsageError
from mt_nodes.base.wording import counted
from mt_nodes.runs.moral.base import HOLDS, UNKNOWN, VIOLATED, CaseEvidence, DilemmaCase
from mt_nodes.runs.moral.case_order import cases_in_turn
from mt_nodes.runs.moral.dilemma_filter import Refusing
from mt_nodes.runs.moral.levels_request import LEVELS, LevelsRequest
from mt_nodes.runs.moral.pool import load_pool
from mt_nodes.runs.moral.principle import Principle
from mt_nodes.runs.moral.principle_verdicts import enough, verdicts
from mt_nodes.runs.moral.runs import Runs
from mt_nodes.runs.moral.trial import ENOUGH, Driving, Trial, settle
from mt_nodes.stacks.callables import kind_of_fault, with_faults
from mt_nodes.stacks.stack import Stack, load_stack

OBJECT = LEVELS[0]
PLANNING, NOBODY, UNDECIDED = "planning", "none", "undecided"
#: What is to blame for a choice that is wrong with a sensor alone.
PERCEPTION = {"lidar": "LiDAR perception", "camera": "camera perception"}
#: Opens what drives runs and checks dilemmas, for the stack of a level.
OpenDrivers = Callable[[str, Stack], Any]


@dataclass(frozen=True)
class LevelChoice:
    """How a case of a principle ended at a level.

    Attributes:
        verdict: holds, violated or unknown. what: whom the driver hit, or by how much its drives differ. runs: driven.
    """

    case: str
    principle: str
    level: str
    verdict: str
    what: str
    runs: int


@dataclass(frozen=True)
class Located:
    """A case at every level, and the module that is to blame."""

    case: str
    principle: str
    choices: Mapping[str, LevelChoice]
    module: str
    why: str


def blame(found: Mapping[str, str]) -> tuple[str, str]:
    """Return the module to blame for a choice, and why.

    Args:
        found: the verdict at each level that was driven; that of true objects is among them.
    """
    planner = found[OBJECT]
    if planner == VIOLATED:
        return PLANNING, "the choice is wrong with true objects, so nothing is said of perception"
    wrong = [PERCEPTION[level] for level, verdict in found.items() if level != OBJECT and verdict == VIOLATED]
    if planner == UNKNOWN:
        return UNDECIDED, "what the planner chooses with true objects is unknown"
    if wrong:
        return " and ".join(wrong), "the choice is right with true objects"
    if unknown := [level for level, verdict in found.items() if verdict == UNKNOWN]:
        return UNDECIDED, f"right with true objects, unknown at {' and '.join(unknown)}"
    return NOBODY, "right at every level"


def stacks_of(request: LevelsRequest) -> dict[str, Stack]:
    """Return the stack of each level, each with those of the faults that fit it.

    Raises:
        UsageError: a fault fits no level, a stack has no command, or does not run without topics.
    """
    stacks = {level: load_stack(name) for level in LEVELS if (name := getattr(request, level))}
    fitting: dict[str, list[str]] = {level: [] for level in stacks}
    for name in request.faults:
        kind = kind_of_fault(name)
        levels = [level for level, stack in stacks.items() if kind in stack.fault_kinds]
        if not levels:
            raise UsageError(f"--fault: '{name}' is a fault of {kind} stacks, and no level has one")
        for level in levels:
            fitting[level].append(name)
    for level, stack in stacks.items():
        if not stack.callable or "control" not in stack.answers:
            raise UsageError(f"--{level} {stack.name}: expected a Python callable that answers control, without topics")
    return {level: with_faults(stack, tuple(fitting[level])) for level, stack in stacks.items()}


def locate(
    out: Path,
    request: LevelsRequest,
    principles: Sequence[Principle],
    open_drivers: OpenDrivers,
    progress: Callable[[str, int], None] = lambda level, runs: None,
) -> list[Located]:
    """Drive every case at every level and return which module is to blame.

    Args:
        open_drivers: context manager of what drives runs and checks dilemmas. progress: called after each run with the
            level and how many runs it has.

    Raises:
        MtError: a stack died, a stack cannot be loaded, or the results cannot be written.
    """
    cases = {principle.id: _cases(principle, request) for principle in principles}
    located: dict[tuple[str, str], dict[str, LevelChoice]] = {}
    refused: dict[tuple[str, str], str] = {}
    for level, stack in stacks_of(request).items():
        condition = {"experiment": "moral-levels", "level": level, "stack": stack.name, "seed": request.seed}
        condition |= {"faults": list(stack.params.get("faults", ())), "principles": list(cases), "pool": request.pool}
        runs = Runs(out / f"{level}.jsonl", condition)
        try:
            with open_drivers(level, stack) as (drive, check):
                refusing = Refusing(runs, check)
                driving = Driving(runs, drive, request.runs, tell=lambda name=level, of=runs: progress(name, len(of)))  # type: ignore[misc]
                for principle in principles:
                    why = {name: refusing.why(case) for name, case in cases[principle.id]}
                    refused |= {(principle.id, _short(name)): reason for name, reason in why.items() if reason}
                    real = [(name, case) for name, case in cases[principle.id] if not why[name]]
                    for choice in _choices(level, principle, real, driving):
                        located.setdefault((principle.id, choice.case), {})[level] = choice
        finally:
            runs.close()
    return [
        *(
            Located(case, principle, choices, *blame({level: choice.verdict for level, choice in choices.items()}))
            for (principle, case), choices in located.items()
        ),
        *(Located(case, name, {}, UNDECIDED, f"no dilemma: {why}") for (name, case), why in refused.items()),
    ]


def _cases(principle: Principle, request: LevelsRequest) -> list[tuple[str, DilemmaCase]]:
    """Return the cases of a principle that compare the parties of one dilemma, in the pool's order."""
    pool = load_pool(request.pool)
    order = {dilemma.name: number for number, dilemma in enumerate(pool)}
    named = [one for one in cases_in_turn(principle, (), pool, request.seed) if one[1].followup is None]
    return sorted(named, key=lambda one: order[one[1].source.name])[: request.cases]


def _choices(
    level: str, principle: Principle, cases: Sequence[tuple[str, DilemmaCase]], driving: Driving
) -> list[LevelChoice]:
    """Return how the cases of a principle end at a level; they are one family of hypotheses."""
    trials = [Trial(name, principle.expect, case) for name, case in cases]
    settle(trials, driving, lambda trial: enough(trial.evidence, len(trials), principle.alpha))
    ended = verdicts([trial.evidence for trial in trials], len(trials), principle.alpha)
    return [_choice(level, principle, *pair) for pair in zip(trials, ended, strict=True)]


def _short(name: str) -> str:
    """Return a case's name without its principle."""
    return name.partition("/")[2]


def _choice(level: str, principle: Principle, trial: Trial, verdict: str) -> LevelChoice:
    evidence, stopped = trial.evidence, "" if trial.ended == ENOUGH else trial.ended
    more = (evidence.against, stopped) if verdict == UNKNOWN else ()
    what = "; ".join(text for text in (_what(evidence), *more) if text)
    return LevelChoice(_short(trial.name), principle.id, level, verdict, what, trial.runs)


def _what(evidence: CaseEvidence) -> str:
    """Return whom a driver hit, or by how much it drives differently at one and the other, in few words."""
    numbers = evidence.numbers
    if "likeness" in numbers:
        worst = max(numbers["likeness"].values(), key=lambda one: float(one["apart_m"]))
        return f"{worst['apart_m']:.1f} m apart ({worst['control_apart_m']:.1f} m by chance)"
    return evidence.reason


def levels_end(located: Sequence[Located]) -> tuple[ExitCode, str]:
    """Return the exit code and why: 1 if a module is to blame, 3 if a case is undecided or none was driven."""
    blamed = [one for one in located if one.module not in (NOBODY, UNDECIDED)]
    open_ = [one for one in located if one.module == UNDECIDED]
    if blamed:
        modules = dict.fromkeys(one.module for one in blamed)
        return ExitCode.FAIL, f"{', '.join(modules)} to blame in {counted(len(blamed), 'case')} of {len(located)}"
    if open_ or not located:
        return ExitCode.UNDECIDED, f"{counted(len(open_), 'case')} of {len(located)} undecided"
    return ExitCode.PASS, f"no module to blame in {counted(len(located), 'case')}"


def result_of(located: Sequence[Located]) -> dict[str, Any]:
    """Return ``levels.json``."""
    code, why = levels_end(located)
    return {"schema": 1, "cases": [asdict(one) for one in located], "exit_code": int(code), "exit_why": why}


def markdown(located: Sequence[Located]) -> str:
    """Return the table: dilemma, principle, the choice at each level, the module to blame."""
    levels = [level for level in LEVELS if any(level in one.choices for one in located)]
    rows = [("dilemma", "principle", *levels, "to blame"), ["---"] * (3 + len(levels))]
    for one in located:
        cells = [_cell(one.choices.get(level)) for level in levels]
        rows.append((f"`{one.case}`", f"`{one.principle}`", *cells, f"**{one.module}**"))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"


def _cell(choice: LevelChoice | None) -> str:
    if choice is None:
        return "not driven"
    marked = {HOLDS: "right", VIOLATED: "**wrong**", UNKNOWN: "unknown"}[choice.verdict]
    return f"{marked}: {choice.what} ({counted(choice.runs, 'run')})"
