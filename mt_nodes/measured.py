# SPDX-License-Identifier: Apache-2.0
"""What a relation's check measured, beside what it measured of control and sham: the noise floor of the same run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

#: Units of numbers that a stack's output varies in by itself, continuously; counts are told in other ways.
CONTINUOUS = frozenset(
    {"rad", "rad/s", "m", "m/s", "m/s²", "m/s³", "of full pedal", "of the tolerance", "s", "ms", "Hz", "score"}
)


class Measured(NamedTuple):
    """The numbers of one decided pair."""

    value: float
    bound: float
    margin: float
    unit: str


def measured_of(line: Any) -> Measured | None:
    """Return the numbers of a verdict line, None where nothing continuous was measured."""
    value, bound, margin = (line.get(name) for name in ("measured", "bound", "margin"))
    if line.get("unit") not in CONTINUOUS or value is None or bound is None or margin is None:
        return None
    return Measured(float(value), float(bound), float(margin), line["unit"])


def noise_floor(
    relation: Sequence[Measured], control: Sequence[Measured], sham: Sequence[Measured]
) -> dict[str, Any] | None:
    """Return the distributions of what was measured in the decided pairs, None where there is nothing.

    Control and sham of a check that demands a difference are judged by its background: what they measure is how far
    the stack strays by itself, which a demand must exceed to mean anything.

    Returns:
        ``unit``, ``bound`` (the largest asked), for each arm ``n``, ``p50``, ``p95`` and ``max``; ``violated`` pairs,
        and how many of them missed their bound by more than any pair of control and sham (``above``).
    """
    if not relation:
        return None
    unit = relation[0].unit
    arms = {"relation": relation, "control": control, "sham": sham}
    alike = {arm: [m for m in found if m.unit == unit] for arm, found in arms.items()}
    background = [m.margin for arm in ("control", "sham") for m in alike[arm]]
    violated = [m.margin for m in alike["relation"] if m.margin < 0.0]
    above = sum(margin < min(background, default=0.0) for margin in violated)
    return {
        "unit": unit,
        "bound": _digits(max(m.bound for m in alike["relation"])),
        **{arm: _spread([m.value for m in found]) for arm, found in alike.items()},
        "violated": len(violated),
        "above": above,
    }


def _spread(values: Sequence[float]) -> dict[str, Any]:
    if not values:
        return {"n": 0, "p50": None, "p95": None, "max": None}
    p50, p95 = np.percentile(values, [50, 95])
    return {"n": len(values), "p50": _digits(p50), "p95": _digits(p95), "max": _digits(max(values))}


def _digits(value: float) -> float:
    return float(f"{value:.4g}")
