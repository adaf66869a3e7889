# SPDX-License-Identifier: Apache-2.0
"""What intensities are taken for is said with the outcome of a run whose changes used them, and only there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from made_runs import no_pages, sparse_drive

from mt_nodes.base.jsonl import read_result
from mt_nodes.cli.main import main
from mt_nodes.engine.used_intensities import FILE, read_used_intensities

TOPIC = "/sensing/lidar/points"


def replayed(tmp_path: Path, relation: str, *more: str) -> Path:
    bag, out = sparse_drive(tmp_path / "drive", 2), tmp_path / "out"
    with no_pages():
        main(["replay", str(bag), "--relations", relation, "--transport", "inprocess", "--out", str(out), *more])
    return out


def test_a_change_that_uses_intensities_has_it_said_with_the_outcome(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = replayed(tmp_path, "fog_monotone")
    said = capsys.readouterr()
    assert f"intensities of {TOPIC}: intensity: hdl_64e" in said.out and "intensities of" not in said.err
    known = read_result(out / "run.json")["intensities"]
    assert read_used_intensities(out) == known and list(known) == [TOPIC]


def test_a_change_that_uses_none_says_nothing_of_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = replayed(tmp_path, "noise_outside_roi_10")
    said = capsys.readouterr()
    assert "intensities of" not in said.out + said.err and not (out / FILE).exists()
    assert read_result(out / "summary.json")["offered"] > 0


def test_what_json_prints_is_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = replayed(tmp_path, "fog_monotone", "--json")
    assert json.loads(capsys.readouterr().out) == read_result(out / "summary.json")
    assert (out / FILE).exists()
