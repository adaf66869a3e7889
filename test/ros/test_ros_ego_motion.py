# SPDX-License-Identifier: Apache-2.0
"""Objects fixed in the world, over topics: the same follow-ups as in process, by the odometry of the recording."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from made_runs import sparse_drive

import mt_nodes as mt
from mt_nodes.base.jsonl import read_result

RELATION = "object_added_person"
BOXES = [[10.0, 0.0, 0.8, 4.0, 2.0, 1.6, 0.0]]
OPTIONS: dict[str, Any] = {"settings": {"points_frame": "base_link", "stateless": True}, "report": False}


def followups(directory: Path) -> list[tuple[str, str]]:
    rows = map(json.loads, (directory / "ledger.jsonl").read_text().splitlines())
    return sorted((row["pair"], row["sha256"]) for row in rows)


@pytest.mark.long  # in process: test_ego_motion_run.py; topics and process alike: test_replay.py
def test_a_run_over_topics_places_objects_as_one_in_process(tmp_path: Path) -> None:
    bag = sparse_drive(tmp_path / "bag", 3)
    runs = [
        mt.replay(bag, lambda points: BOXES, RELATION, transport=how, out=tmp_path / how, **OPTIONS)
        for how in ("ros", "inprocess")
    ]
    over_topics, called = (followups(run.directory) for run in runs)
    assert over_topics == called and any(RELATION in pair for pair, _ in called)
    summaries = [read_result(run.directory / "summary.json") for run in runs]
    assert [summary["ego_motion"] for summary in summaries] == [["odometry /odom"]] * 2
