# SPDX-License-Identifier: Apache-2.0
"""A run of joint changes: what a sensor does not show is recorded with its reason, and not judged where it matters."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from made_runs import in_process, no_pages

from mt_nodes.data.bags.bundles import write_bundles
from mt_nodes.engine.journal import read_journal
from mt_nodes.engine.ledger import read_ledger
from mt_nodes.world.scene.camera_rendering import CameraSensor
from mt_nodes.world.scene.drive import generate_drive
from mt_nodes.world.scene.lidar import hdl_64e

FRAMES = 3
CHECK = {"camera_and_lidar_agree": {}}
#: The sun behind the ego, over the open road; rays of the LiDAR look there, the camera does not.
SUN = [{"sun_glare": {"azimuth_rad": 3.14159, "elevation_rad": 0.1, "background": 3000.0}}]
SPRAY = [{"spray": {"water_mm": 3.0, "speed_mps": 25.0}}]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One run of four relations into the stack with both sensors, in this process."""
    place = tmp_path_factory.mktemp("joint")
    lidar = replace(hdl_64e(), azimuths=900)
    write_bundles(place / "drive", generate_drive(FRAMES, 2, lidar=lidar, camera=CameraSensor(320, 240)))
    files = []
    for name, requires, mutate in (
        ("sun_for_cameras", ["camera"], SUN),
        ("sun_for_lidars", ["lidar"], SUN),
        ("sun_for_either", ["lidar or camera"], SUN),
        ("spray_for_both", ["lidar", "camera"], SPRAY),
    ):
        head = {"id": name, "kind": "expected", "because": "x", "requires": requires, "mutate": mutate, "check": CHECK}
        (place / f"{name}.yaml").write_text(json.dumps(head))
        files.append(str(place / f"{name}.yaml"))
    with no_pages():
        in_process(place / "drive", place / "out", *files, stack="reference_both", mode="two_pass")
    return place / "out"


def outcomes(results: Path, relation: str) -> list[tuple[str, str]]:
    lines = read_journal(results / "result.jsonl")
    return [
        (line["outcome"], line.get("reason", ""))
        for line in lines
        if line["type"] == "verdict" and line["relation"] == relation
    ]


def test_a_relation_about_the_camera_is_not_judged_by_a_sun_behind_it(results: Path) -> None:
    found = outcomes(results, "sun_for_cameras")
    assert len(found) == FRAMES
    for outcome, reason in found:
        assert outcome == "NOT_APPLICABLE" and "no camera shows the change" in reason
        assert "degrees off the camera's axis" in reason


@pytest.mark.parametrize("relation", ["sun_for_lidars", "sun_for_either", "spray_for_both"])
def test_other_relations_are_judged_by_what_changed(results: Path, relation: str) -> None:
    reasons = [reason for _, reason in outcomes(results, relation)]
    assert len(reasons) == FRAMES and not any("shows the change" in reason for reason in reasons)
    lines = [line for line in read_ledger(results) if line["relation"] == relation]
    assert len(lines) == FRAMES
    for line in lines:
        unchanged = line["effects"].get("unchanged", {})
        assert list(unchanged) == ([] if relation == "spray_for_both" else ["/sensing/camera/image"])
