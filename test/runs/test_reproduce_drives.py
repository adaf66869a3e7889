# SPDX-License-Identifier: Apache-2.0
"""One pair of drives of a finished run once more: both worlds driven through again, compared, judged."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_drives import crossing, made_run, pedestrian, setting

from mt_nodes.base.jsonl import read_result, write_result
from mt_nodes.cli.main import main
from mt_nodes.data.verdict import Pair
from mt_nodes.engine.callable_arm import CallableArm
from mt_nodes.engine.journal import read_journal
from mt_nodes.engine.judging import Answer, AnswerStatus
from mt_nodes.engine.recorded_drives import episode_lines
from mt_nodes.engine.run_record import write_record
from mt_nodes.runs.loop.drive_reproduction import parting
from mt_nodes.runs.loop.episode_conductor import execute, in_process_arms
from mt_nodes.runs.loop.followup_world import changed
from mt_nodes.runs.loop.scenario_request import ScenarioRequest
from mt_nodes.runs.loop.scenario_run import ScenarioRun
from mt_nodes.stacks.callables import with_faults
from mt_nodes.stacks.stack import load_stack
from mt_nodes.world.drive.trace import Trace
from mt_nodes.world.drive.world import World

pytestmark = pytest.mark.usefixtures("stacks_here")

CHILD, NEARER, MIRRORED = "adult_becomes_child_collisions", "pedestrian_nearer_brakes", "world_mirrored_same_trace"
FAULTS = ("low_is_litter",)
SCENES = (
    setting(pedestrian(60.0, 4.0), duration_s=2.0),
    setting(crossing(40.0), duration_s=5.0),
    setting(duration_s=0.5),
)
VIOLATED = f"1/-/{CHILD}/0"


def done_in(out: Path, *relations: str, **asked: Any) -> Path:
    """A run of a planner that takes children for litter."""
    stack = with_faults(load_stack("reference_planner"), FAULTS)
    run = made_run(out, SCENES, relations, stack, seed=7, faults=FAULTS, **asked)
    write_record(run.out, run.request, run.suite.all, run.stack, {})
    execute(run, lambda ending: in_process_arms(run, ending), lambda line: None, lambda verdicts: None)
    return out


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return done_in(tmp_path_factory.mktemp("drives") / "run", CHILD, NEARER, MIRRORED)


def reproduce(capsys: pytest.CaptureFixture[str], run: Path, pair: str, *words: str) -> tuple[int, dict[str, Any]]:
    code = main(["reproduce", str(run), pair, "--json", *words])
    return code, json.loads(capsys.readouterr().out)


def verdicts(run: Path) -> dict[str, dict[str, Any]]:
    return {line["pair"]: line for line in read_journal(run / "result.jsonl") if line["type"] == "verdict"}


@pytest.mark.parametrize(
    "pair", [VIOLATED, f"1/-/identity/0@{CHILD}", f"1/-/sensors_resampled/0@{NEARER}", f"0/-/{MIRRORED}/0"]
)
def test_a_pair_is_driven_the_same_way_again(
    done: Path, pair: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, told = reproduce(capsys, done, pair, "--out", str(tmp_path / "out"))
    assert (code, told["exit_code"], told["same_drives"], told["differs"], told["changed"]) == (0, 0, True, [], [])
    assert [(one["what"], one["why"]) for one in told["drives"]] == [("source", ""), ("follow-up", "")]
    assert episode_lines(tmp_path / "out") == episode_lines(done, [Pair.parse(pair)])
    assert verdicts(tmp_path / "out") == {pair: verdicts(done)[pair]}
    assert told["now"] == told["recorded"] and told["results"] == str(tmp_path / "out")
    assert len(list((tmp_path / "out" / "evidence").glob("*.mcap"))) == 1


def test_everything_is_printed_and_lies_beside_the_run(done: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verdicts(done)[VIOLATED]["outcome"] == "VIOLATED"
    assert main(["reproduce", str(done), VIOLATED]) == 0
    out = capsys.readouterr().out
    (line,) = episode_lines(done, [Pair.parse(VIOLATED)]).values()
    assert out.count(line["sha256"]) == out.count(line["source"]["sha256"]) == 2
    assert "the judgement is the same as in the run" in out and "DIFFERS" not in out and line["sha256"] in out
    again = done / "reproduced" / VIOLATED.replace("/", "_")
    assert (again / "report.html").is_file() and str(again) in out
    code, told = reproduce(capsys, again, VIOLATED)
    assert code == 0 and Path(told["results"]).is_relative_to(again)


def test_two_instances_side_by_side_come_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    twin = done_in(tmp_path / "twin", CHILD, mode="twin")
    code, told = reproduce(capsys, twin, VIOLATED)
    assert code == 0 and [one["now"] == one["expected"] for one in told["drives"]] == [True, True]
    assert (Path(told["results"]) / "episodes" / f"1.{CHILD}.0.source.npz").is_file()


def arms_that(says: Callable[[int, Answer], Answer]) -> Any:
    """Arms of the stack whose answers are changed; counted over both drives."""

    class Fickle(CallableArm):
        asked = 0

        def wait(self, ticket: Any, until_s: float | None = None) -> Answer:
            self.asked += 1
            answer = super().wait(ticket, until_s)
            assert answer is not None
            return says(self.asked, answer)

    return lambda run, ending: (arm := Fickle("source", run.stack, {t: t for t in run.rig.topics.values()}), arm)


def faster(asked: int, answer: Answer) -> Answer:
    if asked <= 10 or answer.output.control is None:
        return answer
    control = answer.output.control
    more = replace(control, speed_mps=control.speed_mps + 1e-9)
    return replace(answer, output=replace(answer.output, control=more))


def test_a_stack_that_answers_otherwise_is_told(
    done: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("mt_nodes.runs.loop.episode_conductor.in_process_arms", arms_that(faster))
    code, told = reproduce(capsys, done, VIOLATED)
    source, followup = told["drives"]
    assert code == told["exit_code"] == 1 and not told["same_drives"]
    otherwise = "the stack answered otherwise to what was the same until then: it is not deterministic"
    assert f"same until 1.0 s; {otherwise}" in source["why"] and f"same until 0.0 s; {otherwise}" in followup["why"]
    assert main(["reproduce", str(done), VIOLATED]) == 1
    out = capsys.readouterr().out
    assert out.count("DIFFERS") == 2 and otherwise in out and "the drives are not the same bit for bit" in out


def test_a_world_that_goes_another_way_is_told(
    done: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("mt_nodes.runs.loop.episode_conductor.World", partial(World, physics_s=0.02))
    code, told = reproduce(capsys, done, VIOLATED)
    # The planner commands yaw rates, which no trace holds.
    assert code == 1 and all("after commands that are the same as far as" in one["why"] for one in told["drives"])


def drive(rows: int = 5, steering: float = 0.0, ended: str = "time") -> Trace:
    commands = np.tile([steering, 10.0, np.nan], (rows, 1))
    answered, actors = np.ones(rows, dtype=bool), np.zeros((rows, 0, 4))
    return Trace("made", np.linspace(0.0, 0.4, 5)[:rows], np.ones((rows, 6)), actors, (), commands, answered, (), ended)


def other(trace: Trace, column: str, row: int, value: float) -> Trace:
    values = getattr(trace, column).copy()
    values[row] = value
    return replace(trace, **{column: values})


@pytest.mark.parametrize(
    ("was", "now", "why"),
    [
        (drive(), other(drive(), "ego", 3, 2.0), "until 0.3 s; the world went another way after the same commands"),
        (drive(), other(drive(), "commands", 3, 2.0), "until 0.3 s; the stack answered otherwise"),
        (drive(), other(drive(), "answered", 3, 0.0), "until 0.3 s; the stack answered otherwise"),
        (drive(), other(drive(4), "ego", 0, 2.0), "until 0.0 s; the world went another way"),
        (drive(steering=np.nan), other(drive(steering=np.nan), "ego", 3, 2.0), "until 0.3 s; after commands that are"),
        (drive(), drive(4, ended="target"), "it ended otherwise: target after 4 instants, was time after 5"),
        (drive(), drive(0, ended="unfit"), "it ended otherwise: unfit after 0 instants, was time after 5"),
    ],
)
def test_where_two_drives_part(was: Trace, now: Trace, why: str) -> None:
    assert why in parting(was, now)


def test_a_stack_that_falls_silent_leaves_nothing_to_compare(
    done: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    silent = Answer.nothing(AnswerStatus.SILENT, "nothing")
    monkeypatch.setattr("mt_nodes.runs.loop.episode_conductor.in_process_arms", arms_that(lambda asked, answer: silent))
    code, told = reproduce(capsys, done, VIOLATED)
    assert code == 1 and [one["now"] for one in told["drives"]] == [None, None]
    assert told["now"]["outcome"] == "UNPAIRED_SOURCE" and "outcome" in told["differs"]


def test_a_relation_that_was_edited_is_told(done: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = Path(shutil.copytree(done, tmp_path / "copy", ignore=shutil.ignore_patterns("reproduced")))
    record = read_result(copy / "run.json")
    next(r for r in record["relations"] if r["id"] == CHILD)["min_decided"] += 1
    write_result(copy / "run.json", record)
    code, told = reproduce(capsys, copy, VIOLATED)
    assert code == 0 and told["changed"] == [f"relation {CHILD} has been edited: min_decided"]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ([VIOLATED, "--bag", "my_bag"], "has no bag; leave --bag out"),
        ([f"2/-/{NEARER}/0"], "no follow-up of the episode"),
        ([f"3/-/{CHILD}/0"], "no verdict of pair"),
    ],
)
def test_what_cannot_be_driven_again_is_refused(
    done: Path, words: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce", str(done), *words]) == 2
    assert why in capsys.readouterr().err


def test_a_trace_that_is_gone_is_an_error(done: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = Path(shutil.copytree(done, tmp_path / "copy", ignore=shutil.ignore_patterns("reproduced")))
    (copy / "episodes" / "1.source.npz").unlink()
    assert main(["reproduce", str(copy), VIOLATED]) == 4
    assert "1.source.npz" in capsys.readouterr().err and not (copy / "reproduced").exists()


def test_only_what_is_asked_for_is_driven(done: Path, tmp_path: Path) -> None:
    asked = ScenarioRequest(("made",), (CHILD,), faults=FAULTS, seed=7, only=VIOLATED, recorded=str(done))
    run = ScenarioRun.make(asked, tmp_path)
    (planned,) = run.episodes
    assert planned.number == 1 and planned.setting.scenario == SCENES[1].scenario and run.pairs_to_come == 1
    assert planned.recorded_world is not None and planned.recorded_world.effects.changed == ("crosser",)
    assert changed(planned, run.offers[0].relation, seed=99) is planned.recorded_world
