# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import pytest
from fake_arms import NotFewer, answered, relation, seen, silent, suite
from recordings import bundles

from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle
from mt_nodes.data.outputs import Control, Detections, Output
from mt_nodes.data.verdict import Judgement, Outcome, Verdict
from mt_nodes.engine.judging import Answer, AnswerStatus, Engine, Offer, offers
from mt_nodes.relations.checks.base import Check
from mt_nodes.relations.checks.obstacle_checks import ObstaclesKept
from mt_nodes.relations.conditions.base import Condition

BUNDLE = bundles(4)[3]


@dataclass(frozen=True)
class Never(Condition):
    def unmet(self, bundle: Bundle, source: Output) -> str | None:
        return f"bundle {bundle.index} is not the one"


@dataclass(frozen=True)
class Broken(Check):
    def judge(self, source: Output, followup: Output, effects: Effects, bundle: Bundle) -> Judgement:
        raise ZeroDivisionError("oh")


@dataclass(frozen=True)
class Steers(NotFewer):
    needs = ("control",)


@dataclass(frozen=True)
class Fewer(NotFewer):
    """Demands a difference, which control and sham do not make."""

    @property
    def background(self) -> Check:
        return NotFewer()

    def judge(self, source: Output, followup: Output, effects: Effects, bundle: Bundle) -> Judgement:
        fewer = super().judge(source, followup, effects, bundle).outcome is Outcome.VIOLATED
        return Judgement(Outcome.HOLDS if fewer else Outcome.VIOLATED, margin=0 if fewer else -1)


def judge(offer: Offer, source: Answer, followup: Answer, publishes_when_empty: bool = True) -> list[Verdict]:
    return Engine(publishes_when_empty).judge(offer, BUNDLE, (source, followup), Effects())


def only(check: Check | None = None, **rest: object) -> Offer:
    made = relation("r", check=check, **rest)
    return Offer(made, (made,))


def test_control_and_sham_come_first_and_are_judged_for_everyone() -> None:
    made = offers(suite(relation("a"), relation("b")))
    assert [o.relation.id for o in made] == ["identity", "points_permuted", "a", "b"]
    assert [[j.id for j in o.judges] for o in made[:2]] == [["a", "b"], ["a", "b"]]


def test_the_pairs_of_an_offer_name_bundle_relation_draw_and_judge() -> None:
    a, b = relation("a"), relation("b")
    s = suite(a, b)
    control = Offer(s.control, (a, b))
    assert [str(p) for p, _ in control.pairs(BUNDLE)] == ["0/3/identity/0@a", "0/3/identity/0@b"]
    assert str(control.followup_pair(BUNDLE)) == "0/3/identity/0"


ANSWERS = {
    "answered": answered(seen(2)),
    "silent": silent(),
    "skipped": Answer.nothing(AnswerStatus.SKIPPED, "held back"),
}


@pytest.mark.parametrize(
    ("source", "followup"), list(product(("answered", "silent"), ("answered", "silent", "skipped")))
)
def test_what_was_heard_decides_the_outcome(source: str, followup: str) -> None:
    expected = {
        ("answered", "answered"): Outcome.HOLDS,
        ("answered", "silent"): Outcome.UNPAIRED_FOLLOWUP,
        ("answered", "skipped"): Outcome.SKIPPED,
        ("silent", "answered"): Outcome.UNPAIRED_SOURCE,
        ("silent", "silent"): Outcome.UNPAIRED_BOTH,
        ("silent", "skipped"): Outcome.UNPAIRED_SOURCE,
    }
    [verdict] = judge(only(), ANSWERS[source], ANSWERS[followup], publishes_when_empty=False)
    assert verdict.outcome is expected[source, followup]
    assert verdict.judgement.reason or verdict.outcome is Outcome.HOLDS
    assert verdict.stamp_ns == BUNDLE.stamp_ns


