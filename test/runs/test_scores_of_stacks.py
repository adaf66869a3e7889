# SPDX-License-Identifier: Apache-2.0
"""Stacks that score as they like: a run says when its thresholds decide nothing, and how surely something was lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from made_runs import sparse_drive

from mt_nodes.base.errors import UsageError
from mt_nodes.base.jsonl import read_result
from mt_nodes.cli.main import main
from mt_nodes.runs.first_look import write_scores

#: Two cars. The nearer one is less sure of itself, or gone, in a cloud that noise was added to.
MODEL = """
from mt_nodes.data.outputs import Detections

first = None

def detect(points):
    global first
    first = first or len(points)
    score = {least} if len(points) > first + 500 else {usual}
    rows = [[x, y, 0.8, 4.0, 1.8, 1.5, 0.0, s] for x, y, s in ((12.0, 0.0, score), (25.0, 2.0, {usual})) if s]
    return Detections.make("base_link", None, [r[:3] for r in rows], [r[3:6] for r in rows], score=[r[7] for r in rows])
"""


@pytest.fixture(scope="module")
def street(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sparse_drive(tmp_path_factory.mktemp("street") / "bag", 6)


@pytest.fixture
def replay(street: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)

    def replayed(usual: float, least: float, **rows: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        module = f"scores_{len(list(tmp_path.glob('*.py')))}_{tmp_path.name.replace('-', '_')}"
        (tmp_path / f"{module}.py").write_text(MODEL.format(usual=usual, least=least))
        stack = {"callable": f"{module}:detect", "points_frame": "base_link", **rows}
        (tmp_path / "stack.yaml").write_text(json.dumps(stack))
        words = ["replay", str(street), "--stack", "stack.yaml", "--transport", "inprocess", "--mode", "two_pass"]
        main([*words, "--relations", "noise_outside_roi_1000", "--out", f"out_{module}"])
        out = tmp_path / f"out_{module}"
        lines = [json.loads(line) for line in (out / "result.jsonl").read_text().splitlines()]
        return read_result(out / "summary.json"), lines

    return replayed


def test_what_never_reaches_the_threshold_is_said_on_the_first_screen(replay: Any, capsys: Any) -> None:
    summary, _ = replay(0.45, 0.45)
    (relation,) = summary["relations"].values()
    assert relation["outcome"] == "INCONCLUSIVE" and relation["decided"] == 0
    seen = summary["scores"]["detections"]
    assert (seen["answers"], seen["demanded"], seen["most"]) == (6, 0, 0.45)
    printed = capsys.readouterr()
    early = [line for line in printed.err.splitlines() if line.startswith("mt: warning: of 10 detections in 5 answers")]
    assert len(early) == 1 and "scores: {detections:" in early[0]
    assert "none has the score of 0.5" in printed.out


def test_with_the_stacks_thresholds_it_is_decided(replay: Any, capsys: Any) -> None:
    summary, _ = replay(0.45, 0.45, scores={"detections": {"high": 0.4, "low": 0.2}})
    (relation,) = summary["relations"].values()
    assert relation["decided"] == 6 and relation["violated"] == 0
    printed = capsys.readouterr()
    assert "warning" not in printed.err and "warning" not in summary["scores"]["detections"]


@pytest.mark.parametrize(
    ("least", "text", "near"),
    [(0.29, "score 0.35 to 0.29", 6), pytest.param(0.0, "score 0.35 to none", 0, marks=pytest.mark.long)],
)
def test_how_far_a_score_fell_is_said(replay: Any, capsys: Any, least: float, text: str, near: int) -> None:
    summary, lines = replay(0.35, least, scores={"detections": {"high": 0.34, "low": 0.3}})
    (relation,) = summary["relations"].values()
    assert relation["violated"] == 6 and relation["score_falls"] == {"near": near, "clear": 6 - near}
    lost = [line for line in lines if line["type"] == "verdict" and line["outcome"] == "VIOLATED"]
    assert len(lost) == 6 and all(text in line["reason"] for line in lost)
    assert f"of 6 lost, {near} by a fall of the score of less than 0.1" in capsys.readouterr().out
    page = next(Path.cwd().glob("out_*/report.html")).read_text()
    assert f"of 6 lost, {near} by a fall" in page


def test_a_score_of_one_says_nothing_of_falls(replay: Any) -> None:
    summary, lines = replay(1.0, 0.0)
    (relation,) = summary["relations"].values()
    assert relation["violated"] == 6 and "score_falls" not in relation
    assert all("score" not in line["reason"] for line in lines if line["type"] == "verdict")


def test_the_record_of_a_run_has_the_thresholds_that_it_used(replay: Any) -> None:
    replay(0.45, 0.45, scores={"detections": {"high": 0.4, "low": 0.2}})
    record = json.loads(next(Path.cwd().glob("out_*/run.json")).read_text())
    (check,) = [r["check"]["obstacles_kept"] for r in record["relations"] if r["check"]]
    assert (check["score_high"], check["score_low"]) == (0.4, 0.2)


def test_thresholds_are_set_for_one_run_and_kept_with_it(replay: Any, street: Path, capsys: Any) -> None:
    replay(0.45, 0.45)
    words = ["replay", str(street), "--stack", "stack.yaml", "--transport", "inprocess", "--mode", "two_pass"]
    words += ["--relations", "noise_outside_roi_1000", "--limit", "2", "--out", "set"]
    main([*words, "--set", "scores.detections.high=0.4", "--set", "scores.detections.low=0.2"])
    assert json.loads(Path("set/summary.json").read_text())["relations"]["noise_outside_roi_1000"]["decided"] == 2
    capsys.readouterr()
    assert main(["reproduce", "set", "0/1/noise_outside_roi_1000/0", "--transport", "inprocess"]) == 0
    assert "HOLDS" in capsys.readouterr().out
    wrongs = {"scores.detections.high=2": "got 2", "deadline_s.x=1": "expected float", "speed=1": "unknown"}
    for wrong, text in wrongs.items():
        assert main([*words[:-1], "wrong", "--set", wrong]) == 2
        assert text in capsys.readouterr().err


def doctor(*words: str) -> int:
    return main(["doctor", "--no-probe", "--stack", "stack.yaml", *words])


def test_a_first_look_proposes_thresholds_and_writes_them(replay: Any, street: Path, capsys: Any) -> None:
    replay(0.45, 0.45)
    capsys.readouterr()
    doctor("--bag", str(street))
    assert "write scores: {detections: {high:" in capsys.readouterr().out
    stack = Path("stack.yaml")
    stack.write_text("callable: " + json.loads(stack.read_text())["callable"] + "  # mine\npoints_frame: base_link\n")
    doctor("--bag", str(street), "--write")
    assert "scores into" in capsys.readouterr().out
    assert stack.read_text().startswith("callable: ") and "# mine" in stack.read_text()
    doctor("--bag", str(street), "--write")  # nothing is wrong now, so nothing is written
    printed = capsys.readouterr().out
    assert "scores 0.45 to 0.45" in printed and "write scores" not in printed and "scores into" not in printed


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["doctor", "--bag", "x"], "--bag goes with --stack"),
        (["doctor", "--stack", "reference_detector", "--write"], "--write with --bag"),
        (["doctor", "--no-probe", "--stack", "autoware", "--bag", "x"], "is no callable"),
    ],
)
def test_a_first_look_that_cannot_be_is_refused(words: list[str], text: str, capsys: Any) -> None:
    assert main(words) == 2
    assert text in capsys.readouterr().err


def test_a_shipped_stack_file_is_not_written() -> None:
    with pytest.raises(UsageError, match="ships with the package; copy"):
        write_scores("reference_detector", {"detections": {"high": 0.5, "low": 0.3}})


@pytest.mark.parametrize(
    "text", ['{"callable": "a:b"}', "callable: a:b\n...\n", "callable: a:b\ncamera:\n  {width: 640}\n"]
)
def test_a_stack_file_stays_one(text: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    scores = {"detections": {"high": 0.4, "low": 0.2}}
    if "camera" in text:
        assert yaml.safe_load(write_scores(str(path), scores).read_text())["scores"] == scores
        return
    with pytest.raises(UsageError, match=r"write yourself: .*detections"):
        write_scores(str(path), scores)
    assert path.read_text() == text


CAR_DETECTOR = """
from mt_nodes.data.outputs import Detections
from mt_nodes.stacks.reference.detector import Detector

