# SPDX-License-Identifier: Apache-2.0
"""Does a live stack notice the suite: its output rate and latency with and without, phase by phase in turn.

The stack of ``examples/live`` is started by its own launch file where ``launch`` is installed, by the same commands
otherwise. Then, round after round, it runs alone for a while, the suite joins (``mt live``, mode shadow), both run for
as long, and the suite leaves. A probe of its own hears the LiDAR and the obstacles throughout: latency is from when it
heard a cloud to when it heard the answer with its stamp. It takes best effort, as the suite does, so a cloud that it
missed itself has no latency, and an answer that did not come is missed output.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from mt_nodes.base.environment import free_domains, ros_environment
from mt_nodes.base.jsonl import read_result
from mt_nodes.base.processes import Child, Process, wait_until
from mt_nodes.data.bags.bundles import write_bundles
from mt_nodes.data.cdr import codec
from mt_nodes.world.scene.drive import generate_drive
from mt_nodes.world.scene.lidar import hdl_64e

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = ROOT / "examples" / "live"
CLOUDS, OBSTACLES = "/sensing/lidar/points", "/perception/obstacles"
BUNDLES, PERIOD_S = 100, 0.1
READY_S, STOP_S = 60.0, 20.0


@dataclass
class Phase:
    """What the probe heard in one phase: when clouds and answers came, by stamp."""

    name: str
    clouds: dict[int, float] = field(default_factory=dict)
    answers: dict[int, float] = field(default_factory=dict)
    lasted_s: float = 0.0

    @property
    def latencies_ms(self) -> list[float]:
        """From cloud to answer, of those that have both."""
        return [1e3 * (at_s - self.clouds[s]) for s, at_s in self.answers.items() if s in self.clouds]


class Probe:
    """Hears the live stack, and keeps what it hears in the phase of the moment."""

    def __init__(self, node: Any) -> None:
        from sensor_msgs.msg import PointCloud2
        from visualization_msgs.msg import MarkerArray

        from mt_nodes.data.message_headers import stamp_of
        from mt_nodes.nodes import qos

        self._phase: Phase | None = None
        self._lock = threading.Lock()

        def cloud(data: bytes) -> None:
            self._keep("clouds", codec.header_stamp_ns(data))

        def answer(message: Any) -> None:
            self._keep("answers", stamp_of(message.markers[0]))

        self._inputs = node.create_subscription(PointCloud2, CLOUDS, cloud, qos.LIVE_TAP, raw=True)
        self._outputs = node.create_subscription(MarkerArray, OBSTACLES, answer, qos.ANSWERS_BEST_EFFORT)
        self.heard = 0

    def _keep(self, what: str, stamp_ns: int | None) -> None:
        at_s = time.perf_counter()
        with self._lock:
            self.heard += what == "answers"
            if self._phase is not None and stamp_ns is not None:
                getattr(self._phase, what)[stamp_ns] = at_s

    def listen(self, name: str, seconds: float) -> Iterator[Phase]:
        """Yield phases of one loop of the bag at most, in which no stamp comes twice."""
        left_s = seconds
        while left_s > 0:
            phase, lasts_s = Phase(name), min(left_s, BUNDLES * PERIOD_S / 2)
            began_s = time.perf_counter()
            with self._lock:
                self._phase = phase
            time.sleep(lasts_s)
            with self._lock:
                self._phase = None
            phase.lasted_s = time.perf_counter() - began_s
            left_s -= lasts_s
            yield phase


@contextmanager
def live_stack(place: Path, domain: int, stack: str = "") -> Iterator[str]:
    """Start the example's stack, or another one that takes and gives the same topics; yield how."""
    env = ros_environment(os.environ, domain)
    bag = place / "drive"
    if not stack and importlib.util.find_spec("launch_ros"):
        file, words = EXAMPLE / "live_stack.launch.py", (f"bag:={bag}",)
        commands, how = (
            {"launch": (sys.executable, str(ROOT / "scripts" / "launch_file.py"), str(file), *words)},
            "its own launch file",
        )
    else:
        python = (sys.executable, "-m")
        detector = (
            "--stack",
            stack or str(EXAMPLE / "detector.yaml"),
            "--transforms",
            str(EXAMPLE / "transforms.yaml"),
        )
        commands = {
            "lidar": (*python, "mt_nodes.nodes.replayer", "--ros-args", "-p", f"bag:={bag}", "-p", "loop:=true"),
            "detector": (*python, "mt_nodes.nodes.callable_stack", *detector),
        }
        how = "two commands"
    with ExitStack() as ending:
        for name, argv in commands.items():
            child = Child(Process(name, argv, env, place / f"{name}.log"))
            ending.callback(child.stop, STOP_S)
        yield how


