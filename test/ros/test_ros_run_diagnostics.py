# SPDX-License-Identifier: Apache-2.0
"""Diagnostics and numbers of a run: what tools show, and never OK where nothing was tested."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import Any

import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from ros_support import Heard, Peer, until

from mt_nodes.nodes import control, qos
from mt_nodes.nodes.control import ControlNode
from mt_nodes.nodes.run_diagnostics import ENOUGH, NUMBERS, RunCounts
from mt_nodes.nodes.spinning_context import SpinningContext

OK, WARN, ERROR, STALE = (getattr(DiagnosticStatus, name) for name in ("OK", "WARN", "ERROR", "STALE"))
DIAGNOSTICS = "diagnostic_msgs/msg/DiagnosticArray"


def verdict(outcome: str, number: int, draw: str = "0", relation: str = "fog") -> dict[str, Any]:
    return {"type": "verdict", "pair": f"0/{number}/{relation}/{draw}", "outcome": outcome}


def counts_of(tested: dict[str, int], unchanged: dict[str, int]) -> RunCounts:
    counts = RunCounts()
    for draw, relation, rows in (("0", "fog", tested), ("0@fog", "identity", unchanged)):
        for number, outcome in enumerate(outcome for outcome, count in rows.items() for _ in range(count)):
            counts.take(verdict(outcome, number, draw, relation))
    return counts


@pytest.mark.parametrize(
    ("tested", "unchanged", "level"),
    [
        ({}, {"HOLDS": ENOUGH}, STALE),
        ({"NOT_APPLICABLE": ENOUGH, "SKIPPED": 3}, {"HOLDS": ENOUGH}, STALE),
        ({"HOLDS": ENOUGH - 1}, {"HOLDS": ENOUGH}, STALE),
        ({"HOLDS": ENOUGH}, {}, STALE),
        ({"HOLDS": ENOUGH}, {"HOLDS": 1}, OK),
        ({"HOLDS": ENOUGH, "UNPAIRED_FOLLOWUP": 1}, {"HOLDS": 1}, WARN),
        ({"HOLDS": ENOUGH, "INVALID": 1}, {"HOLDS": 1}, WARN),
        ({"HOLDS": ENOUGH, "VIOLATED": 1}, {"HOLDS": 1}, ERROR),
        ({"VIOLATED": 1}, {}, ERROR),
        ({"HOLDS": ENOUGH, "VIOLATED": 1}, {"VIOLATED": 1}, WARN),
        ({"HOLDS": ENOUGH}, {"VIOLATED": 1}, WARN),
        ({"HOLDS": ENOUGH, "ERROR": 1}, {"HOLDS": 1}, ERROR),
        ({"HOLDS": ENOUGH}, {"ERROR": 1}, ERROR),
    ],
)
def test_a_relation_is_ok_only_where_enough_was_decided_and_all_held(
    tested: dict[str, int], unchanged: dict[str, int], level: bytes
) -> None:
    _, relation = counts_of(tested, unchanged).statuses({}, [])
    assert (relation.name, relation.level) == ("mt_nodes: fog", level), relation.message


def test_a_run_that_decided_nothing_is_stale_and_has_no_share() -> None:
    counts = RunCounts()
    [run] = counts.statuses({"done": 0}, [])
    assert run.level == STALE
    assert "violated_share" not in counts.numbers({"answer_ms_source": None})
    assert "source_latency_ms" not in counts.numbers({"answer_ms_source": None})
    only_control = counts_of({}, {"HOLDS": 3})
    assert only_control.statuses({}, [])[0].level == STALE and only_control.numbers({})["decided"] == 0.0


class Suite:
    """A control node, and somebody who listens beside it."""

    def __init__(self, ending: ExitStack, domain: int, args: list[str] | None = None) -> None:
        self._ros = SpinningContext(domain, args or [])
        ending.callback(self._ros.close)
        self.control: ControlNode = self._ros.add(ControlNode)
        self.control._known_s = 0.0
        self.peer = Peer(ending, domain)

    def listen(self, type_name: str, topic: str) -> Heard:
        heard = self.peer.listen(type_name, topic, qos.STATUS)
        until(lambda: heard.matched() and self.control.count_subscribers(topic))
        return heard

    def told(self, heard: Heard, **values: Any) -> Any:
        def came() -> bool:
            self.control.status(values)
            return bool(heard.messages)

        until(came)
        return heard.messages[-1]


def test_tools_read_diagnostics_and_plot_numbers(ending: ExitStack, domains: tuple[int, ...]) -> None:
    suite = Suite(ending, domains[1])
    for number in range(4):
        suite.control.line(json.dumps(verdict("VIOLATED" if number == 3 else "HOLDS", number)))
    array = suite.told(suite.listen(DIAGNOSTICS, "/diagnostics"), answer_ms_followup=7.5, done=4)
    assert [(s.name, s.level) for s in array.status] == [("mt_nodes: replay", OK), ("mt_nodes: fog", ERROR)]
    assert array.status[1].message == "1 of 4 pairs violated" and array.header.stamp.sec > 0
    for name, number in {"decided": 4.0, "violated_share": 0.25, "followup_latency_ms": 7.5}.items():
        assert (
            suite.told(suite.listen("std_msgs/msg/Float64", f"/mt/numbers/{name}"), answer_ms_followup=7.5).data
            == number
        )
    assert {f"/mt/numbers/{name}" for name in NUMBERS} <= {
        name for name, _ in suite.peer.node.get_topic_names_and_types()
    }


def test_where_another_system_reports_its_health_the_run_keeps_to_its_own_topic(
    ending: ExitStack, domains: tuple[int, ...]
) -> None:
    suite, vehicle = Suite(ending, domains[1]), Peer(ending, domains[1], "vehicle")
    vehicle.publisher(DIAGNOSTICS, "/diagnostics", qos.STATUS)
    until(lambda: suite.control.count_publishers("/diagnostics") == 2)
    until(lambda: "vehicle" in {r.node_name for r in suite.control.get_publishers_info_by_topic("/diagnostics")})
    system, own = suite.listen(DIAGNOSTICS, "/diagnostics"), suite.listen(DIAGNOSTICS, "/mt/diagnostics")
    suite.told(own, done=1)
    suite.control.flush(5.0)
    assert isinstance(own.messages[0], DiagnosticArray) and not system.messages


def test_a_namespace_and_remaps_apply_to_the_topics_of_a_run(ending: ExitStack, domains: tuple[int, ...]) -> None:
    remaps = ["--ros-args", "-r", "__ns:=/bench", "-r", "mt/metrics:=/elsewhere"]
    suite = Suite(ending, domains[1], remaps)
    names = {info[0] for info in suite.control.get_publisher_names_and_types_by_node(control.NODE, "/bench")}
    assert {"/bench/mt/verdicts", "/bench/mt/numbers/decided", "/elsewhere", "/diagnostics"} <= names
    assert "/mt/verdicts" not in names and "/bench/mt/metrics" not in names
