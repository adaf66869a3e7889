# SPDX-License-Identifier: Apache-2.0
"""Two runs against each other: relations, pairs, tests and exit codes."""

from __future__ import annotations

import dataclasses
import json
from math import comb
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_runs import FOG, NOISE, made_run, verdicts

from mt_nodes.cli.main import main
from mt_nodes.report.comparison import ComparedRun, Step, compare, exit_of


def compared(before: Path, after: Path) -> dict[str, Any]:
    return compare(ComparedRun.load(before), ComparedRun.load(after))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    tmp_path = tmp_path_factory.mktemp("runs")
    clean, fog = verdicts("noise"), verdicts("fog")
    return {
        "clean": made_run(tmp_path / "clean", [*clean, *fog], NOISE, FOG),
        "noisy": made_run(tmp_path / "noisy", [*verdicts("noise", range(3, 11)), *fog], NOISE, FOG),
        "worse": made_run(tmp_path / "worse", [*verdicts("noise", range(5, 12)), *verdicts("fog", [4])], NOISE, FOG),
        "short": made_run(tmp_path / "short", [*verdicts("noise", [], 3), *verdicts("fog", [], 3)], NOISE, FOG),
        "other": made_run(tmp_path / "other", verdicts("noise", range(8), stamp_ns=10**18), NOISE),
        "fog": made_run(tmp_path / "fog_only", fog, FOG),
        "missing": made_run(tmp_path / "missing", fog, FOG),
    }


def pair(bundle: int, relation: str = "noise") -> str:
    return f"0/{bundle}/{relation}/0"


@pytest.mark.parametrize(
    ("before", "after", "noise", "code"),
    [
        ("clean", "clean", "as before", 0),
        ("clean", "noisy", "newly failing", 1),
        ("noisy", "clean", "newly passing", 0),
        ("noisy", "noisy", "still failing", 0),
        ("noisy", "short", "no longer decided", 3),
        ("clean", "short", "no longer decided", 3),
        ("short", "short", "as before", 3),
        ("short", "clean", "changed", 0),
        ("noisy", "missing", "", 3),
        ("missing", "noisy", "", 1),
        ("missing", "clean", "", 0),
        ("noisy", "worse", "still failing", 1),
    ],
)
def test_what_became_of_a_relation(runs: dict[str, Path], before: str, after: str, noise: str, code: int) -> None:
    found = compared(runs[before], runs[after])
    assert found["relations"].get("noise", {"change": ""})["change"] == noise
    assert found["exit_code"] == code == main(["compare", str(runs[before]), str(runs[after])])


def test_what_was_decided_and_is_not_any_more_is_told(runs: dict[str, Path]) -> None:
    told = compared(runs["clean"], runs["short"])["exit_why"]
    assert told.startswith("no longer decided: noise (PASS before, INCONCLUSIVE after), fog (")
    told = compared(runs["clean"], runs["missing"])["exit_why"]
    assert told == "no longer decided: noise (PASS before, missing after)"
    assert compared(runs["short"], runs["short"])["exit_why"] == "no relation is decided in the run after"


@pytest.mark.parametrize("trouble", [{"infrastructure": "the stack died"}, {"interrupted": True}, {"usage": "no"}])
def test_a_run_that_did_not_come_to_its_end_shows_nothing(
    tmp_path: Path, runs: dict[str, Path], trouble: dict[str, Any]
) -> None:
    rows = [*verdicts("noise"), *verdicts("fog")]
    broken = made_run(tmp_path / "broken", rows, NOISE, FOG, **trouble)
    found = compared(runs["clean"], broken)
    assert found["exit_code"] == 3 and "is incomplete" in found["exit_why"]
    assert compared(broken, runs["clean"])["exit_code"] == 0


@pytest.mark.parametrize("stamp_ns", [10**17, 10**18], ids=["the same pairs", "other pairs"])
def test_what_is_violated_more_often_though_not_decided_is_not_green(tmp_path: Path, stamp_ns: int) -> None:
    few = dataclasses.replace(NOISE, kind="expected", min_decided=40)
    before = made_run(tmp_path / "before", [*verdicts("noise"), *verdicts("fog")], few, FOG)
    worse = verdicts("noise", range(15), stamp_ns=stamp_ns)
    after = made_run(tmp_path / "after", [*worse, *verdicts("fog")], few, FOG)
    found = compared(before, after)
    assert found["relations"]["noise"]["after"]["outcome"] == "INCONCLUSIVE"
    assert (found["exit_code"], found["exit_why"]) == (3, "not decided, and violated more often than before: noise")
    assert compared(after, before)["exit_code"] == 0


OUTCOMES = (None, "PASS", "FAIL", "INCONCLUSIVE", "UNSTABLE")


