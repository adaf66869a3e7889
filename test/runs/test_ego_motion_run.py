# SPDX-License-Identifier: Apache-2.0
"""A replay with objects fixed in the world: where its motion comes from, what it says, and without a source."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from made_runs import in_process

import mt_nodes as mt
from mt_nodes.base.jsonl import read_result
from mt_nodes.data.bags.bundles import write_bundles
from mt_nodes.data.verdict import Pair
from mt_nodes.engine.journal import read_journal
from mt_nodes.world.scene.drive import generate_drive
from mt_nodes.world.scene.lidar import hdl_64e

RELATION = "object_added_person"


def drive(path: Path, odometry: bool) -> Path:
    bundles = generate_drive(4, lidar=replace(hdl_64e(), azimuths=900))
    write_bundles(path, bundles if odometry else (replace(bundle, wires=()) for bundle in bundles))
    return path


def outcomes(out: Path) -> dict[int, tuple[str, str]]:
    lines = [line for line in read_journal(out / "result.jsonl") if line.get("type") == "verdict"]
    pairs = [(Pair.parse(line["pair"]), line) for line in lines]
    return {
        pair.bundle: (line["outcome"], line["reason"]) for pair, line in pairs if str(pair).endswith(f"/{RELATION}/0")
    }


def test_a_run_says_where_the_motion_comes_from_and_the_object_stays(tmp_path: Path) -> None:
    run = in_process(drive(tmp_path / "drive", odometry=True), tmp_path / "out", RELATION)
    summary = read_result(run.out / "summary.json")
    assert summary["ego_motion"] == ["odometry /odom"]
    rows = [json.loads(line) for line in (run.out / "ledger.jsonl").read_text().splitlines()]
    centres = [row["effects"]["added"][0]["center_m"] for row in rows if row["relation"] == RELATION]
    assert len(centres) >= 3
    steps = [a[0] - b[0] for a, b in pairwise(centres)]
    # The ground under it tilts it by a little, so its centre moves by millimetres.
    assert steps == pytest.approx([0.8] * len(steps), abs=0.005)


def test_an_object_that_nothing_fixes_in_the_world_is_not_applicable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mt_nodes.data.ego.lidar_odometry.installed", lambda: False)
    run = in_process(drive(tmp_path / "drive", odometry=False), tmp_path / "out", RELATION)
    found = outcomes(run.out)
    later = [outcome for bundle, (outcome, _) in found.items() if bundle > min(found)]
    assert later == ["NOT_APPLICABLE"] * 3
    assert "kiss_icp is not installed: pip install 'mt_nodes[motion]'" in found[max(found)][1]


def test_a_frame_out_of_the_middle_has_the_object_at_its_place_in_the_world(tmp_path: Path) -> None:
    frames = list(mt.frames(drive(tmp_path / "drive", odometry=True)))
    later = mt.mutate(frames[3], "object_added", seed=5)
    first = mt.mutate(frames[0], "object_added", seed=5)
    x = [frame.effects.added[0].center_m[0] for frame in (first, later)]
    assert x[0] - x[1] == pytest.approx(2.4, abs=0.01)
