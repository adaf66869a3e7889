# SPDX-License-Identifier: Apache-2.0
"""Processor time that went into the follow-ups of each relation, control and sham by their own names."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager


class ProcessorTime:
    """Adds up processor time by relation; used by one thread."""

    def __init__(self) -> None:
        self._seconds: defaultdict[str, float] = defaultdict(float)

    @contextmanager
    def spent_on(self, relation: str) -> Iterator[None]:
        """Add what this thread works meanwhile, also if it ends with an error; do not nest: it would count twice."""
        began_s = time.thread_time()
        try:
            yield
        finally:
            self._seconds[relation] += time.thread_time() - began_s

    def add(self, relation: str, cpu_s: float) -> None:
        """Add what another process worked for a relation."""
        self._seconds[relation] += cpu_s

    @property
    def by_relation_s(self) -> dict[str, float]:
        """Sums in seconds."""
        return {name: round(cpu_s, 6) for name, cpu_s in sorted(self._seconds.items())}
