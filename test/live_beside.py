# SPDX-License-Identifier: Apache-2.0
"""A live system of the test's own, and the live suite beside it in this process."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from recordings import bundles
from ros_support import Peer
from rosgraph_msgs.msg import Clock
from std_msgs.msg import String

from mt_nodes.data.cdr import codec
from mt_nodes.data.cdr.wire import encode_message
from mt_nodes.data.message_headers import set_stamp
from mt_nodes.data.outputs import Detections
from mt_nodes.nodes import live_suite, qos
from mt_nodes.nodes.adapters.marker_adapters import MarkerArrayObstacles
from mt_nodes.nodes.message_classes import message_class
from mt_nodes.nodes.suite_process import ProgressEvents
from mt_nodes.runs.live.commands import Commands
from mt_nodes.runs.live.config import live_config
from mt_nodes.runs.live.live_run import LiveRun

MARKERS, BOXES = "visualization_msgs/msg/MarkerArray", "/perception/obstacles"
HZ = 8.0

TINY = """
from mt_nodes.data.outputs import Control

def detect(points):
    return [[8.0, 1.0, 0.5, 4.0, 2.0, 1.5, 0.5]] if len(points) else []

def steer(points):
    return Control(None, yaw_rate_radps=0.25, speed_mps=5.0)
"""
STACK = {
    "callable": "tiny:detect",
    "inputs": {"lidar": "/points"},
    "stateless": True,
    # A machine that is too busy loses messages: that is no violation here.
    "publishes_when_empty": False,
    "deadline_s": 5.0,
    "ready_timeout_s": 60.0,
}
CHECKED = """
id: still_there
kind: necessary
because: for tests
mutate: [{noise_outside_roi: {points: 5}}]
check: {obstacles_kept: {}}
min_decided: 1
"""
STEERS = CHECKED.replace("still_there", "still_steers").replace("{obstacles_kept: {}}", "{steering_within: {}}")


class Live:
    """A live system in one domain: a sensor at its own pace, and a stack of the test's that answers each cloud."""

    def __init__(
        self, ending: ExitStack, domain: int, *, answers: bool = True, clock: bool = False, hz: float = HZ
    ) -> None:
        self.peer = Peer(ending, domain, "live_stack")
        self._period_ns = round(1e9 / hz)
        self.answered = self.sent = 0
        self.torn = False
        self._cloud = replace(bundles(1, 20)[0].clouds[0], frame_id="base_link")
        self._adapter = MarkerArrayObstacles()
        self._boxes = self.peer.publisher(MARKERS, BOXES)
        self._points = self.peer.publisher(codec.POINT_CLOUD, "/points", qos.REPLAY)
        self._note = self.peer.publisher(codec.STRING, "/note", qos.REPLAY)
        self._clock = self.peer.publisher("rosgraph_msgs/msg/Clock", "/clock", qos.CLOCK) if clock else None
        if answers:
            self.peer.node.create_subscription(message_class(codec.POINT_CLOUD), "/points", self._answer, qos.REPLAY)
        self.peer.node.create_timer(1.0 / hz, self._tick)

    def _tick(self) -> None:
        stamp_ns = 10**18 + self.sent * self._period_ns
        self.sent += 1
        if self._clock is not None:
            now = Clock()
            set_stamp(now.clock, stamp_ns)
            self._clock.publish(now)
        self._note.publish(String(data=f"before {stamp_ns}"))
        message = encode_message(replace(self._cloud, stamp_ns=stamp_ns))
        self._points.publish(message[: len(message) // 2] if self.torn else message)

    def _answer(self, message: Any) -> None:
        self.answered += 1
        said = Detections.make(
            "base_link", codec.stamp_ns_of(message.header), [(8.0, 1.0, 0.5)], [(4.0, 2.0, 1.5)], [0.5]
        )
        self._boxes.publish(self._adapter.encode(said))


class KeptCommands(Commands):
    """Commands that the test can give, too."""

    last: KeptCommands

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        KeptCommands.last = self


class UntilTurn(ProgressEvents):
    """Stops the run when so many turns are over, and control and relation were tested so often, however slow it is.

    On a loaded machine a whole turn may be over budget.
    """

    def __init__(self, turns: int, tested: int = 0) -> None:
        super().__init__(None)
        self._turns, self._least = turns, tested
        self._tested, self._by_relation = 0, Counter[str]()

    def send(self, event: Mapping[str, Any]) -> None:
        tested = event.get("tested", self._tested)
        self._by_relation[event.get("relation", "")] += tested - self._tested
        self._tested = tested
        often = sum(count >= self._least for name, count in self._by_relation.items() if name)
        if event.get("segment", 0) >= self._turns and (not self._least or often >= 2):
            KeptCommands.last.stop()


def carrying(tmp_path: Path, live_domain: int, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Return what carries a live run out in this process and returns its lines, its summary and its directory."""
    (tmp_path / "tiny.py").write_text(TINY)
    (tmp_path / "still_there.yaml").write_text(CHECKED)
    (tmp_path / "still_steers.yaml").write_text(STEERS)

    monkeypatch.setattr(live_suite, "Commands", KeptCommands)

    def carried(
        mode: str, stack: dict[str, Any] | None = None, events: ProgressEvents | None = None, **config: Any
    ) -> Any:
        (tmp_path / "stack.yaml").write_text(json.dumps({**STACK, **(stack or {})}))
        given = {
            "mode": mode,
            "stack": str(tmp_path / "stack.yaml"),
            "relations": [str(tmp_path / "still_there.yaml")],
            "live_domain": live_domain,
            "segments": {"test_bundles": 4, "restart_after_bundles": 10_000},
            "use_sim_time": "false",
            "caps": {"policy": "normal"},  # other tests keep the cores busy
            **config,
        }
        run = LiveRun.create(live_config(given, "test"), str(tmp_path / f"out_{mode}"))
        summary = live_suite._carry_out(LiveRun.load(run.out), events or UntilTurn(2, tested=3))
        lines = [json.loads(line) for line in (run.out / "result.jsonl").read_text().splitlines()[1:]]
        return lines, summary, run.out

    return carried
