# SPDX-License-Identifier: Apache-2.0
"""Checks over a sequence, and how a run collects what they judge."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from fake_arms import FakeArm, FakeRecorder, Sent, relation, run, silent, suite
from hypothesis import given, settings
from hypothesis import strategies as st
from mutations_for_tests import Shuffle
from recordings import bundles

from mt_nodes.base import plugins
from mt_nodes.base.errors import InfrastructureError, NotApplicable, UsageError
from mt_nodes.data.arm_series import ANSWER_MS, COMMANDED, ArmSeries, SeriesWindow
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle
from mt_nodes.data.outputs import Control, Detections, Diagnostics, Output
from mt_nodes.data.verdict import Judgement, Outcome
from mt_nodes.engine.followups import FollowupPlan
from mt_nodes.engine.judging import Answer, AnswerStatus, Offer
from mt_nodes.engine.series import Series, worst
from mt_nodes.relations.checks.answer_checks import LatencyNotWorse, NoNewErrors, OutputRateNotLower, StillAnswers
from mt_nodes.relations.checks.command_series import rate_of_change
from mt_nodes.relations.checks.command_series_checks import (
    BrakeOnsetNotLater,
    JerkBounded,
    KeepsCurrentThroughout,
    ReactionTimeNotLonger,
    StopsWithin,
    TurnsWithin,
)
from mt_nodes.relations.checks.identity_over_time import TrackIdsKeptOverTime
from mt_nodes.relations.checks.sequence import SequenceCheck
from mt_nodes.relations.conditions.base import Condition
from mt_nodes.relations.pipeline import DerivedFollowup

HOLDS, VIOLATED, NOTHING = Outcome.HOLDS, Outcome.VIOLATED, Outcome.NOT_APPLICABLE
STEP_NS = 100_000_000
ROWS = 40


def course(rows: int = ROWS, errors: Any = (), silent: Any = (), unasked: Any = (), **told: Any) -> ArmSeries:
    """What an arm said; numbers as a value, a list, or by row: ``{row: from there on}``."""
    numbers = {name: np.full(rows, np.nan) for name in (*COMMANDED, ANSWER_MS)}
    for name, value in told.items():
        if isinstance(value, dict):
            for row, later in value.items():
                numbers[name][row:] = later
        else:
            numbers[name][:] = value
    asked, answered = np.ones(rows, bool), np.ones(rows, bool)
    answered[list(silent)] = asked[list(unasked)] = False
    answered &= asked
    return ArmSeries(asked, answered, numbers, None if errors is None else dict.fromkeys(errors, 0))


def stretch(source: ArmSeries, followup: ArmSeries, change: int = 0) -> SeriesWindow:
    rows = np.arange(len(source.asked))
    return SeriesWindow(rows * STEP_NS + 10**18, rows >= change, source, followup)


def judged(check: SequenceCheck, source: ArmSeries, followup: ArmSeries, change: int = 0) -> Judgement:
    judgement = check.judge_series(stretch(source, followup, change))
    assert judgement.unit and judgement.reason
    return judgement


def accel(**told: Any) -> ArmSeries:
    return course(acceleration_mps2={0: 0.0, **{int(k[1:]): v for k, v in told.items()}})


TABLE: list[tuple[SequenceCheck, ArmSeries, ArmSeries, int, Outcome, float | None]] = [
    (BrakeOnsetNotLater(), accel(r10=-2.0), accel(r10=-2.0), 0, HOLDS, 0.0),
    (BrakeOnsetNotLater(), accel(r10=-2.0), accel(r12=-2.0), 0, HOLDS, 0.2),
    (BrakeOnsetNotLater(), accel(r10=-2.0), accel(r13=-2.0), 0, VIOLATED, 0.3),
    (BrakeOnsetNotLater(), accel(r10=-2.0), accel(r5=-2.0), 0, HOLDS, -0.5),
    (BrakeOnsetNotLater(), accel(r10=-2.0), accel(), 0, VIOLATED, None),
    (BrakeOnsetNotLater(), accel(r10=-0.9), accel(), 0, NOTHING, None),
    (BrakeOnsetNotLater(), accel(r10=-2.0, r11=0.0), accel(), 0, NOTHING, None),  # one instant is none
    (BrakeOnsetNotLater(lasts_s=0.0), accel(r10=-2.0, r11=0.0), accel(), 0, VIOLATED, None),
    (BrakeOnsetNotLater(than="change"), accel(), accel(r22=-2.0), 20, HOLDS, 0.2),
    (BrakeOnsetNotLater(than="change"), accel(), accel(r23=-2.0), 20, VIOLATED, 0.3),
    (BrakeOnsetNotLater(than="change"), accel(), accel(r5=-2.0, r10=0.0), 20, VIOLATED, None),  # that was before it
    (BrakeOnsetNotLater(than="change"), accel(r5=-2.0), accel(r5=-2.0), 20, HOLDS, 0.0),
    (BrakeOnsetNotLater(than="change"), accel(), accel(r5=-2.0), ROWS, NOTHING, None),
    (BrakeOnsetNotLater(), accel(r36=-2.0), accel(), 0, VIOLATED, None),
    (BrakeOnsetNotLater(), accel(r37=-2.0), accel(), 0, NOTHING, None),  # it may be about to
    (
        BrakeOnsetNotLater(),
        course(speed_mps=10.0 - 0.2 * np.clip(np.arange(ROWS) - 10, 0, None)),
        course(speed_mps=10.0 - 0.2 * np.clip(np.arange(ROWS) - 15, 0, None)),
        0,
        VIOLATED,
        0.5,
    ),
    # Backwards, too, braking is to lose speed; to turn around is not.
    (
        BrakeOnsetNotLater(),
        course(speed_mps=-10.0 + 0.2 * np.clip(np.arange(ROWS) - 10, 0, None)),
        course(speed_mps=-10.0 + 0.2 * np.clip(np.arange(ROWS) - 11, 0, None)),
        0,
        HOLDS,
        0.1,
    ),
    (
        BrakeOnsetNotLater(lasts_s=0.0),
        course(speed_mps={0: 8.0, 10: 4.0}),
        course(speed_mps={0: 8.0, 10: -10.0}),
        0,
        VIOLATED,
        None,
    ),
    (
        BrakeOnsetNotLater(by="acceleration"),
        course(speed_mps=-8.0, acceleration_mps2={0: 0.0, 10: 2.0}),
        course(speed_mps=-8.0, acceleration_mps2={0: 0.0, 10: -2.0}),
        0,
        VIOLATED,
        None,
    ),
    (BrakeOnsetNotLater(), course(brake={0: 0.0, 10: 0.5}), course(brake={0: 0.0, 11: 0.5}), 0, HOLDS, 0.1),
    (BrakeOnsetNotLater(by="pedals"), accel(r10=-2.0), accel(), 0, NOTHING, None),
    (ReactionTimeNotLonger(), course(speed_mps=8.0), course(speed_mps={0: 8.0, 25: 6.0}), 20, HOLDS, 0.5),
    (ReactionTimeNotLonger(), course(speed_mps=8.0), course(speed_mps={0: 8.0, 31: 6.0}), 20, VIOLATED, 1.1),
    (ReactionTimeNotLonger(), course(speed_mps=8.0), course(speed_mps={5: 6.0, 9: 8.0, 25: 6.0}), 20, HOLDS, 0.5),
    (ReactionTimeNotLonger(), course(speed_mps=8.0), course(speed_mps=8.5), 0, VIOLATED, None),
    (ReactionTimeNotLonger(), course(steering_rad=0.0), course(steering_rad={0: 0.0, 22: 0.1}), 20, HOLDS, 0.2),
    (ReactionTimeNotLonger(), course(speed_mps=8.0), course(speed_mps=6.0), ROWS, NOTHING, None),
    (ReactionTimeNotLonger(), course(), course(), 0, NOTHING, None),
    (ReactionTimeNotLonger(), course(speed_mps=8.0), course(speed_mps=8.0), 29, VIOLATED, None),
    (ReactionTimeNotLonger(), course(speed_mps=8.0), course(speed_mps=8.0), 30, NOTHING, None),  # it may be about to
    (
        ReactionTimeNotLonger(lasts_s=0.3),
        course(speed_mps=8.0),
        course(speed_mps={0: 8.0, 22: 6.0, 24: 8.0, 26: 6.0}),
        20,
        HOLDS,
        0.6,
    ),
    (KeepsCurrentThroughout(), course(speed_mps=8.0), course(speed_mps=8.4), 0, HOLDS, 0.8),
    (KeepsCurrentThroughout(), course(speed_mps=8.0), course(speed_mps={0: 8.0, 39: 9.0}), 0, VIOLATED, 2.0),
    (
        KeepsCurrentThroughout(but_for_share=0.1),
        course(speed_mps=8.0),
        course(speed_mps={0: 8.0, 37: 9.0}),
        0,
        HOLDS,
        0.0,
    ),
    (KeepsCurrentThroughout(), course(brake=0.1), course(throttle=0.05), 0, VIOLATED, 1.5),
    (
        KeepsCurrentThroughout(),
        course(speed_mps=10.0, yaw_rate_radps=0.4),
        course(speed_mps=10.2, steering_rad=np.arctan(2.7 * 0.04)),
        0,
        HOLDS,
        0.4,
    ),
    (KeepsCurrentThroughout(), course(), course(speed_mps=1.0), 0, NOTHING, None),
    (JerkBounded(), accel(r10=-0.5), accel(r10=-0.6), 0, HOLDS, 6.0),
    (JerkBounded(), accel(r10=-0.5), accel(r10=-0.61), 0, VIOLATED, 6.1),
    (JerkBounded(than="bound"), accel(), accel(r10=-1.0), 0, HOLDS, 10.0),
    (JerkBounded(than="bound"), accel(), accel(r10=1.1), 0, VIOLATED, 11.0),
    (JerkBounded(), course(speed_mps=np.arange(ROWS) * 0.1), course(speed_mps={0: 0.0, 9: 0.02}), 0, VIOLATED, 2.0),
    (JerkBounded(), course(brake=0.1), course(brake=0.2), 0, NOTHING, None),
    (OutputRateNotLower(), course(), course(silent=[3, 9]), 0, HOLDS, 9.5),
    (OutputRateNotLower(), course(), course(silent=[3, 9, 10]), 0, VIOLATED, 9.25),
    (OutputRateNotLower(), course(silent=range(0, 40, 2)), course(silent=range(1, 40, 2)), 0, HOLDS, 5.0),
    (OutputRateNotLower(), course(), course(unasked=[3, 9, 10]), 0, HOLDS, None),
    (OutputRateNotLower(), course(), course(unasked=range(1, 40)), 0, NOTHING, None),
    (LatencyNotWorse(), course(answer_ms=20.0), course(answer_ms=40.0), 0, HOLDS, 40.0),
    (LatencyNotWorse(), course(answer_ms=20.0), course(answer_ms={0: 20.0, 30: 40.1}), 0, VIOLATED, 40.1),
    (LatencyNotWorse(), course(answer_ms=20.0), course(answer_ms={0: 20.0, 39: 900.0}), 0, HOLDS, 20.0),
    (LatencyNotWorse(), course(answer_ms={21: 20.0}), course(answer_ms=20.0), 0, NOTHING, None),
    (StillAnswers(), course(), course(silent=[5, 6]), 0, HOLDS, 2.0),
    (StillAnswers(), course(), course(silent=range(37, 40)), 0, VIOLATED, 3.0),
    (StillAnswers(), course(silent=[1]), course(silent=[5, 6, 7]), 0, HOLDS, 3.0),
    (StillAnswers(), course(), course(silent=[5, 7, 9, 11]), 0, HOLDS, 1.0),
    (StillAnswers(), course(unasked=range(40)), course(), 0, NOTHING, None),
    (NoNewErrors(), course(errors=["a"]), course(errors=["a"]), 0, HOLDS, 0.0),
    (NoNewErrors(), course(errors=["a"]), course(errors=["a", "b"]), 0, VIOLATED, 1.0),
    (NoNewErrors(new_at_most=1), course(), course(errors=["b"]), 0, HOLDS, 1.0),
    (NoNewErrors(), course(errors=None), course(errors=["b"]), 0, NOTHING, None),
    (StopsWithin(), course(speed_mps=8.0), course(speed_mps={0: 8.0, 15: 0.3}), 0, HOLDS, 1.5),
    (StopsWithin(), course(speed_mps=8.0), course(speed_mps={0: 8.0, 16: 0.3}), 0, VIOLATED, 1.6),
    (StopsWithin(), course(speed_mps=8.0), course(speed_mps={0: 0.0, 5: 8.0, 25: 0.0}), 20, HOLDS, 0.5),
    (StopsWithin(), course(speed_mps=8.0), course(speed_mps=0.31), 0, VIOLATED, None),
    (StopsWithin(), course(speed_mps=8.0), course(speed_mps=8.0), 25, NOTHING, None),  # the rest is too short
    (StopsWithin(), course(speed_mps=8.0), course(speed_mps={0: 8.0, 38: 0.0}), 25, HOLDS, 1.3),
    (StopsWithin(), course(speed_mps=0.9), course(speed_mps=0.9), 0, NOTHING, None),
    (StopsWithin(), course(speed_mps=8.0), course(speed_mps=8.0), ROWS, NOTHING, None),
    (StopsWithin(), course(speed_mps=8.0), course(speed_mps={0: 8.0, 15: -10.0}), 0, VIOLATED, None),  # not standing
    (StopsWithin(), course(speed_mps=8.0), course(speed_mps={0: 8.0, 15: -0.3}), 0, HOLDS, 1.5),
    (StopsWithin(), course(speed_mps=-8.0), course(speed_mps={0: -8.0, 15: 0.0}), 0, HOLDS, 1.5),
    (StopsWithin(), course(speed_mps=-8.0), course(speed_mps=-8.0), 0, VIOLATED, None),
    (StopsWithin(), accel(), accel(r12=-2.0), 0, HOLDS, 1.2),
    (StopsWithin(), accel(), accel(r12=-1.9), 0, VIOLATED, None),
    (StopsWithin(), accel(r0=-2.0), accel(), 0, NOTHING, None),
    (StopsWithin(), course(throttle=0.2), course(throttle=0.0, brake={0: 0.0, 3: 0.5}), 0, HOLDS, 0.3),
    (TurnsWithin(), course(steering_rad=0.1), course(steering_rad={0: 0.1, 10: 0.15}), 0, HOLDS, 1.0),
    (TurnsWithin(), course(steering_rad=0.1), course(steering_rad={0: 0.1, 11: 0.15}), 0, VIOLATED, 1.1),
    (TurnsWithin(), course(steering_rad=0.1), course(steering_rad=0.0), 0, VIOLATED, None),
    (TurnsWithin(to="right"), course(steering_rad=0.1), course(steering_rad={0: 0.1, 22: 0.0}), 20, HOLDS, 0.2),
    (TurnsWithin(), course(steering_rad=0.0), course(steering_rad={3: 0.2, 9: 0.0}), 20, VIOLATED, None),
    (TurnsWithin(), course(steering_rad=0.0), course(steering_rad=0.0), 35, NOTHING, None),
    (
        TurnsWithin(),
        course(speed_mps=8.0, yaw_rate_radps=0.0),
        course(speed_mps=4.0, yaw_rate_radps=4.0 * np.tan(0.06) / 2.7),
        0,
        HOLDS,
        0.0,
    ),
    (TrackIdsKeptOverTime(), course(), course(), 0, NOTHING, None),  # nobody is tracked
]


def test_who_is_given_no_reason_may_not_do_what_a_check_asks_for() -> None:
    steady, faster, braking = course(speed_mps=8.0), course(speed_mps=8.8), accel(r5=-6.0)
    assert judged(StopsWithin().background, steady, steady).outcome is HOLDS  # type: ignore[arg-type]
    assert judged(StopsWithin().background, steady, faster).outcome is VIOLATED  # type: ignore[arg-type]
    turned = (course(speed_mps=8.0, steering_rad=0.0), course(speed_mps=8.8, steering_rad=0.06))
    assert judged(TurnsWithin().background, *turned).outcome is VIOLATED  # type: ignore[arg-type]
    assert judged(TurnsWithin(by_at_least_rad=0.07).background, *turned).outcome is HOLDS  # type: ignore[arg-type]
    onset = BrakeOnsetNotLater(than="change", brakes_mps2=5.0).background
    assert judged(onset, accel(), accel()).outcome is HOLDS  # type: ignore[arg-type]
    assert judged(onset, accel(), braking).outcome is VIOLATED  # type: ignore[arg-type]


def test_standing_is_slower_than_what_one_stops_from() -> None:
    with pytest.raises(UsageError, match=r"from_mps 0.2 is not above at_most_mps 0.3"):
        StopsWithin(from_mps=0.2)


@pytest.mark.parametrize(("check", "source", "followup", "change", "outcome", "measured"), TABLE)
def test_sequences(
    check: SequenceCheck, source: ArmSeries, followup: ArmSeries, change: int, outcome: Outcome, measured: float | None
) -> None:
    judgement = judged(check, source, followup, change)
    assert judgement.outcome is outcome, judgement
    if measured is not None:
        assert judgement.measured == pytest.approx(measured, abs=1e-6)


def sequence_checks() -> list[SequenceCheck]:
    return [cls() for cls in plugins.catalogue("checks").values() if issubclass(cls, SequenceCheck)]


def test_every_check_over_a_sequence_is_in_the_table_reads_what_is_kept_and_has_a_background_of_its_kind() -> None:
    assert {type(row[0]) for row in TABLE} == {type(check) for check in sequence_checks()}
    for check in sequence_checks():
        assert set(check.reads) <= {*COMMANDED, ANSWER_MS}
        background = check.background
        assert isinstance(background, SequenceCheck) and set(background.reads) <= set(check.reads)
        alone = check.judge(Output(), Output(), Effects(), Bundle(0, 0, 0))
        assert alone.outcome is NOTHING and alone.reason == "one instant is no sequence"


values = st.lists(st.none() | st.floats(-10, 10), min_size=2, max_size=12)


@settings(max_examples=60)
@given(st.fixed_dictionaries(dict.fromkeys(("speed_mps", "acceleration_mps2", "steering_rad", "brake"), values)))
def test_control_and_sham_hold_where_both_arms_say_the_same(told: dict[str, list[float | None]]) -> None:
    rows = min(map(len, told.values()))
    same = course(rows, **{name: [np.nan if v is None else v for v in column[:rows]] for name, column in told.items()})
    for check in sequence_checks():
        background = check.background
        assert isinstance(background, SequenceCheck)
        judgement = background.judge_series(stretch(same, same))
        assert judgement.outcome in (HOLDS, NOTHING), f"{plugins.name_of(type(check))}: {judgement}"


def test_gaps_and_stamps_that_stand_still_give_no_rates() -> None:
    time_s = np.array([0.0, 0.1, 0.1, 0.3, 0.4])
    np.testing.assert_allclose(
        rate_of_change(np.array([0.0, 1.0, 5.0, 5.0, np.nan]), time_s), [np.nan, 10, np.nan, 0, np.nan]
    )


# --- how a run collects it -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Speeds(SequenceCheck):
    """Says what it was given: the margin is the follow-up's lowest speed."""

    reads = ("speed_mps", "steering_rad")

    def judge_series(self, stretch: SeriesWindow) -> Judgement:
        speeds = stretch.followup["speed_mps"]
        lowest = float(np.nanmin(speeds))
        outcome = HOLDS if lowest >= 0 else VIOLATED
        detail = {
            "rows": len(stretch),
            "changed": int(stretch.changed.sum()),
            "left": stretch.source["steering_rad"][0],
        }
        return Judgement(outcome, lowest, 0.0, lowest, "m/s", detail=detail)


