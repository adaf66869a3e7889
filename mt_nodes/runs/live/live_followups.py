# SPDX-License-Identifier: Apache-2.0
"""Makes follow-ups of live input in the time that there is, and puts them in the source's place."""

from __future__ import annotations

from collections import deque
from contextlib import suppress

from mt_nodes.base.errors import MtError
from mt_nodes.base.process_clock import process_time_s
from mt_nodes.data.verdict import Outcome
from mt_nodes.engine.followups import FollowupMaker
from mt_nodes.engine.recorder import Recorder
from mt_nodes.runs.live.config import Limits
from mt_nodes.runs.live.live_feed import Feeding, Instant
from mt_nodes.runs.live.live_run import LiveRun
from mt_nodes.runs.live.segments import Turn

#: Input that comes a little early counts in full: without credit, jitter would halve a rate as high as the input's.
CREDIT = 1.5
#: How many of the last follow-ups tell what the next one takes.
LAST = 4


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


Ended = tuple[Outcome, str]


class Maker:
    """Makes the follow-up of one instant after the other.

    ``feeding``: where follow-ups go. ``limits``: how much may be tested at first.
    """

    def __init__(self, run: LiveRun, feeding: Feeding, recorder: Recorder, limits: Limits) -> None:
        self._prepare = FollowupMaker(run.suite, run.request.seed)
        self._feeding, self._recorder = feeding, recorder
        self._limiter = Limiter(limits)
        #: How long each relation's last follow-ups took, s: of instants with so many frames between.
        self._took_s: dict[tuple[str, int], deque[float]] = {}
        self._delay_s = run.request.delay_s

    def limit(self, limits: Limits) -> None:
        """Let no more than this be tested from now on."""
        self._limiter.limits = limits

    def refuses(self, now_s: float) -> str | None:
        """Say why no follow-up is to be made at a process time; None: one is, and counts."""
        return self._limiter.refuses(now_s)

    def begin(self, instant: Instant, turn: Turn) -> None:
        """Let what looks back, or lasts for an episode, see a bundle of which no follow-up is made."""
        with suppress(MtError):  # which is told when one is made
            self._prepare.begin(turn.offer, instant.bundle)

    def make(self, instant: Instant, turn: Turn, newest: bool = True) -> Ended | None:
        """Make a follow-up and put it in the source's place, or say what came of it instead.

        What would be too late by what the last ones took is not begun, or it would make the next ones late as well;
        unless it is the ``newest``, for which nothing waits: it tells what follow-ups take now.
        """
        kind = turn.offer.relation.id, len(instant.bundle.loose)
        took_s = self._took_s.setdefault(kind, deque(maxlen=LAST))
        expected_s = 0.0 if newest else max(took_s, default=0.0)
        if (late_s := instant.late_s) + expected_s >= 0.0:
            behind = f"{1e3 * late_s:.0f} ms behind" if late_s >= 0.0 else f"{-1e3 * late_s:.0f} ms left"
            needs = f", {1e3 * expected_s:.0f} ms needed" if expected_s else ""
            return Outcome.SKIPPED, f"over budget: {behind}{needs} before it was begun"
        began_s = process_time_s()
        try:
            prepared = self._prepare(turn.offer, instant.bundle)
            took_s.append(process_time_s() - began_s)
        except MtError as error:  # a transform that is not known (yet)
            return Outcome.ERROR, f"cannot be made: {error}"
        if prepared.derived is None:
            assert prepared.outcome is not None, "what was not made says why"
            return prepared.outcome, prepared.reason
        if not self._feeding.exchange(instant, prepared):
            late = f"made in {prepared.made_ms:.0f} ms and {1e3 * instant.late_s:.0f} ms late"
            return Outcome.SKIPPED, f"over budget: {late}, so the source went out; delay_s is {self._delay_s:g}"
        instant.prepared = prepared
        # Hashed and written while the stacks work on it.
        self._recorder.followup(turn.offer, instant.bundle, prepared.derived, prepared.made_ms)
        return None
