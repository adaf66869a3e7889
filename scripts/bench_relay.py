# SPDX-License-Identifier: Apache-2.0
"""What the mutator adds to the way of a message, against a bare relay that passes the same bytes on.

For a cloud of 2 MB, one of 6 MB and an image of 1920 x 1080: from one node and back, message by message in turn, in an
order that is drawn each time: direct; through a relay; through a relay that writes every byte anew once, the floor of
whoever changes a message in Python; through the mutator with each relation. Every relay and mutator is a process of its
own; what it adds is its time less the median of the direct way.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from mt_nodes.base.environment import free_domains, ros_environment
from mt_nodes.base.processes import Child, Process, wait_until
from mt_nodes.data.cdr import codec
from mt_nodes.data.cdr.world_messages import encode_odometry
from mt_nodes.data.ego.published_motion import ODOMETRY_TYPE
from mt_nodes.data.messages import Bundle, Cloud, Image, Odometry
from mt_nodes.data.transforms import EGO_FRAME, dump_transforms
from mt_nodes.world.scene.drive import generate_drive

#: What is no mutator: the first goes nowhere else, the others pass the message on as it is.
BARE = ("direct", "relay", "copy")
#: Behind the relation of a mutator of another checkout.
BEFORE = " before"
#: A message is sent when nobody works any more: so much later, and so many times what the last one took.
EVERY_S, TIMES = 0.02, 3.0
READY_S, ANSWER_S, STOP_S = 60.0, 2.0, 5.0
#: Publishers of followups match, and memory gets warm, while nobody counts.
WARM_UP = 10
QUANTILES = {"p50": 50, "p99": 99}
#: What is added at most, as ratio to what the relay adds.
GOALS = {"p50": 1.2, "p99": 2.0}
REPOSITORY = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Payload:
    """One kind of message: its type, its points (of a cloud) or size (height, width) (of an image), and relations.

    ``share``: of the rounds that are asked for, where each takes long. ``odometry``: whether the vehicle publishes it.
    """

    name: str
    type: str
    size: tuple[int, ...]
    relations: tuple[str, ...]
    share: float = 1.0
    odometry: bool = False

    def encode(self, bundle: Bundle) -> bytes:
        """Return the message, its cloud made of a bundle's."""
        if self.type == codec.IMAGE:
            return codec.encode_image(image_of(*self.size))
        return codec.encode_cloud(cloud_of(bundle, *self.size))


_FAST = ("noise_outside_roi_1000", "points_dropped_10_percent")
#: They need the ego's motion, and simulate what a beam meets: tens of milliseconds.
_SLOW = ("object_added_person", "fog_keeps_near_obstacles")
_CLOUDS = {"cloud of 2 MB": 120_000, "cloud of 6 MB": 375_000}
PAYLOADS = (
    *(Payload(name, codec.POINT_CLOUD, (points,), _FAST) for name, points in _CLOUDS.items()),
    *(Payload(f"{name}, physics", codec.POINT_CLOUD, (points,), _SLOW, 0.25, True) for name, points in _CLOUDS.items()),
    Payload("cloud of 2 MB, physics, no odometry", codec.POINT_CLOUD, (120_000,), _SLOW, 0.25),
    Payload("image of 1920 x 1080", codec.IMAGE, (1080, 1920), ("brightness_raised_lane",)),
)


def cloud_of(bundle: Bundle, points: int) -> Cloud:
    """Return a cloud of so many points with x, y, z and intensity, four bytes each, a bundle's again and again."""
    made = bundle.cloud()
    layout = np.empty(points, [(name, "<f4") for name in ("x", "y", "z", "intensity")])
    for name in layout.dtype.names or ():
        layout[name] = np.resize(made.points[name], points)
    return Cloud(made.topic, 0, made.frame_id, layout)


