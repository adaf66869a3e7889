# SPDX-License-Identifier: Apache-2.0
"""The launch files: their arguments, and, where ``launch`` is installed, real launches."""

from __future__ import annotations

import dataclasses
import importlib
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mt_nodes.base import resources
from mt_nodes.base.environment import free_domains, ros_environment
from mt_nodes.base.errors import MtError, UsageError
from mt_nodes.base.jsonl import read_result
from mt_nodes.base.processes import wait_until
from mt_nodes.cli import demo_command, inline_command, replay_command
from mt_nodes.cli.arguments import Argument, replay_arguments, request_from_texts
from mt_nodes.data.bags.bundles import write_bundles
from mt_nodes.engine.plan import (
    ReplayRequest,
    demo_process,
    inline_process,
    realtime_nodes,
    simulator_processes,
    suite_stop_s,
)
from mt_nodes.stacks.stack import Stack
from mt_nodes.world.scene.drive import generate_drive

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("replay", "demo", "nodes", "live", "vehicle", "inline", "simulator")
FILES = {name: ROOT / "launch" / f"{name}.launch.py" for name in NAMES}
STACK = Stack(name="mine", callable="my_model:detect", inputs={"lidar": "/points"})
EXAMPLE = ROOT / "examples" / "live"
#: Waits for so many messages on a topic.
AWAIT = """
import sys
import rclpy
from visualization_msgs.msg import MarkerArray
from mt_nodes.nodes import qos

rclpy.init()
node, heard = rclpy.create_node("ear"), []
node.create_subscription(MarkerArray, sys.argv[1], heard.append, qos.ANSWERS_BEST_EFFORT)
while len(heard) < int(sys.argv[2]):
    rclpy.spin_once(node, timeout_sec=0.5)
"""
#: Prints the outcomes on /mt/verdicts until so many came.
HEAR = """
import json, sys
import rclpy
from std_msgs.msg import String
from mt_nodes.nodes import qos

domain, count, topic = int(sys.argv[1]), int(sys.argv[2]), (*sys.argv[3:], "/mt/verdicts")[0]
rclpy.init(domain_id=domain)
node, heard = rclpy.create_node("ear"), []
say = (lambda line: f"{line['outcome']}:{line['relation']}") if sys.argv[3:] else (lambda line: line["outcome"])
take = lambda line: heard.append(say(line)) if "outcome" in line else None
node.create_subscription(String, topic, lambda m: take(json.loads(m.data)), qos.JOURNAL)
while len(heard) < count:
    rclpy.spin_once(node, timeout_sec=0.5)
print(*heard)
"""


def _missing() -> str:
    """Why nothing can be launched here; empty where it can. The folder ``launch`` of this tree is no such package."""
    try:
        importlib.import_module("launch.actions")
        importlib.import_module("launch_ros.actions")
    except ImportError as error:
        return f"launch and launch_ros come with ROS 2, which is not installed here: {error}"
    return ""


MISSING = _missing()
needs_launch = pytest.mark.skipif(bool(MISSING), reason=MISSING)


def texts(**typed: str) -> dict[str, str]:
    return {**{a.name: a.default or "" for a in replay_arguments()}, "bag": "a_bag", **typed}


def test_the_arguments_are_the_fields_of_the_request() -> None:
    arguments = replay_arguments()
    assert [a.field for a in arguments] == [f.name for f in dataclasses.fields(ReplayRequest)]
    assert len({a.name for a in arguments}) == len(arguments)
    assert [a.name for a in arguments if a.default is None] == ["bag"]
    assert all(a.help for a in arguments)
    assert [a.name for a in replay_arguments(leave_out=("stack",))] == [a.name for a in arguments if a.name != "stack"]


def test_the_words_are_those_of_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    import argparse

    parser = argparse.ArgumentParser()
    replay_command.add_arguments(parser)
    options = parser.format_help()
    for name in ("relations", "stack", "mode", "pace", "limit", "seed", "fault", "topic", "transforms", "rate"):
        assert f"--{name} " in options
        assert name in {a.name for a in replay_arguments()}