def test_a_stack_that_says_so_when_it_sees_nothing_violates_by_silence() -> None:
    [verdict] = judge(only(), answered(seen(2)), silent("nothing heard"))
    assert verdict.outcome is Outcome.VIOLATED
    assert "silent" in verdict.judgement.reason and "nothing heard" in verdict.judgement.reason


def test_silence_loses_every_obstacle_that_was_demanded() -> None:
    ahead = Output(detections=Detections.make("base_link", 0, [[10.0, 0, 1], [20.0, 2, 1]], [[4.0, 2, 1.5]] * 2))
    [verdict] = judge(only(ObstaclesKept()), answered(ahead), silent())
    j = verdict.judgement
    assert (verdict.outcome, j.lost, j.bound, j.margin) == (Outcome.VIOLATED, 2, 2, -2)
    assert "silent" in j.reason


def test_silence_where_nothing_was_demanded_proves_nothing() -> None:
    [verdict] = judge(only(ObstaclesKept()), answered(seen(0)), silent())
    assert verdict.outcome is Outcome.NOT_APPLICABLE


def test_silence_under_a_check_of_something_else_than_obstacles() -> None:
    command = answered(Output(control=Control(0, steering_rad=0.1)))
    [verdict] = judge(only(Steers()), command, silent())
    assert verdict.outcome is Outcome.VIOLATED and verdict.judgement.margin is None


def test_the_given_comes_before_the_check_but_after_the_answers() -> None:
    offer = only(Broken(), given=(Never(),))
    [verdict] = judge(offer, answered(seen(1)), answered(seen(0)))
    assert verdict.outcome is Outcome.NOT_APPLICABLE
    assert verdict.judgement.reason == "bundle 3 is not the one"
    [verdict] = judge(offer, silent(), answered(seen(0)))
    assert verdict.outcome is Outcome.UNPAIRED_SOURCE
    [verdict] = judge(offer, answered(seen(1)), silent())
    assert verdict.outcome is Outcome.NOT_APPLICABLE, "silence where the relation does not apply violates nothing"


def test_control_and_sham_are_judged_by_what_the_check_asks_of_them() -> None:
    made = suite(relation("r", check=Fewer()))
    for offer, followup in product(offers(made), (2, 1)):
        [verdict] = judge(offer, answered(seen(2)), answered(seen(followup)))
        holds = (followup == 2) == (offer.relation.role != "relation")
        assert verdict.outcome is (Outcome.HOLDS if holds else Outcome.VIOLATED), offer.relation.id


def test_a_check_that_raises_is_an_error_of_its_pair_alone() -> None:
    a, b = relation("a", check=Broken()), relation("b")
    verdicts = judge(Offer(suite(a, b).control, (a, b)), answered(seen(1)), answered(seen(1)))
    assert [v.outcome for v in verdicts] == [Outcome.ERROR, Outcome.HOLDS]
    assert "ZeroDivisionError: oh" in verdicts[0].judgement.reason


@pytest.mark.parametrize("lacking", ["source", "follow-up"])
def test_an_answer_without_what_the_check_reads_is_an_error(lacking: str) -> None:
    command = answered(Output(control=Control(0)))
    pair = (command, answered(seen(1))) if lacking == "source" else (answered(seen(1)), command)
    [verdict] = judge(only(), *pair)
    assert verdict.outcome is Outcome.ERROR
    assert f"the {lacking} arm's answer has no detections" in verdict.judgement.reason


def test_without_a_followup_every_judge_gets_its_verdict() -> None:
    a, b = relation("a"), relation("b")
    offer = Offer(suite(a, b).sham, (a, b))
    verdicts = Engine(True).without_followup(offer, BUNDLE, Outcome.INVALID, "lies")
    assert [(str(v.pair), v.outcome, v.judgement.reason) for v in verdicts] == [
        ("0/3/points_permuted/0@a", Outcome.INVALID, "lies"),
        ("0/3/points_permuted/0@b", Outcome.INVALID, "lies"),
    ]
