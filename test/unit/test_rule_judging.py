# SPDX-License-Identifier: Apache-2.0
"""Judging by the spread of several stacks, rates of validity and violation, and the published tables."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mt_nodes.base.errors import UsageError
from mt_nodes.data.verdict import Judgement, Outcome
from mt_nodes.rules.ontology import load_ontology
from mt_nodes.rules.prediction_judging import (
    LEAST_CONTROLS,
    Bounds,
    Predictions,
    control_bounds,
    judge,
    spread_bounds,
)
from mt_nodes.rules.published_figures import FACTORS, REGIONS, published
from mt_nodes.rules.rates import NOT_RUN, RatedCase, difference_p, validation_rates, validation_table, violation_table
from mt_nodes.rules.validation import Factor, Validation

HOLDS, VIOLATED, NOTHING = Outcome.HOLDS, Outcome.VIOLATED, Outcome.NOT_APPLICABLE
BEHAVIOURS = ("slow_down", "keep_current", "turn_left", "turn_right")
BOUNDS = Bounds(0.5, 0.05, "fixed")


def case(speed: float | list[float], steering: float | list[float] = 0.0, frames: int = 5) -> Predictions:
    """What stacks predict, the same in every frame."""
    speeds = np.atleast_1d(np.asarray(speed, dtype=np.float64))
    turns = np.broadcast_to(np.asarray(steering, dtype=np.float64), speeds.shape)
    return Predictions(np.tile(speeds[:, None], frames), np.tile(turns[:, None], frames))


def outcome(behaviour: str, speed: float, steering: float, bounds: Bounds = BOUNDS) -> Outcome:
    """How a stack did that drove 10 m/s straight on before."""
    return judge(behaviour, case(10.0), case(speed, steering), bounds)[0].outcome


@pytest.mark.parametrize(
    ("speed", "steering", "held"),
    [
        (8.0, 0.0, {"slow_down"}),
        (10.0, 0.0, {"keep_current"}),
        (9.6, 0.04, {"keep_current"}),
        (10.0, 0.2, {"turn_left"}),
        (10.0, -0.2, {"turn_right"}),
        (12.0, 0.0, set()),
        (8.0, 0.2, {"slow_down", "turn_left"}),
    ],
)
def test_each_behaviour_is_judged_by_its_own_quantity(speed: float, steering: float, held: set[str]) -> None:
    """The published code judges all of them as slow-down: there these would be {slow_down} twice, else nothing."""
    assert {name for name in BEHAVIOURS if outcome(name, speed, steering) is HOLDS} == held


def test_every_behaviour_of_the_ontology_is_judged_and_no_other() -> None:
    for name in load_ontology().behaviours:
        assert len(judge(name, case(10.0), case(10.0), BOUNDS)) == 1
    assert outcome("stop", 8.0, 0.0) is HOLDS is outcome("slow_down", 8.0, 0.0)
    assert outcome("give_way", 8.0, 0.0) is HOLDS is outcome("keep_distance", 8.0, 0.0)
    assert outcome("stay_behind", 8.0, 0.0) is HOLDS is outcome("stay_behind", 10.4, 0.0)
    assert outcome("stay_behind", 12.0, 0.0) is VIOLATED is outcome("stay_behind", 8.0, 0.2)
    assert outcome("start_moving", 12.0, 0.0) is Outcome.NOT_APPLICABLE, "it moves already"
    assert judge("start_moving", case(0.0), case(2.0), BOUNDS)[0].outcome is HOLDS
    assert judge("start_moving", case(0.0), case(0.3), BOUNDS)[0].outcome is VIOLATED
    with pytest.raises(UsageError, match=r"behaviour 'turn_lef': .* did you mean 'turn_left'"):
        judge("turn_lef", case(10.0), case(10.0), BOUNDS)


@settings(max_examples=60)
@given(
    behaviour=st.sampled_from(BEHAVIOURS),
    speed=st.floats(0.0, 30.0),
    change=st.floats(-5.0, 5.0),
    turn=st.floats(-1.0, 1.0),
    bound=st.sampled_from((0.0, 0.1, 2.0)),
)
def test_the_margin_is_signed_and_mirrors_left_and_right(
    behaviour: str, speed: float, change: float, turn: float, bound: float
) -> None:
    def judged(name: str, side: float) -> Judgement:
        return judge(name, case(speed), case(speed + change, side * turn), Bounds(bound, bound, ""))[0]

    found = judged(behaviour, 1.0)
    if found.outcome.decided:
        assert found.margin is not None and (found.margin >= 0.0) == (found.outcome is HOLDS)
    mirrored = {"turn_left": "turn_right", "turn_right": "turn_left"}.get(behaviour, behaviour)
    assert judged(mirrored, -1.0).outcome is found.outcome


def test_who_does_nothing_violates_even_where_stacks_agree_to_the_last_digit() -> None:
    same = case([10.0, 10.0])
    bounds = spread_bounds(same)
    assert bounds.speed_mps == 0.0
    for behaviour, expected in zip(BEHAVIOURS, (VIOLATED, HOLDS, VIOLATED, VIOLATED), strict=True):
        assert [one.outcome for one in judge(behaviour, same, same, bounds)] == [expected] * 2


def test_one_frame_gone_wild_changes_no_median() -> None:
    wild = case(8.0)
    wild.speed_mps[0, 2] = 400.0
    wild.speed_mps[0, 3] = np.nan
    assert judge("slow_down", case(10.0), wild, BOUNDS)[0].measured == pytest.approx(2.0)


def test_bounds_are_the_spread_of_the_stacks_medians() -> None:
    source = case([8.0, 10.0, 12.0], [0.1, 0.0, -0.1])
    found = {kind: spread_bounds(source, kind) for kind in ("std", "variance", "mad")}
    assert found["std"].speed_mps == pytest.approx(math.sqrt(8.0 / 3.0))
    assert found["variance"].speed_mps == pytest.approx(8.0 / 3.0)
    assert found["mad"].speed_mps == pytest.approx(2.0 * 1.4826)
    assert found["variance"].steering_rad == pytest.approx(found["std"].steering_rad ** 2)
    assert found["std"].how == "std of 3 stacks on the source"
    with pytest.raises(UsageError, match=r"bound 'stdev': .* did you mean 'std'"):
        spread_bounds(source, "stdev")
    with pytest.raises(UsageError, match="one stack tells speed, expected two or more"):
        spread_bounds(case(10.0))
    silent = spread_bounds(case([8.0, 10.0, np.nan], [0.1, 0.0, 0.3]))
    assert silent.speed_mps == pytest.approx(1.0)


def test_the_papers_variance_and_the_deviation_judge_differently() -> None:
    """Stacks 0.4 m/s apart: 0.16 m²/s² as a bound of a difference lets pass what 0.4 m/s does not."""
    source, followup = case([9.6, 10.4]), case([9.3, 10.1])
    by = {
        kind: judge("slow_down", source, followup, spread_bounds(source, kind))[0].outcome
        for kind in ("variance", "std")
    }
    assert by == {"variance": HOLDS, "std": VIOLATED}


def test_one_stack_is_bound_by_what_it_changes_without_a_reason() -> None:
    changes = np.column_stack([np.linspace(0.0, 1.0, 30), np.linspace(0.1, -0.1, 30)])
    bounds = control_bounds(changes)
    assert bounds.speed_mps == pytest.approx(1.0, abs=0.06)
    assert np.mean(np.abs(changes[:, 0]) <= bounds.speed_mps) >= 0.95
    assert "control arm" in bounds.how
    with pytest.raises(UsageError, match=f"got 19 cases of the control arm, expected {LEAST_CONTROLS}"):
        control_bounds(changes[:19])
    with pytest.raises(UsageError, match="got 0 cases"):
        control_bounds(np.full((30, 2), np.nan))


def test_what_is_not_told_is_no_pass() -> None:
    silent = case(np.nan, np.nan)
    for behaviour in BEHAVIOURS:
        (before,) = judge(behaviour, silent, case(10.0), BOUNDS)
        (after,) = judge(behaviour, case(10.0), silent, BOUNDS)
        assert (before.outcome, after.outcome, after.lost) == (NOTHING, VIOLATED, 1)
    assert judge("slow_down", case(0.4), case(0.0), BOUNDS)[0].outcome is NOTHING
    assert judge("keep_current", case(10.0, np.nan), case(10.2, np.nan), BOUNDS)[0].outcome is HOLDS
    assert judge("keep_current", case(10.0, 0.0), case(10.0, np.nan), BOUNDS)[0].outcome is VIOLATED
    with pytest.raises(ValueError, match="expected"):
        Predictions(np.zeros((2, 3)), np.zeros((3, 2)))


def made(unit: int, valid: bool | None = True, violated: bool = False, stack: str = "one") -> RatedCase:
    judged = Judgement(VIOLATED, 0.0, 1.0, -1.0) if violated else Judgement(HOLDS, 2.0, 1.0, 1.0)
    factors = Validation(Factor(True, ""), Factor(valid, ""), Factor(True, ""))
    return RatedCase((unit // 40, 10 * (unit % 40)), factors, {stack: judged})


def test_rates_are_of_all_cases_and_of_the_valid_ones() -> None:
    cases = [made(i, valid=i % 2 == 0, violated=i % 4 in (0, 1)) for i in range(80)]
    found = violation_table({"automt": cases}, ["one"])["automt"]["one"]
    assert (found["per_case"]["hits"], found["per_case"]["trials"]) == (20, 80)
    assert (found["per_valid"]["share"], found["per_valid"]["trials"]) == (0.5, 40)
    assert found["per_case"]["low"] < 0.25 < found["per_case"]["high"]
    assert found["per_case"]["method"]


def test_validity_is_told_by_factor_and_what_is_not_known_is_no_hit() -> None:
    rates = validation_rates([made(0), made(1, valid=False), made(2, valid=None), made(3)])
    assert {name: (one.hits, one.unclear) for name, one in rates.items()} == {
        "overall": (2, 1),
        "scenario": (4, 0),
        "manipulation": (2, 1),
        "logical": (4, 0),
    }
    empty = validation_rates([])["overall"]
    assert (empty.share, empty.low, empty.trials) == (None, None, 0)


def test_methods_are_compared_on_the_sources_that_both_were_given() -> None:
    often, seldom = ([made(i, violated=i % every == 0) for i in range(120)] for every in (2, 12))
    table = violation_table({"automt": often, "manual": seldom, "with_rules": None, "again": often}, ["one"])
    assert table["with_rules"] == NOT_RUN
    assert table["manual"]["one"]["p"] < 0.001
    assert table["manual"]["one"]["p_adjusted"] == pytest.approx(2 * table["manual"]["one"]["p"], rel=1e-9, abs=0.0)
    assert table["again"]["one"]["p_adjusted"] == 1.0
    assert "p" not in table["automt"]["one"]
    assert json.loads(json.dumps(table)) == table
    elsewhere = [made(1000 + i) for i in range(10)]
    assert difference_p(often, elsewhere, lambda one: one.violated("one")) is None
    valid = validation_table(
        {"automt": [made(i) for i in range(60)], "manual": [made(i, i % 3 == 0) for i in range(60)]}
    )
    assert valid["manual"]["p"] < 0.001 and valid["manual"]["overall"]["share"] == pytest.approx(1 / 3)


def test_an_invalid_case_is_never_violated() -> None:
    assert not made(0, valid=False, violated=True).violated("one")
    assert not made(0, valid=None, violated=True).violated("one")
    assert not made(0, violated=True).violated("another")
    assert made(0, violated=True).violated("one")


def test_published_violations_are_those_counted() -> None:
    """Table IX and the raw counts are two sources; they agree to the digits that are printed."""
    ours = published()
    for region in REGIONS:
        for stack in ours.stacks:
            assert len(ours.counts[region][stack]) == ours.rounds
            share = sum(ours.counts[region][stack]) / ours.rounds / ours.cases[region]
            assert ours.violation[region]["automt"][stack] == pytest.approx(share, abs=5.1e-5)


def test_published_figures_fit_what_the_paper_says_of_them() -> None:
    ours = published()
    gains = {(r, s): ours.gain(r, s, "with_rules") for r in REGIONS for s in ours.stacks}
    assert max(gains, key=lambda key: gains[key]) == ("germany", "ResNet101")
    assert max(gains.values()) == pytest.approx(0.2055)
    for region in REGIONS:
        for method, row in ours.validation[region].items():
            factors = [row[name] for name in FACTORS]
            assert row["overall"] <= min(factors)
            # The product of the shares is that of cases only if the factors were independent: near, not equal.
            assert row["overall"] == pytest.approx(math.prod(factors), abs=0.05), method
    best = ours.validation["california"]
    assert best["automt"]["overall"] - best["with_rules"]["overall"] == pytest.approx(0.2826)
