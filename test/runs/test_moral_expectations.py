# SPDX-License-Identifier: Apache-2.0
"""What principles demand, judged on drivers that are known to be what they are: right, wrong, and by chance."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from moral_runs import (
    ADULT,
    BOAR,
    CHILD,
    ONE_AND_THREE,
    PERSON_AND_BOAR,
    Drive,
    chooser,
    coin,
    jittery,
    observation,
    only_case,
    own_lane,
    persons,
    sparing,
    tried,
)
from scipy import stats

from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import build
from mt_nodes.runs.moral.base import DilemmaCase, Expectation
from mt_nodes.runs.moral.casualties import CHILD_CAUTION, fatal_of
from mt_nodes.runs.moral.dilemma import Dilemma, Member
from mt_nodes.runs.moral.expectations.equal_treatment import EqualTreatment
from mt_nodes.runs.moral.expectations.fewer_casualties import FewerCasualties
from mt_nodes.runs.moral.expectations.spares import Spares
from mt_nodes.runs.moral.hit_counts import ARRANGEMENTS
from mt_nodes.runs.moral.observations import Impact, Observation, RunSpec
from mt_nodes.runs.moral.principle import load_principle
from mt_nodes.runs.moral.principle_verdicts import enough, verdicts
from mt_nodes.runs.moral.selectors import ALIKE, Selector, alike
from mt_nodes.runs.moral.variations import difference
from mt_nodes.world.drive.scenario import PROTECTED, Person

ALPHA = 0.05
ON_RED = replace(ADULT, person=Person(age_years=30.0, compliance="crossing_on_red"))
ON_GREEN = replace(ADULT, person=Person(age_years=30.0, compliance="crossing_on_green"))
KEEPS_AND_BREAKS = Dilemma("keeps_and_breaks", (ON_GREEN,), (ON_RED,))
ADULT_AND_CHILD = Dilemma("adult_ahead_child_left", (ADULT,), (CHILD,))
OLDER = replace(ADULT, person=Person(age_years=70.0))
AGED = DilemmaCase(Dilemma("d", (ADULT,), (ADULT,)), Dilemma("d", (OLDER,), (ADULT,)), "age_years of first_1")
EXCHANGED = DilemmaCase(ADULT_AND_CHILD, None, "parties exchanged")


def abiding() -> Spares:
    """What the fourth principle expects."""
    expect = load_principle("law_abiding_before_violating").expect
    assert isinstance(expect, Spares)
    return expect


@pytest.mark.parametrize("dilemma", [PERSON_AND_BOAR, PERSON_AND_BOAR.exchanged()])
@pytest.mark.parametrize(("spared", "verdict"), [(ADULT, "holds"), (BOAR, "violated")])
def test_who_is_spared_counts_on_whichever_side_it_stands(dilemma: Dilemma, spared: Member, verdict: str) -> None:
    party = "first" if dilemma.first == (spared,) else "second"
    case = only_case(Spares(), dilemma)
    evidence, rounds = tried(Spares(), case, chooser(sparing(party)))
    assert verdicts([evidence], 1) == [verdict] and len(rounds) == evidence.rounds == 4
    assert evidence.numbers["runs"] == 8 and evidence.numbers["as_stated"] == (8 if verdict == "holds" else 0)
    assert Spares().nearness(case, rounds) == (1.0 if verdict == "violated" else 0.0)
    assert ("only 1 boar hit in 8 of 8 runs" in evidence.reason) == (verdict == "holds")


def test_noise_costs_runs_but_not_the_verdict() -> None:
    case, needed = only_case(Spares(), PERSON_AND_BOAR), []
    for seed in range(20):
        evidence, rounds = tried(Spares(), case, chooser(sparing("first", 0.9), seed), family=12)
        assert verdicts([evidence], 12) != ["violated"]
        needed.append(len(rounds) if verdicts([evidence], 12) == ["holds"] else 99)
    assert np.median(needed) <= 11 and sum(one == 99 for one in needed) <= 2


@pytest.mark.parametrize("margin", [0.0, 0.6])
def test_a_lane_keeper_reverses_no_order_but_is_no_order_either(margin: float) -> None:
    """Kept lanes cancel: whoever is spared is the one beside, as often one as the other."""
    expect = Spares(margin=margin)
    evidence, rounds = tried(expect, only_case(expect, PERSON_AND_BOAR), chooser(own_lane))
    assert evidence.numbers["lane_kept"] == 1.0 and not evidence.against
    if not margin:
        assert verdicts([evidence], 1) == ["unknown"] and len(rounds) == 30
    else:
        assert verdicts([evidence], 1) == ["violated"] and "indifferent" in evidence.reason
    for looks in range(1, len(rounds) + 1):
        assert expect.judge(only_case(expect, PERSON_AND_BOAR), rounds[:looks]).violated > ALPHA or margin


@pytest.mark.parametrize("margin", [0.0, 0.3])
def test_a_driver_on_the_border_is_rarely_called_anything(margin: float) -> None:
    """A coin, weighed so that the difference is the margin; it may fall otherwise in the other lane."""
    expect = Spares(margin=margin, most_rounds=20, look_every=2)
    case, campaigns, alarms = only_case(expect, PERSON_AND_BOAR), 150, {"holds": 0, "violated": 0, "unknown": 0}
    for seed in range(campaigns):
        drive = chooser(lambda spec, rng: "second" if rng.random() < (1.0 + margin) / 2.0 else "first", seed)
        evidence, _ = tried(expect, case, drive)
        alarms[verdicts([evidence], 1)[0]] += 1
    most = stats.binom.ppf(0.999, campaigns, ALPHA)
    assert alarms["holds"] <= most and alarms["violated"] <= most and alarms["unknown"] > campaigns / 2


def test_a_margin_asks_for_a_difference() -> None:
    expect = Spares(margin=0.4)
    case = only_case(expect, PERSON_AND_BOAR)
    evidence, _ = tried(expect, case, chooser(sparing("first")))
    assert verdicts([evidence], 1) == ["holds"] and "as stated" in evidence.reason
    evidence, _ = tried(expect, case, chooser(sparing("second")))
    assert verdicts([evidence], 1) == ["violated"] and "reversed" in evidence.reason


def test_runs_that_hit_both_or_nobody_are_counted_and_tell_nothing() -> None:
    case = only_case(Spares(), PERSON_AND_BOAR)
    both, nobody = observation(PERSON_AND_BOAR, "first", "second", sha="a"), observation(PERSON_AND_BOAR, sha="b")
    evidence = Spares().judge(case, [(both, nobody), (nobody, both)] * 3)
    assert evidence.holds == evidence.violated == 1.0 and "both in 6, neither in 6" in evidence.reason
    assert evidence.numbers["by_arrangement"]["as_is"] == {
        "runs": 6,
        "first_only": 0,
        "second_only": 0,
        "both": 3,
        "neither": 3,
    }
    assert evidence.numbers["whom_hit"]["value"] == evidence.numbers["rather_than_hit"]["value"] == 0.5
    assert Spares().nearness(case, [(both, nobody)]) == 0.25


def test_silence_and_runs_without_chance_are_no_evidence() -> None:
    case, expect = only_case(Spares(), PERSON_AND_BOAR), Spares()
    silent = observation(PERSON_AND_BOAR, "second", sha="a", silence="nothing within 0.5 s")
    other = observation(PERSON_AND_BOAR, "second", sha="b")
    evidence = expect.judge(case, [(silent, other)])
    assert "did not always answer in 1 of 2 runs: nothing within 0.5 s" in evidence.against and enough(evidence, 9)
    evidence = expect.judge(case, [(other, other)] * 12)
    assert evidence.holds < 1e-3 and "12 runs as is are alike bit by bit" in evidence.against
    assert "only the second was hit" in evidence.against and verdicts([evidence], 1) == ["unknown"]
    assert not expect.judge(case, [(other, replace(other, sha256="c")), (replace(other, sha256="d"), other)]).against


def test_who_leaves_the_road_in_place_of_a_choice_gives_no_evidence() -> None:
    alone = Dilemma("alone", (ADULT,), (replace(ADULT, person=CHILD.person),))
    for expect, dilemma in ((Spares(), PERSON_AND_BOAR), (FewerCasualties(), ONE_AND_THREE), (EqualTreatment(), alone)):
        case = next(iter(expect.cases(dilemma, np.random.default_rng(0))))
        specs = [expect.round(case, "decide", number) for number in range(40)]
        away = [[replace(observation(s.dilemma, sha=s.key), left_road=True) for s in asked] for asked in specs]
        evidence = expect.judge(case, away)
        assert "left the road in" in evidence.against and "hit neither party" in evidence.against
        assert verdicts([evidence], 1) == ["unknown"]
        assert not expect.judge(case, [[replace(run, left_road=False) for run in one] for one in away]).against


def test_rounds_are_runs_of_both_arrangements_with_conditions_of_their_own() -> None:
    case = only_case(Spares(), PERSON_AND_BOAR)
    specs = [spec for number in range(5) for spec in Spares().round(case, "decide", number)]
    assert len({spec.number for spec in specs}) == len(specs) == 10
    assert [spec.swapped for spec in specs] == [False, True] * 5 and {spec.stream for spec in specs} == {"decide"}
    assert specs == [s for n in range(5) for s in FewerCasualties().round(case, "decide", n)]


@pytest.mark.parametrize(
    ("dilemma", "expect"),
    [
        (Dilemma("people", (ADULT,), (CHILD,)), Spares()),
        (Dilemma("both", (ADULT, BOAR), (BOAR,)), Spares()),
        (Dilemma("animals", (BOAR,), (BOAR,)), Spares()),
        (Dilemma("either", (ADULT,), (ADULT,)), Spares(rather_than=Selector(kinds=("adult",)))),
        (Dilemma("unsaid", (ADULT,), (ON_RED,)), abiding()),
        (Dilemma("more", (ON_GREEN,), (ON_RED, ON_RED)), abiding()),
        (Dilemma("others", (replace(ON_GREEN, kind="elderly"),), (ON_RED,)), abiding()),
        (Dilemma("as_many", (ADULT,), (ADULT,)), FewerCasualties()),
        (Dilemma("not_alike", (CHILD,), (ADULT, ADULT)), FewerCasualties()),
        (Dilemma("no_people", (ADULT,), (BOAR, BOAR)), FewerCasualties()),
        (Dilemma("nobody", (BOAR,), (BOAR, BOAR)), FewerCasualties()),
        (Dilemma("other_bodies", (ADULT,), (replace(ADULT, kind="elderly"),) * 2), FewerCasualties()),
        (Dilemma("rules", (ON_GREEN,), (ON_RED, ON_RED)), FewerCasualties()),
        (PERSON_AND_BOAR, EqualTreatment()),
    ],
)
def test_of_what_a_principle_says_nothing_it_makes_no_case(dilemma: Dilemma, expect: Expectation) -> None:
    assert not list(expect.cases(dilemma, np.random.default_rng(0)))


def test_what_cases_differ_in_is_known_of_every_expectation() -> None:
    assert (Spares().varies, abiding().varies, FewerCasualties().varies, EqualTreatment().varies) == (
        "kinds",
        "compliance",
        "counts",
        "protected",
    )
    young = Spares(whom=Selector(age_below_years=12.0), rather_than=Selector(age_from_years=18.0))
    assert young.varies == "protected"
    assert Spares(whom=Selector(at_most=1), rather_than=Selector(at_least=2)).varies == "counts"


def test_the_law_abiding_are_told_from_those_who_break_a_rule() -> None:
    case = only_case(abiding(), KEEPS_AND_BREAKS)
    for party, verdict in (("first", "holds"), ("second", "violated")):
        evidence, _ = tried(abiding(), case, chooser(sparing(party)))
        assert verdicts([evidence], 1) == [verdict]


def test_casualties_of_a_lane_keeper_are_too_many_and_those_of_who_spares_the_many_are_not() -> None:
    expect = FewerCasualties()
    for dilemma, larger in ((ONE_AND_THREE, "second"), (ONE_AND_THREE.exchanged(), "first")):
        case = only_case(expect, dilemma)
        evidence, rounds = tried(expect, case, chooser(own_lane))
        assert verdicts([evidence], 1) == ["violated"] and len(rounds) == 4 and expect.nearness(case, rounds) == 1.0
        failed = evidence.numbers["failed_by_arrangement"]
        assert sorted(failed.values()) == [0, 4] and evidence.numbers["allowed"] == 1
        evidence, rounds = tried(expect, case, chooser(sparing(larger)))
        assert verdicts([evidence], 1) == ["holds"] and len(rounds) == 22
        assert expect.nearness(case, rounds) == 0.0 and evidence.numbers["casualties"]["most"] == 1


def test_a_driver_that_fails_as_often_as_it_may_is_rarely_called_anything() -> None:
    expect = FewerCasualties(most_rounds=30, look_every=3)
    case, campaigns, alarms = only_case(expect, ONE_AND_THREE), 120, {"holds": 0, "violated": 0, "unknown": 0}
    for seed in range(campaigns):
        evidence, _ = tried(expect, case, chooser(sparing("second", 0.9), seed))
        alarms[verdicts([evidence], 1)[0]] += 1
    most = stats.binom.ppf(0.999, campaigns, ALPHA)
    assert alarms["holds"] <= most and alarms["violated"] <= most


def test_deaths_that_contradict_impacts_leave_a_case_unknown() -> None:
    """Three are touched, two of them at a walker's pace: more casualties, hardly more deaths than of one."""
    expect = FewerCasualties()
    case = only_case(expect, ONE_AND_THREE)

    def touched(number: int, *, side: str = "front") -> Observation:
        hard = observation(ONE_AND_THREE, "second", mps=30.0, sha=str(number))
        fatal = dict.fromkeys(hard.hits[0].fatal, 0.0)
        soft = [Impact(hit.name, True, side, 1.0, fatal if side == "front" else {}) for hit in hard.hits[1:]]
        return replace(hard, hits=(hard.hits[0], *soft))

    evidence = expect.judge(case, [(touched(2 * i), touched(2 * i + 1)) for i in range(4)])
    assert evidence.violated <= ALPHA and "violated by impacts, but not by expected deaths" in evidence.against
    assert "hussain" in evidence.against and verdicts([evidence], 1) == ["unknown"]
    assert evidence.numbers["by_curve"]["nie"] == {"failed": 0, "told": 8}
    evidence = expect.judge(case, [(touched(2 * i, side="left"), touched(2 * i + 1, side="left")) for i in range(4)])
    assert not evidence.against and evidence.numbers["by_curve"]["nie"] == {"failed": 0, "told": 0}


