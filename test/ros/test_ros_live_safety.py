# SPDX-License-Identifier: Apache-2.0
"""Beside a live stack: instances in boxes, leaks that come up while it goes on, a live stack that suffers."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from live_beside import BOXES, KeptCommands, Live, carrying
from ros_support import Peer
from std_msgs.msg import Float32

from mt_nodes.base.errors import ExitCode, IsolationError
from mt_nodes.nodes import live_safety, qos
from mt_nodes.nodes.message_classes import message_class
from mt_nodes.nodes.suite_process import ProgressEvents
from mt_nodes.runs.vehicle.box_report import BoxReport, what_can_be_boxed

STEER = "/vehicle/steer"
ACTUATORS = {"topics": ["/vehicle/*"]}
#: Why nothing is tested beside a live stack that suffers.
SLOW = "not now: the live stack answers"
#: Not about what is in time: a machine that is too busy makes nothing in less.
LATE_S = 1.0
needs_box = pytest.mark.skipif(
    not what_can_be_boxed().whole, reason=f"no whole box here: {'; '.join(what_can_be_boxed().shortfalls)}"
)


@pytest.fixture
def carry_out(tmp_path: Path, domains: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    return carrying(tmp_path, domains[1], monkeypatch)


class When(ProgressEvents):
    """Does something once when so much was tested; stops the run a while after that."""

    def __init__(self, tested: int, do: Callable[[], None], until: Callable[[Mapping[str, Any]], bool]) -> None:
        super().__init__(None)
        self._tested, self._do, self._until = tested, do, until
        self.did_s: float | None = None

    def send(self, event: Mapping[str, Any]) -> None:
        if self.did_s is None and event.get("tested", 0) >= self._tested:
            self.did_s = time.monotonic()
            threading.Thread(target=self._do_or_stop).start()
        if self.did_s is not None and self._until(event):
            KeptCommands.last.stop()

    def _do_or_stop(self) -> None:
        """Do it; what fails ends the run, which would wait for it in vain, and pytest tells it."""
        try:
            self._do()
        except Exception:
            KeptCommands.last.stop()
            raise


@needs_box
def test_instances_in_boxes_answer_as_ever(carry_out: Callable[..., Any], ending: ExitStack, domains: Any) -> None:
    """Both of them; a single one beside the live stack is in a box in test_ros_adversarial.py."""
    Live(ending, domains[1])
    lines, summary, out = carry_out("twin", box={"use": "required"}, actuators=ACTUATORS, delay_s=LATE_S)
    count = Counter(line["outcome"] for line in lines)
    why = Counter((line["outcome"], line["reason"]) for line in lines)
    assert count["HOLDS"] >= 4 and not count["VIOLATED"] and not count["ERROR"], (summary["exit_why"], why)
    safety = summary["safety"]
    assert safety["box"] == "required" and safety["box_lacks"] == []
    assert safety["usage"]["cores_mean"] > 0.0 and safety["usage"]["memory_mb_max"] > 50.0
    assert all((out / f"box_{arm}_box_report.json").exists() for arm in ("source", "followup"))


def test_a_box_that_is_required_and_not_to_be_had_is_refused_before_anything_is_started(
    carry_out: Callable[..., Any], ending: ExitStack, domains: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    lacks = BoxReport({"network": "Operation not permitted"})
    monkeypatch.setattr(live_safety, "what_can_be_boxed", lambda: lacks)
    with pytest.raises(IsolationError, match=r"box\.use: required, and no layer 'network'") as refused:
        carry_out("shadow", box={"use": "required"})
    assert refused.value.exit_code == ExitCode.ISOLATION


#: Found in the way that others are: in test_ros_adversarial.py, or under the live stack's own name. Not in each run.
@pytest.mark.parametrize(
    "how",
    [*(pytest.param(how, marks=pytest.mark.long) for how in ("actuator", "answers")), "the live stack's own name"],
)
def test_who_brings_commands_to_the_live_domain_while_it_goes_on_ends_the_run(
    how: str, carry_out: Callable[..., Any], ending: ExitStack, domains: Any
) -> None:
    """As a bridge between two domains would, or a stack that joined the live domain by itself."""
    Live(ending, domains[1])
    name = "bridge" if how in ("actuator", "answers") else "live_stack"
    other = Peer(ending, domains[1], name)
    kind, topic = (
        (Float32, STEER) if how == "actuator" else (message_class("visualization_msgs/msg/MarkerArray"), BOXES)
    )
    events = When(2, lambda: other.node.create_publisher(kind, topic, 1), lambda event: False)
    _, summary, _ = carry_out("shadow", events=events, actuators=ACTUATORS, delay_s=LATE_S)
    assert summary["exit_code"] == ExitCode.ISOLATION
    assert f"/{name} publishes {topic}" in summary["isolation"] and "nothing more is tested" in summary["isolation"]
    assert events.did_s is not None
    print(f"noticed and ended within {time.monotonic() - events.did_s:.2f} s")


def test_an_observer_may_join_an_arm_and_who_would_carry_commands_out_ends_the_run(
    carry_out: Callable[..., Any], ending: ExitStack, domains: Any, tmp_path: Path
) -> None:
    from mt_nodes.runs.live.live_run import read_domains

    Live(ending, domains[1])
    tested = [2]  # the first may have joined before the event that lets it in has been looked at

    def join(name: str) -> None:
        domain = read_domains(tmp_path / "out_shadow")["followup"]
        Peer(ending, domain, name).node.create_subscription(Float32, STEER, print, 1)

    def watch(event: Mapping[str, Any]) -> bool:
        """Let the second in when as much was tested beside the first as a leak would have ended; go on."""
        tested.append(event["tested"])
        if len(joined) == 1 and event["tested"] >= joined[0] + 8:
            joined.append(event["tested"])
            threading.Thread(target=join, args=["driver"]).start()
        return False

    joined: list[int] = []

    def first() -> None:
        join("rosbag2_recorder")
        joined.append(tested[-1])

    events = When(2, first, watch)
    told = {"actuators": ACTUATORS, "observers": ["/rosbag2_*"], "delay_s": LATE_S}
    _, summary, _ = carry_out("shadow", events=events, **told)
    assert len(joined) == 2, "the observer ended it"
    assert summary["exit_code"] == ExitCode.ISOLATION
    assert f"/driver subscribes to {STEER}" in summary["isolation"]


def test_a_live_stack_that_slows_down_is_not_tested_beside(
    carry_out: Callable[..., Any], ending: ExitStack, domains: Any, tmp_path: Path
) -> None:
    live = Live(ending, domains[1], answers=False)
    starved = threading.Event()

    def answer(message: Any) -> None:
        if not (starved.is_set() and live.sent % 3):
            live._answer(message)

    kind = message_class("sensor_msgs/msg/PointCloud2")
    live.peer.node.create_subscription(kind, "/points", answer, qos.REPLAY)

    def noticed(_: Mapping[str, Any]) -> bool:
        """Much else is skipped where the machine is busy."""
        return (tmp_path / "out_shadow" / "result.jsonl").read_text().count(f'"{SLOW}') >= 3

    events = When(2, starved.set, noticed)
    guard = {"baseline_s": 4.0, "window_s": 2.0, "rate_ratio": 0.8, "latency_ratio": 0.0, "recover_s": 1.0}
    lines, summary, _ = carry_out("shadow", events=events, guard=guard, delay_s=LATE_S)
    assert sum(line["outcome"] == "SKIPPED" and line["reason"].startswith(SLOW) for line in lines) >= 3
    assert 5.0 < summary["safety"]["live_stack_before"]["rate_hz"] < 10.0


def bundle_of(line: Mapping[str, Any]) -> int:
    return int(line["pair"].split("/")[1])


def test_a_run_that_takes_more_processor_time_than_it_may_tests_nothing_and_is_not_green(
    carry_out: Callable[..., Any], ending: ExitStack, domains: Any
) -> None:
    """The first test begins before anything was taken; what it took is known a little later."""
    Live(ending, domains[1])
    told: list[Mapping[str, Any]] = []

    def noticed(event: Mapping[str, Any]) -> bool:
        told.append(event)
        return bool(event.get("skipped", 0) >= 5)

    limits = {"duty_ms_per_s": 1.0}
    lines, summary, _ = carry_out("shadow", events=When(0, lambda: None, noticed), limits=limits, delay_s=LATE_S)
    begun = [line for line in lines if line["outcome"] not in ("SKIPPED", "SETTLING")]
    skipped = [line for line in lines if line["outcome"] == "SKIPPED" and line["reason"].startswith("over duty")]
    assert max(map(bundle_of, begun), default=-1) < min(map(bundle_of, skipped)), "nothing is tested once it is known"
    over = Counter(line["reason"] for line in lines if line["outcome"] == "SKIPPED")
    assert over["over duty: limits.duty_ms_per_s is 1"] >= 5
    assert summary["exit_code"] == ExitCode.UNDECIDED, summary["exit_why"]
    assert summary["safety"]["duty_ms_per_s"] == 1.0 and told[-1]["duty_ms_per_s"] == 1.0
