# SPDX-License-Identifier: Apache-2.0
"""What our nodes add to the way of a LiDAR's clouds and a camera's images at 10 Hz, against bare relays beside them.

A cloud of a 64-beam LiDAR's size (120,000 points of 16 bytes) and an image of 1280 x 720 pixels (bgr8) go from one
process and back by each way ten times a second, all at once for the whole run: direct; through a relay of a few lines;
through ``mutator``; through ``mt inline``. Every relay and mutator is a process of its own for each sensor. The
ways' order is drawn anew for each tenth of a second, so that none goes always behind the same other one. What a way
adds is its time less the median of the direct one.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from bench import machine
from bench_relay import GOALS, cloud_of, image_of

from mt_nodes.base.environment import free_domains, ros_environment
from mt_nodes.base.processes import Child, Process, wait_until
from mt_nodes.data.cdr import codec
from mt_nodes.data.transforms import dump_transforms
from mt_nodes.world.scene.drive import generate_drive

WAYS = ("direct", "relay", "mutator", "inline")
#: What is compared with the bare relay.
COMPARED = ("mutator", "inline")
SENSORS = {"lidar": codec.POINT_CLOUD, "camera": codec.IMAGE}
RELATIONS = {"lidar": "noise_outside_roi_1000", "camera": "brightness_raised_lane"}
HZ, POINTS, SIZE = 10.0, 120_000, (720, 1280)
READY_S, LAST_S, STOP_S = 60.0, 2.0, 5.0
#: Memory gets warm, and publishers find their subscribers, while nobody counts: so many messages of each way came.
WARM_UP = 15
HELD, ENGAGED = "/bench/held", "/bench/engaged"
QUANTILES = {"p50": 50, "p95": 95, "p99": 99, "max": 100}


@dataclass(frozen=True)
class Flow:
    """One sensor's messages on one way."""

    sensor: str
    way: str

    @property
    def ends(self) -> tuple[str, str]:
        """Topics that it begins and ends on."""
        begin = f"/bench/{self.sensor}/{self.way}"
        return (begin, begin) if self.way == "direct" else (f"{begin}/in", f"{begin}/out")

    @property
    def readers(self) -> int:
        """How many subscribe to where it begins."""
        return 2 if self.way == "inline" else 1

    @property
    def changes(self) -> bool:
        """Whether what comes out is another message than what went in."""
        return self.way in COMPARED


@dataclass
class Passage:
    """What became of a flow's messages: ms of each that came, how many went in, how many stayed as they were."""

    ms: list[float] = field(default_factory=list)
    sent: int = 0
    unchanged: int = 0