def test_the_defaults_make_the_default_request() -> None:
    assert request_from_texts(replay_arguments(), texts()) == ReplayRequest(("a_bag",))


def test_what_is_typed_arrives() -> None:
    typed = texts(
        bag="one, two", relations="x,y", limit="3", seed="-7", fault="f", topic="lidar=/a,camera=/b", rate="0.5"
    )
    wanted = ReplayRequest(
        ("one", "two"), ("x", "y"), limit=3, seed=-7, faults=("f",), topics={"lidar": "/a", "camera": "/b"}, rate=0.5
    )
    assert request_from_texts(replay_arguments(), typed) == wanted


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ({"limit": "three"}, "limit: got 'three', expected a whole number"),
        ({"report": "perhaps"}, "report: got 'perhaps', expected true or false"),
        ({"limit": "0"}, "limit: got 0, expected 1"),
        ({"seed": "1.5"}, "seed: got '1.5', expected a whole number"),
        ({"rate": "fast"}, "rate: got 'fast', expected a number"),
        ({"topic": "/points"}, "topic: got '/points', expected ROLE=TOPIC"),
    ],
)
def test_what_is_typed_wrongly_is_refused(typed: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        request_from_texts(replay_arguments(), texts(**typed))


def test_arguments_of_other_things_fill_no_field() -> None:
    arguments = [*replay_arguments(), Argument("out", "", "results directory")]
    assert request_from_texts(arguments, {**texts(), "out": "x"}) == ReplayRequest(("a_bag",))


def test_the_nodes_of_the_realtime_pipeline(tmp_path: Path) -> None:
    request = ReplayRequest(("a_bag",), ("noise",), seed=5, limit=9, topics={"lidar": "/recorded"})
    topics = {"/recorded": "/points", "/imu": "/imu"}
    plans = realtime_nodes(request, STACK, topics, tmp_path, (41, 42))
    assert [(p.name, p.domain) for p in plans] == [
        ("callable_stack", 41),
        ("callable_stack", 42),
        ("monitor", 41),
        ("mutator", 41),
        ("replayer", 41),
    ]
    *_, monitor, mutator, replayer = plans
    assert mutator.parameters["input_topic"] == mutator.parameters["output_topic"] == "/points"
    assert mutator.parameters["output_domain"] == monitor.parameters["followup_domain"] == 42
    assert mutator.parameters["relation"] == monitor.parameters["relation"] == "noise"
    assert replayer.remappings == (("/recorded", "/points"),)
    assert all(p.argv[0] == sys.executable for p in plans)


@pytest.mark.parametrize(
    ("request_", "stack", "message"),
    [
        (ReplayRequest(("a", "b"), ("x",)), STACK, r"bag: got 2 \(a, b\), expected one"),
        (ReplayRequest(("a",), ("x", "y")), STACK, r"relations: got 2 \(x, y\), expected one"),
        (ReplayRequest(("a",), ("x",)), dataclasses.replace(STACK, callable="", command=("x",)), "a Python callable"),
    ],
)
def test_what_the_nodes_cannot_do(request_: ReplayRequest, stack: Stack, message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        realtime_nodes(request_, stack, {}, tmp_path, (41, 42))


def test_every_input_of_a_stack_goes_through_the_mutator(tmp_path: Path) -> None:
    stack = dataclasses.replace(STACK, inputs={"camera": ("/c", "/d"), "camera_info": "/i"}, sync_s=0.5)
    topics = {"/front": "/c", "/rear": "/d", "/info": "/i", "/note": "/note"}
    *_, mutator, replayer = realtime_nodes(ReplayRequest(("a",), ("x",)), stack, topics, tmp_path, (41, 42))
    assert mutator.parameters["input_topic"] == mutator.parameters["output_topic"] == "/c,/d,/i"
    assert mutator.parameters["sync_s"] == 0.5
    assert (replayer.parameters["lidar_topic"], replayer.parameters["camera_topic"]) == ("", "/front,/rear")


def test_an_interrupted_suite_gets_the_time_that_its_stacks_take() -> None:
    assert suite_stop_s(dataclasses.replace(STACK, stop_timeout_s=20.0)) > 2 * 3 * 20.0


def test_the_demo_process_says_what_the_command_takes() -> None:
    import argparse

    parser = argparse.ArgumentParser()
    demo_command.add_arguments(parser)
    argv = demo_process("there", "4", {}).argv
    assert argv[:4] == (sys.executable, "-m", "mt_nodes.cli.main", "demo")
    given = parser.parse_args(argv[4:])
    assert (given.out, given.seed) == (Path("there"), 4)
    assert parser.parse_args(demo_process("", "4", {}).argv[4:]).out is None


@pytest.mark.parametrize("arm", [True, False])
def test_the_inline_process_says_what_the_command_takes(arm: bool) -> None:
    import argparse

    parser = argparse.ArgumentParser()
    inline_command.add_arguments(parser)
    argv = inline_process("bench.yaml", arm, "2.5", "there", {}).argv
    assert argv[:4] == (sys.executable, "-m", "mt_nodes.cli.main", "inline")
    given = parser.parse_args(argv[4:])
    assert (given.config, given.arm, given.duration, given.out) == (Path("bench.yaml"), arm, 2.5, "there")
    assert parser.parse_args(inline_process("x", arm, "0", "", {}).argv[4:]).out is None


@pytest.fixture(scope="module")
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("drive") / "bag"
    write_bundles(path, generate_drive(12))
    return path


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Any]:
    """Start a launch file in a process group of its own, in a domain of its own; nothing of it may stay."""
    groups = []
    with free_domains(1) as lease:
        env = {**os.environ, "ROS_LOG_DIR": str(tmp_path / "ros_log"), "ROS_DOMAIN_ID": str(lease.domains[0])}

        def start(name: str | Path, *words: str) -> subprocess.Popen[str]:
            command = [
                sys.executable,
                str(ROOT / "scripts" / "launch_file.py"),
                str(FILES.get(str(name), name)),
                *words,
            ]
            pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
            groups.append(subprocess.Popen(command, cwd=ROOT, env=env, text=True, start_new_session=True, **pipes))  # type: ignore[call-overload]
            return groups[-1]  # type: ignore[no-any-return]

        start.env = env  # type: ignore[attr-defined]
        yield start
        for launch in groups:
            launch.kill()
            launch.wait()


def nothing_left_of(launch: subprocess.Popen[str], out: Path) -> bool:
    """Whether the group has ended, and nobody else works on the run directory (stacks have groups of their own)."""
    try:
        os.killpg(launch.pid, 0)
    except ProcessLookupError:
        commands = (p / "cmdline" for p in Path("/proc").iterdir() if p.name.isdigit())
        return not any(str(out).encode() in _read(command) for command in commands)
    return False


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # it ended meanwhile
        return b""


@needs_launch
@pytest.mark.parametrize("name", FILES)
def test_a_launch_file_declares_its_arguments(name: str) -> None:
    sources = importlib.import_module("launch.launch_description_sources")
    description = sources.get_launch_description_from_any_launch_file(str(FILES[name]))
    of_files = importlib.import_module("mt_nodes.nodes.launch_arguments")
    arguments = {
        "replay": of_files.REPLAY_ARGUMENTS,
        "demo": of_files.DEMO_ARGUMENTS,
        "nodes": of_files.NODE_ARGUMENTS,
        "live": of_files.LIVE_ARGUMENTS,
        "vehicle": of_files.LIVE_ARGUMENTS,
        "inline": of_files.INLINE_ARGUMENTS,
        "simulator": of_files.SIMULATOR_ARGUMENTS,
    }[name]
    declared = description.get_launch_arguments()
    assert [(d.name, d.description) for d in declared] == [(a.name, a.help) for a in arguments]
    assert [d.default_value is None for d in declared] == [a.default is None for a in arguments]


@needs_launch
def test_a_replay(started: Any, bag: Path, tmp_path: Path) -> None:
    relation = (resources.config_dir() / "relations" / "noise_outside_roi_10.yaml").read_text()
    mine = tmp_path / "mine.yaml"
    mine.write_text(f"{relation}\nmin_decided: 3\n")
    out = tmp_path / "out"
    launch = started("replay", f"bag:={bag}", f"relations:={mine}", "limit:=3", f"out:={out}")
    said, _ = launch.communicate(timeout=200)
    assert launch.returncode == 0, said
    summary = read_result(out / "summary.json")
    assert (summary["exit_code"], summary["offered"]) == (0, 9), said
    assert "exit code 0: all relations PASS" in said and str(out / "report.html") in said
    assert (out / "console.log").exists()
    assert nothing_left_of(launch, out)


#: Launches what is said to be a suite, ends with 0 and leaves a summary or none.
SUITE = """
import os, sys
from pathlib import Path
from launch import LaunchDescription, LaunchService
from mt_nodes.base.processes import Process
from mt_nodes.nodes import launch_actions

out = Path(sys.argv[1])
process = Process("suite", (sys.executable, "-c", "import ctypes; ctypes.CDLL(None)._exit(0)"), os.environ, out / "log")
service = LaunchService(noninteractive=True)
service.include_launch_description(LaunchDescription(launch_actions._suite(process, out, 5.0)))
sys.exit(service.run())
"""


@needs_launch
def test_a_suite_that_ends_with_0_and_no_summary_is_an_error(tmp_path: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", SUITE, str(tmp_path)], capture_output=True, text=True, check=False)
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert "the suite ended with exit code 0 and without a summary" in ended.stdout + ended.stderr


@needs_launch
@pytest.mark.parametrize("name", ["mutator", "monitor", "callable_stack"])
def test_a_node_that_ends_with_0_before_anybody_ends_it_is_an_error(name: str) -> None:
    node_ended = importlib.import_module("mt_nodes.nodes.launch_actions")._node_ended
    left = SimpleNamespace(returncode=0)
    with pytest.raises(MtError, match=f"{name} ended with exit code 0"):
        node_ended(name)(left, SimpleNamespace(is_shutdown=False))
    node_ended(name)(left, SimpleNamespace(is_shutdown=True))
    node_ended("replayer")(left, SimpleNamespace(is_shutdown=False))


@needs_launch
def test_an_interrupted_replay_is_summed_up_and_leaves_nothing(started: Any, bag: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    launch = started("replay", f"bag:={bag}", f"out:={out}")
    assert wait_until((out / "stack_followup.log").exists, 150.0)
    # A terminal signals the whole group, and launch signals the suite once more.
    for _ in range(3):
        os.killpg(launch.pid, signal.SIGINT)
    said, _ = launch.communicate(timeout=200)
    assert launch.returncode == 1, said
    assert read_result(out / "summary.json")["exit_code"] == 130, said
    assert "exit code 130: interrupted" in said
    assert nothing_left_of(launch, out)


@needs_launch
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("bag:=nowhere",), "no bag nowhere"),
        (("bag:=nowhere", "relation:=x"), "unknown argument 'relation'; did you mean 'relations'?"),
    ],
)
def test_what_cannot_run_is_said(started: Any, words: tuple[str, ...], message: str, tmp_path: Path) -> None:
    launch = started("replay", *words, f"out:={tmp_path / 'out'}")
    said, _ = launch.communicate(timeout=150)
    assert launch.returncode == 1 and message in said
    assert not (tmp_path / "out").exists()


