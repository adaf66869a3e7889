# SPDX-License-Identifier: Apache-2.0
"""`mt show DIR`: a run's outcome again with what to type next; a directory without results is told what it is."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from made_runs import no_pages, sparse_drive

from mt_nodes.base.jsonl import read_result
from mt_nodes.cli.main import main

FAULTY = ("--transport", "inprocess", "--fault", "grid_index_wrap", "--limit", "6")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a drive, and a run that fails on it and leaves relations out."""
    place = tmp_path_factory.mktemp("show_results")
    sparse_drive(place / "drive", 6, columns=450)
    (place / "suite.yaml").write_text("relations: [paper, '*_keeps_current']")
    words = ["replay", str(place / "drive"), *FAULTY, "--relations", "paper,noise_*", "--out", str(place / "run")]
    with no_pages():
        assert main(words) == 1
    return place


def test_the_outcome_is_shown_again_with_the_next_commands_which_work(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(place)
    assert main(["show", "run"]) == 0
    shown = capsys.readouterr().out
    assert "exit code 1" in shown and re.search(r"^FAIL: With .* noise points", shown, re.MULTILINE)
    commands = [shlex.split(line, comments=True) for line in shown.splitlines() if line.startswith("  mt ")]
    assert [words[1] for words in commands] == ["show", "reproduce", "shrink"]
    assert all(words[2] == "run" for words in commands), "as short as it can be from here"
    assert main(commands[0][1:]) == 0
    assert f"pair {commands[0][3]}: VIOLATED" in capsys.readouterr().out
    assert main(commands[1][1:]) == 0 and "the judgement is the same" in capsys.readouterr().out


def test_what_was_left_out_is_in_the_record_and_told(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    left_out = read_result(place / "run" / "run.json")["left_out"]
    needy = {"noise_beside_lane_keeps_current", "noise_keeps_tracks_100"}
    needy |= {"noise_outside_roi_100_track_ids", "noise_outside_roi_100_ids_over_time"}
    needy |= {f"noise_outside_roi_1000_{output}" for output in ("free", "occupied", "predictions", "tracks")}
    assert set(left_out) == needy
    assert main(["show", str(place / "run")]) == 0
    assert f"{len(needy)} relations left out that cannot judge this stack" in capsys.readouterr().out
    words = ["replay", str(place / "drive"), *FAULTY, "--out", str(tmp_path / "other"), "--json", "--limit", "1"]
    with no_pages():
        assert main([*words, "--relations", str(place / "suite.yaml")]) == 2, "no pattern of it may stand for nothing"
    assert "'*_keeps_current' stands for" in capsys.readouterr().err
    with no_pages():
        main([*words, "--relations", "noise_*"])
    told = capsys.readouterr()
    assert "noise_keeps_tracks_100" in told.err and json.loads(told.out)["exit_code"] in (1, 3)


def test_json_is_the_summary_and_a_run_in_progress_has_none(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", str(place / "run"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == read_result(place / "run" / "summary.json")
    cut = tmp_path / "cut"
    cut.mkdir()
    for name in ("run.json", "result.jsonl"):
        (cut / name).write_bytes((place / "run" / name).read_bytes())
    assert main(["show", str(cut)]) == 0
    shown = capsys.readouterr().out
    assert "running" in shown and f"mt replay --resume {cut}" in shown
    assert main(["show", str(cut), "--json"]) == 2 and "has not ended" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("mt_results/latest", "no directory mt_results/latest; `mt replay BAG` or `mt demo` makes results"),
        ("./nothing", "mt show: no directory nothing; results are in run"),
        ("drive", "drive is a bag, no results of a run: `mt suggest drive`"),
        ("drive 0/0/x/0", "drive is a bag, no results of a run"),
        (".", "mt show: . has no results of a run: it holds drive, run, suite.yaml; results are in run"),
        ("./suite.yaml", "suite.yaml is a file, expected a results directory"),
        ("run 0/0/nothing/0", "run: no verdict of pair '0/0/nothing/0'"),
        ("none 0/0/x/0", "no directory none; results are in run"),
        ("noise_outside_ro", "did you mean 'noise_outside_roi'?"),
    ],
)
def test_what_is_no_run_is_told_what_it_is(
    place: Path, words: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(place)
    assert main(["show", *words.split()]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1 and "mt: mt" not in error and "Traceback" not in error