@contextmanager
def suite(place: Path, number: int, domain: int, changes: Sequence[str] = ()) -> Iterator[Path]:
    """Have the suite join, with ``changes`` (key=value) of its configuration; yield its results directory.

    It leaves at the end of the block.
    """
    out = place / f"run_{number}"
    argv = [
        sys.executable,
        "-m",
        "mt_nodes.cli.main",
        "live",
        "--config",
        str(EXAMPLE / "live.yaml"),
        "--out",
        str(out),
        *(word for change in changes for word in ("--set", change)),
    ]
    with (place / f"suite_{number}.log").open("w") as log:
        env = ros_environment(os.environ, domain)
        process = subprocess.Popen(argv, cwd=ROOT, env=env, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    try:
        if not wait_until(lambda: _tests(out), READY_S):
            raise SystemExit(f"the suite did not begin to test within {READY_S:g} s; see {log.name}")
        yield out
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()


def _tests(out: Path) -> bool:
    """Whether a run has tested anything yet."""
    journal = out / "result.jsonl"
    return journal.exists() and '"outcome": "HOLDS"' in journal.read_text()


def measure(
    place: Path, rounds: int, seconds: float, beams: int, changes: Sequence[str] = (), stack: str = ""
) -> dict[str, Any]:
    """Return the figures of all phases without and with the suite, how the stack started, and what the suite did."""
    from mt_nodes.nodes.spinning_context import SpinningContext, plain_node

    model = hdl_64e()
    lidar = replace(model, elevations_rad=model.elevations_rad[:: len(model.elevations_rad) // beams])
    write_bundles(place / "drive", generate_drive(BUNDLES, lidar=lidar))
    heard: dict[str, list[Phase]] = {"without": [], "with": []}
    outcomes: dict[str, int] = {}
    added: dict[str, Any] = {}
    safety: dict[str, Any] = {}
    with ExitStack() as ending:
        [domain] = ending.enter_context(free_domains(1)).domains
        how = ending.enter_context(live_stack(place, domain, stack))
        ros = SpinningContext(domain)
        ending.callback(ros.close)
        probe = Probe(ros.add(plain_node, "probe"))
        if not wait_until(lambda: probe.heard > 10, READY_S):
            raise SystemExit(f"the live stack says nothing; see the logs in {place}")
        for number in range(rounds):
            heard["without"] += probe.listen("without", seconds)
            with suite(place, number, domain, [*changes, *([f"stack={stack}"] if stack else [])]) as out:
                heard["with"] += probe.listen("with", seconds)
            summary = read_result(out / "summary.json")
            for outcome, count in summary["outcomes"].items():
                outcomes[outcome] = outcomes.get(outcome, 0) + count
            added, safety = summary["topics"], summary["safety"]
    return {
        "changes": list(changes),
        # Of the last time: what our instance is given so much later, and what the suite takes.
        "added_to_ours": added,
        "safety": safety,
        "beams": beams,
        "started_by": how,
        "rounds": rounds,
        "seconds": seconds,
        "outcomes": outcomes,
        **{name: figures(phases) for name, phases in heard.items()},
    }


def figures(phases: Sequence[Phase]) -> dict[str, float]:
    """Return rate, quantiles of latency, and how many answers there were to the clouds that the probe heard."""
    latencies = np.array([ms for phase in phases for ms in phase.latencies_ms])
    lasted_s = sum(phase.lasted_s for phase in phases)
    # The last cloud of a phase is answered after it.
    asked = sum(max(0, len(phase.clouds) - 1) for phase in phases)
    answered = sum(len(phase.answers) for phase in phases)
    return {
        "clouds": asked,
        "answers": answered,
        "rate_hz": answered / lasted_s,
        "unanswered": max(0, asked - len(latencies)),
        **{f"p{q}_ms": float(np.percentile(latencies, q)) for q in (50, 95, 99)},
        "max_ms": float(latencies.max()),
    }


def table(found: Mapping[str, Any]) -> str:
    """Return the Markdown table of docs/live.md."""
    rows = [
        ("answers a second", "rate_hz", "{:.2f}"),
        ("clouds without an answer", "unanswered", "{:.0f}"),
        *((f"latency {q}", f"{key}_ms", "{:.1f} ms") for q, key in _QUANTILES.items()),
    ]
    lines = ["| live stack | alone | suite beside it | ratio |", "| --- | --- | --- | --- |"]
    for label, key, form in rows:
        alone, beside = found["without"][key], found["with"][key]
        ratio = f"{beside / alone:.2f}" if alone and key != "unanswered" else ""
        lines.append(f"| {label} | {form.format(alone)} | {form.format(beside)} | {ratio} |")
    return "\n".join(lines)


_QUANTILES = {"p50": "p50", "p95": "p95", "p99": "p99", "maximum": "max"}


def main() -> int:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3, help="times that the suite joins (default %(default)s)")
    parser.add_argument("--seconds", type=float, default=30.0, help="a phase lasts (default %(default)s)")
    parser.add_argument(
        "--beams", type=int, default=64, choices=(16, 32, 64), help="of the LiDAR (default %(default)s)"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="of the suite's configuration, such as caps.niceness=10 or box.use=auto; may be given again",
    )
    parser.add_argument("--stack", default="", help="file of another stack with the topics of the example's")
    parser.add_argument("--json", action="store_true", help="print figures in place of the table")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        found = measure(Path(place), given.rounds, given.seconds, given.beams, given.set, given.stack)
    print(json.dumps(found, indent=2) if given.json else table(found))
    if not given.json:
        totals = ", ".join(f"{count} {outcome}" for outcome, count in found["outcomes"].items())
        print(
            f"\nstack started by {found['started_by']}; {found['rounds']} times {found['seconds']:g} s; suite: {totals}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
