# SPDX-License-Identifier: Apache-2.0
"""`mt doctor --live-config`: what is said of a configuration, and what is seen of a graph."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml
from live_beside import BOXES, MARKERS, Live
from ros_support import Peer, until

from mt_nodes.cli import main as cli
from mt_nodes.data.cdr import codec
from mt_nodes.nodes import graph_probe, qos
from mt_nodes.nodes.clock_echo import ClockEcho
from mt_nodes.nodes.spinning_context import SpinningContext, quiet_node
from mt_nodes.runs.live.checkup import Graph, judge_arm, judge_clocks, judge_live
from mt_nodes.runs.live.config import live_config
from mt_nodes.runs.live.live_run import LiveRun

STACK: dict[str, Any] = {
    "callable": "tiny:detect",
    "inputs": {"lidar": "/points"},
    "outputs": {"detections": {"topic": BOXES, "type": MARKERS}},
    "stateless": True,
}
EXTERNAL = {**STACK, "callable": "", "start": "external", "domain": {"source": 41, "followup": 61}, "nodes": ["/det"]}


def run(tmp_path: Path, stack: dict[str, Any], **config: Any) -> LiveRun:
    (tmp_path / "stack.yaml").write_text(yaml.safe_dump(stack))
    given = {"stack": str(tmp_path / "stack.yaml"), "live_domain": 41, "relations": ["noise_outside_roi_10"], **config}
    return LiveRun.make(live_config(given, "test"), tmp_path)


def endpoint(node: str, kind: str, durability: str = "volatile", **rest: str) -> dict[str, str]:
    row = {"node": node, "type": kind, "reliability": "reliable", "durability": durability}
    return {**row, "refused": "", "offered": "", **rest}


def graph(domain: int = 41, **changes: Any) -> Graph:
    """A live system as it should be, but for the changes."""
    good: dict[str, Any] = {
        "nodes": ["/lidar", "/det"],
        "publishers": {"/points": [endpoint("/lidar", codec.POINT_CLOUD)], BOXES: [endpoint("/det", MARKERS)]},
        "subscribers": {"/points": [endpoint("/det", codec.POINT_CLOUD)], BOXES: []},
        "heard": {"/points": 30},
        "clocks": {},
    }
    return Graph(domain, **{**good, **changes})


def test_of_a_live_system_as_it_should_be_nothing_is_wrong(tmp_path: Path) -> None:
    found = list(judge_live(run(tmp_path, STACK), graph()))
    assert {f.level for f in found} == {"ok"} and {f.title for f in found} == {"live domain 41", "/points", BOXES}


@pytest.mark.parametrize(
    ("changes", "level", "detail", "fix"),
    [
        ({"nodes": []}, "error", "no node is there", "set live_domain"),
        ({"publishers": {"/points": [], BOXES: []}}, "error", "nobody publishes it in domain 41", "mend inputs"),
        (
            {"publishers": {"/points": [endpoint("/x", codec.IMAGE)], BOXES: [endpoint("/det", MARKERS)]}},
            *("error", f"published as {codec.IMAGE}, expected {codec.POINT_CLOUD}", "mend inputs"),
        ),
        (
            {
                "publishers": {
                    "/points": [endpoint("/lidar", codec.POINT_CLOUD)],
                    BOXES: [endpoint("/det", codec.STRING)],
                }
            },
            *("error", f"published as {codec.STRING}, expected {MARKERS}", "mend outputs"),
        ),
        (
            {
                "publishers": {
                    "/points": [
                        endpoint("/a", codec.POINT_CLOUD),
                        endpoint("/b", codec.POINT_CLOUD, "transient_local"),
                    ],
                    BOXES: [endpoint("/det", MARKERS)],
                }
            },
            *("warn", "some publish it transient local", "ros2 topic info -v /points"),
        ),
        ({"heard": {"/points": 0}}, "warn", "/lidar publishes it, but nothing came", "ROS_AUTOMATIC_DISCOVERY_RANGE"),
        ({"subscribers": {"/points": [], BOXES: []}}, "warn", "nobody subscribes to it in domain 41", "mend inputs"),
        (
            {
                "subscribers": {
                    "/points": [endpoint("/det", codec.POINT_CLOUD, "transient_local", refused="no", offered="so")],
                    BOXES: [],
                }
            },
            *("error", "/det would not hear our instance's arm, which is so: no", "durability: transient_local}"),
        ),
    ],
)
def test_what_is_wrong_in_the_live_domain_is_said_with_what_to_do(
    changes: dict[str, Any], level: str, detail: str, fix: str, tmp_path: Path
) -> None:
    bad = [f for f in judge_live(run(tmp_path, STACK), graph(**changes)) if f.level not in ("ok", "info")]
    assert [f for f in bad if f.level == level and detail in f.detail and fix in f.fix], bad


def test_nodes_of_the_stack_file_are_looked_for_where_the_stack_is_not_external(tmp_path: Path) -> None:
    [found] = [f for f in judge_live(run(tmp_path, {**STACK, "nodes": ["/nose"]}), graph()) if f.level == "warn"]
    assert "not there: /nose" in found.detail
    assert not [f for f in judge_live(run(tmp_path, {**EXTERNAL, "nodes": ["/nose"]}), graph()) if f.level == "warn"]


def test_of_two_instances_of_ours_only_the_live_inputs_matter(tmp_path: Path) -> None:
    only_lidar = graph(nodes=["/lidar"], subscribers={"/points": [], BOXES: []})
    found = list(judge_live(run(tmp_path, STACK, mode="twin"), only_lidar))
    assert [f.title for f in found] == ["live domain 41", "/points"] and {f.level for f in found} == {"ok"}


@pytest.mark.parametrize(
    ("stack", "seen", "level", "words"),
    [
        (STACK, None, "ok", "a free domain is taken"),
        ({**STACK, "domain": {"source": 60, "followup": 61}}, graph(61, nodes=[]), "ok", "nobody is there"),
        ({**STACK, "domain": {"source": 60, "followup": 61}}, graph(61), "error", "holds nodes: /lidar, /det"),
        (EXTERNAL, graph(61, nodes=["/det"]), "ok", "the stack is there: /det"),
        (EXTERNAL, graph(61, nodes=[]), "error", "not there: /det; nodes: none"),
        (EXTERNAL, graph(61), "error", "does not name: /lidar"),
        (
            EXTERNAL,
            graph(61, nodes=["/det"], subscribers={"/points": [], BOXES: []}, publishers={"/points": [], BOXES: []}),
            *("error", f"nobody subscribes to /points; nobody publishes {BOXES}"),
        ),
        (
            EXTERNAL,
            graph(61, nodes=["/det"], publishers={"/points": [], BOXES: [endpoint("/det", codec.STRING)]}),
            *("error", f"{BOXES} is published as {codec.STRING}, not {MARKERS}"),
        ),
    ],
)
def test_the_domain_of_an_instance_is_looked_at(
    stack: dict[str, Any], seen: Graph | None, level: str, words: str, tmp_path: Path
) -> None:
    found = judge_arm(run(tmp_path, stack), "followup", seen)
    assert found.level == level and words in found.detail, found
    assert bool(found.fix) == (level == "error")


def test_clocks_are_told_where_they_are_echoed() -> None:
    near, far = {"offset_ms": 1.5, "bound_ms": 0.4}, {"offset_ms": -90.0, "bound_ms": 1.0, "warning": "90 ms behind"}
    [unasked] = judge_clocks(None)
    [silent] = judge_clocks(graph(62))
    assert unasked.level == silent.level == "info"
    assert "fix control_domain" in unasked.fix and "ROS_DOMAIN_ID=62 ros2 run mt_nodes clock_echo" in silent.fix
    found = list(judge_clocks(graph(62, clocks={"thor": near, "odin": far})))
    assert [(f.level, f.detail) for f in found] == [
        ("ok", "thor is +1.5 ms ahead of us, give or take 0.4 ms"),
        ("warn", "odin is -90.0 ms ahead of us, give or take 1.0 ms"),
    ]
    assert "chrony" in found[1].fix


def probe(ending: ExitStack, domain: int) -> Any:
    ros = SpinningContext(domain)
    ending.callback(ros.close)
    return ros.add(quiet_node, graph_probe.NAME)


def test_the_probe_sees_who_is_there_and_what_comes_and_leaves_nothing(ending: ExitStack, domains: Any) -> None:
    Live(ending, domains[1])
    fussy = Peer(ending, domains[1], "fussy")
    fussy.listen(codec.POINT_CLOUD, "/points", qos.LATCHED)
    node = probe(ending, domains[1])
    asked = {"topics": ["/points", BOXES], "hear": ["/points"], "given": ["/points"], "lasting_s": 0.3}
    seen: dict[str, Any] = {}

    def complete() -> bool:
        seen.update(graph_probe.look(node, asked))
        return bool(seen["heard"].get("/points") and {"/live_stack", "/fussy"} <= set(seen["nodes"]))

    until(complete)
    assert f"/{graph_probe.NAME}" not in seen["nodes"]
    assert [(p["node"], p["type"]) for p in seen["publishers"]["/points"]] == [("/live_stack", codec.POINT_CLOUD)]
    assert seen["publishers"][BOXES][0]["type"] == MARKERS
    refused = {row["node"]: row["refused"] for row in seen["subscribers"]["/points"]}
    assert set(refused) == {"/live_stack", "/fussy"} and not refused["/live_stack"]
    assert "transient local" in refused["/fussy"].lower()
    mine = fussy.node.get_publisher_names_and_types_by_node(graph_probe.NAME, "/", no_demangle=True)
    assert mine == [], "it publishes nothing"


def test_the_probe_asks_for_clocks(ending: ExitStack, domains: Any) -> None:
    ros = SpinningContext(domains[2])
    ending.callback(ros.close)
    ros.add(ClockEcho, "thor")
    node = probe(ending, domains[2])
    seen: dict[str, Any] = {}

    def complete() -> bool:
        seen.update(graph_probe.look(node, {"topics": [], "clocks": True, "lasting_s": 1.5}))
        return bool(seen["clocks"])

    until(complete)
    assert abs(seen["clocks"]["thor"]["offset_ms"]) <= seen["clocks"]["thor"]["bound_ms"]


def test_the_command_says_what_to_type(
    ending: ExitStack, domains: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Live(ending, domains[1])
    (tmp_path / "stack.yaml").write_text(yaml.safe_dump({**STACK, "inputs": {"lidar": "/clouds"}}))
    config = {"stack": str(tmp_path / "stack.yaml"), "relations": ["noise_outside_roi_10"]}
    (tmp_path / "live.yaml").write_text(yaml.safe_dump(config))
    given = ["--live-config", str(tmp_path / "live.yaml"), "--set", f"live_domain={domains[1]}"]
    code = cli.main(["doctor", "--no-probe", "--json", *given])
    found = {row["title"]: row for row in json.loads(capsys.readouterr().out)}
    assert code == 4 and found["/clouds"]["level"] == "error"
    assert f"ROS_DOMAIN_ID={domains[1]} ros2 topic list" in found["/clouds"]["fix"]
    assert found[BOXES]["level"] == "ok" and found["followup arm"]["level"] == "ok"
    assert cli.main(["doctor", "--no-probe", "--set", "mode=twin"]) == 2
