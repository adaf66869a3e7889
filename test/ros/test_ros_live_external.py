# SPDX-License-Identifier: Apache-2.0
"""Beside a live stack, with an instance that somebody else starts, ends, and starts again: a process of the test's."""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest
import yaml
from live_beside import BOXES, MARKERS, STACK, KeptCommands, Live, carrying
from ros_support import LIMIT_S, Peer, puppet_bundle, topics_of, until
from std_srvs.srv import Empty, SetBool, Trigger

from mt_nodes.base.environment import ros_environment
from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.base.params import build
from mt_nodes.base.process_clock import process_time_s
from mt_nodes.base.processes import Child, Process
from mt_nodes.data.cdr import codec
from mt_nodes.data.outputs import Detections
from mt_nodes.engine.arm import UnansweredInput
from mt_nodes.engine.arrival import Arrivals
from mt_nodes.engine.judging import Answer, AnswerStatus
from mt_nodes.engine.pairing import Ticket
from mt_nodes.engine.plan import ArmPlan
from mt_nodes.nodes import introduction, qos
from mt_nodes.nodes.adapters.marker_adapters import MarkerArrayObstacles
from mt_nodes.nodes.arm_inputs import ArmDomain, ArmInputs
from mt_nodes.nodes.external_arm import ExternalArm
from mt_nodes.nodes.listening_arm import ListeningArm
from mt_nodes.nodes.message_classes import message_class
from mt_nodes.nodes.suite_process import ProgressEvents
from mt_nodes.stacks.stack import Stack

NODE = "/callable_stack"


def external(domains: Any, **rest: Any) -> dict[str, Any]:
    """A stack file of an instance in the third domain; the live one is in the second."""
    where = {"source": domains[1], "followup": domains[2]}
    return {"callable": "", "start": "external", "domain": where, "nodes": [NODE], **rest}


