# SPDX-License-Identifier: Apache-2.0
"""Early stop: errors are what they say at whatever drive one stops, and the drives that count do not depend on luck."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import build
from mt_nodes.base.stats.betting import BOLD, Bet, mean_sequence
from mt_nodes.base.stats.e_values import exact_interval
from mt_nodes.engine.summary.summary import RelationInfo
from mt_nodes.runs.campaign.early_stop import SequentialStopper, StopEarly, WatchedRelation, sequential_evidence
from mt_nodes.runs.campaign.item import ItemTally, PartResult

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import simulate_stopping
from simulate_stopping import against_equals, below_itself, drives_until, shares

EXPECTED = RelationInfo("fog", "expected", min_decided=20)
NECESSARY = RelationInfo("noise", "necessary", min_decided=20)
POLICY = StopEarly()
CAMPAIGNS = 2000


def part(own: int, control: int = 0, sham: int = 0, pairs: int = 20) -> PartResult:
    """Return one drive's result, so many pairs violated of each arm."""
    return PartResult(
        "fog", 3 * pairs, {}, ItemTally(pairs, own), ItemTally(pairs, control), ItemTally(pairs, sham), pairs
    )


@pytest.mark.parametrize(("rate", "alike"), [(0.05, 0.3), (0.3, 0.05)])
def test_a_relation_that_is_no_worse_than_its_background_is_seldom_failed(rate: float, alike: float) -> None:
    """2,000 campaigns, each looked at after every one of 150 drives whose pairs are alike, of 1 to 40 pairs."""
    alone, both = against_equals(np.random.default_rng(7), rate, alike, CAMPAIGNS, 150)
    wrong = int((alone >= 1.0 / POLICY.alpha).sum())
    assert wrong > 0, "no error in so many campaigns: the test would not notice one"
    assert exact_interval(wrong, CAMPAIGNS)[1] <= POLICY.alpha, f"{wrong} of {CAMPAIGNS} against control alone"
    assert (both <= alone).all() and (both < alone).any()


@pytest.mark.parametrize(("rate", "alike"), [(0.05, 0.9), (0.3, 0.05)])
def test_a_relation_at_the_tolerated_rate_is_seldom_passed(rate: float, alike: float) -> None:
    most = below_itself(np.random.default_rng(8), rate, alike, CAMPAIGNS, 150)
    wrong = int((most >= 1.0 / POLICY.alpha).sum())
    assert 0 < wrong <= POLICY.alpha * CAMPAIGNS


def test_the_interval_covers_at_all_times_at_once() -> None:
    """Looked at after every drive, in 300 campaigns of 100."""
    rng, truth, missed = np.random.default_rng(9), 0.1, 0
    for _ in range(300):
        seen = shares(rng, truth, 0.3, 100, (5, 30))
        intervals = (mean_sequence(seen[:n]) for n in (1, 2, 3, 5, 8, 13, 21, 34, 55, 100))
        missed += not all(low <= truth <= high for low, high in intervals)
    assert missed <= 0.05 * 300


@pytest.mark.parametrize(("rate", "background", "drives"), [(0.9, 0.02, 20), (0.3, 0.02, 60), (0.1, 0.02, 180)])
def test_what_is_worse_is_found_within(rate: float, background: float, drives: int) -> None:
    """9 campaigns of 10, with alpha shared by 10 relations, 20 pairs a drive, correlation 0.3."""
    [clear] = drives_until(np.random.default_rng(10), rate, background, 0.3, 300, [10 / POLICY.alpha])
    assert (clear <= drives).mean() >= 0.9


def test_the_tables_of_simulated_campaigns_can_be_made_again(capsys: pytest.CaptureFixture[str]) -> None:
    told = []
    for _ in range(2):
        simulate_stopping.print_errors(np.random.default_rng(1), 60, 40)
        told.append(capsys.readouterr().out)
    assert told[0] == told[1]
    rows = [line for line in told[0].splitlines() if line.startswith("| 0")]
    counts = [float(each) for row in rows for column in row.split(" | ")[2:] for each in column.strip("| ").split(", ")]
    assert len(rows) == 3 and len(counts) == 27 and 0.0 < max(counts) <= 15.0
    simulate_stopping.print_drives(np.random.default_rng(1), 20)
    assert "| 0.9, 0.02 | 0.3 | 6 (7) |" in capsys.readouterr().out


