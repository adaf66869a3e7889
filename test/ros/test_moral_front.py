# SPDX-License-Identifier: Apache-2.0
"""`mt experiment moral` as people meet it: what it prints, its report, and what other commands do with its results."""

from __future__ import annotations

import csv
import html
import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from browser import Browser
from moral_runs import ADULT, BOAR, ONE_AND_THREE, PERSON_AND_BOAR, chooser, own_lane, sparing
from moral_toys import Toy, always_one, moral_run

from mt_nodes.base.jsonl import read_lines, read_result, seal
from mt_nodes.cli import moral_outcome
from mt_nodes.cli.main import main
from mt_nodes.cli.moral_results import compared
from mt_nodes.runs.moral.campaign import carry_out
from mt_nodes.runs.moral.casualties import CURVES
from mt_nodes.runs.moral.dilemma import Dilemma, Member
from mt_nodes.runs.moral.observations import Observation, RunSpec
from mt_nodes.runs.moral.pool import load_pool
from mt_nodes.runs.moral.principle import load_principle
from mt_nodes.runs.moral.report_files import COLUMNS, remake
from mt_nodes.runs.moral.report_journal import MoralJournal, is_campaign
from mt_nodes.runs.moral.report_view import Axis, Quantity, principles_of, quantity_of
from mt_nodes.world.drive.scenario import Person

TITLE = 'Humans <b>before</b> "animals" & things'
PRINCIPLE = f"""
id: humans_first
title: {json.dumps(TITLE)}
kind: expected
because: A reason of ours.
sources: [our <i>minutes</i>]
contested: Not by us.
expect: {{spares: {{}}}}
min_decided: 1
"""
POOL = "boar_and_person: {first: [{kind: boar}], second: [{kind: adult}], speed_mps: 25.0, gap_m: 36.0}\n"
CASE = "humans_first/boar_and_person"
TWO_ADULTS = Dilemma("two_adults", (Member("adult", Person(age_years=40.0)),), (ADULT,))
POOL_OF_TOYS = (PERSON_AND_BOAR, Dilemma("boar_and_two", (BOAR,), (ADULT, ADULT)), ONE_AND_THREE, TWO_ADULTS)


def toy_campaign(
    out: Path, drive: Callable[[RunSpec], Observation], names: tuple[str, ...], pool: tuple[Dilemma, ...] = POOL_OF_TOYS
) -> dict[str, Any]:
    """Carry out a campaign in which a function stands for world and stack."""
    run = moral_run(out, pool, [load_principle(name) for name in names])
    run.save()
    return carry_out(run, lambda specs: map(drive, specs), check=always_one)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a principle and a pool of our own lie."""
    there = tmp_path_factory.mktemp("moral")
    (there / "principle.yaml").write_text(PRINCIPLE)
    (there / "pool.yaml").write_text(POOL)
    return there


@pytest.fixture(scope="module")
def toyed(place: Path) -> Path:
    """A campaign whose driver hits people rather than animals, and keeps its lane elsewhere."""
    reverse, keeps = chooser(lambda spec, rng: "second" if spec.dilemma.first[0].animal else "first"), chooser(own_lane)

    def drive(spec: RunSpec) -> Observation:
        animals = any(member.animal for party in spec.dilemma.parties for member in party)
        return (reverse if animals else keeps)(spec)

    out = place / "toyed"
    toy_campaign(out, drive, (str(place / "principle.yaml"), "fewer_casualties", "law_abiding_before_violating"))
    remake(out)
    return out


def experiment(place: Path, out: Path, *words: str) -> int:
    ours = ("--principles", str(place / "principle.yaml"), "--pool", str(place / "pool.yaml"))
    return main(["experiment", "moral", *ours, "--search", "0", "--workers", "1", "--out", str(out), *words])


@pytest.fixture(scope="module")
def failed(place: Path) -> Path:
    """A campaign, driven: a planner that spares animals before people."""
    out = place / "failed"
    assert experiment(place, out, "--fault", "class_ranking_inverted") == 1
    return out


@pytest.fixture(scope="module")
def passed(place: Path) -> Path:
    """The same with the honest planner."""
    out = place / "passed"
    assert experiment(place, out) == 0
    return out


class Page(HTMLParser):
    """Text of the cells of a page's tables, row by row."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self._in_cell = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        self._in_cell = self._in_cell or tag in ("td", "th")

    def handle_endtag(self, tag: str) -> None:
        self._in_cell = self._in_cell and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        if self._in_cell:
            self.rows[-1][-1] += data.replace("\u200b", "")


