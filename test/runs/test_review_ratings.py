# SPDX-License-Identifier: Apache-2.0
"""What raters said: agreement by published examples, the file of ratings, verdicts against majorities, triage."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from made_runs import verdicts

from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.base.stats.rater_agreement import fleiss_kappa, kappa_interval
from mt_nodes.engine.waivers import load_waivers
from mt_nodes.runs.review.rating_summary import majority, summarise
from mt_nodes.runs.review.ratings import Rating, Ratings, read_download, read_ratings
from mt_nodes.runs.review.sample import CHECK, HOLDS, VIOLATED, Sample, SampledCase, by_stratum, shares

#: Fleiss (Psychological Bulletin 76, 1971), table 1: diagnoses of 30 patients by 6 psychiatrists each.
DIAGNOSES = """00060 03003 01401 00006 03030 20400 00402 20310 20040 00006 10050 11040 03300 10050 02031
               00501 30012 51000 02040 10203 00006 01050 02013 20040 10041 05010 40002 02040 10500 00006"""
#: A worked example that is widely used: 10 subjects, 14 raters, 5 categories.
WORKED = [
    *([0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1]),
    *([7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7]),
]


def table(rows: Any) -> np.typing.NDArray[np.int64]:
    return np.array(rows, dtype=np.int64)


def test_kappa_is_that_of_published_examples() -> None:
    diagnoses = table([[int(digit) for digit in row] for row in DIAGNOSES.split()])
    assert (diagnoses.sum(axis=1) == 6).all() and len(diagnoses) == 30
    assert fleiss_kappa(diagnoses) == pytest.approx(0.430, abs=5e-4)
    assert fleiss_kappa(table(WORKED)) == pytest.approx(0.210, abs=5e-4)


def test_kappa_with_other_numbers_of_raters_by_hand() -> None:
    # Agreement 1 and 0 of the two cases that have two ratings; shares of "yes" 1, 1/2 and 0: chance agrees in half.
    assert fleiss_kappa(table([[2, 0], [1, 1], [0, 1], [0, 0]])) == pytest.approx(0.0)
    # Without the last case's one rating the shares are 3/4 and 1/4: chance agrees in 5/8.
    assert fleiss_kappa(table([[2, 0], [1, 1]])) == pytest.approx((1 / 2 - 5 / 8) / (1 - 5 / 8))


@pytest.mark.parametrize("rows", [[[3, 0], [2, 0]], [[1, 0], [0, 1]], [[0, 0]], np.empty((0, 2))])
def test_kappa_is_not_defined_without_two_ratings_or_two_answers(rows: Any) -> None:
    assert fleiss_kappa(table(rows)) is None and kappa_interval(table(rows)) is None


@given(
    st.lists(st.lists(st.integers(0, 4), min_size=3, max_size=3), min_size=1, max_size=12), st.permutations(range(3))
)
def test_kappa_knows_no_order_and_is_at_most_one(rows: list[list[int]], order: list[int]) -> None:
    kappa = fleiss_kappa(table(rows))
    again = fleiss_kappa(table(rows)[::-1][:, order])
    assert again == (None if kappa is None else pytest.approx(kappa))
    assert kappa is None or kappa <= 1.0 + 1e-12


def test_the_interval_holds_kappa_and_narrows_with_more_cases() -> None:
    low, high = kappa_interval(table(WORKED)) or (0.0, 0.0)
    assert low < 0.210 < high
    closer = kappa_interval(table(WORKED * 9)) or (0.0, 0.0)
    assert closer[1] - closer[0] < (high - low) / 2
    assert kappa_interval(table(WORKED)) == (low, high)  # drawn by a seed


def rating(
    case: str, rater: str = "Ada", wrong: str | None = "no", realistic: int | None = 4, comment: str = ""
) -> Rating:
    return Rating(case, rater, realistic, wrong, comment)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"rater": " "}, "rater: got ''"),
        ({"rater": "x" * 61}, "at most 60"),
        ({"rater": "a\nb"}, "printable"),
        ({"rater": None}, "expected a text"),
        ({"realistic": 6}, "expected 1 to 5"),
        ({"realistic": True}, "expected 1 to 5"),
        ({"realistic": "4"}, "expected 1 to 5"),
        ({"wrong": "maybe"}, "expected yes, no"),
        ({"wrong": ["no"]}, "expected yes, no"),
        ({"comment": "x" * 2001}, "at most 2000"),
        ({"comment": "\ud800"}, "expected a text"),
        ({"verdict": "HOLDS"}, "verdict"),
    ],
)
def test_what_is_no_rating_is_refused(changed: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=r"^r[.: ]") as refused:
        Rating.read({**rating("a").as_plain(), **changed}, "r")
    assert told in str(refused.value)
    with pytest.raises(UsageError, match="expected a mapping"):
        Rating.read([changed], "r")


def test_the_last_rating_of_a_person_counts_and_all_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "ratings.jsonl"
    with Ratings(path, ["a", "b"]) as ratings:
        assert ratings.add(rating("a")) and not ratings.add(rating("a"))
        assert ratings.add(rating("a", wrong="yes")) and ratings.add(rating("a", "Grace"))
        with pytest.raises(UsageError, match="none of this review"):
            ratings.add(rating("c"))
        with pytest.raises(UsageError, match="another run is writing"):
            Ratings(path, [])
    with path.open("ab") as file:
        file.write(b'{"schema": 1, "type": "rating", "case": "b"')  # the power failed
    with Ratings(path, ["a", "b"]) as ratings:
        assert ratings.rated_by("Ada") == ["a"] and ratings.add(rating("b"))
    found = read_ratings(path)
    assert {key: r.wrong for key, r in found.items()} == {("a", "Ada"): "yes", ("a", "Grace"): "no", ("b", "Ada"): "no"}
    assert len(path.read_text().splitlines()) == 4
    path.write_text(path.read_text().replace("yes", "no "))
    with pytest.raises(InfrastructureError, match="damaged"):
        read_ratings(path)


def test_downloads_are_of_one_review(tmp_path: Path) -> None:
    path = tmp_path / "ratings.json"
    path.write_text(json.dumps({"schema": 1, "review": "r1", "ratings": [rating("a").as_plain()]}))
    assert read_download(path, "r1") == [rating("a")]
    with pytest.raises(UsageError, match="no ratings of this review"):
        read_download(path, "r2")
    for text in ("[]", "{", '{"review": "r1"}'):
        path.write_text(text)
        with pytest.raises(UsageError):
            read_download(path, "r1")


@given(st.integers(3, 200))
def test_cases_are_shared_out_whole(cases: int) -> None:
    found = shares(cases)
    assert sum(found.values()) == cases and min(found.values()) >= 1


def test_strata_go_by_verdict_and_arm() -> None:
    lines = [{**v.as_plain(), "type": "verdict"} for v in verdicts("noise", [2], 3)]
    found = by_stratum([{"type": "condition"}, *lines, {**lines[0], "outcome": "SKIPPED"}])
    assert found[VIOLATED] == ["0/2/noise/0"] and found[HOLDS] == ["0/0/noise/0", "0/1/noise/0"]
    assert len(found[CHECK]) == 6 and all("@noise" in pair for pair in found[CHECK])


def sample(**strata: int) -> Sample:
    names = {"violated": VIOLATED, "holds": HOLDS, "check": CHECK}
    draw = {"check": "0@noise"}
    relation = {"check": "identity"}
    cases = tuple(
        SampledCase(f"{name}{n}", f"0/{n}/{relation.get(name, 'noise')}/{draw.get(name, '0')}", names[name], "x")
        for name, count in strata.items()
        for n in range(count)
    )
    return Sample("r1", 0, len(cases), 2, {VIOLATED: 10, HOLDS: 990, CHECK: 2000}, cases, {})


def said(**answers: str) -> list[Rating]:
    """Ratings by case: a letter a rater, ``y`` wrong, ``n`` right, ``?`` cannot tell."""
    words = {"y": "yes", "n": "no", "?": None}
    return [rating(case, f"r{i}", words[a]) for case, letters in answers.items() for i, a in enumerate(letters)]


@pytest.mark.parametrize(
    ("letters", "most"), [("yyn", "yes"), ("nny", "no"), ("yn", None), ("", None), ("y??", "yes"), ("??", None)]
)
def test_majorities(letters: str, most: str | None) -> None:
    assert majority(said(case=letters)) == most


def test_verdicts_against_people_by_hand() -> None:
    ratings = said(
        violated0="yyn", violated1="yy", violated2="yy", violated3="nn", holds0="nn", holds1="y", holds2="yn"
    )
    found = summarise(sample(violated=4, holds=3, check=2), [*ratings, *said(check0="n", check1="y", strange="y")])
    one = found["confusion"]
    assert [one[k] for k in ("tp", "fp", "fn", "tn", "undecided")] == [3, 1, 1, 1, 1]
    assert one["precision"]["rate"] == 3 / 4 and one["recall"]["rate"] == 3 / 4 and one["agreement"] == 4 / 6
    # Of 10 violated 3/4 are wrong, of 990 that hold a half is: all but few of what is wrong was not found.
    assert one["recall_in_run"]["rate"] == pytest.approx(7.5 / (7.5 + 495))
    low, high = one["recall_in_run"]["ci95"]
    assert low < 7.5 / 502.5 < high <= 1.0
    assert found["checks"] == {"wrong": 1, "right": 1, "undecided": 0}
    assert found["complete"] == 6 and found["ratings"] == 16 and found["cases"] == {VIOLATED: 4, HOLDS: 3, CHECK: 2}


def test_few_cases_without_a_miss_are_no_certainty() -> None:
    found = summarise(
        sample(violated=4, holds=2), said(**{f"violated{i}": "yy" for i in range(4)}, holds0="n", holds1="n")
    )
    one = found["confusion"]["recall_in_run"]
    assert one["rate"] == 1.0 and one["ci95"][1] == 1.0
    # Whoever saw 2 of 990 that hold cannot rule out that a tenth of them is wrong, ten times what was violated.
    assert one["ci95"][0] < 0.1


def test_precision_and_recall_of_the_published_study() -> None:
    """AutoMT, user study of 118 pairs: 29.3, 14.8 and 19.0 % give 66.4 and 60.7 %."""
    tp, fp, fn, tn = 29.3, 14.8, 19.0, 36.9
    assert tp / (tp + fp) == pytest.approx(0.664, abs=5e-4) and tp / (tp + fn) == pytest.approx(0.607, abs=5e-4)
    counts = {name: round(1.18 * share) for name, share in (("tp", tp), ("fp", fp), ("fn", fn), ("tn", tn))}
    answers = {f"violated{i}": "y" if i < counts["tp"] else "n" for i in range(counts["tp"] + counts["fp"])}
    answers |= {f"holds{i}": "y" if i < counts["fn"] else "n" for i in range(counts["fn"] + counts["tn"])}
    cases = sample(violated=counts["tp"] + counts["fp"], holds=counts["fn"] + counts["tn"])
    one = summarise(cases, said(**answers))["confusion"]
    assert one["precision"]["rate"] == pytest.approx(0.664, abs=0.01)
    assert one["recall"]["rate"] == pytest.approx(0.607, abs=0.01)


def test_triage_proposes_waivers_that_can_be_read(tmp_path: Path) -> None:
    day = datetime.date(2026, 1, 1)
    found = summarise(sample(violated=2, holds=2), said(violated0="nny", violated1="y", holds0="yy", holds1="n"), day)
    triage = found["triage"]
    assert [row["pair"] for row in triage["false_alarms"]] == ["0/0/noise/0"]
    assert [row["pair"] for row in triage["misses"]] == ["0/0/noise/0"] and triage["unrealistic"] == []
    path = tmp_path / "waivers.yaml"
    path.write_text(yaml.safe_dump(triage["waivers"]))
    (waiver,) = load_waivers(path)
    assert (waiver.pair, waiver.expires) == ("0/0/noise/0", datetime.date(2026, 4, 1))
    assert waiver.reason == "2 of 3 people call it right"


def test_realism_by_relation_and_as_a_whole() -> None:
    rows = [rating("violated0", f"r{i}", realistic=points) for i, points in enumerate((1, 2, 4))]
    rows += [rating("holds0", f"r{i}", realistic=points) for i, points in enumerate((5, 5, None))]
    found = summarise(sample(violated=1, holds=1, check=1), [*rows, rating("check0", realistic=5)])
    assert found["realistic"]["mean"] == pytest.approx(17 / 5) and found["realistic"]["median"] == 4
    assert found["realistic"]["share"] == 3 / 5 and found["realistic"]["cannot_tell"] == 1
    assert found["relations"]["noise"]["ratings"] == 6 and found["relations"]["noise"]["share"] == 3 / 5
    assert [row["realistic"] for row in found["triage"]["unrealistic"]] == [2]


def test_nothing_rated_is_nothing_measured() -> None:
    found = summarise(sample(violated=1, holds=1, check=1), [])
    assert found["realistic"]["kappa"] is None and found["confusion"]["precision"] is None
    assert found["confusion"]["recall_in_run"] is None and found["confusion"]["agreement"] is None
    json.dumps(found, allow_nan=False)