def drives(speed: float = 1.0, steering: float = 0.5, **rest: Any) -> Answer:
    return Answer(AnswerStatus.ANSWERED, Output(control=Control(0, steering, speed), **rest))


WHOLE = relation("whole", check=Speeds())
ERRORS = relation("errors", check=NoNewErrors())
PAIRS = bundles(4)


def prepared(offer: Offer, effects: Effects | None = None, **rest: Any) -> FollowupPlan:
    derived = None if effects is None else DerivedFollowup(replace_followup(effects), [])
    return FollowupPlan(offer, derived, **rest)


def replace_followup(effects: Effects) -> Any:
    from mt_nodes.relations.mutations.base import Followup

    return Followup(((0, PAIRS[0]),), effects)


OFFER = Offer(WHOLE, (WHOLE,))


def test_a_series_is_judged_once_and_keeps_numbers_alone() -> None:
    series = Series()
    for bundle, speed in zip(PAIRS, (3.0, 1.0, 2.0, 4.0), strict=True):
        series.add(prepared(OFFER, Effects(image_mirrored=True)), bundle, (drives(9.0), drives(speed)))
    (judged_one,) = series.end()
    verdict = judged_one.verdict
    assert str(verdict.pair) == "0/-/whole/0" and verdict.stamp_ns == PAIRS[0].stamp_ns
    assert (verdict.outcome, verdict.judgement.measured) == (HOLDS, 1.0)
    assert verdict.judgement.detail == {"rows": 4, "changed": 4, "left": -0.5}  # in the mirror
    np.testing.assert_allclose(judged_one.stretches[0].source["speed_mps"], 9.0)
    assert series.end() == [], "what was judged is forgotten"


