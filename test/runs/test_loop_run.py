# SPDX-License-Identifier: Apache-2.0
"""Runs in the closed loop, from request to results directory: in process, by the reference planner."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from made_drives import crossing, made_run, pedestrian, setting
from rosbags.highlevel import AnyReader

from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.base.jsonl import read_lines, read_result, write_result
from mt_nodes.cli.main import main
from mt_nodes.data.outputs import Control, Output
from mt_nodes.data.verdict import Verdict
from mt_nodes.engine.callable_arm import CallableArm
from mt_nodes.engine.compatibility import incompatibility
from mt_nodes.engine.judging import Answer, AnswerStatus
from mt_nodes.engine.run_record import write_record
from mt_nodes.relations.default_relations import LOOP_DEFAULT
from mt_nodes.relations.relation import (
    LOOP_FOLDER,
    load_relation,
    refuse_baseline,
    shipped_relations,
)
from mt_nodes.relations.world_changes.base import Setting, WorldEffects
from mt_nodes.relations.world_changes.world_moves import WorldMoved
from mt_nodes.runs.loop.episode_conductor import execute, in_process_arms
from mt_nodes.runs.loop.scenario_request import ScenarioRequest
from mt_nodes.runs.loop.scenario_run import ScenarioRun
from mt_nodes.stacks.stack import load_stack
from mt_nodes.world.drive.scenario import Actor
from mt_nodes.world.drive.trace_file import load_trace, sha256_of_trace

RELATIONS = ("far_object_same_trace", "pedestrian_nearer_brakes", "world_mirrored_same_trace")
BYSTANDERS = (pedestrian(60.0, 4.0), pedestrian(70.0, -4.5, "second"), pedestrian(75.0, 5.0, "third"))
SCENES = (setting(crossing(50.0), duration_s=4.0), setting(*BYSTANDERS, duration_s=2.0))

FILE = """\
parameter ahead = uniform(60.0, 80.0);
walker = Person((("lane_1" -> ahead), , 0.0));
short_drive = CreateScenario {
    load("straight");
    AV(("lane_1" -> 20.0, , 10.0), ("lane_1" -> 40.0));
    {};
    {walker};
    {};
    {};
};
"""


def driven(run: ScenarioRun, arms: Any = in_process_arms, progress: Any = lambda verdicts: None) -> dict[str, Any]:
    write_record(run.out, run.request, run.suite.all, run.stack, {})
    return execute(run, lambda ending: arms(run, ending), lambda line: None, progress)


def lines(out: Path) -> dict[str, dict[str, Any]]:
    found = [line for line in read_lines(out / "result.jsonl") if line["type"] == "verdict"]
    assert len({line["pair"] for line in found}) == len(found)
    return {line["pair"]: line for line in found}


def ledger(out: Path) -> dict[str, dict[str, Any]]:
    return {line["pair"]: line for line in read_lines(out / "ledger.jsonl")}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("loop")


@pytest.fixture(scope="module")
def whole(place: Path) -> Path:
    out = place / "whole"
    assert driven(made_run(out, SCENES, RELATIONS, seed=7))["exit_code"] == 3
    return out


def test_every_pair_offered_ends_in_exactly_one_verdict(whole: Path) -> None:
    offered = [f"{arm}/0@{name}" for arm in ("identity", "sensors_resampled") for name in RELATIONS]
    offered += [f"{name}/0" for name in RELATIONS]
    found = lines(whole)
    assert set(found) == {f"{episode}/-/{pair}" for episode in range(len(SCENES)) for pair in offered}
    summary = read_result(whole / "summary.json")
    assert summary["offered"] == len(found) == sum(summary["outcomes"].values())
    assert summary["outcomes"] == Counter(line["outcome"] for line in found.values())
    assert found["0/-/pedestrian_nearer_brakes/0"]["outcome"] == "HOLDS"
    assert found["1/-/pedestrian_nearer_brakes/0"]["outcome"] == "NOT_APPLICABLE"
    for name in ("report.html", "pairs.csv", "junit.xml", "run.json"):
        assert (whole / name).stat().st_size > 100


def test_the_same_seed_twice_gives_identical_journals(whole: Path, place: Path) -> None:
    again = place / "again"
    driven(made_run(again, SCENES, RELATIONS, seed=7))
    for file in ("result.jsonl", "ledger.jsonl"):
        assert (again / file).read_bytes() == (whole / file).read_bytes()
    traces = sorted(path.name for path in (whole / "episodes").glob("*.npz"))
    assert len(traces) == 12 and traces == sorted(path.name for path in (again / "episodes").glob("*.npz"))
    for name in traces:
        assert (again / "episodes" / name).read_bytes() == (whole / "episodes" / name).read_bytes()


def test_another_seed_draws_anew(whole: Path, place: Path) -> None:
    other = place / "other"
    driven(made_run(other, SCENES[:1], RELATIONS[:1], seed=8))
    pair = "0/-/far_object_same_trace/0"
    one, another = ledger(other)[pair], ledger(whole)[pair]
    assert one["effects"] != another["effects"] and one["source"]["trace"] == another["source"]["trace"]
    assert (other / one["arrays"]).read_bytes() != (whole / another["arrays"]).read_bytes()


def test_two_instances_side_by_side_come_to_the_same_verdicts(whole: Path, place: Path) -> None:
    twin = place / "twin"
    driven(made_run(twin, SCENES, RELATIONS, seed=7, mode="twin"))
    assert lines(twin) == lines(whole)
    assert (twin / "episodes" / "0.identity.0.source.npz").is_file()


def test_the_ledger_has_what_makes_an_episode_again(whole: Path) -> None:
    line = ledger(whole)["0/-/pedestrian_nearer_brakes/0"]
    assert line["type"] == "episode" and line["draw"][0]["name"] == "crosser"
    assert line["changes"] == [
        {"name": "pedestrian_nearer", "params": {"least_m": 2.0, "most_m": 12.0, "left_m": 15.0}}
    ]
    assert line["scenario"]["actors"][0]["trigger"]["ego_within_m"] == 35.0
    assert line["effects"] == {"changed": ["crosser"], "numbers": {"nearer_m": line["draw"][0]["by_m"]}}
    for told in (line, line["source"]):
        assert sha256_of_trace(load_trace(whole / told["trace"])) == told["sha256"]
    assert line["source"]["trace"] == "episodes/0.source.npz" and line["ended"] == "time"
    assert "sent_sha256" in ledger(whole)["0/-/identity/0"]


def test_every_episode_is_an_mcap_of_standard_messages(whole: Path) -> None:
    with AnyReader([whole / "episodes" / "0.source.mcap"]) as bag:
        counts = {c.topic: (c.msgtype, c.msgcount) for c in bag.connections}
        assert counts == {
            "/mt/pair": ("std_msgs/msg/String", 1),
            "/episode": ("std_msgs/msg/String", 1),
            "/tf": ("tf2_msgs/msg/TFMessage", 40),
            "/ego/odometry": ("nav_msgs/msg/Odometry", 40),
            "/actors": ("visualization_msgs/msg/MarkerArray", 40),
            "/command": ("geometry_msgs/msg/TwistStamped", 40),
        }
        said = {c.topic: bag.deserialize(raw, c.msgtype) for c, _, raw in bag.messages()}
    trace = load_trace(whole / "episodes" / "0.source.npz")
    assert said["/ego/odometry"].pose.pose.position.x == pytest.approx(trace.column("x_m")[-1])
    assert json.loads(said["/episode"].data)["ended"] == "time" and said["/mt/pair"].data == "0.source"
    cube = said["/actors"].markers[1]
    assert (cube.pose.position.x, cube.pose.position.y) == pytest.approx(tuple(trace.actors[-1, 0, :2]))


@dataclass(frozen=True)
class AsIs(WorldMoved):
    """Moves nothing, and says that it moved everything."""

    def apply(self, setting: Setting, draw: dict[str, Any]) -> tuple[Setting, WorldEffects]:
        return setting, super().apply(setting, draw)[1]


@dataclass(frozen=True)
class IntoTheEgo(WorldMoved):
    """Puts somebody where the ego is."""

    def apply(self, setting: Setting, draw: dict[str, Any]) -> tuple[Setting, WorldEffects]:
        scenario = setting.scenario
        actors = (*scenario.actors, Actor("ghost", "adult", scenario.ego.start))
        return replace(setting, scenario=replace(scenario, actors=actors)), WorldEffects()


@dataclass(frozen=True)
class Failing(WorldMoved):
    """Divides by nothing."""

    def apply(self, setting: Setting, draw: dict[str, Any]) -> tuple[Setting, WorldEffects]:
        raise ZeroDivisionError("nothing to divide by")


def with_change(run: ScenarioRun, change: Any) -> ScenarioRun:
    (relation,) = run.suite.relations
    return replace(run, suite=replace(run.suite, relations=(replace(relation, scenario=(change,)),)))


def test_a_violated_pair_comes_with_what_both_stacks_were_given(place: Path) -> None:
    out = place / "violated"
    summary = driven(with_change(made_run(out, SCENES[1:], ("world_moved_same_trace",)), AsIs()))
    relation = summary["relations"]["world_moved_same_trace"]
    assert (summary["exit_code"], relation["outcome"], relation["violated"]) == (1, "FAIL", 1)
    (path,) = (out / "evidence").iterdir()
    assert path.name == "0_-_world_moved_same_trace_0.mcap"
    with AnyReader([path]) as bag:
        counts = {c.topic: c.msgcount for c in bag.connections}
    for arm in ("source", "followup"):
        assert counts[f"/mt/{arm}/ego/odometry"] == 20
        assert counts[f"/mt/{arm}/perception/ground_truth/objects"] == 12


def test_a_change_that_makes_no_world_is_invalid(place: Path) -> None:
    out = place / "invalid"
    driven(with_change(made_run(out, SCENES[1:], ("world_moved_same_trace",)), IntoTheEgo()))
    line = lines(out)["0/-/world_moved_same_trace/0"]
    assert line["outcome"] == "INVALID" and "actors.ghost: it overlaps ego at the start" in line["reason"]


def test_a_change_that_fails_ends_its_pair_alone(place: Path) -> None:
    out = place / "failing_change"
    run = made_run(out, SCENES[1:], ("world_moved_same_trace", RELATIONS[0]))
    moved, other = run.suite.relations
    summary = driven(replace(run, suite=replace(run.suite, relations=(replace(moved, scenario=(Failing(),)), other))))
    assert summary["exit_code"] == 4 and summary["outcomes"]["ERROR"] == 1
    told = lines(out)
    assert told["0/-/world_moved_same_trace/0"]["reason"].startswith(
        "scenario change 'failing' failed in apply (test_loop_run.py:"
    )
    assert told[f"0/-/{other.id}/0"]["outcome"] == "HOLDS"


class Interrupting:
    """Interrupts after some groups of verdicts."""

    def __init__(self, groups: int) -> None:
        self._left = groups

    def __call__(self, verdicts: Sequence[Verdict]) -> None:
        self._left -= 1
        if self._left == 0:
            raise KeyboardInterrupt


@pytest.mark.parametrize("groups", [1, 4, 8])
def test_a_run_that_was_interrupted_goes_on_and_journals_no_pair_twice(whole: Path, place: Path, groups: int) -> None:
    out = place / f"interrupted_{groups}"
    run = made_run(out, SCENES, RELATIONS, seed=7)
    assert driven(run, progress=Interrupting(groups))["exit_code"] == 130
    assert 0 < len(lines(out)) < len(lines(whole))
    assert driven(run)["exit_code"] == 3
    assert lines(out) == lines(whole) and ledger(out) == ledger(whole)


def test_a_finished_run_is_not_driven_again(whole: Path) -> None:
    def never(asked: int) -> Answer:
        raise AssertionError("nothing is owed")

    before = (whole / "result.jsonl").read_bytes()
    assert driven(made_run(whole, SCENES, RELATIONS, seed=7), stack_that(never))["exit_code"] == 3
    assert (whole / "result.jsonl").read_bytes() == before


def stack_that(says: Any) -> Any:
    class Fake(CallableArm):
        asked = 0

        def wait(self, ticket: Any, until_s: float | None = None) -> Answer:
            self.asked += 1
            return says(self.asked)  # type: ignore[no-any-return]

    return lambda run, ending: (arm := Fake("source", run.stack, {t: t for t in run.rig.topics.values()}), arm)


def cruising(asked: int) -> Answer:
    return Answer(AnswerStatus.ANSWERED, Output(control=Control(None, steering_rad=0.0, speed_mps=10.0)))


def dying(asked: int) -> Answer:
    if asked > 25:
        raise InfrastructureError("stack 'x' died; | its log")
    return cruising(asked)


@pytest.mark.parametrize(
    ("stateless", "mode", "restarts"), [(False, "two_pass", 3), (False, "twin", 2), (True, "twin", 0)]
)
def test_a_stack_that_remembers_is_started_anew_for_each_drive(
    stateless: bool, mode: str, restarts: int, place: Path
) -> None:
    count = Counter[str]()

    class Fake(CallableArm):
        def restart(self) -> None:
            count["restart"] += 1
            super().restart()

    stack = replace(load_stack("reference_planner"), stateless=stateless)
    run = made_run(place / f"{stateless}_{mode}", SCENES[1:], RELATIONS[:1], stack, mode=mode)
    arm = Fake("source", run.stack, {t: t for t in run.rig.topics.values()})
    driven(run, lambda run, ending: (arm, arm))
    assert count["restart"] == restarts


def raising(asked: int) -> Answer:
    """Raise once, in the second drive."""
    return Answer.nothing(AnswerStatus.FAILED, "stack 'x' raised ValueError: no") if asked == 25 else cruising(asked)


MISBEHAVIOUR = {
    "silent": (lambda asked: Answer.nothing(AnswerStatus.SILENT, "no answer"), 3, {"UNPAIRED_SOURCE": 3}),
    "nonsense": (lambda asked: Answer(AnswerStatus.ANSWERED, Output(control=Control(None))), 4, {"ERROR": 3}),
    "dying": (dying, 4, {"ERROR": 1}),
    "raising": (raising, 4, {"ERROR": 1, "HOLDS": 2}),
}


@pytest.mark.parametrize("kind", MISBEHAVIOUR)
def test_a_stack_that_misbehaves_has_an_outcome_of_its_own(kind: str, place: Path) -> None:
    says, code, expected = MISBEHAVIOUR[kind]
    summary = driven(made_run(place / kind, SCENES[1:], RELATIONS[:1]), stack_that(says))
    assert (summary["exit_code"], summary["outcomes"]) == (code, expected), summary
    assert ("died" in str(summary["infrastructure"])) is (kind == "dying")


# --- what is asked for -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def file(place: Path) -> str:
    path = place / "short.scenario"
    path.write_text(FILE, encoding="utf-8")
    return str(path)


def made(**asked: Any) -> ScenarioRun:
    return ScenarioRun.make(ScenarioRequest(**asked), Path())


def test_what_is_left_to_us_is_decided_once(file: str) -> None:
    run = made(scenarios=(file,))
    fitting = {r.id for r in shipped_relations(LOOP_FOLDER) if r.role == "relation" and "lidar" not in r.requires}
    assert {r.id for r in made(scenarios=(file,), relations=("all",)).suite.relations} == fitting > {*LOOP_DEFAULT}
    assert tuple(r.id for r in run.suite.relations) == LOOP_DEFAULT and len(run.episodes) == 20
    assert run.request.transport == "inprocess" and run.pairs_to_come == 20 * 3 * len(LOOP_DEFAULT)
    assert len(set(run.condition["bags"])) == 1 and run.condition["bags"][0].endswith("short.scenario#short_drive")
    assert [len(made(scenarios=(file, file), repeat=n).episodes) for n in (1, 3)] == [2, 6]
    exactly = made(scenarios=(file,), jitter=0.0).episodes
    starts = {planned.setting.scenario.actors[0].start.x_m for planned in exactly}
    assert len(starts) == 20 and 60.0 <= min(starts) <= max(starts) <= 80.0
    assert made(scenarios=(file,), parameters={"ahead": "80"}).episodes[0].setting.scenario.actors[0].start.x_m == 80.0


def test_repetitions_differ_a_little_and_the_first_is_what_the_file_says(file: str) -> None:
    exactly, usual, other = (
        [planned.setting.scenario for planned in made(scenarios=(file,), repeat=3, **more).episodes]
        for more in ({"jitter": 0.0}, {}, {"seed": 1})
    )
    assert usual[0] == exactly[0]
    assert [scenario.ego for scenario in exactly] == [exactly[0].ego] * 3
    places = [scenario.ego.start.x_m for scenario in (*usual[:1], *usual[1:], *other[1:])]
    assert len(set(places)) == 5 and all(abs(x - places[0]) <= 1.0 for x in places)


def test_repetitions_are_cases_where_there_is_one_scenario_and_they_are_no_copies(file: str, place: Path) -> None:
    other = place / "other.scenario"
    other.write_text(FILE.replace("short_drive", "other_drive"), encoding="utf-8")
    assert made(scenarios=(file,), repeat=3).condition["drives"] == [0, 1, 2]
    for more in ({"jitter": 0.0}, {"scenarios": (file, str(other))}):
        assert "drives" not in made(**{"scenarios": (file,), "repeat": 3, **more}).condition


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no scenario": ({"scenarios": ()}, "got no scenario"),
    "unknown scenario": ({"scenarios": ("pedestrian_crosse",)}, "did you mean 'pedestrian_crosses'"),
    "no file": ({"scenarios": ("nowhere.scenario",)}, "no file nowhere.scenario"),
    "unknown parameter": ({"parameters": {"ahed": "3"}}, "unknown parameter 'ahed'; did you mean 'ahead'"),
    "in nobody": ({"parameters": {"ahead": "21"}}, r"walker.* overlaps ego|overlap"),
    "mode": ({"mode": "shadow"}, "--mode: got 'shadow', expected two_pass, twin"),
    "transport": ({"transport": "udp"}, "--transport: got 'udp', expected ros, inprocess"),
    "repeat": ({"repeat": -1}, "--repeat: got -1"),
    "jitter": ({"jitter": -0.5}, "--jitter: got -0.5, expected 0 to 10"),
    "no control": ({"stack": "reference_detector"}, "no control: nothing moves in a closed loop"),
    "a relation of inputs": ({"relations": ("noise_outside_roi_10",)}, "the closed loop needs one of drives"),
    "a relation of another sensor": ({"relations": ("noise_outside_roi_same_trace",)}, "requires a lidar"),
    "unknown relation": ({"relations": ("far_object_same_trac",)}, "did you mean 'far_object_same_trace'"),
    "fault": ({"faults": ("evades_to_the_lef",)}, "did you mean 'evades_to_the_left'"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_run_is_refused_before_anything_is_written(case: str, file: str) -> None:
    asked, message = WRONG[case]
    with pytest.raises(UsageError, match=message):
        made(**{"scenarios": (file,), **asked})


def test_a_replay_refuses_relations_of_the_loop() -> None:
    relation, stack = load_relation("far_object_same_trace"), load_stack("reference_driver")
    assert "is of the closed loop, where `mt scenario` judges it" in str(incompatibility(relation, stack))
    with pytest.raises(UsageError, match="mutator: relation 'far_object_same_trace' is of the closed loop"):
        refuse_baseline(relation, "mutator")
    assert incompatibility(relation, load_stack("reference_planner"), loop=True) is None


def test_the_command_drives_and_goes_on(file: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(place / "cli")
    words = ["scenario", file, "--relations", "far_object_same_trace", "--repeat", "1", "--seed", "3"]
    assert main([*words, "--out", out]) == 3
    said = capsys.readouterr().out
    assert "far_object_same_trace" in said and "3 pairs offered: 3 HOLDS" in said
    assert main(["show", out]) == 0 and capsys.readouterr().out == said
    record = read_result(place / "cli" / "run.json")
    assert record["request"]["scenarios"] == [file] and record["request"]["seed"] == 3
    assert main([*words, "--out", out]) == 2 and "choose another directory" in capsys.readouterr().err
    before = (place / "cli" / "result.jsonl").read_bytes()
    assert main(["scenario", "--resume", out, "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["outcomes"] == {"HOLDS": 3}
    assert (place / "cli" / "result.jsonl").read_bytes() == before
    assert main(["scenario", "--resume", out, "--seed", "4"]) == 2
    assert "got --seed, too" in capsys.readouterr().err
    assert main(["scenario"]) == 2 and "got no scenario" in capsys.readouterr().err
    assert main(["scenario", file, "--set", "ahead"]) == 2 and "expected NAME=VALUE" in capsys.readouterr().err


def test_another_kind_of_run_is_not_gone_on_with(whole: Path, tmp_path: Path) -> None:
    record = read_result(whole / "run.json")
    write_result(tmp_path / "run.json", {**record, "request": {"bags": []}})
    with pytest.raises(UsageError, match="holds another kind of run"):
        ScenarioRun.load(tmp_path)


def test_files_are_printed_as_the_language_has_them(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    loose, xosc = place / "loose.scenario", place / "other.xosc"
    loose.write_text(FILE.replace(";", "", 1), encoding="utf-8")
    assert main(["scenario", str(loose), "--format"]) == 0
    said = capsys.readouterr()
    assert said.err.startswith("mt: warning: loose.scenario:") and "expected ';'" in said.err
    assert main(["scenario", str(loose), "--strict", "--relations", "far_crowd_brakes"]) == 2
    assert "warning" not in capsys.readouterr().err
    mended = place / "mended.scenario"
    mended.write_text(said.out, encoding="utf-8")
    assert main(["scenario", str(mended), "--format", "--strict"]) == 0
    assert capsys.readouterr() == (said.out, "")
    xosc.write_text("<OpenSCENARIO/>", encoding="utf-8")
    assert main(["scenario", str(xosc), "--format"]) == 2 and "expected .scenario" in capsys.readouterr().err
