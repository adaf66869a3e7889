# SPDX-License-Identifier: Apache-2.0
"""Thresholds of scores: a relation's own, else the stack's, else the defaults; and when they are no good."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from mt_nodes.base.errors import UsageError
from mt_nodes.data.output_traits import DEFAULT_THRESHOLDS, OutputTraits, Thresholds
from mt_nodes.data.outputs import Detections, ImageBoxes, Output
from mt_nodes.engine.score_file import ScoreFile, read_scores
from mt_nodes.engine.summary.score_range import (
    FIRST_ANSWERS,
    ScoreFalls,
    ScoreRange,
    proposal,
    score_line,
    score_notes,
)
from mt_nodes.engine.summary.summary import RelationInfo, summarise
from mt_nodes.relations.checks.boxes import BoxesKept
from mt_nodes.relations.checks.obstacle_checks import ObstaclesKept
from mt_nodes.relations.relation import load_suite
from mt_nodes.stacks.stack import Stack, load_stack

unit = st.floats(0.0, 1.0)


def stack_with(tmp_path: Path, scores: Any) -> Stack:
    file = tmp_path / "mine.yaml"
    file.write_text(json.dumps({"callable": "my_model:detect", "scores": scores}))
    return load_stack(str(file))


def test_a_stack_file_says_thresholds_and_leaves_what_it_does_not_say(tmp_path: Path) -> None:
    stack = stack_with(tmp_path, {"detections": {"high": 0.7}, "boxes": {"high": 0.4, "low": 0.2}})
    assert stack.scores == {"detections": Thresholds(0.7, 0.3), "boxes": Thresholds(0.4, 0.2)}
    assert load_stack("reference_detector").scores == {}


@pytest.mark.parametrize(
    ("scores", "text"),
    [
        ({"boxes": {"high": 0.4}}, "scores.boxes: score_low 0.5 is above score_high 0.4; give both"),
        ({"boxes": {"high": 0.4, "low": 0.6}}, "score_low 0.6 is above score_high 0.4"),
        ({"detections": {"high": 1.2}}, "scores.detections.high: got 1.2, expected 0 to 1"),
        ({"detections": {"hi": 0.5}}, "unknown parameter 'hi'"),
        ({"detections": 0.5}, "expected a mapping of parameters"),
        ({"lanes": {"high": 0.5}}, "lanes"),
        ([0.5], "expected a mapping such as"),
    ],
)
def test_wrong_thresholds_are_refused_by_name(tmp_path: Path, scores: Any, text: str) -> None:
    with pytest.raises(UsageError, match=text):
        stack_with(tmp_path, scores)


def test_a_relation_takes_the_stacks_thresholds_and_keeps_its_own() -> None:
    traits = OutputTraits({"detections": Thresholds(0.8, 0.75), "boxes": Thresholds(0.4, 0.2)})
    names = ("noise_outside_roi_10", "fog_shows_no_more")
    found = {r.id: r.check for r in load_suite(names, traits=traits).relations}
    plain, own = found["noise_outside_roi_10"], found["fog_shows_no_more"]
    assert (plain.score_high, plain.score_low) == (0.8, 0.75)  # type: ignore[union-attr]
    # The relation demands from 0.7 on; what answers cannot be above that.
    assert (own.score_high, own.score_low) == (0.7, 0.7)  # type: ignore[union-attr]


def test_without_a_stacks_the_defaults_are_in_the_record() -> None:
    (relation,) = load_suite(("noise_outside_roi_10",)).relations
    assert (
        relation.as_plain()["check"]["obstacles_kept"] | {"score_high": 0.5, "score_low": 0.3}
        == (relation.as_plain()["check"]["obstacles_kept"])
    )


@given(st.one_of(st.none(), unit), st.one_of(st.none(), unit), unit, unit)
def test_thresholds_of_check_and_stack_always_fit(
    high: float | None, low: float | None, stack_high: float, stack_low: float
) -> None:
    stack = Thresholds(max(stack_high, stack_low), min(stack_high, stack_low))
    try:
        check = BoxesKept(score_high=high, score_low=low)
    except UsageError:
        default = DEFAULT_THRESHOLDS["boxes"]
        assert (default.low if low is None else low) > (default.high if high is None else high)
        return
    fit = check.of_stack(OutputTraits({"boxes": stack})).thresholds
    assert fit.low <= fit.high
    assert high in (None, fit.high) and low in (None, fit.low)
    if high is None and low is None:
        assert fit == stack


def detections(*score: float) -> Output:
    return Output(detections=Detections.make("base_link", None, np.zeros((len(score), 3)), score=score))


def found_in(*answers: Output, scores: dict[str, Thresholds] | None = None) -> ScoreRange:
    found = ScoreRange()
    for index, output in enumerate(answers):
        line = score_line((0, index), output, scores or {})
        assert line is not None
        found.take(json.loads(json.dumps(line)))
    return found


def test_what_is_never_demanded_is_said() -> None:
    boxes = Output(boxes=ImageBoxes.make("camera", None, np.zeros((2, 4)), score=[0.87, 0.3]))
    row = found_in(boxes, boxes).plain()["boxes"]
    assert (row["answers"], row["count"], row["least"], row["most"], row["demanded"]) == (2, 4, 0.3, 0.87, 0)
    (warning,) = found_in(boxes).warnings()
    assert "none has the score of 0.9" in warning and "the highest is 0.87" in warning
    assert "NOT_APPLICABLE" in warning and "scores: {boxes: {high: 0.53, low: 0.3}}" in warning


def test_a_stack_that_cuts_at_the_threshold_is_said() -> None:
    (warning,) = found_in(detections(0.5, 0.97)).warnings()
    assert "none has a score below 0.50" in warning and "{detections: {high: 0.69, low: 0.5}}" in warning


@pytest.mark.parametrize("score", [(0.35, 0.9), (0.05, 0.6), (1.0, 1.0), (0.25, 0.51)])
def test_thresholds_that_decide_are_not_warned_of(score: tuple[float, ...]) -> None:
    assert found_in(detections(*score)).warnings() == []


def test_what_is_seldom_demanded_is_said() -> None:
    answers = [detections(0.3, score) for score in (0.95, 0.45, 0.45, 0.6)]
    assert found_in(*answers[:2], detections()).warnings() == []  # where nothing is seen, nothing could be demanded
    row = found_in(*answers).plain()["detections"]
    assert (row["demanded"], row["demanded_in"], row["seen_in"]) == (2, 2, 4) and "warning" not in row
    few = found_in(*answers[:3])
    (warning,) = few.warnings()
    assert "6 detections in 3 answers of the stack 1 has the score of 0.5" in warning
    assert "in 2 of 3 answers that see any none is" in warning
    fit = Thresholds(**few.plain()["detections"]["proposal"])
    assert found_in(*answers[:3], scores={"detections": fit}).warnings() == []


def test_nothing_seen_is_nothing_said() -> None:
    assert found_in(detections()).plain() == {}
    assert score_line((0, 0), Output(), {}) is None


@given(st.lists(unit, min_size=2, max_size=30))
def test_what_is_proposed_is_not_warned_of(score: list[float]) -> None:
    least, most = min(score), max(score)
    high, low = proposal(least, most)
    assert least <= low <= max(high, least) <= 1.0
    if most - least >= 0.3:
        fit = {"detections": Thresholds(high, min(low, high))}
        assert found_in(detections(*score), scores=fit).warnings() == []


@given(st.lists(st.lists(unit, min_size=0, max_size=6), min_size=1, max_size=8))
def test_what_a_run_proposes_is_not_warned_of_by_the_next(scores: list[list[float]]) -> None:
    answers = [detections(*score) for score in scores]
    row = found_in(*answers).plain().get("detections", {})
    if "proposal" in row:
        assert found_in(*answers, scores={"detections": Thresholds(**row["proposal"])}).warnings() == []


def test_a_run_that_goes_on_does_not_write_a_bundle_again(tmp_path: Path) -> None:
    line = score_line((0, 3), detections(0.5), {})
    assert line is not None
    for written in (True, False):
        file = ScoreFile(tmp_path)
        assert (file.append(line) is not None) == written
        file.close()
    found = ScoreRange()
    list(found.passing(read_scores(tmp_path)))
    assert found.answers == 1


def test_a_warning_is_told_once_and_early_and_every_line_is_handed_on() -> None:
    handed: list[str] = []
    told: list[str] = []
    listen = score_notes(handed.append, told.append)
    lines = [json.dumps(score_line((0, index), detections(0.2, 0.4), {})) for index in range(2 * FIRST_ANSWERS)]
    for index, line in enumerate(lines):
        listen(line)
        assert len(told) == (index + 1 >= FIRST_ANSWERS)
    assert handed == lines


def test_a_flicker_at_the_threshold_and_a_car_gone_are_told_apart() -> None:
    falls = ScoreFalls()
    falls.take([(0.51, 0.49), (0.95, 0.0), (0.55, 0.2)])
    assert falls.plain() == {"near": 1, "clear": 2} and ScoreFalls().plain() == {}
    assert falls.plain(0.45) == {"near": 1, "clear": 2}
    falls.take([(0.52, 0.0)])  # of a stack that publishes from 0.45 on: it may have 0.44 now
    assert (falls.plain(), falls.plain(0.45)) == ({"near": 1, "clear": 3}, {"near": 2, "clear": 2})
    assert found_in(detections(0.45, 0.9)).least == 0.45 and found_in(detections()).least == 0.0
    assert ObstaclesKept.scored == "detections"


def test_a_summary_counts_what_is_gone_as_the_lowest_score_published() -> None:
    lost: dict[str, Any] = {"type": "verdict", "pair": "0/0/noise/0", "outcome": "VIOLATED", "lost": 1, "gained": 0}
    lost |= {"detail": {"score_falls": [[0.52, 0.0]]}}
    for least, near in ((0.45, 1), (0.2, 0)):
        scored = score_line((0, 0), detections(least, 0.9), {})
        assert scored is not None
        (relation,) = summarise([scored, lost], [RelationInfo("noise", "expected")])["relations"].values()
        assert relation["score_falls"] == {"near": near, "clear": 1 - near}


@pytest.mark.parametrize(
    ("given", "classes"),
    [
        (
            {1: "car", "Pedestrian": "pedestrian", "*": "unknown"},
            {"1": "car", "Pedestrian": "pedestrian", "*": "unknown"},
        ),
        (["car"], {"car": "car"}),
    ],
)
def test_a_stack_file_names_classes(tmp_path: Path, given: Any, classes: dict[str, str]) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(yaml.safe_dump({"callable": "my_model:detect", "classes": given}))
    stack = load_stack(str(file))
    assert stack.classes == classes and stack.traits.classes == tuple(classes.values())
    # Its host has renamed them before they go out; of a program the listener does.
    assert stack.reading["classes"] == {}
    file.write_text(yaml.safe_dump({"command": ["mine"], "classes": given}))
    assert load_stack(str(file)).reading["classes"] == classes


@pytest.mark.parametrize("wrong", ["car", {"1": 2}, {"1": ""}, [3]])
def test_wrong_classes_are_refused(tmp_path: Path, wrong: Any) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(yaml.safe_dump({"callable": "my_model:detect", "classes": wrong}))
    with pytest.raises(UsageError, match=r"classes: got .* expected a mapping such as"):
        load_stack(str(file))


def test_classes_are_renamed_by_name_or_number() -> None:
    seen = Detections.make("base_link", None, np.zeros((4, 3)), label=["1", "2", "1", "tram"])
    named = Output(detections=seen).renamed({"1": "car", "2": "pedestrian"}).detections
    assert named is not None and named.label.tolist() == ["car", "pedestrian", "car", "tram"]
    others = Output(detections=seen).renamed({"1": "car", "*": "unknown"}).detections
    assert others is not None and others.label.tolist() == ["car", "unknown", "car", "unknown"]
    nothing = Output(detections=Detections.none("base_link", None)).renamed({"1": "car"}).detections
    assert nothing is not None and len(nothing) == 0
    output = Output(detections=seen)
    assert output.renamed({}) is output
