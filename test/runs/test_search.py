# SPDX-License-Identifier: Apache-2.0
"""Searches for the least violating change: on made-up margins, and in the loop with stacks that have a fault."""

from __future__ import annotations

import dataclasses
import json
import math
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_runs import no_pages, sparse_drive

from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.base.jsonl import read_lines, read_result, write_result
from mt_nodes.cli.main import main
from mt_nodes.data.verdict import Judgement, Outcome, Pair, Verdict
from mt_nodes.engine.plan import ReplayRequest
from mt_nodes.engine.summary.search_headline import search_headline
from mt_nodes.relations.relation import Relation, load_relation
from mt_nodes.relations.strength import Strength, axis, strengths
from mt_nodes.runs.campaign.search.search_execution import search
from mt_nodes.runs.campaign.search.search_request import SearchRequest, checked
from mt_nodes.runs.campaign.search.search_run import SearchRun, axes_of
from mt_nodes.runs.campaign.search.search_strategy import bisect, near, seek
from mt_nodes.runs.campaign.search.trial import Trial, summed_up
from mt_nodes.runs.campaign.search.trial_journal import TrialJournal, TrialsSpent
from mt_nodes.runs.replay.execute import in_process_arms
from mt_nodes.runs.replay.replay_run import Run

pytestmark = pytest.mark.usefixtures("stacks_here")

NOISE = "noise_outside_roi_1000"
TOLERANCE = 0.01


def judged(margin: float | None, bound: float | None = 1.0) -> Verdict:
    outcome = Outcome.NOT_APPLICABLE if margin is None else Outcome.HOLDS if margin >= 0 else Outcome.VIOLATED
    return Verdict(Pair(0, 0, "made_up", "0"), 0, Judgement(outcome, bound=bound, margin=margin, reason="so"))


def made_up(
    relation: str, names: Sequence[str], margin: Callable[..., float | None], most: int = 200
) -> tuple[TrialJournal, tuple[Strength, ...]]:
    """Trials whose margin is a function of the values."""
    loaded = load_relation(relation)
    axes = tuple(axis(loaded, name) for name in names)

    def play(varied: Relation) -> list[list[Verdict]]:
        values = [getattr(varied.mutate[one.step], one.parameter) for one in axes]
        return [[judged(margin(*values))]]

    return TrialJournal(loaded, axes, play, most), axes


def wobble(value: float, size: float) -> float:
    """Noise that is the same for the same value."""
    return size * math.sin(1e4 * value + 1.0)


# --- halving -----------------------------------------------------------------------------------------------------


@given(st.floats(0.001, 0.999), st.floats(1e-3, 0.1))
def test_the_threshold_is_that_of_a_scan(threshold: float, tolerance: float) -> None:
    def play(fraction: float, stage: str) -> Trial:
        return summed_up(
            [[judged(threshold - fraction)]], 0, stage, [fraction], values={"f": fraction}, strength=fraction
        )

    scanned = next(f for i in range(100_001) if (f := i / 100_000) > threshold)
    found = bisect(play, lambda low, high: high - low <= tolerance)
    assert not found.contradiction and found.least is not None and found.most is not None
    assert found.most.strength <= threshold < found.least.strength <= scanned + tolerance


@given(st.integers(2, 1000), st.integers(1, 1000))
def test_of_whole_numbers_the_very_first_that_violates_is_found(strong: int, first: int) -> None:
    one = Strength(0, "m", "p", 1, strong, whole=True)
    played: list[int] = []

    def play(fraction: float, stage: str) -> Trial:
        value = int(one.value(fraction))
        played.append(value)
        verdicts = [[judged(first - 1 - value)]]
        return summed_up(verdicts, 0, stage, [fraction], values={"p": value}, strength=fraction)

    found = bisect(play, near(one, TOLERANCE))
    assert not found.contradiction
    if first > strong:
        assert found.least is None and found.most is not None and found.most.values["p"] == strong
    else:
        assert found.least is not None and found.least.values["p"] == max(1, first)
    assert len(set(played)) <= 2 + 2 * 2 + 2 * math.ceil(math.log2(strong) + 1)


