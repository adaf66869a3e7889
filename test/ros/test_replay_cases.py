# SPDX-License-Identifier: Apache-2.0
"""Cases of a plan are run: their relations on their frames, with what is known of them; the rest is left alone."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_arms import FakeArm, FakeRecorder, Sent, answered, relation, seen, suite
from made_runs import carry_out, in_process
from mutations_for_tests import Shuffle
from recordings import bundles

from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.base.jsonl import read_result
from mt_nodes.base.processes import wait_until
from mt_nodes.cli.main import main
from mt_nodes.data.bags.bundles import Unreadable, write_bundles
from mt_nodes.data.outputs import Control, Output
from mt_nodes.engine.case_plan import CasePlan, PlannedCase, load_cases, write_cases
from mt_nodes.engine.journal import read_journal
from mt_nodes.engine.judging import Answer, AnswerStatus, Offer
from mt_nodes.engine.lockstep import Lockstep
from mt_nodes.engine.open_loop import AGREE, OpenLoop
from mt_nodes.engine.plan import ReplayRequest
from mt_nodes.engine.play_settings import PlaySettings
from mt_nodes.engine.recorder import ExecutedPair
from mt_nodes.engine.schedule import EVERYTHING, Schedule
from mt_nodes.relations.checks.steering_checks import KeepsCurrent
from mt_nodes.relations.conditions.source_conditions import KnownToBe
from mt_nodes.relations.pipeline import MutationPipeline
from mt_nodes.relations.relation import Relation
from mt_nodes.runs.replay.commands_file import CommandsFile, read_commands
from mt_nodes.runs.replay.execute import _tell_unreadable
from mt_nodes.runs.replay.replay_run import Run

COUNT = 12
FRAMES = bundles(COUNT, points=40)


def case(relation: str, first: int, last: int, bag: int = 0, draw: int = 0, **rest: Any) -> PlannedCase:
    return PlannedCase(f"drive/{first}", bag, first, last, draw, relation, **rest)


# --- who is offered what, on arms without a stack

A, B = relation("a"), relation("b")
CASES = (case("a", 2, 3), case("b", 3, 5), case("a", 8, 9), case("a", 8, 9, draw=1), case("", 10, 10))
#: What is owed of them: control and sham on every frame of any case, for both relations.
WANTED = {"a": {2, 3, 8, 9}, "b": {3, 4, 5}, "control": {2, 3, 4, 5, 8, 9, 10}}


def played(
    cases: Sequence[PlannedCase],
    *relations: Relation,
    mode: str = "twin",
    stateless: bool = True,
    source: FakeArm | None = None,
    followup: FakeArm | None = None,
    recorder: FakeRecorder | None = None,
    told: Callable[[ExecutedPair], None] = lambda one: None,
) -> tuple[FakeRecorder, FakeArm, FakeArm]:
    arms = source or FakeArm("source"), followup or FakeArm("followup")
    kept = recorder or FakeRecorder()
    loop = Lockstep(
        PlaySettings(
            suite(*(relations or (A, B))),
            7,
            mode=mode,
            stateless=stateless,
            publishes_when_empty=False,
            schedule=Schedule(cases),
        ),
        kept,  # type: ignore[arg-type]
        answered=told,
    )
    loop.run([lambda: iter(FRAMES)], arms[0], arms[0] if mode != "twin" else arms[1])
    return kept, *arms


def owed() -> set[str]:
    background = {f"0/{i}/{r}/0@{j}" for i in WANTED["control"] for r in ("identity", "points_permuted") for j in "ab"}
    second = {f"0/{i}/a/1" for i in (8, 9)}
    return background | second | {f"0/{i}/{name}/0" for name in "ab" for i in WANTED[name]}


@pytest.mark.parametrize(
    ("mode", "stateless"), [("twin", True), ("twin", False), ("two_pass", False), ("alternate", True)]
)
def test_a_relation_is_offered_on_the_frames_of_its_cases(mode: str, stateless: bool) -> None:
    kept, *_ = played(CASES, mode=mode, stateless=stateless)
    assert set(kept.lines) == owed()
    assert {pair for pair, _ in kept.followups} == {pair.partition("@")[0] for pair in owed()}
    assert set(kept.outcomes.values()) == {"HOLDS"}


def test_who_forgets_is_given_cases_alone() -> None:
    _, source, followup = played(CASES)
    assert sorted({sent.bundle.index for sent in source.sent}) == sorted(WANTED["control"])
    assert len(followup.sent) == 2 * 7 + 4 + 3 + 2


def test_who_remembers_is_given_the_source_between_cases_and_nothing_behind_the_last() -> None:
    _, source, followup = played(CASES[:3], stateless=False)
    passes = [[]]  # type: list[list[Any]]
    for name, what in followup.events:
        passes.append([]) if name == "begin_episode" else passes[-1].append(what) if name == "send" else None
    ends = [10, 10, 10, 6]  # control, sham, a, b
    assert [[index for index, _ in sent] for sent in passes[1:]] == [list(range(end)) for end in ends]
    assert [index for index, changed in passes[3] if changed] == [2, 3, 8, 9], "a is made of the frames of its cases"
    assert all(not sent.changed for sent in source.sent)
    assert followup.events.count(("restart", None)) == len(ends) - 1, "once a relation, not once a case"


def test_commands_are_told_before_verdicts_are_kept() -> None:
    """Else a run that is killed in between would never write them: what has its verdict is not played again."""
    kept, early = FakeRecorder(), []

    def tell(one: ExecutedPair) -> None:
        early.append(str(one.offer.followup_pair(one.source)))
        assert not [pair for pair in kept.lines if pair.partition("@")[0] == early[-1]]

    played(CASES, recorder=kept, told=tell)
    assert set(early) == {pair.partition("@")[0] for pair in owed()}
    silent = FakeArm("followup", lambda sent: Answer.nothing(AnswerStatus.SILENT, "late"))
    played(CASES, followup=silent, told=lambda one: pytest.fail("nobody answered"))


def test_a_relation_without_a_case_in_an_episode_costs_no_pass_over_it() -> None:
    kept = FakeRecorder()
    arms = FakeArm("source"), FakeArm("followup")
    loop = Lockstep(
        PlaySettings(
            suite(A, B),
            7,
            mode="twin",
            stateless=False,
            publishes_when_empty=False,
            schedule=Schedule([case("a", 0, 0), case("b", 1, 1, bag=1)]),
        ),
        kept,  # type: ignore[arg-type]
    )
    other = [replace(bundle, episode=1) for bundle in FRAMES]
    loop.run([lambda: iter(FRAMES), lambda: iter(other)], *arms)
    assert {pair for pair in kept.lines if pair[4] in "ab"} == {"0/0/a/0", "1/1/b/0"}
    assert len(arms[0].sent) == 3 * 1 + 3 * 2


def test_what_persists_begins_with_its_case_and_draws_differ(tmp_path: Path) -> None:
    made = relation("a", Shuffle(every_third=False))
    kept, *_ = played(CASES, made, B)
    begun = {pair: derived.draws[0]["of_episode"] for pair, derived in kept.followups if "/a/" in pair}
    assert begun["0/2/a/0"] == begun["0/3/a/0"] != begun["0/8/a/0"] == begun["0/9/a/0"] == begun["0/8/a/1"]
    late = MutationPipeline(made.mutate, 7, "a").derive(FRAMES[8], 0, first=8).draws[0]
    assert late["of_episode"] == begun["0/8/a/0"], "and is the same whoever comes along before"
    orders = {pair: derived.draws[0]["order"].tolist() for pair, derived in kept.followups if "/a/" in pair}
    assert orders["0/8/a/0"] != orders["0/8/a/1"]


def test_a_stack_that_dies_between_cases_ends_the_run_and_no_pair_that_was_not_offered() -> None:
    def dies(sent: Sent) -> Answer | Exception:
        return InfrastructureError("it died") if sent.bundle.index == 1 else answered(seen(1))

    kept = FakeRecorder()
    with pytest.raises(InfrastructureError, match="it died"):
        played(CASES, stateless=False, recorder=kept, followup=FakeArm("followup", dies))
    assert not kept.lines


@pytest.mark.parametrize(("mode", "stateless"), [("twin", True), ("twin", False), ("two_pass", False)])
def test_what_is_done_is_not_played_again(mode: str, stateless: bool) -> None:
    done = {pair for pair in owed() if "/b/" not in pair}
    kept, source, followup = played(CASES, mode=mode, stateless=stateless, recorder=FakeRecorder(before=done))
    assert set(kept.lines) == owed() - done
    changed = [sent.bundle.index for arm in (source, followup) for sent in arm.sent if sent.changed]
    assert set(changed) == WANTED["b"]


@pytest.mark.parametrize("facts", [{}, {"speed_kmh": 60.0}, {"speed_kmh": 40.0}])
def test_conditions_are_asked_of_what_is_known_of_the_case(facts: dict[str, float]) -> None:
    bound = relation("a", given=(KnownToBe("speed_kmh > 50"),))
    cases = (case("a", 0, 1, facts=facts), case("b", 0, 1, facts={"speed_kmh": 40.0}))
    kept, *_ = played(cases, bound, B)
    expected = "HOLDS" if facts.get("speed_kmh") == 60.0 else "NOT_APPLICABLE"
    of_a = {pair: outcome for pair, outcome in kept.outcomes.items() if pair.endswith(("/a/0", "@a"))}
    assert len(of_a) == 6 and set(of_a.values()) == {expected}, "control and sham are asked the same for a relation"
    unknown = kept.lines["0/0/a/0"].judgement.reason
    assert unknown.startswith({"HOLDS": "", "NOT_APPLICABLE": "it is "}[expected])
    assert ("unknown" in unknown) == (not facts)


def test_without_cases_everything_is_offered_everywhere() -> None:
    offer = EVERYTHING.offers(suite(A), draws=2)[-1]
    assert (offer.relation.id, offer.draw) == ("a", 1)
    assert EVERYTHING.wants(offer, FRAMES[3]) and EVERYTHING.first(offer, FRAMES[3]) is None
    assert list(EVERYTHING.until_end(offer, lambda: iter(FRAMES))) == FRAMES
    assert EVERYTHING.facts(offer, A, FRAMES[3]) == {} and EVERYTHING.count(offer, 0, 5) == 5


def test_a_frame_is_of_every_case_that_holds_it() -> None:
    schedule = Schedule((case("a", 0, 3, facts={"x": 1}), replace(case("b", 2, 5, facts={"x": 2}), name="other")))
    control, _, a, b = schedule.offers(suite(A, B))
    assert schedule.names(control, FRAMES[1]) == ("drive/0",) and schedule.names(control, FRAMES[2]) == (
        "drive/0",
        "other",
    )
    assert schedule.names(b, FRAMES[2]) == ("other",) and schedule.names(a, FRAMES[5]) == ()
    rounds = Schedule((case("a", 0, 1), case("b", 0, 1, draw=1)))
    assert rounds.names(control, FRAMES[1]) == ("drive/0",), "cases of several rounds have one name"
    told = [
        schedule.facts(offer, judge, FRAMES[2])["x"] for offer, judge in ((control, A), (control, B), (a, A), (b, B))
    ]
    assert told == [1, 2, 1, 2] and schedule.facts(control, B, FRAMES[1])["x"] == 1


# --- arms that were told apart


def says(speed: float) -> Answer:
    return Answer(AnswerStatus.ANSWERED, Output(control=Control(0, 0.0, speed)))


def walked(course: str, agree: Sequence[bool]) -> str:
    """Go along a course (``1``, ``2``: the frames of a case, ``.``: none) with arms that agree or not.

    Returns ``J`` where an instant is judged, ``s`` where the arms settle.
    """
    judge = relation("keeps", check=KeepsCurrent())
    loop, told = OpenLoop(Offer(judge, (judge,)), True), ""
    for i, (what, same) in enumerate(zip(course, agree, strict=True)):
        bundle = replace(FRAMES[0], index=i, stamp_ns=i * 10**8)
        answers = (says(5.0), says(5.0 if same else 9.0))
        if what == ".":
            loop.rests(bundle, answers)
            told += "."
            continue
        settling = loop.settling(bundle, int(what))
        told += "s" if settling else "J"
        loop.note_answers(bundle, answers, settling)
    return told


@pytest.mark.parametrize(
    ("course", "apart", "told"),
    [
        ("...111", (), "...JJJ"),  # arms that were given the same agree, whatever they say
        ("...111", (0, 1, 2), "...JJJ"),
        ("111.....222", (0, 1, 2), "JJJ.....JJJ"),
        ("111......22", (2, 3), "JJJ......JJ"),
        ("111....222222", (0, 1, 2), "JJJ....sJJJJJ"),  # the fifth agreement comes within the case
        ("111.....222222222", (0, 1, 2, 3, 7), "JJJ.....sssssJJJJ"),
        ("111222222222", (0, 1, 2), "JJJsssssJJJJ"),  # one case right behind another
        ("111222222222", (), "JJJsssssJJJJ"),
        ("111.....222.333", (0, 1, 2, 8, 9, 10), "JJJ.....JJJ.sss"),  # what agreed before the last case is forgotten
    ],
)
def test_a_case_begins_with_arms_that_agree(course: str, apart: tuple[int, ...], told: str) -> None:
    assert AGREE == 5
    assert walked(course, [i not in apart for i in range(len(course))]) == told


# --- whole runs in this process

STACK = '''
import os, time
from mt_nodes.data.outputs import Control

class Slow:
    """Follows the number of points with a speed that remembers, as slowly as it is asked to."""
    def __init__(self, share=0.5):
        self.speed, self.share = 5.0, share
    def __call__(self, points):
        time.sleep(float(os.environ.get("SLOW_S", 0)))
        self.speed += self.share * (len(points) / 20.0 - self.speed)
        return Control(None, speed_mps=self.speed, yaw_rate_radps=0.1)
'''
LESS, SIGN, GREEN = "less", "sign", "green"
STATELESS, REMEMBERS = "forgets.yaml", "remembers.yaml"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("cases")
    write_bundles(directory / "drive", bundles(COUNT, points=100))
    (directory / "case_stack.py").write_text(STACK)
    for name, stateless in ((STATELESS, True), (REMEMBERS, False)):
        # Who forgets follows at once.
        told = {"callable": "case_stack:Slow", "stateless": stateless, "outputs": {"control": {}}}
        (directory / name).write_text(json.dumps({**told, "params": {"share": 1.0 if stateless else 0.5}}))
    # What it is turned by is drawn once a case.
    turned = {"cloud_rotated": {"yaw_rad": 0.1, "spread_rad": 0.05, "drawn_once": True}}
    mutate = [{"points_dropped": {"share": 0.3}}, turned]
    head = {"kind": "expected", "because": "x", "mutate": mutate, "check": "slows_down"}
    given = {SIGN: ["speed_kmh > 50"], GREEN: ["moving and path_clear and not has(red_light)"], LESS: []}
    for name, conditions in given.items():
        asked = [{"known_to_be": {"condition": condition}} for condition in conditions]
        keeps = {"check": "keeps_current"} if name == LESS else {}
        (directory / f"{name}.yaml").write_text(json.dumps({"id": name, **head, "given": asked, **keeps}))
    return directory


def planned(place: Path, name: str, *cases: PlannedCase) -> Path:
    path = place / f"{name}.yaml"
    write_cases(CasePlan({}, tuple(replace(c, relation=c.relation and f"{c.relation}.yaml") for c in cases)), path)
    return path


USUAL = (
    case(LESS, 1, 3),
    case(SIGN, 4, 6, facts={"speed_kmh": 60.0}),
    case(SIGN, 7, 8, facts={"speed_kmh": 40.0}, draw=1),
    case(GREEN, 7, 8, facts={"speed_kmh": 0.0, "path_clear": True, "has": []}),
    case(LESS, 9, 10, draw=1),
    case("", 11, 11, why="none applied"),
)


def ran(place: Path, out: Path, **asked: Any) -> Run:
    """Run the usual cases; what comes after has the copy of the plan alone."""
    plan = planned(place, f"{out.name}_plan", *USUAL)
    run = in_process(place / "drive", out, cases=str(plan), **asked)
    plan.unlink()
    return run


def outcomes(run: Path) -> dict[str, str]:
    return {row["pair"]: row["outcome"] for row in read_journal(run / "result.jsonl") if row["type"] == "verdict"}


@pytest.fixture(scope="module", params=[STATELESS, REMEMBERS])
def done(request: Any, place: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    asked = {"stack": str(place / request.param), "mode": "alternate" if request.param == STATELESS else "twin"}
    return ran(place, tmp_path_factory.mktemp("done") / "run", **asked)


def test_a_plan_is_run_and_kept(done: Run, place: Path) -> None:
    told = outcomes(done.out)
    own = {pair: outcome for pair, outcome in told.items() if pair.split("/")[2] in (LESS, SIGN, GREEN)}
    expected = {f"0/{i}/less/0": "VIOLATED" for i in (1, 2, 3)} | {f"0/{i}/sign/0": "HOLDS" for i in (4, 5, 6)}
    expected |= {f"0/{i}/{name}": "NOT_APPLICABLE" for i in (7, 8) for name in ("sign/1", "green/0")}
    expected |= {f"0/{i}/less/1": "VIOLATED" for i in (9, 10)}
    assert own == expected
    assert len(told) == len(expected) + 11 * 2 * 3 == done.pairs_to_come
    kept = load_cases(done.out / "cases.yaml")
    assert [replace(c, relation=Path(c.relation).stem) for c in kept.cases] == list(USUAL)
    about = read_result(done.out / "run.json")
    assert about["cases"] == kept.as_plain() and about["request"]["relations"] == list(kept.relations)
    summary = read_result(done.out / "summary.json")
    assert summary["offered"] == len(told) and set(summary["relations"]) == {LESS, SIGN, GREEN}
    assert (done.out / "report.html").stat().st_size > 0


def test_commands_of_every_answered_followup_are_kept(done: Run) -> None:
    rows = read_commands(done.out)
    own = [row for row in rows if row.pair.relation in (LESS, SIGN, GREEN)]
    assert {(str(row.pair), row.case) for row in own} == {
        (f"0/{i}/{c.relation}/{c.draw}", c.name) for c in USUAL if c.relation for i in c.frames
    }
    for name in ("identity", "points_permuted"):
        same = [row for row in rows if row.pair.relation == name]
        # Frames 7 and 8 are of two cases of one name, so of one.
        assert [(row.pair.bundle, row.case) for row in same] == [
            (i, c.name) for i in range(1, 12) for c in USUAL if i in c.frames and c.relation != GREEN
        ]
        assert all(row.source == row.followup for row in same)
    first = own[0]
    assert first.followup.speed_mps is not None and first.source.speed_mps is not None
    assert first.followup.speed_mps < first.source.speed_mps == pytest.approx(5.0)
    assert first.source.steering_rad == pytest.approx(2.7 * 0.1 / 5.0, rel=0.01)


def lines(run: Path, name: str) -> list[str]:
    return sorted((run / name).read_text().splitlines())


def test_a_run_cut_off_anywhere_comes_to_the_same_without_the_plan(done: Run, tmp_path: Path) -> None:
    torn, at = tmp_path / "torn", random.Random(done.stack.name)
    shutil.copytree(done.out, torn)
    journal = (torn / "result.jsonl").read_bytes()
    end = at.randrange(journal.index(b"\n") + 1, len(journal))
    (torn / "result.jsonl").write_bytes(journal[:end])
    judged = journal[:end].count(b"\n") - 1
    commands = (torn / "commands.jsonl").read_bytes().splitlines(keepends=True)
    # A line is written before the verdicts of its pair: three of control and sham each, else one.
    (torn / "commands.jsonl").write_bytes(b"".join(commands[: judged + 1])[:-3])
    carry_out(Run.resume(torn))
    for name in ("result.jsonl", "ledger.jsonl"):
        assert lines(torn, name) == lines(done.out, name)
    assert {str(row) for row in read_commands(torn)} == {str(row) for row in read_commands(done.out)}
    assert load_cases(torn / "cases.yaml") == load_cases(done.out / "cases.yaml")


def test_a_plan_that_was_edited_is_not_gone_on_with(done: Run, tmp_path: Path) -> None:
    torn = tmp_path / "torn"
    shutil.copytree(done.out, torn)
    kept = load_cases(torn / "cases.yaml")
    write_cases(replace(kept, cases=kept.cases[:-1]), torn / "cases.yaml")
    with pytest.raises(UsageError, match=r"cannot be resumed under another condition \(cases: was"):
        carry_out(Run.resume(torn))


@pytest.mark.parametrize("pair", ["0/10/less/1", "0/3/less/0", "0/8/sign/1", "0/4/identity/0@sign"])
def test_a_pair_of_a_case_comes_again(done: Run, pair: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["reproduce", str(done.out), pair, "--json", "--out", str(tmp_path / "again")]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["same_followup"] and told["from_seed"] == told["expected"] and told["differs"] == []
    assert told["now"]["outcome"] == outcomes(done.out)[pair]


def test_what_it_was_is_shown_again(done: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(done.out)]) == 0
    assert main(["compare", str(done.out), str(done.out), "--json"]) in (0, 3)
    assert LESS in capsys.readouterr().out


def test_frames_that_cannot_be_read_end_as_errors_of_their_cases_alone(place: Path, tmp_path: Path) -> None:
    plan = planned(place, "damaged", case(LESS, 1, 2))
    request = ReplayRequest((str(place / "drive"),), cases=str(plan), stack=str(place / STATELESS))
    run, kept = Run.make(request, tmp_path), FakeRecorder()
    for frame in (2, 3):
        run.damage.bundles[0, frame] = Unreadable(FRAMES[frame], InfrastructureError("torn"))
    _tell_unreadable(run, kept, lambda verdicts: None)  # type: ignore[arg-type]
    assert set(kept.outcomes) == {"0/2/less/0", "0/2/identity/0@less", "0/2/points_permuted/0@less"}
    assert set(kept.outcomes.values()) == {"ERROR"}


@pytest.mark.parametrize(
    ("cases", "asked", "told"),
    [
        ((case(LESS, 10, 12),), {}, r"cases\[0\].last: got 12, and .*drive has 12 frames, numbered from 0"),
        ((case(LESS, 0, 1), case(LESS, 0, 1, bag=1)), {}, r"cases\[1\].bag: got 1, and 1 bag, numbered from 0"),
        ((case(LESS, 0, 5),), {"limit": 3}, r"cases\[0\].last: got 5, and --limit 3"),
        ((case("", 0, 1),), {}, "none of 1 case has a relation to run"),
        ((case("none", 0, 1),), {}, r"cases\[0\].relation: no file .*none.yaml"),
        ((case(LESS, 0, 1),), {"draws": 2}, "--cases: got --draws 2, too"),
        ((case(LESS, 0, 1),), {"pace": "realtime", "transport": "ros"}, "--cases: got --pace realtime, too"),
    ],
)
def test_what_cannot_be_run_is_told_with_its_place(
    place: Path, tmp_path: Path, cases: tuple[PlannedCase, ...], asked: dict[str, Any], told: str
) -> None:
    plan = planned(place, "wrong", *cases)
    given = {"transport": "inprocess", "stack": str(place / STATELESS), **asked}
    with pytest.raises(UsageError, match=told):
        Run.create(ReplayRequest((str(place / "drive"),), cases=str(plan), **given), str(tmp_path / "out"))


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("rule_germany_300", "no relation 'rule_germany_300'"),
        ("identity", "'identity' is the control, which is offered on the frames of all cases anyway"),
        ("frames_repeated_output_rate", "judges whole episodes, and a case is a few frames"),
        ("noise_outside_roi_10", "judges detections; stack .* match for it"),
        ("person_ahead_slows_down_ni", "no relation|no file"),
    ],
)
def test_relations_that_cases_cannot_have_are_told(place: Path, tmp_path: Path, name: str, told: str) -> None:
    path = place / "named.yaml"
    write_cases(CasePlan({}, (case(name, 0, 1),)), path)
    request = ReplayRequest(
        (str(place / "drive"),), cases=str(path), transport="inprocess", stack=str(place / STATELESS)
    )
    with pytest.raises(UsageError, match=rf"named.yaml: cases\[0\].relation: .*({told})"):
        Run.create(request, str(tmp_path / "out"))


def test_cases_and_relations_exclude_each_other(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = planned(place, "both", *USUAL)
    assert main(["replay", str(place / "drive"), "--cases", str(plan), "--relations", "identity"]) == 2
    assert "--cases names its relations; leave --relations and --suite out" in capsys.readouterr().err


def test_who_was_killed_goes_on_as_if_nothing_had_been(place: Path, tmp_path: Path) -> None:
    plan, (quiet, killed) = planned(place, "killed", *USUAL), (tmp_path / name for name in ("quiet", "killed"))
    asked = ("--cases", plan, "--stack", place / REMEMBERS, "--transport", "inprocess")
    words = [str(word) for word in ("replay", place / "drive", *asked, "--out")]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "SLOW_S": "0.05"}
    run = [sys.executable, "-m", "mt_nodes.cli.main", *words, str(killed)]
    with subprocess.Popen(run, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        journal = killed / "result.jsonl"
        assert wait_until(lambda: journal.is_file() and journal.read_bytes().count(b"\n") > 5, 200.0)
        process.kill()
    assert process.returncode == -signal.SIGKILL, "it was over before it was killed"
    assert 0 < len(outcomes(killed)) < 66 and not (killed / "summary.json").exists()
    assert main(["replay", "--resume", str(killed)]) == main([*words, str(quiet)])
    for name in ("result.jsonl", "ledger.jsonl"):
        assert lines(killed, name) == lines(quiet, name)
    assert {str(row) for row in read_commands(killed)} == {str(row) for row in read_commands(quiet)}


@pytest.mark.parametrize(
    ("stack", "mode"), [(REMEMBERS, "twin"), pytest.param(STATELESS, "alternate", marks=pytest.mark.long)]
)
def test_over_topics_it_is_the_same(
    place: Path, tmp_path: Path, domains: tuple[int, ...], stack: str, mode: str
) -> None:
    plan, runs = planned(place, f"over_topics_{mode}", case(LESS, 1, 2)), []
    for transport in ("inprocess", "ros"):
        runs.append(tmp_path / transport)
        words = ("--cases", plan, "--stack", place / stack, "--mode", mode, "--transport", transport, "--out", runs[-1])
        assert main(["replay", str(place / "drive"), *map(str, words)]) in (1, 3)
    here, there = runs
    assert outcomes(here) == outcomes(there)
    said = [{(str(row.pair), row.case): row.followup.speed_mps for row in read_commands(out)} for out in runs]
    assert len(said[0]) == 6 and said[0] == pytest.approx(said[1])


def test_a_line_of_commands_that_comes_twice_counts_once(tmp_path: Path) -> None:
    pair = Offer(A, (A,)).followup_pair(FRAMES[2])
    file = CommandsFile(tmp_path)
    for speed in (3.0, 4.0):
        file.add(pair, ["one", "other"], Output(), Output(control=Control(0, speed_mps=speed)))
    file.close()
    rows = read_commands(tmp_path)
    assert [(row.case, row.followup.speed_mps, row.source.speed_mps) for row in rows] == [
        ("one", 4.0, None),
        ("other", 4.0, None),
    ]
    with pytest.raises(UsageError, match="expected the results directory of `mt replay --cases`"):
        read_commands(tmp_path / "nowhere")
