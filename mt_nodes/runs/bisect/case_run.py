# SPDX-License-Identifier: Apache-2.0
"""One failing case played against one version of the stack, as often as a rule asks for."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mt_nodes.base.errors import ExitCode, InfrastructureError, IsolationError, UsageError
from mt_nodes.base.jsonl import read_result, write_result
from mt_nodes.base.plain_data import PlainData
from mt_nodes.base.suite_client import in_suite
from mt_nodes.data.datasets.dataset_name import exists, located
from mt_nodes.data.verdict import Outcome
from mt_nodes.engine.arm import restart, start
from mt_nodes.engine.plan import suite_process, suite_stop_s
from mt_nodes.engine.recorded_pair import RecordedPair
from mt_nodes.engine.run_record import read_record
from mt_nodes.runs.again.pair_request import PairRequest, request_of_pair, run_of_pair
from mt_nodes.runs.bisect.bisect_request import CaseOptions
from mt_nodes.runs.bisect.bisection import CannotTest, StopRule, Tally
from mt_nodes.runs.blame.blame_plays import DrivePlays, PairPlays, ReplayPlays
from mt_nodes.runs.loop import episode_conductor
from mt_nodes.runs.loop.scenario_request import ScenarioRequest
from mt_nodes.runs.loop.scenario_run import ScenarioRun
from mt_nodes.runs.replay import execute
from mt_nodes.runs.replay.execute import Arms
from mt_nodes.runs.replay.replay_run import Run

#: In the directory of a version's plays, beside the record of the run whose pair it is.
REQUEST_FILE = "bisect.case.json"
_FILES = ("stack", "transforms", "qos", "simulator_settings")
#: Called with each outcome and why it was one.
Tell = Callable[[Outcome, str], None]


def pair_request(options: CaseOptions, pair: str) -> PairRequest:
    """Return what plays a pair, with absolute paths: the stack's processes work in another directory.

    Raises MtError: there is no such pair, or it cannot be played again.
    """
    finished = RecordedPair.find(Path(options.failures), pair)
    request: Any = request_of_pair(finished, options.transport, options.bag)
    own = not options.stack or Path(options.stack).resolve() == Path(request.stack).resolve()
    settings = {**(getattr(request, "stack_settings", {}) if own else {}), **options.stack_settings}
    if not own:
        request = dataclasses.replace(request, stack=options.stack, faults=())
    return in_version(_absolute(request), request.stack, settings)


def in_version(request: PairRequest, stack: str, settings: Mapping[str, Any]) -> PairRequest:
    """Return a request with another stack file and settings. Raises UsageError: it takes no settings."""
    stack = str(Path(stack).resolve()) if Path(stack).is_file() else stack
    if not isinstance(request, ScenarioRequest):
        return dataclasses.replace(request, stack=stack, stack_settings=dict(settings))
    if settings:
        raise UsageError(f"pairs of `mt scenario` take no settings of a stack, got {', '.join(settings)}")
    return dataclasses.replace(request, stack=stack)


def _absolute(request: Any) -> PairRequest:
    here = Path.cwd()
    names = [name for name in _FILES if Path(getattr(request, name, "")).is_file()]
    changes: dict[str, Any] = {name: str(Path(getattr(request, name)).resolve()) for name in names}
    changes["relations"] = tuple(str(Path(r).resolve()) if Path(r).is_file() else r for r in request.relations)
    changes["plugins"] = tuple(str(Path(p).resolve()) for p in request.plugins)
    for name in ("bags", "scenarios"):
        if given := getattr(request, name, ()):
            changes[name] = tuple(located(one, here) if exists(one) else one for one in given)
    absolute: PairRequest = dataclasses.replace(request, **changes)
    return absolute


@dataclass(frozen=True)
class CaseRequest(PlainData):
    """What is asked of the plays of a version.

    ``tally``: how those that were played before ended. ``warm``: whether the stack goes on between plays; otherwise
    each play has a stack that was started for it.
    """

    rule: StopRule
    tally: Tally
    warm: bool = False


def play_case(request: PairRequest, asked: CaseRequest, out: Path, tell: Tell) -> Tally:
    """Play a pair in one version of the stack, from the working directory, and return how all plays ended.

    Raises CannotTest: the stack cannot be started as its file says, or died. IsolationError, InfrastructureError: of
    the run, not of the version. KeyboardInterrupt: it was interrupted; ``tell`` has had all outcomes.
    ``out``: directory for logs and what the processes of the stack need.
    """
    try:
        run = run_of_pair(request, out)
        run.refuse_impossible()
    except UsageError as error:
        raise CannotTest(str(error)) from error
    if run.stack.external:
        raise UsageError(f"stack '{run.stack.name}' is external: nothing of ours starts it, so it has no versions here")
    out.mkdir(parents=True, exist_ok=True)
    run.save()
    write_result(out / REQUEST_FILE, asked.as_plain())
    counted = [asked.tally]

    def count(outcome: Outcome, why: str) -> None:
        counted[0] = counted[0].plus(outcome, why)
        tell(outcome, why)

    _raise_trouble(_played(run, asked, out, count))
    return counted[0]


def _played(run: Run | ScenarioRun, asked: CaseRequest, out: Path, tell: Tell) -> Mapping[str, str]:
    """Play, in this process or in a suite process; return what ended it early."""
    if run.request.transport == "inprocess":
        (out / "console.log").touch()
        conductor: Any = episode_conductor if isinstance(run, ScenarioRun) else execute
        return _trouble(carry_out(run, asked, lambda ending: conductor.in_process_arms(run, ending), tell))

    def show(event: Mapping[str, Any]) -> None:
        if "play" in event:
            tell(Outcome(event["play"]), event["words"])

    try:
        return _trouble(in_suite(suite_process(out, os.environ), suite_stop_s(run.stack), show, "resume the bisection"))
    except UsageError as error:  # before the first play
        return {"version": str(error)}


def _trouble(summary: Mapping[str, Any]) -> dict[str, str]:
    return dict(summary["trouble"])


def _raise_trouble(trouble: Mapping[str, str]) -> None:
    if "interrupted" in trouble:
        raise KeyboardInterrupt
    if "isolation" in trouble:
        raise IsolationError(trouble["isolation"])
    if "version" in trouble or "usage" in trouble:
        raise CannotTest(trouble.get("version") or trouble["usage"])
    if trouble:
        raise InfrastructureError("; ".join(trouble.values()))


def load_case(out: Path) -> tuple[Run | ScenarioRun, CaseRequest]:
    """Return the run and the request of a directory that :func:`play_case` made."""
    kind = ScenarioRun if ScenarioRun.KEY in read_record(out)["request"] else Run
    return kind.load(out), CaseRequest.from_plain(read_result(out / REQUEST_FILE))


def carry_out(
    run: Run | ScenarioRun, asked: CaseRequest, open_arms: Callable[[ExitStack], Arms], tell: Tell
) -> dict[str, Any]:
    """Play until the rule is satisfied, and return the summary; its ``trouble`` is what ended it early.

    ``open_arms``: makes the arms and puts their end on the stack. ``tell``: called with each outcome.
    """
    deaths: list[str] = []
    tally = asked.tally

    def begin(ending: ExitStack) -> Callable[[], None]:
        return lambda: play(ending)

    def play(ending: ExitStack) -> None:
        nonlocal tally
        arms = open_arms(ending)
        start(*arms)
        plays = _plays(run, arms)
        first = True
        while not asked.rule.done(tally):
            if not (first or asked.warm):
                _renew(run, arms)
            first = False
            outcome, why = plays.judge()
            tally = tally.plus(outcome, why)
            tell(outcome, why)

    trouble = execute.play_to_end(run.out, begin, lambda error: deaths.append(str(error)))
    if deaths:
        trouble = {"version": deaths[0]}
    code = ExitCode.INTERRUPTED if "interrupted" in trouble else ExitCode.PASS
    summary = {"schema": 1, "exit_code": int(code), "trouble": {what: str(why) for what, why in trouble.items()}}
    write_result(run.out / "summary.json", summary)
    return summary


def _plays(run: Run | ScenarioRun, arms: Arms) -> PairPlays:
    return DrivePlays(run, arms) if isinstance(run, ScenarioRun) else ReplayPlays(run, arms, Path(run.request.recorded))


def _renew(run: Run | ScenarioRun, arms: Arms) -> None:
    """Give each arm a stack in a new process, but where the next play does so anyway."""
    if run.request.transport == "inprocess":  # a restart would only make the callable anew
        for arm in dict.fromkeys(arms):
            arm.stop()
        start(*arms)
    elif run.stack.stateless:
        restart(*arms)
