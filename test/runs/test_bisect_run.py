# SPDX-License-Identifier: Apache-2.0
"""``mt bisect`` over generated repositories, resumed, and as the command of a real ``git bisect run``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from forked_mt import forked_mt
from made_runs import no_pages
from planted_histories import few_points, git, history

from mt_nodes.base.jsonl import read_lines, read_result
from mt_nodes.cli.main import main
from mt_nodes.runs.bisect import bisect_run

MT = (sys.executable, "-m", "mt_nodes.cli.main")


class Failed(NamedTuple):
    """Results of a run of the faulty stack, and how many points its fault takes."""

    directory: Path
    limit: int


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> Failed:
    place = tmp_path_factory.mktemp("failed")
    limit = few_points(place / "drive")
    history(place / "repo", 1, 0, limit)
    words = ["--stack", str(place / "repo" / "stack.yaml"), "--relations", "noise_outside_roi_1000"]
    with no_pages():
        assert (
            main(["replay", str(place / "drive"), *words, "--transport", "inprocess", "--out", str(place / "run")]) == 1
        )
    return Failed(place / "run", limit)


def bisect(failed: Failed, repo: Path, good: str, *more: str) -> tuple[int, dict[str, Any]]:
    out = repo.parent / "out"
    words = ["--failures", str(failed.directory), "--repo", str(repo), "--stack", str(repo / "stack.yaml")]
    code = main(["bisect", *words, "--good", good, "--out", str(out), *more])
    return code, read_result(out / "bisect.json")


def test_the_commit_is_found_past_commits_that_do_not_build(
    failed: Failed, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = history(tmp_path / "repo", 9, 4, failed.limit, broken=(2, 5, 6))
    code, result = bisect(failed, tmp_path / "repo", made[0])
    assert code == 0 and result["found"] and result["first_bad"] == [made[4]] and result["last_good"] == made[3]
    shown = capsys.readouterr().out
    assert "The first bad version is" in shown and "A. Author" in shown and "Why it was made." in shown
    states = {test["version"]: test["state"] for test in result["tests"]}
    assert states[made[0]] == "good" and "skip" in states.values()
    assert result["calibration"]["violated"] == 10 and result["rates"]["bad"] == pytest.approx(0.005 ** (1 / 10))
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Change 4" in page and "SyntaxError" in page and "data:image/svg+xml" in page
    assert git(tmp_path / "repo", "worktree", "list").count("\n") == 0
    assert main(["show", str(tmp_path / "out")]) == 0 and "The first bad version is" in capsys.readouterr().out
    assert main(["report", str(tmp_path / "out")]) == 0


def test_a_range_is_named_where_the_commit_itself_cannot_be_tested(failed: Failed, tmp_path: Path) -> None:
    made = history(tmp_path / "repo", 5, 2, failed.limit, broken=(2,))
    code, result = bisect(failed, tmp_path / "repo", made[0], "--bad-rate", "0.95", "--json")
    assert code == 3 and not result["found"] and result["first_bad"] == made[2:4]


@pytest.mark.parametrize(("good", "bad", "why"), [(0, 1, "does not fail"), (2, 3, "fails, too")])
def test_ends_that_do_not_differ_are_an_error(failed: Failed, tmp_path: Path, good: int, bad: int, why: str) -> None:
    made = history(tmp_path / "repo", 4, 2, failed.limit)
    code, result = bisect(failed, tmp_path / "repo", made[good], "--bad", made[bad], "--plays", "4")
    assert code == 3 and why in result["why"] and not result["found"] and result["first_bad"] == []


def test_an_interrupted_bisection_goes_on_and_plays_nothing_twice(
    failed: Failed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = history(tmp_path / "repo", 5, 3, failed.limit)
    played: list[str] = []
    whole = bisect_run.play_case

    def interrupted(case: Any, asked: Any, out: Path, tell: Any) -> Any:
        def stop_at(outcome: Any, why: str) -> None:
            tell(outcome, why)
            played.append(out.name)
            if len(played) == 22:
                raise KeyboardInterrupt

        return whole(case, asked, out, stop_at)

    monkeypatch.setattr(bisect_run, "play_case", interrupted)
    code, result = bisect(failed, tmp_path / "repo", made[0])
    assert code == 130 and "--resume" in result["why"] and result["plays"] == 22
    out = tmp_path / "out"
    monkeypatch.chdir(tmp_path)
    assert main(["bisect", "--resume", str(out)]) == 0
    result = read_result(out / "bisect.json")
    assert result["first_bad"] == [made[3]] and result["plays"] == len(played)
    lines = [line for line in read_lines(out / "bisect.jsonl") if line["type"] == "play"]
    assert len(lines) == len(played)
    assert all(test["tally"]["held"] <= 9 for test in result["tests"])  # no more than one test needs


def test_git_bisect_run_finds_a_flaky_fault(failed: Failed, tmp_path: Path) -> None:
    """It fails in 30 % of the calls; a commit that cannot be imported is skipped."""
    repo = tmp_path / "repo"
    made = history(repo, 6, 4, failed.limit, share=0.3, broken=(2,))
    git(repo, "bisect", "start", made[-1], made[0])
    step = ("bisect", "step", "--failures", str(failed.directory), "--stack", "stack.yaml", "--bad-rate", "0.25")
    said = git(repo, "bisect", "run", *MT, *step, "--error", "0.001", "--good-rate", "0.01")
    assert f"{made[4]} is the first bad commit" in said, said
    assert "git bisect skip" in git(repo, "bisect", "log") and "violated in 0 of" in said


def test_a_step_as_a_process_ends_with_the_codes_of_git(
    failed: Failed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history(tmp_path / "repo", 1, 0, failed.limit)
    monkeypatch.chdir(tmp_path / "repo")

    def code_of(*words: str) -> int:
        return forked_mt("bisect", "step", *words).returncode

    failures = ("--failures", str(failed.directory))
    assert code_of(*failures, "--stack", "stack.yaml", "--bad-rate", "0.95") == 1
    assert code_of(*failures, "--plays", "x") == 128
    assert code_of(*failures, "--stack", "stack.yaml", "--set", "callable=perception:nothing") == 125


def test_values_of_a_placeholder_are_bisected(
    failed: Failed, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "limits.py").write_text(
        "class Limits:\n"
        "    def __init__(self, limit):\n        self.limit = limit\n"
        "    def __call__(self, points):\n"
        "        return [] if len(points) > self.limit else [[15.0, 0.0, 0.8, 4.5, 2.0, 1.6, 0.0]]\n"
    )
    (tmp_path / "stack.yaml").write_text(
        "callable: limits:Limits\nparams: {limit: 0}\npoints_frame: base_link\nstateless: true\n"
        "outputs: {detections: {topic: /perception/obstacles, type: visualization_msgs/msg/MarkerArray}}\n"
    )
    values = [str(failed.limit + more) for more in (5000, 4000, 3000, 0, -1)]
    words = ["--failures", str(failed.directory), "--stack", str(tmp_path / "stack.yaml"), "--bad-rate", "0.95"]
    words += ["--set", "callable=limits:Tagged", "--set", "params={tag: '{version}'}", "--values", *values]
    with (tmp_path / "limits.py").open("a") as file:
        file.write("def Tagged(tag):\n    return Limits(int(tag))\n")
    capsys.readouterr()
    assert main(["bisect", *words, "--warm", "--json", "--out", str(tmp_path / "out")]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["first_bad"] == [values[3]] and result["last_good"] == values[2]