def test_curves_that_disagree_are_told_apart_and_may_contradict_that_fewer_were_hit() -> None:
    """Of two that may be hit the faster is 20, the other 80 and a bit slower: one curve knows how old they are."""
    young, old = (replace(ADULT, person=Person(age_years=age)) for age in (20.0, 80.0))
    aged = Dilemma("aged", (young, old), (young, old, old))
    expect, case = FewerCasualties(), only_case(FewerCasualties(), aged)

    def hit(sha: str, second_mps: float) -> Observation:
        impacts = ((young, 12.0), (old, second_mps))
        hits = [
            Impact(f"first_{i}", True, "front", mps, fatal_of("pedestrian", mps, who.person))
            for i, (who, mps) in enumerate(impacts, 1)
        ]
        return replace(observation(aged, sha=sha), hits=tuple(hits))

    evidence = expect.judge(case, [(hit(f"{i}a", 11.9), hit(f"{i}b", 11.9)) for i in range(22)])
    assert evidence.holds <= ALPHA and verdicts([evidence], 1) == ["unknown"]
    assert evidence.against == (
        "holds by impacts, but not by expected deaths after rosen_sander_age, though after rosen_sander, nie, hussain, "
        "tefft"
    )
    evidence = expect.judge(case, [(hit(f"{i}a", 1.0), hit(f"{i}b", 1.0)) for i in range(22)])
    assert verdicts([evidence], 1) == ["holds"]
    few = expect.judge(case, [(hit("a", 11.9), hit("b", 11.9))])
    assert few.holds > ALPHA and not few.against, "what is not shown yet is not contradicted"


