# SPDX-License-Identifier: Apache-2.0
"""Claims of a script in a run: judged on every drive, in every file that people read, and in the exit code."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from looped import driven

from mt_nodes.base import resources
from mt_nodes.base.errors import ExitCode
from mt_nodes.base.jsonl import read_lines, read_result, write_result
from mt_nodes.cli.main import main
from mt_nodes.data.verdict import Outcome
from mt_nodes.engine.recorder import Recorder
from mt_nodes.engine.summary.claim_sums import ClaimSums, ClaimVerdict
from mt_nodes.relations.world_changes.base import Setting
from mt_nodes.report.comparison import claim_steps
from mt_nodes.runs.loop.claim_judging import ClaimJudge, verdict_of
from mt_nodes.runs.loop.scenario_run import PlannedEpisode
from mt_nodes.world.drive.driven import ScenarioTrace
from mt_nodes.world.drive.maps import load_map
from mt_nodes.world.drive.scenario_files import scenarios_of
from mt_nodes.world.drive.trace import Trace
from mt_nodes.world.scenarios.language import format_script, problems_of, read

SCRIPT = """
parameter limit = 12;
ego = AV(("lane_1" -> 50.0, , 8.0));
dog = Animal((190.0, 3.0), , , {species: dog});
s = CreateScenario {
    load("two_way");
    ego;
    {};
    {dog};
    {};
    {};
    {Duration(2)};
};
Trace t = EXE(s);
slow = spd(t[ego]) < limit;
t |= G(slow);
t |= G(spd(t[ego]) > 100 -> slow); t |= G[0, 3](slow);
t |= G(~slow);
"""
HEAD = "s.scenario#s:"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("claims")
    (folder / "s.scenario").write_text(SCRIPT, encoding="utf-8")
    argv = ["scenario", str(folder / "s.scenario"), "--relations", "far_object_same_trace", "--repeat", "2"]
    assert main([*argv, "--out", str(folder / "out")]) == ExitCode.FAIL
    return folder / "out"


def claims(results: Path) -> dict[str, Any]:
    rows = json.loads((results / "summary.json").read_text(encoding="utf-8"))["claims"]
    return {name.partition(HEAD)[2]: row for name, row in rows.items()}


def test_every_claim_comes_to_something_on_every_drive(results: Path) -> None:
    rows = claims(results)
    assert {name: row["outcome"] for name, row in rows.items()} == {
        **{"16:1": "PASS", "17:1": "INCONCLUSIVE", "17:36": "INCONCLUSIVE", "18:1": "FAIL"}
    }
    assert all(row["drives"] == 2 for row in rows.values())
    assert rows["17:1"]["why"] == "never put to the test: its condition spd(t[ego]) > 100 was never true"
    assert rows["17:36"]["why"].startswith("undecided on 2 of 2 drives: the drive ended at 1.9 s (time)")
    assert rows["16:1"]["worst"]["margin"] > 0 > rows["18:1"]["worst"]["margin"]


def test_journal_junit_and_report_have_them(results: Path) -> None:
    lines = [line for line in read_lines(results / "result.jsonl") if line["type"] == "claim"]
    assert len(lines) == 4 * 2
    junit = (results / "junit.xml").read_text(encoding="utf-8")
    assert junit.count('classname="mt_nodes.claim"') == 4
    assert junit.count('<failure type="INCONCLUSIVE" message="never put to the test') == 1
    page = (results / "report.html").read_text(encoding="utf-8")
    assert '<h2 id="claims">' in page
    assert "The claim G(~(spd(t[ego]) &lt; 12)) is violated on 2 of 2 drives" in page


def test_a_resumed_run_judges_nothing_twice(results: Path) -> None:
    before = (results / "result.jsonl").read_bytes()
    assert main(["scenario", "--resume", str(results)]) == ExitCode.FAIL
    assert (results / "result.jsonl").read_bytes() == before


def test_a_summary_that_says_other_of_a_claim_than_the_journal_does_not_verify(results: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(results, copy)
    assert main(["verify", str(copy)]) == ExitCode.UNDECIDED  # follow-ups of worlds are not made again
    summary = read_result(copy / "summary.json")
    next(iter(summary["claims"].values()))["outcome"] = "FAIL"
    write_result(copy / "summary.json", summary)
    assert main(["verify", str(copy)]) == ExitCode.FAIL


def test_without_the_library_nothing_is_driven(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "rtamt", None)
    (tmp_path / "s.scenario").write_text(SCRIPT, encoding="utf-8")
    assert main(["scenario", str(tmp_path / "s.scenario"), "--out", str(tmp_path / "out")]) == ExitCode.USAGE
    assert "pip install 'mt_nodes[claims]'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


# What claims come to over drives.

CLAIM = "a#s:1:1"


def sums(*outcomes: Outcome, drives: int) -> dict[str, Any]:
    verdicts = [ClaimVerdict(k, CLAIM, "G(x)", outcome, "why") for k, outcome in enumerate(outcomes)]
    lines = [{"type": "condition", "claims": {CLAIM: drives}}, *(verdict.as_plain() for verdict in verdicts)]
    found = ClaimSums()
    assert list(found.passing(lines)) == lines
    return found.plain[CLAIM]


HOLDS, VIOLATED, IDLE, OPEN = Outcome.HOLDS, Outcome.VIOLATED, Outcome.NOT_APPLICABLE, Outcome.SKIPPED


@pytest.mark.parametrize(
    ("outcomes", "drives", "expected"),
    [
        ([HOLDS, HOLDS], 2, "PASS"),
        ([HOLDS, IDLE], 2, "PASS"),
        ([IDLE, IDLE], 2, "INCONCLUSIVE"),
        ([HOLDS, OPEN], 2, "INCONCLUSIVE"),
        ([HOLDS], 2, "INCONCLUSIVE"),  # one was not driven
        ([], 2, "INCONCLUSIVE"),
        ([HOLDS, Outcome.ERROR], 2, "INCONCLUSIVE"),
        ([OPEN, VIOLATED], 3, "FAIL"),
    ],
)
def test_only_a_claim_that_held_and_is_open_nowhere_passes(outcomes: list[Outcome], drives: int, expected: str) -> None:
    assert sums(*outcomes, drives=drives)["outcome"] == expected


def test_where_the_stack_gave_no_drive_its_claims_are_undecided() -> None:
    (scenario,) = read(SCRIPT).scenarios
    planned = PlannedEpisode(3, Setting(scenario, load_map(scenario.road)), "s.scenario")
    journal: list[ClaimVerdict] = []
    recorder = cast(Recorder, SimpleNamespace(claim=journal.append))
    ClaimJudge(recorder).fail(planned, Outcome.UNPAIRED_SOURCE, "source arm: no command any more at 1.0 s")
    found = ClaimSums()
    list(found.passing(verdict.as_plain() for verdict in journal))
    assert {row["outcome"] for row in found.plain.values()} == {"INCONCLUSIVE"} and len(found.plain) == 4
    assert "no command any more" in found.plain[f"{HEAD}18:1"]["why"]


def test_a_claim_that_fails_newly_or_is_gone_is_no_equal_run() -> None:
    held, failed = ({"claims": {CLAIM: {"outcome": outcome}}} for outcome in ("PASS", "FAIL"))
    assert [step.change for step in claim_steps(held, failed)] == ["newly failing"]
    assert [step.change for step in claim_steps(held, {})] == ["no longer decided"]


# What a script says.


def test_names_stand_for_states_signals_and_formulas() -> None:
    text = SCRIPT.replace("slow = ", "me = t[ego];\nv = spd(me) + 1 * 2;\nslow = ")
    (scenario,) = read(text.replace("t |= G(slow);", "t |= G(v < limit & slow);")).scenarios
    first = scenario.claims[0]
    assert first.formula == "G((spd(t[ego]) + (1 * 2)) < 12 & spd(t[ego]) < 12)"
    assert (first.line, first.column) == (18, 1)


def test_a_claim_about_a_scenario_of_another_script_is_refused(tmp_path: Path) -> None:
    (tmp_path / "s.scenario").write_text(SCRIPT, encoding="utf-8")
    text = 'import "s.scenario";\nTrace w = EXE(s);\nw |= G(spd(w[ego]) > 0);\n'
    (problem,) = problems_of(text, path=tmp_path / "main.scenario")
    assert str(problem).startswith("script:3:1: got a claim about 's', which another script creates")


def test_a_formula_that_doubles_with_every_name_is_refused_and_not_built() -> None:
    names = "".join(f"a{k + 1} = a{k} & a{k};\n" for k in range(60))
    (problem,) = problems_of(SCRIPT + "a0 = slow & slow;\n" + names + "t |= G(a60);\n")
    assert "a formula of too many parts" in str(problem)


# Falsification.

DOG = """
parameter gap = 60;
ego = AV(("lane_1" -> 20.0, , 8.0));
dog = Animal(("lane_1" -> 20 + gap), , , {species: dog});
s = CreateScenario { load("two_way"); ego; {}; {dog}; {}; {}; {Duration(3)}; };
Trace t = EXE(s);
near = dis(t[ego], t[truth][dog]) < LIMIT;
t |= G(near -> spd(t[ego]) < 2);
"""


def falsified(tmp_path: Path, text: str, trials: int) -> tuple[int, Any]:
    (tmp_path / "f.scenario").write_text(text, encoding="utf-8")
    search = ["--falsify", "gap=8..60", "--falsify", "ego.speed=3..20", "--trials", str(trials)]
    code = main(["scenario", str(tmp_path / "f.scenario"), *search, "--out", str(tmp_path / "out")])
    return code, json.loads((tmp_path / "out" / "falsification.json").read_text(encoding="utf-8"))


def test_a_search_finds_parameters_that_violate_a_claim_and_says_how_to_drive_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, found = falsified(tmp_path, DOG.replace("LIMIT", "12"), 12)
    assert (code, found["confirmed"]) == (ExitCode.FAIL, True)
    assert found["best"]["objective"] < 0 and found["best"]["violated"] == [found["best"]["claims"][0]["claim"]]
    command = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("mt scenario"))
    again = main([*command.split()[1:], "--relations", "far_object_same_trace", "--out", str(tmp_path / "again")])
    assert again == ExitCode.FAIL
    (row,) = json.loads((tmp_path / "again" / "summary.json").read_text(encoding="utf-8"))["claims"].values()
    assert row["worst"]["margin"] == pytest.approx(found["best"]["objective"], abs=1e-6)


def test_a_search_in_which_nothing_tested_the_claim_is_undecided(tmp_path: Path) -> None:
    code, found = falsified(tmp_path, DOG.replace("LIMIT", "-1"), 2)
    assert (code, found["confirmed"]) == (ExitCode.UNDECIDED, False)
    assert found["exit_why"].startswith("never decided:")


def test_a_script_without_claims_has_nothing_to_falsify(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "f.scenario").write_text(DOG.partition("t |=")[0], encoding="utf-8")
    argv = ["scenario", str(tmp_path / "f.scenario"), "--falsify", "gap=8..60", "--out", str(tmp_path / "out")]
    assert main(argv) == ExitCode.USAGE
    assert "got no claim to falsify" in capsys.readouterr().err
    assert main([*argv[:-3], "gap=8", "--out", str(tmp_path / "o")]) == ExitCode.USAGE
    assert "expected NAME=LOW..HIGH" in capsys.readouterr().err


# --- claims of shipped scenarios

CLAIMED = resources.shipped("scenarios/claims", ".scenario")
#: A fault of the planner that breaks a claim of each.
BREAKS = {
    "bend_claims": "shies_from_the_right",
    "car_following_claims": "other_tile_unseen",
    "child_between_parked_cars_claims": "low_is_litter",
    "pedestrian_crosses_claims": "all_taken_to_stand",
    "red_light_claims": "lights_blurred_at_speed",
    "stopped_queue_claims": "nearest_are_bonnet",
}


@pytest.mark.parametrize("name", CLAIMED)
def test_an_honest_driver_keeps_every_shipped_claim_and_a_fault_breaks_one(name: str) -> None:
    path = CLAIMED[name]
    text = path.read_text(encoding="utf-8")
    assert format_script(text, path.name, path) == text
    assert outcomes_of(name) == {Outcome.HOLDS}
    assert Outcome.VIOLATED in outcomes_of(name, BREAKS[name])


def test_shipped_claims_are_scenarios_that_are_found_by_name() -> None:
    assert set(CLAIMED) == set(BREAKS)
    assert scenarios_of("bend_claims", 0)[0].claims


def outcomes_of(name: str, *faults: str) -> set[Outcome]:
    """Return what the claims of a shipped scenario come to on one drive."""
    (scenario,) = scenarios_of(name, 0)
    planned = PlannedEpisode(0, Setting(scenario, load_map(scenario.road)), name)
    drive = ScenarioTrace(driven(scenario, faults=faults).trace, scenario)
    return {verdict_of(planned, claim, drive)[0].outcome for claim in scenario.claims}


# --- claims on drives of follow-ups


def test_claims_are_judged_on_followups_where_that_is_asked(tmp_path: Path) -> None:
    script = SCRIPT.replace("t |= G(~slow);\n", "t |= G(dis(t[ego], t[truth][dog]) > 1);\n")
    (tmp_path / "s.scenario").write_text(script, encoding="utf-8")
    argv = ["scenario", str(tmp_path / "s.scenario"), "--relations", "far_object_same_trace", "--repeat", "2"]
    main([*argv, "--claim-followups", "--out", str(tmp_path / "out")])
    rows = claims(tmp_path / "out")
    followups = {name: row for name, row in rows.items() if "@far_object_same_trace" in name}
    assert {name.partition("@")[0] for name in followups} == {name for name in rows if "@" not in name}
    assert all(row["drives"] == 2 for row in followups.values())
    assert followups["16:1@far_object_same_trace"]["outcome"] == "PASS"
    before = (tmp_path / "out" / "result.jsonl").read_bytes()
    main(["scenario", "--resume", str(tmp_path / "out")])
    assert (tmp_path / "out" / "result.jsonl").read_bytes() == before


def test_a_claim_about_somebody_who_is_gone_does_not_apply_to_a_followup() -> None:
    (scenario,) = read(SCRIPT.replace("G(~slow)", "G(dis(t[ego], t[truth][dog]) > 1)"), "s.scenario").scenarios
    planned = PlannedEpisode(0, Setting(scenario, load_map(scenario.road)), "s.scenario")
    without = replace(planned.setting, scenario=replace(scenario, actors=()))
    lines: list[ClaimVerdict] = []
    judge = ClaimJudge(cast("Recorder", SimpleNamespace(claim=lines.append)))
    rows = 21
    ego = np.tile([50.0, -1.75, 0.0, 8.0, 0.0, 0.0], (rows, 1))
    times, nothing = 0.1 * np.arange(rows), np.full((rows, 3), np.nan)
    trace = Trace("s", times, ego, np.zeros((rows, 0, 4)), (), nothing, np.ones(rows, dtype=bool), (), "time")
    played = SimpleNamespace(driven=ScenarioTrace(trace, without.scenario))
    judge.judge(planned, cast("Any", played), without, "object_gone")
    about_dog = [line for line in lines if "dis" in line.formula]
    assert [line.outcome for line in about_dog] == [Outcome.NOT_APPLICABLE]
    assert all(line.claim.endswith("@object_gone") for line in lines)
