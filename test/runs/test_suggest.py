# SPDX-License-Identifier: Apache-2.0
"""`mt suggest`: every relation of the suite that it writes decides something, and nothing is left out silently."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from made_runs import sparse_drive

from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.cli.main import main
from mt_nodes.relations.relation import load_relation
from mt_nodes.runs.relation_choice import members_of
from mt_nodes.runs.suggestion import SuiteSearch, in_turns
from mt_nodes.stacks.stack import load_stack

WORDS = "noise_*,fog_*,object_*,cloud_*,camera"


@pytest.fixture(scope="module")
def drive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sparse_drive(tmp_path_factory.mktemp("suggest") / "drive", 3, columns=450)


def never(place: Path) -> Path:
    """Write a relation that applies nowhere: no scene has so many obstacles within a metre."""
    given = [{"obstacles_within": {"range_m": 1.0, "at_least": 50}}]
    rows: dict[str, Any] = {"id": "never", "kind": "expected", "because": "x", "requires": ["lidar"], "given": given}
    path = place / "never.yaml"
    path.write_text(
        yaml.safe_dump({**rows, "mutate": [{"noise_outside_roi": {"points": 5}}], "check": "obstacles_kept"})
    )
    return path


def row(decided: int, violated: int = 0, background: int = 0, why: str = "nothing ahead") -> dict[str, Any]:
    undecided = {} if decided else {"undecided": [{"outcome": "NOT_APPLICABLE", "reason": why, "pairs": 6}]}
    outcomes = {"HOLDS": decided - violated, "VIOLATED": violated, "NOT_APPLICABLE": 6 - decided}
    arms = {"control": {"violated": background}, "sham": {"violated": 0}}
    return {"decided": decided, "violated": violated, "outcomes": outcomes, "why": "", **arms, **undecided}


def summary(rows: dict[str, dict[str, Any]], **trouble: Any) -> dict[str, Any]:
    return {"relations": rows, "usage": None, "infrastructure": None, "interrupted": False, **trouble}


def test_the_suite_that_is_written_decides_something_with_each_relation(
    drive: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    suite = tmp_path / "suite.yaml"
    words = ["suggest", str(drive), "--relations", WORDS.removesuffix(",camera"), "--frames", "2", "--most", "5"]
    assert main([*words, "--out", str(suite)]) == 0
    printed = capsys.readouterr().out
    names = yaml.safe_load(suite.read_text())["relations"]
    assert len(names) == 5 and all(name in printed for name in names)
    assert f"mt replay {drive} --stack reference_detector --relations {suite}" in printed
    everything = {name for word in WORDS.split(",")[:-1] for name in members_of(word, False) or ()}
    text = suite.read_text()
    assert all(name in text for name in everything), "what is left out is in the file, too"
    replay = ["replay", str(drive), "--transport", "inprocess", "--limit", "2", "--out", str(tmp_path / "run")]
    assert main([*replay, "--relations", str(suite), "--json"]) == 3, "two frames decide no relation"
    relations = json.loads(capsys.readouterr().out)["relations"]
    assert set(relations) == set(names) and all(r["decided"] for r in relations.values())


def test_nothing_that_decides_is_no_suite_and_never_green(
    drive: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    suite, words = tmp_path / "suite.yaml", ["--relations", str(never(tmp_path)), "--json"]
    assert main(["suggest", str(drive), "--frames", "1", *words, "--out", str(suite)]) == 3
    told = json.loads(capsys.readouterr().out)
    assert told["relations"] == [] and "decides nothing in the frames tried" in told["left_out"]["never"]
    assert not suite.exists()
    suite.write_text("relations: [never.yaml]")
    replay = ["replay", str(drive), "--transport", "inprocess", "--limit", "1", "--out", str(tmp_path / "run")]
    assert main([*replay, "--relations", str(suite)]) == 3
    assert "NOT_APPLICABLE" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--relations", "camera"], "of which none can be judged here"),
        (
            ["--relations", "brightness_lowered_boxes"],
            "requires a camera; stack 'reference_detector'",
        ),
        (["--out", "suite.txt"], "expected a file that ends in .yaml"),
        (["--most", "16"], "--most: got 16, expected 1 to 15"),
        (["--stack", "reference_camera"], "camera"),
    ],
)
def test_mistakes(drive: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["suggest", str(drive), *words]) == 2
    assert said in capsys.readouterr().err


def test_a_file_that_it_did_not_write_is_kept(drive: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text("id: mine\n")
    assert main(["suggest", str(drive), "--out", str(mine)]) == 2
    assert "is there already" in capsys.readouterr().err and mine.read_text() == "id: mine\n"


def test_families_take_turns_and_what_a_lacking_answer_needs_comes_last() -> None:
    stack = load_stack("reference_camera")
    tried: list[list[str]] = []

    def play(names: Any) -> dict[str, Any]:
        tried.append(list(names))
        lanes = {name for name in names if name.endswith("_lane")}
        return summary({name: row(0 if name in lanes else 6) for name in names})

    found = SuiteSearch(stack, ("all",), 12).run(play)
    assert len(found.relations) == 12 and not [r for r in found.relations if r.id.endswith("_lane")]
    assert len({r.family for r in found.relations[:6]}) == 6
    lanes = [[name.endswith("_lane") for name in batch] for batch in tried]
    assert (any(lanes[0]) and len(lanes) == 1) or not any(lanes[1]), "no lane was reported: others come first"
    kept = {r.id for r in found.relations}
    assert kept | set(found.left_out) == set(members_of("all", False) or ()) and not kept & set(found.left_out)


def test_a_stack_that_flickers_and_violations_are_told_and_trouble_ends_it() -> None:
    stack, words = load_stack("reference_detector"), ("noise_outside_roi_10", "noise_outside_roi_100")
    rows = {words[0]: row(6, violated=5), words[1]: row(6, background=2)}
    found = SuiteSearch(stack, words, 12).run(lambda names: summary({name: rows[name] for name in names}))
    why = {one.id: one.why for one in found.relations}
    assert why[words[0]] == "noise: decided in 6 of 6 frames tried, violated in 5"
    assert "control or sham violate the check of noise_outside_roi_100 in 2 pairs" in found.notes[0]
    assert f"  - {words[0]}  # noise: decided" in found.as_yaml("mt suggest x")
    for trouble, error in (("infrastructure", InfrastructureError), ("usage", UsageError)):
        with pytest.raises(error, match="it broke"):
            SuiteSearch(stack, words, 12).run(lambda names, t=trouble: summary(rows, **{t: "it broke"}))
    with pytest.raises(KeyboardInterrupt):
        SuiteSearch(stack, words, 12).run(lambda names: summary(rows, interrupted=True))


def test_of_a_family_different_mutations_and_necessary_relations_come_first() -> None:
    names = [name for word in ("noise_*", "weather") for name in members_of(word, False) or ()]
    relations = [load_relation(name) for name in names if not load_relation(name).loop]
    order = [name for name, family in in_turns(relations) if family == "noise"]
    assert order[0] == "noise_outside_roi_1000" and order.index("noise_inside_roi_20") < order.index(
        "noise_outside_roi_10"
    )
