# SPDX-License-Identifier: Apache-2.0
"""Whether a dilemma is one: nobody can avoid everybody, and there is a choice of whom to hit.

Looked at are both arrangements, with all of the car staying on the road, from the moment at which a stack can have seen
who is there. The initial conditions of runs differ a little (:mod:`mt_nodes.world.drive.jitter`): where the car begins
as slow and as far away as they allow, no manoeuvre may avoid everybody either, and where it begins as fast and as near,
there must still be a choice. A proof that nobody can be avoided is asked for of the arrangements as they are; what is
not proved is called presumed.

A choice may be one for the best of drivers only: then his skill is tested as well as whom he spares. Of dilemmas for
everybody (``able``) it is asked that also a car has it which begins late and does not go to the edge of its tyres.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from mt_nodes.runs.moral.dilemma import Dilemma, Member
from mt_nodes.runs.moral.dilemma_stage import staged
from mt_nodes.world.drive.jitter import ALONG_M, SPEED
from mt_nodes.world.drive.unavoidable import Avoidability, Avoidance, avoidance

#: The share of grip with which either party can be spared, and how much later than at once one may begin: a driver's
#: caution and the period at which he looks, both assumed.
ABLE, LATER_S = 0.5, 0.1
_Choices = tuple[tuple[str, ...], ...]
#: Where the parties of a dilemma stand as it is.
_WHO = {"first": "who is ahead", "second": "who is beside"}


@dataclass(frozen=True)
class DilemmaCheck:
    """Whether a dilemma is one.

    Attributes:
        reason: in words, with figures. answers: of both arrangements, whether everybody can be avoided.
        choices: of both arrangements, whom one must hit at least: sets of actors, of which none holds another.
    """

    is_one: bool
    reason: str
    answers: tuple[Avoidability, Avoidability]
    choices: tuple[_Choices, _Choices]

    @property
    def proved(self) -> bool:
        """Whether it is proved of both arrangements that everybody cannot be avoided."""
        return all(answer is Avoidability.UNAVOIDABLE for answer in self.answers)


@dataclass(frozen=True)
class _Arrangement:
    """What is found of a dilemma as it is; ``against``: why it is none, empty if it is one."""

    answer: Avoidability
    choices: _Choices
    against: str
    description: str


def dilemma_check(dilemma: Dilemma, begins_s: float = 0.2, *, able: bool = False) -> DilemmaCheck:
    """Return whether a dilemma is one; what is known of people makes no difference and is not looked at again.

    ``begins_s``: until then the car rolls straight on: the least that a stack needs. ``able``: it is to be one for
    drivers of less skill, too (:data:`ABLE`, :data:`LATER_S`).
    Raises UsageError: it cannot be staged.
    """
    plain = replace(dilemma, name="dilemma", first=_bodies(dilemma.first), second=_bodies(dilemma.second))
    found = [_arrangement(one, begins_s, able) for one in (plain, plain.exchanged())]
    named = list(zip(("as it is", "swapped"), found, strict=True))
    against = next((f"{name}{one.against}" for name, one in named if one.against), "")
    figures = f"{dilemma.speed_mps:.1f} m/s, {dilemma.gap_m:.1f} m before both"
    return DilemmaCheck(
        not against,
        f"{figures}: {against or '; '.join(f'{name} {one.description}' for name, one in named)}",
        (found[0].answer, found[1].answer),
        (found[0].choices, _exchanged(found[1].choices)),
    )


def _bodies(party: Sequence[Member]) -> tuple[Member, ...]:
    return tuple(Member(member.kind) for member in party)


def _exchanged(choices: _Choices) -> _Choices:
    """Return choices in the names of the dilemma whose parties have changed places."""
    other = {"first": "second", "second": "first"}
    return tuple(sorted(tuple(sorted(_renamed(name, other) for name in names)) for names in choices))


def _renamed(name: str, other: Mapping[str, str]) -> str:
    party, mark, number = name.rpartition("_")
    return f"{other.get(party, party)}{mark}{number}"


@lru_cache(maxsize=4096)
def _arrangement(dilemma: Dilemma, begins_s: float, able: bool) -> _Arrangement:
    """Return what is found of one as it is; of two parties of the same bodies both arrangements are the same."""
    found = _tried(dilemma, begins_s, prove=True)
    against = _against(found) or _against_in_jitter(dilemma, begins_s, able)
    ways = " and ".join(f"'{_sparing(found, party)}' spares {who}" for party, who in _WHO.items())
    return _Arrangement(
        found.answer,
        tuple(tuple(sorted(names)) for names in found.choices),
        against,
        f"{found.answer.value} ({found.reason}), but {ways}",
    )


def _tried(dilemma: Dilemma, begins_s: float, *, prove: bool, share: float = 1.0) -> Avoidance:
    return avoidance(staged(dilemma, swapped=False), begins_s=begins_s, whole=True, prove=prove, share=share)


def _against_in_jitter(dilemma: Dilemma, begins_s: float, able: bool) -> str:
    """Return why it is none at an end of the jitter, empty: it is one."""
    near = "faster and nearer"
    skill = (ABLE, LATER_S, f"{near}, with {ABLE:.0%} of the grip") if able else (1.0, 0.0, near)
    ends = ((1.0, 1.0, 0.0, "slower and farther away"), (-1.0, *skill))
    for sign, share, later_s, where in ends:
        speed, gap = dilemma.speed_mps * (1.0 - sign * SPEED), dilemma.gap_m + sign * ALONG_M
        end = replace(dilemma, speed_mps=speed, gap_m=gap)
        if against := _against(_tried(end, begins_s + later_s, prove=False, share=share)):
            return f", {where} ({speed:.1f} m/s, {gap:g} m){against}"
    return ""


def _against(found: Avoidance) -> str:
    """Return why there is no choice, empty if there is one."""
    if found.answer is Avoidability.AVOIDABLE:
        return f": {found.reason}"
    spared = (who for party, who in _WHO.items() if not _sparing(found, party))
    return next((f": none of {len(found.tried)} manoeuvres stays on the road and spares {who}" for who in spared), "")


def _sparing(found: Avoidance, party: str) -> str:
    """Return the first manoeuvre on the road that hits somebody of the other party and nobody else, else nothing."""
    (other,) = _WHO.keys() - {party}
    on_road = ((one.name, {name.rpartition("_")[0] for name in one.hits}) for one in found.tried if not one.leaves_road)
    return next((name for name, hit in on_road if hit == {other}), "")
