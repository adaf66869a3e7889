# SPDX-License-Identifier: Apache-2.0
"""The simulator node: its two paces without ROS, and the node itself before a driver over real topics."""

from __future__ import annotations

import itertools
import json
import math
import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from geometry_msgs.msg import TwistStamped
from made_drives import SPEED_MPS, pedestrian, setting
from nav_msgs.msg import Odometry
from ros_support import LIMIT_S, Heard, Peer, until

from mt_nodes.base.environment import ros_environment
from mt_nodes.base.errors import ExitCode, UsageError
from mt_nodes.base.process_clock import process_time_s
from mt_nodes.base.processes import Child, Process
from mt_nodes.data.cdr import codec
from mt_nodes.data.messages import Bundle
from mt_nodes.data.outputs import Control
from mt_nodes.data.rotations import quaternion_of_yaw
from mt_nodes.data.transforms import Transform, TransformTree, load_transforms, pose_matrix
from mt_nodes.nodes import frames_topic, qos, simulator
from mt_nodes.nodes.frames_topic import FramesTopic
from mt_nodes.nodes.node_interfaces import NODES
from mt_nodes.nodes.simulation_pace import LockstepPace, RealtimePace
from mt_nodes.nodes.simulator import SimulatorNode
from mt_nodes.runs.live.settings import configured
from mt_nodes.runs.loop.rig import Rig
from mt_nodes.runs.loop.simulation import PERIOD_S, Simulation
from mt_nodes.stacks.stack import Stack, load_stack
from mt_nodes.world.drive.scenario import Scenario
from mt_nodes.world.drive.scenario_files import scenarios_of
from mt_nodes.world.drive.world import World
from mt_nodes.world.scene.drive import PERIOD_NS, START_NS

Make = Callable[..., Any]
RIG = Rig(topics={"odometry": "/odometry", "objects": "/objects"})
CRUISE = Control(None, steering_rad=0.0, speed_mps=SPEED_MPS)
EMPTY = setting(duration_s=1.0).scenario
BLOCKED = setting(pedestrian(12.0), duration_s=3.0).scenario


def simulation(*scenarios: Scenario, episodes: int = 1, silent_s: float = 1.0) -> Simulation:
    return Simulation(scenarios or (EMPTY,), RIG, 0, episodes, silent_s)


# --- episodes


def drive(made: Simulation, command: Control | None = CRUISE) -> list[Bundle]:
    """Play the present episode to its end."""
    seen = []
    while not made.over:
        seen.append(made.look())
        made.step(command, made.due_s)
    made.end()
    return seen


def test_stamps_go_on_from_one_episode_to_the_next_and_worlds_begin_anew() -> None:
    made = simulation(EMPTY, BLOCKED, episodes=3)
    bundles = drive(made)
    while made.next_episode():
        assert made.world.state.time_s == made.due_s == 0.0
        bundles += drive(made)
    stamps = [bundle.stamp_ns for bundle in bundles]
    assert stamps == [START_NS + i * PERIOD_NS for i in range(len(stamps))]
    assert [(row.number, row.why, row.failed) for row in made.ended] == [
        (0, "time", False),
        (1, "collision", True),
        (2, "time", False),
    ]
    assert "episode 1, made: collision after" in str(made.ended[1]) and "hit walker (adult)" in str(made.ended[1])


def test_a_silent_stack_ends_the_episode() -> None:
    made = simulation(setting(duration_s=9.0).scenario, silent_s=0.5)
    assert len(drive(made, None)) == 5 and made.ended[0].why == "silent" and made.ended[0].failed


def test_scenarios_are_found_by_name_and_refused_by_file(tmp_path: Path) -> None:
    [shipped] = scenarios_of("pedestrian_crosses", 3)
    assert shipped == scenarios_of("pedestrian_crosses", 3)[0] != scenarios_of("pedestrian_crosses", 4)[0]
    with pytest.raises(UsageError, match="no scenario 'pedestrian_cross'; did you mean 'pedestrian_crosses'"):
        scenarios_of("pedestrian_cross", 0)