@needs_launch
def test_the_nodes_judge(started: Any, bag: Path, tmp_path: Path) -> None:
    hasty = tmp_path / "hasty.yaml"
    hasty.write_text((resources.config_dir() / "stacks" / "reference_detector.yaml").read_text() + "deadline_s: 2.0\n")
    with free_domains(1) as lease:
        domain = str(lease.domains[0])
        launch = started("nodes", f"bag:={bag}", f"stack:={hasty}", "rate:=0.5", f"domain:={domain}")
        hear = [sys.executable, "-c", HEAR, domain, "3"]
        env = ros_environment(os.environ)
        heard = subprocess.run(hear, cwd=ROOT, env=env, capture_output=True, text=True, timeout=200, check=True)
        launch.send_signal(signal.SIGINT)
        said, _ = launch.communicate(timeout=150)
    assert "HOLDS" in heard.stdout.split(), heard.stdout + said
    assert "Traceback" not in said
    assert launch.returncode == 0, said


#: Includes the nodes as a fleet's launch file would: in a namespace, with a remapping around it.
FLEET = """
from launch import LaunchDescription
from launch.actions import GroupAction, IncludeLaunchDescription
from launch.launch_description_sources import AnyLaunchDescriptionSource
from launch_ros.actions import PushRosNamespace, SetRemap


def generate_launch_description():
    source = AnyLaunchDescriptionSource("{file}")
    included = IncludeLaunchDescription(source, launch_arguments={arguments}.items())
    return LaunchDescription([GroupAction([PushRosNamespace("fleet"), SetRemap("mt/verdicts", "judged"), included])])
"""