def test_what_is_told_after_the_last_answer_counts_as_told_with_it() -> None:
    healthy, late = Diagnostics({}), Diagnostics({"lidar": "no data"})
    series, offer = Series(), Offer(ERRORS, (ERRORS,))
    for bundle in PAIRS:
        series.add(prepared(offer, Effects()), bundle, (drives(diagnostics=healthy), drives(diagnostics=healthy)))
    ((verdict, (whole,)),) = series.end((healthy, late))
    assert verdict.outcome is VIOLATED and whole.source.errors == {}
    assert whole.followup.errors == {"lidar": len(PAIRS) - 1}
    series.add(prepared(offer, Effects()), PAIRS[0], (drives(), drives(diagnostics=healthy)))
    assert series.end((late, None))[0].verdict.outcome is HOLDS, "it has not forgotten the episode before"


@pytest.mark.parametrize("mode", ["twin", "two_pass"])
def test_a_run_takes_last_words_in(mode: str) -> None:
    source, followup = FakeArm("source", lambda sent: drives()), FakeArm("followup", lambda sent: drives())
    healthy, late = Diagnostics({}), Diagnostics({"lidar": "no data"})
    passes = [healthy, healthy, late]  # of control, sham and the relation
    source.tells_last = [healthy, *passes] if mode == "two_pass" else [healthy] * 3
    followup.tells_last = passes
    arm = None if mode == "two_pass" else followup
    lines = run(suite(ERRORS), source, arm, mode=mode, stateless=False, episodes=(PAIRS,)).outcomes
    assert lines["0/-/errors/0"] == "VIOLATED"
    assert lines["0/-/identity/0@errors"] == lines["0/-/points_permuted/0@errors"] == "HOLDS"