@pytest.fixture
def carry_out(tmp_path: Path, domains: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Carries a live run out in this process; returns its lines, its summary and its directory."""
    return carrying(tmp_path, domains[1], monkeypatch)


class Instance:
    """The process that somebody else starts."""

    def __init__(self, ending: ExitStack, tmp_path: Path, domain: int) -> None:
        (tmp_path / "transforms.yaml").write_text("[]")
        (tmp_path / "hosted.yaml").write_text(yaml.safe_dump(STACK))
        files = ("--stack", str(tmp_path / "hosted.yaml"), "--transforms", str(tmp_path / "transforms.yaml"))
        argv = (sys.executable, "-m", "mt_nodes.nodes.callable_stack", *files)
        self._process = Process("instance", argv, ros_environment(os.environ, domain), tmp_path / "instance.log")
        self._ending = ending

    def start(self) -> None:
        self._child = Child(self._process)
        self._ending.callback(self._child.stop, 5.0)

    def kill(self) -> None:
        """End it as a crash does: nobody is told."""
        os.killpg(self._child.pid, signal.SIGKILL)


Told = Mapping[str, Any]


class Script(ProgressEvents):
    """Does one thing after the other, each as soon as the run tells that its time has come."""

    def __init__(self, *steps: tuple[Callable[[Told], bool], Callable[[], object]]) -> None:
        super().__init__(None)
        self._steps = list(steps)

    def send(self, event: Told) -> None:
        if self._steps and "state" in event and self._steps[0][0](event):
            self._steps.pop(0)[1]()


def stop() -> None:
    KeptCommands.last.stop()


def not_there(event: Told) -> bool:
    return "external stack" in event["waiting_for"]


def test_an_instance_that_dies_and_comes_back(
    carry_out: Callable[..., Any], ending: ExitStack, domains: Any, tmp_path: Path
) -> None:
    Live(ending, domains[1])
    instance = Instance(ending, tmp_path, domains[2])
    tested: list[int] = []

    def enough(event: Told) -> bool:
        """Whether six were tested since it was there again."""
        tested.append(event["tested"])
        return tested[-1] >= tested[0] + 6

    script = Script(
        (not_there, instance.start),
        (lambda event: event.get("tested", 0) >= 3, instance.kill),
        (not_there, instance.start),
        (lambda event: not event["waiting_for"] and enough(event), stop),
    )
    turns = {"test_bundles": 99, "restart_after_bundles": 10_000}
    lines, summary, _ = carry_out("shadow", external(domains), script, segments=turns)
    said = Counter((line["outcome"], line["reason"][:40]) for line in lines)
    count = Counter(line["outcome"] for line in lines)
    assert not count["VIOLATED"], said
    lost = [i for i, line in enumerate(lines) if line["outcome"] == "ERROR"]
    away = [i for i, line in enumerate(lines) if line["reason"].startswith("not there: external stack")]
    held = [i for i, line in enumerate(lines) if line["outcome"] == "HOLDS"]
    assert lost and all("the external stack went" in lines[i]["reason"] for i in lost), said
    assert away and all(lines[i]["outcome"] == "SKIPPED" and str(domains[2]) in lines[i]["reason"] for i in away), said
    assert held[0] < lost[0] < away[0] < held[-1], "it is judged again when it is back"
    assert [lines[i]["outcome"] for i in range(away[-1] + 1, held[-1])].count("SETTLING") > 0
    numbers = [int(line["pair"].split("/")[1]) for line in lines]
    assert sorted(numbers) == list(range(len(lines))), "one relation judges, so that every instant has one line"
    assert summary["exit_code"] == 4 and "ERROR" in summary["exit_why"]


def test_an_instance_that_is_not_there_in_time_ends_the_run_and_says_where_it_was_looked_for(
    carry_out: Callable[..., Any], ending: ExitStack, domains: Any
) -> None:
    Live(ending, domains[1])
    events = ProgressEvents(None)
    lines, summary, _ = carry_out("shadow", external(domains, ready_timeout_s=0.5), events)
    assert lines == [] and summary["exit_code"] == 4
    for words in (
        f"domain {domains[2]}",
        "nobody subscribes to /points",
        "not there after 0.5 s",
        "mt doctor --live-config",
    ):
        assert words in summary["exit_why"], summary["exit_why"]


@pytest.fixture
def arm(ending: ExitStack, domains: Any) -> Callable[..., ExternalArm]:
    """Makes an arm whose stack names a reset service."""

    def made(service: str, limit_s: float = 30.0) -> ExternalArm:
        file = {**STACK, **external(domains, reset=service, ready_timeout_s=limit_s)}
        stack = build(Stack, {"name": "x", **file}, "test")
        plan = ArmPlan("followup", domains[2])
        arrivals = Arrivals(stack.answers, stack.match, 0.1)
        arm = ExternalArm(
            plan, ArmDomain(domains[2], False), stack, None, ArmInputs({}, frozenset()), arrivals=arrivals
        )
        ending.callback(arm.stop)
        return arm

    return made


@pytest.mark.parametrize("kind", [Trigger, Empty])
def test_what_forgets_by_a_service_is_asked_to(
    kind: Any, arm: Callable[..., ExternalArm], ending: ExitStack, domains: Any
) -> None:
    asked: list[str] = []

    def forget(request: Any, response: Any) -> Any:
        asked.append("forget")
        if kind is Trigger:
            response.success = True
        return response

    Peer(ending, domains[2], "tracker").node.create_service(kind, "/tracker/reset", forget)
    arm("/tracker/reset").restart()
    assert asked


@pytest.mark.parametrize(
    ("kind", "error", "words"),
    [
        (Trigger, InfrastructureError, "/tracker/reset of the external stack .* refused: too busy"),
        (SetBool, UsageError, "/tracker/reset .* is of type std_srvs/srv/SetBool, expected std_srvs/srv/Trigger or"),
        (None, InfrastructureError, "nobody offers reset service /tracker/reset .* mend reset in the stack file"),
    ],
)
def test_a_service_that_cannot_make_it_forget_is_told(
    kind: Any, error: Any, words: str, arm: Callable[..., ExternalArm], ending: ExitStack, domains: Any
) -> None:
    def refuse(request: Any, response: Any) -> Any:
        response.success, response.message = False, "too busy"
        return response

    if kind is not None:
        Peer(ending, domains[2], "tracker").node.create_service(kind, "/tracker/reset", refuse)
    with pytest.raises(error, match=words):
        arm("/tracker/reset", 30.0 if kind else 0.5).restart()


def test_an_instance_that_may_not_know_of_us_is_not_there_yet(
    ending: ExitStack, domains: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(introduction, "REPLY_S", LIMIT_S)
    peer, go_on = Peer(ending, domains[2], NODE[1:]), Event()
    peer.publisher(MARKERS, BOXES)
    peer.listen(codec.POINT_CLOUD, "/points", qos.REPLAY)
    peer.node.create_timer(0.0, go_on.wait)
    ending.callback(go_on.set)
    arm = external_arm(ending, domains)
    until(lambda: arm.presence().away.endswith(": it has not found us yet"))
    go_on.set()
    until(lambda: not arm.presence().away)


def external_arm(ending: ExitStack, domains: Any, deadline_s: float = 0.2) -> ExternalArm:
    stack = build(Stack, {"name": "x", **STACK, **external(domains, deadline_s=deadline_s)}, "test")
    given = topics_of(puppet_bundle(0))
    plan, arrivals = ArmPlan("followup", domains[2]), Arrivals(stack.answers, stack.match, 0.1)
    arm = ExternalArm(
        plan, ArmDomain(domains[2]), stack, None, ArmInputs(given, frozenset({"/points"})), arrivals=arrivals
    )
    ending.callback(arm.stop)
    return arm


def test_silence_counts_when_the_instance_spoke_later_and_what_it_had_when_it_went_is_lost(
    ending: ExitStack, domains: Any
) -> None:
    lives = ending.enter_context(ExitStack())
    peer = Peer(lives, domains[2], NODE[1:])
    says = peer.publisher(MARKERS, BOXES)
    peer.listen(codec.POINT_CLOUD, "/points", qos.REPLAY)
    arm = external_arm(ending, domains)
    until(lambda: not arm.presence().away)
    asked = arm.send(puppet_bundle(0), frozenset())
    assert isinstance(asked, Ticket)
    until(lambda: process_time_s() > asked.sent_s + arm._stack.deadline_s)
    assert arm.wait(asked, process_time_s()) is None, "it may have been killed"
    said: list[Answer] = []

    def answered(ticket: Ticket | UnansweredInput) -> bool:
        said.extend(filter(None, [arm.wait(ticket, process_time_s())]))
        return bool(said)

    def spoken() -> bool:
        says.publish(MarkerArrayObstacles().encode(Detections.none("base_link", 7)))
        return answered(asked)

    until(spoken)
    assert said.pop().status is AnswerStatus.SILENT
    lost = arm.send(puppet_bundle(1), frozenset())
    lives.close()
    until(lambda: arm.presence().away)
    assert arm.presence().times_lost == 1 and arm.status()["times_lost"] == 1
    late = arm.send(puppet_bundle(2), frozenset())
    until(lambda: answered(late))
    assert said.pop().status is AnswerStatus.SKIPPED
    assert arm.wait(lost, process_time_s()) is None, "whoever waits is told by the presence"


@pytest.mark.parametrize("kind", ["ours", "live"])
def test_an_arm_tells_laps_of_a_looped_bag_apart(ending: ExitStack, domains: Any, kind: str) -> None:
    """The first lap's input was lost; its stamp comes again long before the deadline."""
    peer = Peer(ending, domains[2], NODE[1:])
    says = peer.publisher(MARKERS, BOXES)
    peer.listen(codec.POINT_CLOUD, "/points", qos.REPLAY)
    if kind == "ours":
        arm: ExternalArm | ListeningArm = external_arm(ending, domains, deadline_s=60.0)
    else:
        stack = build(Stack, {"name": "x", **STACK, "deadline_s": 60.0}, "test")
        arm = ListeningArm(Peer(ending, domains[2], "mt_tap").node, stack, 0.1)
    until(lambda: says.get_subscription_count() and all(arm._listener.publisher_counts().values()))
    bundle = puppet_bundle(0)
    first, second = (arm.send(replace(bundle, episode=lap), frozenset()) for lap in (0, 1))
    assert isinstance(first, Ticket) and isinstance(second, Ticket)
    says.publish(MarkerArrayObstacles().encode(Detections.none("base_link", bundle.stamp_ns)))
    until(lambda: first.parts or second.parts)
    answer = arm.wait(second, process_time_s())
    assert answer is not None and answer.status is AnswerStatus.ANSWERED
    assert arm.wait(first, process_time_s()) is None


class Twice:
    """A stack that is blind to follow-ups and says each answer twice, the second when the next input is there."""

    def __init__(self, ending: ExitStack, domain: int) -> None:
        self._peer = Peer(ending, domain, NODE[1:])
        self._says = self._peer.publisher(MARKERS, BOXES)
        self._said: Any = None
        self._peer.node.create_subscription(message_class(codec.POINT_CLOUD), "/points", self._answer, qos.REPLAY)

    def _answer(self, message: Any) -> None:
        if self._said is not None:
            self._says.publish(self._said)
        sees = [(8.0, 1.0, 0.5)] if message.width == 20 else []
        stamp_ns, shape = codec.stamp_ns_of(message.header), ([(4.0, 2.0, 1.5)] * len(sees), [0.5] * len(sees))
        self._said = MarkerArrayObstacles().encode(Detections.make("base_link", stamp_ns, sees, *shape))
        self._says.publish(self._said)


def test_an_instance_that_answers_an_input_twice_is_refused_in_alternate(
    carry_out: Callable[..., Any], ending: ExitStack, domains: Any
) -> None:
    """Else its second answer to the source would be taken for that to the follow-up, and the relation would hold."""
    Live(ending, domains[1])
    Twice(ending, domains[2])
    there = external(domains, domain={"source": domains[2]})
    lines, summary, _ = carry_out("alternate", there)
    held = [line for line in lines if line.get("relation") == "still_there" and line["outcome"] == "HOLDS"]
    assert not held and summary["exit_code"] == 4, summary["exit_why"]
    assert "has answered one input more than once" in summary["infrastructure"]
    assert summary["infrastructure"].endswith("let it answer once, or use mode: twin or shadow")
