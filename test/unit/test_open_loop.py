# SPDX-License-Identifier: Apache-2.0
"""Commands of a stack that remembers are judged for a while after the arms agreed, then the arms settle anew."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from fake_arms import FakeArm, FakeRecorder, Sent, relation, run, seen, suite
from hypothesis import given, settings
from hypothesis import strategies as st
from mutations_for_tests import Shuffle
from recordings import bundles

from mt_nodes.data.arm_series import SeriesWindow
from mt_nodes.data.outputs import Control, Output, Path
from mt_nodes.data.verdict import Judgement, Outcome
from mt_nodes.engine.judging import Answer, AnswerStatus, Offer
from mt_nodes.engine.open_loop import AGREE, OpenLoop, agree
from mt_nodes.engine.play_settings import PlaySettings
from mt_nodes.engine.realtime import Realtime
from mt_nodes.relations.checks.base import Check
from mt_nodes.relations.checks.command_series_checks import BrakeOnsetNotLater
from mt_nodes.relations.checks.path_checks import PathDeviation
from mt_nodes.relations.checks.sequence import SequenceCheck
from mt_nodes.relations.checks.speed_checks import SlowsDown
from mt_nodes.relations.checks.steering_checks import KeepsCurrent
from mt_nodes.relations.mutations.stream.identity import Identity

STEP_NS = 100_000_000
HORIZON_ROWS = 21  # of 2 s at 10 Hz, both ends included
DRIVE = [replace(b, stamp_ns=i * STEP_NS, index=i) for i, b in enumerate([bundles(1)[0]] * 60)]
KEEPS = relation("keeps", check=KeepsCurrent())


def says(speed: float, steering: float = 0.0) -> Answer:
    return Answer(AnswerStatus.ANSWERED, Output(control=Control(0, steering, speed), detections=seen(1).detections))


def loop_of(check: Check, remembers: bool = True, name: str = "keeps") -> OpenLoop:
    judge = relation(name, check=check)
    return OpenLoop(Offer(judge, (judge,)), remembers)


def states(loop: OpenLoop, agrees: Callable[[int], bool], rows: int = 60, step_ns: int = STEP_NS) -> str:
    """``J`` where an instant is judged, ``s`` where the arms settle."""
    told = ""
    for i in range(rows):
        bundle = replace(DRIVE[0], stamp_ns=i * step_ns)
        settling = loop.settling(bundle)
        told += "s" if settling else "J"
        loop.note_answers(bundle, (says(5.0), says(5.0 if agrees(i) else 9.0)), settling)
    return told


def test_commands_are_judged_for_the_horizon_then_when_the_arms_agreed_again() -> None:
    judged = "J" * HORIZON_ROWS
    settled = judged + "s" * AGREE
    assert states(loop_of(KeepsCurrent()), lambda i: True) == (settled * 3)[:60]
    late = states(loop_of(KeepsCurrent()), lambda i: i > 30)
    assert late == judged + "s" * (31 - HORIZON_ROWS + AGREE) + judged + "sss"
    assert states(loop_of(KeepsCurrent()), lambda i: False) == judged + "s" * (60 - HORIZON_ROWS)
    assert states(loop_of(PathDeviation()), lambda i: True) == judged + "s" * (60 - HORIZON_ROWS)  # no path is told
    assert states(loop_of(BrakeOnsetNotLater()), lambda i: True) == (settled * 3)[:60]


def test_agreement_must_be_of_inputs_in_a_row() -> None:
    assert states(loop_of(KeepsCurrent()), lambda i: i % AGREE != 0) == "J" * HORIZON_ROWS + "s" * (60 - HORIZON_ROWS)


def test_who_forgets_and_what_is_seen_is_judged_throughout() -> None:
    assert states(loop_of(KeepsCurrent(), remembers=False), lambda i: False) == "J" * 60
    judge = relation("seen")
    assert states(OpenLoop(Offer(judge, (judge,)), True), lambda i: False) == "J" * 60


def test_a_step_back_in_time_has_the_arms_settle_anew() -> None:
    loop = loop_of(KeepsCurrent())
    assert not loop.settling(replace(DRIVE[0], stamp_ns=10**9))
    assert loop.settling(replace(DRIVE[0], stamp_ns=10**8))


@settings(max_examples=40)
@given(st.lists(st.booleans(), min_size=30, max_size=80))
def test_no_instant_is_judged_unless_the_arms_agreed_shortly_before(agreed: list[bool]) -> None:
    told = states(loop_of(KeepsCurrent()), lambda i: agreed[i], len(agreed))
    for i, state in enumerate(told):
        if state == "J":
            begun = told.rfind("s", 0, i) + 1
            assert i - begun < HORIZON_ROWS
            assert begun == 0 or all(agreed[begun - AGREE : begun])


PATH = Output(path=Path.make("base_link", 0, [[0, 0, 0], [10, 0, 0]]))


@pytest.mark.parametrize(
    ("check", "source", "followup", "same"),
    [
        (KeepsCurrent(), says(5.0), says(5.0), True),
        (SlowsDown(), says(5.0), says(1.0), False),  # slower already: it would slow down whatever it is shown
        (SlowsDown(), says(5.0), says(9.0), False),
        (SlowsDown(), says(5.0), says(5.1), True),
        (BrakeOnsetNotLater(), says(5.0), says(1.0), False),
        (BrakeOnsetNotLater(), says(5.0), says(5.0), True),
        (PathDeviation(), Answer(AnswerStatus.ANSWERED, PATH), Answer(AnswerStatus.ANSWERED, PATH), True),
        (KeepsCurrent(), says(5.0), Answer.nothing(AnswerStatus.SILENT, "late"), False),
        (
            KeepsCurrent(),
            Answer(AnswerStatus.ANSWERED, Output(control=Control(0))),
            says(5.0),
            False,
        ),  # nothing is said
    ],
)
def test_the_arms_agree_when_their_commands_are_alike(
    check: Check, source: Answer, followup: Answer, same: bool
) -> None:
    assert agree(relation("r", check=check), DRIVE[0], (source, followup)) is same


# --- in a run --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Seen(SequenceCheck):
    """Tells how many instants each stretch had."""

    needs = ("control",)
    reads = ("speed_mps",)

    def judge_series(self, stretch: SeriesWindow) -> Judgement:
        return Judgement(Outcome.HOLDS, len(stretch), 0, len(stretch), "instants")


class Integrates:
    """A speed controller that remembers: every follow-up it is given slows it down; the source brings it back."""

    def __init__(self) -> None:
        self.speed = 5.0

    def __call__(self, sent: Sent) -> Answer:
        changed = bool(sent.changed)
        self.speed = max(self.speed - 0.02, 0.0) if changed else min(self.speed + 0.1, 5.0)
        return says(self.speed)


def fresh_arm(name: str, stack: Callable[[], Callable[[Sent], Answer]] = Integrates) -> FakeArm:
    arm = FakeArm(name)

    def behave(sent: Sent) -> Answer:
        if sent.nth == 0:
            arm.stack = stack()  # type: ignore[attr-defined]
        answer: Answer = arm.stack(sent)  # type: ignore[attr-defined]
        return answer

    arm.behave = behave
    return arm


@pytest.mark.parametrize("mode", ["twin", "two_pass"])
def test_beyond_the_horizon_the_source_goes_out_until_the_arms_agree(mode: str) -> None:
    source, followup = fresh_arm("source"), fresh_arm("followup")
    recorder = run(
        suite(KEEPS, relation("whole", check=Seen())),
        source,
        None if mode == "two_pass" else followup,
        mode=mode,
        stateless=False,
        episodes=(DRIVE,),
    )
    told = "".join("s" if recorder.lines[f"0/{b.index}/keeps/0"].outcome is Outcome.SETTLING else "J" for b in DRIVE)
    assert told.startswith("J" * HORIZON_ROWS + "s" * AGREE)
    assert told.count("J") > HORIZON_ROWS, "it is judged again when the arms agree"
    assert "2 s of commands are judged" in recorder.lines[f"0/{HORIZON_ROWS}/keeps/0"].judgement.reason
    arm = source if mode == "two_pass" else followup
    runs = "".join("J" if sent.changed else "s" for sent in arm.sent)
    assert told in runs, "what settles is given the source, what is judged the follow-up"
    made = {pair for pair, _ in recorder.followups if "/keeps/" in pair}
    assert made == {f"0/{i}/keeps/0" for i, state in enumerate(told) if state == "J"}
    whole = next(j for j in recorder.judged if str(j.verdict.pair) == "0/-/whole/0")
    assert [len(s) for s in whole.stretches] == [len(part) for part in told.replace("s", " ").split()]


class GoesByWhatItSees:
    """A speed controller that remembers: of a whole cloud it goes on to 5 m/s, of one shuffled to 3, of less to 2."""

    def __init__(self) -> None:
        self.speed = 5.0

    def __call__(self, sent: Sent) -> Answer:
        lost = len(DRIVE[0].cloud()) - len(sent.bundle.cloud())
        wanted = 2.0 if lost else 3.0 if sent.changed else 5.0
        self.speed += float(np.clip(wanted - self.speed, -0.4, 0.4))
        return says(self.speed)


@pytest.mark.parametrize("mode", ["twin", "two_pass"])
def test_what_has_a_baseline_settles_again_too(mode: str) -> None:
    source, followup = (fresh_arm(name, GoesByWhatItSees) for name in ("source", "followup"))
    keeps = relation("keeps", Shuffle(drop=1, every_third=False), check=KeepsCurrent())
    judge = replace(keeps, baseline=(Shuffle(every_third=False),))
    arm = None if mode == "two_pass" else followup
    recorder = run(suite(judge), source, arm, mode=mode, stateless=False, episodes=(DRIVE,))
    told = "".join("s" if recorder.lines[f"0/{b.index}/keeps/0"].outcome is Outcome.SETTLING else "J" for b in DRIVE)
    assert told.startswith("J" * HORIZON_ROWS + "s" * AGREE) and told.count("J") > HORIZON_ROWS
    made = {pair for pair, _ in recorder.followups if "/keeps/" in pair}
    assert made == {f"0/{i}/keeps/0" for i, state in enumerate(told) if state == "J"}


def test_control_and_sham_are_judged_at_the_same_kind_of_instants_and_other_checks_throughout() -> None:
    recorder = run(suite(KEEPS, relation("seen")), fresh_arm("a"), fresh_arm("b"), stateless=False, episodes=(DRIVE,))
    for role in ("identity", "points_permuted"):
        lines = [recorder.lines[f"0/{b.index}/{role}/0@keeps"].outcome for b in DRIVE]
        assert lines[HORIZON_ROWS] is Outcome.SETTLING and lines.count(Outcome.SETTLING) < 45
        assert all(recorder.lines[f"0/{b.index}/{role}/0@seen"].outcome is Outcome.HOLDS for b in DRIVE)
    assert all(recorder.lines[f"0/{b.index}/seen/0"].outcome is Outcome.HOLDS for b in DRIVE)


def test_in_real_time_too() -> None:
    recorder = FakeRecorder()
    loop: Any = Realtime(
        PlaySettings(suite(KEEPS, relation("whole", check=Seen())), 7, False, False, rate=20.0),
        recorder,  # type: ignore[arg-type]
    )
    loop.run([lambda: iter(DRIVE)], fresh_arm("source"), fresh_arm("followup"))
    told = "".join("s" if recorder.lines[f"0/{b.index}/keeps/0"].outcome is Outcome.SETTLING else "J" for b in DRIVE)
    assert told.startswith("J" * HORIZON_ROWS + "s" * AGREE) and told.count("J") > HORIZON_ROWS
    assert recorder.lines["0/-/whole/0"].outcome is Outcome.HOLDS
    for role in ("identity", "points_permuted"):
        lines = [recorder.lines[f"0/{b.index}/{role}/0@keeps"].outcome for b in DRIVE]
        assert lines[HORIZON_ROWS] is Outcome.SETTLING and Outcome.HOLDS in lines, "as in lockstep"


def test_the_identity_settles_without_being_sent_as_something_else() -> None:
    judge = relation("keeps", check=KeepsCurrent())
    control = relation("identity", Identity())
    assert not OpenLoop(Offer(control, (judge,)), True).substitutes
    assert OpenLoop(Offer(judge, (judge,)), True).substitutes