@given(st.lists(st.floats(0.0, 1.0).map(lambda x: round(x, 3)), min_size=1, max_size=30), st.sampled_from([0.01, 0.05]))
@settings(deadline=None, max_examples=60)
def test_the_interval_is_where_neither_bet_has_won(observed: list[float], alpha: float) -> None:
    low, high = mean_sequence(observed, alpha)
    assert 0.0 <= low <= np.mean(observed) + 1e-9 and np.mean(observed) - 1e-9 <= high <= 1.0
    for mean, refuted in ((low - 1e-3, True), (low + 1e-3, False), (high - 1e-3, False), (high + 1e-3, True)):
        if not 1e-6 < mean < 1.0 - 1e-6:
            continue
        above, below = Bet(mean, 0.0), Bet(-mean, -1.0)
        for x in observed:
            above.add(x)
            below.add(-x)
        assert (max(above.e_value, below.e_value) >= 2.0 / alpha) == refuted


@pytest.mark.parametrize("arm", ["control", "sham"])
def test_a_drive_that_decides_nothing_of_a_relation_counts_for_its_background(arm: str) -> None:
    """A stack that flickers there is no clean one, however clean all other drives are."""
    clean = [part(0) for _ in range(400)]
    flickers = replace(part(0), own=ItemTally(0, 0), frames=0, **{arm: ItemTally(20, 1)})
    assert sequential_evidence(clean, EXPECTED, POLICY, 1)["clear"] == "pass"
    found = sequential_evidence([flickers, *clean], EXPECTED, POLICY, 1)
    assert (found["outcome"], found["clear"], found["drives"]) == ("UNSTABLE", "", 400)


def test_a_bet_is_what_its_formula_says() -> None:
    bet, weights = Bet(0.25, 0.0), np.append(np.full(40, 0.5 / 40), 0.5)
    for x in (0.5, 1.0, 0.1):
        bet.add(x)
    capitals = np.prod([1.0 + BOLD.shares * (x - 0.25) / 0.25 for x in (0.5, 1.0, 0.1)], axis=0)
    assert bet.e_value == pytest.approx(float(weights @ capitals))
    bet.add(0.0)  # who has staked all has lost all
    assert bet.e_value == pytest.approx(float(weights[:-1] @ (capitals * (1.0 - BOLD.shares))[:-1]))


def test_a_bet_refuses_a_mean_that_nothing_lies_below() -> None:
    with pytest.raises(ValueError, match=r"got a mean of 0\.0 and 0\.0"):
        Bet(0.0, 0.0)
    with pytest.raises(ValueError, match=r"expected observations from 0 to 1"):
        mean_sequence([0.5, 1.5])
    assert mean_sequence([]) == (0.0, 1.0)


def stop(drives: Sequence[PartResult | None], relation: RelationInfo = EXPECTED, hypotheses: int = 1) -> int | None:
    return SequentialStopper({"fog": relation}, POLICY, hypotheses).stopped_at("fog", drives)


def test_a_drive_is_one_observation_however_many_pairs_it_gives() -> None:
    """Per pair, 2,000 of 2,000 against 0 of 2,000 would be overwhelming."""
    assert stop([part(2000, pairs=2000)]) is None
    assert stop([part(2000, pairs=2000), *[part(0, pairs=2000)] * 5]) is None
    many = stop([part(20)] * 40)
    assert many == stop([part(2000, pairs=2000)] * 40) and many is not None and 4 < many < 10


def test_alpha_is_shared_by_relations_and_cells() -> None:
    for own, drives in ((20, 60), (0, 1500)):  # clear fail, clear pass
        alone, of_many = stop([part(own)] * drives), stop([part(own)] * drives, hypotheses=1000)
        assert alone is not None and of_many is not None and alone < of_many


def test_alpha_is_that_of_the_campaign_file() -> None:
    for own in (20, 0):
        lax, strict = (
            SequentialStopper({"fog": EXPECTED}, StopEarly(alpha=alpha), 1).stopped_at("fog", [part(own)] * 1500)
            for alpha in (0.05, 0.001)
        )
        assert lax is not None and strict is not None and lax < strict
    drives = [part(2, control=1)] * 200  # e is about 10,000
    told = [sequential_evidence(drives, EXPECTED, StopEarly(alpha=alpha), 1)["outcome"] for alpha in (0.05, 1e-6)]
    assert told == ["FAIL", "UNSTABLE"]


def test_both_backgrounds_must_be_exceeded() -> None:
    assert stop([part(20, control=20)] * 60) is None
    assert stop([part(20, sham=20)] * 60) is None


def test_an_arm_that_decided_nothing_is_not_compared() -> None:
    silent = [replace(part(20), sham=ItemTally(0, 0))] * 40
    assert stop(silent) == stop([part(20)] * 40)
    assert stop([replace(part(20), sham=ItemTally(0, 0), control=ItemTally(0, 0))] * 40) is None