inner = Detector()

def detect(points):
    seen = inner(points)
    cars = seen.take(seen.label == "car")
    return Detections.make(cars.frame_id, None, cars.center_m, cars.size_m, cars.yaw_rad, ["1"] * len(cars), cars.score)
"""


def test_an_object_of_a_class_that_the_stack_never_reports_is_not_demanded(
    street: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("car_detector.py").write_text(CAR_DETECTOR)
    stack = {"callable": "car_detector:detect", "points_frame": "base_link", "stateless": True, "classes": {"1": "car"}}
    Path("stack.yaml").write_text(json.dumps(stack))
    names = "object_found_person,object_found_car"
    words = ["--stack", "stack.yaml", "--transport", "inprocess", "--relations", names, "--out", "out"]
    main(["replay", str(street), *words])
    summary = json.loads(Path("out/summary.json").read_text())
    person, car = summary["relations"]["object_found_person"], summary["relations"]["object_found_car"]
    assert person["decided"] == 0 and person["outcomes"] == {"NOT_APPLICABLE": 6}
    assert "the stack reports car only" in person["undecided"][0]["reason"]
    assert (car["decided"], car["violated"]) == (6, 0) and car["control"]["decided"] > 0
    assert set(summary["scores"]["detections"]["classes"]) == {"car"}
