# SPDX-License-Identifier: Apache-2.0
"""The suite's own topics, in the domain the user works in."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.context import Context
from rclpy.node import Node
from std_msgs.msg import String

from mt_nodes.data.verdict import Outcome
from mt_nodes.engine.summary.score_range import TYPE as SCORES
from mt_nodes.nodes import qos

#: topic -> (type, QoS, what it carries); a table of docs/nodes.md is made from this.
TOPICS = {
    "/mt/verdicts": (String, qos.JOURNAL, "one line of result.jsonl each, as it is written"),
    "/mt/ledger": (String, qos.JOURNAL, "one line of ledger.jsonl each: what the follow-up was made of"),
    "/mt/metrics": (String, qos.STATUS, "pairs done and their outcomes so far, as JSON, after every bundle"),
    "/mt/diagnostics": (DiagnosticArray, qos.STATUS, "rate, added latency, unpaired and stray outputs, isolation"),
}


class ControlNode(Node):
    """Publishes verdicts, ledger, metrics and diagnostics while a run goes on."""

    def __init__(self, *, context: Context) -> None:
        super().__init__("mt_suite", context=context, enable_rosout=False, start_parameter_services=False)
        self._topics = {name: self.create_publisher(kind, name, profile) for name, (kind, profile, _) in TOPICS.items()}
        self._outcomes: dict[str, int] = {}

    def line(self, text: str) -> None:
        """Publish a line of the journal or the ledger as it was written, checksum included; scores are told nobody."""
        line = json.loads(text)
        if line.get("type") == SCORES:
            return
        topic = "/mt/ledger" if line.get("type") == "followup" else "/mt/verdicts"
        self._topics[topic].publish(String(data=text))
        if line.get("type") == "verdict":
            self._outcomes[line["outcome"]] = self._outcomes.get(line["outcome"], 0) + 1

    def status(self, values: dict[str, Any], warnings: Sequence[str] = ()) -> None:
        """Publish metrics and diagnostics; ``warnings`` say what to do.

        ``values`` are numbers and texts by name, or mappings of such: in diagnostics, where every value is a text, each
        of theirs has a row of its own, named by the names on the way to it.
        """
        self._topics["/mt/metrics"].publish(String(data=json.dumps({"outcomes": self._outcomes, **values})))
        level, message = _level(self._outcomes, warnings)
        status = DiagnosticStatus(level=level, name="mt_nodes: replay", message=message, hardware_id="")
        status.values = [KeyValue(key=k, value=str(v)) for k, v in _rows({**self._outcomes, **values})]
        array = DiagnosticArray(status=[status])
        array.header.stamp = self.get_clock().now().to_msg()
        self._topics["/mt/diagnostics"].publish(array)

    def flush(self, timeout_s: float) -> None:
        """Wait until everybody who listens has got what was published."""
        from rclpy.duration import Duration

        for publisher in self._topics.values():
            publisher.wait_for_all_acked(Duration(seconds=timeout_s))


def _rows(values: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _rows(value, f"{before}{name} ")
        else:
            yield before + name, value


def _level(outcomes: dict[str, int], warnings: Sequence[str]) -> tuple[bytes, str]:
    unpaired: Sequence[Outcome] = (Outcome.UNPAIRED_SOURCE, Outcome.UNPAIRED_FOLLOWUP, Outcome.UNPAIRED_BOTH)
    if outcomes.get(Outcome.ERROR.value):
        return DiagnosticStatus.ERROR, "pairs ended in ERROR"
    if any(outcomes.get(o.value) for o in unpaired):
        return DiagnosticStatus.WARN, "; ".join(("pairs stay unpaired", *warnings))
    if warnings:
        return DiagnosticStatus.WARN, "; ".join(warnings)
    return DiagnosticStatus.OK, "judging"