def test_a_segment_is_named_by_its_first_bundle() -> None:
    series = Series(whole=False)
    for part in (PAIRS[:2], PAIRS[2:]):
        for bundle in part:
            series.add(prepared(OFFER, Effects()), bundle, (drives(), drives()))
        assert [str(j.verdict.pair) for j in series.end()] == [f"0/{part[0].index}/whole/0"]


def test_settling_cuts_a_series_and_the_worst_stretch_counts() -> None:
    series = Series()
    waits = prepared(OFFER, outcome=Outcome.SETTLING, reason="settling", settling=frozenset({"whole"}))
    for speed, made in (
        (5.0, prepared(OFFER, Effects())),
        (-9.0, waits),
        (-9.0, waits),
        (2.0, prepared(OFFER, Effects())),
    ):
        series.add(made, PAIRS[0], (drives(), drives(speed)))
    ((verdict, stretches),) = series.end()
    assert [len(s) for s in stretches] == [1, 1]
    assert (verdict.judgement.measured, verdict.judgement.detail["stretches"]) == (2.0, 2)


def test_what_was_not_sent_is_no_change_and_a_broken_follow_up_spoils_the_series() -> None:
    nothing = prepared(OFFER, outcome=NOTHING, reason="no car ahead")
    series = Series()
    series.add(nothing, PAIRS[0], (drives(), drives()))
    ((verdict, _),) = series.end()
    assert verdict.outcome is NOTHING and verdict.judgement.reason == "no car ahead"
    series.add(prepared(OFFER, Effects()), PAIRS[0], (drives(), drives()))
    series.add(nothing, PAIRS[1], (drives(), drives()))
    ((verdict, _),) = series.end()
    assert verdict.judgement.detail["changed"] == 1
    series.add(prepared(OFFER, Effects()), PAIRS[0], (drives(), drives()))
    series.add(prepared(OFFER, outcome=Outcome.INVALID, reason="points were lost"), PAIRS[1], (drives(), drives()))
    ((verdict, _),) = series.end()
    assert verdict.outcome is Outcome.INVALID and verdict.judgement.reason == "bundle 1: points were lost"


