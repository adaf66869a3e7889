# SPDX-License-Identifier: Apache-2.0
"""The suite process: carries a run out over topics, of whatever kind its directory says it is.

Started by ``mt`` and by the launch files. Its events are ``{"done": n, …}`` of verdicts, ``{"trials": n, …}`` of a
search, ``{"doing": …, "runs": n, …}`` of a moral campaign, ``{"play": n, …}`` of ``mt shrink``; at the end
``{"end": …}``. Beside a live stack it is :mod:`mt_nodes.nodes.live_suite`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from rclpy.exceptions import InvalidTopicNameException
from rclpy.validate_topic_name import validate_topic_name

from mt_nodes.base.environment import free_domains
from mt_nodes.data.verdict import Outcome, Verdict
from mt_nodes.engine.arm import start
from mt_nodes.engine.plan import ArmPlan, ReplayedTopic, arm_plans, stack_process
from mt_nodes.engine.run_record import read_record
from mt_nodes.engine.summary.score_range import score_notes
from mt_nodes.nodes.arm_inputs import ArmDomain, ArmInputs
from mt_nodes.nodes.convert import topics_of_world
from mt_nodes.nodes.live_view import LiveView
from mt_nodes.nodes.message_classes import available
from mt_nodes.nodes.qos import load_overrides
from mt_nodes.nodes.ros_arm import RosArm
from mt_nodes.nodes.suite_process import ProgressEvents, check_interrupted, run_suite
from mt_nodes.nodes.suite_status import SuiteStatus, suite_status
from mt_nodes.runs.replay.execute import Arms, execute
from mt_nodes.runs.replay.replay_run import Run
from mt_nodes.runs.run_directory import StackRun

R = TypeVar("R", bound=StackRun[Any])


def open_arms(
    run: R, ending: ExitStack, status: SuiteStatus, open_arm: Callable[[R, ArmPlan, ArmDomain], RosArm]
) -> Arms:
    """Join a ROS domain for each arm of a run, and put the end of all on the stack.

    ``ending``: takes what ends them. ``open_arm``: makes one, of its plan and its domain.
    """
    plans = arm_plans(run.request, run.stack)
    shared = run.stack.isolation == "remap"
    free = ending.enter_context(free_domains(0 if plans[0].domain is not None else 1 if shared else len(plans)))
    domains = [plan.domain for plan in plans] if plans[0].domain is not None else list(free.domains) * len(plans)
    arms: list[RosArm] = []
    ending.callback(_stop, arms)
    for plan, domain in zip(plans, domains, strict=False):
        assert domain is not None, "a stack file fixes the domains of all arms or of none"
        # In a shared domain the first arm looks for strangers: to the second one the first one's stack would be some.
        exclusive = plan.domain is None or (shared and bool(arms))
        arms.append(open_arm(run, plan, ArmDomain(domain, exclusive)))
    status.arms = arms
    return arms[0], arms[-1]


def _stop(arms: Sequence[RosArm]) -> None:
    """Side by side: every stack is told to end before any is waited for."""
    with ExitStack() as each:
        for arm in arms:
            each.callback(arm.stop)
            arm.ask_to_end()


def open_arm(run: Run, plan: ArmPlan, domain: ArmDomain, kind: type[RosArm] = RosArm) -> RosArm:
    """Make one arm of a replay, of its plan and its domain; ``kind``: its class."""
    topics, required = run.topics()
    unusable = {t: why for t, row in topics.items() if t not in required and (why := _unusable(row))}
    for topic, why in sorted(unusable.items()):
        print(f"suite: {topic} is not replayed: {why}", file=sys.stderr)
    process = stack_process(run.stack, plan, domain.number, run.out, os.environ, report_errors=True)
    usable = {t: row for t, row in topics.items() if t not in unusable}
    profiles = load_overrides(Path(run.request.qos)) if run.request.qos else {}
    fan_out = run.stack.stateless and run.request.pace == "lockstep"
    once = "say stateless: false in the stack file" if fan_out else ""
    return kind(plan, domain, run.stack, process, ArmInputs(usable, required, profiles), once)


def world_arm(run: StackRun[Any], plan: ArmPlan, domain: ArmDomain, kind: type[RosArm] = RosArm) -> RosArm:
    """Return an arm that is given everything that a world says, on the stack's own topics."""
    topics = topics_of_world(run.stack)
    process = stack_process(run.stack, plan, domain.number, run.out, os.environ, report_errors=True)
    return kind(plan, domain, run.stack, process, ArmInputs(topics, frozenset(topics)))


def _unusable(row: ReplayedTopic) -> str | None:
    """Say why a topic of the bag cannot be published here, None when it can."""
    if not available(row.type):
        return f"{row.type} is not installed here"
    try:
        validate_topic_name(row.topic)
    except InvalidTopicNameException:
        return "its name is none in ROS 2"
    return None


Summary = dict[str, Any]


def main(args: list[str] | None = None) -> None:
    """Run to the end and exit with the run's exit code."""
    run_suite("suite", lambda out, events: _kind_of(out)(out, events), args)


