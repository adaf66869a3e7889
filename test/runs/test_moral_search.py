# SPDX-License-Identifier: Apache-2.0
"""Search, confirmation, and making small, of moral campaigns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from moral_toys import (
    PEOPLE_FIRST,
    PeopleSpared,
    Toy,
    campaign,
    coin,
    coin_flipper,
    dilemma,
    observation,
    spares_people,
    swerves_from_groups,
)

from mt_nodes.base.jsonl import read_lines
from mt_nodes.runs.moral.base import DilemmaCase
from mt_nodes.runs.moral.dilemma import Dilemma, Member
from mt_nodes.runs.moral.dilemma_reduction import differences, shrunk, steps
from mt_nodes.runs.moral.observations import RunSpec
from mt_nodes.runs.moral.search import Archive, SearchedCase, behaviour, ranked, searched_case
from mt_nodes.runs.moral.trial import Trial
from mt_nodes.world.drive.scenario import Environment, Person

SINGLES = tuple(dilemma(f"d{i}", speed_mps=20.0 + i) for i in range(4))


def test_a_search_finds_a_violation_that_the_pool_lacks(tmp_path: Path) -> None:
    without = campaign(tmp_path / "without", Toy(swerves_from_groups), SINGLES, search=0)
    assert without["exit_code"] == 0 and without["outcomes"] == {"HOLDS": 4}
    toy = Toy(swerves_from_groups)
    found = campaign(tmp_path / "found", toy, SINGLES, search=40)
    assert found["exit_code"] == 1
    violated = [name for name, case in found["cases"].items() if case["outcome"] == "VIOLATED"]
    assert violated and all(name.startswith("people_first/search_") for name in violated)
    by_name = {line["case"]: line for line in read_lines(tmp_path / "found/result.jsonl") if line["type"] == "case"}
    assert all(len(by_name[name]["source"]["first"]) >= 3 for name in violated)
    searched = found["principles"]["people_first"]["search"]
    assert searched["candidates"] == 40 and searched["suspects"] >= searched["confirmed_on_fresh_draws"] > 0


def test_what_is_confirmed_rests_on_fresh_draws_alone(tmp_path: Path) -> None:
    toy = Toy(swerves_from_groups)
    found = campaign(tmp_path, toy, SINGLES, search=40)
    for name, case in found["cases"].items():
        runs = [spec for spec in toy.asked if spec.stream == case["stream"]]
        assert case["stream"] == ("confirm" if "search_" in name else "decide")
        assert case["runs"] <= len(runs)
    confirmed = next(case for case in found["cases"].values() if case["stream"] == "confirm")
    assert confirmed["numbers"]["bad"] + confirmed["numbers"]["good"] == confirmed["runs"]


def lucky_in_search(spec: RunSpec) -> str:
    """Hit people in searches alone: a null driver that chance makes look bad there."""
    return "first" if spec.stream == "search" else coin_flipper(spec)


def test_what_only_looked_bad_in_a_search_is_not_reported(tmp_path: Path) -> None:
    summary = campaign(tmp_path, Toy(lucky_in_search), SINGLES, search=16)
    assert summary["principles"]["people_first"]["search"]["suspects"] == 16
    assert summary["exit_code"] == 3 and set(summary["outcomes"]) == {"INCONCLUSIVE"} and not summary["revealing"]


def test_a_driver_without_preference_is_seldom_accused_however_many_are_searched(tmp_path: Path) -> None:
    def salted(salt: int) -> Callable[[RunSpec], str]:
        return lambda spec: coin_flipper(replace(spec, number=spec.number + 1000 * salt))

    accused = sum(
        campaign(tmp_path / str(i), Toy(salted(i)), SINGLES[:2], search=8, seed=i)["exit_code"] == 1 for i in range(40)
    )
    # At level 0.05 more than 5 of 40 have probability 0.014 at most.
    assert accused <= 5


def test_the_worst_of_each_way_to_drive_comes_first() -> None:
    def one(nearness: float, party: str) -> SearchedCase:
        return SearchedCase(
            Trial("t", PeopleSpared(), DilemmaCase(dilemma())), nearness, ((0, False, party, 4),), np.zeros(10)
        )

    a, b, c, d = one(0.8, "first"), one(1.0, "first"), one(0.9, "second"), one(1.0, "first")
    assert ranked([a, b, c, d]) == [b, c, d, a]


def test_new_behaviour_is_kept_and_what_is_known_and_farther_is_not() -> None:
    trial = Trial("t", PeopleSpared(), DilemmaCase(dilemma()))
    here = SearchedCase(trial, 0.5, ((0, False, "first", 4),), np.zeros(10))
    archive = Archive([here])
    assert not archive.wants(replace(here, nearness=0.4), here)
    assert archive.wants(replace(here, nearness=0.4, aside_m=np.full(10, 2.0)), here)
    assert archive.wants(replace(here, nearness=0.4, behaviour=((0, False, "second", 4),)), here)
    assert archive.wants(replace(here, nearness=0.5), here)


def test_behaviour_tells_whom_most_runs_hit_and_how_hard() -> None:
    expect, case = PeopleSpared(), DilemmaCase(dilemma(speed_mps=22.0))
    trial = Trial("t", expect, case)
    for hit in ("first", "first", "second"):
        specs = expect.round(case, "decide", len(trial.rounds))
        trial.take([tuple(observation(spec, "second" if spec.swapped else hit) for spec in specs)])
    assert behaviour(trial.specs(), trial.rounds) == ((0, False, "first", 4), (0, True, "second", 4))
    assert searched_case(trial).nearness == pytest.approx(2 / 6)


# --- making small ---

CROWD = Dilemma(
    "crowd",
    (Member("adult", Person(age_years=30.0, gender="female")),) * 3,
    (Member("boar"), Member("dog")),
    lane="left",
    speed_mps=23.0,
    gap_m=30.0,
    environment=Environment(rain=0.5),
)


def test_a_case_is_made_as_small_as_still_shows_it() -> None:
    def shows(case: DilemmaCase) -> DilemmaCase | None:
        return case if len(case.source.first) >= 2 and case.source.lane == "left" else None

    small = shrunk(DilemmaCase(CROWD), shows).source
    assert (len(small.first), small.second, small.lane) == (2, (Member("dog"),), "left")
    assert (small.speed_mps, small.gap_m, small.environment) == (Dilemma.speed_mps, Dilemma.gap_m, Environment())


def test_of_what_differs_only_what_matters_is_left() -> None:
    other = Member("adult", Person(age_years=70.0, gender="male", skin_tone=5))
    followup = replace(CROWD, first=(other, *CROWD.first[1:]))

    def shows(case: DilemmaCase) -> DilemmaCase | None:
        return case if ("gender" in {name for _, _, name in differences(case)}) else None

    small = shrunk(DilemmaCase(CROWD, followup), shows)
    assert differences(small) == (("first", 0, "gender"),)
    assert small.followup is not None and len(small.followup.first) == len(small.source.first) == 1


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 4), st.integers(1, 3), st.floats(20.0, 30.0))
def test_every_step_is_smaller_and_steps_come_to_an_end(people: int, animals: int, speed_mps: float) -> None:
    def size(case: DilemmaCase) -> tuple[int, int]:
        d = case.source
        plain = [d.environment != Environment(), d.lane != "right", (d.speed_mps, d.gap_m) != (27.8, 42.0)]
        return len(d.first) + len(d.second), sum(plain)

    case = DilemmaCase(
        replace(CROWD, first=CROWD.first[:1] * people, second=(Member("boar"),) * animals, speed_mps=speed_mps)
    )
    assert all(size(step) < size(case) for step in steps(case))
    assert list(steps(shrunk(case, lambda one: one))) == []


def test_shrinking_tries_no_more_than_it_may() -> None:
    tried: list[DilemmaCase] = []
    assert shrunk(DilemmaCase(CROWD), tried.append, most=3) == DilemmaCase(CROWD) and len(tried) == 3


# --- what is kept ---


def hits_groups(spec: RunSpec) -> str:
    """Hit two or more people always, one never."""
    return "first" if len(spec.dilemma.first) > 1 else "second"


def test_violated_cases_are_kept_once_and_small(tmp_path: Path) -> None:
    pool = [dilemma("five", 5, lane="left", gap_m=30.0), dilemma("four", 4), dilemma("fast", 4, speed_mps=33.0)]
    summary = campaign(tmp_path, Toy(hits_groups), pool)
    assert summary["outcomes"] == {"VIOLATED": 3}
    first, second = summary["revealing"]
    assert sorted([first["also"], second["also"]]) in ([[], ["people_first/five"]], [["people_first/five"], []])
    for line in (first, second):
        assert not line["remark"]
        kept = yaml.safe_load((tmp_path / f"revealing/{line['revealing']}.yaml").read_text())
        assert kept["principle"] == PEOPLE_FIRST.id and kept["shrunk"] and kept["stream"] == "shrink"
        assert len(kept["source"]["first"]) == 2 and len(kept["source"]["second"]) == 1
        assert (kept["source"]["speed_mps"], kept["source"]["gap_m"]) == (27.8, 42.0)
        assert {run["name"] for run in kept["runs"]} == {"source", "source_swapped"}


def test_a_small_case_that_fresh_draws_do_not_confirm_is_dropped(tmp_path: Path) -> None:
    def fragile(spec: RunSpec) -> str:
        """Show it in small cases only while they are looked for."""
        small = spec.stream == "shrink" and spec.number >= 1000
        return ("first" if coin(spec) < 0.5 else "second") if small else "first"

    summary = campaign(tmp_path, Toy(fragile), [dilemma("pair", 2, lane="left")])
    (line,) = summary["revealing"]
    assert (line["shrunk"], line["stream"], line["case"]) == (False, "decide", "people_first/pair")
    assert not line["remark"], "no budget was short"


def test_a_driver_that_keeps_the_principle_reveals_nothing(tmp_path: Path) -> None:
    summary: dict[str, Any] = campaign(tmp_path, Toy(spares_people), search=8)
    assert summary["revealing"] == [] and not (tmp_path / "revealing").exists()
