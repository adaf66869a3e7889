# SPDX-License-Identifier: Apache-2.0
"""What a parameter does: the rate of violation over the values that the variants of one relation give it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

#: Between a relation's id and each ``<parameter>_<value>`` in the id of a variant.
SEPARATOR = "~"
#: Drawing area of a chart in its own units, and the room that a label needs.
WIDTH, HEIGHT = 320, 180
LEFT, RIGHT, TOP, BOTTOM = 46, 312, 10, 142
_LABEL = 34
#: How wide the cells of one value stand.
_ASIDE = 8.0
#: From this ratio of the largest value to the smallest on, values are shown by their logarithm.
_WIDE = 20.0
_ENDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)

Relations = Mapping[str, Mapping[str, Any]]


class Dot(NamedTuple):
    """A cell of the campaign at a value: where it is, and its 95 % interval (None: it has none)."""

    x: float
    y: float
    interval: tuple[float, float] | None
    told: str


class Label(NamedTuple):
    """A text beside an axis."""

    at: float
    text: str


@dataclass(frozen=True)
class Chart:
    """Rates of one stack over one parameter.

    Attributes:
        relation, stack: which. parameter: its name, with the unit. fixed: what other parameters are set to.
        dots: a cell and a value each. line: path through the rates of all cells of the stack together.
        values, rates: labels of the axes. logarithmic: whether values go by their logarithm.
    """

    relation: str
    stack: str
    parameter: str
    fixed: str
    dots: tuple[Dot, ...]
    line: str
    values: tuple[Label, ...]
    rates: tuple[Label, ...]
    logarithmic: bool


class _Family(NamedTuple):
    """Variants that differ in one parameter only."""

    relation: str
    parameter: str
    fixed: str


def charts(cells: Mapping[str, Relations], stacks: Mapping[str, str]) -> list[Chart]:
    """Return a chart for each stack and each numeric parameter in which alone variants of a relation differ.

    Args:
        cells: relations as they are summed up (``rate``, ``ci95``, ``violated``, ``decided``), by cell.
        stacks: name of the stack, by cell.
    """
    names = dict.fromkeys(name for relations in cells.values() for name in relations)
    made = []
    for family, variants in _families(list(names)).items():
        found = [r[name] for name in variants.values() for r in cells.values() if name in r]
        top = _top([relation for relation in found if relation["decided"]])
        for stack in dict.fromkeys(stacks.values()):
            own = {cell: relations for cell, relations in cells.items() if stacks[cell] == stack}
            if chart := _chart(family, variants, stack, own, top):
                made.append(chart)
    return made


def _families(names: Sequence[str]) -> dict[_Family, dict[float, str]]:
    """Return the variants by the value of the parameter, in its order, of each family that has two of them."""
    found: dict[_Family, dict[float, str]] = {}
    for name in names:
        for family, value in _settings(name):
            found.setdefault(family, {})[value] = name
    return {family: dict(sorted(of.items())) for family, of in found.items() if len(of) > 1}


def _settings(name: str) -> Iterator[tuple[_Family, float]]:
    relation, *settings = name.split(SEPARATOR)
    for at, setting in enumerate(settings):
        parameter, _, text = setting.rpartition("_")
        try:
            value = float(text)
        except ValueError:
            continue
        if parameter and math.isfinite(value):
            others = ", ".join(" = ".join(each.rsplit("_", 1)) for each in settings[:at] + settings[at + 1 :])
            yield _Family(relation, parameter, others), value


def _top(relations: Sequence[Mapping[str, Any]]) -> float:
    highest = max((relation["ci95"][1] if relation["ci95"] else relation["rate"] for relation in relations), default=0)
    return next(end for end in _ENDS if end >= min(highest, 1.0))


def _chart(
    family: _Family, variants: Mapping[float, str], stack: str, cells: Mapping[str, Relations], top: float
) -> Chart | None:
    """Return the chart of one stack, None where fewer than two values were decided there."""
    low, high = min(variants), max(variants)
    logarithmic = low > 0 and high / low >= _WIDE

    def across(value: float) -> float:
        low_, high_, at = (math.log(each) if logarithmic else each for each in (low, high, value))
        return round(LEFT + (RIGHT - LEFT) * (0.05 + 0.9 * (at - low_) / (high_ - low_)), 1)

    def up(rate: float) -> float:
        return round(BOTTOM - (BOTTOM - TOP) * min(rate / top, 1.0), 1)

    dots, line = [], []
    for value, name in variants.items():
        decided = {cell: r[name] for cell, r in cells.items() if name in r and r[name]["decided"]}
        for place, (cell, r) in enumerate(decided.items()):
            # Beside each other, so that none hides another.
            x = across(value) + _ASIDE * (place - (len(decided) - 1) / 2) / max(1, len(decided) - 1)
            interval = (up(r["ci95"][0]), up(r["ci95"][1])) if r["ci95"] else None
            told = f"{cell}, {family.parameter} {value:g}: {r['violated']} of {r['decided']} violated"
            dots.append(Dot(round(x, 1), up(r["rate"]), interval, told))
        if decided:
            violated, pairs = (sum(r[key] for r in decided.values()) for key in ("violated", "decided"))
            line.append(f"{across(value)} {up(violated / pairs)}")
    if len(line) < 2:
        return None
    rates = tuple(Label(up(rate), f"{100 * rate:g} %") for rate in (0.0, top / 2, top))
    values = _apart([Label(across(value), f"{value:g}") for value in variants])
    return Chart(*family[:1], stack, *family[1:], tuple(dots), "M" + "L".join(line), values, rates, logarithmic)


def _apart(labels: Sequence[Label]) -> tuple[Label, ...]:
    """Return as many labels as have room, the first and the last among them."""
    kept = [labels[0]]
    for label in labels[1:-1]:
        if label.at - kept[-1].at >= _LABEL and labels[-1].at - label.at >= _LABEL:
            kept.append(label)
    return (*kept, labels[-1])
