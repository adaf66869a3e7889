# SPDX-License-Identifier: Apache-2.0
"""What a relation's check measured, beside what it measured of control and sham: the noise floor of the same run."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

#: Units of numbers that a stack's output varies in by itself, continuously; counts are told in other ways.
CONTINUOUS = frozenset(
    {"rad", "rad/s", "m", "m/s", "m/s²", "m/s³", "of full pedal", "of the tolerance", "s", "ms", "Hz", "score"}
)


class PairMeasure(NamedTuple):
    """The numbers of one decided pair."""

    value: float
    bound: float
    margin: float
    unit: str


def measured_of(line: Any) -> PairMeasure | None:
    """Return the numbers of a verdict line, None where nothing continuous was measured."""
    value, bound, margin = (line.get(name) for name in ("measured", "bound", "margin"))
    if line.get("unit") not in CONTINUOUS or value is None or bound is None or margin is None:
        return None
    return PairMeasure(float(value), float(bound), float(margin), line["unit"])


@dataclass
class _OfUnit:
    """The numbers of one unit: value and margin of each pair, and the largest bound."""

    values: array[float] = field(default_factory=lambda: array("d"))
    margins: array[float] = field(default_factory=lambda: array("d"))
    bound: float = -math.inf


class Numbers:
    """The numbers of many pairs, sixteen bytes each."""

    def __init__(self) -> None:
        self._units: dict[str, _OfUnit] = {}

    def take(self, measured: PairMeasure) -> None:
        """Take in those of a pair."""
        of = self._units.setdefault(measured.unit, _OfUnit())
        of.values.append(measured.value)
        of.margins.append(measured.margin)
        of.bound = max(of.bound, measured.bound)

    @property
    def unit(self) -> str | None:
        """That of the first pair, None where there is none."""
        return next(iter(self._units), None)

    def of(self, unit: str) -> _OfUnit:
        """Return those of one unit."""
        return self._units.get(unit, _OfUnit())


def floor_of(relation: Numbers, control: Numbers, sham: Numbers) -> dict[str, Any] | None:
    """Return the distributions of what was measured in the decided pairs, None where there is nothing.

    Control and sham of a check that demands a difference are judged by its background: what they measure is how far
    the stack strays by itself, which a demand must exceed to mean anything.

    Returns:
        ``unit``, ``bound`` (the largest asked), for each arm ``n``, ``p50``, ``p95`` and ``max``; ``violated`` pairs,
        and how many of them missed their bound by more than any pair of control and sham (``above``).
    """
    if (unit := relation.unit) is None:
        return None
    arms = {"relation": relation.of(unit), "control": control.of(unit), "sham": sham.of(unit)}
    least = min((min(arms[arm].margins) for arm in ("control", "sham") if arms[arm].margins), default=0.0)
    violated = [margin for margin in arms["relation"].margins if margin < 0.0]
    return {
        "unit": unit,
        "bound": _digits(arms["relation"].bound),
        **{arm: _spread(found.values) for arm, found in arms.items()},
        "violated": len(violated),
        "above": sum(margin < least for margin in violated),
    }


def _spread(values: Sequence[float]) -> dict[str, Any]:
    if not values:
        return {"n": 0, "p50": None, "p95": None, "max": None}
    p50, p95 = np.percentile(values, [50, 95])
    return {"n": len(values), "p50": _digits(p50), "p95": _digits(p95), "max": _digits(max(values))}


def _digits(value: float) -> float:
    return float(f"{value:.4g}")
