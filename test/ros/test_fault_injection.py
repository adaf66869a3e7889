# SPDX-License-Identifier: Apache-2.0
"""Whole runs over real topics while something goes wrong with the suite itself; docs/reliability.md has the table."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from recordings import drive, write_bag
from ros_support import Peer, until
from test_replay import NOISE, Place, Ran

from mt_nodes.base.process_tree import children_of
from mt_nodes.base.processes import Process, is_stopped
from mt_nodes.base.suite_client import _Suite
from mt_nodes.data.cdr import codec
from mt_nodes.report.run_files import remake

BOXES, MARKERS = "/perception/obstacles", "visualization_msgs/msg/MarkerArray"
#: Longer than any deadline of a stack that is to be frozen.
FREEZE_S, DEADLINE_S = 4.0, 3.0
HOUR_S = 3600
LOST = "this process stood still, or the wall clock was set, and the answer got lost"
#: Somebody's stack; its first argument says what is wrong with its answers. It counts the clouds it was given.
PROGRAM = """
import sys, time
import rclpy
from sensor_msgs.msg import PointCloud2
from visualization_msgs.msg import Marker, MarkerArray

wrong = sys.argv[1]
rclpy.init()
node = rclpy.create_node("their_stack")
boxes = node.create_publisher(MarkerArray, "/perception/obstacles", 10)
count, held = 0, []

def received(cloud):
    global count
    count += 1
    box = Marker(type=Marker.CUBE, action=Marker.ADD, ns="car", header=cloud.header)
    box.header.frame_id = "base_link"
    box.pose.position.x, box.scale.x, box.scale.y, box.scale.z = 10.0, 4.0, 2.0, 1.5
    answer = MarkerArray(markers=[Marker(action=Marker.DELETEALL, header=box.header), box])
    if wrong == "drop" and count % 10 in (3, 6, 9):
        return
    if wrong == "late" and count % 7 == 0:
        time.sleep(0.8)
    if wrong == "slow":
        time.sleep(0.03)
    if wrong == "swap" and count % 2:
        held.append(answer)
        return
    for _ in range(2 if wrong == "twice" else 1):
        boxes.publish(answer)
    while held:
        boxes.publish(held.pop())

node.create_subscription(PointCloud2, "/points", received, 10)
try:
    rclpy.spin(node)
except (KeyboardInterrupt, rclpy.executors.ExternalShutdownException):
    pass