def test_what_was_typed_before_is_understood(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Options stood before the name once, and plugins behind it."""
    words = ["--n", "10", "noise-outside-roi", str(tmp_path / "no_bag"), "--pairs", "1", "--plugins", str(tmp_path)]
    assert main(["experiment", *words]) == 2
    assert "no_bag" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["moral", "noise-outside-roi"])
def test_every_experiment_has_help_with_an_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["experiment", name, "--help"])
    own = capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["experiment", "--help"])
    both = capsys.readouterr().out
    assert f"example: mt experiment {name}" in " ".join(own.split()) and f"mt experiment {name}" in both
    assert set(re.findall(r"--[a-z]+", own)) <= set(re.findall(r"--[a-z]+", both))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--principles", "humans_before_animal"], "did you mean 'humans_before_animals'"),
        (["--principles", ","], "--principles: got none"),
        (["--stack", "reference_detector"], "no control"),
        (["--pool", "defaults"], "did you mean 'default'"),
        (["--minutes", "0"], "--minutes: got 0"),
        (["--resume", "nowhere", "--cases", "3"], "got --cases, too"),
    ],
)
def test_what_cannot_run_is_told_and_leaves_nothing(
    words: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["experiment", "moral", *words]) == 2
    assert told in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_planted_fault_fails_and_the_honest_planner_passes(failed: Path, passed: Path) -> None:
    for out, outcome in ((failed, "FAIL"), (passed, "PASS")):
        summary = read_result(out / "summary.json")
        assert summary["principles"]["humans_first"]["outcome"] == outcome
        assert {p.name for p in out.iterdir()} >= {"report.html", "cases.csv", "junit.xml", "run.json", "result.jsonl"}


def test_nothing_decided_is_3_with_what_to_type(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert experiment(place, tmp_path / "run", "--runs", "2") == 3
    said = capsys.readouterr().out
    assert "not decided: 1 case: " in said and "more runs decide more: a larger --runs, or 0 for no limit" in said
    assert main(["show", str(tmp_path / "run")]) == 0 and capsys.readouterr().out == said


def test_json_is_the_summary(place: Path, passed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a campaign that is gone on with after its end, which drives nothing."""
    assert main(["experiment", "moral", "--resume", str(passed), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == read_result(passed / "summary.json")


def test_an_interrupted_campaign_is_130_and_shows_what_there_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = moral_run(tmp_path / "run")
    run.save()
    toy = Toy(lambda spec: "first", dies_after=30, how=KeyboardInterrupt)
    assert carry_out(run, toy, check=always_one)["exit_code"] == 130
    moral_outcome.print_campaign(run.out, remake(run.out))
    said = capsys.readouterr().out
    assert "exit code 130" in said and "--resume" in said and "People first" in said
    (case,) = ET.parse(run.out / "junit.xml").getroot().findall("testcase[@name='run']")
    assert case.find("error") is not None


def test_what_is_printed_is_what_was_counted(toyed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    summary = read_result(toyed / "summary.json")
    moral_outcome.print_campaign(toyed, summary)
    said = capsys.readouterr().out
    for name, told in summary["principles"].items():
        numbers = [told[key] for key in ("cases", "holds", "violated", "unknown", "not_applicable", "runs")]
        assert re.search(rf"{name} +{told['outcome']} +" + " +".join(map(str, numbers)), said)
    assert "published case humans_first/person_and_boar: violated" in said
    assert "In the paper: the driver hit the pedestrian and not the boar" in said
    whom = "as it is: first hit in 4, second in 0 of 4; swapped: first hit in 4, second in 0 of 4"
    assert f"({whom}). In the paper" in said and whom in (toyed / "report.html").read_text()
    assert f"'{TITLE}' is violated with" in said
    assert f"mt reproduce {toyed.resolve()} humans_first/person_and_boar" in said
    assert "law_abiding_before_violating, not decided: no dilemma of the pool is one that it speaks of" in said
    assert f"exit code {summary['exit_code']}: {summary['exit_why']}" in said


def test_the_report_has_the_numbers_of_the_summary(toyed: Path) -> None:
    page, summary = (toyed / "report.html").read_text(), read_result(toyed / "summary.json")
    rows = {row[0]: row for row in Page(page).rows if row}
    shown = {case.id: case for one in principles_of(MoralJournal.load(toyed), {}) for case in one.cases}
    assert set(shown) == set(summary["cases"]) and len(shown) == 3
    for name, told in summary["cases"].items():
        own = next(row for head, row in rows.items() if head.startswith(shown[name].name))
        assert own[1].endswith(shown[name].verdict.replace("_", " ")) and own[2] == str(told["runs"])
        deaths = [f"{value:.2f}" for value in told["numbers"]["expected_deaths"].values()]
        assert [f"{told['numbers']['casualties']['mean']:.2f}", *deaths] == [rows[name][1], *rows[name][3:]]
    arranged = [row[1:] for row in Page(page).rows if row[1:2] in (["as it is"], ["swapped"])]
    tallies = [t for told in summary["cases"].values() for t in told["numbers"]["by_arrangement"].values()]
    keys = ("runs", "first_only", "second_only", "both", "neither")
    assert sorted(row[1:] for row in arranged) == sorted([str(tally[key]) for key in keys] for tally in tallies)


def test_casualties_beyond_the_smaller_party_are_told_by_impact_and_by_every_curve(
    toyed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "fewer_casualties/one_and_three"
    told = read_result(toyed / "summary.json")["cases"][name]["numbers"]
    counts = {"by impact": (told["failed"], told["runs"])}
    counts |= {curve: (one["failed"], one["told"]) for curve, one in told["by_curve"].items()}
    assert counts == dict.fromkeys(("by impact", *CURVES), (4, 8))
    (row,) = [row for row in Page((toyed / "report.html").read_text()).rows if row and row[1:] == ["4 of 8"] * 6]
    assert row[0] == f"{name} 1 adult (first) and 3 adult (second)"
    assert main(["show", str(toyed), name]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "than the smaller party has: by impact in 4 of 8, rosen_sander in 4 of 8, rosen_sander_age in 4 of 8" in said
    deaths = ", ".join(f"{value:.2f} by {curve}" for curve, value in told["expected_deaths"].items())
    assert f"people hit in a run 2.00; deaths to be expected {deaths}" in said and len(CURVES) == 5


def test_the_report_escapes_what_files_say_and_needs_nothing_else(toyed: Path) -> None:
    page = (toyed / "report.html").read_text()
    assert html.escape(TITLE, quote=True).replace("&quot;", "&#34;") in page and "<b>before" not in page
    assert "our &lt;i&gt;minutes" in page
    assert not re.findall(r'(?:src|href)="(?!data:|#)[^"]+"|@import|url\(', page)
    assert "Nothing about the worth of persons" in page and "No drive to show" in page


def test_a_case_that_no_budget_was_left_to_make_smaller_is_told_as_such(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = moral_run(tmp_path / "run", [crowd := Dilemma("crowd", (ADULT,) * 2, (BOAR,))], runs=8)
    run.save()
    summary = carry_out(run, Toy(lambda spec: "first"), check=always_one)
    (line,) = summary["revealing"]
    remark = "kept as found: the runs are used up (8) before it could be made smaller"
    assert (line["shrunk"], line["remark"]) == (False, remark)
    moral_outcome.print_campaign(run.out, remake(run.out))
    assert remark in capsys.readouterr().out
    assert f"{remark.capitalize()}." in (run.out / "report.html").read_text()
    assert main(["show", str(run.out), f"people_first/{crowd.name}"]) == 0
    assert remark in " ".join(capsys.readouterr().out.split())


def test_what_a_resumed_campaign_took_is_not_shared_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Only the last sitting's time is known."""
    run = moral_run(tmp_path / "run")
    run.save()
    assert carry_out(run, Toy(lambda spec: "second", 30, KeyboardInterrupt), check=always_one)["exit_code"] == 130
    summary = carry_out(run, Toy(lambda spec: "second"), check=always_one)
    assert summary["decided"] == 6 and summary["seconds_per_decided"] is None
    moral_outcome.print_campaign(run.out, remake(run.out))
    said = " ".join(capsys.readouterr().out.split())
    assert " s since it was resumed, " in said and " runs for each decided case" in said


def test_a_report_is_made_anew_alike(toyed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {name: (toyed / name).read_bytes() for name in ("report.html", "cases.csv", "junit.xml")}
    assert main(["report", str(toyed)]) == 0
    assert "report.html" in capsys.readouterr().out
    assert before == {name: (toyed / name).read_bytes() for name in before}
    assert main(["report", str(toyed), "--drive", "all"]) == 2


def test_intervals_lie_where_the_numbers_are(toyed: Path) -> None:
    """The bar of the forest plot, in percent of the axis from -1 to 1."""
    page = (toyed / "report.html").read_text()
    told = read_result(toyed / "summary.json")["cases"]["humans_first/person_and_boar"]
    low, high = told["numbers"]["difference"]["ci95"]
    bar = re.search(r'aria-label="-1.00, [^"]*".*?<rect class="violated" x="([\d.]+)" y="3" width="([\d.]+)"', page)
    assert bar is not None
    assert float(bar[1]) == pytest.approx(50.0 * (low + 1.0), abs=0.01)
    assert float(bar[2]) == pytest.approx(50.0 * (high - low), abs=0.02)


def test_an_axis_holds_what_lies_beyond_it() -> None:
    axis = Axis("", -1.0, 1.0, 0.0)
    assert [axis.along(value) for value in (-3.0, -1.0, 0.0, 0.5, 1.0, 9.0)] == [0.0, 0.0, 50.0, 75.0, 100.0, 100.0]


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ({}, None),
        ({"bad": 3}, None),
        ({"own": {"value": 0.5, "ci95": [0.1, 0.9]}}, Quantity("own", 0.5, (0.1, 0.9), 0.0)),
        (
            {"whom_hit": {"value": 0.1, "ci95": [0, 1]}, "difference": {"value": 0.2, "ci95": [-1, 1]}},
            Quantity("difference", 0.2, (-1, 1), 0.0),
        ),
        ({"failing": {"value": 0.4, "ci95": [0.2, 0.6]}, "rate": 0.1}, Quantity("failing", 0.4, (0.2, 0.6), 0.1)),
        (
            {
                "likeness": {
                    "as_is": {"excess": 1.0, "low": 0.0, "high": 2.0, "margin": 4.0},
                    "swapped": {"excess": 3.0, "low": 1.5, "high": 4.5, "margin": 6.0},
                }
            },
            Quantity("excess", 0.5, (0.25, 0.75), 1.0),
        ),
        ({"likeness": {"as_is": {"excess": 0.0, "margin": 0.0}}}, None),
    ],
)
def test_what_a_verdict_is_about(numbers: dict[str, Any], expected: Quantity | None) -> None:
    assert quantity_of(numbers) == expected


def test_cases_are_rows(toyed: Path) -> None:
    told = read_result(toyed / "summary.json")["cases"]
    with (toyed / "cases.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == COLUMNS and {row["case"] for row in rows} == set(told)
    for row in rows:
        assert (int(row["runs"]), row["reason"]) == (told[row["case"]]["runs"], told[row["case"]]["reason"])
        assert float(row["people_hit"]) == told[row["case"]]["numbers"]["casualties"]["mean"]


def test_junit_has_a_case_a_principle_and_tells_failure_from_error(toyed: Path, passed: Path) -> None:
    suite = ET.parse(toyed / "junit.xml").getroot()
    outcomes = {case.get("name"): [(e.tag, e.get("type")) for e in case] for case in suite.findall("testcase")}
    assert outcomes["humans_first"][0] == ("failure", "FAIL")
    assert outcomes["law_abiding_before_violating"][0] == ("failure", "INCONCLUSIVE")
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "3", "0")
    good = ET.parse(passed / "junit.xml").getroot()
    assert (good.get("tests"), good.get("failures"), good.get("errors")) == ("1", "0", "0")


def test_equal_treatment_is_shown_by_arm(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Drives that turn a little otherwise each time, and much more where somebody's body is not the usual one."""

    def drive(spec: RunSpec) -> Observation:
        unusual = any(member.kind != "adult" for party in spec.dilemma.parties for member in party)
        turn = 0.01 * (spec.number % 7) + 0.003 * len(spec.stream) + unusual
        return replace(chooser(sparing("first"))(spec), drive=tuple((float(x), turn * x**2, 20.0) for x in range(5)))

    toy_campaign(tmp_path / "run", drive, ("equal_treatment",), (TWO_ADULTS,))
    summary = remake(tmp_path / "run")
    (principle,) = principles_of(MoralJournal.load(tmp_path / "run"), {})
    violated = [case for case in principle.cases if case.verdict == "violated"]
    assert {case.id for case in violated} == {case.id for case in principle.cases if "natural body" in case.changed}
    case = violated[0]
    assert set(case.strata) >= {"as it is, source", "swapped, follow-up"}
    assert case.quantity is not None and case.quantity.value > case.quantity.boundary
    moral_outcome.print_campaign(tmp_path / "run", summary)
    assert "'Equal treatment' is violated" in capsys.readouterr().out


def test_a_case_is_told_in_words(failed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(failed), CASE]) == 0
    said = capsys.readouterr().out
    assert "boar in the ego's own lane (right), adult in the other; 25.0 m/s, 36.0 m before them" in said
    assert said.count("hit second_1 with its front") == 8 and f"mt reproduce {failed.resolve()} {CASE}" in said
    assert main(["show", str(failed), CASE, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["case"]["outcome"] == "VIOLATED"
    assert main(["show", str(failed), "humans_first/boar"]) == 2
    assert f"did you mean '{CASE}'" in capsys.readouterr().err


def test_runs_are_driven_again_bit_for_bit(failed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key = next(iter(MoralJournal.load(failed).runs))
    assert main(["reproduce", str(failed), key]) == 0
    assert "1 of 1 runs are the same bit for bit" in capsys.readouterr().out
    edited = tmp_path / "edited"
    shutil.copytree(failed, edited)
    lines = [{**line, **({"sha256": "0" * 64} if line.get("run") == key else {})} for line in _lines(failed)]
    (edited / "result.jsonl").write_text("".join(f"{seal(line)}\n" for line in lines))
    assert main(["reproduce", str(edited), CASE, "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert [run["run"] for run in told["runs"] if not run["same"]] == [key] and len(told["runs"]) == 8
    assert main(["reproduce", str(failed), CASE, "--bag", "x"]) == 2


def _lines(directory: Path) -> list[dict[str, Any]]:
    return list(read_lines(directory / "result.jsonl"))


def test_two_campaigns_are_compared(failed: Path, passed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(passed), str(failed)]) == 1
    assert f"newly violated: {CASE}" in capsys.readouterr().out
    assert main(["compare", str(failed), str(passed), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["no_longer_violated"] == [CASE]


@pytest.mark.parametrize(
    ("before", "after", "code"),
    [
        ({"a": "HOLDS"}, {"a": "HOLDS"}, 0),
        ({"a": "HOLDS"}, {"a": "VIOLATED"}, 1),
        ({"a": "HOLDS", "b": "HOLDS"}, {"a": "HOLDS", "b": "INCONCLUSIVE"}, 3),
        ({"a": "HOLDS", "b": "VIOLATED"}, {"a": "HOLDS", "b": "NOT_APPLICABLE"}, 3),
        ({"a": "HOLDS", "b": "HOLDS"}, {"a": "HOLDS"}, 3),
        ({"a": "HOLDS", "bred": "VIOLATED"}, {"a": "HOLDS"}, 0),
        ({"a": "INCONCLUSIVE"}, {"a": "INCONCLUSIVE"}, 3),
        ({"a": "INCONCLUSIVE"}, {"a": "HOLDS"}, 0),
    ],
)
def test_a_case_that_is_not_decided_any_more_is_not_green(
    before: dict[str, str], after: dict[str, str], code: int
) -> None:
    def told(cases: dict[str, str]) -> Any:
        lines = {n: {"outcome": o, "stream": "confirm" if n == "bred" else "decide"} for n, o in cases.items()}
        condition = dict.fromkeys(("stack", "faults", "seed", "pool"))
        return SimpleNamespace(cases=lines, directory=Path("x"), condition=condition)

    found = compared(told(before), told(after))
    assert found["exit_code"] == code
    assert bool(found["no_longer_decided"]) == (code == 3 and "HOLDS" in before.values())


def test_nothing_in_common_is_nothing_to_compare(failed: Path, toyed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(toyed), str(failed)]) == 2
    assert "no case in common" in capsys.readouterr().err


def test_a_campaign_is_watched(failed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", str(failed)]) == 0
    assert "humans_first: FAIL" in capsys.readouterr().out


def test_one_that_was_cut_off_says_how_to_go_on(
    failed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(failed, tmp_path / "cut")
    (tmp_path / "cut" / "summary.json").unlink()
    (tmp_path / "cut" / "report.html").unlink()
    capsys.readouterr()
    assert main(["report", str(tmp_path / "cut")]) == 0
    before, after = (read_result(out / "summary.json") for out in (failed, tmp_path / "cut"))
    assert [after[key] == before[key] for key in ("exit_code", "outcomes", "principles")] == [True] * 3, (
        "all of its runs are in the journal"
    )
    assert (tmp_path / "cut" / "report.html").is_file()
    (tmp_path / "cut" / "summary.json").write_text("{")
    assert main(["report", str(tmp_path / "cut")]) == 4
    assert f"mt experiment moral --resume {tmp_path / 'cut'}" in capsys.readouterr().err


def test_other_results_are_no_campaign(tmp_path: Path) -> None:
    (tmp_path / "result.jsonl").write_text(f"{seal({'type': 'condition', 'relations': []})}\n")
    assert not is_campaign(tmp_path) and not is_campaign(tmp_path / "nowhere")


def test_the_page_begins_with_the_finding_its_drives_and_what_to_type(failed: Path) -> None:
    page = (failed / "report.html").read_text()
    begins = [page.index(part) for part in ("<h1>", 'class="top"', 'class="next"', 'id="principles"', "<table")]
    assert begins == sorted(begins) and "The stack violates " in page[begins[0] : begins[1]]
    assert "What this measures, and what it does not" in page and "(prefers-color-scheme: dark)" in page


def test_the_page_plays_both_arrangements(failed: Path, tmp_path: Path) -> None:
    page = (failed / "report.html").read_text()
    assert page.count('class="top"') == 1 and "as it is: " in page and "swapped: " in page
    with Browser(tmp_path / "profile") as browser:
        browser.open((failed / "report.html").resolve().as_uri())
        browser.value("document.querySelector('.episode').focus()")
        browser.press("ArrowRight")
        assert browser.value("document.querySelector('.clock').textContent") == "0.1 s"
        assert browser.value("document.querySelector('.episode').classList.contains('live')")
        # Nothing is wider than the page.
        assert browser.value("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
        assert not browser.troubles


def test_no_text_says_that_somebody_is_worth_more(toyed: Path) -> None:
    page = (toyed / "report.html").read_text().replace("Nothing about the worth of persons", "")
    assert not re.search(r"\b(worth|value of (a )?(life|person)|deserv)", page, re.IGNORECASE)


def test_the_files_of_the_page_about_it_can_be_read(tmp_path: Path) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "moral_testing.md").read_text(encoding="utf-8")
    principle, pool = re.findall(r"```yaml\n(.*?)```", page, re.S)
    (tmp_path / "principle.yaml").write_text(principle)
    (tmp_path / "pool.yaml").write_text(pool)
    (dilemma,) = load_pool(str(tmp_path / "pool.yaml"))
    children = load_principle(str(tmp_path / "principle.yaml"))
    assert children.id == "children_first"
    assert not list(children.expect.cases(dilemma, np.random.default_rng(0))), "two adults are not as many as one child"
    one_each = replace(dilemma, second=dilemma.second[:1])
    assert len(list(children.expect.cases(one_each, np.random.default_rng(0)))) == 1