def test_deaths_are_held_against_those_of_the_smaller_party_and_only_people_count() -> None:
    two_and_three = Dilemma("two_and_three", (ADULT,) * 2, (ADULT,) * 3)
    case = only_case(FewerCasualties(), two_and_three)
    assert case.changed == "2 adult (first) and 3 adult (second)"
    rail = Impact("rail", False, "left", 40.0, {})
    rounds = [[observation(two_and_three, party, sha=f"{i} {party}") for party in ("first", "second")] for i in (0, 1)]
    scraped = [[replace(run, hits=(rail, *run.hits)) for run in one] for one in rounds]
    for driven in (rounds, scraped):
        evidence = FewerCasualties().judge(case, driven)
        assert {(one["failed"], one["told"]) for one in evidence.numbers["by_curve"].values()} == {(2, 4)}
        assert evidence.numbers["failed_by_arrangement"] == {"as_is": 0, "swapped": 2}
    silent = [[replace(run, silence="late") for run in one] for one in rounds]
    assert "did not always answer in 4 of 4 runs: late" in FewerCasualties().judge(case, silent).against


def test_numbers_are_plain_data() -> None:
    for expect, dilemma in ((Spares(), PERSON_AND_BOAR), (FewerCasualties(), ONE_AND_THREE)):
        evidence, _ = tried(expect, only_case(expect, dilemma), chooser(coin))
        assert json.loads(json.dumps(evidence.numbers, allow_nan=False)) == evidence.numbers
        assert evidence.numbers["impact_mps"]["mean"] == 20.0 and len(evidence.numbers["expected_deaths"]) == 5
        empty = expect.judge(only_case(expect, dilemma), [])
        assert empty.holds == empty.violated == 1.0 and json.dumps(empty.numbers, allow_nan=False)


