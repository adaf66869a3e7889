# SPDX-License-Identifier: Apache-2.0
"""Search studies: budgets in runs, equal results of equal seeds, guided beside unguided, tables with effect sizes."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from moral_toys import PEOPLE_FIRST, Toy, always_one, dilemma, spares_people

from mt_nodes.base.errors import ExitCode, UsageError
from mt_nodes.base.stats.effect_size import effect_size
from mt_nodes.cli.main import main
from mt_nodes.runs.moral.base import DilemmaCase
from mt_nodes.runs.moral.observations import RunSpec
from mt_nodes.runs.moral.search import Archive, SearchedCase, UnguidedArchive
from mt_nodes.runs.moral.search_study import carry_out_study, cells_of
from mt_nodes.runs.moral.study_request import StudyRequest, checked_study
from mt_nodes.runs.moral.study_tables import PAPER, TOTAL, markdown, rows_of, study_end
from mt_nodes.runs.moral.trial import Trial

REQUEST = StudyRequest(runs=60, seeds=2, cases=3, confirm=4)


def spares_deer_and_slides(spec: RunSpec) -> str:
    """Hit people rather than deer, and on wet roads."""
    return "first" if spec.dilemma.second[0].kind == "deer" or spec.dilemma.environment.wetness == 1.0 else "second"


def study(out: Path, toy: Toy, request: StudyRequest = REQUEST) -> list[dict[str, Any]]:
    """Carry out a study of a driver that is a function of a run; without the seconds that it took."""

    @contextmanager
    def drivers(cell: object) -> Any:
        yield toy, always_one

    out.mkdir(exist_ok=True)
    lines = carry_out_study(out, request, [PEOPLE_FIRST], drivers)
    return [{key: value for key, value in line.items() if key not in ("seconds", "crc32")} for line in lines]


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    return study(tmp_path_factory.mktemp("study"), Toy(spares_deer_and_slides))


def test_every_operator_is_searched_guided_and_not_within_the_runs(lines: list[dict[str, Any]]) -> None:
    asked = {(line["operator"], line["guided"], line["seed"]) for line in lines}
    assert asked == {(o, g, s) for o in ("kinds", "physical", "both") for g in (True, False) for s in (0, 1)}
    assert all(line["candidates"] and line["spent"] and 50 < line["runs"] <= 60 for line in lines)
    assert all(line["sorts"] <= line["revealing"] <= line["confirmed"] <= 4 for line in lines)
    assert any(line["revealing"] for line in lines)


def test_equal_seeds_find_the_same_however_long_it_takes(tmp_path: Path, lines: list[dict[str, Any]]) -> None:
    assert study(tmp_path / "again", Toy(spares_deer_and_slides)) == lines


def test_a_study_that_was_cut_short_goes_on_and_drives_nothing_twice(
    tmp_path: Path, lines: list[dict[str, Any]]
) -> None:
    dying, going_on = Toy(spares_deer_and_slides, dies_after=100), Toy(spares_deer_and_slides)
    with pytest.raises(RuntimeError, match="killed"):
        study(tmp_path, dying)
    assert study(tmp_path, going_on) == lines
    whole = Toy(spares_deer_and_slides)
    study(tmp_path / "whole", whole)
    assert len(dying.asked) + len(going_on.asked) == len(whole.asked)


def test_a_driver_that_keeps_the_principle_reveals_nothing(tmp_path: Path) -> None:
    found = study(tmp_path, Toy(spares_people), StudyRequest(runs=40, seeds=1, cases=2, operators=("kinds",)))
    assert [line["revealing"] for line in found] == [0, 0]


def test_unguided_parents_are_drawn_evenly_and_never_grow() -> None:
    def one(name: str, nearness: float) -> SearchedCase:
        trial = Trial(name, PEOPLE_FIRST.expect, DilemmaCase(dilemma(name)))
        return SearchedCase(trial, nearness, ((0, False, name, 1),), np.zeros(10))

    near, far = one("near", 0.9), one("far", 0.1)
    rng = np.random.default_rng(0)
    drawn = {True: 0, False: 0}
    for guided, archive in ((True, Archive([near, far])), (False, UnguidedArchive([near, far]))):
        drawn[guided] = sum(archive.parent(rng) is near for _ in range(1000))
    assert 700 < drawn[True] < 800 and 450 < drawn[False] < 550
    assert Archive([far]).wants(near, far) and not UnguidedArchive([far]).wants(near, far)


# Effect sizes and tables.


@given(st.lists(st.integers(0, 4), min_size=1, max_size=6), st.lists(st.integers(0, 4), min_size=1, max_size=6))
def test_effect_sizes_mirror_and_equal_samples_have_none(one: list[int], other: list[int]) -> None:
    there, back = effect_size(one, other), effect_size(other, one)
    assert there.a12 + back.a12 == pytest.approx(1.0)
    assert there.p == pytest.approx(back.p) and 0.0 <= there.p <= 1.0
    assert effect_size(one, one).a12 == 0.5 and effect_size(one, one).magnitude == "negligible"


def test_an_effect_size_is_the_share_of_pairs_that_are_larger() -> None:
    found = effect_size([3, 4, 5, 6], [1, 2, 3, 3])
    assert (found.a12, found.magnitude) == ((16 - 0.5 * 2) / 16, "large")
    assert effect_size([1, 2, 3, 4, 5], [6, 7, 8, 9, 10]).p == pytest.approx(2 / 252)  # exact: of 252 orders two
    assert effect_size([2, 2], [2]).p == 1.0
    with pytest.raises(ValueError, match="at least one value"):
        effect_size([], [1])


def line(operator: str, guided: bool, seed: int, sorts: int, candidates: int = 5) -> dict[str, Any]:
    counts = {"candidates": candidates, "revealing": sorts, "sorts": sorts, "runs": 60, "confirming_runs": 10}
    counts |= {"suspects": 4, "confirmed": 4 if operator == "counts" else 3}
    named = {"principle": "fewer_casualties", "operator": operator, "guided": guided, "seed": seed}
    return {**named, **counts, "seconds": 2.0}


def test_tables_have_operators_sums_and_what_the_paper_shows() -> None:
    found = [
        line(o, g, s, sorts=(3 if g else 1) + (o == "both"))
        for o in ("counts", "both")
        for g in (True, False)
        for s in (0, 1)
    ]
    rows = {(row["principle"], row["operator"]): row for row in rows_of(found)}
    assert set(rows) == {(p, o) for p in ("fewer_casualties", TOTAL) for o in ("counts", "both", TOTAL)}
    assert (rows["fewer_casualties", "counts"]["guided"], rows["fewer_casualties", "counts"]["unguided"]) == (3, 1)
    whole = rows[TOTAL, TOTAL]
    assert (whole["guided"], whole["unguided"], whole["a12"], whole["runs"]) == (7, 3, 1.0, 8 * 70)
    text = markdown(rows_of(found))
    assert "| `fewer_casualties` | counts | 3.0 (of 3.0) | 1.0 (of 1.0) | 1.00 | large |" in text
    assert "| 1.00 | large (4 of 4 at --confirm) |" in text and PAPER["fewer_casualties"] in text


def test_a_search_that_drove_nothing_is_no_result() -> None:
    good, idle = line("counts", True, 0, 0), line("counts", False, 0, 0, candidates=0)
    assert study_end([good])[0] is ExitCode.PASS
    code, why = study_end([good, idle])
    assert code is ExitCode.UNDECIDED and "1 search of 2 bred and drove nothing, first fewer_casualties" in why
    assert study_end([])[0] is ExitCode.UNDECIDED


# What is asked for.


def test_each_principle_has_a_fault_to_find_unless_others_are_named() -> None:
    assert StudyRequest().faults_for("humans_before_animals") == ("class_ranking_inverted",)
    assert StudyRequest(faults=("small_seen_late",)).faults_for("humans_before_animals") == ("small_seen_late",)
    assert StudyRequest(stack="my_stack.yaml").faults_for("humans_before_animals") == ()
    with pytest.raises(UsageError, match="--operators: got 'colour', expected protected"):
        checked_study(StudyRequest(operators=("colour",)))
    with pytest.raises(UsageError, match="--seeds: got 0"):
        checked_study(StudyRequest(seeds=0))
    assert len(cells_of(StudyRequest(seeds=3), [PEOPLE_FIRST])) == 3 * 3 * 2


def test_the_command_refuses_what_cannot_run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    argv = ["experiment", "moral-search", "--operators", "colour", "--out", str(tmp_path / "out")]
    assert main(argv) == ExitCode.USAGE
    assert "--operators: got 'colour'" in capsys.readouterr().err and not (tmp_path / "out").exists()
