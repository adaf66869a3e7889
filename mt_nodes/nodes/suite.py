# SPDX-License-Identifier: Apache-2.0
"""The suite process: replays, mutates and judges over topics, as one run directory says.

Started by ``mt replay`` and by the launch files; what it prints is its log. Events for the one who started it go to
the descriptor given with ``--events``: JSON lines ``{"done": n, …}`` and at the end ``{"end": …}``.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from rclpy.exceptions import InvalidTopicNameException
from rclpy.validate_topic_name import validate_topic_name

from mt_nodes.environment import clean_shared_memory, free_domains, user_domain
from mt_nodes.errors import ExitCode, MtError
from mt_nodes.nodes.arm import RosArm
from mt_nodes.nodes.control import ControlNode
from mt_nodes.nodes.live_view import LiveView
from mt_nodes.nodes.messages import available
from mt_nodes.nodes.qos import load_overrides
from mt_nodes.nodes.spinning import SpinningContext
from mt_nodes.plan import ArmPlan, Replayed, arm_plans, stack_process
from mt_nodes.processes import die_with_parent, nobody_left_behind
from mt_nodes.replay import Arms, execute
from mt_nodes.runs import Run
from mt_nodes.verdict import Verdict

STATUS_EVERY_S = 0.5
_interrupted = threading.Event()


def main(args: list[str] | None = None) -> None:
    """Run to the end and exit with the run's exit code."""
    parser = argparse.ArgumentParser(prog="suite", description="Carry out the run that a run directory describes.")
    parser.add_argument("--run", type=Path, required=True, metavar="DIR", help="made by `mt replay`")
    parser.add_argument("--events", type=int, metavar="FD", help="descriptor for progress")
    given, _ = parser.parse_known_args(args)
    signal.signal(signal.SIGINT, _interrupt)
    signal.signal(signal.SIGTERM, _interrupt)
    die_with_parent()
    events = _Events(given.events)
    try:
        with nobody_left_behind():
            summary = _carry_out(Run.load(given.run), events)
        code, error = summary["exit_code"], None
    except MtError as problem:
        code, error = int(problem.exit_code), str(problem)
        print(f"suite: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        code, error = int(ExitCode.INTERRUPTED), "interrupted"
    events.send({"end": code, "error": error})
    sys.exit(code)


def _carry_out(run: Run, events: _Events) -> dict[str, Any]:
    clean_shared_memory()
    with ExitStack() as ending:
        control_ros = SpinningContext(user_domain(os.environ))
        ending.callback(control_ros.close)
        control: ControlNode = control_ros.add(ControlNode)
        ending.callback(control.flush, 2.0)
        status = _Status(run, control, events)
        view = LiveView(control)
        return execute(run, lambda stack: _open_arms(run, stack, status), control.line, status.progress, view.show)


def _open_arms(run: Run, ending: ExitStack, status: _Status) -> Arms:
    plans = arm_plans(run.request, run.stack)
    shared = run.stack.isolation == "remap"
    free = ending.enter_context(free_domains(0 if plans[0].domain is not None else 1 if shared else len(plans)))
    domains = [plan.domain for plan in plans] if plans[0].domain is not None else list(free.domains) * len(plans)
    arms: list[RosArm] = []
    ending.callback(_stop, arms)
    for plan, domain in zip(plans, domains, strict=False):
        assert domain is not None, "a stack file fixes the domains of all arms or of none"
        # In a shared domain the first arm looks for strangers: to the second one the first one's stack would be some.
        leased = plan.domain is None or (shared and bool(arms))
        arms.append(_open_arm(run, plan, domain, leased))
    status.arms = arms
    return arms[0], arms[-1]


def _stop(arms: Sequence[RosArm]) -> None:
    """Side by side: every stack is told to end before any is waited for."""
    with ExitStack() as each:
        for arm in arms:
            each.callback(arm.stop)
            arm.ask_to_end()


def _open_arm(run: Run, plan: ArmPlan, domain: int, leased: bool) -> RosArm:
    topics, required = run.topics()
    unusable = {t: why for t, row in topics.items() if t not in required and (why := _unusable(row))}
    for topic, why in sorted(unusable.items()):
        print(f"suite: {topic} is not replayed: {why}", file=sys.stderr)
    process = stack_process(run.stack, plan, domain, run.out, os.environ)
    usable = {t: row for t, row in topics.items() if t not in unusable}
    profiles = load_overrides(Path(run.request.qos)) if run.request.qos else {}
    fan_out = run.stack.stateless and run.request.pace == "lockstep"
    return RosArm(plan, domain, leased, run.stack, process, usable, required, profiles, fan_out)


def _unusable(row: Replayed) -> str | None:
    """Say why a topic of the bag cannot be published here, None when it can."""
    if not available(row.type):
        return f"{row.type} is not installed here"
    try:
        validate_topic_name(row.topic)
    except InvalidTopicNameException:
        return "its name is none in ROS 2"
    return None


class _Status:
    """Tells the user's domain and whoever started us how the run goes."""

    def __init__(self, run: Run, control: ControlNode, events: _Events) -> None:
        self._control, self._events = control, events
        self._total, self._done, self._violated = run.pairs_to_come, 0, 0
        self._began = self._told = time.monotonic()
        self.arms: Sequence[RosArm] = ()

    def progress(self, verdicts: Sequence[Verdict]) -> None:
        if _interrupted.is_set():  # Python drops an exception that is raised in a destructor or a hook
            raise KeyboardInterrupt
        self._done += len(verdicts)
        self._violated += sum(v.outcome.value == "VIOLATED" for v in verdicts)
        now = time.monotonic()
        if self._done < self._total and now - self._told < STATUS_EVERY_S:
            return
        self._told = now
        values = {"done": self._done, "total": self._total, "violated": self._violated}
        self._events.send(values)
        rate = self._done / max(now - self._began, 1e-9)
        arms = {f"{name}_{arm.name}": value for arm in self.arms for name, value in arm.status().items()}
        self._control.status({**values, "pairs_per_s": round(rate, 1), **arms})
        for arm in self.arms:
            arm.refuse_strangers()


class _Events:
    def __init__(self, descriptor: int | None) -> None:
        self._file = None if descriptor is None else os.fdopen(descriptor, "w", buffering=1)

    def send(self, event: Mapping[str, Any]) -> None:
        if self._file is None:
            return
        try:
            self._file.write(json.dumps(event) + "\n")
        except BrokenPipeError:
            self._file = None  # whoever asked is gone; the run is not


def _interrupt(number: int, frame: Any) -> None:
    """Interrupt once: terminal, launch file and a user in a hurry may all signal, and the summary is to be written."""
    if not _interrupted.is_set():
        _interrupted.set()
        raise KeyboardInterrupt


if __name__ == "__main__":
    main()
