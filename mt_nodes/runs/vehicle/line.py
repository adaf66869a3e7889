# SPDX-License-Identifier: Apache-2.0
"""One topic that a relay stands in: every original goes out once, in its order, as it is or replaced in time."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass

Send = Callable[[bytes | memoryview, float], None]
"""Publishes a message; the instant at which its original came is for whoever counts how long that took."""
#: So many replacements may wait for their originals; a mutator is never further ahead.
_EARLY = 4
#: So many stamps are remembered.
_LATELY = 100


@dataclass
class LineCounts:
    """What became of originals and replacements.

    Attributes:
        originals: sent as they came. replaced: sent in another's place. late: replacements whose original was sent.
        unasked: replacements that came when none was permitted, or of what never came. wrong: what is none.
        ambiguous: originals that nothing could take the place of: no stamp, or one that another bore lately.
    """

    originals: int = 0
    replaced: int = 0
    late: int = 0
    unasked: int = 0
    wrong: int = 0
    ambiguous: int = 0


@dataclass(frozen=True, eq=False)
class _Held:
    stamp_ns: int
    data: bytes
    came_s: float
    until_s: float


class Line:
    """Holds originals for a short while, in which a replacement may come. All instants are monotonic.

    Nothing is dropped, sent twice or sent before what came before it. May be used by several threads: one brings
    originals, one replacements, one calls :meth:`release_due`.

    Args:
        hold_s: how long an original may be held, and a replacement may wait for its original.
        send: publishes; it is called with a lock held, so that order stays.
        is_permitted: whether input may be changed; asked right before that is done, whoever was waited for until then.
    """

    def __init__(self, hold_s: float, send: Send, is_permitted: Callable[[], bool]) -> None:
        self.counts = LineCounts()
        #: Stamps of what was replaced lately, for a record; whoever keeps it takes them out.
        self.replaced_ns: deque[int] = deque(maxlen=10_000)
        self._hold_s, self._send, self._is_permitted = hold_s, send, is_permitted
        self._held: deque[_Held] = deque()
        #: Replacements whose originals have not come: when they came, and what they are, by stamp.
        self._early: OrderedDict[int, tuple[float, bytes | memoryview]] = OrderedDict()
        #: Stamps of what was sent as it came though a replacement was waited for: theirs come late.
        self._given_up: deque[int] = deque(maxlen=_LATELY)
        self._stamps: deque[int] = deque(maxlen=_LATELY)
        self._lock = threading.Lock()

    def original(self, stamp_ns: int, data: bytes, now_s: float, replaceable: bool) -> None:
        """Take an original in: it is sent at once where nothing may take its place, with all that was held.

        Nothing may where its stamp does not tell it from others: it has none (0), or another one bore it lately.
        """
        with self._lock:
            ambiguous = stamp_ns == 0 or stamp_ns in self._stamps
            self.counts.ambiguous += replaceable and ambiguous
            replaceable = replaceable and not ambiguous
            self._stamps.append(stamp_ns)
            if not replaceable:
                self._send_held(lambda held: True)
                self._forget_early(math.inf)  # nothing that was made before a permission was lost goes out after it
                self._send_original(data, now_s)
                return
            self._held.append(_Held(stamp_ns, data, now_s, now_s + self._hold_s))
            self._forget_early(now_s - self._hold_s)
            if (early := self._early.pop(stamp_ns, None)) is not None:
                self._replace_where_permitted(stamp_ns, early[1])

    def replacement(self, stamp_ns: int, data: bytes | memoryview, now_s: float) -> None:
        """Take the replacement of the original of this stamp."""
        with self._lock:
            self._send_held(lambda held: held.until_s <= now_s)
            if any(held.stamp_ns == stamp_ns for held in self._held):
                self._replace_where_permitted(stamp_ns, data)
            elif stamp_ns in self._given_up:
                self._given_up.remove(stamp_ns)
                self.counts.late += 1
            else:
                self.counts.unasked += self._early.pop(stamp_ns, None) is not None
                self._early[stamp_ns] = (now_s, data)
                if len(self._early) > _EARLY:
                    self._forget_first()

    def release_due(self, now_s: float) -> float | None:
        """Send the originals whose time is up; return when the next one's is, None where nothing is held."""
        with self._lock:
            self._send_held(lambda held: held.until_s <= now_s)
            return self._held[0].until_s if self._held else None

    def _replace_where_permitted(self, stamp_ns: int, data: bytes | memoryview) -> None:
        if self._is_permitted():
            self._replace(stamp_ns, data)
        else:
            self.counts.unasked += 1

    def _replace(self, stamp_ns: int, data: bytes | memoryview) -> None:
        """Send a replacement in the place of the first that is held of its stamp; those before it go as they are."""
        while self._held[0].stamp_ns != stamp_ns:
            self._give_up(self._held.popleft())
        held = self._held.popleft()
        self.counts.replaced += 1
        self.replaced_ns.append(stamp_ns)
        self._send(data, held.came_s)

    def _forget_early(self, until_s: float) -> None:
        """Forget what came until an instant, and waits for its original."""
        while self._early and next(iter(self._early.values()))[0] <= until_s:
            self._forget_first()

    def _forget_first(self) -> None:
        self._early.popitem(last=False)
        self.counts.unasked += 1

    def _send_held(self, which: Callable[[_Held], bool]) -> None:
        while self._held and which(self._held[0]):
            self._give_up(self._held.popleft())

    def _give_up(self, held: _Held) -> None:
        self._given_up.append(held.stamp_ns)
        self._send_original(held.data, held.came_s)

    def _send_original(self, data: bytes, came_s: float) -> None:
        self.counts.originals += 1
        self._send(data, came_s)