def measure(seconds: float, ways: Sequence[str] = WAYS, relations: Mapping[str, str] = RELATIONS) -> dict[str, Any]:
    """Return by sensor what each way takes and adds (ms), what got lost, and the ratios to the bare relay."""
    with ExitStack() as ending:
        place = Path(ending.enter_context(tempfile.TemporaryDirectory()))
        _write_messages(place)
        [domain] = ending.enter_context(free_domains(1)).domains
        env = ros_environment(os.environ, domain)
        for sensor in SENSORS:
            for way in ways:
                if argv := _argv(Flow(sensor, way), place, relations[sensor]):
                    name = f"{way}_{sensor}"
                    child = Child(Process(name, argv, env, place / f"{name}.log"))
                    ending.callback(child.stop, STOP_S)
        argv = (sys.executable, __file__, "--ends", str(place), "--seconds", str(seconds))
        argv += tuple(word for way in ways for word in ("--way", way))
        done = subprocess.run(argv, env=env, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            raise SystemExit(done.stdout + "".join(_tails(place)))
        passed = json.loads((place / "passed.json").read_text())
    return {
        "seconds": seconds,
        "hz": HZ,
        "relations": dict(relations),
        "sensors": {sensor: figures({w: Passage(**p) for w, p in rows.items()}) for sensor, rows in passed.items()},
    }


def figures(passed: Mapping[str, Passage]) -> dict[str, Any]:
    """Return what each way takes and adds to the direct one, and what is compared as ratios to the relay's."""
    base_ms = float(np.median(passed["direct"].ms))
    ways: dict[str, dict[str, Any]] = {}
    for way, one in passed.items():
        took = {f"{name}_ms": float(np.percentile(one.ms, q)) for name, q in QUANTILES.items()}
        added = {f"added_{name}": ms - base_ms for name, ms in took.items()}
        counts = {"sent": one.sent, "lost": one.sent - len(one.ms), "unchanged": one.unchanged}
        ways[way] = counts | {name: round(value, 3) for name, value in {**took, **added}.items()}
    ratios = {
        way: {q: round(ways[way][f"added_{q}_ms"] / ways["relay"][f"added_{q}_ms"], 3) for q in GOALS}
        for way in COMPARED
        if way in ways
    }
    return {"ways": ways, "ratios": ratios}


def _write_messages(place: Path) -> None:
    """Write a cloud and an image as serialized messages, and the transforms that the cloud's region needs."""
    bundle = next(iter(generate_drive(1)))
    dump_transforms(bundle.transforms, place / "transforms.yaml")
    (place / "lidar.cdr").write_bytes(codec.encode_cloud(cloud_of(bundle, POINTS)))
    (place / "camera.cdr").write_bytes(codec.encode_image(image_of(*SIZE)))


def _argv(flow: Flow, place: Path, relation: str) -> tuple[str, ...]:
    """Return the command of what a way leads through; nothing for the direct one."""
    begin, end = flow.ends
    python, transforms = sys.executable, str(place / "transforms.yaml")
    if flow.way == "relay":
        return (python, __file__, "--relay", flow.sensor)
    if flow.way == "mutator":
        given = {"input_topic": begin, "output_topic": end, "relation": relation, "transforms": transforms}
        given["control_every"] = "0"
        words = [word for name, value in given.items() for word in ("-p", f"{name}:={value}")]
        return (python, "-m", "mt_nodes.nodes.mutator", "--ros-args", *words)
    if flow.way == "inline":
        path = place / f"inline_{flow.sensor}.yaml"
        path.write_text(yaml.safe_dump(_inline(flow, relation, transforms)))
        words = ["--config", str(path), "--arm", "--out", str(place / f"inline_{flow.sensor}")]
        return (python, "-m", "mt_nodes.cli.main", "inline", *words)
    return ()


def _inline(flow: Flow, relation: str, transforms: str) -> dict[str, Any]:
    begin, end = flow.ends
    said = {"type": "std_msgs/msg/Bool", "fresh_s": 5.0}
    return {
        "topics": [{"raw": begin, "topic": end}],
        "relation": relation,
        "transforms": transforms,
        # Long enough that all are replaced: here it is asked how long that takes.
        "hold_s": 0.5,
        "permits": [{"topic": ENGAGED, "equals": False, **said}],
        "dead_man": {"topic": HELD, "equals": True, **said},
    }


def _tails(place: Path) -> Iterator[str]:
    for log in sorted(place.glob("*.log")):
        yield f"{log.name}:\n{log.read_text(errors='replace')[-1000:]}\n"


@contextmanager
def _node(name: str) -> Iterator[Any]:
    from mt_nodes.nodes.spinning_context import SpinningContext, plain_node

    ros = SpinningContext(int(os.environ["ROS_DOMAIN_ID"]))
    try:
        yield ros.add(plain_node, name)
    finally:
        ros.close()


def relay(sensor: str) -> None:
    """Pass a sensor's serialized messages on, with the mutator's own quality of service, until a signal."""
    import signal

    from mt_nodes.nodes import qos
    from mt_nodes.nodes.message_classes import message_class

    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    begin, end = Flow(sensor, "relay").ends
    kind = message_class(SENSORS[sensor])
    with _node(f"bench_relay_{sensor}") as node:
        out = node.create_publisher(kind, end, qos.REPLAY)
        node.create_subscription(kind, begin, out.publish, qos.LIVE_TAP, raw=True)
        signal.sigwait({signal.SIGINT, signal.SIGTERM})


class _Ends:
    """Sends a flow's messages and notes when each comes back."""

    def __init__(self, node: Any, flow: Flow, message: bytes) -> None:
        from mt_nodes.nodes import qos
        from mt_nodes.nodes.message_classes import message_class

        self.flow, self.passage = flow, Passage()
        #: Whether messages count by now; how many have come as they should before.
        self.counting, self.warm = False, 0
        self._template, self._number = bytearray(message), 0
        #: What is on its way: number -> when it was sent, what it was, whether it counts.
        self._open: dict[int, tuple[float, bytes, bool]] = {}
        kind, (begin, end) = message_class(SENSORS[flow.sensor]), flow.ends
        self.sender = node.create_publisher(kind, begin, qos.REPLAY)
        node.create_subscription(kind, end, self._received, qos.REPLAY, raw=True)

    @property
    def waits(self) -> bool:
        """Whether anything is on its way that counts."""
        return any(counts for _, _, counts in list(self._open.values()))

    def send(self) -> None:
        """Send the next message; its number is its stamp in seconds."""
        self._number += 1
        self._template[4:8] = self._number.to_bytes(4, "little")
        message = bytes(self._template)
        self.passage.sent += self.counting
        self._open[self._number] = (time.perf_counter(), message, self.counting)
        self.sender.publish(message)

    def _received(self, data: bytes) -> None:
        at_s = time.perf_counter()
        sent_s, message, counts = self._open.pop(int.from_bytes(data[4:8], "little"), (0.0, b"", False))
        same = data == message
        if counts:
            self.passage.ms.append(1e3 * (at_s - sent_s))
            self.passage.unchanged += same and self.flow.changes
        elif same is not self.flow.changes:
            self.warm += 1


def ends(place: Path, seconds: float, ways: Sequence[str]) -> None:
    """Send and receive on all ways at once; write what became of it beside the messages."""
    from std_msgs.msg import Bool

    flows = [Flow(sensor, way) for sensor in SENSORS for way in ways]
    with _node("bench_ends") as node:
        rows = [_Ends(node, flow, (place / f"{flow.sensor}.cdr").read_bytes()) for flow in flows]
        switch, engaged = (node.create_publisher(Bool, topic, 1) for topic in (HELD, ENGAGED))
        if not wait_until(lambda: all(r.sender.get_subscription_count() >= r.flow.readers for r in rows), READY_S):
            sys.exit(f"bench: not everybody got ready in {READY_S:g} s")
        pressed = [False]

        def say() -> None:
            engaged.publish(Bool(data=False))
            switch.publish(Bool(data=pressed[0]))

        # Nobody is engaged; then the switch is pressed.
        _play(rows, 1.0, say)
        pressed[0] = True
        until_s = time.monotonic() + READY_S
        while cold := [r.flow for r in rows if r.warm < WARM_UP]:
            if time.monotonic() > until_s:
                sys.exit(f"bench: nothing (changed) comes by {cold}")
            _play(rows, 1.0, say)
        for row in rows:
            row.counting = True
        _play(rows, seconds, say)
        wait_until(lambda: not any(row.waits for row in rows), LAST_S)
    found: dict[str, dict[str, Any]] = {sensor: {} for sensor in SENSORS}
    for row in rows:
        found[row.flow.sensor][row.flow.way] = asdict(row.passage)
    (place / "passed.json").write_text(json.dumps(found))


def _play(rows: Sequence[_Ends], seconds: float, beside: Callable[[], None]) -> None:
    """Send a message of each flow ten times a second, evenly spread, in an order that is drawn each time."""
    drawing, pause, due_s = random.Random(1), threading.Event(), time.perf_counter()
    for _ in range(round(seconds * HZ)):
        beside()
        for row in drawing.sample(rows, len(rows)):
            # The pace is the one thing here that is a matter of time.
            pause.wait(max(0.0, due_s - time.perf_counter()))
            row.send()
            due_s += 1.0 / HZ / len(rows)


def table(found: Mapping[str, Any]) -> str:
    """Return the Markdown table of docs/vehicle.md."""
    lines = ["| sensor | way | p50 | p95 | p99 | max | adds p50 | adds p99 | of the relay's p50, p99 | lost |"]
    lines += ["| --- | --- |" + " ---: |" * 8]
    for sensor, part in found["sensors"].items():
        for way, row in part["ways"].items():
            took = [f"{row[f'{q}_ms']:.1f} ms" for q in QUANTILES]
            added = [f"{row[f'added_{q}_ms']:.1f} ms" if way != "direct" else "" for q in GOALS]
            ratio = ", ".join(f"{part['ratios'][way][q]:.2f}" for q in GOALS) if way in part["ratios"] else ""
            lines.append(f"| {' | '.join((sensor, way, *took, *added, ratio, str(row['lost'])))} |")
    return "\n".join(lines)


def main() -> None:
    """Measure, print the table, write JSON where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="to measure (default %(default)s)")
    parser.add_argument("--way", action="append", choices=WAYS, help="leave others out; may be given again")
    for sensor, relation in RELATIONS.items():
        parser.add_argument(f"--{sensor}", default=relation, metavar="RELATION", help="(default %(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every figure")
    parser.add_argument("--relay", choices=SENSORS, help=argparse.SUPPRESS)
    parser.add_argument("--ends", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    ways = [way for way in WAYS if way in {*(given.way or WAYS), "direct", "relay"}]
    if given.relay:
        relay(given.relay)
    elif given.ends:
        ends(given.ends, given.seconds, ways)
    else:
        found = {"machine": machine(), **measure(given.seconds, ways, {s: getattr(given, s) for s in SENSORS})}
        print(", ".join(f"{name} {value}" for name, value in found["machine"].items()))
        print(table(found))
        print(f"goals for what is added, as ratios to the bare relay: {GOALS}")
        if given.json:
            given.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