def _kind_of(out: Path) -> Callable[[Path, ProgressEvents], Summary]:
    """Return what carries out the run of a directory."""
    # Beside the record of the run whose pair it is:
    if (out / "shrink.json").exists():
        return shrink
    if (out / "blame.request.json").exists():
        return blame
    if (out / "bisect.case.json").exists():
        return bisect
    request = read_record(out)["request"]
    return next((carry_out for key, carry_out in KINDS.items() if key in request), replay)


def replay(out: Path, events: ProgressEvents) -> Summary:
    """Replay recordings."""
    run = Run.load(out)
    with suite_status(events) as status:
        listen, view = score_notes(status.control.line, status.warn), LiveView(status.control)
        progress = status.count(run.pairs_to_come)
        return execute(run, lambda ending: open_arms(run, ending, status, open_arm), listen, progress, view.show)


def drive(out: Path, events: ProgressEvents) -> Summary:
    """Drive through the scenarios of a closed loop."""
    from mt_nodes.runs.loop.episode_conductor import execute
    from mt_nodes.runs.loop.scenario_run import ScenarioRun

    run = ScenarioRun.load(out)
    with suite_status(events) as status:
        progress = status.count(run.pairs_to_come)
        return execute(run, lambda ending: open_arms(run, ending, status, world_arm), status.control.line, progress)


def search(out: Path, events: ProgressEvents) -> Summary:
    """Play all trials of a search, in arms that stay alive."""
    from mt_nodes.runs.campaign.search.search_execution import search
    from mt_nodes.runs.campaign.search.search_run import SearchRun
    from mt_nodes.runs.campaign.search.trial import Trial

    run, counts = SearchRun.load(out), {"trials": 0, "violated": 0}
    with suite_status(events) as status:

        def count(trial: Trial) -> None:
            counts["trials"] += 1
            counts["violated"] += trial.violated
            status.event(**counts)

        def progress(verdicts: Sequence[Verdict]) -> None:
            status.tell(counts)

        return search(run, lambda replay, ending: open_arms(replay, ending, status, open_arm), count, progress)


def moral(out: Path, events: ProgressEvents) -> Summary:
    """Drive every run of a moral campaign in one instance of the stack."""
    from mt_nodes.runs.moral.campaign import carry_out
    from mt_nodes.runs.moral.dilemma_driver import DilemmaDriver
    from mt_nodes.runs.moral.moral_run import MoralRun

    run = MoralRun.load(out)
    with suite_status(events) as status, ExitStack() as ending:
        arm, _ = open_arms(run, ending, status, world_arm)
        start(arm)
        driver = DilemmaDriver(run.stack, run.request.seed, arm)
        drives = lambda specs: map(driver.run, specs)  # noqa: E731
        return carry_out(run, drives, driver.side, lambda standing: status.tell(asdict(standing)))


def shrink(out: Path, events: ProgressEvents) -> Summary:
    """Play one pair again and again, in arms that stay alive."""
    from mt_nodes.runs.loop.scenario_run import ScenarioRun
    from mt_nodes.runs.shrink.shrink_run import ShrinkRun, carry_out

    shrinking = ShrinkRun.load(out)
    run = shrinking.run
    with suite_status(events) as status:

        def tell(play: int, words: str) -> None:
            check_interrupted()
            status.event(play=play, words=words)

        def open_all(ending: ExitStack) -> Arms:
            if isinstance(run, ScenarioRun):
                return open_arms(run, ending, status, world_arm)
            return open_arms(run, ending, status, open_arm)

        return carry_out(shrinking, open_all, status.control.line, status.count(run.pairs_to_come), tell)


def blame(out: Path, events: ProgressEvents) -> Summary:
    """Play one pair again and again, with every topic of the stack recorded."""
    from mt_nodes.nodes.message_contents import content_reader
    from mt_nodes.nodes.tapped_arm import TappedArm
    from mt_nodes.runs.blame.blame_run import BlameRun, carry_out

    blaming = BlameRun.load(out)
    kind: Any = partial(TappedArm, patterns=blaming.request.topics)
    opened: Any = open_arm if isinstance(blaming.run, Run) else world_arm
    with suite_status(events) as status:

        def tell(play: int, words: str) -> None:
            check_interrupted()
            status.event(play=play, words=words)

        def open_all(ending: ExitStack) -> Any:
            return open_arms(blaming.run, ending, status, partial(opened, kind=kind))

        return carry_out(blaming, open_all, lambda graph: content_reader(graph.types), tell)


def bisect(out: Path, events: ProgressEvents) -> Summary:
    """Play one pair in one version of the stack, as often as a test of it needs."""
    from mt_nodes.runs.bisect.case_run import carry_out, load_case

    run, asked = load_case(out)
    opened: Any = open_arm if isinstance(run, Run) else world_arm
    with suite_status(events) as status:

        def tell(outcome: Outcome, why: str) -> None:
            status.event(play=outcome.value, words=why)
            check_interrupted()

        return carry_out(run, asked, lambda ending: open_arms(run, ending, status, opened), tell)


#: What carries out a run, by the key of its request that no other kind of run has.
KINDS = {"bags": replay, "scenarios": drive, "principles": moral, "replay": search}


if __name__ == "__main__":
    main()