@dataclass(frozen=True)
class Fast(Condition):
    """Drives at least 5 m/s."""

    def unmet(self, bundle: Bundle, source: Output) -> str | None:
        assert source.control is not None
        return None if source.control.speed_mps >= 5.0 else "drives slowly"


def test_instants_at_which_the_given_does_not_hold_are_left_out() -> None:
    judge = relation("whole", check=Speeds(), given=(Fast(),))
    series = Series()
    offer = Offer(judge, (judge,))
    for speed in (6.0, 1.0, 7.0):
        series.add(prepared(offer, Effects()), PAIRS[0], (drives(speed), drives(speed)))
    ((verdict, _),) = series.end()
    assert verdict.judgement.detail["rows"] == 2
    series.add(prepared(offer, Effects()), PAIRS[0], (drives(1.0), drives(1.0)))
    ((verdict, _),) = series.end()
    assert verdict.outcome is NOTHING and verdict.judgement.reason == "drives slowly"


def test_a_series_without_any_answer_of_the_source_is_unpaired_and_a_check_that_raises_is_an_error() -> None:
    series = Series()
    series.add(prepared(OFFER, Effects()), PAIRS[0], (silent(), drives()))
    ((verdict, _),) = series.end()
    assert verdict.outcome is Outcome.UNPAIRED_SOURCE

    @dataclass(frozen=True)
    class Breaks(Speeds):
        def judge_series(self, stretch: SeriesWindow) -> Judgement:
            raise ValueError("no such thing")

    judge = relation("whole", check=Breaks())
    series.add(prepared(Offer(judge, (judge,)), Effects()), PAIRS[0], (drives(), drives()))
    ((verdict, _),) = series.end()
    assert verdict.outcome is Outcome.ERROR and "ValueError: no such thing" in verdict.judgement.reason


