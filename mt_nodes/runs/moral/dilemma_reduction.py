# SPDX-License-Identifier: Apache-2.0
"""Makes a violated case small: as few people, as little that differs, as plain a world as still show it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, replace
from typing import Any

from mt_nodes.runs.moral.base import DilemmaCase
from mt_nodes.runs.moral.dilemma import Dilemma, Member
from mt_nodes.world.drive.scenario import Person

#: Values of a dilemma that are not its parties: back to those that are usual, one by one; those that belong together
#: in one step.
PLAIN = (("environment",), ("lane",), ("spacing_m",), ("speed_mps", "gap_m"))
_USUAL = Dilemma("usual", (), ())
_SIDES = ("first", "second")


def shrunk(case: DilemmaCase, still: Callable[[DilemmaCase], DilemmaCase | None], most: int = 40) -> DilemmaCase:
    """Return the smallest case that steps lead to while each is still what is shown.

    Args:
        still: returns the case as its principle words it where it is one and still violated, else None.
        most: cases that are tried at most.
    """
    tries = 0
    going = True
    while going:
        going = False
        for smaller in steps(case):
            tries += 1
            if tries > most:
                return case
            if (violated := still(smaller)) is not None:
                case, going = violated, True
                break
    return case


def steps(case: DilemmaCase) -> Iterator[DilemmaCase]:
    """Yield the cases one step smaller: one member fewer, one difference fewer, one value plain."""
    for side in _SIDES:
        members = getattr(case.source, side)
        for i in range(len(members) if len(members) > 1 else 0):
            yield _both(case, lambda d, side=side, i=i: _without(d, side, i))  # type: ignore[misc]
    yield from _fewer_differences(case)
    for names in PLAIN:
        usual = {name: getattr(_USUAL, name) for name in names}
        if any(getattr(case.source, name) != value for name, value in usual.items()):
            yield _both(case, lambda d, usual=usual: replace(d, **usual))  # type: ignore[misc]


def differences(case: DilemmaCase) -> tuple[tuple[str, int, str], ...]:
    """Return where the follow-up's parties differ: side, number of the member, attribute of it or of its person."""
    if case.followup is None:
        return ()
    return tuple(
        (side, i, name)
        for side in _SIDES
        for i, (one, other) in enumerate(zip(getattr(case.source, side), getattr(case.followup, side), strict=False))
        for name in _differing(one, other)
    )


def _differing(one: Member, other: Member) -> list[str]:
    kinds = ["kind"] if one.kind != other.kind else []
    before, after = (member.person or Person() for member in (one, other))
    return kinds + [f.name for f in fields(Person) if getattr(before, f.name) != getattr(after, f.name)]


def _fewer_differences(case: DilemmaCase) -> Iterator[DilemmaCase]:
    found = differences(case)
    if case.followup is None or len(found) < 2:
        return
    for side, i, name in found:
        followup = _with(case.followup, side, i, _alike(getattr(case.source, side)[i], case.followup, side, i, name))
        yield replace(case, followup=followup)


def _alike(source: Member, followup: Dilemma, side: str, i: int, name: str) -> Member:
    """Return the follow-up's member with one attribute as in the source."""
    member: Member = getattr(followup, side)[i]
    if name == "kind":
        return replace(member, kind=source.kind)
    known: Mapping[str, Any] = {name: getattr(source.person or Person(), name)}
    return replace(member, person=replace(member.person or Person(), **known))


def _both(case: DilemmaCase, change: Callable[[Dilemma], Dilemma]) -> DilemmaCase:
    followup = None if case.followup is None else change(case.followup)
    return replace(case, source=change(case.source), followup=followup)


def _without(dilemma: Dilemma, side: str, i: int) -> Dilemma:
    members = getattr(dilemma, side)
    return _of_parties(dilemma, {side: members[:i] + members[i + 1 :]})


def _with(dilemma: Dilemma, side: str, i: int, member: Member) -> Dilemma:
    members = getattr(dilemma, side)
    return _of_parties(dilemma, {side: (*members[:i], member, *members[i + 1 :])})


def _of_parties(dilemma: Dilemma, parties: Mapping[str, Any]) -> Dilemma:
    return replace(dilemma, **parties)
