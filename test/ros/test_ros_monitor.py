# SPDX-License-Identifier: Apache-2.0
"""The monitor alone, and beside a mutator; the suite's own topics; all nodes together as processes."""

from __future__ import annotations

import json
import math
import os
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from made_bundles import TREE, made_cloud
from recordings import PERIOD_NS, START_NS, stamp
from ros_support import Peer, until
from std_msgs.msg import String
from test_ros_mutator import LEDGER, Make, joined, lines, sensor, transforms

from mt_nodes.base.environment import ros_environment
from mt_nodes.base.errors import UsageError
from mt_nodes.base.processes import Child, Process
from mt_nodes.data.bags.bundles import write_bundles
from mt_nodes.data.cdr import codec
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.data.outputs import Detections
from mt_nodes.data.transforms import Transform, TransformTree, pose_matrix
from mt_nodes.nodes import qos
from mt_nodes.nodes.adapters.marker_adapters import MarkerArrayObstacles
from mt_nodes.nodes.control import ControlNode
from mt_nodes.nodes.message_classes import message_class
from mt_nodes.nodes.monitor import Monitor
from mt_nodes.nodes.mutator import Mutator
from mt_nodes.nodes.spinning_context import SpinningContext

__all__ = ["transforms"]

MARKERS, BOXES = "visualization_msgs/msg/MarkerArray", "/perception/obstacles"
VERDICTS = "/mt/verdicts"


class Arms:
    """Both arms' outputs and the ledger, as mutator and stacks would publish them; in two domains."""

    def __init__(self, ending: ExitStack, domains: Any, of_followup: ExitStack | None = None) -> None:
        here, there = Peer(ending, domains[1]), Peer(of_followup or ending, domains[2])
        self.ledger = here.publisher("std_msgs/msg/String", LEDGER, qos.JOURNAL)
        self.outputs = here.publisher(MARKERS, BOXES), there.publisher(MARKERS, BOXES)
        self.verdicts = here.listen("std_msgs/msg/String", VERDICTS, qos.JOURNAL)
        self._lap_began_s = math.inf

    def end_lap(self) -> None:
        """Let as long a time pass as the lap has taken: an answer is taken for that of the input nearer in time."""
        now_s = time.monotonic()
        until(lambda: time.monotonic() - now_s > now_s - self._lap_began_s)
        self._lap_began_s = math.inf

    def matched(self) -> None:
        until(lambda: all(p.get_subscription_count() for p in (self.ledger, *self.outputs)))

    def offer(self, index: int, lap: int = 0, relation: str = "noise_outside_roi_10", **more: Any) -> None:
        now_ns = time.time_ns()
        self._lap_began_s = min(self._lap_began_s, time.monotonic())
        line = {"type": "followup", "pair": f"{lap}/{index}/{relation}/0", "relation": relation, "effects": {}}
        line |= {"judged_for": "noise_outside_roi_10", "stamp_ns": stamp(index), "followup_ns": stamp(index)}
        line |= {"came_ns": now_ns, "sent_ns": now_ns}
        self.ledger.publish(String(data=json.dumps(line | more)))

    def control(self, *indices: int) -> None:
        """Offer control, and have both arms answer it."""
        for index in indices:
            self.offer(index, relation="identity")
            self.say(0, index, 2)
            self.say(1, index, 2)

    def say(self, arm: int, index: float, count: int, frame_id: str = "base_link", ego_x_m: float = 0.0) -> None:
        centers = [[ego_x_m + 10.0 + 5 * i, 0.0, 1.0] for i in range(count)]
        boxes = Detections.make(frame_id, stamp(index), centers, [[4.0, 2.0, 1.5]] * count)
        self.outputs[arm].publish(MarkerArrayObstacles().encode(boxes))

    def outcomes(self, count: int) -> dict[str, str]:
        self.verdicts.wait(count)
        return {line["pair"].split("/")[1]: line["outcome"] for line in lines(self.verdicts)}


