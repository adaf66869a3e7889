# SPDX-License-Identifier: Apache-2.0
"""Numbers with units in rules, as conditions on the source: speed, visibility, gaps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from mt_nodes.rules.grammar import words
from mt_nodes.rules.phrases import Token

#: One unit in km/h, in metres, in seconds; by international agreement a mile is 1609.344 m, a foot 0.3048 m.
_SPEEDS = {"km/h": 1.0, "kmh": 1.0, "kph": 1.0, "mph": 1.609344}
_LENGTHS = {"m": 1.0, "metre": 1.0, "meter": 1.0, "foot": 0.3048, "feet": 0.3048, "ft": 0.3048, "yard": 0.9144}
_TIMES = {"second": 1.0, "sec": 1.0, "s": 1.0}
_KINDS = (("speed", _SPEEDS), ("length", _LENGTHS), ("time", _TIMES))
UNITS = tuple(unit for _, units in _KINDS for unit in units)
_BELOW = words("below")
_RELATIVE_SPEEDS = words("relative_speeds")
_FLOORS = words("floors")
_NUMBER_NEGATIONS = words("number_negations")
_GAP_CONTEXTS = words("gap_contexts")
#: Walking pace in km/h: German courts assume 4 to 7 km/h, so more than 7 is faster in any case.
WALKING_KMH = 7.0
_BACK = 5


def conditions(tokens: Sequence[Token], keeps: bool) -> tuple[str, ...]:
    """Return the conditions of a rule's numbers; ``keeps``: it demands to drive on as before.

    A speed limit binds only faster vehicles, a minimum speed only those at or above it, a gap only shorter ones.
    """
    found = [one for i, value, kind in _amounts(tokens) if (one := _condition(tokens, i, value, kind, keeps))]
    words = [token.text for token in tokens]
    if any(pair == ("walking", "pace") for pair in pairwise(words)):
        found.append(f"speed_kmh > {WALKING_KMH:g}")
    return tuple(dict.fromkeys(found))


def is_limit(tokens: Sequence[Token]) -> bool:
    """Whether a rule gives a speed limit, which implies that faster vehicles slow down."""
    speeds = [i for i, _, kind in _amounts(tokens) if kind == "speed"]
    return any(not _around(tokens, i) & _FLOORS for i in speeds)


def _amounts(tokens: Sequence[Token]) -> Iterator[tuple[int, float, str]]:
    """Yield index, value in km/h, m or s, and kind of each number with a unit."""
    for i, token in enumerate(tokens[:-1]):
        if token.text[0].isdigit():
            for kind, units in _KINDS:
                for unit in tokens[i + 1].forms & units.keys():
                    yield i, float(token.text.replace(",", ".")) * units[unit], kind


def _condition(tokens: Sequence[Token], i: int, value: float, kind: str, keeps: bool) -> str:
    before = _around(tokens, i)
    clause = {form for token in tokens if token.clause == tokens[i].clause for form in token.forms}
    if kind == "speed":
        after = {token.text for token in tokens[i + 2 : i + 3]}
        return "" if after & _RELATIVE_SPEEDS else f"speed_kmh {_sign(before, keeps)} {round(value)}"
    if kind == "length" and "visibility" in clause:
        return f"visibility_m < {round(value)}" if before & _BELOW else ""
    if not clause & _GAP_CONTEXTS:
        return ""
    return f"lead_gap_m < {round(value)}" if kind == "length" else f"time_gap_s < {value:g}"


def _sign(before: frozenset[str], keeps: bool) -> str:
    if keeps:
        return ">="
    return "<" if before & _BELOW and not before & _NUMBER_NEGATIONS else ">"


def _around(tokens: Sequence[Token], i: int) -> frozenset[str]:
    """Return the words shortly before a number, in its clause."""
    near = tokens[max(0, i - _BACK) : i]
    return frozenset(token.text for token in near if token.clause == tokens[i].clause)
