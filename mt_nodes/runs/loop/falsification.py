# SPDX-License-Identifier: Apache-2.0
"""Searches parameters of a script at which a claim is violated: the least robustness of its claims is the objective.

Falsification as of Annpureddy et al. (*S-TaLiRo*, TACAS 2011) and of AVUnit; the sampler is TPE by optuna, seeded. The
budget is a number of drives, no clock takes part, so that equal seeds find the same. A claim that nothing put to the
test has a robustness, too: it leads to where something does. What is found is driven again before it counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mt_nodes.base.errors import ExitCode, UsageError, needs_extra
from mt_nodes.base.jsonl import LineFile
from mt_nodes.base.wording import counted
from mt_nodes.data.verdict import Outcome
from mt_nodes.engine.arm import restart, start
from mt_nodes.engine.summary.claim_sums import ClaimVerdict
from mt_nodes.relations.world_changes.base import Setting
from mt_nodes.runs.loop.claim_judging import verdict_of
from mt_nodes.runs.loop.drive_judging import EpisodeJudge
from mt_nodes.runs.loop.episode import play
from mt_nodes.runs.loop.episode_conductor import in_process_arms, player_of
from mt_nodes.runs.loop.scenario_request import ScenarioRequest
from mt_nodes.runs.loop.scenario_run import PlannedEpisode, ScenarioRun, claimed_drives
from mt_nodes.world.drive.maps import load_map
from mt_nodes.world.drive.scenario_files import scenarios_of

FILE, SUMMARY = "trials.jsonl", "falsification.json"
#: Digits of a parameter's value: what is printed is what was driven.
_DIGITS = 6
Line = dict[str, Any]


@dataclass(frozen=True)
class SearchedParameter:
    """A parameter of a script and its range."""

    name: str
    low: float
    high: float

    @classmethod
    def parse(cls, text: str) -> SearchedParameter:
        """Read ``NAME=LOW..HIGH``. Raises UsageError: it is something else."""
        name, _, ends = text.partition("=")
        low, dots, high = ends.partition("..")
        try:
            parameter = cls(name, float(low), float(high))
        except ValueError:
            parameter = cls("", 0.0, 0.0)
        if not (parameter.name and dots and parameter.low < parameter.high):
            raise UsageError(f"--falsify: got '{text}', expected NAME=LOW..HIGH, such as ego.speed=5..20")
        return parameter


def falsify(
    request: ScenarioRequest,
    parameters: Sequence[SearchedParameter],
    trials: int,
    out: Path,
    progress: Callable[[Line], None] | None = None,
) -> dict[str, Any]:
    """Drive through a script with other values of its parameters, and return what came of its claims.

    ``request``: one scenario file and a stack that runs without topics. ``trials``: drives at most, the confirming ones
    apart. ``out``: takes in ``trials.jsonl`` and ``falsification.json``. ``progress``: called with each trial.
    Raises UsageError: the script has no claim, or cannot be read with such values; optuna or rtamt is not installed.
    InfrastructureError: the stack died.
    """
    driver = _Driver(ScenarioRun.make(replace(request, repeat=1, jitter=0.0, transport="inprocess"), out), parameters)
    file = LineFile(out / FILE)
    lines: list[Line] = []
    try:
        with ExitStack() as ending:
            driver.open(ending)
            for values, tell in _suggestions(parameters, request.seed, trials):
                line = {"type": "trial", "trial": len(lines), "values": values, **driver.drive(values)}
                file.append(line)
                lines.append(line)
                if progress is not None:
                    progress(line)
                tell(line["objective"])
                if line["violated"]:
                    break
            again = driver.drive(lines[-1]["values"]) if lines and lines[-1]["violated"] else None
    finally:
        file.close()
    return _summary(request, lines, again)


class _Driver:
    """Drives through a script with values of its parameters, and judges its claims."""

    def __init__(self, run: ScenarioRun, parameters: Sequence[SearchedParameter]) -> None:
        self._run, self._names = run, [parameter.name for parameter in parameters]
        self._judge = EpisodeJudge(run.stack.publishes_when_empty)
        (self._file,) = run.request.scenarios
        if not claimed_drives(run.episodes):
            raise UsageError(f"{self._file}: got no claim to falsify, expected one, such as t |= G(spd(t[ego]) < 15);")

    def open(self, ending: ExitStack) -> None:
        """Start the stack; its end is put on the stack of ends."""
        self._arm, _ = in_process_arms(self._run, ending)
        start(self._arm)
        self._fresh = True

    def drive(self, values: Mapping[str, float]) -> Line:
        """Return the verdicts on all claims, whether one is violated, and the least robustness."""
        request = self._run.request
        given = {**request.parameters, **{name: repr(value) for name, value in values.items()}}
        verdicts: list[tuple[ClaimVerdict, float | None]] = []
        for number, scenario in enumerate(scenarios_of(self._file, request.seed, given, request.strict)):
            setting = Setting(scenario, load_map(scenario.road))
            verdicts += self._verdicts(PlannedEpisode(number, setting, self._file))
        known = [robustness for _, robustness in verdicts if robustness is not None]
        return {
            "claims": [verdict.as_plain() for verdict, _ in verdicts],
            "violated": [verdict.claim for verdict, _ in verdicts if verdict.outcome is Outcome.VIOLATED],
            "objective": min(known, default=None),
        }

    def _verdicts(self, planned: PlannedEpisode) -> list[tuple[ClaimVerdict, float | None]]:
        if not (self._fresh or self._run.stack.stateless):
            restart(self._arm)
        self._fresh = False
        (played,) = play([player_of(self._run, planned, planned.setting, self._arm)])
        if (settled := self._judge.unpaired(played)) is not None:
            named = [(planned.claim_name(claim), claim.formula) for claim in planned.setting.scenario.claims]
            return [(ClaimVerdict(planned.number, *one, settled.outcome, settled.reason), None) for one in named]
        return [verdict_of(planned, claim, played.driven) for claim in planned.setting.scenario.claims]


def _suggestions(parameters: Sequence[SearchedParameter], seed: int, trials: int) -> Any:
    """Yield values of all parameters, and what takes in the objective that they came to."""
    with needs_extra("search", "--falsify needs optuna"):
        import optuna  # heavy, and only here
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    for _ in range(trials):
        asked = study.ask()
        values = {one.name: round(asked.suggest_float(one.name, one.low, one.high), _DIGITS) for one in parameters}

        def tell(objective: float | None, asked: Any = asked) -> None:
            failed = {"state": optuna.trial.TrialState.FAIL} if objective is None else {"values": objective}
            study.tell(asked, **failed)

        yield values, tell


def _summary(request: ScenarioRequest, lines: Sequence[Line], again: Line | None) -> dict[str, Any]:
    code, why = _end(lines, again)
    ranked = [line for line in lines if line["objective"] is not None]
    best = lines[-1] if again else min(ranked, key=lambda line: line["objective"], default=None)
    return {
        "schema": 1,
        "scenario": request.scenarios[0],
        "trials": len(lines),
        "best": best,
        "confirmed": bool(again and again["violated"] == lines[-1]["violated"]),
        "exit_code": int(code),
        "exit_why": why,
    }


def _end(lines: Sequence[Line], again: Line | None) -> tuple[ExitCode, str]:
    """Return the exit code and why: 0 only if a claim was put to the test in every sense and held."""
    if again is not None:
        names = ", ".join(lines[-1]["violated"])
        if again["violated"] == lines[-1]["violated"]:
            return ExitCode.FAIL, f"violated, and again when driven again: {names}"
        return ExitCode.UNDECIDED, f"violated, but not when driven again: {names}"
    held = {claim["claim"] for line in lines for claim in line["claims"] if claim["verdict"] == Outcome.HOLDS.value}
    every = {claim["claim"] for line in lines for claim in line["claims"]}
    if not every or (never := sorted(every - held)):
        return ExitCode.UNDECIDED, f"never decided: {', '.join(never) if every else 'no drive'}"
    return ExitCode.PASS, f"no violation in {counted(len(lines), 'drive')}, which is no proof"
