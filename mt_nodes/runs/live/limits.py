# SPDX-License-Identifier: Apache-2.0
"""How much of a live input is tested."""

from __future__ import annotations

from mt_nodes.runs.live.config import Limits

#: Input that comes a little early counts in full: without credit, jitter would halve a rate as high as the input's.
CREDIT = 1.5


class Limiter:
    """Says of each instant that could be tested whether it may be.

    The rate is a token bucket; the duty is the share of the instants of tests of which a follow-up is made.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._tokens, self._share = 1.0, 1.0 - limits.duty
        self._last_s: float | None = None

    def refuses(self, now_s: float) -> str | None:
        """Say why an instant is not to be tested; None: it is, and counts."""
        limits, since_s = self.limits, 0.0 if self._last_s is None else now_s - self._last_s
        self._last_s = now_s
        self._tokens = min(CREDIT, self._tokens + limits.rate_hz * since_s)
        self._share = min(1.0 + limits.duty, self._share + limits.duty)
        if limits.rate_hz and self._tokens < 1.0:
            return f"over rate: limits.rate_hz is {limits.rate_hz:g}"
        if self._share < 1.0 - 1e-9:
            return f"over duty: limits.duty is {limits.duty:g}"
        self._tokens, self._share = self._tokens - 1.0, self._share - 1.0
        return None
