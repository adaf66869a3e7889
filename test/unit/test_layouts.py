# SPDX-License-Identifier: Apache-2.0
"""Holds the RViz and Foxglove layouts to the topics that the code has."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from made_bundles import made_bundle

from mt_nodes.base.resources import config_dir
from mt_nodes.data.bags.reader import BagReader
from mt_nodes.data.messages import Wire
from mt_nodes.data.stack_topics import DEFAULT_OUTPUTS
from mt_nodes.data.verdict import Pair
from mt_nodes.engine.evidence import write_evidence

ARMS = ("source", "followup")


@pytest.fixture(scope="module")
def live() -> set[str]:
    from mt_nodes.nodes import control, live_view

    return {*control.TOPICS, *live_view.TOPICS}


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Topics of the evidence of a violated pair, all under their default names."""
    path = tmp_path_factory.mktemp("evidence") / "pair.mcap"
    said = DEFAULT_OUTPUTS["detections"]
    wire = Wire(said["topic"], said["type"], 1_000, b"\0\1\0\0\0\0\0\0")
    bundle = made_bundle()
    write_evidence(path, Pair(0, 0, "noise"), bundle, bundle, {arm: [wire] for arm in ARMS})
    with BagReader(path) as bag:
        return set(bag.topics)


@pytest.fixture(scope="module")
def foxglove() -> dict[str, Any]:
    layout: dict[str, Any] = json.loads((config_dir() / "foxglove" / "mt_nodes.json").read_text())
    return layout


def leaves(node: Any) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    else:
        assert node["direction"] in ("row", "column")
        yield from leaves(node["first"])
        yield from leaves(node["second"])


def test_rviz_shows_both_arms_live(live: set[str]) -> None:
    config = yaml.safe_load(Path(config_dir() / "rviz" / "mt_nodes.rviz").read_text())
    manager = config["Visualization Manager"]
    shown = {d["Topic"]["Value"]: d["Class"] for d in manager["Displays"] if "Topic" in d}
    assert set(shown) == {topic for topic in live if topic.startswith(("/mt/source/", "/mt/followup/"))}
    for topic, kind in shown.items():
        assert kind == f"rviz_default_plugins/{'MarkerArray' if topic.endswith('markers') else 'PointCloud2'}"
    assert manager["Global Options"]["Fixed Frame"] == "base_link"


def test_foxglove_shows_the_arms_side_by_side(foxglove: dict[str, Any], live: set[str], evidence: set[str]) -> None:
    assert sorted(leaves(foxglove["layout"])) == sorted(foxglove["configById"])
    row = foxglove["layout"]["first"]
    assert (row["direction"], row["first"], row["second"]) == ("row", "3D!mt_source", "3D!mt_followup")
    for arm in ARMS:
        topics = set(foxglove["configById"][f"3D!mt_{arm}"]["topics"])
        assert topics <= live | evidence
        # Clouds and obstacles, of a run that goes on and of what it left.
        assert len(topics & live) == 2 and len(topics & evidence) == 2
        assert all(topic.startswith(f"/mt/{arm}/") for topic in topics)


def test_foxglove_tells_pair_and_verdict(foxglove: dict[str, Any], live: set[str], evidence: set[str]) -> None:
    shown = {panel["topicPath"] for panel in foxglove["configById"].values() if "topicPath" in panel}
    assert shown == {"/mt/pair", "/mt/verdicts"}
    assert "/mt/pair" in evidence and "/mt/verdicts" in live


def misfits(layout: dict[str, Any]) -> list[str]:
    schema = json.loads((Path(__file__).parents[1] / "foxglove_layout.schema.json").read_text())
    return [error.message for error in Draft202012Validator(schema).iter_errors(layout)]


def test_foxglove_knows_every_panel_and_key(foxglove: dict[str, Any]) -> None:
    assert misfits(foxglove) == []


@pytest.mark.parametrize(
    ("panel", "wrong"),
    [
        ("Plot!mt_rates", {"xAxis": "timestamp"}),
        (
            "Plot!mt_rates",
            {"paths": [{"value": "mt/numbers/decided", "enabled": True, "timestampMethod": "receiveTime"}]},
        ),
        ("DiagnosticSummary!mt_health", {"minLevel": "warn"}),
        ("3D!mt_source", {"followMode": "follow"}),
    ],
)
def test_a_key_or_value_that_foxglove_does_not_know_is_found(
    foxglove: dict[str, Any], panel: str, wrong: dict[str, Any]
) -> None:
    changed = {**foxglove["configById"][panel], **wrong}
    assert misfits({**foxglove, "configById": {**foxglove["configById"], panel: changed}})


def test_foxglove_plots_rates_and_latency_and_shows_health(foxglove: dict[str, Any]) -> None:
    from std_msgs.msg import Float64

    from mt_nodes.nodes import control

    panels = foxglove["configById"]
    plotted = {path["value"] for name, panel in panels.items() if name.startswith("Plot!") for path in panel["paths"]}
    numbers = {topic for topic, (kind, *_) in control.TOPICS.items() if kind is Float64}
    assert {path.removesuffix(".data") for path in plotted} <= numbers
    assert all(path.endswith(".data") for path in plotted)
    for name in ("pairs_per_s", "violated", "source_latency_ms", "followup_latency_ms"):
        assert f"/mt/numbers/{name}.data" in plotted
    assert panels["DiagnosticSummary!mt_health"]["topicToRender"] in control.TOPICS