@given(st.floats(0.2, 0.8), st.floats(0.0, 0.05))
def test_with_noise_the_threshold_is_off_by_no_more_than_the_noise_or_it_is_told(
    threshold: float, noise: float
) -> None:
    def play(fraction: float, stage: str) -> Trial:
        margin = threshold - fraction + wobble(fraction, noise)
        return summed_up([[judged(margin)]], 0, stage, [fraction], values={"f": fraction}, strength=fraction)

    found = bisect(play, lambda low, high: high - low <= TOLERANCE)
    assert found.contradiction or found.least is not None
    if not found.contradiction and found.least is not None:
        assert abs(found.least.strength - threshold) <= noise + TOLERANCE


@pytest.mark.parametrize(
    ("violates", "words"),
    [
        (lambda f: f > 0.9 or 0.1 < f < 0.4, "something between it and|does not violate"),
        (lambda f: 0.4 < f < 0.6, "f 0.5 violates and f 1 does not violate"),
        (lambda f: f < 0.3 or f > 0.9, "a weaker change violates, and"),
    ],
)
def test_what_is_not_worse_when_stronger_is_told(violates: Callable[[float], bool], words: str) -> None:
    def play(fraction: float, stage: str) -> Trial:
        margin = -1.0 if violates(fraction) else 1.0
        return summed_up([[judged(margin)]], 0, stage, [fraction], values={"f": fraction}, strength=fraction)

    import re

    found = bisect(play, lambda low, high: high - low <= TOLERANCE)
    assert re.search(words, found.contradiction), found
    assert found.least is not None and violates(found.least.fractions[0])


def test_nothing_violates() -> None:
    played, axes = made_up(NOISE, ["points"], lambda points: 1.0)
    sought = seek(played, axes, (False,), 0, TOLERANCE)
    assert played.best is None and len(played.trials) <= 5 and sought.method == "bisection" and not sought.spent


# --- several parameters ------------------------------------------------------------------------------------------


def jittered(size: float, share: float) -> float:
    """Violated where there is much of both."""
    return 1.0 - min(size / 0.004, share / 0.3)


def test_several_parameters_are_all_turned_down() -> None:
    played, axes = made_up("points_jittered_1_cm", ["size_m", "share"], jittered)
    sought = seek(played, axes, (False, False), 3, TOLERANCE)
    best = played.best
    assert sought.method == "sampling" and best is not None
    assert best.values["points_jittered.size_m"] == pytest.approx(0.004, rel=0.15)
    assert best.values["points_jittered.share"] == pytest.approx(0.3, rel=0.15)
    assert best.strength < 0.95 < played.trials[0].strength == 1.0
    assert {t.stage for t in played.trials} == {"sample", "ray", "axis"}


def test_a_place_is_found_that_chance_seldom_hits() -> None:
    """One place in fifty, to which the margin leads."""
    played, axes = made_up("object_found_person", ["range_m"], lambda span: abs(span[0] - 12.4) / 12.0 - 0.01, most=60)
    seek(played, axes, (True,), 0, TOLERANCE)
    assert played.best is not None and abs(played.best.values["object_added.range_m"] - 12.4) <= 0.12


def test_a_parameter_that_is_not_worse_when_stronger_is_sampled() -> None:
    played, axes = made_up(NOISE, ["points"], lambda points: -1.0 if 20 < points < 60 or points > 900 else 1.0)
    sought = seek(played, axes, (False,), 0, TOLERANCE)
    assert sought.method == "bisection, then sampling" and "not always worse" in sought.note
    assert played.best is not None and 20 < played.best.values["noise_outside_roi.points"] < 60


def test_without_optuna_it_says_why_it_is_needed_and_how_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    played, axes = made_up(NOISE, ["points"], lambda points: -1.0 if 20 < points < 60 or points > 900 else 1.0)
    with pytest.raises(UsageError, match=r"not always worse: .*mt_nodes\[search\].*--resume"):
        seek(played, axes, (False,), 0, TOLERANCE)
    played, axes = made_up("points_jittered_1_cm", ["size_m", "share"], lambda size_m, share: 1.0)
    with pytest.raises(UsageError, match="several parameters are searched with optuna"):
        seek(played, axes, (False, False), 0, TOLERANCE)