def test_nothing_is_clear_below_the_minimum() -> None:
    at = stop([part(1, pairs=1)] * 60)
    assert at == 20, "the minimum of decided pairs"
    tolerant = SequentialStopper({"fog": EXPECTED}, StopEarly(tolerated_rate=0.5), 1)
    assert tolerant.stopped_at("fog", [part(0, pairs=1)] * 60) == 20


def test_a_clean_relation_passes_when_the_tolerated_rate_is_ruled_out() -> None:
    at = stop([part(0)] * 1000)
    assert at is not None and 300 < at < 450  # ln(20) / 0.01 is 300; half of the capital is staked otherwise
    found = sequential_evidence([part(0)] * at, EXPECTED, POLICY, 1)
    assert (found["outcome"], found["clear"]) == ("PASS", "pass")
    assert found["interval"][1] < 0.02 and "0 of" in found["why"] and "tolerated rate of 0.01" in found["why"]


def test_a_noisy_background_never_passes_early() -> None:
    """By the contract it is UNSTABLE, however many drives there are."""
    drives = [part(0, control=1), *[part(0)] * 1000]
    assert stop(drives) is None
    assert sequential_evidence(drives, EXPECTED, POLICY, 1)["outcome"] == "UNSTABLE"


def test_a_necessary_relation_ends_at_its_first_violation_only_when_asked() -> None:
    drives = [*[part(0)] * 3, part(1), *[part(0)] * 1000]
    asked = SequentialStopper({"fog": NECESSARY}, StopEarly(when="first_violation"), 1)
    assert asked.stopped_at("fog", drives) == 4
    assert stop(drives, NECESSARY) is None, "it has failed by the contract: neither clear nor ever to be passed"
    assert sequential_evidence(drives[:4], NECESSARY, POLICY, 1)["outcome"] == "FAIL"
    noisy = [part(0, control=1), *drives]
    assert SequentialStopper({"fog": NECESSARY}, StopEarly(when="first_violation"), 1).stopped_at("fog", noisy) is None


@given(st.permutations(range(30)), st.integers(0, 3))
@settings(deadline=None, max_examples=50)
def test_the_drive_at_which_it_stops_does_not_depend_on_who_is_ready_first(order: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    whole = [part(int(rng.integers(5, 21)), int(rng.integers(0, 3))) for _ in range(30)]
    ready: list[PartResult | None] = [None] * 30
    stopper = SequentialStopper({"fog": EXPECTED}, POLICY, 1)
    answers = []
    for drive in order:
        ready[drive] = whole[drive]
        answers.append(stopper.stopped_at("fog", ready))
    at = stop(whole)
    assert at is not None and answers[-1] == at
    first = next(i for i, answer in enumerate(answers) if answer is not None)
    assert set(answers[first:]) == {at} and set(order[: first + 1]) >= set(range(at))


def test_evidence_of_the_drives_that_count_says_what_the_stopper_saw() -> None:
    rng = np.random.default_rng(3)
    drives = [part(int(rng.binomial(20, 0.3)), int(rng.binomial(20, 0.02))) for _ in range(200)]
    at = stop(drives)
    assert at is not None
    before, found = (sequential_evidence(drives[:n], EXPECTED, POLICY, 1) for n in (at - 1, at))
    assert before["clear"] == "" and before["outcome"] == "UNSTABLE"
    assert (found["clear"], found["outcome"], found["drives"]) == ("fail", "FAIL", at)
    assert found["e_value"] > found["e_value_needed"] == 20.0
    assert found["interval"][0] < found["rate_of_drives"] < found["interval"][1]
    assert "stand out" in found["why"]


def test_drives_alike_in_weight_whatever_their_pairs() -> None:
    found = sequential_evidence([part(1, pairs=1), part(0, pairs=99)], EXPECTED, POLICY, 1)
    assert found["rate_of_drives"] == 0.5


def test_drives_without_a_decided_pair_tell_nothing() -> None:
    watched, silent = (
        WatchedRelation(EXPECTED, POLICY, 1),
        PartResult("fog", 5, {}, ItemTally(0, 0), ItemTally(5, 5), ItemTally(5, 0), 0),
    )
    watched.add(silent)
    found = watched.evidence()
    assert (found["drives"], found["interval"], found["e_value"]) == (0, None, 1.0)


def test_a_level_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match=r"stop_early\.when: got 'soon', expected one of clear, first_violation"):
        build(StopEarly, {"when": "soon"}, "stop_early")
    with pytest.raises(UsageError, match=r"stop_early\.alpha"):
        build(StopEarly, {"alpha": 0}, "stop_early")