@given(st.lists(st.builds(Step, st.just("r"), *2 * [st.sampled_from(OUTCOMES)], st.booleans()), max_size=5))
def test_green_is_only_what_is_decided_and_has_lost_nothing(steps: list[Step]) -> None:
    code, _ = exit_of(steps)
    failing = [s for s in steps if s.now == "FAIL" and s.was != "FAIL" and not s.waived]
    lost = [s for s in steps if s.was in ("PASS", "FAIL") and s.now not in ("PASS", "FAIL")]
    decided = [s for s in steps if s.now in ("PASS", "FAIL")]
    assert code == (1 if failing else 3 if lost or not decided else 0)
    assert code == 1 or exit_of(steps, "unsaid")[0] == 3


def test_pairs_are_compared_one_by_one(runs: dict[str, Path]) -> None:
    noise = compared(runs["noisy"], runs["worse"])["relations"]["noise"]
    assert noise["pairs"]["newly_failing"] == [pair(11)]
    assert noise["pairs"]["newly_passing"] == [pair(3), pair(4)]
    assert noise["pairs"]["still_failing"] == [pair(b) for b in range(5, 11)]
    assert (noise["pairs"]["decided_in_both"], noise["pairs"]["decided_in_one"]) == (30, 0)
    assert noise["test"] == "exact McNemar test over 30 pairs" and noise["p"] == 1.0


def test_mcnemar_is_exact_and_corrected(runs: dict[str, Path]) -> None:
    rows = compared(runs["clean"], runs["noisy"])["relations"]
    # Eight discordant pairs, all one way: 2 * 2**-8; Holm over two relations doubles it.
    assert rows["noise"]["p"] == pytest.approx(2 / 2**8)
    assert rows["noise"]["p_adjusted"] == pytest.approx(4 / 2**8) and rows["noise"]["differs"]
    assert rows["fog"]["p"] == 1.0 and not rows["fog"]["differs"]


def test_other_instants_are_other_pairs(runs: dict[str, Path]) -> None:
    found = compared(runs["clean"], runs["other"])
    noise = found["relations"]["noise"]
    assert noise["pairs"] is None and noise["test"].startswith("Fisher's exact test")
    # Eight violations in 60 pairs, all in one half, either half: the hypergeometric tails.
    assert noise["p"] == pytest.approx(2 * comb(30, 8) / comb(60, 8))
    assert found["only_before"] == ["fog"] and found["exit_code"] == 1


def test_what_differs_beside_is_told(tmp_path: Path, runs: dict[str, Path]) -> None:
    broken = made_run(tmp_path / "broken", verdicts("noise"), NOISE, infrastructure="the stack died")
    (note,) = compared(runs["clean"], broken)["notes"]
    assert "the run after is incomplete: infrastructure: the stack died" in note
    assert compared(runs["clean"], runs["noisy"])["notes"] == []


def test_settings_that_differ_are_told_in_words(runs: dict[str, Path]) -> None:
    before = ComparedRun.load(runs["clean"])
    after = dataclasses.replace(before, condition={**before.condition, "faults": ["one", "two"], "bags": []})
    assert compare(before, after)["notes"] == [
        "faults: (none) before, one, two after",
        "bags: drive before, (none) after",
    ]


def test_nothing_in_common_is_a_usage_error(runs: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(runs["other"]), str(runs["fog"])]) == 2
    assert "nothing to compare" in capsys.readouterr().err
    assert main(["compare", str(runs["other"]), str(runs["fog"].parent / "nowhere")]) == 2


def test_a_waived_relation_does_not_fail_the_build(runs: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    file = runs["clean"].parent / "waivers.yaml"
    file.write_text("- {relation: noise, reason: ticket 7, expires: 2999-01-01}\n")
    words = ["compare", str(runs["clean"]), str(runs["noisy"])]
    assert main(words) == 1
    assert main([*words, "--waivers", str(file)]) == 0
    out = capsys.readouterr().out
    assert "newly failing (waived)" in out and "ticket 7" in out
    file.write_text("- {relation: noise, reason: ticket 7, expires: 2020-01-01}\n")
    assert main([*words, "--waivers", str(file)]) == 1
    assert "expired on 2020-01-01" in capsys.readouterr().out


def test_json_and_table_say_the_same(runs: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    words = ["compare", str(runs["clean"]), str(runs["noisy"])]
    assert main([*words, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found == json.loads(json.dumps(compared(runs["clean"], runs["noisy"])))
    assert main(words) == 1
    table = capsys.readouterr().out
    assert "newly failing" in table and "8/30" in table and pair(10) in table
    assert "exit code 1: newly failing: noise" in table and "noise: requirement REQ-7" in table
