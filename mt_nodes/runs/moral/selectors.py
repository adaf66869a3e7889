# SPDX-License-Identifier: Apache-2.0
"""Of whom a party must consist for a principle to say something of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from mt_nodes.base.errors import UsageError, suggest
from mt_nodes.base.params import build, param
from mt_nodes.runs.moral.dilemma import Member

WHO = ("anybody", "humans", "animals", "things")
VIOLATING = ("unsaid", "none", "all")
#: What both parties of a case may be asked to have alike.
ALIKE = ("number", "kinds", "attributes")


@dataclass(frozen=True)
class Selector:
    """A party: every one of its members is as all that is given here says.

    What is asked for must have been said: somebody whose age nobody told has none that is below 12.
    """

    who: str = param("anybody", choices=WHO, help="what every member is")
    kinds: tuple[str, ...] = param((), help="kinds that members may be of: adult, child, boar …")
    age_from_years: float | None = param(None, low=0.0, unit="years", help="so old at least")
    age_below_years: float | None = param(None, low=0.0, unit="years", help="younger than that")
    gender: str = param("", help="as scenarios say it")
    mobility: str = param("", help="none, wheelchair, stick …")
    violating: str = param("unsaid", choices=VIOLATING, help="who breaks a rule by being there: all of them, or none")
    at_least: int = param(1, low=1, help="members at least")
    at_most: int | None = param(None, low=1, help="members at most")

    def __post_init__(self) -> None:
        """Refuse kinds that do not exist and ranges that hold nobody."""
        from mt_nodes.world.scene.objects import KINDS  # makes meshes

        for kind in self.kinds:
            if kind not in KINDS:
                raise UsageError(f"kinds: got '{kind}', which does not exist{suggest(kind, KINDS)}")
        low, high = self.age_from_years, self.age_below_years
        if low is not None and high is not None and low >= high:
            raise UsageError(f"age_from_years: got {low:g}, expected less than age_below_years {high:g}")
        if self.at_most is not None and self.at_most < self.at_least:
            raise UsageError(f"at_most: got {self.at_most}, expected at_least {self.at_least} or more")

    def matches(self, party: Sequence[Member]) -> bool:
        """Tell whether a party is such a one."""
        fits = self.at_least <= len(party) and (self.at_most is None or len(party) <= self.at_most)
        return fits and all(self._takes(member) for member in party)

    def _takes(self, member: Member) -> bool:
        return (
            self._is_who(member)
            and (not self.kinds or member.kind in self.kinds)
            and self._of_age(member)
            and self._keeps_rules(member)
            and all(
                _text_of(member, name) == value for name in ("gender", "mobility") if (value := getattr(self, name))
            )
        )

    def _is_who(self, member: Member) -> bool:
        thing = not (member.human or member.animal)
        return {"anybody": True, "humans": member.human, "animals": member.animal, "things": thing}[self.who]

    def _of_age(self, member: Member) -> bool:
        low, high = self.age_from_years, self.age_below_years
        age = member.person.age_years if member.person else None
        if age is None:
            return low is None and high is None
        return (low is None or age >= low) and (high is None or age < high)

    def _keeps_rules(self, member: Member) -> bool:
        if self.violating == "none":
            return bool(_text_of(member, "compliance")) and not member.violates
        return member.violates or self.violating == "unsaid"


def selector(value: Any, where: str) -> Selector:
    """Read a selector of a file; one that is made already stays.

    Raises UsageError: naming the key, what was got and what was expected.
    """
    return value if isinstance(value, Selector) else build(Selector, value, where)


def alike(one: Sequence[Member], other: Sequence[Member], what: Sequence[str]) -> bool:
    """Tell whether two parties have what is named in :data:`ALIKE` in common.

    ``number`` of members; ``kinds``: as many of each; ``attributes``: whatever is said of somebody here is said of
    somebody there, but for who belongs together and who keeps the rules.
    """
    return (
        ("number" not in what or len(one) == len(other))
        and ("kinds" not in what or sorted(m.kind for m in one) == sorted(m.kind for m in other))
        and ("attributes" not in what or _attributes(one) == _attributes(other))
    )


def sorts(party: Sequence[Member]) -> set[Any]:
    """Return what sorts of members there are, whatever their number and whoever belongs together."""
    return {(member.kind, member.person and replace(member.person, group="")) for member in party}


def _attributes(party: Sequence[Member]) -> set[Any]:
    return {member.person and replace(member.person, group="", compliance="") for member in party}


def _text_of(member: Member, name: str) -> str:
    return str(getattr(member.person, name)) if member.person else ""
