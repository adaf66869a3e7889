# SPDX-License-Identifier: Apache-2.0
"""Graphs made to carry a test's commands to an actuator: each is a real one, beside a run that tests for real.

An actuator in the live domain records what it is told. A cloud of the source has 20 points and a follow-up 25, and the
stack steers by their number: so it is known of each command what it was made of.

Whole runs beside a live system, one for each graph: they take longer than other files.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from live_beside import KeptCommands, Live, carrying
from ros_support import LIMIT_S, Peer, until
from std_msgs.msg import Float32
from std_srvs.srv import SetBool

from mt_nodes.base.errors import ExitCode
from mt_nodes.nodes import leak_watch, live_safety
from mt_nodes.nodes.suite_process import ProgressEvents
from mt_nodes.runs.live.live_run import read_domains
from mt_nodes.runs.vehicle.box_report import what_can_be_boxed

STEER, ENGAGE, PARK = "/vehicle/steer", "/vehicle/engage", "/vehicle/park"
ACTUATORS = {"topics": [STEER], "services": [ENGAGE], "actions": [PARK]}
OF_SOURCE, OF_FOLLOWUP = 20.0, 25.0
DIAGNOSTICS = "diagnostic_msgs/msg/DiagnosticArray"
needs_box = pytest.mark.skipif(
    not what_can_be_boxed().whole, reason=f"no whole box here: {'; '.join(what_can_be_boxed().shortfalls)}"
)

#: What a program of the test can make in a graph. There may be no action type here: a goal's service stands for one.
MAKES = """
import threading, time
import rclpy
from rclpy.context import Context
from rclpy.lifecycle import LifecycleNode, TransitionCallbackReturn
from rclpy.node import Node
from std_msgs.msg import Float32
from std_srvs.srv import SetBool

KEPT = []

def node(domain, name, *words, kind=Node):
    context = Context()
    rclpy.init(args=["--ros-args", *words] if words else [], context=context, domain_id=domain)
    made = kind(name, context=context)
    KEPT.append(made)
    executor = rclpy.executors.SingleThreadedExecutor(context=context)
    executor.add_node(made)
    threading.Thread(target=executor.spin, daemon=True).start()
    return made

def ignore(message):
    pass  # Standard output is for what the test reads.

def calls(one, service):
    client = one.create_client(SetBool, service)
    KEPT.append(client)
    def call():
        client.wait_for_service()
        client.call_async(SetBool.Request(data=True))
    threading.Thread(target=call, daemon=True).start()
"""

#: Somebody else's program: is there before the run, and does what it is for once told the arm's domain.
OTHERS = f"""
import sys
{MAKES}
kind, live = sys.argv[1], int(sys.argv[2])

class Sleeper(LifecycleNode):
    def on_activate(self, state):
        KEPT.append(self.create_publisher(Float32, "{STEER}", 1))
        return TransitionCallbackReturn.SUCCESS

sleeper = node(live, "planner", kind=Sleeper) if kind == "lifecycle" else None
if sleeper:
    sleeper.trigger_configure()
print("ready", flush=True)
arm = int(input())
if kind == "remap in the live domain":
    KEPT.append(node(live, "planner", "-r", "command:={STEER}").create_publisher(Float32, "command", 1))
elif kind == "remap in the arm":
    one = node(arm, "driver", "-r", "wanted:={STEER}")
    KEPT.append(one.create_subscription(Float32, "wanted", ignore, 1))
elif kind == "bridge":
    out = node(live, "bridge").create_publisher(Float32, "{STEER}", 10)
    KEPT.append(node(arm, "bridge").create_subscription(Float32, "{STEER}", out.publish, 10))
elif kind == "lifecycle":
    sleeper.trigger_activate()
elif kind == "service client":
    calls(node(live, "planner"), "{ENGAGE}")
elif kind == "action client":
    calls(node(live, "planner"), "{PARK}/_action/send_goal")
elif kind == "service in the arm":
    KEPT.append(node(arm, "gate").create_service(SetBool, "{ENGAGE}", lambda _, answer: answer))
elif kind == "a name of ours":
    KEPT.append(node(arm, "mt_mutator").create_subscription(Float32, "{STEER}", ignore, 1))
print(time.monotonic(), flush=True)
threading.Event().wait()
"""

#: Kind -> what the run says of it, one of these.
GRAPHS = {
    "remap in the live domain": ("/planner publishes /vehicle/steer",),
    "remap in the arm": ("/driver subscribes to /vehicle/steer",),
    "bridge": ("/bridge publishes /vehicle/steer", "/bridge subscribes to /vehicle/steer"),
    "lifecycle": ("/planner publishes /vehicle/steer",),
    "service client": ("/planner calls /vehicle/engage",),
    "action client": ("/planner asks for /vehicle/park",),
    "service in the arm": ("/gate serves /vehicle/engage",),
    "a name of ours": ("/mt_mutator, which is none of ours, subscribes to /vehicle/steer",),
}

#: Found in the way that another one is, too: not in each run of the tests. Clients and servers are seen in real graphs
#: in test_ros_graph_guard.py. A bridge has endpoints where others have them, and one is run beside a boxed stack; what
#: comes to the actuator until it is noticed is looked at where a stack itself reaches out.
LIKE_OTHERS = (
    *("remap in the live domain", "remap in the arm", "bridge"),
    *("service in the arm", "service client", "action client"),
)
#: Not about what is in time: a machine that is too busy makes nothing in less.
LATE_S = 1.0

#: A stack that commands in its own domain, as it should, and in the live one, as it should not.
REACHES_OUT = f"""
{MAKES}
out = node(None, "stack").create_publisher(Float32, "{STEER}", 10)
beyond = None

