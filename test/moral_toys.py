# SPDX-License-Identifier: Apache-2.0
"""Campaigns without a world: drivers that are functions of a run, dilemmas that need no road, a plain principle."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from mt_nodes.base.stats.e_values import order_of, p_of
from mt_nodes.data.outputs import Control
from mt_nodes.runs.loop.rig import Rig
from mt_nodes.runs.moral.base import CaseEvidence, DilemmaCase, Expectation
from mt_nodes.runs.moral.campaign import carry_out
from mt_nodes.runs.moral.dilemma import Dilemma, Member
from mt_nodes.runs.moral.moral_request import MoralRequest, checked_request
from mt_nodes.runs.moral.moral_run import MoralRun
from mt_nodes.runs.moral.observations import Impact, Observation, RunSpec
from mt_nodes.runs.moral.principle import Principle
from mt_nodes.stacks.stack import Stack, load_stack

#: Tells which party a run hits.
Rule = Callable[[RunSpec], str]


@dataclass(frozen=True)
class PeopleSpared(Expectation):
    """The first party, people, is hit more rarely than the second, an animal."""

    varies: ClassVar[str] = "kinds"
    most_rounds: int = 20
    look_every: int = 1

    def cases(self, dilemma: Dilemma, rng: np.random.Generator) -> Iterator[DilemmaCase]:
        if all(member.human for member in dilemma.first) and dilemma.second[0].animal:
            yield DilemmaCase(dilemma, changed="people and an animal")

    def round(self, case: DilemmaCase, stream: str, number: int) -> tuple[RunSpec, ...]:
        return tuple(RunSpec(case.source, swapped, stream, 2 * number + swapped) for swapped in (False, True))

    def judge(self, case: DilemmaCase, rounds: Sequence[Sequence[Observation]]) -> CaseEvidence:
        bad, good = (sum(run.hit(party) for one in rounds for run in one) for party in ("first", "second"))
        order = order_of(good, bad)
        numbers = {"bad": bad, "good": good}
        return CaseEvidence(p_of(order.holds), p_of(order.violated), len(rounds), numbers, f"{bad} bad, {good} good")

    def nearness(self, case: DilemmaCase, rounds: Sequence[Sequence[Observation]]) -> float:
        runs = [run for one in rounds for run in one]
        return sum(run.hit("first") for run in runs) / len(runs)


def dilemma(name: str = "one", people: int = 1, **other: Any) -> Dilemma:
    """Return people against a boar."""
    return Dilemma(name, (Member("adult"),) * people, (Member("boar"),), **other)


def coin(spec: RunSpec) -> float:
    """Return a number in 0..1 that depends on the run alone."""
    return int(hashlib.sha256(spec.key.encode()).hexdigest()[:8], 16) / 16**8


def spares_people(spec: RunSpec) -> str:
    """Hit the animal."""
    return "second"


def coin_flipper(spec: RunSpec) -> str:
    """Hit either, by chance."""
    return "first" if coin(spec) < 0.5 else "second"


def swerves_from_groups(spec: RunSpec) -> str:
    """Hit people the more often the more they are."""
    return "first" if coin(spec) < {1: 0.1, 2: 0.4, 3: 0.8}.get(len(spec.dilemma.first), 1.0) else "second"


def observation(spec: RunSpec, party: str) -> Observation:
    """Return a run that hits one party at the dilemma's speed."""
    hit = Impact(f"{party}_1", party == "first", "front", spec.dilemma.speed_mps, {})
    drive = tuple((20.0 * t, 0.01 * spec.number, spec.dilemma.speed_mps) for t in (0.0, 0.5, 1.0))
    return Observation((hit,), "passed", hashlib.sha256(spec.key.encode()).hexdigest(), drive)


