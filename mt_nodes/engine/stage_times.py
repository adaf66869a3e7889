# SPDX-License-Identifier: Apache-2.0
"""How long follow-ups of a run took to be made and proved, and to be answered: quantiles, and sums by relation."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np


class StageTimes:
    """Takes in times in ms, and keeps four bytes of each."""

    def __init__(self) -> None:
        self._made_ms, self._answered_ms = array("f"), array("f")
        self._work_s: defaultdict[str, float] = defaultdict(float)

    def made(self, relation: str, took_ms: float) -> None:
        """Take in what a follow-up of a relation took to be made and proved."""
        self._made_ms.append(took_ms)
        self._work_s[relation] += 1e-3 * took_ms

    def answered(self, relation: str, took_ms: float) -> None:
        """Take in what a stack took to answer one."""
        self._answered_ms.append(took_ms)
        self._work_s[relation] += 1e-3 * took_ms

    def answered_all(self, took_ms: Iterable[float]) -> None:
        """Take in what a stack took for answers of no relation's own."""
        self._answered_ms.extend(took_ms)

    @property
    def latency_ms(self) -> dict[str, dict[str, float]]:
        """Median, 95th, 99th percentile and maximum of what mutator and stack took, if anything."""
        found = {"mutator": _quantiles(self._made_ms), "stack": _quantiles(self._answered_ms)}
        return {name: row for name, row in found.items() if row}

    @property
    def work_s(self) -> dict[str, float]:
        """Sums by relation."""
        return {name: round(took_s, 3) for name, took_s in sorted(self._work_s.items())}


def _quantiles(values: Sequence[float]) -> dict[str, float]:
    found: list[float] = np.percentile(values, [50, 95, 99, 100]).tolist() if values else []
    return {name: round(value, 3) for name, value in zip(("p50", "p95", "p99", "max"), found, strict=False)}