def test_outputs_in_the_frame_of_a_map_are_judged_by_the_frames_of_the_live_system(
    made: Make, ending: ExitStack, domains: Any, tmp_path: Path
) -> None:
    """The ego drives on in the map, 1 m an instant; nobody gives a file of transforms."""
    stack = tmp_path / "s.yaml"
    stack.write_text("{callable: 'x:y', stateless: true, deadline_s: 0.5}")
    arms = Arms(ending, domains)
    node = made(Monitor, relation="noise_outside_roi_10", stack=stack, followup_domain=domains[2])
    arms.matched()

    def offer(index: int, followup_count: int) -> None:
        arms.offer(index)
        arms.say(0, index, 2, "map", 100.0 + index)
        arms.say(1, index, followup_count, "map", 100.0 + index)

    offer(0, 2)
    assert arms.outcomes(1) == {"0": "NOT_APPLICABLE"}
    assert "no transform from frame 'map' to 'base_link'" in lines(arms.verdicts)[0]["reason"]
    for index in (1, 3):
        pose = pose_matrix((100.0 + index, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0))
        tree = TransformTree([Transform("map", "base_link", pose, stamp(index), static=False)])
        node._frames.take_frames(static=False)(codec.encode_transforms(tree, stamp(index)))
    offer(1, 2)
    offer(2, 1)
    assert arms.outcomes(3) == {"0": "NOT_APPLICABLE", "1": "HOLDS", "2": "VIOLATED"}


def test_the_monitor_judges_by_stamp_whatever_the_order(
    made: Make, ending: ExitStack, domains: Any, tmp_path: Path
) -> None:
    stack = tmp_path / "s.yaml"
    stack.write_text("{callable: 'x:y', stateless: true, deadline_s: 0.5}")
    arms = Arms(ending, domains)
    made(Monitor, relation="noise_outside_roi_10", stack=stack, followup_domain=domains[2])
    arms.matched()
    arms.offer(0)
    arms.say(0, 0, 2)
    arms.outcomes(1)
    for index in (1, 2, 3):
        arms.offer(index)
    arms.say(1, 3, 2)
    arms.say(1, 2, 1)
    arms.say(1, 1, 2)
    for index in (3, 2, 1):
        arms.say(0, index, 2)
    arms.offer(4)
    arms.say(0, 4, 2)
    arms.offer(5)
    arms.say(1, 5, 2)
    arms.offer(6, outcome="INVALID", reason="not proven")
    now_ns = time.time_ns()
    for index, away_s in ((7, -100), (8, 100)):  # heard late, of before this node was there; of a clock that is ahead
        at_ns = now_ns + away_s * 10**9
        arms.offer(index, came_ns=at_ns, sent_ns=at_ns)
        arms.say(0, index, 2)
        arms.say(1, index, 2)
    of_a_replay = {"type": "followup", "pair": "0/9/noise_outside_roi_10/0", "relation": "noise_outside_roi_10"}
    arms.ledger.publish(String(data=json.dumps(of_a_replay)))
    assert arms.outcomes(9) == {
        "0": "UNPAIRED_FOLLOWUP",
        "1": "HOLDS",
        "2": "VIOLATED",
        "3": "HOLDS",
        "4": "UNPAIRED_FOLLOWUP",
        "5": "UNPAIRED_SOURCE",
        "6": "INVALID",
        "7": "UNPAIRED_BOTH",
        "8": "HOLDS",
    }
    lost = next(line for line in lines(arms.verdicts) if line["pair"].startswith("0/2/"))
    assert (lost["lost"], lost["measured"], lost["bound"], lost["stamp_ns"]) == (1, 1, 2, stamp(2))


def test_the_monitor_looks_for_the_answer_under_the_follow_ups_own_stamp(
    made: Make, ending: ExitStack, domains: Any, tmp_path: Path
) -> None:
    stack = tmp_path / "s.yaml"
    stack.write_text("{callable: 'x:y', stateless: true, deadline_s: 60}")
    arms = Arms(ending, domains)
    node = made(Monitor, relation="noise_outside_roi_10", stack=stack, followup_domain=domains[2])
    arms.matched()
    arms.say(1, 1, 0)  # what it says of another instant
    arms.say(0, 1, 2)
    came_ns = time.time_ns()
    arms.offer(1, followup_ns=stamp(1.5), came_ns=came_ns, sent_ns=came_ns + 400_000_000)
    until(lambda: node._pending)
    source, followup = node._pending[0].tickets
    assert followup.sent_s - source.sent_s == pytest.approx(0.4), "the deadline begins when the frame goes out"
    assert followup.until_s == followup.sent_s + 60.0
    arms.say(1, 1.5, 2)
    assert arms.outcomes(1) == {"1": "HOLDS"}