def test_diagnostics_are_kept_by_name_and_first_row() -> None:
    judge = relation("whole", check=NoNewErrors())
    offer, series = Offer(judge, (judge,)), Series()
    told = [Diagnostics({}), Diagnostics({"radar": "no data"}), None, Diagnostics({"radar": "still"})]
    for bundle, health in zip(PAIRS, told, strict=True):
        series.add(
            prepared(offer, Effects()), bundle, (drives(diagnostics=Diagnostics({})), drives(diagnostics=health))
        )
    ((verdict, stretches),) = series.end()
    assert stretches[0].followup.errors == {"radar": 1} and stretches[0].source.errors == {}
    assert verdict.outcome is VIOLATED and verdict.judgement.detail == {"errors": ["radar"]}


def test_the_worst_of_several_judgements() -> None:
    holds, deep = Judgement(HOLDS, margin=1.0), Judgement(VIOLATED, margin=-2.0)
    never, nothing, error = Judgement(VIOLATED), Judgement(NOTHING), Judgement(Outcome.ERROR)
    assert worst([holds, deep, nothing]).margin == -2.0
    assert worst([deep, never]).margin is None
    assert worst([nothing, nothing]) is nothing
    assert worst([deep, error]) is error


@settings(max_examples=30)
@given(st.lists(st.sampled_from(["made", "nothing", "settles"]), min_size=1, max_size=20))
def test_every_instant_is_in_one_stretch_or_settling(kinds: list[str]) -> None:
    series = Series()
    makes = {
        "made": prepared(OFFER, Effects()),
        "nothing": prepared(OFFER, outcome=NOTHING, reason="x"),
        "settles": prepared(OFFER, outcome=Outcome.SETTLING, settling=frozenset({"whole"})),
    }
    for at, kind in enumerate(kinds):
        series.add(makes[kind], replace(PAIRS[0], stamp_ns=at), (drives(), drives()))
    ((_, stretches),) = series.end()
    kept = [int(stamp) for part in stretches for stamp in part.stamp_ns]
    assert kept == [at for at, kind in enumerate(kinds) if kind != "settles"]
    assert all(np.diff(part.stamp_ns).max(initial=1) == 1 for part in stretches)