def image_of(height: int, width: int) -> Image:
    """Return an image of coloured squares."""
    rng = np.random.default_rng(7)
    coarse = rng.integers(0, 230, (height // 8, width // 8, 3), dtype=np.uint8)
    pixels = np.ascontiguousarray(coarse.repeat(8, axis=0).repeat(8, axis=1))
    return Image("/camera", 0, "camera", pixels, "bgr8")


def measure(repeats: int, rounds: int, before: Path | None = None, payloads: Sequence[str] = ()) -> dict[str, Any]:
    """Return for each payload, and each way, what it takes and adds (ms), as medians of repeats.

    ``before``: another checkout, whose mutator takes its turn, too. ``payloads``: names of those measured, empty: all.
    """
    known = [payload for payload in PAYLOADS if not payloads or payload.name in payloads]
    done = {p.name: [figures(*_in_processes(p, rounds, before)) for _ in range(repeats)] for p in known}
    rows = {name: _medians(runs) for name, runs in done.items()}
    return {"repeats": repeats, "rounds": rounds, "payloads": rows}


def _medians(runs: Sequence[Mapping[str, Mapping[str, float]]]) -> dict[str, dict[str, float]]:
    first = runs[0]
    rows = {way: {key: round(median(run[way][key] for run in runs), 3) for key in first[way]} for way in first}
    return {way: row | {"lost": sum(run[way]["lost"] for run in runs)} for way, row in rows.items()}


def figures(
    times: Mapping[str, Sequence[float | None]], publish_ms: Sequence[float] = ()
) -> dict[str, dict[str, float]]:
    """Return by way p50 and p99, what they are beyond the direct way's median, and as ratio to the relay's.

    ``times``: ms of each message by way, None for a lost one. ``publish_ms``: how long the relay's calls of ``publish``
    took.
    """
    heard = {way: [t for t in found if t is not None] for way, found in times.items()}
    if silent := [way for way, found in heard.items() if not found]:
        raise SystemExit(f"bench: no message came by way of {', '.join(silent)}")
    rows: dict[str, dict[str, float]] = {}
    base = float(np.median(heard["direct"]))
    for way, found in heard.items():
        row = {f"{name}_ms": float(np.percentile(found, q)) for name, q in QUANTILES.items()}
        row |= {f"added_{name}_ms": row[f"{name}_ms"] - base for name in QUANTILES}
        rows[way] = row | {"lost": len(times[way]) - len(found)}
    for row in rows.values():
        row |= {f"ratio_{name}": row[f"added_{name}_ms"] / rows["relay"][f"added_{name}_ms"] for name in QUANTILES}
    rows["relay"] |= {"publish_p50_ms": float(np.median(publish_ms))} if len(publish_ms) else {}
    return rows


def _in_processes(
    payload: Payload, rounds: int, before: Path | None
) -> tuple[dict[str, list[float | None]], list[float]]:
    """Return the milliseconds of every message by way, None for a lost one, and those of the relay's publishing."""
    with ExitStack() as ending:
        place = Path(ending.enter_context(tempfile.TemporaryDirectory()))
        bundle = next(iter(generate_drive(1)))
        dump_transforms(bundle.transforms, place / "transforms.yaml")
        (place / "message.cdr").write_bytes(payload.encode(bundle))
        lease = ending.enter_context(free_domains(1))
        env = ros_environment(os.environ, lease.domains[0])
        commands = {way: (sys.executable, __file__, way, payload.type, str(place)) for way in BARE[1:]}
        checkouts = {"": REPOSITORY} | ({BEFORE: before.resolve()} if before else {})
        for relation in payload.relations:
            for note, checkout in checkouts.items():
                commands[relation + note] = _mutator(relation + note, relation, checkout, place)
        children = {}
        for way, argv in commands.items():
            children[way] = Child(Process(way, argv, env, place / f"{way}.log"))
            ending.callback(children[way].stop, STOP_S)
        count = str(max(2, round(rounds * payload.share)))
        odometry = str(int(payload.odometry))
        argv = (sys.executable, __file__, "ends", payload.type, str(place), count, odometry, *commands)
        with (place / "ends.log").open("w") as log:
            done = subprocess.run(argv, env=env, check=False, stdout=log, stderr=subprocess.STDOUT)
        if done.returncode:
            raise SystemExit("\n".join(file.read_text(errors="replace")[-500:] for file in sorted(place.glob("*.log"))))
        children["relay"].stop(STOP_S)
        times: dict[str, list[float | None]] = json.loads((place / "times.json").read_text())
        return times, json.loads((place / "publish_ms.json").read_text())


def _mutator(way: str, relation: str, checkout: Path, place: Path) -> tuple[str, ...]:
    """Return the command of a checkout's mutator."""
    given = {
        "input_topic": _topic(way, "in"),
        "output_topic": _topic(way, "out"),
        "control_every": "0",
        "relation": relation,
        "transforms": str(place / "transforms.yaml"),
    }
    words = [word for name, value in given.items() for word in ("-p", f"{name}:={value}")]
    code = f"import sys; sys.path[0] = {str(checkout)!r}; from mt_nodes.nodes.mutator import main; main()"
    return (sys.executable, "-c", code, "--ros-args", *words)


def _topic(way: str, end: str) -> str:
    name = way.replace(" ", "_")
    return "/bench/direct" if way == "direct" else f"/bench/{name}/{end}"


@contextmanager
def _node(name: str) -> Iterator[Any]:
    from mt_nodes.nodes.spinning_context import SpinningContext, plain_node

    ros = SpinningContext(int(os.environ["ROS_DOMAIN_ID"]))
    try:
        yield ros.add(plain_node, name)
    finally:
        ros.close()


def relay(way: str, type_name: str, place: Path) -> None:
    """Pass serialized messages on, with the mutator's own quality of service, until a signal."""
    import signal

    from mt_nodes.nodes import qos
    from mt_nodes.nodes.message_classes import message_class

    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    publish_ms: list[float] = []
    with _node(f"bench_{way}") as node:
        out = node.create_publisher(message_class(type_name), _topic(way, "out"), qos.REPLAY)

        def received(data: bytes) -> None:
            began = time.perf_counter()
            out.publish(data)
            publish_ms.append(1e3 * (time.perf_counter() - began))

        def copied(data: bytes) -> None:
            out.publish(b"".join((memoryview(data)[:12], memoryview(data)[12:])))

        take = received if way == "relay" else copied
        node.create_subscription(message_class(type_name), _topic(way, "in"), take, qos.LIVE_TAP, raw=True)
        signal.sigwait({signal.SIGINT, signal.SIGTERM})
    if way == "relay":
        (place / "publish_ms.json").write_text(json.dumps(publish_ms[WARM_UP:]))


def odometry_of(number: int) -> bytes:
    """Return the odometry of a vehicle that creeps, at the stamp of the message with a number, in s."""
    return encode_odometry(Odometry("odom", number * 10**9, 0.02 * number, 0.0, 0.0, 1.0, 0.0, EGO_FRAME))


def ends(type_name: str, place: Path, rounds: int, odometry: bool, mutators: Sequence[str]) -> None:
    """Send and receive messages, one way after the other; write the times beside the message."""
    from mt_nodes.nodes import qos
    from mt_nodes.nodes.message_classes import message_class

    ways, kind = ("direct", *mutators), message_class(type_name)
    arrived, came, drawing = threading.Event(), [(0.0, b"")], random.Random(1)

    def received(data: bytes) -> None:
        came[0] = time.perf_counter(), data
        arrived.set()

    with _node("bench_ends") as node:
        senders = {way: node.create_publisher(kind, _topic(way, "in"), qos.REPLAY) for way in ways}
        for way in ways:
            node.create_subscription(kind, _topic(way, "out"), received, qos.REPLAY, raw=True)
        mover = node.create_publisher(message_class(ODOMETRY_TYPE), "/odom", qos.REPLAY) if odometry else None
        hearers = len(mutators) - len(BARE[1:]) if odometry else 0

        def ready() -> bool:
            heard = mover is None or mover.get_subscription_count() >= hearers
            return heard and all(sender.get_subscription_count() for sender in senders.values())

        if not wait_until(ready, READY_S):
            sys.exit("bench: relay or mutator did not get ready")
        template = bytearray((place / "message.cdr").read_bytes())
        times: dict[str, list[float | None]] = {way: [] for way in ways}
        number = 0
        for turn in range(-WARM_UP, rounds):
            for way in drawing.sample(ways, len(ways)):
                arrived.clear()
                number += 1
                template[4:8] = number.to_bytes(4, "little")
                message = bytes(template)
                if mover is not None:
                    mover.publish(odometry_of(number))
                    time.sleep(EVERY_S)
                began = time.perf_counter()
                senders[way].publish(message)
                heard = arrived.wait(ANSWER_S) and came[0][1][4:8] == message[4:8]
                took_s = came[0][0] - began
                if turn >= 0:
                    times[way].append(1e3 * took_s if heard else None)
                if heard and (came[0][1] == message) != (way in BARE):
                    sys.exit(f"bench: {way} passed {'a changed' if way in BARE else 'the same'} message on")
                time.sleep(EVERY_S + TIMES * took_s * heard)
    (place / "times.json").write_text(json.dumps(times))


COLUMNS = ("", "p50 ms", "p99 ms", "adds p50 ms", "adds p99 ms", "of the relay's, p50", "p99", "goals", "lost")


def cells(rows: Mapping[str, Mapping[str, float]]) -> Iterator[tuple[str, ...]]:
    """Yield the rows of a payload's table."""
    for way, row in rows.items():
        took = [f"{row[f'{q}_ms']:.2f}" for q in QUANTILES]
        added = [f"{row[f'added_{q}_ms']:.2f}" if way != "direct" else "" for q in QUANTILES]
        ratios = [f"{row[f'ratio_{q}']:.2f}" if way not in ("direct", "relay") else "" for q in QUANTILES]
        missed = [q for q, goal in GOALS.items() if row[f"ratio_{q}"] > goal]
        goals = "" if way in BARE else f"missed: {', '.join(missed)}" if missed else "met"
        yield (_NAMES.get(way, way), *took, *added, *ratios, goals, str(row["lost"]))


_NAMES = {"relay": "bare relay", "copy": "relay that copies once (floor)"}


def write_docs(path: Path, machine: Mapping[str, Any], part: Mapping[str, Any]) -> None:
    """Write the figures as Markdown, with machine, date and command."""
    blocks = [
        "# Performance: in line",
        "This page gives the latency that the `mutator` node adds to a message, beside that of a bare relay: a few "
        "lines of rclpy that publish the serialized message as it came. `make bench "
        'ARGS="--only relay --docs docs"` measures and writes this page.',
        "Each message goes from one process through another and back, one at a time, in an order that is drawn for "
        "each round. What a path *adds* is its latency minus the median of the direct path. The *relay that copies "
        "once* writes each byte into a new message: no mutator that is written in Python and publishes through rclpy "
        "adds less. Rows with *before* are the mutator of another checkout, in the same run (`--before DIR`; here the "
        "commit before noise was drawn ahead and points were written into the message). "
        f"Goals: at most {GOALS['p50']:g} times (p50) and {GOALS['p99']:g} times (p99) what the bare relay "
        "adds. A run fails if a mutator passes on an unchanged message, or a relay a changed one.",
        f"{date.today().isoformat()}, {machine['cpu']}, {machine['cores']} cores (load {machine['load_1min']}), "
        f"Python {machine['python']}, NumPy {machine['numpy']}; medians of {part['repeats']} runs of {part['rounds']} "
        "messages for each path, a quarter as many with physics. With physics, the vehicle publishes its odometry, "
        "unless the heading says that there is none.",
    ]
    for name, rows in part["payloads"].items():
        table = [f"| {' | '.join(COLUMNS)} |", "| --- |" + " ---: |" * 6 + " --- | ---: |"]
        table += [f"| {' | '.join(row)} |" for row in cells(rows)]
        publish = rows["relay"].get("publish_p50_ms")
        floor = f" rclpy's `publish` of the serialized message takes {publish:.2f} ms (p50) of each path." * bool(
            publish
        )
        blocks += [f"## {name[0].upper()}{name[1:]}", "\n".join(table), floor.strip()]
    path.write_text("\n\n".join(filter(None, [*blocks, *NOTES])) + "\n", encoding="utf-8")


#: Of the stages' marks in a running node, not of this program.
NOTES = (
    "## Where the rest goes",
    "From the sensor's `publish` to the callback, and from `publish` to the receiver, mutator and relay take the same. "
    "Between callback and `publish`, with 1,000 noise points in a cloud of 2 MB (27 November 2026, medians of 100 "
    "messages, nothing else on the machine, before and now half an hour apart):",
    "\n".join(
        (
            "| stage | before, ms | now, ms |",
            "| --- | ---: | ---: |",
            "| message to bundle | 0.18 | 0.16 |",
            "| draw | 0.57 | 0.36 |",
            "| apply | 0.25 | 0.29 |",
            "| serialization | 0.11 | 0.05 |",
            "| pipeline around them | 0.15 | 0.13 |",
            "| all | 1.26 | 0.99 |",
        )
    ),
    "The new points are now written into fresh memory of the message when they are applied; before, that was part of "
    "the serialization. No page faults and no garbage collection are among it. The same code takes half as long in a "
    "loop: the copies of each message empty the caches. What is left is some hundred short calls, "
    "and no compiled part of reasonable size would reach 1.2 at 2 MB ([decision "
    "0042](decisions/0042-in-line-without-a-compiled-part.md)).",
    "**Out of reach.** A fifth of what the relay adds remains for a mutation: 0.3 ms at 2 MB, 0.8 ms at "
    "6 MB. `points_dropped` looks at every coordinate, chooses a tenth of the points and copies the others one by one. "
    "Fog and objects need the ego's motion. Where the vehicle publishes odometry or `/tf`, the node takes it from "
    "there; else it registers the clouds (KISS-ICP), which takes more than half of the latency. Fog follows each beam, "
    "and an object is cast into the cloud by rays; the instants in which an object gets its place take a tenth of a "
    "second (p99). With `mt inline`, such a mutation needs a `hold_s` of that length; a later follow-up is not sent.",
    "**`mt inline`** adds a process and a hop to the path, and proves before it offers: [what it "
    "adds](vehicle.md#budgets) is above twice what one relay adds, and cannot be 1.2 times.",
)


if __name__ == "__main__":
    if sys.argv[1] == "ends":
        ends(sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]), sys.argv[5] == "1", sys.argv[6:])
    else:
        relay(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