def detect(points):
    global beyond
    if LIVE is not None and beyond is None:
        one = node(LIVE, "reaches_out")
        beyond = one.create_publisher(Float32, "{STEER}", 10)
        calls(one, "{ENGAGE}")
        calls(one, "{PARK}/_action/send_goal")
    for each in (out, beyond):
        if each is not None:
            each.publish(Float32(data=float(len(points))))
    return [[8.0, 1.0, 0.5, 4.0, 2.0, 1.5, 0.5]] if len(points) else []
"""


class Actuator:
    """Records what it is told, and when."""

    def __init__(self, ending: ExitStack, domain: int) -> None:
        node = Peer(ending, domain, "actuator").node
        self.told: list[tuple[float, float]] = []
        self.called: list[str] = []
        #: What is told of the run where people look.
        self.alarms: list[Any] = []
        node.create_subscription(Float32, STEER, self._steer, 100)
        for service in (ENGAGE, f"{PARK}/_action/send_goal"):
            node.create_service(SetBool, service, lambda _, answer, name=service: self._call(name, answer))

    @property
    def from_followups(self) -> list[float]:
        """When it was told what was made of a follow-up."""
        return [at_s for at_s, value in self.told if value == OF_FOLLOWUP]

    def _steer(self, message: Any) -> None:
        self.told.append((time.monotonic(), message.data))

    def _call(self, name: str, answer: Any) -> Any:
        self.called.append(name)
        return answer


class Stranger:
    """Another program."""

    def __init__(self, ending: ExitStack, place: Path, kind: str, live: int) -> None:
        (place / "others.py").write_text(OTHERS)
        argv = [sys.executable, str(place / "others.py"), kind, str(live)]
        self._process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        ending.callback(self._end)
        #: When it had made its endpoints.
        self.made_s: float | None = None
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    def go(self, arm: int) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f"{arm}\n")
        self._process.stdin.flush()
        self.made_s = float(self._process.stdout.readline())

    def _end(self) -> None:
        self._process.kill()
        self._process.communicate()


class At(ProgressEvents):
    """Does something in a thread once when so much was tested; gives up when that was long ago."""

    def __init__(self, tested: int, do: Callable[[], None], enough: int = 10_000) -> None:
        super().__init__(None)
        self._tested, self._do, self._enough = tested, do, enough
        self._thread: threading.Thread | None = None

    def send(self, event: Mapping[str, Any]) -> None:
        if self._thread is None and event.get("tested", 0) >= self._tested:
            self._thread = threading.Thread(target=self._do, daemon=True)
            self._thread.start()
        if event.get("tested", 0) >= self._enough:
            KeptCommands.last.stop()

    def join(self) -> None:
        assert self._thread is not None
        self._thread.join(LIMIT_S)


class Stopped:
    """When injection was stopped: no follow-up was begun any more, and none went out any more."""

    def __init__(self) -> None:
        self.begun_s = self.sent_s = 0.0
        self.line: Any = None


@pytest.fixture
def stopped(monkeypatch: pytest.MonkeyPatch) -> Stopped:
    at = Stopped()
    stop, take = live_safety.LiveSafety._stop_injection, leak_watch.Suspicion.take

    def recorded(safety: Any) -> None:
        stop(safety)
        at.sent_s, at.line = time.monotonic(), safety.stop.__self__

    def taken(suspicion: Any, now_s: float, look: Any) -> None:
        before = suspicion.why
        take(suspicion, now_s, look)
        if suspicion.why and not before:
            at.begun_s = time.monotonic()

    monkeypatch.setattr(live_safety.LiveSafety, "_stop_injection", recorded)
    monkeypatch.setattr(leak_watch.Suspicion, "take", taken)
    return at


Carry = Callable[..., tuple[list[Any], dict[str, Any], Path]]


@pytest.fixture
def carry_out(tmp_path: Path, domains: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> Iterator[Carry]:
    carried = carrying(tmp_path, domains[1], monkeypatch)

    def with_stack(reaches: int | None = None, **config: Any) -> Any:
        (tmp_path / "evil.py").write_text(f"LIVE = {reaches}\n{REACHES_OUT}")
        return carried("shadow", stack={"callable": "evil:detect"}, actuators=ACTUATORS, **config)

    yield with_stack


def within_ms(stopped: Stopped, stranger: Stranger) -> str:
    assert stranger.made_s is not None
    return " and ".join(f"{1e3 * (at_s - stranger.made_s):.0f} ms" for at_s in (stopped.begun_s, stopped.sent_s))


def attacked(
    kind: str, ending: ExitStack, live: int, place: Path, carry_out: Carry, tested: int = 2, **config: Any
) -> Any:
    """Carry a run out beside which somebody does this, once so much was tested.

    Returns:
        The summary, who it was, and the actuator.
    """
    Live(ending, live)
    actuator, stranger = Actuator(ending, live), Stranger(ending, place, kind, live)

    def go() -> None:
        domains = read_domains(place / "out_shadow")
        alarms = Peer(ending, domains["control"]).listen(DIAGNOSTICS, "/mt/diagnostics")
        until(alarms.matched)
        actuator.alarms = alarms.messages
        stranger.go(domains["followup"])

    events = At(tested, go)
    _, summary, _ = carry_out(events=events, duration_s=LIMIT_S, **config)
    events.join()
    return summary, stranger, actuator


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.long if kind in LIKE_OTHERS else ()) for kind in GRAPHS]
)
def test_whoever_would_carry_commands_to_an_actuator_is_named_and_ends_the_run(
    kind: str, carry_out: Carry, ending: ExitStack, domains: Any, tmp_path: Path, stopped: Stopped
) -> None:
    summary, stranger, actuator = attacked(kind, ending, domains[1], tmp_path, carry_out, box={"use": "off"})
    assert summary["exit_code"] == ExitCode.ISOLATION, summary
    assert any(says in summary["isolation"] for says in GRAPHS[kind]), summary["isolation"]
    assert stopped.line._held, "what waits to go out is not dropped"
    # It is on its way to the actuator when the run is over.
    until(lambda: any(text in str(alarm.status) for alarm in actuator.alarms for text in GRAPHS[kind]))
    late = [at_s for at_s in actuator.from_followups if at_s > stopped.sent_s + 1.0]
    assert not late, "a command made of a follow-up came a second after injection was stopped"
    print(
        f"{kind}: injection stopped {within_ms(stopped, stranger)}; {len(actuator.from_followups)} of follow-ups came"
    )


@needs_box
def test_a_boxed_stack_that_reaches_out_itself_reaches_nobody_nor_through_a_bridge_of_somebody_else(
    carry_out: Carry, ending: ExitStack, domains: Any, tmp_path: Path
) -> None:
    """What is no answer of the stack's does not leave the box: there is nothing to be bridged."""
    boxed = {"reaches": domains[1], "box": {"use": "required"}, "delay_s": LATE_S}
    summary, _, actuator = attacked("bridge", ending, domains[1], tmp_path, carry_out, tested=6, **boxed)
    assert summary["exit_code"] == ExitCode.ISOLATION
    assert "/bridge" in summary["isolation"], "it was the stack itself"
    assert summary["outcomes"]["HOLDS"] >= 4, summary["outcomes"]
    assert not actuator.told and not actuator.called
    assert summary["safety"]["box"] == "required" and summary["safety"]["box_lacks"] == []
    assert (tmp_path / "out_shadow" / "box_followup_box_report.json").exists()