def speeds(*values_mps: float) -> FakeArm:
    return FakeArm("arm", lambda sent: drives(values_mps[sent.bundle.index]))


@pytest.mark.parametrize("mode", ["twin", "two_pass", "fan_out"])
def test_a_run_owes_one_verdict_of_each_episode_and_relation(mode: str) -> None:
    alternate = mode == "two_pass"
    recorder = run(
        suite(relation("whole", check=Speeds()), relation("other", check=Speeds())),
        speeds(1.0, 2.0, 3.0, 4.0),
        None if alternate else speeds(1.0, -2.0, 3.0, 4.0),
        mode="two_pass" if alternate else "twin",
        stateless=mode == "fan_out",
        episodes=(PAIRS, [replace(b, episode=1) for b in PAIRS]),
    )
    owed = {f"{e}/-/{r}/0" for e in (0, 1) for r in ("whole", "other")} | {
        f"{e}/-/{role}/0@{r}" for e in (0, 1) for role in ("identity", "points_permuted") for r in ("whole", "other")
    }
    assert set(recorder.lines) == owed
    outcome = HOLDS if alternate else VIOLATED
    assert {v.outcome for v in recorder.lines.values()} == {outcome}
    assert all(v.judgement.detail["rows"] == 4 for v in recorder.lines.values())


def test_a_resumed_run_feeds_an_unfinished_episode_again_and_leaves_a_finished_one() -> None:
    finished = {"0/-/whole/0", "0/-/identity/0@whole"}
    source = speeds(1.0, 2.0, 3.0, 4.0)
    recorder = run(
        suite(relation("whole", check=Speeds())), source, speeds(1.0, 2.0, 3.0, 4.0), recorder=FakeRecorder(finished)
    )
    assert set(recorder.lines) == {"0/-/points_permuted/0@whole"}
    assert recorder.lines["0/-/points_permuted/0@whole"].judgement.detail["rows"] == 4


