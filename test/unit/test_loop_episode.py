# SPDX-License-Identifier: Apache-2.0
"""One episode: the world waits for the stack, whatever the stack does."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from made_drives import SPEED_MPS, crossing, pedestrian, setting

from mt_nodes.base.errors import InfrastructureError, NotApplicable
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle
from mt_nodes.data.outputs import Control, Output
from mt_nodes.data.verdict import Judgement, Outcome
from mt_nodes.engine.judging import Answer, AnswerStatus, Offer
from mt_nodes.engine.message_digests import sha256_of
from mt_nodes.relations.checks.drive_checks import CollisionsNotMore, SameTrace
from mt_nodes.relations.mutations.base import Draw, Followup, Mutation
from mt_nodes.relations.mutations.stream.identity import Identity
from mt_nodes.relations.pipeline import MutationPipeline
from mt_nodes.relations.relation import Relation
from mt_nodes.relations.world_changes.base import Setting, WorldEffects
from mt_nodes.runs.loop.drive_judging import EpisodeJudge
from mt_nodes.runs.loop.ego_sensors import Sensors
from mt_nodes.runs.loop.episode import SILENT_S, PlayedEpisode, Player, play, replay_observations
from mt_nodes.runs.loop.rig import Rig
from mt_nodes.stacks.stack import load_stack
from mt_nodes.world.drive.driven import ScenarioTrace
from mt_nodes.world.drive.trace_file import load_trace, save_trace, sha256_of_trace
from mt_nodes.world.drive.world import World

RIG = Rig.for_stack(load_stack("reference_planner"))
SCENE = setting(crossing(), duration_s=3.0)
Says = Callable[[int], "Control | None"]


def cruise(index: int) -> Control:
    return Control(None, steering_rad=0.0, speed_mps=SPEED_MPS)


def swerve(index: int) -> Control:
    return Control(None, steering_rad=0.05 * np.sin(index), speed_mps=SPEED_MPS + np.cos(index))


@dataclass(eq=False)
class FakeArm:
    """Says what a function tells it to, and keeps what it was given; None: silence."""

    says: Says
    name: str = "source"
    given: list[Bundle] = field(default_factory=list)
    log: list[str] = field(default_factory=list)

    def begin_episode(self) -> None:
        self.log.append("begin")

    def send(self, bundle: Bundle, changed: frozenset[str], *_: Any) -> int:
        assert changed == {message.topic for message in bundle.messages}
        self.given.append(bundle)
        self.log.append(f"{self.name} asked")
        return len(self.given) - 1

    def wait(self, ticket: int, until_s: float | None = None) -> Answer:
        self.log.append(f"{self.name} heard")
        said = self.says(ticket)
        return (
            Answer(AnswerStatus.ANSWERED, Output(control=said, answer_ms=1.5))
            if said
            else Answer.nothing(AnswerStatus.SILENT, "late")
        )


def player(says: Says = cruise, scene: Setting = SCENE, seed: int = 0, **rest: Any) -> Player:
    world, eyes = World(scene.scenario, 0, scene.road), Sensors(scene.scenario, scene.road, RIG, seed)
    arm: Any = FakeArm(says)
    return Player(scene, world, eyes, arm, 4, **rest)


def drive(says: Says = cruise, scene: Setting = SCENE, seed: int = 0, **rest: Any) -> PlayedEpisode:
    (played,) = play([player(says, scene, seed, **rest)])
    return played


def test_a_drive_has_a_row_an_instant_at_which_the_stack_was_asked() -> None:
    played = drive()
    trace = played.driven.trace
    assert played.ended == "time" and len(trace) == 30 and trace.answered.all()
    np.testing.assert_allclose(trace.time_s, 0.1 * np.arange(30))
    assert trace.column("x_m")[-1] == pytest.approx(20.0 + 2.9 * SPEED_MPS, abs=0.01)
    assert (played.unanswered, played.silence, played.reason, played.sent_sha256) == (0, "", "", "")
    assert played.answer_ms == (1.5,) * 30


def test_worlds_with_equal_seeds_and_commands_stay_equal() -> None:
    one, other = drive(swerve), drive(swerve)
    assert sha256_of_trace(one.driven.trace) == sha256_of_trace(other.driven.trace)
    assert sha256_of_trace(drive().driven.trace) != sha256_of_trace(one.driven.trace)


def test_side_by_side_both_are_asked_before_either_is_waited_for() -> None:
    one, other, log = player(), player(), []
    for who, name in ((one, "source"), (other, "followup")):
        assert isinstance(who.arm, FakeArm)
        who.arm.name, who.arm.log = name, log
    first, second = play([one, other])
    assert log[:6] == ["begin", "begin", "source asked", "followup asked", "source heard", "followup heard"]
    assert sha256_of_trace(first.driven.trace) == sha256_of_trace(second.driven.trace)


def test_side_by_side_the_longer_drive_goes_on_alone() -> None:
    short, long = play([player(scene=setting(duration_s=1.0)), player()])
    assert (len(short.driven.trace), len(long.driven.trace)) == (10, 30)


def test_a_stack_that_never_answers_is_not_waited_for_to_the_end() -> None:
    played = drive(lambda index: None)
    rows = round(SILENT_S / 0.1)
    assert played.ended == "silent" and len(played.driven.trace) == rows
    assert (played.unanswered, played.silence) == (rows, "late") and not played.driven.trace.answered.any()


def test_a_late_answer_is_none_and_the_command_before_is_held() -> None:
    late = drive(lambda index: None if 5 <= index < 9 else swerve(index // 10))
    held = drive(lambda index: swerve(0 if 5 <= index < 9 else index // 10))
    assert late.ended == "time" and late.unanswered == 4
    np.testing.assert_array_equal(late.driven.trace.ego, held.driven.trace.ego)
    assert late.driven.trace.answered.sum() == 26 and np.isnan(late.driven.trace.commands[5:9]).all()


def test_who_answers_every_other_time_is_not_silent() -> None:
    played = drive(lambda index: None if index % 2 else cruise(index))
    assert played.ended == "time" and played.unanswered == 15


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (Control(None), "none of acceleration_mps2, speed_mps"),
        (Control(None, speed_mps=5.0), "neither steering_rad nor yaw_rate_radps"),
        (Control(None, steering_rad=float("inf"), speed_mps=5.0), "steering_rad is inf"),
        (Control(None, steering_rad=0.0, speed_mps=-2.0), "does not reverse"),
    ],
)
def test_what_no_car_can_do_ends_the_drive_with_its_reason(command: Control, why: str) -> None:
    played = drive(lambda index: command if index == 7 else cruise(index))
    assert played.ended == "bad_command" and why in played.reason and len(played.driven.trace) == 8


def test_a_stack_that_dies_is_not_taken_for_a_silent_one() -> None:
    def dies(index: int) -> Control:
        raise InfrastructureError("it is gone")

    with pytest.raises(InfrastructureError, match="it is gone"):
        drive(dies)


@dataclass(frozen=True)
class Tapped(Mutation):
    """Gives everybody one object less, or does what it must not."""

    sensors = ("lidar",)
    does: str = "less"

    def draw(self, rng: np.random.Generator, bundle: Bundle, state: Any) -> Draw:
        if self.does == "refuses" and bundle.index == 3:
            raise NotApplicable("nobody is there")
        return {}

    def apply(self, bundle: Bundle, draw: Draw) -> Followup:
        told = tuple(
            replace(t, data=t.data.take(np.arange(0))) if t.role == "objects" else t  # type: ignore[union-attr]
            for t in bundle.world_messages
        )
        made = replace(bundle, world_messages=told)
        return Followup({"twice": ((0, made), (5, made))}.get(self.does, ((0, made),)), Effects())

    def guarantee(self, source: Bundle, followup: Followup, draw: Draw) -> str | None:
        return "it is broken" if self.does == "breaks" and source.index == 2 else None


def tapped(does: str) -> PlayedEpisode:
    return drive(tap=MutationPipeline((Tapped(does),), 0, "r"), draw=0)


def objects_of(bundle: Bundle) -> int:
    (told,) = (t for t in bundle.world_messages if t.role == "objects")
    return len(told.data)  # type: ignore[arg-type]


def test_a_tap_changes_what_the_stack_is_given_and_nothing_else() -> None:
    there = player(tap=MutationPipeline((Tapped(),), 0, "r"))
    (played,) = play([there])
    assert isinstance(there.arm, FakeArm)
    assert {objects_of(bundle) for bundle in there.arm.given} == {0}
    assert sha256_of_trace(played.driven.trace) == sha256_of_trace(drive().driven.trace)
    same = drive(tap=MutationPipeline((Identity(),), 0, "identity"))
    assert len(played.sent_sha256) == 64 and played.sent_sha256 != same.sent_sha256


@pytest.mark.parametrize(
    ("does", "outcome", "why", "rows"),
    [
        ("refuses", Outcome.NOT_APPLICABLE, "at 0.3 s: nobody is there", 3),
        ("twice", Outcome.NOT_APPLICABLE, "an input is sent once", 0),
        ("breaks", Outcome.INVALID, "bundle 2: tapped: it is broken", 2),
    ],
)
def test_a_tap_without_an_honest_follow_up_ends_the_drive(does: str, outcome: Outcome, why: str, rows: int) -> None:
    played = tapped(does)
    assert played.unfit is outcome and why in played.reason and played.ended == "unfit"
    assert len(played.driven.trace) == rows


def test_what_was_seen_is_seen_again_when_the_commands_are_played_again() -> None:
    there = player(swerve, seed=3)
    (played,) = play([there])
    assert isinstance(there.arm, FakeArm)
    again = replay_observations(player(seed=3), played.commands, {0, 13, 29})
    assert [sha256_of(b) for b in again] == [sha256_of(there.arm.given[i]) for i in (0, 13, 29)]
    other = replay_observations(player(seed=4), played.commands, {13})
    crowd = setting(crossing(), pedestrian(30.0, 3.0), pedestrian(35.0, -4.0, "third"), duration_s=3.0)
    orders = {sha256_of(replay_observations(player(scene=crowd, seed=s), played.commands, {13})[0]) for s in range(4)}
    assert sha256_of(other[0]) == sha256_of(again[1]) and len(orders) > 1


def test_a_trace_survives_its_file_and_equal_ones_make_equal_files(tmp_path: Any) -> None:
    hit = setting(pedestrian(20.0), duration_s=4.0)
    trace = drive(scene=hit).driven.trace
    assert trace.ended == "collision" and trace.collisions[0].name == "walker"
    for name in ("one", "two"):
        save_trace(tmp_path / f"{name}.npz", trace)
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
    read = load_trace(tmp_path / "one.npz")
    assert sha256_of_trace(read) == sha256_of_trace(trace)
    assert (read.collisions, read.names, read.ended) == (trace.collisions, trace.names, trace.ended)
    np.testing.assert_array_equal(read.ego, trace.ego)
    (tmp_path / "two.npz").write_bytes(b"PK nothing")
    with pytest.raises(InfrastructureError, match=r"two\.npz: cannot be read"):
        load_trace(tmp_path / "two.npz")


# --- what becomes of a pair ------------------------------------------------------------------------------------------

SAME = Relation("same", "necessary", "for tests", (Identity(),), SameTrace())
HITS = Relation("hits", "necessary", "for tests", (Identity(),), CollisionsNotMore())
CONTROL = Relation("identity", "necessary", "for tests", (Identity(),), None)


def outcomes(source: PlayedEpisode, followup: PlayedEpisode, says_when_empty: bool = True) -> Sequence[Outcome]:
    offer = Offer(CONTROL, (SAME, HITS))
    verdicts = EpisodeJudge(says_when_empty).judge(offer, 4, source, followup, WorldEffects())
    assert [str(v.pair) for v in verdicts] == ["4/-/identity/0@same", "4/-/identity/0@hits"]
    return [v.outcome for v in verdicts]


GOOD, QUIET = drive(), drive(lambda index: None)
REVERSES = drive(lambda index: Control(None, steering_rad=0.0, speed_mps=-2.0))
HOLDS, VIOLATED, ERROR = Outcome.HOLDS, Outcome.VIOLATED, Outcome.ERROR


@pytest.mark.parametrize(
    ("source", "followup", "says_when_empty", "expected"),
    [
        (GOOD, GOOD, True, [HOLDS, HOLDS]),
        (GOOD, drive(lambda index: swerve(1)), True, [VIOLATED, HOLDS]),
        (QUIET, GOOD, True, [Outcome.UNPAIRED_SOURCE] * 2),
        (QUIET, QUIET, True, [Outcome.UNPAIRED_BOTH] * 2),
        (GOOD, QUIET, True, [VIOLATED] * 2),
        (GOOD, QUIET, False, [Outcome.UNPAIRED_FOLLOWUP] * 2),
        (REVERSES, GOOD, True, [ERROR] * 2),
        (GOOD, REVERSES, True, [ERROR] * 2),
        (GOOD, tapped("breaks"), True, [Outcome.INVALID] * 2),
        (GOOD, tapped("refuses"), True, [Outcome.NOT_APPLICABLE] * 2),
    ],
)
def test_pairs(
    source: PlayedEpisode, followup: PlayedEpisode, says_when_empty: bool, expected: Sequence[Outcome]
) -> None:
    assert outcomes(source, followup, says_when_empty) == expected


class Fails(SameTrace):
    """Divides by nothing."""

    def judge_drives(self, source: ScenarioTrace, followup: ScenarioTrace, effects: WorldEffects) -> Judgement:
        raise ZeroDivisionError("nothing to divide by")


def test_a_check_that_fails_is_told_as_an_error() -> None:
    fails = replace(SAME, check=Fails())
    (verdict,) = EpisodeJudge(True).judge(Offer(fails, (fails,)), 0, GOOD, GOOD, WorldEffects())
    assert verdict.outcome is ERROR
    reason = (
        r"check 'fails' failed in judge_drives \(test_loop_episode.py:\d+\): ZeroDivisionError: nothing to divide by"
    )
    assert re.fullmatch(reason, verdict.judgement.reason)
