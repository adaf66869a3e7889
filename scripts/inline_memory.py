# SPDX-License-Identifier: Apache-2.0
"""Sends messages through the relay and the mutator of ``mt inline`` as fast as both can, and watches their memory.

Both are in this process: what the relay is given is what its subscription would give it, and the mutator's offers go
through their socket. The first half of the messages fills caches; the second half counts. The figures go to
``scripts/soak.json``, beside those of the soak.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import rclpy
from memory_watch import sample
from soak import FIGURES, LIDAR

from mt_nodes.base.environment import free_domains, keep_freed_memory, ros_environment
from mt_nodes.base.jsonl import LineFile
from mt_nodes.base.processes import wait_until
from mt_nodes.data.cdr import codec
from mt_nodes.data.messages import Wire
from mt_nodes.data.transforms import dump_transforms
from mt_nodes.nodes import qos
from mt_nodes.nodes.inline_mutator import InlineMutator
from mt_nodes.nodes.message_classes import message_class
from mt_nodes.nodes.relay_topic import RelayTopic
from mt_nodes.runs.vehicle.baton import Baton
from mt_nodes.runs.vehicle.inline import Between, InlineConfig
from mt_nodes.runs.vehicle.offers import Offers, OfferServer
from mt_nodes.world.scene.drive import generate_drive

TOPIC, RAW = "/lidar/points", "/lidar/points_raw"
MESSAGES, SAMPLES, STATUS_EVERY, WAIT_S = 30_000, 60, 5, 10.0
#: One of so many is not replaced: the line gives it up.
KEPT_EVERY = 10


class Bench:
    """A relay's topic and a mutator, joined by the socket of offers."""

    def __init__(self, place: Path, ending: ExitStack) -> None:
        bundle = next(iter(generate_drive(1, 1, LIDAR)))
        dump_transforms(bundle.transforms, place / "transforms.yaml")
        config = InlineConfig(
            topics=(Between(RAW, TOPIC),), relation="noise_outside_roi_100", transforms=str(place / "transforms.yaml")
        )
        self._cdr, self._arrived = bytearray(codec.encode_cloud(bundle.cloud())), 0
        os.environ.update(ros_environment(os.environ, ending.enter_context(free_domains(1)).domains[0]))
        rclpy.init(args=[])
        ending.callback(rclpy.try_shutdown)
        node = rclpy.create_node("inline_memory", enable_rosout=False, start_parameter_services=False)
        node.create_publisher(message_class(codec.POINT_CLOUD), RAW, qos.REPLAY)
        if not wait_until(lambda: bool(node.get_publishers_info_by_topic(RAW)), WAIT_S):
            raise SystemExit("the middleware does not show the publisher of this node")
        offered = node.get_publishers_info_by_topic(RAW)[0]
        self.topic = RelayTopic(node, config, 0, offered, Baton.create(1, config.depth), lambda: True)
        self.topic.relieve()
        server = OfferServer(place / "offers", self._take)
        ending.callback(server.close)
        offers, ledger = Offers(place / "offers"), LineFile(place / "offered.jsonl")
        ending.callback(ledger.close)
        ending.callback(offers.close)
        self._mutator = InlineMutator(config, offers, ledger)

    def _take(self, number: int, stamp_ns: int, data: memoryview) -> None:
        self.topic.line.replacement(stamp_ns, data, time.monotonic())
        self._arrived += 1

    def send(self, number: int) -> None:
        """Send one message through both, and wait until it has gone out.

        Raises SystemExit: the follow-up did not come.
        """
        stamp_ns = (number + 1) * 100_000_000
        self._cdr[4:12] = (stamp_ns // 10**9).to_bytes(4, "little") + (stamp_ns % 10**9).to_bytes(4, "little")
        data, now_s, arrived = bytes(self._cdr), time.monotonic(), self._arrived
        self.topic.take(stamp_ns, data, now_s, replaceable=True)
        if number % KEPT_EVERY == 0:
            self.topic.line.release_due(float("inf"))
        self._mutator.received([Wire(RAW, codec.POINT_CLOUD, stamp_ns, data)])
        if self._mutator.failure is not None or not wait_until(lambda: self._arrived > arrived, WAIT_S, 0.0005):
            raise SystemExit(f"message {number}: {self._mutator.failure or 'its follow-up did not come'}")
        if number % STATUS_EVERY == 0:
            json.dumps(self.topic.status())


def measure(messages: int) -> dict[str, Any]:
    """Return memory in MB (first, half-way, last), bytes for each message of the second half, and what was sent."""
    keep_freed_memory()
    memory_mb = []
    with ExitStack() as ending:
        bench = Bench(Path(ending.enter_context(tempfile.TemporaryDirectory())), ending)
        began_s = time.monotonic()
        for number in range(messages):
            bench.send(number)
            if (number + 1) % (messages // SAMPLES) == 0 and (found := sample(os.getpid())) is not None:
                memory_mb.append(found.memory_mb)
        took_s = time.monotonic() - began_s
        counts = vars(bench.topic.line.counts).copy()
    half = len(memory_mb) // 2
    return {
        "messages": messages,
        "took_s": round(took_s),
        "memory_mb": [round(value, 2) for value in (memory_mb[0], memory_mb[half], memory_mb[-1])],
        "bytes_per_message": round(1e6 * (memory_mb[-1] - memory_mb[half]) / (messages / 2)),
        "counts": counts,
    }


def main() -> None:
    """Measure, print the figures as JSON and keep them; exit 1 when a message is lost."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=MESSAGES)
    parser.add_argument("--figures", type=Path, default=FIGURES, help="JSON file that they are added to")
    given = parser.parse_args()
    found = measure(given.messages)
    figures = json.loads(given.figures.read_text()) if given.figures.exists() else {"pieces": []}
    given.figures.write_text(json.dumps({**figures, "inline": found}, indent=1) + "\n")
    print(json.dumps(found, indent=1))
    sys.exit(found["counts"]["originals"] + found["counts"]["replaced"] != given.messages)


if __name__ == "__main__":
    main()
