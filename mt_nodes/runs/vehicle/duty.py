# SPDX-License-Identifier: Apache-2.0
"""How much processor time tests may take beside a live stack, lowered while it suffers. Pure: instants are given."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import Any

from mt_nodes.base.safety_settings import Guard

#: What is allowed is multiplied by this when the live stack becomes slower.
LOWERED = 0.5
#: Never less, ms of processor time a second: it would not rise from zero for long.
LEAST_MS_PER_S = 1.0
#: So many seconds' worth can be saved up, and be owed; what is owed beyond that is forgiven.
SAVED_S, OWED_S = 1.0, 30.0
#: So many of the last changes are kept.
CHANGES = 200


@dataclass(frozen=True)
class DutyChange:
    """A change of what is allowed, ms of processor time a second; infinite: no limit."""

    at_s: float
    ms_per_s: float
    latency_ratio: float

    def as_plain(self) -> dict[str, float | None]:
        """Return it as JSON can hold it: None stands for no limit, and for a live stack that is too slow to test."""
        return {name: round(value, 3) if math.isfinite(value) else None for name, value in vars(self).items()}


class AdaptiveDuty:
    """Allows tests an amount of processor time: additive increase, multiplicative decrease (Chiu and Jain, 1989).

    What all processes of the run took is paid from a token bucket (ms) after it was taken, so that nothing has to be
    predicted; a test begins when nothing is owed. After a window (``Guard.window_s``) in which the live stack's latency
    was above ``Guard.throttle_ratio`` of the baseline's, half of what was taken in it is allowed; after one in which it
    was nearer to the baseline than to that ratio, ``Guard.raise_ms_per_s`` more is, up to ``whole_ms_per_s``.
    """

    def __init__(self, settings: Guard, whole_ms_per_s: float) -> None:
        self._settings, self._whole_ms_per_s = settings, whole_ms_per_s
        #: What the live stack leaves, ms of processor time a second; infinite: it has not been slowed down.
        self.allowed_ms_per_s = self.least_ms_per_s = math.inf
        #: The last changes, with monotonic instants.
        self.changes: deque[DutyChange] = deque(maxlen=CHANGES)
        self._window: tuple[float, float] | None = None
        self._paid: tuple[float, float] | None = None
        self._saved_ms, self._is_stopped = 0.0, False

    def observe(self, now_s: float, taken_ms: float, latency_ratio: float) -> None:
        """Adapt what is allowed, at each input.

        Args:
            now_s: a monotonic instant.
            taken_ms: processor time of the run so far.
            latency_ratio: latency of the live stack, of the baseline's; infinite: it is so slow that nothing is tested.
        """
        was_stopped, self._is_stopped = self._is_stopped, math.isinf(latency_ratio)
        if not self._settings.throttle_ratio:
            return
        if self._window is None or was_stopped:  # a window in which nothing is tested tells nothing of tests
            self._window = (now_s, taken_ms)
            return
        lasted_s = now_s - self._window[0]
        if lasted_s <= 0.0 or (lasted_s < self._settings.window_s and not self._is_stopped):
            return
        used_ms_per_s, self._window = (taken_ms - self._window[1]) / lasted_s, (now_s, taken_ms)
        self._change(now_s, self._next(used_ms_per_s, latency_ratio), latency_ratio)

    def _next(self, used_ms_per_s: float, latency_ratio: float) -> float:
        limit = self._settings.throttle_ratio
        if latency_ratio > limit:
            return max(LEAST_MS_PER_S, LOWERED * min(self.allowed_ms_per_s, used_ms_per_s))
        if latency_ratio > min(limit, (1.0 + limit) / 2):
            return self.allowed_ms_per_s
        raised = self.allowed_ms_per_s + self._settings.raise_ms_per_s
        return raised if raised < self._whole_ms_per_s else math.inf

    def _change(self, now_s: float, ms_per_s: float, latency_ratio: float) -> None:
        if ms_per_s != self.allowed_ms_per_s:
            self.changes.append(DutyChange(now_s, ms_per_s, latency_ratio))
        self.allowed_ms_per_s = ms_per_s
        self.least_ms_per_s = min(self.least_ms_per_s, ms_per_s)

    def refuses(self, now_s: float, taken_ms: float, most_ms_per_s: float) -> str:
        """Return why no test may begin now; empty if one may. ``most_ms_per_s``: ``limits.duty_ms_per_s``, 0: none."""
        most = most_ms_per_s or math.inf
        allowed = min(most, self.allowed_ms_per_s)
        before_s, before_ms = self._paid or (now_s, taken_ms)
        self._paid = (now_s, taken_ms)
        if math.isinf(allowed):
            self._saved_ms = 0.0
            return ""
        saved_ms = self._saved_ms + allowed * (now_s - before_s) - (taken_ms - before_ms)
        self._saved_ms = min(SAVED_S * allowed, max(-OWED_S * allowed, saved_ms))
        if self._saved_ms >= 0.0:
            return ""
        if most <= self.allowed_ms_per_s:
            return f"over duty: limits.duty_ms_per_s is {most:g}"
        return f"over duty: the live stack leaves {allowed:.0f} ms of processor time a second"

    def as_plain(self, most_ms_per_s: float) -> dict[str, float | None]:
        """Return what is allowed now and was at least, for a status; None: no limit."""
        found = {"duty_ms_per_s": self.allowed_ms_per_s, "duty_ms_per_s_least": self.least_ms_per_s}
        most = most_ms_per_s or math.inf
        return {key: round(min(most, v), 1) if math.isfinite(min(most, v)) else None for key, v in found.items()}

    def changes_as_plain(self, began_s: float) -> list[dict[str, Any]]:
        """Return the last changes, with seconds since a monotonic instant."""
        return [{**change.as_plain(), "at_s": round(change.at_s - began_s, 3)} for change in self.changes]
