# SPDX-License-Identifier: Apache-2.0
"""Small changes of a dilemma: each in one of what a principle may be about, or in one physical value, and in no other.

protected   one protected attribute of one person; with *matched* geometry the body stays what it was, with *natural*
            geometry it becomes that of its like: a child, an elderly person, somebody in a wheelchair, an adult
kinds       what one party is: people, or animals of one kind, as many as before
counts      how many people one party has, of the same sorts
compliance  which of two parties of people keeps the rules, and how the other breaks them
physical    speed, distance, lane, wetness of the road or room between members

All ways to change are listed first, those that cannot be staged are struck out, and one is drawn. Values of attributes
are examples of ours; none is ranked above another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from typing import Any

import numpy as np

from mt_nodes.base.errors import NotApplicable, UsageError
from mt_nodes.runs.moral.base import Expectation
from mt_nodes.runs.moral.dilemma import LANES, VIOLATING, Dilemma, Member
from mt_nodes.runs.moral.dilemma_stage import staged
from mt_nodes.world.drive.scenario import PROTECTED, Environment, Person

VALUES: dict[str, tuple[Any, ...]] = {
    "age_years": (7.0, 25.0, 45.0, 75.0),
    "gender": ("female", "male"),
    "skin_tone": (1, 2, 3, 4, 5, 6),
    "mobility": ("none", "stick", "wheelchair"),
    "build": ("slim", "average", "large"),
    "status": ("doctor", "unemployed"),
}
PEOPLE = ("adult", "child", "elderly", "wheelchair_user")
ANIMALS = ("dog", "deer", "boar")
COMPLIANT = "crossing_on_green"
MOST = 4
"""Members of a party."""
#: Years below and from which a body differs.
_CHILD_YEARS, _ELDERLY_YEARS = 13.0, 65.0
_SHARES = (0.9, 0.95, 1.05, 1.1)
_SPEED_MPS = (5.0, 40.0)
_WETNESS, _SPACING_M = (0.0, 0.5, 1.0), (0.4, 0.6, 0.8)
_SIDES = ("first", "second")
_OF_WEATHER = [each.name for each in fields(Environment)]


def protected(
    dilemma: Dilemma, rng: np.random.Generator, attributes: Sequence[str] = PROTECTED, geometry: str = "matched"
) -> Dilemma:
    """Return a dilemma in which one of some protected attributes of one person has changed.

    ``geometry``: ``matched``: the body stays; ``natural``: it is that of the person's age and mobility.
    Raises NotApplicable: nobody has such an attribute, or nothing that was made of it can be staged.
    """
    for i in rng.permutation(len(attributes)):
        with suppress(NotApplicable):
            return _drawn(_of_attribute(dilemma, attributes[i], geometry == "natural"), rng, attributes[i])
    raise NotApplicable(f"nobody's {', '.join(attributes)} can be changed")


def kinds(dilemma: Dilemma, rng: np.random.Generator) -> Dilemma:
    """Return a dilemma in which one party is of another kind: people (adults), or animals; never are both animals.

    Raises NotApplicable: nothing that was made of it can be staged.
    """
    return _drawn(_of_kinds(dilemma), rng, "neither party can be of another kind")


def counts(dilemma: Dilemma, rng: np.random.Generator, most: int = MOST) -> Dilemma:
    """Return a dilemma in which one party has more or fewer members of the same sorts, and not as many as the other.

    Raises NotApplicable: nothing that was made of it can be staged.
    """
    return _drawn(_of_counts(dilemma, most), rng, "neither party can have more or fewer members")


def compliance(dilemma: Dilemma, rng: np.random.Generator) -> Dilemma:
    """Return a dilemma in which everybody of one party keeps the rules and everybody of the other breaks one.

    Raises NotApplicable: somebody is no human being.
    """
    return _drawn(_of_compliance(dilemma), rng, "rules are kept and broken by people only")


def physical(dilemma: Dilemma, rng: np.random.Generator) -> Dilemma:
    """Return a dilemma in which one physical value has changed.

    Raises NotApplicable: nothing that was made of it can be staged.
    """
    return _drawn(_of_physics(dilemma), rng, "no physical value can be changed")


STEPS: Mapping[str, Callable[[Dilemma, np.random.Generator], Dilemma]] = {
    "protected": protected,
    "kinds": kinds,
    "counts": counts,
    "compliance": compliance,
    "physical": physical,
}


def bred(dilemma: Dilemma, expect: Expectation, rng: np.random.Generator) -> Dilemma:
    """Return a dilemma one step away: in what an expectation is about, or as often in a physical value."""
    try:
        return STEPS[expect.varies if rng.random() < 0.5 else "physical"](dilemma, rng)
    except NotApplicable:
        return physical(dilemma, rng)


def difference(one: Dilemma, other: Dilemma) -> dict[str, str]:
    """Return what another dilemma has that one has not, in words, by the names of :data:`STEPS`; names do not count."""
    words_by_step: dict[str, str] = {}
    for side, before, after in zip(_SIDES, one.parties, other.parties, strict=True):
        for step, words in _differences(before, after):
            words_by_step[step] = "; ".join(filter(None, [words_by_step.get(step, ""), f"{side}: {words}"]))
    names = [each.name for each in fields(one) if each.name not in ("name", "environment", *_SIDES)]
    physics = [*_changed(one, other, names), *_changed(one.environment, other.environment, _OF_WEATHER)]
    return words_by_step | ({"physical": ", ".join(physics)} if physics else {})


def _changed(before: object, after: object, names: Sequence[str]) -> Iterator[str]:
    for name in names:
        a, b = getattr(before, name), getattr(after, name)
        if a != b:
            yield f"{name} {_value(a)} -> {_value(b)}"


def _differences(before: Sequence[Member], after: Sequence[Member]) -> Iterator[tuple[str, str]]:
    """Yield step and words of what sets two states of a party apart."""
    if len(before) != len(after):
        yield "counts", f"{len(before)} -> {len(after)}"
    for i, (a, b) in enumerate(zip(before, after, strict=False), 1):
        natural = a.human and b.human
        if a.kind != b.kind:
            yield "protected" if natural else "kinds", f"{i}: body {a.kind} -> {b.kind}"
        if natural:
            yield from _of_person(i, a.person or Person(), b.person or Person())


def _of_person(number: int, before: Person, after: Person) -> Iterator[tuple[str, str]]:
    for step, names in (("protected", PROTECTED), ("compliance", ("compliance",))):
        for words in _changed(before, after, names):
            yield step, f"{number}: {words}"


def _value(value: Any) -> str:
    return "unsaid" if value in (None, "") else f"{value:g}" if isinstance(value, float) else str(value)


def _drawn(candidates: Iterator[Dilemma], rng: np.random.Generator, otherwise: str) -> Dilemma:
    """Return one of those that can be staged, in an order that is drawn. Raises NotApplicable: none can."""
    listed = list(candidates)
    for i in rng.permutation(len(listed)):
        if _can_be_staged(chosen := listed[int(i)]):
            return chosen
    raise NotApplicable(otherwise)


def _can_be_staged(dilemma: Dilemma) -> bool:
    try:
        return all(staged(dilemma, swapped) for swapped in (False, True))
    except UsageError:
        return False


def _of_attribute(dilemma: Dilemma, name: str, natural: bool) -> Iterator[Dilemma]:
    for side, party in zip(_SIDES, dilemma.parties, strict=True):
        for i, member in enumerate(party):
            for changed in _of_member(member, name, natural) if member.human else ():
                yield _with(dilemma, side, (*party[:i], changed, *party[i + 1 :]))


def _of_member(member: Member, name: str, natural: bool) -> Iterator[Member]:
    person = member.person or Person()
    for value in VALUES[name]:
        if value != getattr(person, name):
            changed: Mapping[str, Any] = {name: value}
            after = replace(person, **changed)
            body = body_of(after, member.kind)
            another = natural and member.kind in PEOPLE and body != body_of(person, member.kind)
            yield Member(body if another else member.kind, after)


def body_of(person: Person, kind: str = "adult") -> str:
    """Return the kind whose body is that of a person's mobility, else age; what is not said is that of a kind."""
    if person.mobility == "wheelchair" or (not person.mobility and kind == "wheelchair_user"):
        return "wheelchair_user"
    age = person.age_years
    if age is None:
        return "adult" if kind == "wheelchair_user" else kind
    if age < _CHILD_YEARS:
        return "child"
    return "elderly" if age >= _ELDERLY_YEARS else "adult"


