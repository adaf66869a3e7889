# SPDX-License-Identifier: Apache-2.0
"""What the mutator adds to the way of a cloud, against a bare relay that passes the same bytes on.

Three ways from one node and back, message by message in turn: direct, through a relay, through the mutator. Each of
the two is a process of its own; what it adds is its time less the median of the direct way.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from mt_nodes.base.environment import free_domains, ros_environment
from mt_nodes.base.processes import Child, Process, wait_until
from mt_nodes.data.cdr import codec
from mt_nodes.data.transforms import dump_transforms
from mt_nodes.world.scene.drive import generate_drive

WAYS = ("direct", "relay", "mutator")
RELATION = "noise_outside_roi_1000"
#: One cloud in so many seconds, whichever way: each has the machine to itself.
EVERY_S = 0.02
READY_S, ANSWER_S, STOP_S = 30.0, 2.0, 5.0


def measure(repeats: int, rounds: int) -> dict[str, Any]:
    """Return per way p50 and p99 in ms, and the ratios of what mutator and relay add, each the median of repeats."""
    done = [_in_processes(rounds) for _ in range(repeats)]
    figures = [_figures(times) for times in done]
    return {name: round(median(f[name] for f in figures), 3) for name in figures[0]} | {
        "repeats": repeats,
        "rounds": rounds,
        "lost": sum(sum(t is None for t in way) for times in done for way in times.values()),
    }


def _figures(times: Mapping[str, list[float | None]]) -> dict[str, float]:
    heard = {way: np.array([t for t in found if t is not None]) for way, found in times.items()}
    base = float(np.median(heard["direct"]))
    found = {f"{way}_{name}_ms": float(np.percentile(heard[way], q)) for way in WAYS for name, q in _QUANTILES.items()}
    for name in _QUANTILES:
        added = {way: found[f"{way}_{name}_ms"] - base for way in ("relay", "mutator")}
        found |= {f"{way}_added_{name}_ms": value for way, value in added.items()}
        found[f"ratio_{name}"] = added["mutator"] / added["relay"]
    return found


_QUANTILES = {"p50": 50, "p99": 99}


def _in_processes(rounds: int) -> dict[str, list[float | None]]:
    """Return the milliseconds of every message by way, None for a lost one."""
    with ExitStack() as ending:
        place = Path(ending.enter_context(tempfile.TemporaryDirectory()))
        bundle = next(iter(generate_drive(1)))
        dump_transforms(bundle.transforms, place / "transforms.yaml")
        (place / "cloud.cdr").write_bytes(codec.encode_cloud(bundle.cloud()))
        lease = ending.enter_context(free_domains(1))
        env = ros_environment(os.environ, lease.domains[0])
        parameters = {
            "input_topic": _topic("mutator", "in"),
            "output_topic": _topic("mutator", "out"),
            "control_every": "0",
            "relation": RELATION,
            "transforms": str(place / "transforms.yaml"),
        }
        words = [word for name, value in parameters.items() for word in ("-p", f"{name}:={value}")]
        python = sys.executable
        for name, argv in {
            "relay": (python, __file__, "relay"),
            "mutator": (python, "-m", "mt_nodes.nodes.mutator", "--ros-args", *words),
        }.items():
            child = Child(Process(name, argv, env, place / f"{name}.log"))
            ending.callback(child.stop, STOP_S)
        argv = (python, __file__, "ends", str(place / "cloud.cdr"), str(rounds))
        with (place / "ends.log").open("w") as log:
            subprocess.run(argv, env=env, check=True, stdout=log)
        times: dict[str, list[float | None]] = json.loads((place / "times.json").read_text())
        return times


def _topic(way: str, end: str) -> str:
    return "/bench/direct" if way == "direct" else f"/bench/{way}/{end}"


@contextmanager
def _node(name: str) -> Iterator[Any]:
    from mt_nodes.nodes.spinning_context import SpinningContext, plain_node

    ros = SpinningContext(int(os.environ["ROS_DOMAIN_ID"]))
    try:
        yield ros.add(plain_node, name)
    finally:
        ros.close()


def relay() -> None:
    """Pass serialized clouds on, with the mutator's own quality of service, until a signal."""
    import signal

    from sensor_msgs.msg import PointCloud2

    from mt_nodes.nodes import qos

    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    with _node("bench_relay") as node:
        out = node.create_publisher(PointCloud2, _topic("relay", "out"), qos.REPLAY)
        node.create_subscription(PointCloud2, _topic("relay", "in"), out.publish, qos.LIVE_TAP, raw=True)
        signal.sigwait({signal.SIGINT, signal.SIGTERM})


def ends(cloud: Path, rounds: int) -> None:
    """Send and receive clouds, one way after the other; write the times beside the cloud."""
    from sensor_msgs.msg import PointCloud2

    from mt_nodes.nodes import qos

    arrived, came, at = threading.Event(), [0], [0.0]

    def received(data: bytes) -> None:
        at[0], came[0] = time.perf_counter(), _stamp(data)
        arrived.set()

    with _node("bench_ends") as node:
        senders = {way: node.create_publisher(PointCloud2, _topic(way, "in"), qos.REPLAY) for way in WAYS}
        for way in WAYS:
            node.create_subscription(PointCloud2, _topic(way, "out"), received, qos.REPLAY, raw=True)
        if not wait_until(lambda: all(s.get_subscription_count() for s in senders.values()), READY_S):
            sys.exit("bench: relay or mutator did not get ready")
        template = bytearray(cloud.read_bytes())
        times: dict[str, list[float | None]] = {way: [] for way in WAYS}
        for number in range(-WARM_UP, rounds):
            for way in WAYS:
                arrived.clear()
                template[4:8] = (number + WARM_UP + 1).to_bytes(4, "little")
                message = bytes(template)
                began = time.perf_counter()
                senders[way].publish(message)
                heard = arrived.wait(ANSWER_S) and came[0] == number + WARM_UP + 1
                if number >= 0:
                    times[way].append(1e3 * (at[0] - began) if heard else None)
                time.sleep(max(0.0, began + EVERY_S - time.perf_counter()))
    (cloud.parent / "times.json").write_text(json.dumps(times))


#: Publishers of followups match, and memory gets warm, while nobody counts.
WARM_UP = 10


def _stamp(data: bytes) -> int:
    return int.from_bytes(data[4:8], "little")


if __name__ == "__main__":
    if sys.argv[1] == "relay":
        relay()
    else:
        ends(Path(sys.argv[2]), int(sys.argv[3]))