def fleet(place: Path, name: str, **arguments: str) -> Path:
    file = place / "fleet.launch.py"
    file.write_text(FLEET.format(file=FILES[name], arguments=arguments))
    return file


@needs_launch
def test_the_nodes_go_into_a_namespace_with_remaps_parameters_and_the_time_of_the_bag(
    started: Any, bag: Path, tmp_path: Path
) -> None:
    hasty, parameters = tmp_path / "hasty.yaml", tmp_path / "params.yaml"
    hasty.write_text((resources.config_dir() / "stacks" / "reference_detector.yaml").read_text() + "deadline_s: 2.0\n")
    parameters.write_text("/**/mutator:\n  ros__parameters: {control_every: 0}\n")
    with free_domains(1) as lease:
        domain = str(lease.domains[0])
        more = {"namespace": "car_1", "use_sim_time": "true", "params_file": str(parameters), "log_level": "warn"}
        file = fleet(tmp_path, "nodes", bag=str(bag), stack=str(hasty), rate="0.5", domain=domain, **more)
        launch = started(file)
        hear = [sys.executable, "-c", HEAR, domain, "3", "/fleet/car_1/judged"]
        heard = subprocess.run(
            hear, env=ros_environment(os.environ), capture_output=True, text=True, timeout=200, check=True
        )
        launch.send_signal(signal.SIGINT)
        said, _ = launch.communicate(timeout=150)
    lines = [line.split(":") for line in heard.stdout.split()]
    assert "HOLDS" in {outcome for outcome, _ in lines}, heard.stdout + said
    assert {relation for _, relation in lines} == {"noise_outside_roi_1000"}, "control_every: 0 leaves no control"
    assert "ros2 topic echo /fleet/car_1/mt/verdicts" in said and not re.search(r"\[INFO\] \[\d+\.", said), said
    assert "Traceback" not in said and launch.returncode == 0, said


