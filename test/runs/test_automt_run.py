# SPDX-License-Identifier: Apache-2.0
"""``mt experiment automt``: a whole run on a short bag, into stacks of which it is known what they do, and going on."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from automt_toys import FACTS, short_bag, toy
from model_server import answers, serving
from test_automt_asked import answer

from mt_nodes.base.jsonl import read_result, write_result
from mt_nodes.cli.main import main
from mt_nodes.runs.automt.automt_figures import valid_by_manipulation

FRAMES, STACKS, METHODS = 4, ("obeys", "ignores"), ("automt", "manual", "without_rules")
Told = dict[str, Any]


def invented(asked: str) -> str:
    """What the model says: something of the ontology."""
    return answer(manipulation="a cyclist") if "Ego-vehicle" in asked else "nothing"


@pytest.fixture(scope="module")
def arguments(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    place = tmp_path_factory.mktemp("automt")
    bag = short_bag(place / "bag", FRAMES)
    stacks = (toy(place, "obeys", slower=3.0), toy(place, "ignores", base=10.4))
    words = ["experiment", "automt", str(bag), "--frames", "2", "--rounds", "1", "--region", "germany"]
    words += [word for stack in stacks for word in ("--stack", stack)]
    return words + [word for fact in FACTS for word in ("--fact", fact)]


@pytest.fixture(scope="module")
def finished(arguments: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nobody disturbed, with a model on this machine that is gone afterwards."""
    out = tmp_path_factory.mktemp("run") / "out"
    with serving(answers(invented)) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("MT_LLM_URL", server.url)
        assert main([*arguments, "--methods", ",".join(METHODS), "--model", "m", "--out", str(out)]) == 3
    return out


def told(out: Path) -> Told:
    return read_result(out / "automt.json")


def outcomes(table: Told, behaviour: str) -> dict[str, set[str]]:
    """How each stack ended in all cases that ask for a behaviour."""
    rows = [one for one in table["judged"] if one["relation"] and one["statement"]["behaviour"] == behaviour]
    return {
        stack: {one["judgements"][stack]["outcome"] for one in rows} - {"NOT_APPLICABLE"} for stack in table["stacks"]
    }


def test_stacks_are_found_to_do_what_they_do(finished: Path) -> None:
    table = told(finished)
    assert tuple(table["stacks"]) == STACKS and table["sources"] == 2 and table["bound"]["kind"] == "std"
    found = outcomes(table, "slow_down")
    assert found == {"obeys": {"HOLDS"}, "ignores": {"VIOLATED"}}
    region = table["regions"]["germany"]
    assert set(region["validation"]) == set(METHODS) == set(region["violation"])
    for stack in STACKS:
        assert table["identity"][stack]["per_case"] == {**table["identity"][stack]["per_case"], "hits": 0, "trials": 2}
    assert region["violation"]["without_rules"]["obeys"]["per_valid"]["share"] == 0.0
    assert region["violation"]["without_rules"]["ignores"]["per_valid"]["share"] == 1.0
    (usage,) = table["usage"]
    assert (usage["task"], usage["model"]) == ("proposing relations", "m") and usage["asked"] >= 1


def test_too_few_cases_decide_nothing_and_the_exit_code_says_so(finished: Path) -> None:
    table = told(finished)
    assert {row["outcome"] for row in table["standing"].values()} == {"INCONCLUSIVE"} and table["exit_code"] == 3


def test_every_case_says_what_it_was_given_why_and_whether_it_was_a_fair_test(finished: Path) -> None:
    table = told(finished)
    for one in table["judged"]:
        assert one["why"] and set(one["validation"]) == {"valid", "scenario", "manipulation", "logical"}
        assert all(one["validation"][factor]["source"] for factor in ("scenario", "manipulation", "logical"))
    cyclists = [one for one in table["judged"] if one["method"] == "without_rules"]
    assert "where it" in cyclists[0]["validation"]["manipulation"]["source"]  # a second look found it there


