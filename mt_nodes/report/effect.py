# SPDX-License-Identifier: Apache-2.0
"""Charts of the violation rate over the values of a parameter in the variants of one relation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

#: Separates a relation's id and each ``<parameter>_<value>`` in the id of a variant.
SEPARATOR = "~"
#: Drawing area of a chart in its own units, and the width of a label.
WIDTH, HEIGHT = 320, 180
LEFT, RIGHT, TOP, BOTTOM = 46, 312, 10, 142
_LABEL = 34
#: Width over which the cells of one value are spread.
_ASIDE = 8.0
#: Ratio of the largest value to the smallest from which on the axis is logarithmic.
_WIDE = 20.0
_ENDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)

Relations = Mapping[str, Mapping[str, Any]]


class Dot(NamedTuple):
    """A cell of the campaign at a value: its place, its 95 % interval (None: it has none), and its tooltip."""

    x: float
    y: float
    interval: tuple[float, float] | None
    title: str


class Label(NamedTuple):
    """A text beside an axis."""

    at: float
    text: str


@dataclass(frozen=True)
class Chart:
    """Rates of one stack over one parameter.

    Attributes:
        relation, stack: their names. parameter: its name, with the unit. fixed: the other parameters.
        dots: one for each cell and value. line: path through the rates of all cells of the stack together.
        values, rates: labels of the axes. logarithmic: whether the axis of values is logarithmic.
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
    """Return a chart for each stack and each numeric parameter in which variants of a relation differ, all else equal.

    ``cells``: relations of the summaries (``rate``, ``ci95``, ``violated``, ``decided``), by cell. ``stacks``: name of
    the stack, by cell.
    """
    names = dict.fromkeys(name for relations in cells.values() for name in relations)
    result = []
    for family, variants in _families(list(names)).items():
        found = [r[name] for name in variants.values() for r in cells.values() if name in r]
        top = _top([relation for relation in found if relation["decided"]])
        for stack in dict.fromkeys(stacks.values()):
            own = {cell: relations for cell, relations in cells.items() if stacks[cell] == stack}
            if chart := _chart(family, variants, stack, own, top):
                result.append(chart)
    return result


def _families(names: Sequence[str]) -> dict[_Family, dict[float, str]]:
    """Return the variants of each family with at least two, by the value of the parameter, in order."""
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
    """Return the chart of one stack; None where fewer than two values have decided pairs."""
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
            # Beside each other, so that no dot hides another.
            x = across(value) + _ASIDE * (place - (len(decided) - 1) / 2) / max(1, len(decided) - 1)
            interval = (up(r["ci95"][0]), up(r["ci95"][1])) if r["ci95"] else None
            title = f"{cell}, {family.parameter} {value:g}: {r['violated']} of {r['decided']} violated"
            dots.append(Dot(round(x, 1), up(r["rate"]), interval, title))
        if decided:
            violated, pairs = (sum(r[key] for r in decided.values()) for key in ("violated", "decided"))
            line.append(f"{across(value)} {up(violated / pairs)}")
    if len(line) < 2:
        return None
    rates = tuple(Label(up(rate), f"{100 * rate:g} %") for rate in (0.0, top / 2, top))
    values = _apart([Label(across(value), f"{value:g}") for value in variants])
    return Chart(*family[:1], stack, *family[1:], tuple(dots), "M" + "L".join(line), values, rates, logarithmic)


def _apart(labels: Sequence[Label]) -> tuple[Label, ...]:
    """Return the labels that have room, the first and the last included."""
    fitting = [labels[0]]
    for label in labels[1:-1]:
        if label.at - fitting[-1].at >= _LABEL and labels[-1].at - label.at >= _LABEL:
            fitting.append(label)
    return (*fitting, labels[-1])
