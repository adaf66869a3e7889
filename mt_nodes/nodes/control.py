# SPDX-License-Identifier: Apache-2.0
"""The suite's own topics, in the domain the user works in."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.context import Context
from rclpy.node import Node
from std_msgs.msg import Float64, String

from mt_nodes.engine.summary.score_range import TYPE as SCORES
from mt_nodes.nodes import qos
from mt_nodes.nodes.bundle_publisher import DISCOVERY_S
from mt_nodes.nodes.run_diagnostics import NUMBERS, RunCounts

#: The name of this node, and that of a node whose name has not come yet.
NODE, UNKNOWN = "mt_suite", "_NODE_NAME_UNKNOWN_"
DIAGNOSTICS, SYSTEM_DIAGNOSTICS, NUMBER = "/mt/diagnostics", "/diagnostics", "/mt/numbers/"
#: topic -> (type, QoS, what it carries); a table of docs/nodes.md is made from this. In a namespace, all but
#: /diagnostics are below it.
TOPICS = {
    "/mt/verdicts": (String, qos.JOURNAL, "one line of result.jsonl each, as it is written"),
    "/mt/ledger": (String, qos.JOURNAL, "one line of ledger.jsonl each: what the follow-up was made of"),
    "/mt/metrics": (String, qos.STATUS, "pairs done and their outcomes so far, as JSON, after every bundle"),
    DIAGNOSTICS: (
        *(DiagnosticArray, qos.STATUS),
        "the run: rate, latency, unpaired and stray outputs, isolation; and each relation: OK, WARN, ERROR, STALE",
    ),
    SYSTEM_DIAGNOSTICS: (
        *(DiagnosticArray, qos.STATUS),
        "the same for tools, unless another node publishes there: an ERROR may stop a vehicle",
    ),
    **{f"{NUMBER}{name}": (Float64, qos.STATUS, about) for name, about in NUMBERS.items()},
}


def relative(topic: str) -> str:
    """Return the name by which a node makes one of its own topics, so that a namespace applies to it."""
    return topic if topic == SYSTEM_DIAGNOSTICS else topic.lstrip("/")


class ControlNode(Node):
    """Publishes verdicts, ledger, metrics, diagnostics and numbers while a run goes on."""

    def __init__(self, *, context: Context) -> None:
        super().__init__(NODE, context=context, enable_rosout=False, start_parameter_services=False)
        self._topics = {
            name: self.create_publisher(kind, relative(name), profile) for name, (kind, profile, _) in TOPICS.items()
        }
        self._counts = RunCounts()
        self._known_s = time.monotonic() + DISCOVERY_S
        self._yielded = False

    def line(self, text: str) -> None:
        """Publish a line of the journal or the ledger as it was written, checksum included; scores are told nobody."""
        line = json.loads(text)
        if line.get("type") == SCORES:
            return
        topic = "/mt/ledger" if line.get("type") == "followup" else "/mt/verdicts"
        self._topics[topic].publish(String(data=text))
        self._counts.take(line)

    def status(self, values: dict[str, Any], warnings: Sequence[str] = ()) -> None:
        """Publish metrics, diagnostics and numbers; ``warnings`` say what to do.

        ``values`` are numbers and texts by name, or mappings of such: in diagnostics, where every value is a text, each
        of theirs has a row of its own, named by the names on the way to it.
        """
        outcomes = dict(self._counts.outcomes)
        self._topics["/mt/metrics"].publish(String(data=json.dumps({"outcomes": outcomes, **values})))
        array = DiagnosticArray(status=self._counts.statuses(values, warnings))
        array.header.stamp = self.get_clock().now().to_msg()
        self._topics[DIAGNOSTICS].publish(array)
        if self._alone():
            self._topics[SYSTEM_DIAGNOSTICS].publish(array)
        for name, number in self._counts.numbers(values).items():
            self._topics[f"{NUMBER}{name}"].publish(Float64(data=number))

    def _alone(self) -> bool:
        """Whether no other system reports its health here; one that does may act on what it reads there."""
        if time.monotonic() < self._known_s:
            return False
        others = {row.node_name for row in self.get_publishers_info_by_topic(SYSTEM_DIAGNOSTICS)} - {NODE, UNKNOWN}
        if others and not self._yielded:
            self.get_logger().warning(
                f"{', '.join(sorted(others))} publishes {SYSTEM_DIAGNOSTICS} in this domain: this run is on "
                f"{DIAGNOSTICS} only"
            )
        self._yielded = self._yielded or bool(others)
        return not self._yielded

    def flush(self, timeout_s: float) -> None:
        """Wait until everybody who listens has got what was published."""
        from rclpy.duration import Duration

        for publisher in self._topics.values():
            publisher.wait_for_all_acked(Duration(seconds=timeout_s))