"""
#: Moves the wall clock by CLOCK_JUMP_S as soon as the file CLOCK_JUMPED is there.
SHIM = Path(__file__).resolve().parents[2] / "scripts" / "attack_programs" / "clock_jump.c"


class Held:
    """A run of a model in five lines that stands at its third instant, with two bundles judged."""

    def __init__(self, place: Place, name: str, *words: str | Path, deadline_s: float = 60.0, **rows: Any) -> None:
        self._hold = place.path / f"hold_{name.replace('/', '_')}"
        self._hold.touch()
        env = {"HOLD": str(self._hold)}
        self.stack = place.model(name.replace("/", "_"), deadline_s=deadline_s, stop_timeout_s=2.0, env=env, **rows)
        self.ran = place.start(name, place.small, "--stack", self.stack, *NOISE, *words)
        until(lambda: self.ran.journal.count("verdict") >= 6 or self.ran.process.poll() is not None)
        self.victims = self._victims()

    def send(self, number: int, *victims: str) -> None:
        for victim in victims:
            os.kill(self.victims[victim], number)
            if number == signal.SIGSTOP:
                until(lambda pid=self.victims[victim]: is_stopped(pid))

    def go_on(self) -> None:
        self._hold.unlink()

    def over(self) -> Ran:
        return self.ran.over()

    def domain(self, arm: str) -> int:
        environ = Path(f"/proc/{self.victims[f'stack {arm}']}/environ").read_bytes().decode().split("\0")
        return int(dict(row.split("=", 1) for row in environ if row)["ROS_DOMAIN_ID"])

    def _victims(self) -> dict[str, int]:
        """Ids by what a process is; the source arm's keeper was started first, and a stack is its keeper's child."""
        commands = {pid: Path(f"/proc/{pid}/cmdline").read_text() for pid in self.ran.pids()}
        keepers = [pid for pid, command in commands.items() if "mt_nodes.base.subreaper" in command]
        [suite] = [pid for pid, command in commands.items() if "mt_nodes.nodes.suite" in command]
        named = {}
        for arm, keeper in zip(("source", "followup"), keepers, strict=True):
            named[f"keeper {arm}"] = keeper
            [named[f"stack {arm}"]] = children_of(keeper)
        [worker] = children_of(self.ran.process.pid)
        return {"command line": worker, "suite": suite, **named}


pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def place(domains: tuple[int, ...], tmp_path_factory: pytest.TempPathFactory) -> Place:
    place = Place(tmp_path_factory.mktemp("place"))
    (place.path / "their_stack.py").write_text(PROGRAM)
    write_bag(place.path / "dozen", drive(12))
    return place


def passed_s(seconds: float) -> None:
    """Let time pass, for what is about time and nothing else."""
    end = time.monotonic() + seconds
    until(lambda: time.monotonic() >= end)


def undisturbed(place: Place, held: Held, name: str) -> Ran:
    return place.replay(name, place.small, "--stack", held.stack, *NOISE).wholly(3, HOLDS=9)


def same(one: Ran, other: Ran) -> bool:
    files = ("result.jsonl", "ledger.jsonl")
    return all(
        sorted((one.out / f).read_text().splitlines()) == sorted((other.out / f).read_text().splitlines())
        for f in files
    )


# --- each process killed, and stopped; two runs at a time


def suite_killed(place: Place) -> None:
    held = Held(place, "suite_killed")
    held.send(signal.SIGKILL, "suite")
    held.go_on()
    ran = held.over().wholly(4)
    assert "the suite process was ended by SIGKILL. What was judged is in" in ran.error
    assert "mt replay --resume suite_killed" in ran.error and len(ran.lines) == 6 and not ran.summary
    assert same(place.resume("suite_killed").wholly(3, HOLDS=9), undisturbed(place, held, "suite_not_killed"))


def suite_killed_and_a_keeper_stopped(place: Place) -> None:
    held = Held(place, "orphans")
    held.send(signal.SIGSTOP, "keeper followup")
    held.send(signal.SIGKILL, "suite")
    assert "was ended by SIGKILL" in held.over().wholly(4).error


def killed(victim: str) -> Callable[[Place], None]:
    def run(place: Place) -> None:
        held = Held(place, f"killed_{victim.replace(' ', '_')}", deadline_s=DEADLINE_S)
        held.send(signal.SIGKILL, victim)
        if "keeper" not in victim:  # without its keeper a stack may answer to the end of the run
            held.go_on()
        ran = held.over().wholly(4, HOLDS=6, ERROR=1)
        arm = victim.partition(" ")[2]
        assert f"({arm} arm) was ended by SIGKILL" in ran.summary["infrastructure"]
        assert next(r["reason"] for r in ran.lines if r["outcome"] == "ERROR").endswith(
            f"({arm} arm) was ended by SIGKILL"
        )

    return run


def command_line_stopped(place: Place) -> None:
    held = Held(place, "waits")
    held.send(signal.SIGSTOP, "command line")
    held.go_on()
    until((held.ran.out / "summary.json").exists, "the suite needs nobody")
    held.send(signal.SIGCONT, "command line")
    ran = held.over().wholly(3, HOLDS=9)
    assert "9 pairs offered: 9 HOLDS" in ran.said


def suite_stopped_for_longer_than_a_deadline(place: Place) -> None:
    held = Held(place, "slept", "--limit", "5", deadline_s=DEADLINE_S)
    held.send(signal.SIGSTOP, "suite")
    held.go_on()
    passed_s(FREEZE_S)
    held.send(signal.SIGCONT, "suite")
    ran = held.over().wholly(3)
    outcomes = ran.summary["outcomes"]
    assert outcomes["HOLDS"] >= 12 and outcomes["HOLDS"] + outcomes.get("SKIPPED", 0) == 15, "nobody is blamed"
    assert all(LOST in r["reason"] for r in ran.lines if r["outcome"] == "SKIPPED")
    assert "was stopped (SIGSTOP) and is waited for; let it go on (kill -CONT" in ran.error


def suite_stopped_and_interrupted(place: Place) -> None:
    held = Held(place, "stuck")
    held.send(signal.SIGSTOP, "suite")
    held.ran.process.send_signal(signal.SIGINT)
    assert held.over().wholly(130, HOLDS=6).summary["interrupted"]


def stack_stopped_for_good(place: Place) -> None:
    held = Held(place, "frozen", deadline_s=DEADLINE_S)
    held.send(signal.SIGSTOP, "stack followup")
    held.go_on()
    ran = held.over().wholly(4, HOLDS=6, ERROR=1)
    assert "stack 'frozen' (followup arm) stands still: a process of it was stopped" in ran.summary["infrastructure"]
    assert "kill -CONT" in ran.summary["infrastructure"]


def stack_stopped_for_a_while(place: Place) -> None:
    held = Held(place, "paused")
    held.send(signal.SIGSTOP, "stack source")
    held.go_on()
    passed_s(1.0)
    held.send(signal.SIGCONT, "stack source")
    held.over().wholly(3, HOLDS=9)


def keepers_stopped(place: Place) -> None:
    held = Held(place, "keepers")
    held.send(signal.SIGSTOP, "keeper source", "keeper followup")
    held.go_on()
    held.over().wholly(3, HOLDS=9)


# --- wrong answers, of a stack that is somebody's program


def answers(place: Place, wrong: str, *words: str | Path, name: str = "", **rows: Any) -> Ran:
    command = [sys.executable, str(place.path / "their_stack.py"), wrong]
    given = {"command": command, "inputs": {"lidar": "/points"}, "stateless": True, "deadline_s": 0.5, **rows}
    stack = place.file(f"{name or wrong}.yaml", **given)
    asked = ("--stack", stack, "--relations", "noise_outside_roi_10", *words)
    return place.replay(name or wrong, place.path / "dozen", *asked)


def some_dropped(place: Place) -> None:
    ran = answers(place, "drop").wholly(3)
    outcomes = ran.summary["outcomes"]
    assert ran.summary["offered"] == 36 and outcomes["UNPAIRED_SOURCE"] and outcomes["HOLDS"] and outcomes["SKIPPED"]
    assert outcomes["ERROR"] == 0 if "ERROR" in outcomes else True
    for line in ran.lines:
        assert (
            line["outcome"] == "HOLDS" or f"no {BOXES} within 0.5 s" in line["reason"] or "not sent" in line["reason"]
        )


def some_late(place: Place) -> None:
    ran = answers(place, "late").wholly(3)
    assert ran.summary["offered"] == 36 and ran.summary["outcomes"]["HOLDS"] > 12
    for line in ran.lines:
        assert (
            line["outcome"] == "HOLDS" or f"no {BOXES} within 0.5 s" in line["reason"] or "not sent" in line["reason"]
        )


def reordered(place: Place) -> None:
    ran = answers(place, "swap", "--pace", "realtime", deadline_s=20.0).wholly(3)
    assert ran.summary["outcomes"] == {"HOLDS": 36}


def ten_times_too_fast(place: Place) -> None:
    ran = answers(place, "slow", "--pace", "realtime", "--rate", "10").wholly(3)
    assert ran.summary["offered"] == 36


def answered_twice(place: Place) -> None:
    ran = answers(place, "twice").wholly(4)
    assert "has answered one input more than once" in ran.summary["infrastructure"]
    assert "say stateless: false" in ran.summary["infrastructure"]


def answered_twice_by_one_that_remembers(place: Place) -> None:
    answers(place, "twice", "--limit", "4", name="twice_alone", stateless=False).wholly(3, HOLDS=12)


# --- somebody else in the domain of an arm


def stranger(topic: str, type_name: str, arm: str) -> Callable[[Place], None]:
    def run(place: Place) -> None:
        held = Held(place, f"stranger{topic.replace('/', '_')}")
        with ExitStack() as ending:
            peer = Peer(ending, held.domain(arm), "planner")
            publisher = peer.publisher(type_name, topic)
            until(publisher.get_subscription_count, "the arm has met it")
            held.go_on()
            ran = held.over().wholly(5)
        assert f"in the {arm} arm's ROS domain" in ran.said and f" {topic} is published by" in ran.said
        assert "/planner" in ran.said and ran.summary["outcomes"]["HOLDS"] >= 6

    return run


# --- the disk, the clock


def disk_full(place: Place) -> None:
    disk = place.path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", disk]
    if os.getuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a small disk needs leave to mount a tmpfs")
    try:
        held = Held(place, "disk/run")
        with (disk / "filler").open("wb", buffering=0) as filler, pytest.raises(OSError, match="No space left"):
            while True:
                filler.write(bytes(4096))
        held.go_on()
        ran = held.over().wholly(4)
        assert "No space left on device; the disk at" in ran.said + ran.error and str(disk) in ran.said + ran.error
        assert len(ran.lines) >= 6
        (disk / "filler").unlink()
        assert same(place.resume("disk/run").wholly(3, HOLDS=9), undisturbed(place, held, "disk_with_room"))
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


def clock_stepped(seconds: int) -> Callable[[Place], None]:
    def run(place: Place) -> None:
        shim = shimmed(place)
        name = f"clock{seconds}"
        jumped = place.path / f"{name}_jumped"
        env = {"LD_PRELOAD": str(shim), "CLOCK_JUMPED": str(jumped), "CLOCK_JUMP_S": str(seconds)}
        told = subprocess.run(
            [sys.executable, "-c", f"import time; a = time.time(); open({str(jumped)!r}, 'w'); print(time.time() - a)"],
            env={**os.environ, **env},
            capture_output=True,
            text=True,
            check=True,
        )
        assert abs(float(told.stdout) - seconds) < 60, "the shim works"
        jumped.unlink()
        held = Held(ClockPlace(place, env), name, deadline_s=20.0)
        jumped.touch()
        held.go_on()
        ran = held.over()
        # Fast DDS may crash when it is taken down after a step back: all is judged by then, but may not be summed up.
        crashed = seconds < 0 and "the suite process was ended by SIGSEGV" in ran.error
        assert ran.process.returncode == (4 if crashed else 3)
        cut_off = crashed and not ran.summary
        summary = remake(ran.out) if cut_off else ran.summary
        assert summary["offered"] == len(ran.lines) == 9 and summary["exit_code"] == (4 if cut_off else 3)
        for line in ran.lines:
            assert line["outcome"] == "HOLDS" or LOST in line["reason"] or "not sent" in line["reason"]

    return run


class ClockPlace:
    """A place whose processes see another clock."""

    def __init__(self, place: Place, env: dict[str, str]) -> None:
        self._place, self.env = place, {**place.env, **env}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._place, name)

    def start(self, out: str, *words: str | Path) -> Ran:
        return Ran(self, out, (*words, "--out", out))  # type: ignore[arg-type]


def shimmed(place: Place) -> Path:
    made = place.path / f"clock_{time.monotonic_ns()}.so"
    if shutil.which("cc") is None:
        pytest.skip("a moved clock needs a C compiler")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", made, SHIM, "-ldl"], check=True)
    return made


FAULTS: dict[str, Callable[[Place], None]] = {
    "suite killed": suite_killed,
    "suite killed, keeper stopped": suite_killed_and_a_keeper_stopped,
    "source stack killed": killed("stack source"),
    "follow-up stack killed": killed("stack followup"),
    "keeper killed": killed("keeper source"),
    "command line stopped": command_line_stopped,
    "suite stopped for longer than a deadline": suite_stopped_for_longer_than_a_deadline,
    "suite stopped, then Ctrl-C": suite_stopped_and_interrupted,
    "stack stopped for good": stack_stopped_for_good,
    "stack stopped for a while": stack_stopped_for_a_while,
    "keepers stopped": keepers_stopped,
    "30 % of the answers dropped": some_dropped,
    "answers late": some_late,
    "answers out of order": reordered,
    "ten times the rate": ten_times_too_fast,
    "every answer twice": answered_twice,
    "every answer twice, one input a stamp": answered_twice_by_one_that_remembers,
    "second publisher of the output": stranger(BOXES, MARKERS, "followup"),
    "second publisher of the input": stranger("/points", codec.POINT_CLOUD, "source"),
    "disk full": disk_full,
    "clock an hour on": clock_stepped(HOUR_S),
    "clock an hour back": clock_stepped(-HOUR_S),
}


@pytest.fixture(scope="module")
def injected(place: Place, request: pytest.FixtureRequest) -> Iterator[dict[str, Future[None]]]:
    """Two at a time: most of a run's time is that of starting its processes."""
    chosen = {item.callspec.params["name"] for item in request.session.items if "injected" in item.fixturenames}
    with ThreadPoolExecutor(2) as pool:
        yield {name: pool.submit(FAULTS[name], place) for name in FAULTS if name in chosen}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_ends_with_right_totals_and_a_named_cause(injected: dict[str, Future[None]], name: str) -> None:
    injected[name].result()


def test_a_suite_that_does_not_end_is_killed_in_time(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    code = "import pathlib, signal, sys\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    code += f"pathlib.Path({str(ready)!r}).touch()\nsignal.pause()"
    reading, writing = os.pipe()
    with _Suite(0.2) as suite, os.fdopen(reading), os.fdopen(writing):
        suite.start(Process("suite", (sys.executable, "-c", code), os.environ, tmp_path / "log"), writing)
        until(ready.exists)
        signal.raise_signal(signal.SIGINT)
        assert suite.wait() == -signal.SIGKILL and suite.killed and suite.signals == [signal.SIGINT]