def test_a_stack_that_dies_ends_its_series_as_an_error() -> None:
    def dies(sent: Sent) -> Any:
        return InfrastructureError("it is dead") if sent.bundle.index == 2 else drives()

    recorder = FakeRecorder()
    with pytest.raises(InfrastructureError):
        run(suite(WHOLE), FakeArm("source", dies), FakeArm("followup", dies), stateless=False, recorder=recorder)
    assert recorder.outcomes == {"0/-/identity/0@whole": "ERROR"}


def test_where_nothing_can_be_made_the_series_says_why() -> None:
    @dataclass(frozen=True)
    class Never(Shuffle):
        def draw(self, rng: Any, bundle: Bundle, state: Any) -> Any:
            raise NotApplicable("there is no car")

    recorder = run(suite(relation("whole", Never(), check=Speeds())), speeds(1, 1, 1, 1), speeds(1, 1, 1, 1))
    verdict = recorder.lines["0/-/whole/0"]
    assert verdict.outcome is NOTHING and verdict.judgement.reason == "there is no car"


def tracked(**x_m: float) -> Answer:
    """An answer with tracks: people ahead, each at a distance, by id."""
    places = [[x, 0.0, 0.9] for x in x_m.values()]
    people = Detections.make(
        "base_link", 0, places, [[0.6, 0.6, 1.8]] * len(places), label=["pedestrian"] * len(places)
    )
    return Answer(AnswerStatus.ANSWERED, Output(tracks=replace(people, track_id=np.array([*x_m], dtype=np.str_))))


@pytest.mark.parametrize(
    ("followup", "outcome", "measured"),
    [
        # Ids are names.
        ([{"a": 10.0, "b": 20.0}] * 3, HOLDS, 0.0),
        # Whoever had id a has id c now, and keeps it: one switch.
        ([{"a": 10.0, "b": 20.0}, {"c": 10.0, "b": 20.0}, {"c": 10.0, "b": 20.0}], VIOLATED, 1.0),
        # Two change their ids.
        ([{"a": 10.0, "b": 20.0}, {"b": 10.0, "a": 20.0}, {"b": 10.0, "a": 20.0}], VIOLATED, 2.0),
        # Lost for an instant: a switch if another id comes back, none if the same does.
        ([{"a": 10.0, "b": 20.0}, {"b": 20.0}, {"c": 10.0, "b": 20.0}], VIOLATED, 1.0),
        ([{"a": 10.0, "b": 20.0}, {"b": 20.0}, {"a": 10.0, "b": 20.0}], HOLDS, 0.0),
        # A second track on the same person, nearer than the first one: who is tracked has not changed.
        ([{"a": 10.2, "b": 20.0}, {"a": 10.2, "c": 10.0, "b": 20.0}, {"a": 10.2, "b": 20.0}], HOLDS, 0.0),
        # Nobody is in both outputs twice.
        ([{"a": 10.0}, {"b": 30.0}, {"c": 30.0}], NOTHING, None),
    ],
)
def test_identity_switches_are_counted_over_a_series(
    followup: list[dict[str, float]], outcome: Outcome, measured: float | None
) -> None:
    judge = relation("ids", check=TrackIdsKeptOverTime())
    series, offer = Series(), Offer(judge, (judge,))
    for bundle, rows in zip(PAIRS, followup, strict=False):
        series.add(prepared(offer, Effects()), bundle, (tracked(one=10.0, two=20.0), tracked(**rows)))
    ((verdict, _),) = series.end()
    assert (verdict.outcome, verdict.judgement.measured) == (outcome, measured), verdict.judgement.reason


def test_ids_before_the_arms_settled_are_forgotten_and_what_cannot_be_compared_is_an_error() -> None:
    judge = relation("ids", check=TrackIdsKeptOverTime())
    series, offer = Series(), Offer(judge, (judge,))
    waits = prepared(offer, outcome=Outcome.SETTLING, reason="settling", settling=frozenset({"ids"}))
    for made, own in ((prepared(offer, Effects()), "a"), (waits, "b"), (prepared(offer, Effects()), "b")):
        series.add(made, PAIRS[0], (tracked(one=10.0), tracked(**{own: 10.0})))
    ((verdict, _),) = series.end()
    assert verdict.outcome is NOTHING, "another stretch begins with other ids"
    for number in (10.0, float("nan")):
        series.add(prepared(offer, Effects()), PAIRS[0], (tracked(one=10.0), tracked(a=number)))
    ((verdict, _),) = series.end()
    assert verdict.outcome is Outcome.ERROR and "not finite" in verdict.judgement.reason