@needs_launch
def test_a_replay_goes_into_a_namespace_with_remaps(started: Any, bag: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    file = fleet(tmp_path, "replay", bag=str(bag), limit="4", out=str(out), namespace="car_1", remap="mt/ledger:=made")
    launch = started(file)
    hear = [sys.executable, "-c", HEAR, started.env["ROS_DOMAIN_ID"], "3", "/fleet/car_1/judged"]
    heard = subprocess.run(
        hear, env=ros_environment(os.environ), capture_output=True, text=True, timeout=200, check=True
    )
    said, _ = launch.communicate(timeout=200)
    assert heard.stdout.split()[0] == "HOLDS:identity", said
    assert read_result(out / "summary.json")["offered"] == 36 and nothing_left_of(launch, out)


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("namespace:=1st", "namespace: got '1st', expected a name such as bench"),
        ("log_level:=inof", "log_level: got 'inof'; did you mean 'info'?"),
        ("remap:=/mt/verdicts", "remap: got '/mt/verdicts', expected FROM:=TO"),
        ("use_sim_time:=yes", "use_sim_time: got 'yes', expected true or false"),
        ("params_file:=nowhere.yaml", "params_file: no file nowhere.yaml"),
    ],
)
def test_a_wrong_ros_argument_is_told(word: str, message: str) -> None:
    words = importlib.import_module("mt_nodes.nodes.launch_ros_arguments")
    given = {"namespace": "", "remap": "", "log_level": "info", "use_sim_time": "false", "params_file": ""}
    name, _, value = word.partition(":=")
    with pytest.raises(UsageError, match=re.escape(message)):
        words.ros_words({**given, name: value}, {})


