# SPDX-License-Identifier: Apache-2.0
"""`mt show DIR PAIR` tells of a pair of a replay what was changed, how it ended, and where to look further."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from made_runs import sparse_drive

from mt_nodes.cli.main import main

#: Whoever gets more points than at first sees nothing any more.
MODEL = """
first = None

def detect(points):
    global first
    first = first or len(points)
    return [] if len(points) > first + 500 else [[12.0, 0.0, 0.8, 4.0, 1.8, 1.5, 0.0]]
"""
LOST = "0/1/noise_outside_roi_1000/0"


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("show_pair")
    sparse_drive(place / "street", 2, columns=450)
    (place / "blinded_by_noise.py").write_text(MODEL)
    stack = {"callable": "blinded_by_noise:detect", "points_frame": "base_link"}
    (place / "stack.yaml").write_text(json.dumps(stack))
    words = ["replay", str(place / "street"), "--stack", str(place / "stack.yaml"), "--transport", "inprocess"]
    main([*words, "--mode", "two_pass", "--relations", "noise_outside_roi_1000", "--out", str(place / "out")])
    return place / "out"


def test_a_violated_pair(ran: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(ran), LOST]) == 0
    printed = capsys.readouterr().out.replace("\n", " ")
    assert f"pair {LOST}: VIOLATED" in printed and "lost unknown at (12.0, 0.0) m" in printed
    assert "bundle 1 of" in printed and "stamp 1700000000.100 s" in printed
    assert "change: noise_outside_roi points 1000" in printed and "mode paper" not in printed
    assert "SHA-256" in printed
    for beside in ("identity", "points_permuted"):
        assert f"on the same input 0/1/{beside}/0@noise_outside_roi_1000: HOLDS" in printed
    assert str(ran / "evidence") in printed and f"mt reproduce {ran} {LOST}" in printed


def test_as_json_it_is_what_the_files_say(ran: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(ran), LOST, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    ledger = [json.loads(line) for line in (ran / "ledger.jsonl").read_text().splitlines()]
    assert told["followup"]["sha256"] == next(line["sha256"] for line in ledger if line["pair"] == LOST)
    assert told["verdict"]["outcome"] == "VIOLATED" and Path(told["evidence"]).exists()
    assert set(told["beside"].values()) == {"HOLDS"} and told["relation"]["id"] == "noise_outside_roi_1000"


def test_one_that_holds_has_no_evidence(ran: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(ran), "0/1/identity/0@noise_outside_roi_1000"]) == 0
    printed = capsys.readouterr().out
    assert "HOLDS" in printed and "change: identity" in printed and "evidence" not in printed


@pytest.mark.parametrize("pair", ["0/7/noise_outside_roi_1000/0", "0/1/fog/0"])
def test_one_that_is_not_there(ran: Path, pair: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(ran), pair]) == 2
    assert f"no verdict of pair '{pair}'; pairs.csv lists them" in capsys.readouterr().err