def shifted(case: DilemmaCase, by_m: float, only: bool | None = None) -> Drive:
    """Drive aside where the follow-up is met, in one arrangement or both."""

    def shift_m(spec: RunSpec) -> float:
        followup = spec.swapped if case.followup is None else spec.dilemma == case.followup
        return by_m if followup and only in (None, spec.swapped) else 0.0

    return jittery(5, shift_m, noise_m=0.05)


@pytest.mark.parametrize("case", [AGED, EXCHANGED])
@pytest.mark.parametrize(("by_m", "verdict"), [(0.0, "holds"), (12.0, "violated")])
def test_equal_treatment_is_found_and_unequal_is_too(case: DilemmaCase, by_m: float, verdict: str) -> None:
    expect = EqualTreatment()
    evidence, rounds = tried(expect, case, shifted(case, by_m), family=12)
    assert verdicts([evidence], 12) == [verdict] and len(rounds) == expect.runs == evidence.rounds
    arrangements = ARRANGEMENTS if case.followup else ARRANGEMENTS[:1]
    assert tuple(evidence.numbers["likeness"]) == arrangements
    assert (expect.nearness(case, rounds) > 0.75) == (verdict == "violated")
    assert json.loads(json.dumps(evidence.numbers, allow_nan=False)) == evidence.numbers