def test_what_cannot_be_decided_is_not_taken_for_a_violation() -> None:
    played, axes = made_up(NOISE, ["points"], lambda points: None)
    seek(played, axes, (False,), 0, TOLERANCE)
    assert {t.outcome for t in played.trials} == {"UNDECIDED"} and played.best is None


def test_trials_are_no_more_than_were_given() -> None:
    played, axes = made_up("points_jittered_1_cm", ["size_m", "share"], jittered, most=7)
    assert seek(played, axes, (False, False), 3, TOLERANCE).spent and len(played.trials) == 7
    with pytest.raises(TrialsSpent):
        played.play((0.123, 0.456), "sample")


def test_values_that_a_mutation_refuses_are_a_trial_that_does_not_violate() -> None:
    played, _ = made_up("range_biased_1_cm", ["offset_m"], lambda offset: -1.0)
    trial = played.play((0.0,), "ends")
    assert trial.outcome == "REFUSED" and "changes nothing" in trial.reason and trial.objective is None


def test_the_same_values_are_one_trial() -> None:
    played, _ = made_up(NOISE, ["points"], lambda points: 1.0, most=1)
    assert played.play((1.0,), "ends") is played.play((1.0,), "probe") and len(played.trials) == 1


def test_a_search_that_goes_on_finds_its_trials_again() -> None:
    whole, axes = made_up("points_jittered_1_cm", ["size_m", "share"], jittered, most=50)
    seek(whole, axes, (False, False), 3, TOLERANCE)
    lines = [json.loads(json.dumps(t.as_plain())) for t in whole.trials]
    for count in (0, 1, 13, 49):
        fresh: list[Trial] = []
        relation = load_relation("points_jittered_1_cm")

        def play(varied: Relation) -> list[list[Verdict]]:
            made = varied.mutate[0]
            return [[judged(jittered(made.size_m, made.share))]]  # type: ignore[attr-defined]

        again = TrialJournal(relation, axes, play, 50, lines[:count], fresh.append)
        seek(again, axes, (False, False), 3, TOLERANCE)
        assert again.trials == whole.trials and len(fresh) == 50 - count
    lines[1]["values"]["points_jittered.share"] = 0.5
    other = TrialJournal(relation, axes, play, 50, lines)
    with pytest.raises(InfrastructureError, match="trial 1 had the values"):
        seek(other, axes, (False, False), 3, TOLERANCE)


# --- how near --------------------------------------------------------------------------------------------------------


def test_robustness_is_a_share_of_the_bound_and_its_mean_over_repeats() -> None:
    repeats = [[judged(4.0, 8.0), judged(1.0, 10.0)], [judged(-3.0, 10.0)], [judged(0.4, 0.0)]]
    trial = summed_up(repeats, 3, "sample", [0.5], values={"p": 1.0}, strength=0.5)
    assert trial.robustness == pytest.approx((0.1 - 0.3 + 0.4) / 3) and trial.outcome == "HOLDS"
    assert trial.outcomes == {"HOLDS": 3, "VIOLATED": 1} and trial.objective == trial.robustness
    twice = summed_up([repeats[1], repeats[1], repeats[2]], 0, "sample", [0.5], values={}, strength=0.5)
    assert twice.violated and twice.objective == -1.5


def test_an_arm_that_fell_silent_is_as_bad_as_losing_all() -> None:
    silent = Verdict(Pair(0, 0, "r", "0"), 0, Judgement(Outcome.VIOLATED, reason="silent"))
    assert summed_up([[silent]], 0, "ends", [1.0], values={}, strength=1.0).robustness == -1.0


# --- what is asked -------------------------------------------------------------------------------------------------