# --- paces


@dataclass
class Shown:
    """What a pace had done, in order, on a time of the test's."""

    simulation: Simulation
    now_s: float = 100.0
    looking_s: float = 0.0
    done: list[tuple[str, float]] = field(default_factory=list)
    said: list[Control | None] = field(default_factory=list)
    clock_ns: list[int] = field(default_factory=list)

    def look(self) -> int:
        self.done.append(("look", round(self.simulation.due_s, 6)))
        self.now_s += self.looking_s
        return self.simulation.look().stamp_ns

    def go(self, command: Control | None, until_s: float) -> None:
        self.done.append(("go", round(until_s, 6)))
        self.said.append(command)
        self.simulation.step(command, until_s)

    def follow(self, to_ns: int) -> None:
        self.clock_ns.append(to_ns)

    tick = follow


def realtime(rate: float = 1.0, **rest: Any) -> tuple[RealtimePace, Shown]:
    shown = Shown(simulation(), **rest)
    return RealtimePace(shown.simulation, rate, 0.02, shown, shown.look, shown.go, lambda: shown.now_s), shown


def said(pace: Any, command: Control, role: str = "control", stamp_ns: int | None = None) -> None:
    pace.inbox.put(role, stamp_ns, SimpleNamespace(part=command))


def test_in_real_time_a_command_counts_from_when_it_came() -> None:
    pace, shown = realtime()
    pace.resume()
    pace.tick()
    shown.now_s += 0.034
    pace.tick()
    said(pace, CRUISE)
    said(pace, replace(CRUISE, speed_mps=math.nan), "path")
    shown.now_s += 0.001
    pace.tick()
    shown.now_s += 0.03
    pace.tick()
    assert shown.done == [("look", 0.0), ("go", 0.03), ("go", 0.06)]
    assert shown.said == [None, CRUISE]
    assert shown.clock_ns == [START_NS + ns for ns in (34_000_000, 35_000_000, 65_000_000)]
    shown.now_s += 0.2
    pace.tick()
    assert shown.done[-2:] == [("go", 0.1), ("look", 0.1)], "not beyond the instant that is due"
    assert shown.simulation.unanswered == 0 and pace.late == 1
    assert pace.slipped_s == pytest.approx(0.065), "by then the one after it was due, too"
    pace.tick()
    assert shown.done[-1] == ("look", 0.2) and (shown.simulation.unanswered, pace.late) == (1, 2)


def test_the_rate_is_the_speed_of_the_world() -> None:
    pace, shown = realtime(rate=4.0)
    for _ in range(50):
        pace.tick()
        shown.now_s += 0.005
    assert shown.simulation.world.state.time_s == pytest.approx(0.98)
    assert [when for what, when in shown.done if what == "look"] == pytest.approx([0.1 * i for i in range(10)])
    assert pace.late == 0


def test_who_looks_for_too_long_is_late_and_falls_behind() -> None:
    pace, shown = realtime(looking_s=0.13)
    for _ in range(5):
        pace.tick()
    assert pace.late == 4 and pace.slipped_s == pytest.approx(0.03 * 5)
    assert [when for what, when in shown.done if what == "look"] == pytest.approx([0.1 * i for i in range(5)])


def test_time_that_was_held_is_not_missed() -> None:
    pace, shown = realtime()
    pace.tick()
    pace.hold()
    shown.now_s += 50.0
    pace.resume()
    pace.tick()
    assert shown.done == [("look", 0.0)] and (pace.late, pace.slipped_s) == (0, 0.0)