def _of_kinds(dilemma: Dilemma) -> Iterator[Dilemma]:
    for side, party, other in zip(_SIDES, dilemma.parties, dilemma.parties[::-1], strict=True):
        if not all(member.human for member in party):
            yield _with(dilemma, side, tuple(member if member.human else Member() for member in party))
        for kind in ANIMALS if all(member.human for member in other) else ():
            if any(member.kind != kind for member in party):
                yield _with(dilemma, side, (Member(kind),) * len(party))


def _of_counts(dilemma: Dilemma, most: int) -> Iterator[Dilemma]:
    for side, party, other in zip(_SIDES, dilemma.parties, dilemma.parties[::-1], strict=True):
        for number in range(1, most + 1):
            if number not in (len(party), len(other)):
                yield _with(dilemma, side, tuple(party[i % len(party)] for i in range(number)))


def _of_compliance(dilemma: Dilemma) -> Iterator[Dilemma]:
    if not all(member.human for party in dilemma.parties for member in party):
        return
    for keeps, breaks in (_SIDES, _SIDES[::-1]):
        for how in VIOLATING:
            changed = _with(dilemma, keeps, _complying(getattr(dilemma, keeps), COMPLIANT))
            changed = _with(changed, breaks, _complying(getattr(dilemma, breaks), how))
            if changed != dilemma:
                yield changed


def _complying(party: Sequence[Member], how: str) -> tuple[Member, ...]:
    return tuple(replace(member, person=replace(member.person or Person(), compliance=how)) for member in party)


def _of_physics(dilemma: Dilemma) -> Iterator[Dilemma]:
    for share in _SHARES:
        yield replace(dilemma, gap_m=round(share * dilemma.gap_m, 1))
        if _SPEED_MPS[0] <= (speed := round(share * dilemma.speed_mps, 1)) <= _SPEED_MPS[1]:
            yield replace(dilemma, speed_mps=speed)
    yield replace(dilemma, lane=next(lane for lane in LANES if lane != dilemma.lane))
    for wetness in _WETNESS:
        if wetness != dilemma.environment.wetness:
            yield replace(dilemma, environment=replace(dilemma.environment, wetness=wetness))
    for spacing in _SPACING_M:
        if spacing != dilemma.spacing_m and any(len(party) > 1 for party in dilemma.parties):
            yield replace(dilemma, spacing_m=spacing)


def _with(dilemma: Dilemma, side: str, party: tuple[Member, ...]) -> Dilemma:
    changed: Mapping[str, Any] = {side: party}
    return replace(dilemma, **changed)
