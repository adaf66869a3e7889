# SPDX-License-Identifier: Apache-2.0
"""``mt_nodes.replay`` over topics: a closure goes the same way as the callable of a stack file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from recordings import drive, write_bag

import mt_nodes as mt
from mt_nodes.engine.journal import read_journal

NOISE = "noise_outside_roi_1000"
BOXES = [[10.0, 0.0, 0.8, 4.0, 2.0, 1.6, 0.0], [20.0, 3.0, 0.8, 4.0, 2.0, 1.6, 0.0]]
OPTIONS: dict[str, Any] = {"settings": {"points_frame": "base_link"}, "limit": 2, "report": False}


def verdicts(directory: Path) -> list[dict[str, Any]]:
    return [line for line in read_journal(directory / "result.jsonl") if line["type"] == "verdict"]


def test_a_closure_is_judged_over_topics_as_in_process(tmp_path: Path) -> None:
    bag = write_bag(tmp_path / "bag", [row for row in drive(2) if "camera" not in row.topic])
    most = 50  # makes it a closure

    def detect(points: Any) -> Any:
        return BOXES if len(points) <= most else BOXES[:1]

    counts: list[tuple[int, int, int]] = []
    ran = mt.replay(
        bag, detect, NOISE, transport="ros", out=tmp_path / "ros", progress=lambda *n: counts.append(n), **OPTIONS
    )
    called = mt.replay(bag, detect, NOISE, out=tmp_path / "here", **OPTIONS)
    assert ran.outcome == called.outcome == "FAIL" and ran.verdicts[NOISE].violated == 2
    assert sorted(map(str, verdicts(ran.directory))) == sorted(map(str, verdicts(called.directory)))
    assert counts[-1] == (6, 6, 2)


def test_a_lambda_that_raises_over_topics_is_told(tmp_path: Path) -> None:
    bag = write_bag(tmp_path / "bag", [row for row in drive(1) if "camera" not in row.topic])
    with pytest.raises(mt.StackError, match="division by zero"):
        mt.replay(bag, lambda points: 1 / 0, NOISE, transport="ros", out=tmp_path / "ros", **OPTIONS)