@pytest.fixture
def own_time(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    now = SimpleNamespace(s=100.0)
    for name, value in {"_now_s": lambda: now.s, "_wall_s": lambda: now.s, "_read_s": now.s, "_watched": False}.items():
        monkeypatch.setattr(process_time_s, name, value)
    monkeypatch.setattr(process_time_s, "start_watching", lambda: None)
    monkeypatch.setattr(process_time_s, "_lost_s", 0.0)
    return now


def lockstep(**stack: Any) -> tuple[LockstepPace, Shown]:
    shown = Shown(simulation())
    given = Stack(name="test", callable="no:thing", deadline_s=2.0, **stack)
    return LockstepPace(shown.simulation, given, shown, shown.look, shown.go), shown


def test_in_lockstep_the_world_waits_for_the_command_of_its_instant(own_time: SimpleNamespace) -> None:
    pace, shown = lockstep()
    pace.tick()
    said(pace, replace(CRUISE, speed_mps=1.0), stamp_ns=START_NS - 1)
    for _ in range(3):
        own_time.s += 0.5
        pace.tick()
    assert shown.done == [("look", 0.0)] and set(shown.clock_ns) == {START_NS + PERIOD_NS}
    said(pace, CRUISE, stamp_ns=START_NS)
    pace.tick()
    pace.tick()
    assert shown.done == [("look", 0.0), ("go", 0.1), ("look", 0.1)] and shown.said == [CRUISE]


def test_in_lockstep_nobody_is_waited_for_beyond_the_deadline(own_time: SimpleNamespace) -> None:
    pace, shown = lockstep()
    pace.tick()
    own_time.s += 1.5
    pace.hold()
    own_time.s += 60.0
    pace.resume()
    pace.tick()
    assert shown.said == [], "held time is not the stack's"
    own_time.s += 0.5
    pace.tick()
    assert shown.said == [None] and shown.simulation.unanswered == 1
    pace.tick()
    said(pace, CRUISE, stamp_ns=START_NS)
    pace.tick()
    assert shown.said == [None], "too late, and not the next one's"


# --- the node


@dataclass(eq=False)
class Driver:
    """Answers each odometry with a command, as a stack does."""

    peer: Peer
    heard: Heard
    objects: Heard


def driver(ending: ExitStack, domain: int, says: Callable[[int], float | None]) -> Driver:
    """A stack that says how fast to drive on at its nth instant; None: nothing."""
    peer, heard = Peer(ending, domain, "driver"), Heard()
    publisher = peer.publisher("geometry_msgs/msg/TwistStamped", "/command")
    objects = peer.listen("visualization_msgs/msg/MarkerArray", "/objects", qos.REPLAY)

    def take(message: Any) -> None:
        speed = says(len(heard.messages))
        heard.take(message)
        if speed is not None:
            until(publisher.get_subscription_count)  # else the first one is lost
            command = TwistStamped(header=message.header)
            command.twist.linear.x = speed
            publisher.publish(command)

    peer.node.create_subscription(Odometry, "/odometry", take, qos.REPLAY)
    return Driver(peer, heard, objects)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A stack file of two told topics, and scenarios that need no file."""
    stack = {
        "callable": "no:thing",
        "inputs": {"objects": {"topic": "/objects"}, "odometry": {"topic": "/odometry"}},
        "outputs": {"control": {"topic": "/command"}},
        "deadline_s": 20.0,
    }
    (tmp_path / "stack.yaml").write_text(json.dumps(stack))
    monkeypatch.setattr(simulator, "scenarios_of", lambda name, seed: {"empty": (EMPTY,), "blocked": (BLOCKED,)}[name])
    return {"scenario": "empty", "stack": tmp_path / "stack.yaml", "file": stack}


def started(made: Make, files: dict[str, Any], **given: Any) -> Any:
    wanted = {"scenario": files["scenario"], "stack": files["stack"], **given}
    return made(SimulatorNode, **{name: value for name, value in wanted.items() if value is not None})


def begun(node: Any, *heard: Heard) -> Any:
    """Have a node that was not started begin, once who only looks on is there, too."""
    node.trigger_configure()
    until(lambda: all(each.matched() for each in heard), "the listeners know the node")
    until(node._diagnostics.get_subscription_count)
    until(node._sim_clock._publisher.get_subscription_count)
    node.trigger_activate()
    return node


def wavering(index: int) -> float:
    return SPEED_MPS + math.sin(index)


def test_a_stack_drives_over_topics_as_in_our_own_process(
    made: Make, files: dict[str, Any], ending: ExitStack, domains: Any
) -> None:
    stack = driver(ending, domains[1], wavering)
    clock = stack.peer.listen("rosgraph_msgs/msg/Clock", "/clock", qos.CLOCK)
    told = stack.peer.listen("diagnostic_msgs/msg/DiagnosticArray", "/mt/diagnostics", qos.STATUS)
    node = begun(started(made, files, autostart=False), clock, told)
    until(lambda: node.finished)
    assert node.failure is None
    world = World(EMPTY)
    rows = []
    for i, message in enumerate(stack.heard.wait(10)):
        assert codec.stamp_ns_of(message.header) == START_NS + i * PERIOD_NS
        rows.append((world.state.ego.x_m, world.state.ego.speed_mps))
        world.step(Control(None, speed_mps=wavering(i), yaw_rate_radps=0.0), (i + 1) * PERIOD_S)
    heard = [(m.pose.pose.position.x, m.twist.twist.linear.x) for m in stack.heard.messages]
    np.testing.assert_allclose(heard, rows, rtol=0.0, atol=1e-9)
    assert len(stack.objects.wait(10)) == 10
    times = [m.clock.sec * 10**9 + m.clock.nanosec for m in clock.wait(91)]
    assert all(0 < b - a <= 10_000_000 for a, b in itertools.pairwise(times))
    [last] = told.wait(11)[-1].status
    values = {row.key: row.value for row in last.values}
    assert (last.level, values["ended"], values["time_s"], values["unanswered"]) == (b"\x00", "time", "1.0", "0")


def test_a_collision_is_told_and_is_the_stacks_failure(
    made: Make, files: dict[str, Any], ending: ExitStack, domains: Any
) -> None:
    stack = driver(ending, domains[1], lambda index: SPEED_MPS)
    clock = stack.peer.listen("rosgraph_msgs/msg/Clock", "/clock", qos.CLOCK)
    told = stack.peer.listen("diagnostic_msgs/msg/DiagnosticArray", "/mt/diagnostics", qos.STATUS)
    node = begun(started(made, files, scenario="blocked", episodes=2, autostart=False), clock, told)
    until(lambda: node.finished)
    assert node.failure.exit_code == ExitCode.FAIL
    assert "2 of 2 episodes failed, the first: episode 0, made: collision" in str(node.failure)
    stamps = [codec.stamp_ns_of(m.header) for m in stack.heard.messages]
    assert set(np.diff(stamps)) == {PERIOD_NS}, "time goes on over both"
    [last] = told.wait(lambda rows: bool(rows) and "episode 1" in rows[-1].status[0].message)[-1].status
    values = {row.key: row.value for row in last.values}
    assert last.level == b"\x02" and (values["collisions"], values["ended"]) == ("walker", "collision")


def test_a_stack_that_stays_silent_is_not_waited_for(
    made: Make, files: dict[str, Any], ending: ExitStack, domains: Any
) -> None:
    files["stack"].write_text(json.dumps({**files["file"], "deadline_s": 0.02}))
    stack = driver(ending, domains[1], lambda index: SPEED_MPS if index < 2 else None)
    node = started(made, files, silent_s=0.3)
    until(lambda: node.finished)
    assert node.failure.exit_code == ExitCode.FAIL and "silent" in str(node.failure)
    assert len(stack.heard.messages) <= 6


def test_a_stack_that_never_comes_is_named(made: Make, files: dict[str, Any]) -> None:
    files["stack"].write_text(json.dumps({**files["file"], "ready_timeout_s": 0.2}))
    node = started(made, files)
    until(lambda: node.finished)
    assert node.failure.exit_code == ExitCode.INFRASTRUCTURE
    assert "nobody subscribes to /objects" in str(node.failure) and "nobody publishes /command" in str(node.failure)


@pytest.mark.parametrize("waits", [True, False])
def test_beside_real_sensors_nothing_is_published(
    made: Make, files: dict[str, Any], ending: ExitStack, domains: Any, waits: bool
) -> None:
    stack = driver(ending, domains[1], lambda index: SPEED_MPS)
    sensor = stack.peer.publisher("nav_msgs/msg/Odometry", "/odometry", qos.REPLAY)
    until(sensor.get_subscription_count)
    node = started(made, files, autostart=False, await_stack=waits)
    until(lambda: node.count_publishers("/odometry"))
    node.trigger_configure()
    node.trigger_activate()
    until(lambda: node.finished)
    assert node.failure.exit_code == ExitCode.ISOLATION and "/odometry: somebody else publishes" in str(node.failure)
    assert stack.heard.messages == []


def test_in_real_time_the_node_does_not_wait(
    made: Make, files: dict[str, Any], ending: ExitStack, domains: Any
) -> None:
    stack = driver(ending, domains[1], lambda index: None)
    node = started(made, files, pace="realtime", rate=10.0, silent_s=5.0)
    until(lambda: node.finished)
    assert node.failure is None and node._simulation.ended[0].unanswered == 9
    assert len(stack.heard.wait(10)) == 10


def test_a_stack_that_is_not_awaited_may_come_too_late(made: Make, files: dict[str, Any]) -> None:
    files["stack"].write_text(json.dumps({**files["file"], "deadline_s": 0.02}))
    node = started(made, files, await_stack=False, silent_s=0.3)
    until(lambda: node.finished)
    assert "silent after 0.3 s, 3 of 3 instants without a command" in str(node.failure)


def test_while_it_is_not_active_time_stands_still(
    made: Make, files: dict[str, Any], ending: ExitStack, domains: Any
) -> None:
    held: list[Any] = []

    def says(index: int) -> float:
        if index == 3:
            held.append(node.trigger_deactivate())
        return SPEED_MPS

    stack = driver(ending, domains[1], says)
    node = started(made, files, autostart=False)
    node.trigger_configure()
    node.trigger_activate()
    until(lambda: held)
    until(lambda: node._pace.inbox.complete(node._pace._ticket), "the command is there")
    rounds: list[int] = []
    node.create_timer(0.001, lambda: rounds.append(node._simulation.instant))
    until(lambda: len(rounds) > 20, "for the node's own timer to come round, too")
    assert len(stack.heard.wait(4)) == 4 and node._simulation.instant == 4 and not node.finished
    node.trigger_activate()
    until(lambda: node.finished)
    assert node.failure is None and len(stack.heard.wait(10)) == 10


def test_what_is_documented_of_the_node_is_what_it_has(made: Make, files: dict[str, Any], domains: Any) -> None:
    node = started(made, files, stack="reference_planner")
    for row in NODES["simulator"].endpoints:
        found = node.get_publishers_info_by_topic if row.does == "publishes" else node.get_subscriptions_info_by_topic
        [endpoint] = [each for each in found(row.topic) if each.node_name == "simulator"]
        profile = endpoint.qos_profile
        assert (endpoint.topic_type, profile.reliability) == (row.type, row.profile.reliability), row.topic
        assert profile.durability == row.profile.durability, row.topic


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"scenario": None}, "simulator: no scenario given"),
        ({"pace": "fast"}, "pace: got 'fast', expected one of lockstep, realtime"),
        ({"stack": "reference_detector"}, "says detections, no control: nobody drives"),
    ],
)
def test_wrong_parameters_are_told(made: Make, files: dict[str, Any], given: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        started(made, files, **given)


#: A drive of some 15 m.
SHORT = """
ego = AV(("lane_1" -> 60.0, , 10.0), ("lane_1" -> 75.0));
short = CreateScenario { load("two_way"); ego; {}; {}; {}; {}; };
"""


@pytest.mark.parametrize(
    ("finished", "endless", "code"), [(False, False, 130), (False, True, None), (True, False, None)]
)
def test_who_is_interrupted_before_the_end_says_so(
    finished: bool, endless: bool, code: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulator, "SimulatorNode", lambda: SimpleNamespace(finished=finished, endless=endless))
    monkeypatch.setattr(simulator, "run_node", lambda make, args, name: make())
    if code is None:
        simulator.main([])
        return
    with pytest.raises(SystemExit) as ended:
        simulator.main([])
    assert ended.value.code == code


def test_its_process_ends_with_the_code_of_the_drive(ending: ExitStack, domains: Any, tmp_path: Path) -> None:
    file = tmp_path / "short.scenario"
    file.write_text(SHORT)
    env = ros_environment(os.environ, domains[2])
    stack = replace(load_stack("reference_planner"), ready_timeout_s=LIMIT_S)
    for name, argv in {
        "callable_stack": ("--stack", stack.name),
        "simulator": ("--ros-args", "-p", f"scenario:={file}", "-p", f"transforms:={tmp_path / 'mounts.yaml'}"),
    }.items():
        process = Process(name, (sys.executable, "-m", f"mt_nodes.nodes.{name}", *argv), env, tmp_path / name)
        child = Child(process)
        ending.callback(child.stop, 5.0)
    until(lambda: child.code is not None)
    log = (tmp_path / "simulator").read_text()
    assert child.code == 0 and "episode 0, short: target after" in log, log
    assert load_transforms(tmp_path / "mounts.yaml").transforms == (), "this stack has no sensors"


def test_the_example_of_a_simulated_car_beside_mt_live_fits_together() -> None:
    example = Path(__file__).parents[2] / "examples" / "drive"
    [written], [kept] = (
        tree.transforms
        for tree in (
            Rig.for_stack(load_stack(str(example / "car.yaml"))).mounts,
            load_transforms(example / "mounts.yaml"),
        )
    )
    assert (kept.parent, kept.child) == (written.parent, written.child)
    np.testing.assert_allclose(kept.matrix, written.matrix, atol=1e-12)
    config = configured(example / "live.yaml", {})
    assert (example.parents[1] / config.stack).is_file() and config.transforms == "examples/drive/mounts.yaml"


# --- frames


def test_frames_are_told_where_their_type_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    published: list[tuple[str, Any]] = []

    class Node:
        def create_publisher(self, kind: Any, topic: str, profile: Any) -> Any:
            return SimpleNamespace(publish=lambda message: published.append((topic, message)))

    FramesTopic(Node()).publish(bundle_of(0.0))  # type: ignore[arg-type]
    assert published == [], "tf2_msgs is not among the pip packages"
    monkeypatch.setattr(frames_topic, "available", lambda name: True)
    monkeypatch.setattr(frames_topic, "message_class", lambda name: SimpleNamespace)
    frames = FramesTopic(Node())  # type: ignore[arg-type]
    for x_m in (1.0, 2.0):
        frames.publish(bundle_of(x_m))
    assert [topic for topic, _ in published] == ["/tf_static", "/tf", "/tf"]
    moved = [bundle_of(x_m).transforms.transforms[0] for x_m in (1.0, 2.0)]
    for (topic, message), given in zip(published, (MOUNT, *moved), strict=True):
        [read] = codec.transforms_from_msg(message, topic == "/tf_static")
        assert (read.parent, read.child, read.stamp_ns) == (given.parent, given.child, START_NS)
        np.testing.assert_allclose(read.matrix, given.matrix, atol=1e-12)


MOUNT = Transform("base_link", "velodyne", pose_matrix((1.2, 0.0, 1.7), quaternion_of_yaw(0.3)))


def bundle_of(x_m: float) -> Bundle:
    moved = Transform("map", "base_link", pose_matrix((x_m, 2.0, 0.0), quaternion_of_yaw(-1.0)), START_NS, static=False)
    return Bundle(0, 0, START_NS, transforms=TransformTree([moved, MOUNT]))