def test_what_surrounds_a_launch_file_goes_before_its_own_arguments(tmp_path: Path) -> None:
    from mt_nodes.nodes.launch_ros_arguments import ros_words

    (tmp_path / "p.yaml").touch()
    given = {"namespace": "b", "remap": "x:=y", "log_level": "warn", "use_sim_time": "true"}
    around = {"ros_namespace": "/a", "ros_remaps": [("p", "q")]}
    rules = ("-r", "__ns:=/a/b", "-r", "p:=q", "-r", "x:=y", "--params-file", str(tmp_path / "p.yaml"))
    words = ros_words({**given, "params_file": str(tmp_path / "p.yaml")}, around)
    assert words == ("--ros-args", *rules, "-p", "use_sim_time:=true", "--log-level", "warn")
    assert ros_words({**given, "namespace": "/c"}, around)[:3] == ("--ros-args", "-r", "__ns:=/c")


def test_the_simulator_and_its_stack_are_two_processes_in_the_domain_of_the_shell(tmp_path: Path) -> None:
    texts = {"scenario": "red_light", "stack": "mine", "rate": "2.0", "transforms": ""}
    world, driver = simulator_processes(texts, STACK, tmp_path, {"ROS_DOMAIN_ID": "7"})
    assert world.argv[1:] == (
        *("-m", "mt_nodes.nodes.simulator", "--ros-args"),
        *("-p", "scenario:=red_light", "-p", "stack:=mine", "-p", "rate:=2.0"),
    )
    assert driver is not None and str(tmp_path / "stack.yaml") in driver.argv
    assert world.env["ROS_DOMAIN_ID"] == driver.env["ROS_DOMAIN_ID"] == "7"
    assert (
        simulator_processes(texts, dataclasses.replace(STACK, callable="", start="external"), tmp_path, {})[1] is None
    )


@needs_launch
def test_a_drive(started: Any, tmp_path: Path) -> None:
    launch = started("simulator", "scenario:=red_light", "silent_s:=20.0")
    said, _ = launch.communicate(timeout=200)
    assert launch.returncode == 0, said
    assert "episode 0, red_light: target" in said and nothing_left_of(launch, tmp_path)
    assert re.search(r"\[simulator-\d+\]: process has finished cleanly", said), said


@needs_launch
def test_a_live_run_beside_nothing_waits_and_is_summed_up(started: Any, tmp_path: Path) -> None:
    config, out = tmp_path / "live.yaml", tmp_path / "out"
    config.write_text("relations: [noise_outside_roi_10]\n")
    launch = started("live", f"config:={config}", "set:=duration_s=2 autostart=true", f"out:={out}")
    said, _ = launch.communicate(timeout=200)
    assert launch.returncode == 1 and "exit code 3:" in said, said
    assert read_result(out / "summary.json")["offered"] == 0
    assert nothing_left_of(launch, out)


