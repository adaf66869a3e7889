# SPDX-License-Identifier: Apache-2.0
"""The content of one traffic rule as a relation between two drives, in words of the ontology; plain data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

ADDS, REPLACES = "adds", "replaces"
ON_ROAD, ON_ROADSIDE = "on the road", "on the roadside"


@dataclass(frozen=True)
class Statement:
    """Given the ego-vehicle approaches to ``road``, when ``verb`` ``element`` (``place``), then ``behaviour``.

    Attributes:
        road, element, behaviour: names of the ontology. verb: ``adds`` or ``replaces``.
        place: ``on the road``, ``on the roadside``, or empty: the usual place of the element.
        condition: required facts of the source; empty: none.
    """

    road: str
    verb: str
    element: str
    behaviour: str
    place: str = ""
    condition: str = ""
    rules: tuple[str, ...] = ()


def merged(statements: Iterable[Statement]) -> tuple[Statement, ...]:
    """Return each statement once, with the ids of all of its rules, in the order of the first."""
    rules: dict[Statement, tuple[str, ...]] = {}
    for one in statements:
        bare = replace(one, rules=())
        rules[bare] = tuple(dict.fromkeys((*rules.get(bare, ()), *one.rules)))
    return tuple(replace(one, rules=ids) for one, ids in rules.items())