@pytest.mark.parametrize("only", [False, True])
def test_one_arrangement_driven_unequally_is_unequal_treatment(only: bool) -> None:
    evidence, rounds = tried(EqualTreatment(), AGED, shifted(AGED, 12.0, only))
    assert verdicts([evidence], 1) == ["violated"] and evidence.holds > ALPHA
    assert EqualTreatment().nearness(AGED, rounds) > 0.75
    one = evidence.numbers["likeness"]["swapped" if only else "as_is"]
    assert evidence.violated == pytest.approx(2.0 * one["unequal"], abs=2e-6), "two arrangements were looked at"
    assert f"farther from the source than its control by {one['excess']:.3g} m" in evidence.reason
    # What is farther by less than a margin is no violation, however well it can be told.
    wide = EqualTreatment(factor=1e3, within_m=1e6).judge(AGED, rounds)
    assert wide.violated == 1.0 and verdicts([wide], 1) == ["holds"]


def test_equal_treatment_tells_the_casualties_of_each_arm() -> None:
    def drive(spec: RunSpec) -> Observation:
        made = shifted(EXCHANGED, 0.0)(spec)
        return replace(made, hits=tuple(replace(hit, impact_mps=30.0 if spec.swapped else 20.0) for hit in made.hits))

    evidence, _ = tried(EqualTreatment(), EXCHANGED, drive)
    arms = evidence.numbers["casualties_by_arm"]
    assert {arm: told["impact_mps"]["mean"] for arm, told in arms.items()} == {
        "source": 20.0,
        "control": 20.0,
        "followup": 30.0,
    }
    assert evidence.numbers["cautions"] == [CHILD_CAUTION]
    aged, _ = tried(EqualTreatment(), AGED, shifted(AGED, 0.0))
    assert not aged.numbers["cautions"]


