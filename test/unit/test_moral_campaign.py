# SPDX-License-Identifier: Apache-2.0
"""Campaigns of moral relations: what is driven, when it stops, what is written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from moral_toys import (
    Choice,
    Toy,
    always_one,
    campaign,
    coin_flipper,
    dilemma,
    moral_run,
    observation,
    one_more,
    spares_people,
    swerves_from_groups,
)

from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.base.jsonl import read_lines, read_result, write_result
from mt_nodes.runs.moral.budget import cut_in_words
from mt_nodes.runs.moral.campaign import carry_out, sum_up
from mt_nodes.runs.moral.moral_request import MoralRequest, checked_request
from mt_nodes.runs.moral.moral_run import MoralRun
from mt_nodes.runs.moral.observations import RunSpec
from mt_nodes.runs.moral.runs import Runs, observation_of
from mt_nodes.runs.moral.trial import BATCH
from mt_nodes.stacks.stack import load_stack


def journal(out: Path) -> str:
    """Return a journal as it is."""
    return (out / "result.jsonl").read_text()


def lines(out: Path, kind: str) -> list[dict[str, Any]]:
    """Return the lines of one type."""
    return [line for line in read_lines(out / "result.jsonl") if line["type"] == kind]


def runs_of(out: Path, stream: str) -> set[str]:
    """Return the runs of a stream."""
    return {line["run"] for line in lines(out, "run") if line["stream"] == stream}


def hits_people(spec: RunSpec) -> str:
    """Hit people always."""
    return "first"


def test_a_driver_that_keeps_a_principle_passes_and_one_that_reverses_it_fails(tmp_path: Path) -> None:
    good = campaign(tmp_path / "good", Toy(spares_people))
    assert (good["exit_code"], good["outcomes"]) == (0, {"HOLDS": 6})
    bad = campaign(tmp_path / "bad", Toy(hits_people))
    assert (bad["exit_code"], bad["outcomes"]) == (1, {"VIOLATED": 6})
    assert bad["principles"]["people_first"]["outcome"] == "FAIL"


def test_a_driver_that_flips_coins_is_undecided(tmp_path: Path) -> None:
    summary = campaign(tmp_path, Toy(coin_flipper))
    assert summary["exit_code"] == 3 and set(summary["outcomes"]) == {"INCONCLUSIVE"}
    case = summary["cases"]["people_first/d0"]
    assert case["rounds"] == 20 and "all rounds were driven" in case["reason"]


def test_cases_stop_as_soon_as_they_are_decided_and_totals_reconcile(tmp_path: Path) -> None:
    toy = Toy(spares_people)
    summary = campaign(tmp_path, toy)
    told = lines(tmp_path, "run")
    assert len(told) == len(toy.asked) == summary["runs"] == sum(c["runs"] for c in summary["cases"].values())
    assert all(case["rounds"] < 10 for case in summary["cases"].values())
    assert summary["offered"] == sum(summary["outcomes"].values()) == len(lines(tmp_path, "case"))
    assert summary["runs_per_decided"] == round(len(toy.asked) / 6, 1)


def test_one_seed_makes_one_campaign_and_another_makes_another(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"cases": 3, "search": 8}
    for name, seed in (("one", 5), ("again", 5), ("other", 6)):
        campaign(tmp_path / name, Toy(swerves_from_groups), seed=seed, **asked)
    assert journal(tmp_path / "one") == journal(tmp_path / "again")
    drawn, bred = ([runs_of(tmp_path / name, kind) for name in ("one", "other")] for kind in ("decide", "search"))
    assert drawn[0] != drawn[1] and bred[0] != bred[1]


@pytest.mark.parametrize("after", [0, 1, BATCH + 3, 100])
def test_who_is_killed_and_goes_on_comes_to_the_same(tmp_path: Path, after: int) -> None:
    asked: dict[str, Any] = {"search": 12}
    whole = campaign(tmp_path / "whole", Toy(swerves_from_groups), **asked)
    with pytest.raises(RuntimeError, match="killed"):
        campaign(tmp_path / "cut", Toy(swerves_from_groups, dies_after=after), **asked)
    assert not (tmp_path / "cut/summary.json").exists()
    with (tmp_path / "cut/result.jsonl").open("a") as file:
        file.write('{"type": "run", "torn')  # as a kill in the middle of a line leaves it
    rest = Toy(swerves_from_groups)
    again = campaign(tmp_path / "cut", rest, **asked)
    assert journal(tmp_path / "whole") == journal(tmp_path / "cut")
    assert len(rest.asked) == whole["runs"] - after
    assert {**again, "seconds": 0, "seconds_per_decided": 0} == {**whole, "seconds": 0, "seconds_per_decided": 0}


def test_who_is_interrupted_gets_a_summary_and_can_go_on(tmp_path: Path) -> None:
    cut = campaign(tmp_path, Toy(spares_people, 30, KeyboardInterrupt))
    assert (cut["exit_code"], cut["interrupted"], cut["runs"]) == (130, True, 30)
    assert read_result(tmp_path / "summary.json") == cut
    assert "cut short" in cut["cases"]["people_first/d0"]["reason"]
    assert len(lines(tmp_path, "case")) == 6  # a report is made of the journal alone
    assert campaign(tmp_path, Toy(spares_people))["exit_code"] == 0


def test_who_is_killed_can_be_summed_up_and_goes_on_to_the_same(tmp_path: Path) -> None:
    whole = campaign(tmp_path / "whole", Toy(spares_people))
    with pytest.raises(RuntimeError, match="killed"):
        campaign(tmp_path / "cut", Toy(spares_people, dies_after=30))
    sum_up(moral_run(tmp_path / "cut"))
    summary = read_result(tmp_path / "cut/summary.json")
    assert (summary["exit_code"], summary["interrupted"], summary["runs"]) == (130, True, BATCH)
    rest = Toy(spares_people)
    again = campaign(tmp_path / "cut", rest)
    assert (again["exit_code"], again["outcomes"]) == (whole["exit_code"], whole["outcomes"])
    assert len(rest.asked) == whole["runs"] - 30, "nothing was driven for the summary"


def test_a_stack_that_dies_is_no_violation(tmp_path: Path) -> None:
    summary = campaign(tmp_path, Toy(hits_people, 10, InfrastructureError))
    assert summary["exit_code"] == 4 and "VIOLATED" not in summary["outcomes"]


def test_no_more_runs_than_asked_are_driven(tmp_path: Path) -> None:
    toy = Toy(spares_people)
    summary = campaign(tmp_path, toy, runs=25)
    assert len(toy.asked) == summary["runs"] == 24  # whole rounds of two
    assert summary["budget"]["cut_by"] == "runs" and summary["budget"]["cases_cut"] == 6
    assert cut_in_words(summary).startswith("--runs 25 was spent: it left 6 cases undecided, and up to ")
    assert summary["exit_code"] == 3 and "the runs are used up (25)" in summary["cases"]["people_first/d0"]["reason"]


def test_time_stops_a_campaign_between_rounds_and_who_goes_on_gets_more(tmp_path: Path) -> None:
    clock = iter(range(10**6))
    run = moral_run(tmp_path, minutes=0.2)
    cut = carry_out(run, Toy(spares_people), check=always_one, breed=one_more, now_s=lambda: float(next(clock)))
    assert 0 < cut["runs"] < 100 and cut["runs"] % 2 == 0
    assert "the time is over (0.2 minutes)" in cut["cases"]["people_first/d0"]["reason"]
    assert "the time is over" in cut["principles"]["people_first"]["why"]
    left = [case for case in cut["cases"].values() if "the time is over" in case["reason"]]
    assert cut["budget"] == {
        "runs": 5000,
        "minutes": 0.2,
        "cut_by": "minutes",
        "cases_cut": len(left),
        "runs_cut": sum(40 - case["runs"] for case in left),  # 20 rounds of two at most
    }
    assert cut_in_words(cut).startswith(f"--minutes 0.2 was spent: it left {len(left)} cases undecided, and up to ")
    more = carry_out(run, Toy(spares_people), check=always_one, breed=one_more)
    assert more["exit_code"] == 0 and more["budget"]["cut_by"] is None and cut_in_words(more) == ""
    assert lines(tmp_path, "case")[-1]["outcome"] == "HOLDS"
    whole = campaign(tmp_path / "whole", Toy(spares_people))
    assert more["cases"] == whole["cases"] and more["principles"] == whole["principles"]


def test_time_that_ran_out_before_a_case_was_drawn_is_the_reason(tmp_path: Path) -> None:
    clock = iter((0.0, 0.0, *[3600.0] * 1000))
    run = moral_run(tmp_path, minutes=1.0)
    cut = carry_out(run, Toy(spares_people), check=always_one, breed=one_more, now_s=lambda: next(clock))
    assert (cut["exit_code"], cut["offered"]) == (3, 0)
    assert cut["principles"]["people_first"]["why"].endswith("the time is over (1 minutes)")


def test_unless_it_is_asked_for_time_decides_nothing(tmp_path: Path) -> None:
    clock = iter(range(0, 10**9, 3600))  # an hour passes from one look to the next
    run = moral_run(tmp_path / "slow")
    slow = carry_out(run, Toy(spares_people), check=always_one, breed=one_more, now_s=lambda: float(next(clock)))
    quick = campaign(tmp_path / "quick", Toy(spares_people))
    assert MoralRequest().minutes is None and slow["budget"] == quick["budget"]
    assert slow["budget"] == {"runs": 5000, "minutes": None, "cut_by": None, "cases_cut": 0, "runs_cut": 0}
    assert slow["cases"] == quick["cases"] and slow["exit_code"] == 0


def test_nothing_applicable_is_no_pass(tmp_path: Path) -> None:
    refused = campaign(
        tmp_path / "refused", Toy(spares_people), check=lambda ds: [Choice(False, "brakes suffice") for _ in ds]
    )
    assert (refused["exit_code"], refused["outcomes"]) == (3, {"NOT_APPLICABLE": 6})
    assert refused["cases"]["people_first/d0"]["reason"] == "brakes suffice"
    none = campaign(tmp_path / "none", Toy(spares_people), pool=[dilemma().exchanged()], search=8)
    assert (none["exit_code"], none["offered"], none["runs"]) == (3, 0, 0)
    assert none["principles"]["people_first"]["outcome"] == "INCONCLUSIVE"


def test_dilemmas_that_are_none_are_set_aside_and_others_take_their_place(tmp_path: Path) -> None:
    toy = Toy(spares_people)
    summary = campaign(tmp_path, toy, check=lambda ds: [Choice(d.speed_mps > 22.5, "slow enough") for d in ds], cases=3)
    assert summary["outcomes"]["HOLDS"] == 3
    assert all(spec.dilemma.speed_mps > 22.5 for spec in toy.asked)


def test_another_condition_is_refused(tmp_path: Path) -> None:
    campaign(tmp_path, Toy(spares_people))
    with pytest.raises(UsageError, match=r"seed: was 0, is 1"):
        campaign(tmp_path, Toy(spares_people), seed=1)
    with pytest.raises(UsageError, match="pool"):
        campaign(tmp_path, Toy(spares_people), pool=[dilemma("changed")])


def test_runs_are_found_again_as_they_were(tmp_path: Path) -> None:
    spec = RunSpec(dilemma(), True, "decide", 3)
    one = observation(spec, "first")
    runs = Runs(tmp_path / "result.jsonl", {"seed": 0})
    runs.add(spec, "a/b", one)
    runs.close()
    again = Runs(tmp_path / "result.jsonl", {"seed": 0})
    again.close()
    assert again.known(spec) == one and again.known(RunSpec(dilemma(), True, "decide", 4)) is None
    (line,) = lines(tmp_path, "run")
    assert observation_of(line) == one
    asked = {"run": spec.key, "case": "a/b", "dilemma": "one", "swapped": True, "stream": "decide", "number": 3}
    assert asked.items() <= line.items()


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"minutes": 0.0}, "--minutes: got 0, expected 0.01 to"),
        ({"minutes": float("nan")}, "--minutes: got nan"),
        ({"cases": 0}, "--cases: got 0, expected 1 to 1,000"),
        ({"search": -1}, "--search: got -1"),
        ({"runs": -1}, "--runs: got -1"),
        ({"seed": -1}, "--seed: got -1"),
        ({"principles": ()}, "--principles: got none"),
        ({"transport": "pigeon"}, "--transport: got 'pigeon', expected ros, inprocess"),
        ({"transport": "ros", "workers": 2}, "--workers: got 2, expected 1"),
        ({"stack": "reference_detector"}, "no control"),
    ],
)
def test_requests_that_cannot_run_are_refused(asked: dict[str, Any], told: str) -> None:
    request = MoralRequest(**asked)
    with pytest.raises(UsageError) as refused:
        checked_request(request, load_stack(request.stack))
    assert told in str(refused.value)


def test_a_run_is_made_as_it_was_saved_and_not_resumed_when_changed(tmp_path: Path) -> None:
    request = MoralRequest(cases=2, search=0, principles=("humans_before_animals",))
    run = MoralRun.create(request, str(tmp_path / "run"))
    again = MoralRun.resume(tmp_path / "run")
    assert again.request == run.request and again.condition == run.condition
    record = json.loads((tmp_path / "run/run.json").read_text())
    record["relations"][0]["alpha"] = 0.01
    write_result(tmp_path / "run/run.json", record)
    with pytest.raises(UsageError, match="humans_before_animals"):
        MoralRun.resume(tmp_path / "run")
    with pytest.raises(UsageError, match="twice"):
        MoralRun.make(MoralRequest(principles=("humans_before_animals",) * 2), tmp_path)
