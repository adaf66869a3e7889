# SPDX-License-Identifier: Apache-2.0
"""How long things took: percentiles of any number of durations in a fixed amount of memory."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable

import numpy as np

#: From 1 µs to 1,000 s, each bin 1 % longer than the one before: what is told is right to half a percent.
_FIRST_MS, _LAST_MS, _STEP = 1e-3, 1e6, 1.01
_BINS = math.ceil(math.log(_LAST_MS / _FIRST_MS, _STEP)) + 1
_PERCENTILES = {"p50": 50.0, "p95": 95.0, "p99": 99.0}


class Durations:
    """Counts durations by their size, evenly in their logarithm."""

    def __init__(self) -> None:
        self._counts = np.zeros(_BINS, dtype=np.int64)
        self._longest_ms = 0.0

    def add(self, duration_ms: float) -> None:
        """Count one; what is shorter than a microsecond counts as that."""
        number = round(math.log(max(duration_ms, _FIRST_MS) / _FIRST_MS, _STEP))
        self._counts[min(number, _BINS - 1)] += 1
        self._longest_ms = max(self._longest_ms, duration_ms)

    def __len__(self) -> int:
        return int(self._counts.sum())

    def as_plain(self) -> dict[str, float]:
        """Return p50, p95, p99 (nearest rank) and the exact maximum in ms, and how many; nothing of none."""
        count = len(self)
        if not count:
            return {}
        upto = np.cumsum(self._counts)
        ranks = {name: math.ceil(share / 100.0 * count) for name, share in _PERCENTILES.items()}
        found = {name: _FIRST_MS * _STEP ** int(np.searchsorted(upto, rank)) for name, rank in ranks.items()}
        return {
            **{name: min(value, self._longest_ms) for name, value in found.items()},
            "max": self._longest_ms,
            "count": count,
        }


class AddedByTopic:
    """How much later than they were heard messages went on, by topic. All instants are monotonic."""

    def __init__(self, topics: Iterable[str]) -> None:
        # All of them from the beginning: who reads this and who writes it are threads of their own.
        self._added = {topic: Durations() for topic in topics}

    def sent(self, topic: str, came_s: float) -> None:
        """Count that a message which was heard at an instant has just been handed to its publisher."""
        self._added[topic].add(1e3 * (time.monotonic() - came_s))

    def as_plain(self) -> dict[str, dict[str, dict[str, float]]]:
        """Return ``{topic: {"added_ms": …}}`` of the topics that had any, as the summary of ``mt inline`` has it."""
        percentiles = {topic: each.as_plain() for topic, each in self._added.items()}
        return {
            topic: {"added_ms": {name: round(value, 3) for name, value in plain.items()}}
            for topic, plain in percentiles.items()
            if plain
        }