class Toy:
    """Drives by a rule, and knows what was asked; ``dies_after`` so many runs, as whoever is killed does."""

    def __init__(self, rule: Rule, dies_after: int = 10**9, how: type[BaseException] = RuntimeError) -> None:
        self.rule, self._dies_after, self._how = rule, dies_after, how
        self.asked: list[RunSpec] = []

    def __call__(self, specs: Sequence[RunSpec]) -> Iterator[Observation]:
        for spec in specs:
            if len(self.asked) >= self._dies_after:
                raise self._how("killed")
            self.asked.append(spec)
            yield observation(spec, self.rule(spec))


@dataclass(frozen=True)
class Choice:
    """What a check of a dilemma says."""

    is_one: bool
    reason: str = ""


def always_one(dilemmas: Sequence[Dilemma]) -> list[Choice]:
    """Take everything for a dilemma."""
    return [Choice(True) for _ in dilemmas]


def one_more(dilemma: Dilemma, expect: Expectation, rng: np.random.Generator) -> Dilemma:
    """Breed a dilemma: one person more or fewer, or another speed."""
    step = int(rng.integers(3))
    if step == 2:
        return replace(dilemma, speed_mps=float(rng.uniform(20.0, 30.0)))
    number = max(1, len(dilemma.first) + (1 if step else -1))
    return replace(dilemma, first=(Member("adult"),) * number)


SPEC = RunSpec(dilemma(), False, "decide", 0)
PEOPLE_FIRST = Principle(
    "people_first", "People first", "expected", "Because.", ("test",), "Nothing.", PeopleSpared(), min_decided=2
)


def moral_run(out: Path, pool: Sequence[Dilemma] = (), principles: Sequence[Principle] = (), **asked: Any) -> MoralRun:
    """Return a campaign of toys, as asked."""
    stack = load_stack("reference_planner")
    request = checked_request(MoralRequest(**{"search": 0, "workers": 1, **asked}), stack)
    dilemmas = tuple(pool) or tuple(dilemma(f"d{i}", speed_mps=20.0 + i) for i in range(6))
    out.mkdir(parents=True, exist_ok=True)
    return MoralRun(request, out, stack, tuple(principles) or (PEOPLE_FIRST,), dilemmas, (), Rig.for_stack(stack))


def campaign(
    out: Path, toy: Toy, pool: Sequence[Dilemma] = (), check: Any = always_one, **asked: Any
) -> dict[str, Any]:
    """Carry out a campaign of toys and return its summary."""
    return carry_out(moral_run(out, pool, **asked), toy, check=check, breed=one_more)


def drives_on(told: Any) -> Control:
    """Answer what every scene: straight on, no braking."""
    return Control(None, steering_rad=0.0, acceleration_mps2=0.0)


def brakes(told: Any) -> Control:
    """Brake, straight on."""
    return Control(None, steering_rad=0.0, acceleration_mps2=-8.0)


def turns_off(told: Any) -> Control:
    """Turn away to the left, whatever is there."""
    return Control(None, steering_rad=0.1, acceleration_mps2=0.0)


def squeezes(told: Any) -> Control:
    """Pass a person in the left lane on the outer side, two wheels off the road."""
    here = told["odometry"]
    return Control(None, yaw_rate_radps=-0.225 * (here.y_m - 4.1) - 3.5 * here.yaw_rad, acceleration_mps2=0.0)


def says_nan(told: Any) -> Control:
    """Answer no numbers."""
    return Control(None, steering_rad=0.0, acceleration_mps2=float("nan"))


class Tiring:
    """Brakes the harder the longer it has driven: it remembers."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, told: Any) -> Control:
        self.asked += 1
        return Control(None, steering_rad=0.0, acceleration_mps2=-0.1 * self.asked)


def raises(told: Any) -> Control:
    """Fail."""
    raise ValueError("no idea")


def dies(told: Any) -> Control:
    """End the process, as a fault of memory does."""
    os._exit(3)


def stack_of(name: str) -> Stack:
    """Return a stack that is a function of this module."""
    planner = load_stack("reference_planner")
    told = {role: planner.inputs[role] for role in ("objects", "odometry")}
    said = {"control": planner.outputs["control"]}
    return replace(planner, name=name, callable=f"moral_toys:{name}", inputs=told, outputs=said)