def asked(bag: Path | str, relation: str = NOISE, **more: Any) -> SearchRequest:
    names = {f.name for f in dataclasses.fields(SearchRequest)}
    replay = {"transport": "inprocess", **{k: v for k, v in more.items() if k not in names}}
    return SearchRequest(
        ReplayRequest((str(bag),), (relation,), **replay), **{k: v for k, v in more.items() if k in names}
    )


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"confirm": "4/3"}, "expected K/N"),
        ({"confirm": "3"}, "expected K/N"),
        ({"trials": 0}, "at least 1"),
        ({"tolerance": 0.0}, "more than 0"),
        ({"reach": "far"}, "relation or range"),
        ({"pace": "realtime"}, "lockstep"),
    ],
)
def test_requests_that_make_no_sense_are_refused(more: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        checked(asked("bag", **more))


@pytest.mark.parametrize(
    ("over", "words"),
    [
        (("points=1",), "expected WEAK..STRONG"),
        (("points=a..b",), "expected WEAK..STRONG"),
        (("points=1..10", "noise_outside_roi.points"), "twice"),
        (("pints",), "no parameter 'pints'"),
        (("points=0..10",), "expected 1 to"),
    ],
)
def test_what_cannot_be_searched_over_is_refused(over: tuple[str, ...], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        axes_of(asked("bag", over=over), load_relation(NOISE))


def test_what_is_searched_over() -> None:
    relation = load_relation(NOISE)
    assert axes_of(asked("bag"), relation) == strengths(relation)
    assert axes_of(asked("bag", over=("points",)), relation) == strengths(relation)
    (ends,) = axes_of(asked("bag", over=("points=10..20",)), relation)
    assert (ends.weak, ends.strong, ends.whole) == (10.0, 20.0, True)
    (reaching,) = axes_of(asked("bag", over=("points",), reach="range"), relation)
    assert reaching.strong == 1_000_000
    with pytest.raises(UsageError, match=r"--over object_added\.range_m"):
        axes_of(asked("bag"), load_relation("object_found_person"))


def test_requests_come_back_from_their_record() -> None:
    request = asked("bag", over=("points",), faults=("grid_index_wrap",), topics={"lidar": "/points"})
    assert SearchRequest.from_plain(json.loads(json.dumps(request.as_plain()))) == request


# --- in the loop ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sparse_drive(tmp_path_factory.mktemp("bag") / "drive", 3, columns=450)


@pytest.fixture(scope="module")
def whole_bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A drive whose clouds nearly fill the buffer of ``point_buffer_cap``."""
    return sparse_drive(tmp_path_factory.mktemp("whole_bag") / "drive", 3, columns=1800)


@pytest.fixture(autouse=True)
def pages(request: pytest.FixtureRequest) -> Iterator[None]:
    """Make no report.html, but where it is looked for."""
    with nullcontext() if "with_pages" in request.fixturenames else no_pages():
        yield


@pytest.fixture
def with_pages() -> None:
    """Ask for report.html."""


def searched(request: SearchRequest, out: Path, show: Callable[[Trial], None] = lambda trial: None) -> dict[str, Any]:
    run = SearchRun.create(request, str(out))
    return search(run, in_process_arms, show)


@pytest.mark.usefixtures("with_pages")
def test_a_planted_fault_is_found_with_the_least_change_that_shows_it(whole_bag: Path, tmp_path: Path) -> None:
    """A buffer for so many points: the least noise that overflows it, beside the frame that is the largest."""
    summary = searched(asked(whole_bag, faults=("point_buffer_cap",), trials=25), tmp_path / "out")
    found = summary["found"]
    assert summary["exit_code"] == 1 and summary["method"] == "bisection" and summary["trials"] <= 25
    points = found["values"]["noise_outside_roi.points"]
    assert 1 < points < 1000 and found["strength"] < 1.0
    lines = [line for line in read_lines(tmp_path / "out" / "search.jsonl") if line["type"] == "trial"]
    held = [line["values"]["noise_outside_roi.points"] for line in lines if line["outcome"] == "HOLDS"]
    assert max(held) == points - 1
    assert summary["confirmations"] == [
        {"trial": found["number"], "violated": 3, "plays": 3, "control": 0, "needed": 3, "confirmed": True}
    ]
    # What was found is an ordinary relation, and an ordinary run with the pair of the trial in it.
    relation = load_relation(str(tmp_path / "out" / found["relation_file"]))
    assert relation.id == f"{NOISE}~searched" == Pair.parse(found["pair"]).relation
    assert relation.mutate[0].points == points  # type: ignore[attr-defined]
    results = tmp_path / "out" / found["results"]
    verdicts = {line["pair"]: line for line in read_lines(results / "result.jsonl") if line["type"] == "verdict"}
    assert verdicts[found["pair"]]["outcome"] == "VIOLATED" and verdicts[found["pair"]]["reason"] == found["reason"]
    assert (results / "report.html").exists()
    page = (tmp_path / "out" / "report.html").read_text()
    assert f"<h1>{NOISE} is violated with {points:,} points (searched from 1 to 1,000).</h1>" in page
    begins = [page.index(part) for part in ("<h1>", "<img ", 'class="next"', "<table")]
    assert begins == sorted(begins) and page.count("<img ") == 3, "both inputs, and where the trials were"
    (tmp_path / "out" / "report.html").unlink()
    assert main(["report", str(tmp_path / "out")]) == 0 and (tmp_path / "out" / "report.html").read_text() == page
    assert main(["reproduce", str(results), found["pair"], "--out", str(tmp_path / "again")]) == 0


def test_an_honest_stack_has_nothing_to_find(bag: Path, tmp_path: Path) -> None:
    summary = searched(asked(bag), tmp_path / "out")
    assert summary["exit_code"] == 0 and summary["found"] is None and not summary["confirmations"]
    assert "no proof" in summary["exit_why"] and summary["nearest"]["outcome"] == "HOLDS"
    assert not (tmp_path / "out" / "confirmed").exists()
    assert search_headline(summary).verdict == "PASS" and "no proof" in search_headline(summary).sentence
    for code in (2, 3, 4, 5, 130):
        assert search_headline({**summary, "exit_code": code}).verdict != "PASS"


#: Sees nobody any more from its third input on.
TIRED = """
class Tired:
    def __init__(self):
        self.inputs = 0

    def __call__(self, points):
        self.inputs += 1
        return [[10.0, 0.0, 0.0, 4.0, 2.0, 1.5, 0.0]] if self.inputs <= 2 else []
"""


def test_a_stack_that_remembers_is_restarted_for_each_trial(bag: Path, tmp_path: Path) -> None:
    (tmp_path / "tired_model.py").write_text(TIRED)
    stack = tmp_path / "tired.yaml"
    stack.write_text("name: tired\ncallable: tired_model:Tired\nstateless: false\n")
    summary = searched(asked(bag, stack=str(stack), limit=2), tmp_path / "out")
    trials = [line for line in read_lines(tmp_path / "out" / "search.jsonl") if line["type"] == "trial"]
    assert summary["exit_code"] == 0 and [line["outcomes"] for line in trials] == [{"HOLDS": 2}] * 4


#: Loses every second answer, whatever it is given.
FLAKY = """
calls = 0
def detect(points):
    global calls
    calls += 1
    box = [10.0, 0.0, 0.0, 4.0, 2.0, 1.5, 0.0]
    return [box] if calls % 2 else []
"""


def test_a_stack_that_differs_from_itself_is_called_unstable(bag: Path, tmp_path: Path) -> None:
    (tmp_path / "flaky_model.py").write_text(FLAKY)
    stack = tmp_path / "flaky.yaml"
    stack.write_text("name: flaky\ncallable: flaky_model:detect\nstateless: true\n")
    summary = searched(asked(bag, stack=str(stack), trials=12), tmp_path / "out")
    assert summary["found"] is None and summary["exit_code"] == 3, summary
    assert all(one["control"] for one in summary["confirmations"]) and "unstable" in summary["exit_why"]


class Stopped(KeyboardInterrupt):
    """Somebody pressed Ctrl-C."""


@pytest.fixture(scope="module")
def undisturbed(whole_bag: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A search that nobody interrupts: its directory and its summary."""
    out = tmp_path_factory.mktemp("undisturbed") / "whole"
    with no_pages():
        return out, searched(asked(whole_bag, faults=("point_buffer_cap",), limit=1), out)


@pytest.mark.parametrize("after", [9, pytest.param(1, marks=pytest.mark.long)])
def test_a_search_that_is_interrupted_goes_on_where_it_was(
    whole_bag: Path, tmp_path: Path, undisturbed: tuple[Path, dict[str, Any]], after: int
) -> None:
    request, (at, whole) = asked(whole_bag, faults=("point_buffer_cap",), limit=1), undisturbed

    def stop(trial: Trial) -> None:
        if trial.number + 1 == after:
            raise Stopped

    broken_off = searched(request, tmp_path / "out", stop)
    assert broken_off["exit_code"] == 130 and broken_off["trials"] <= after
    played: list[Trial] = []
    resumed = SearchRun.resume(tmp_path / "out")
    assert not (tmp_path / "out" / "summary.json").exists()
    summary = search(resumed, in_process_arms, played.append)
    assert summary == whole and played[0].number == after
    assert (at / "search.jsonl").read_text() == (tmp_path / "out" / "search.jsonl").read_text()


def test_a_search_that_was_finished_starts_no_stack_when_it_is_resumed(
    bag: Path, tmp_path: Path, undisturbed: tuple[Path, dict[str, Any]]
) -> None:
    at, summary = undisturbed
    out = shutil.copytree(at, tmp_path / "out")

    def nobody(replay: Run, ending: ExitStack) -> Any:
        raise AssertionError("there is nothing to play")

    assert search(SearchRun.resume(out), nobody) == summary
    assert read_result(out / "summary.json") == json.loads(json.dumps(summary))
    assert (out / "search.jsonl").read_text() == (at / "search.jsonl").read_text()
    # One whose last line a kill took needs its stack again, for what is missing.
    lines = (out / "search.jsonl").read_text().splitlines()
    (out / "search.jsonl").write_text("\n".join(lines[:-1]) + "\n")
    with pytest.raises(AssertionError, match="nothing to play"):
        search(SearchRun.resume(out), nobody)


def test_another_search_is_not_gone_on_with(bag: Path, tmp_path: Path) -> None:
    searched(asked(bag, limit=1), tmp_path / "out")
    with pytest.raises(UsageError, match="results of a search already"):
        SearchRun.create(asked(bag), str(tmp_path / "out"))
    record = read_result(tmp_path / "out" / "run.json")
    record["request"]["trials"] = 5
    write_result(tmp_path / "out" / "run.json", record)
    with pytest.raises(UsageError, match="trials: was 60, is 5"):
        search(SearchRun.resume(tmp_path / "out"), in_process_arms)
    assert main(["replay", "--resume", str(tmp_path / "out")]) == 2


def test_on_the_command_line(whole_bag: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["search", str(whole_bag), "--relation", NOISE, "--transport", "inprocess", "--limit", "1", "--out"]
    fault = ["--fault", "point_buffer_cap"]
    assert main([*words, str(tmp_path / "out"), *fault]) == 1
    printed = capsys.readouterr().out
    assert "noise_outside_roi.points" in printed and "confirmed" in printed and "exit code 1" in printed
    assert "mt shrink" in printed, "what to type next"
    assert main(["show", str(tmp_path / "out")]) == 0 and capsys.readouterr().out == printed
    pair = read_result(tmp_path / "out" / "summary.json")["found"]["pair"]
    assert main(["show", str(tmp_path / "out"), pair]) == 0
    assert f"pair {pair}: VIOLATED" in capsys.readouterr().out
    assert main([*words, str(tmp_path / "json"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["exit_code"] == 0
    assert main(["search", "--resume", str(tmp_path / "out"), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["found"]
    assert main(["search", str(whole_bag)]) == 2 and "--relation" in capsys.readouterr().err
    assert main(["search"]) == 2 and "mt search BAG" in capsys.readouterr().err
    assert main(["search", str(whole_bag), "--relation", "qqq"]) == 2
    said = capsys.readouterr().err
    assert "no relation 'qqq'; `mt list relations` shows" in said and len(said) < 200
    assert main(["search", "--resume", str(tmp_path / "out"), "--seed", "3"]) == 2
