# SPDX-License-Identifier: Apache-2.0
"""Says when tests must stop because the live stack, or the computer, suffers. Pure: instants are given."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mt_nodes.base.safety_settings import Guard

#: Fewer answers than this tell no percentile and no rate.
_LEAST = 10


@dataclass(frozen=True)
class Health:
    """Whether tests may go on, and what stands against it; figures of the live stack, None where not known yet."""

    well: bool
    why: str = ""
    rate_hz: float | None = None
    latency_p95_s: float | None = None
    #: That latency, of the baseline's; infinite: nothing may be tested. None before the baseline is known.
    latency_ratio: float | None = None


class _Window:
    """Answers of the last while."""

    def __init__(self, length_s: float) -> None:
        self._length_s = length_s
        self._rows: deque[tuple[float, float]] = deque()
        self._since_s: float | None = None

    def add(self, now_s: float, latency_s: float) -> None:
        self._rows.append((now_s, latency_s))

    def figures(self, now_s: float) -> tuple[float, float] | None:
        """Rate and 95th percentile of the latency; None before it is full."""
        if self._since_s is None:
            self._since_s = now_s
        while self._rows and self._rows[0][0] <= now_s - self._length_s:
            self._rows.popleft()
        if now_s - self._since_s < self._length_s:
            return None
        latencies = [row[1] for row in self._rows]
        p95_s = float(np.percentile(latencies, 95)) if latencies else np.inf
        return len(latencies) / self._length_s, p95_s


class LiveGuard:
    """Compares the live stack's rate and latency with what they were before the first test.

    Nothing may be tested while the baseline is taken. What stops a test must be well again for ``recover_s``.
    """

    def __init__(self, settings: Guard) -> None:
        self._settings = settings
        self._window = _Window(settings.window_s)
        self._first = _Window(settings.baseline_s)
        #: Rate and 95th percentile of the latency before the first test.
        self.baseline: tuple[float, float] | None = None
        self._ill_s: float | None = None
        self._why = ""

    def answered(self, now_s: float, latency_s: float) -> None:
        """Take in that the live stack answered an input after a latency."""
        self._window.add(now_s, latency_s)
        if self.baseline is None:
            self._first.add(now_s, latency_s)

    def health(self, now_s: float) -> Health:
        """Return whether tests may go on at a monotonic instant; to be asked at every input."""
        found = self._window.figures(now_s)
        if self.baseline is None:
            first = self._first.figures(now_s)
            if first is None or found is None:  # a window may be longer than the baseline
                return self._health(False, "the live stack alone is being measured", found)
            if first[0] * self._settings.baseline_s < _LEAST:
                why = f"the live stack answered {first[0]:.2f} times a second, too seldom to be watched"
                return self._health(False, why, found)
            self.baseline = first
        assert found is not None, "a window that was full once stays so"
        against = self._against(found)
        if against:
            self._ill_s, self._why = now_s, against
        if self._ill_s is not None and now_s - self._ill_s < self._settings.recover_s:
            return self._health(False, self._why, found)
        self._ill_s = None
        return self._health(True, "", found)

    def _against(self, found: tuple[float, float]) -> str:
        assert self.baseline is not None
        (rate_hz, p95_s), (usual_hz, usual_s) = found, self.baseline
        least_hz, most_s = self._settings.rate_ratio * usual_hz, self._settings.latency_ratio * usual_s
        if rate_hz < least_hz:
            return (
                f"the live stack answers {rate_hz:.2f} times a second, {usual_hz:.2f} before, at least {least_hz:.2f}"
            )
        if self._settings.latency_ratio and p95_s > most_s:
            times = f"{1e3 * p95_s:.1f} ms, {1e3 * usual_s:.1f} ms before, at most {1e3 * most_s:.1f} ms"
            return f"p95 of the live stack's latency is {times}"
        return ""

    def _health(self, well: bool, why: str, found: tuple[float, float] | None) -> Health:
        if found is None or self.baseline is None:
            return Health(well, why, *(found or (None, None)))
        return Health(well, why, *found, found[1] / self.baseline[1] if well else np.inf)


def hottest_c(zones: Path = Path("/sys/class/thermal")) -> float | None:
    """Return the temperature of the hottest thermal zone, °C; None where the kernel tells none."""
    found = []
    for zone in zones.glob("thermal_zone*/temp"):
        try:
            found.append(int(zone.read_text(encoding="ascii")) / 1000.0)
        except (OSError, ValueError):  # a zone whose sensor is off
            continue
    return max(found, default=None)


def load_per_core() -> float:
    """Return runnable processes for each core, over the last minute."""
    return os.getloadavg()[0] / (os.cpu_count() or 1)


@dataclass(frozen=True)
class ComputerGuard:
    """Compares heat and load of the computer with what is allowed; ``hottest`` and ``load`` tell them."""

    settings: Guard
    hottest: Callable[[], float | None] = hottest_c
    load: Callable[[], float] = load_per_core

    def health(self) -> Health:
        """Return whether tests may go on; what is to be watched and cannot be, is no reason to go on."""
        if self.settings.temperature_c:
            hottest = self.hottest()
            if hottest is None:
                return Health(False, "guard.temperature_c: the kernel tells no temperature; set it to 0 to go without")
            if hottest > self.settings.temperature_c:
                return Health(False, f"a thermal zone is at {hottest:.1f} °C, at most {self.settings.temperature_c:g}")
        if self.settings.load and (load := self.load()) > self.settings.load:
            return Health(False, f"{load:.2f} processes want each core, at most {self.settings.load:g}")
        return Health(True)
