# SPDX-License-Identifier: Apache-2.0
"""Makes follow-ups of live input in the time that there is, and puts them in the source's place."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from mt_nodes.base.errors import MtError
from mt_nodes.base.process_clock import process_time_s
from mt_nodes.data.messages import Bundle
from mt_nodes.data.verdict import Outcome
from mt_nodes.engine.followups import FollowupMaker, FollowupPlan
from mt_nodes.engine.judging import Offer
from mt_nodes.engine.recorder import Recorder
from mt_nodes.relations.pipeline import Begun
from mt_nodes.runs.live.config import LEAST_S, Limits
from mt_nodes.runs.live.followup_workers import FollowupWorkers
from mt_nodes.runs.live.live_feed import Feeding, Instant
from mt_nodes.runs.live.live_run import LiveRun
from mt_nodes.runs.live.segments import Turn

#: Input that comes a little early counts in full: without credit, jitter would halve a rate as high as the input's.
CREDIT = 1.5
#: How many of the last follow-ups of whoever makes any tell what the next one takes.
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


@dataclass(frozen=True, eq=False)
class _Making:
    """A follow-up that another process makes, from ``began_s`` on (process time)."""

    instant: Instant
    offer: Offer
    began_s: float = 0.0

    @property
    def is_over(self) -> bool:
        """Whether nobody waits for it any more."""
        return self.instant.ended or self.instant.dropped


class Maker:
    """Makes the follow-ups of instants: here one after the other, or in other processes of several at a time.

    ``feeding``: where follow-ups go. ``limits``: how much may be tested at first. ``workers``: the other processes;
    None: there are none.
    """

    def __init__(
        self, run: LiveRun, feeding: Feeding, recorder: Recorder, limits: Limits, workers: FollowupWorkers | None = None
    ) -> None:
        self._prepare = FollowupMaker(run.suite, run.request.seed)
        self._feeding, self._recorder, self._workers = feeding, recorder, workers
        self._limiter = Limiter(limits)
        #: How long each relation's last follow-ups took, s: of instants with so many frames between.
        self._took_s: dict[tuple[str, int], deque[float]] = {}
        #: Processor time (s) that the last one took that was made here, by relation.
        self._own_s: dict[str, float] = {}
        self._waiting: deque[_Making] = deque()
        #: How many other processes make one at a time, and how many were in time in a row.
        self._at_once, self._in_time = workers.count if workers else 0, 0
        self._delay_s = run.request.delay_s

    @property
    def lost_workers(self) -> int:
        """How many processes that make follow-ups ended or hung."""
        return self._workers.lost if self._workers is not None else 0

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
        if self._workers is None or not self._pays(turn.offer) or not self._workers.open():
            return
        if (handed := self._handed(turn.offer, instant.bundle)) is not None:
            self._workers.warm_up(turn.offer, *handed)

    def make(self, instant: Instant, turn: Turn, newest: bool = True) -> Ended | None:
        """Make a follow-up and put it in the source's place, or say what came of it instead.

        What would be too late by what the last ones took is not begun, or it would make the next ones late as well;
        unless it is the ``newest``, for which nothing waits: it tells what follow-ups take now.
        """
        if late := self._too_late(instant, turn.offer, newest):
            return late
        return self._made_here(instant, turn.offer)

    def hand_over(self, instant: Instant, turn: Turn) -> bool:
        """Leave a follow-up to other processes, if that pays; :meth:`finished` yields the instant then."""
        if self._workers is None or not self._pays(turn.offer) or not self._workers.open():
            return False
        self._waiting.append(_Making(instant, turn.offer))
        instant.in_making = True
        return True

    def finished(self, ending: bool) -> Iterator[tuple[Instant, Ended | None]]:
        """Yield instants whose follow-ups other processes have made, or will not; have them begin what waits.

        ``ending``: what is late is not waited for: those processes may get no core.
        """
        if self._workers is None:
            return
        for making, prepared in self._workers.finished():
            making.instant.in_making = False
            if not making.is_over:
                ended = self._put(making.instant, prepared, making.began_s)
                self._note_pace(ended is None, prepared.derived is not None)
                yield making.instant, ended
        late_ones = [*self._waiting, *(self._workers.tickets if ending else ())]
        for making in (one for one in late_ones if one.instant.late_s >= 0.0 and not one.is_over):
            making.instant.in_making = False
            yield making.instant, (Outcome.SKIPPED, "over budget: it went out before a process made its follow-up")
        self._waiting = deque(making for making in self._waiting if not making.is_over)
        while self._waiting and self._workers.free and len(self._workers.tickets) < self._at_once:
            making = replace(self._waiting.popleft(), began_s=process_time_s())
            instant, offer = making.instant, making.offer
            late = self._too_late(instant, offer, newest=not self._waiting)
            # Only now: what is handed over has the ego's motion, which may have to be estimated for it.
            if (handed := None if late else self._handed(offer, instant.bundle)) is not None:
                self._workers.begin(making, offer, *handed)
                continue
            instant.in_making = False
            yield instant, late or self._made_here(instant, offer)

    def _note_pace(self, in_time: bool, was_made: bool) -> None:
        """Have fewer made at a time after one that came late, and one more when many have been in time.

        Where cores are lacking, each takes the longer the more are made at a time, until none is in time.
        """
        if was_made and not in_time:
            self._at_once, self._in_time = max(1, self._at_once - 1), 0
        elif was_made:
            self._in_time += 1
        if self._workers is not None and self._in_time >= LAST * self._at_once:
            self._at_once, self._in_time = min(self._workers.count, self._at_once + 1), 0

    def _made_here(self, instant: Instant, offer: Offer) -> Ended | None:
        began_s, own_s = process_time_s(), time.thread_time()
        try:
            prepared = self._prepare(offer, instant.bundle)
        except MtError as error:  # a transform that is not known (yet)
            return Outcome.ERROR, f"cannot be made: {error}"
        self._own_s[offer.relation.id] = time.thread_time() - own_s
        return self._put(instant, prepared, began_s)

    def _pays(self, offer: Offer) -> bool:
        return self._own_s.get(offer.relation.id, 0.0) >= LEAST_S

    def _handed(self, offer: Offer, bundle: Bundle) -> tuple[Bundle, Begun] | None:
        """Return what another process needs to make a follow-up; None: it is to be made here, which says why."""
        with suppress(MtError):
            for cloud in bundle.known_clouds:
                cloud.reading.fields  # noqa: B018 - an error of these is the follow-up's
            return self._prepare.handed_over(offer, bundle)
        return None

    def _too_late(self, instant: Instant, offer: Offer, newest: bool) -> Ended | None:
        expected_s = 0.0 if newest else max(self._last_s(instant, offer), default=0.0)
        if (late_s := instant.late_s) + expected_s < 0.0:
            return None
        behind = f"{1e3 * late_s:.0f} ms behind" if late_s >= 0.0 else f"{-1e3 * late_s:.0f} ms left"
        needs = f", {1e3 * expected_s:.0f} ms needed" if expected_s else ""
        return Outcome.SKIPPED, f"over budget: {behind}{needs} before it was begun"

    def _last_s(self, instant: Instant, offer: Offer) -> deque[float]:
        kind, makers = (offer.relation.id, len(instant.bundle.loose)), self._workers.count if self._workers else 1
        return self._took_s.setdefault(kind, deque(maxlen=LAST * makers))

    def _put(self, instant: Instant, prepared: FollowupPlan, began_s: float) -> Ended | None:
        """Put what was made in the source's place, or say what came of it instead."""
        if prepared.outcome is not Outcome.ERROR:
            self._last_s(instant, prepared.offer).append(process_time_s() - began_s)
        if prepared.derived is None:
            assert prepared.outcome is not None, "what was not made says why"
            return prepared.outcome, prepared.reason
        if not self._feeding.exchange(instant, prepared):
            late = f"made in {prepared.made_ms:.0f} ms and {1e3 * instant.late_s:.0f} ms late"
            return Outcome.SKIPPED, f"over budget: {late}, so the source went out; delay_s is {self._delay_s:g}"
        instant.prepared = prepared
        # Hashed and written while the stacks work on it.
        self._recorder.followup(prepared.offer, instant.bundle, prepared.derived, prepared.made_ms)
        return None