@needs_launch
def test_a_suite_joins_a_live_stack_that_has_a_launch_file_of_its_own_and_leaves_again(
    started: Any, bag: Path, tmp_path: Path
) -> None:
    stack = started(EXAMPLE / "live_stack.launch.py", f"bag:={bag}")
    try:
        said, out = join_and_leave(started, tmp_path)
        # It goes on as if nothing had been.
        hear = [sys.executable, "-c", AWAIT, "/perception/obstacles", "5"]
        subprocess.run(hear, cwd=ROOT, env=ros_environment(started.env), timeout=150, check=True)
        assert stack.poll() is None
    finally:
        stack.send_signal(signal.SIGINT)
        stack.communicate(timeout=150)
    summary = read_result(out / "summary.json")
    assert summary["offered"] > 0 and sum(summary["outcomes"].values()) == summary["offered"], said
    assert not set(summary["outcomes"]) & {"ERROR", "INVALID"}, said


def join_and_leave(started: Any, place: Path) -> tuple[str, Path]:
    """Let the suite test eight bundles beside the example's stack; return what it said, and its results."""
    out = place / "out"
    # With the default, idle, it would wait for as long as other tests keep the cores busy.
    settings = "set:=bundles=8 segments.settle_bundles=1 relations=noise_outside_roi_10 caps.policy=normal"
    launch = started("live", f"config:={EXAMPLE / 'live.yaml'}", settings, f"out:={out}")
    said, _ = launch.communicate(timeout=200)
    assert nothing_left_of(launch, out)
    return said, out


@needs_launch
def test_an_inline_run_that_is_interrupted_is_summed_up_and_leaves_nothing(started: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"
    launch = started("inline", f"config:={EXAMPLE / 'inline.yaml'}", f"out:={out}")
    assert wait_until((out / "offered.jsonl").exists, 150.0)
    launch.send_signal(signal.SIGINT)
    said, _ = launch.communicate(timeout=200)
    assert launch.returncode == 0, said
    assert "forwarding only: not armed" in said and "no publisher for /lidar/points_raw" in said
    assert read_result(out / "summary.json")["armed"] is False
    assert nothing_left_of(launch, out)


@needs_launch
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("inline", f"config:={EXAMPLE / 'inline.yaml'}", "arm:=yes"), "arm: got 'yes', expected true or false"),
        (("inline", "config:=nowhere.yaml"), "mt inline ended with exit code 2"),
        (("vehicle", f"config:={EXAMPLE / 'live.yaml'}"), "box.use: got off (on a vehicle say box: {use: required})"),
    ],
)
def test_what_is_not_safe_or_not_understood_is_not_launched(
    started: Any, words: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    launch = started(*words, f"out:={tmp_path / 'out'}")
    said, _ = launch.communicate(timeout=200)
    assert launch.returncode == 1 and message in said, said
    assert not (tmp_path / "out").exists()


def _no_namespaces() -> str:
    """Why no box can be put up here, as another program says; empty where one can."""
    program = shutil.which("unshare")
    if program is None:
        return "no program unshare (util-linux) here to ask what the system allows"
    own_user = [] if os.geteuid() == 0 else ["--map-root-user"]
    asked = [program, *own_user, "--net", "--mount", "--ipc", "--pid", "--fork", "--mount-proc", "true"]
    return subprocess.run(asked, check=False, capture_output=True, text=True, timeout=150).stderr.strip()


@needs_launch
def test_a_run_on_a_vehicle_begins_where_all_is_well(started: Any, tmp_path: Path) -> None:
    if why := _no_namespaces():
        pytest.skip(f"this system allows no box: {why}")
    out = tmp_path / "out"
    launch = started("vehicle", f"config:={EXAMPLE / 'vehicle.yaml'}", f"out:={out}")
    assert wait_until(lambda: b"ROS domains: live" in _read(out / "console.log"), 150.0)
    launch.send_signal(signal.SIGINT)
    said, _ = launch.communicate(timeout=200)
    assert launch.returncode == 1 and "exit code 130: interrupted" in said, said
    assert nothing_left_of(launch, out)