def test_silence_counts_only_where_control_around_it_was_answered(
    made: Make, ending: ExitStack, domains: Any, tmp_path: Path
) -> None:
    """A machine that loses answers loses those to control, too."""
    stack = tmp_path / "s.yaml"
    stack.write_text("{callable: 'x:y', stateless: true, deadline_s: 0.5}")
    arms = Arms(ending, domains)
    made(Monitor, relation="noise_outside_roi_10", stack=stack, followup_domain=domains[2])
    arms.matched()
    arms.control(*range(10))
    arms.outcomes(10)
    for index in (10, 11, 12):
        arms.offer(index)
        arms.say(0, index, 2)
    arms.control(13)
    arms.outcomes(14)
    for silent, control in ((14, 15), (16, 17)):
        arms.offer(silent)
        arms.say(0, silent, 2)
        arms.offer(control, relation="identity")
        arms.say(0, control, 2)
    outcomes = arms.outcomes(18)
    assert {outcomes[str(index)] for index in (10, 11, 12)} == {"VIOLATED"}
    assert {outcomes[str(index)] for index in (14, 15, 16, 17)} == {"UNPAIRED_FOLLOWUP"}
    told = next(line for line in lines(arms.verdicts) if line["pair"].startswith("0/14/"))
    assert told["reason"].endswith("so that the machine may have lost the answer")
    controls = {line["pair"] for line in lines(arms.verdicts) if line["relation"] == "identity"}
    assert "0/0/identity/0@noise_outside_roi_10" in controls


def test_an_input_that_was_lost_is_not_judged_by_the_answer_of_the_next_lap(
    made: Make, ending: ExitStack, domains: Any, tmp_path: Path
) -> None:
    """Which comes long before the deadline."""
    stack = tmp_path / "s.yaml"
    stack.write_text("{callable: 'x:y', stateless: true, deadline_s: 60}")
    arms = Arms(ending, domains)
    node = made(Monitor, relation="noise_outside_roi_10", stack=stack, followup_domain=domains[2])
    arms.matched()
    arms.offer(0, 0)
    arms.say(0, 0, 2)
    until(lambda: node._pending and node._pending[0].tickets[0].parts)
    arms.end_lap()
    arms.offer(0, 1)
    until(lambda: node._pending and node._pending[-1].line["pair"].startswith("1/"))
    arms.say(0, 0, 2)
    arms.say(1, 0, 2)
    arms.verdicts.wait(2)
    told = {line["pair"].split("/")[0]: line["outcome"] for line in lines(arms.verdicts)}
    assert told == {"0": "UNPAIRED_FOLLOWUP", "1": "HOLDS"}


def test_in_a_looped_bag_a_stack_that_was_killed_is_not_judged_by_its_last_lap(
    made: Make, ending: ExitStack, domains: Any, tmp_path: Path
) -> None:
    """The stamps of each lap are those of the first, and the deadline is longer than a lap."""
    stack = tmp_path / "s.yaml"
    stack.write_text("{callable: 'x:y', stateless: true, deadline_s: 1.0}")
    killed = ending.enter_context(ExitStack())
    arms = Arms(ending, domains, killed)
    made(Monitor, relation="noise_outside_roi_10", stack=stack, followup_domain=domains[2])
    arms.matched()
    for lap in range(3):
        for index in range(4):
            control = {"relation": "identity"} if index % 2 else {}
            arms.offer(index, lap, **control)
            arms.say(0, index, 2)
            if lap < 2:
                arms.say(1, index, 2)
        arms.verdicts.wait(min(4 * (lap + 1), 8))
        arms.end_lap()
        if lap == 1:
            killed.close()
    arms.verdicts.wait(12)
    last = [line for line in lines(arms.verdicts) if line["pair"].startswith("2/")]
    assert {line["outcome"] for line in last} == {"UNPAIRED_FOLLOWUP"} and len(last) == 4
    assert {line["outcome"] for line in lines(arms.verdicts) if line not in last} == {"HOLDS"}


class Answering:
    """A stack that sees the same in each cloud, until its publisher is gone; clouds it takes all the same."""

    def __init__(self, ending: ExitStack, domain: int, topic: str) -> None:
        self._peer = Peer(ending, domain, "stack")
        self._says: Any = self._peer.publisher(MARKERS, BOXES)
        self.answers = 0
        self.heard = self._says.get_subscription_count
        self._peer.node.create_subscription(message_class(codec.POINT_CLOUD), topic, self._answer, qos.REPLAY)

    def _answer(self, message: Any) -> None:
        boxes = Detections.make("base_link", codec.stamp_ns_of(message.header), [[10.0, 0.0, 1.0]], [[4.0, 2.0, 1.5]])
        if (says := self._says) is not None:
            says.publish(MarkerArrayObstacles().encode(boxes))
            self.answers += 1

    def end(self) -> None:
        says, self._says = self._says, None
        self._peer.node.destroy_publisher(says)