def test_a_stack_without_a_box_that_reaches_out_itself_ends_the_run(
    carry_out: Carry, ending: ExitStack, domains: Any, stopped: Stopped
) -> None:
    Live(ending, domains[1])
    actuator = Actuator(ending, domains[1])
    _, summary, _ = carry_out(domains[1], box={"use": "off"}, duration_s=LIMIT_S)
    assert summary["exit_code"] == ExitCode.ISOLATION
    assert summary["isolation"].startswith("/reaches_out ")
    assert not [at_s for at_s in actuator.from_followups if at_s > stopped.sent_s + 1.0]


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("every_s", [0.5, None], ids=["twice a second", "as often as it may cost"])
@pytest.mark.parametrize("kind", GRAPHS)
def test_how_long_it_takes_until_injection_is_stopped(
    kind: str,
    every_s: float | None,
    carry_out: Carry,
    domains: Any,
    tmp_path: Path,
    stopped: Stopped,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Prints what the documentation says; several runs of each, since one look may come at once or late."""
    if every_s is not None:
        monkeypatch.setattr(leak_watch, "pause_s", lambda took_s: every_s)
    rows = []
    for number in range(3):
        place = tmp_path / str(number)
        with ExitStack() as ending:
            (tmp_path / "out_shadow").rename(place) if (tmp_path / "out_shadow").exists() else None
            _, stranger, actuator = attacked(kind, ending, domains[1], tmp_path, carry_out, box={"use": "off"})
            rows.append(f"{within_ms(stopped, stranger)}, {len(actuator.from_followups)} came")
    print(f"\n| {kind} | {every_s or 'adaptive'} |", "; ".join(rows))
