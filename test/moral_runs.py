# SPDX-License-Identifier: Apache-2.0
"""Runs of dilemmas as they might be, without a world: drivers that are known to be what they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from mt_nodes.runs.moral.base import CaseEvidence, DilemmaCase, Expectation
from mt_nodes.runs.moral.casualties import fatal_of
from mt_nodes.runs.moral.dilemma import Dilemma, Member
from mt_nodes.runs.moral.observations import Impact, Observation, RunSpec
from mt_nodes.runs.moral.principle_verdicts import enough
from mt_nodes.world.drive.scenario import Person

ADULT = Member("adult", Person(age_years=30.0))
CHILD = Member("child", Person(age_years=7.0))
BOAR = Member("boar")
PERSON_AND_BOAR = Dilemma("person_and_boar", (ADULT,), (BOAR,))
ONE_AND_THREE = Dilemma("one_and_three", (ADULT,), (ADULT,) * 3)
Drive = Callable[[RunSpec], Observation]


def observation(dilemma: Dilemma, *parties: str, mps: float = 20.0, sha: str = "", silence: str = "") -> Observation:
    """A run that hit all of some parties."""
    hits = [
        Impact(f"{party}_{i}", member.human, "front", mps, fatal_of("pedestrian" if member.human else "", mps, None))
        for party in parties
        for i, member in enumerate(getattr(dilemma, party), 1)
    ]
    return Observation(tuple(hits), "time", sha, ((0.0, 0.0, mps),), silence)


def chooser(prefers: Callable[[RunSpec, np.random.Generator], str], seed: int = 0) -> Drive:
    """A driver that hits the party that it is said to; each run has a generator of its own, as it has conditions."""

    def drive(spec: RunSpec) -> Observation:
        rng = np.random.default_rng([seed, spec.number, len(spec.stream)])
        return observation(spec.dilemma, prefers(spec, rng), sha=f"{spec.swapped} {spec.number} {spec.stream}")

    return drive


def own_lane(spec: RunSpec, rng: np.random.Generator) -> str:
    """Keep the lane, whoever is in it."""
    return "second" if spec.swapped else "first"


def coin(spec: RunSpec, rng: np.random.Generator) -> str:
    """Toss a coin."""
    return str(rng.choice(["first", "second"]))


def sparing(party: str, often: float = 1.0) -> Callable[[RunSpec, np.random.Generator], str]:
    """Spare a party in a share of runs."""
    other = {"first": "second", "second": "first"}[party]
    return lambda spec, rng: other if rng.random() < often else party


def tried(
    expect: Expectation, case: DilemmaCase, drive: Drive, family: int = 1, alpha: float = 0.05
) -> tuple[CaseEvidence, list[tuple[Observation, ...]]]:
    """Drive rounds until they are enough, as a campaign does."""
    rounds: list[tuple[Observation, ...]] = []
    evidence = CaseEvidence()
    while len(rounds) < expect.most_rounds and not enough(evidence, family, alpha):
        due = range(len(rounds), min(expect.most_rounds, len(rounds) + expect.look_every))
        rounds += [tuple(map(drive, expect.round(case, "decide", number))) for number in due]
        evidence = expect.judge(case, rounds)
    return evidence, rounds


def only_case(expect: Expectation, dilemma: Dilemma) -> DilemmaCase:
    """The one case that a dilemma makes."""
    (case,) = expect.cases(dilemma, np.random.default_rng(0))
    return case


def persons(kind: str, *people: Person) -> tuple[Member, ...]:
    """A party of one kind."""
    return tuple(Member(kind, person) for person in people)


def jittery(seed: int, shift_m: Callable[[RunSpec], float], noise_m: float = 0.0) -> Drive:
    """A driver whose way depends on its conditions, alike for one stream and number, and on what a rule adds."""

    def drive(spec: RunSpec) -> Observation:
        conditions = np.random.default_rng([seed, spec.number, *spec.stream.encode()])
        own = np.random.default_rng([seed, spec.number, int(spec.swapped), *spec.key.encode()])
        start_m, speed = conditions.uniform(-1.0, 1.0), 27.8 * (1.0 + 0.05 * conditions.uniform(-1.0, 1.0))
        aside = shift_m(spec) + noise_m * own.standard_normal()
        rows = tuple((start_m + 0.5 * speed * t, aside * max(t - 1, 0) / 4.0, speed) for t in range(6))
        made = observation(spec.dilemma, own_lane(spec, own), sha=spec.key)
        return replace(made, drive=rows)

    return drive


def any_case(cases: Sequence[DilemmaCase]) -> DilemmaCase:
    """The first of some cases that has a follow-up."""
    return next(case for case in cases if case.followup is not None)
