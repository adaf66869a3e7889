# SPDX-License-Identifier: Apache-2.0
"""Watching over real topics, and recordings of them: nothing is published, and what is wrong is found."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from geometry_msgs.msg import TwistStamped
from live_beside import Live
from rclpy.serialization import serialize_message
from recordings import Recorded, cloud, recorded, stamp, write_bag

from mt_nodes.base.jsonl import read_result
from mt_nodes.cli.main import main
from mt_nodes.data.cdr import codec
from mt_nodes.data.message_headers import set_stamp
from mt_nodes.nodes import qos, watch_suite
from mt_nodes.nodes.message_classes import message_class
from mt_nodes.nodes.suite_process import ProgressEvents
from mt_nodes.runs.watch.watch_run import WatchRun

TWIST, COMMANDS = "geometry_msgs/msg/TwistStamped", "/control/command"
STACK = {
    "command": ["true"],
    "inputs": {"lidar": "/points"},
    "outputs": {"control": {"topic": COMMANDS, "type": TWIST}},
    "stateless": True,
}
#: A step of 0.8 m/s from one command to the next is none of the mistakes here.
POSSIBLE = {"accelerate_mps2": 30.0, "brake_mps2": 30.0, "jerk_mps3": 900.0}
WATCH = {"relations": [{"speed_within_limit": {"limit_mps": 13.9}}, {"commands_possible": POSSIBLE}], "min_frames": 5}


def command(stamp_ns: int, speed_mps: float) -> TwistStamped:
    message = TwistStamped()
    set_stamp(message.header.stamp, stamp_ns)
    message.twist.linear.x = speed_mps
    return message


class Driver(Live):
    """A live system whose stack commands a speed for each cloud: ten too fast ones in a row are planted."""

    def __init__(self, ending: ExitStack, domain: int) -> None:
        super().__init__(ending, domain, answers=False)
        self._commands = self.peer.publisher(TWIST, COMMANDS)
        self.peer.node.create_subscription(message_class(codec.POINT_CLOUD), "/points", self._drive, qos.REPLAY)

    def _drive(self, message: Any) -> None:
        self.answered += 1
        fast = self.answered % 40 in range(20, 30)
        self._commands.publish(command(codec.stamp_ns_of(message.header), 14.6 if fast else 13.8))


def configuration(tmp_path: Path, domain: int, **watch: Any) -> str:
    (tmp_path / "stack.yaml").write_text(json.dumps(STACK))
    given = {"stack": str(tmp_path / "stack.yaml"), "live_domain": domain, "bundles": 45, "watch": {**WATCH, **watch}}
    (tmp_path / "live.yaml").write_text(json.dumps(given))
    return str(tmp_path / "live.yaml")


def test_a_live_stack_is_watched_by_a_process_that_publishes_nothing(
    tmp_path: Path, domains: Any, ending: ExitStack, capsys: pytest.CaptureFixture[str]
) -> None:
    driver = Driver(ending, domains[1])
    latest: set[str] = set()

    def look() -> None:
        """Note what the node does now: it has a publisher of /parameter_events for the moment in which it is made."""
        does = set()
        for topic, _ in driver.peer.node.get_topic_names_and_types():
            for row in driver.peer.node.get_publishers_info_by_topic(topic):
                does.update({f"publishes {topic}"} if row.node_name == watch_suite.WATCH_NODE else ())
            for row in driver.peer.node.get_subscriptions_info_by_topic(topic):
                does.update({f"hears {topic}"} if row.node_name == watch_suite.WATCH_NODE else ())
        if {"hears /points", f"hears {COMMANDS}"} <= does:
            latest.clear()
            latest.update(does)

    driver.peer.node.create_timer(0.2, look)
    out = tmp_path / "out"
    assert main(["live", "--watch-only", "--config", configuration(tmp_path, domains[1]), "--out", str(out)]) == 1
    assert latest and not [text for text in latest if text.startswith("publ")]
    watched = read_result(out / "summary.json")["watched"]
    limit = watched["speed_within_limit"]
    # Ten commands in a row are one violation.
    assert limit["events"] in (1, 2) and limit["breached_frames"] > 2 * limit["events"]
    assert limit["frames"] > 20 and limit["watched_s"] > 2.0 and watched["commands_possible"]["outcome"] == "PASS"
    assert "speed_within_limit" in capsys.readouterr().out and (out / "report.html").is_file()


def test_a_stack_that_says_nothing_is_not_watched(tmp_path: Path, domains: Any, ending: ExitStack) -> None:
    Live(ending, domains[2], answers=False)
    config = configuration(tmp_path, domains[2])
    assert main(["live", "--watch-only", "--config", config, "--out", str(tmp_path / "out")]) == 3
    summary = read_result(tmp_path / "out" / "summary.json")
    assert summary["unanswered"] == summary["frames"] >= 45
    assert {each["why"] for each in summary["watched"].values()} == {"nothing was watched"}


def bag(tmp_path: Path, *, commands: bool = True, fast: int = -1) -> Path:
    rows = [recorded(cloud(number)) for number in range(30)]
    for number in range(30 if commands else 0):
        message = command(stamp(number), 14.6 if number == fast else 13.8)
        rows.append(Recorded(COMMANDS, TWIST, stamp(number) + 20_000_000, serialize_message(message)))
    return write_bag(tmp_path / f"bag_{commands}_{fast}", sorted(rows, key=lambda row: row.received_ns))


@pytest.mark.parametrize(("fast", "code"), [(-1, 0), (17, 1), (29, 1)])
def test_recorded_outputs_are_watched_as_live_ones(fast: int, code: int, tmp_path: Path, domains: Any) -> None:
    run = watched_bag(tmp_path, bag(tmp_path, fast=fast))
    summary = watch_suite._carry_out(run, ProgressEvents(None))
    limit = summary["watched"]["speed_within_limit"]
    assert (summary["exit_code"], summary["frames"], summary["unanswered"], limit["frames"]) == (code, 30, 0, 30)
    assert [event["stamp_ns"] for event in limit["first_events"]] == [stamp(number) for number in (fast,) if fast >= 0]


def test_a_bag_without_the_outputs_is_refused(tmp_path: Path, domains: Any, capsys: pytest.CaptureFixture[str]) -> None:
    config, empty = configuration(tmp_path, domains[1]), bag(tmp_path, commands=False)
    words = ["replay", str(empty), "--watch-only", "--watch-config", config, "--stack", str(tmp_path / "stack.yaml")]
    assert main([*words, "--out", str(tmp_path / "out")]) == 2
    assert f"has no outputs on {COMMANDS}" in capsys.readouterr().err


def watched_bag(tmp_path: Path, recording: Path) -> WatchRun:
    from mt_nodes.runs.watch.watch_request import bag_request

    config = Path(configuration(tmp_path, 0))
    stack = str(tmp_path / "stack.yaml")
    request = bag_request(config, bags=(str(recording),), inprocess=False, relations=None, stack=stack)
    run = WatchRun.create(request, str(tmp_path / "out"))
    return WatchRun.load(run.out)