def test_files_hold_what_the_tables_hold(finished: Path) -> None:
    table = told(finished)
    with (finished / "automt_violation.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["method"], row["stack"]) for row in rows] == [(m, s) for m in METHODS for s in STACKS]
    shares = table["regions"]["germany"]["violation"]
    assert [float(row["share"]) for row in rows] == [shares[m][s]["per_case"]["share"] for m in METHODS for s in STACKS]
    with (finished / "automt_validation.csv").open() as file:
        overall = [row for row in csv.DictReader(file) if row["factor"] == "overall"]
    assert [float(row["paper"]) for row in overall] == pytest.approx([0.4074, 0.5041, 0.3613])
    with (finished / "automt_cases.csv").open() as file:
        assert len(list(csv.DictReader(file))) == sum(max(1, len(one["judgements"])) for one in table["judged"])
    for name in ("automt.png", "automt_manipulations.png"):
        assert (finished / name).read_bytes().startswith(b"\x89PNG")
    valid = valid_by_manipulation(table)
    judged = [one for one in table["judged"] if one["validation"]["valid"] and one["statement"]]
    assert sum(count.total() for count in valid.values()) == len(judged) > 0


def test_each_stack_has_a_replay_of_its_own_over_the_same_plan(finished: Path) -> None:
    plans = {(finished / stack / "cases.yaml").read_text() for stack in STACKS}
    assert len(plans) == 1
    hashes = [
        {line["pair"]: line["sha256"] for line in map(json.loads, (finished / stack / "ledger.jsonl").open())}
        for stack in STACKS
    ]
    assert hashes[0] and hashes[0] == hashes[1]


def comparable(out: Path) -> Mapping[str, Any]:
    """What must be the same however often a run was interrupted."""
    table = told(out)
    return {key: value for key, value in table.items() if key != "usage"}


def test_a_killed_run_is_gone_on_with_to_the_same_end_without_asking_again(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Killed in the second stack's replay; the model is gone by now."""
    out = tmp_path / "out"
    shutil.copytree(finished, out, ignore=shutil.ignore_patterns("automt*", "report.html"))
    (out / "ignores" / "summary.json").unlink()
    journal = out / "ignores" / "result.jsonl"
    journal.write_bytes(journal.read_bytes()[:-700])
    assert main(["experiment", "automt", "--resume", str(out)]) == 3
    assert comparable(out) == comparable(finished)
    printed = capsys.readouterr().out
    assert "table VIII" in printed and "figures of the paper: of its data" in printed
    assert "obeys: INCONCLUSIVE" in printed and "exit code 3" in printed
    assert main(["show", str(out)]) == 0
    shown = capsys.readouterr().out.splitlines()
    again = [line for line in printed.splitlines() if not line.startswith("results in ")]
    assert [line for line in shown if not line.startswith("results in ")][-len(again) :] == again
    assert any(f"mt show {out / 'obeys'}" in line for line in shown)


def test_a_run_that_was_killed_while_it_asked_asks_for_the_rest_only(finished: Path, tmp_path: Path) -> None:
    """The server is gone, so every answer must be known."""
    out = tmp_path / "out"
    shutil.copytree(finished, out, ignore=shutil.ignore_patterns(*STACKS, "automt*", "proposals.json", "cases.yaml"))
    from mt_nodes.runs.automt.automt_run import AutomtRun
    from mt_nodes.runs.automt.proposal_methods import propose

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MT_LLM_URL", "http://127.0.0.1:9/v1")
        found = propose(AutomtRun.resume(out))
    known = json.loads((finished / "proposals.json").read_text())["proposals"]
    assert json.loads(json.dumps([one.as_plain() for one in found.proposals])) == known
    assert [usage["asked"] for usage in found.usage] == [0]


def test_who_is_interrupted_is_told_how_to_go_on(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A replay that was interrupted has no summary, or one that says so."""
    out = tmp_path / "out"
    shutil.copytree(finished, out, ignore=shutil.ignore_patterns("obeys", "automt*"))
    monkeypatch.setattr("mt_nodes.cli.automt._replay", lambda replay, show: None)
    assert main(["experiment", "automt", "--resume", str(out)]) == 130
    assert f"mt experiment automt --resume {out}" in capsys.readouterr().out.replace("\n", "")
    assert not (out / "automt.json").exists()


def test_where_no_stack_came_to_its_end_it_is_said_how_they_broke_down(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def dies(replay: Any, show: Any) -> None:
        write_result(replay.out / "summary.json", {"interrupted": False, "infrastructure": "it died"})

    out = tmp_path / "out"
    shutil.copytree(finished, out, ignore=shutil.ignore_patterns(*STACKS, "automt*"))
    monkeypatch.setattr("mt_nodes.cli.automt._replay", dies)
    assert main(["experiment", "automt", "--resume", str(out)]) == 4
    assert "stack 'obeys': it died; stack 'ignores': it died" in capsys.readouterr().err


def test_methods_that_need_a_model_are_not_run_without_one_and_it_says_so(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert main([*arguments, "--methods", "with_rules", "--out", str(out)]) == 3
    assert "no language model; name one by --model" in capsys.readouterr().err
    assert json.loads((out / "proposals.json").read_text())["not_run"]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--stack", "reference_detector"], "no control: only speed and steering are judged"),
        (["--stack", "reference_planner"], "which only a simulated world has"),
        (["--stack", "nobody"], "nobody"),
        (["--stack", "reference_camera", "--model", "m"], "MT_LLM_URL is not set"),
        (["--stack", "reference_camera", "--fact", "roads=moon"], "no road 'moon'"),
        (["--stack", "reference_camera", "--frames", "50"], "less than one case"),
        ([], "--stack: got none"),
    ],
)
def test_what_cannot_run_is_said_in_one_line(
    arguments: list[str], tmp_path: Path, words: list[str], why: str, monkeypatch: Any, capsys: Any
) -> None:
    monkeypatch.delenv("MT_LLM_URL", raising=False)
    bag = arguments[2]
    assert main(["experiment", "automt", bag, *words, "--out", str(tmp_path / "out")]) == 2
    assert why in capsys.readouterr().err
