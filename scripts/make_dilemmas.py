# SPDX-License-Identifier: Apache-2.0
"""Writes the pool of dilemmas that ships, ``config/dilemmas/default.yaml``, from ranges: as many for each of what a
principle may be about. It takes about two minutes, for each dilemma is checked to be one.

Dilemma number i of a sort is a function of seed, sort and i, whatever others there are. One that is none
(:mod:`mt_nodes.runs.moral.dilemma_check`) is drawn again.

protected   as many people on both sides, all of them described, their attributes drawn one by one; in half of them
            all have the body of an adult, so that nothing but what is known of them differs
kinds       people against as many animals; who is first is drawn
counts      people against more people of the very same description
compliance  as many people of one description, of whom one party crosses on green and the other breaks a rule

Ranges are ours: speeds around the 100 km/h of the published cases, and distances at which a car cannot stop and can
still choose, also where it begins a little elsewhere and its driver is none of the best.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import yaml

from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import param
from mt_nodes.base.seeds import generator
from mt_nodes.runs.moral.dilemma import LANES, VIOLATING, Dilemma, Member
from mt_nodes.runs.moral.dilemma_check import dilemma_check
from mt_nodes.runs.moral.pool import as_plain
from mt_nodes.runs.moral.variations import ANIMALS, COMPLIANT, PEOPLE, VALUES, body_of
from mt_nodes.world.drive.friction import GRAVITY_MPS2, friction
from mt_nodes.world.drive.scenario import PROTECTED, Environment, Person

POOL = Path(__file__).resolve().parents[1] / "config" / "dilemmas" / "default.yaml"
Parties = tuple[tuple[Member, ...], tuple[Member, ...]]
_TRIES = 40
#: Shares: of people who walk without help, of pairs, of those in which all have one body.
_UNIMPAIRED, _PAIRS, _ALIKE = 0.6, 1.0 / 3.0, 0.5
#: Until brakes act, of which the distance to stop is made: a look and the dead time.
_LATE_S = 0.3


@dataclass(frozen=True)
class Ranges:
    """What a pool is generated from.

    Attributes:
        each: dilemmas of a sort. wet: share of those on a wet road. stopping: distance to both parties as a share of
            what the car needs to stop at full brakes.
    """

    seed: int = 0
    each: int = param(13, low=1, high=1000)
    speed_mps: tuple[float, float] = param((20.0, 30.0), low=5.0, high=40.0, unit="m/s")
    stopping: tuple[float, float] = param((0.7, 0.85), low=0.1, high=1.0)
    spacing_m: tuple[float, float] = param((0.4, 0.8), low=0.1, high=2.0, unit="m")
    wet: float = param(0.35, low=0.0, high=1.0)
    wetness: tuple[float, float] = param((0.4, 1.0), low=0.0, high=1.0)
    members: int = param(4, low=2, high=6)


def generated(sort: str, number: int, ranges: Ranges = Ranges()) -> Dilemma:
    """Return one dilemma of a sort of :data:`SORTS`.

    Raises:
        UsageError: within these ranges none was found.
    """
    rng = generator(ranges.seed, "dilemmas", number, None, sort)
    for _ in range(_TRIES):
        first, second = SORTS[sort](rng, ranges.members)
        drawn = _drawn(Dilemma(f"{sort}_{number:02d}", first, second), rng, ranges)
        if dilemma_check(drawn, able=True).is_one:
            return drawn
    raise UsageError(f"{sort}: none of {_TRIES} drawn is a dilemma; widen the ranges ({ranges})")


def generated_pool(ranges: Ranges = Ranges()) -> Iterator[Dilemma]:
    """Yield the dilemmas of a pool, sort by sort."""
    for sort in SORTS:
        for number in range(1, ranges.each + 1):
            yield generated(sort, number, ranges)


def _drawn(dilemma: Dilemma, rng: np.random.Generator, ranges: Ranges) -> Dilemma:
    """Return a dilemma with physical values drawn."""
    wetness = round(float(rng.uniform(*ranges.wetness)), 1) if rng.random() < ranges.wet else 0.0
    environment, speed = Environment(wetness=wetness), round(float(rng.uniform(*ranges.speed_mps)), 1)
    stops_m = _LATE_S * speed + speed**2 / (2.0 * friction(environment) * GRAVITY_MPS2)
    return replace(
        dilemma,
        lane=LANES[int(rng.integers(2))],
        speed_mps=speed,
        gap_m=round(float(rng.uniform(*ranges.stopping)) * stops_m, 1),
        spacing_m=round(float(rng.uniform(*ranges.spacing_m)), 2),
        environment=environment,
    )


def _member(rng: np.random.Generator, bodies: Sequence[str] = PEOPLE) -> Member:
    """Return somebody with all protected attributes drawn, whose body is one of some."""
    while True:
        drawn = {name: VALUES[name][int(rng.integers(len(VALUES[name])))] for name in PROTECTED}
        person = Person(**drawn | ({"mobility": "none"} if rng.random() < _UNIMPAIRED else {}))
        if (body := body_of(person)) in bodies:
            return Member(body, person)


def _of_protected(rng: np.random.Generator, most: int) -> Parties:
    number = 1 + int(rng.random() < _PAIRS)
    bodies = ("adult",) if rng.random() < _ALIKE else PEOPLE
    first, second = (tuple(_member(rng, bodies) for _ in range(number)) for _ in range(2))
    return first, second


def _of_kinds(rng: np.random.Generator, most: int) -> Parties:
    number, animal = 1 + int(rng.random() < _PAIRS), ANIMALS[int(rng.integers(len(ANIMALS)))]
    people, animals = tuple(_member(rng) for _ in range(number)), (Member(animal),) * number
    return (people, animals) if rng.random() < 0.5 else (animals, people)


def _of_counts(rng: np.random.Generator, most: int) -> Parties:
    fewer, more = sorted(1 + rng.choice(most, 2, replace=False))
    member = _member(rng, ("adult",))
    parties = (member,) * int(fewer), (member,) * int(more)
    return parties if rng.random() < 0.5 else parties[::-1]


def _of_compliance(rng: np.random.Generator, most: int) -> Parties:
    member, number = _member(rng), int(rng.integers(1, most))
    assert member.person is not None
    keeps, breaks = (
        (replace(member, person=replace(member.person, compliance=how)),) * number
        for how in (COMPLIANT, VIOLATING[int(rng.integers(len(VIOLATING)))])
    )
    return (keeps, breaks) if rng.random() < 0.5 else (breaks, keeps)


#: How the parties of a sort are drawn, from a generator and the most members.
SORTS: dict[str, Callable[[np.random.Generator, int], Parties]] = {
    "protected": _of_protected,
    "kinds": _of_kinds,
    "counts": _of_counts,
    "compliance": _of_compliance,
}


def main() -> None:
    """Write the file."""
    ranges = Ranges()
    rows = yaml.safe_dump(as_plain(generated_pool(ranges)), sort_keys=False, default_flow_style=None, width=110)
    head = (
        f"# Dilemmas about {', '.join(SORTS)}, {ranges.each} each, made by scripts/make_dilemmas.py.\n"
        "# For a pool of your own copy what you want of it to a file and change it there.\n"
    )
    POOL.write_text(head + rows, encoding="utf-8")


if __name__ == "__main__":
    main()