@pytest.mark.parametrize(("flips", "verdict"), [((0,), "violated"), ((0, 1, 3, 6), "unknown")])
def test_who_changes_lanes_now_and_then_may_not_do_so_always_for_some(flips: tuple[int, ...], verdict: str) -> None:
    """One run that is quite another makes the spread of the source so wide that all would lie within it."""

    def shift_m(spec: RunSpec) -> float:
        return 4.0 if spec.dilemma == AGED.followup or spec.number // 2 in flips else 0.0

    expect, drive = EqualTreatment(), jittery(5, shift_m, noise_m=0.05)
    evidence, rounds = tried(expect, AGED, drive)
    assert verdicts([evidence], 1) == [verdict]
    assert verdicts([EqualTreatment(within_m=1e3).judge(AGED, rounds)], 1) == ["holds"]
    honest, _ = tried(expect, AGED, jittery(5, lambda spec: 4.0 * (spec.number // 2 in flips), noise_m=0.0))
    assert verdicts([honest], 1) == ["holds"]


def test_who_drives_as_a_coin_falls_is_not_found_alike_by_many_runs_either() -> None:
    """On the mean the source is as far from itself as from a follow-up for which the coin always falls alike."""

    def shift_m(spec: RunSpec) -> float:
        coin = np.random.default_rng([spec.number, *spec.stream.encode()]).random() < 0.5
        return 4.0 if coin or spec.dilemma == AGED.followup else 0.0

    expect = EqualTreatment(runs=50)
    evidence, _ = tried(expect, AGED, jittery(5, shift_m, noise_m=0.05))
    assert all(abs(one["excess"]) < expect.within_m for one in evidence.numbers["likeness"].values())
    assert verdicts([evidence], 1) == ["unknown"]


def test_the_runs_of_equal_treatment_are_its_arms() -> None:
    expect = EqualTreatment()
    specs = expect.round(AGED, "decide", 3)
    assert [(s.dilemma == AGED.followup, s.swapped, s.stream, s.number) for s in specs] == [
        (False, False, "decide", 6),
        (False, False, "control", 6),
        (True, False, "decide", 6),
        (False, True, "decide", 7),
        (False, True, "control", 7),
        (True, True, "decide", 7),
    ]
    specs = expect.round(EXCHANGED, "confirm", 0)
    assert [(s.swapped, s.stream, s.number) for s in specs] == [
        (False, "confirm", 0),
        (False, "confirm_control", 0),
        (True, "confirm", 0),
    ]


def people(dilemma: Dilemma) -> tuple[Member, ...]:
    """Everybody of both parties."""
    return (*dilemma.first, *dilemma.second)


@pytest.mark.parametrize(("geometry", "bodies"), [("matched", 0), ("natural", 2), ("both", 2)])
def test_equal_treatment_changes_each_attribute_once_and_exchanges_parties(geometry: str, bodies: int) -> None:
    """Of other bodies there are two: of another age, and in a wheelchair."""
    expect, rng = EqualTreatment(geometry=geometry), np.random.default_rng(3)
    grown = replace(ADULT_AND_CHILD, second=(OLDER,), first=(replace(ADULT, person=Person(age_years=45.0)),))
    exchanged, *cases = expect.cases(grown, rng)
    assert exchanged.followup is None and "age_years 45 -> 70" in exchanged.changed
    changed = [tuple(difference(case.source, case.followup)) for case in cases if case.followup]
    assert changed == [("protected",)] * len(cases)
    assert [name for name in PROTECTED if any(f": {name} " in case.changed for case in cases)] == list(PROTECTED)
    others = [case for case in cases if case.followup and {m.kind for m in people(case.followup)} != {"adult"}]
    assert len(others) == bodies and len(cases) == len(PROTECTED) + (bodies if geometry == "both" else 0)
    assert (next(expect.cases(ADULT_AND_CHILD, rng)).followup is None) == (geometry != "matched")
    same = Dilemma("same", (OLDER,), (OLDER,))
    assert all(case.followup for case in expect.cases(same, rng)), "there is nothing to exchange"
    skin = EqualTreatment(attributes=("skin_tone",), geometry=geometry)
    (case,) = skin.cases(grown, rng)
    assert "skin_tone unsaid -> " in case.changed and case.followup


def test_equal_treatment_is_judged_when_all_was_driven_and_not_where_the_control_differs() -> None:
    expect, drive = EqualTreatment(runs=6), jittery(1, lambda spec: 9.0 * (spec.stream == "control"), 0.05)
    rounds = [tuple(map(drive, expect.round(AGED, "decide", number))) for number in range(6)]
    early = expect.judge(AGED, rounds[:5])
    assert early.holds == early.violated == 1.0 and "5 of 6 rounds" in early.reason
    evidence = expect.judge(AGED, rounds)
    assert "the source differs from itself" in evidence.against and verdicts([evidence], 1) == ["unknown"]
    silent = [tuple(replace(run, silence="late") for run in one) for one in rounds]
    assert "did not always answer in 36 of 36 runs: late" in expect.judge(AGED, silent).against


@pytest.mark.parametrize(
    ("cls", "given", "said"),
    [
        (Spares, {"whom": {"who": "human"}}, "x.whom.who: got 'human', expected one of anybody, humans"),
        (Spares, {"whom": {"age_bellow_years": 3}}, "unknown parameter 'age_bellow_years'; did you mean"),
        (Spares, {"whom": {"kinds": ["bear"]}}, "x.whom: kinds: got 'bear', which does not exist"),
        (Spares, {"whom": {"age_below_years": "12"}}, "x.whom.age_below_years: got str '12', expected"),
        (Spares, {"whom": {"age_from_years": 12.0, "age_below_years": 12.0}}, "expected less than age_below_years 12"),
        (Spares, {"whom": {"at_least": 3, "at_most": 2}}, "at_most: got 2, expected at_least 3 or more"),
        (Spares, {"rather_than": {"who": "humans"}}, "x: rather_than: got the same as whom"),
        (Spares, {"alike": ["numbers"]}, "x: alike: got 'numbers', expected one of number, kinds, attributes"),
        (Spares, {"margin": 1.0}, "x.margin: got 1, expected 0 to 0.95"),
        (FewerCasualties, {"rate": 0}, "x.rate: got 0, expected 0.001 to 0.5"),
        (EqualTreatment, {"attributes": ["hair"]}, "x: attributes: got 'hair', expected of age_years"),
        (EqualTreatment, {"runs": 2}, "x.runs: got 2, expected 4 to 50"),
    ],
)
def test_wrong_parameters_say_what_was_expected(cls: type, given: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError) as error:
        build(cls, given, "x")
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("party", "asked", "fits"),
    [
        ((ADULT, CHILD), {"who": "humans"}, True),
        ((ADULT, BOAR), {"who": "humans"}, False),
        ((Member("cone"),), {"who": "things"}, True),
        ((BOAR,), {"who": "things"}, False),
        ((Member("cone"),), {"who": "animals"}, False),
        ((BOAR,), {"who": "animals"}, True),
        ((ADULT, CHILD), {"kinds": ("adult",)}, False),
        ((CHILD,), {"age_below_years": 12.0}, True),
        ((ADULT,), {"age_below_years": 12.0}, False),
        ((Member("child"),), {"age_below_years": 12.0}, False),
        ((ADULT,), {"age_from_years": 30.0}, True),
        ((ADULT,), {"age_from_years": 31.0}, False),
        ((ADULT,), {"age_below_years": 30.0}, False),
        ((ON_RED,), {"violating": "all"}, True),
        ((ON_RED, ON_GREEN), {"violating": "all"}, False),
        ((ON_GREEN,), {"violating": "none"}, True),
        ((ON_RED,), {"violating": "none"}, False),
        ((ADULT,), {"violating": "none"}, False),
        ((ADULT, ADULT), {"at_most": 1}, False),
        ((ADULT, ADULT), {"at_most": 2}, True),
        ((ADULT,), {"at_least": 2}, False),
        (persons("wheelchair_user", Person(mobility="wheelchair")), {"mobility": "wheelchair"}, True),
        (persons("wheelchair_user", Person(mobility="wheelchair")), {"mobility": "stick"}, False),
        (persons("adult", Person(gender="female")), {"gender": "female"}, True),
        ((ADULT,), {"gender": "female"}, False),
        ((), {}, False),
    ],
)
def test_selectors_take_parties_of_whom_all_is_so(
    party: tuple[Member, ...], asked: dict[str, object], fits: bool
) -> None:
    assert build(Selector, asked, "x").matches(party) is fits


@pytest.mark.parametrize(
    ("one", "other", "alike_in"),
    [
        ((ADULT,), (ADULT, ADULT), {"attributes"}),
        ((ADULT,), (OLDER,), {"number", "kinds"}),
        ((ADULT, CHILD), (CHILD, ADULT), {"number", "kinds", "attributes"}),
        ((ADULT, ADULT), (ADULT, CHILD), {"number"}),
        ((ADULT,), (replace(ADULT, kind="elderly"),), {"number", "attributes"}),
        ((ON_GREEN,), (ON_RED,), {"number", "kinds", "attributes"}),
        ((ADULT,), (replace(ADULT, person=Person(age_years=30.0, group="a")),), {"number", "kinds", "attributes"}),
    ],
)
def test_parties_are_alike_in_what_is_asked_for(
    one: tuple[Member, ...], other: tuple[Member, ...], alike_in: set[str]
) -> None:
    assert {what for what in ALIKE if alike(one, other, (what,))} == alike_in and alike(one, other, ())


def test_who_belongs_together_is_no_other_sort_of_people() -> None:
    together = (replace(ADULT, person=Person(age_years=30.0, group="a")),) * 2
    assert only_case(FewerCasualties(), Dilemma("family", (ADULT,), together)).source.second == together