@pytest.mark.parametrize("killed", ["followup", pytest.param("source", marks=pytest.mark.long)])
def test_mutator_and_monitor_judge_nothing_of_a_stack_that_was_killed_while_a_bag_loops(
    made: Make, ending: ExitStack, domains: Any, tmp_path: Path, transforms: Path, killed: str
) -> None:
    stack = tmp_path / "s.yaml"
    stack.write_text("{callable: 'x:y', stateless: true, deadline_s: 1.0}")
    peer = Peer(ending, domains[1])
    verdicts = peer.listen("std_msgs/msg/String", VERDICTS, qos.JOURNAL)
    stacks = {
        "source": Answering(ending, domains[1], "/sensing/lidar/points"),
        "followup": Answering(ending, domains[2], "/out"),
    }
    living = stacks["followup" if killed == "source" else "source"]
    about = {"relation": "noise_outside_roi_10", "transforms": transforms}
    words = [
        w
        for name, value in {**about, "stack": stack, "followup_domain": domains[2]}.items()
        for w in ("-p", f"{name}:={value}")
    ]
    argv = (sys.executable, "-m", "mt_nodes.nodes.monitor", "--ros-args", *words)
    child = Child(Process("monitor", argv, ros_environment(os.environ, domains[1]), tmp_path / "log"))
    ending.callback(child.stop, 5.0)
    mutator = made(Mutator, **about, output_topic="/out", output_domain=domains[2], control_every=2)
    publisher, send = sensor(peer)
    until(lambda: joined(publisher, mutator) and publisher.get_subscription_count() == 2 and verdicts.matched())
    until(lambda: all(each.heard() for each in stacks.values()))

    def play(laps: int) -> None:
        for _ in range(laps):
            for index in range(5):
                before, answers = mutator._count, living.answers
                send(index)
                until(lambda before=before, answers=answers: mutator._count > before and living.answers > answers)
                # Nor does the next lap begin before the monitor has heard who lives: it would cut the answer off.
                verdicts.wait(mutator._count if alive or index == 4 else 0)

    alive = True
    play(3)
    healthy = lines(verdicts)
    assert {line["outcome"] for line in healthy} == {"HOLDS"}, healthy
    assert [line["pair"].split("/")[0] for line in healthy] == [str(lap) for lap in range(3) for _ in range(5)]
    assert {line["relation"] for line in healthy} == {"identity", "noise_outside_roi_10"}
    alive = False
    stacks[killed].end()
    play(3)
    verdicts.wait(30)
    after = {line["outcome"] for line in lines(verdicts)[15:]}
    assert after == {f"UNPAIRED_{killed.upper()}"}, after
    assert len({line["pair"] for line in lines(verdicts)}) == 30


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"relation": "identity"}, "relation 'identity' has no check of its own"),
        ({"relation": "range_reduced_monotone"}, "monitor: relation 'range_reduced_monotone' has a baseline"),
        ({"stack": "no_such_stack"}, "no stack 'no_such_stack'"),
        ({"stack": "autoware"}, "monitor: stack 'autoware' says match: arrival, and this node pairs by stamp"),
        ({"followup_domain": 300}, "followup_domain"),
    ],
)
def test_a_monitor_that_could_judge_nothing_is_refused(made: Make, parameters: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        made(Monitor, **parameters)


def test_a_late_reader_gets_the_journal_from_its_beginning(ending: ExitStack, domains: Any) -> None:
    ros = SpinningContext(domains[1])
    ending.callback(ros.close)
    control: ControlNode = ros.add(ControlNode)
    control.line(json.dumps({"type": "condition", "seed": 1}))
    verdicts = [{"type": "verdict", "pair": f"0/{i}/r/0", "outcome": o} for i, o in enumerate(("HOLDS", "ERROR"))]
    for line in verdicts:
        control.line(json.dumps(line))
    control.line(json.dumps({"type": "followup", "pair": "0/0/r/0"}))
    late = Peer(ending, domains[1])
    heard = {t: late.listen("std_msgs/msg/String", t, qos.JOURNAL) for t in (VERDICTS, LEDGER)}
    metrics = late.listen("std_msgs/msg/String", "/mt/metrics", qos.STATUS)
    diagnostics = late.listen("diagnostic_msgs/msg/DiagnosticArray", "/mt/diagnostics", qos.STATUS)
    heard[VERDICTS].wait(3)
    heard[LEDGER].wait(1)
    assert lines(heard[VERDICTS]) == [{"type": "condition", "seed": 1}, *verdicts]
    assert lines(heard[LEDGER]) == [{"type": "followup", "pair": "0/0/r/0"}]
    until(lambda: all(control.count_subscribers(t) for t in ("/mt/metrics", "/mt/diagnostics")))

    def told() -> bool:
        control.status({"done": 2})
        return bool(metrics.messages and diagnostics.messages)

    until(told)
    assert lines(metrics)[0] == {"outcomes": {"HOLDS": 1, "ERROR": 1}, "done": 2}
    status, relation = diagnostics.messages[0].status
    assert (relation.name, relation.level) == ("mt_nodes: r", b"\x02")
    assert (status.level, status.message) == (b"\x02", "pairs ended in ERROR")
    assert {v.key: v.value for v in status.values} == {"HOLDS": "1", "ERROR": "1", "done": "2"}
    control.flush(5.0)


def test_a_thread_that_ends_early_leaves_word(ending: ExitStack, domains: Any, capfd: Any) -> None:
    peer = Peer(ending, domains[1])

    def wrong() -> None:
        raise ZeroDivisionError("oh")

    peer.node.create_timer(0.001, wrong)
    until(lambda: peer._ros.failure)
    assert peer._ros.failure == f"the ROS thread of domain {domains[1]} ended: ZeroDivisionError: oh"
    assert "ZeroDivisionError" in capfd.readouterr().err


DETECTOR = """
def detect(points):
    front = points[(points[:, 0] > 5) & (points[:, 0] < 35) & (abs(points[:, 1]) < 5)]
    return [[*front[:, :3].mean(axis=0), 4, 2, 1.5, 0.0]] if len(front) else []
"""


def test_replayer_mutator_two_stacks_and_monitor_make_verdicts(
    ending: ExitStack, domains: Any, tmp_path: Path, transforms: Path
) -> None:
    clouds = [Cloud("/points", START_NS + i * PERIOD_NS, "velodyne", made_cloud(seed=i).points) for i in range(40)]
    write_bundles(tmp_path / "bag", (Bundle(0, i, c.stamp_ns, (c,), transforms=TREE) for i, c in enumerate(clouds)))
    (tmp_path / "my_detector.py").write_text(DETECTOR)
    stack = tmp_path / "stack.yaml"
    rows = {"callable": "my_detector:detect", "points_frame": "base_link", "inputs": {"lidar": "/points"}}
    stack.write_text(json.dumps({**rows, "stateless": True, "deadline_s": 5}))
    first, second = domains[1], domains[2]
    hosted = ("--stack", str(stack), "--transforms", str(transforms))
    about = {"relation": "noise_outside_roi_10", "transforms": transforms}

    def start(name: str, domain: int, *words: str, **parameters: Any) -> Child:
        ros = [w for key, value in parameters.items() for w in ("-p", f"{key}:={value}")]
        argv = (sys.executable, "-m", f"mt_nodes.nodes.{name}", *words, *(["--ros-args", *ros] if ros else []))
        log = tmp_path / f"{name}_{domain}.log"
        child = Child(Process(name, argv, ros_environment(os.environ, domain), log))
        ending.callback(child.stop, 5.0)
        return child

    peer = Peer(ending, first)
    verdicts, ledger = (peer.listen("std_msgs/msg/String", t, qos.JOURNAL) for t in (VERDICTS, LEDGER))
    others = [start("callable_stack", domain, *hosted) for domain in (first, second)]
    others.append(start("monitor", first, **about, stack=stack, followup_domain=second))
    outlet = {"input_topic": "/points", "output_topic": "/points", "output_domain": second}
    others.append(start("mutator", first, **about, **outlet, seed=5))
    replayer = start("replayer", first, bag=tmp_path / "bag", await_subscribers=2)
    until(lambda: replayer.code is not None, replayer.tail())
    assert replayer.code == 0, replayer.tail()
    ledger.wait(1)
    until(lambda: len(verdicts.messages) == len(ledger.messages), "every follow-up is judged")
    for child in others:
        child.check()
        child.stop(20.0)
        assert child.code == 0, f"{child.process.name} does not end cleanly: {child.tail()}"
    early = [line["reason"] for line in lines(verdicts) if line["outcome"] == "SKIPPED"]
    assert set(early) <= {"nobody subscribes to /points"}, "sent only when the stack has found the mutator"
    decided = [line["outcome"] for line in lines(verdicts) if line["outcome"] != "SKIPPED"]
    # A reader that a busy machine stalls for longer than its depth lasts loses inputs; nothing else may come of it.
    unpaired = {"UNPAIRED_SOURCE", "UNPAIRED_FOLLOWUP", "UNPAIRED_BOTH"}
    assert "HOLDS" in decided and set(decided) <= {"HOLDS", *unpaired}
