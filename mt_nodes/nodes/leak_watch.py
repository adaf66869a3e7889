# SPDX-License-Identifier: Apache-2.0
"""Looks for leaks as often as it may cost, and tells those that are none of what is only not named yet.

rclpy tells nobody that a graph has changed: it has no event for it, and the topic by which participants tell of their
nodes, ``ros_discovery_info``, cannot be named there, since names get a slash. So it is looked at again and again.
"""

from __future__ import annotations

import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from mt_nodes.base.errors import InfrastructureError, IsolationError
from mt_nodes.base.process_clock import process_time_s
from mt_nodes.nodes.isolation import NAMES_S, NOT_KNOWN_YET
from mt_nodes.runs.vehicle.leaks import GraphEndpoint

#: Seconds between two looks: at least, and at most; a twentieth of one core's time is what looking may take.
SOON_S, LATE_S, SHARE = 0.05, 0.5, 0.05
#: A look is worth nothing after so long, s: what looks may hang.
WORTH_S = 5.0


def pause_s(took_s: float) -> float:
    """Return how long to wait after a look that took so much of a core's time, s."""
    return min(LATE_S, max(SOON_S, took_s / SHARE))


class GraphSnapshot(NamedTuple):
    """Ways by which a test could reach an actuator, and the endpoints that they were found among."""

    leaks: Sequence[str]
    found: Collection[GraphEndpoint]


class Suspicion:
    """What is made of one graph, look by look: endpoints are discovered up to a second before their node's name.

    ``why``: why nothing may be injected; empty: all is well. sure: whether that is for good.
    """

    def __init__(self) -> None:
        self.why, self.sure = "", False
        self._since_s = 0.0
        #: Role, name, type -> how many there were when one of them had no name.
        self._suspects: dict[tuple[str, str, str], int] = {}

    def take(self, now_s: float, look: GraphSnapshot) -> None:
        """Take in what a look at a monotonic instant found; nothing is forgotten once it is sure."""
        if self.sure:
            return
        named = [leak for leak in look.leaks if NOT_KNOWN_YET not in leak]
        if named:
            self.why, self.sure = named[0], True
        elif look.leaks:
            self._suspect(now_s, look)
        elif self._suspects:
            self._settle(look.found)

    def _suspect(self, now_s: float, look: GraphSnapshot) -> None:
        if not self.why:
            self.why, self._since_s = look.leaks[0], now_s
        counts = Counter(_what(one) for one in look.found)
        for one in look.found:
            if one.node == NOT_KNOWN_YET and any(leak.startswith(str(one)) for leak in look.leaks):
                self._suspects[_what(one)] = max(self._suspects.get(_what(one), 0), counts[_what(one)])
        self.sure = now_s - self._since_s >= NAMES_S

    def _settle(self, found: Collection[GraphEndpoint]) -> None:
        """Nothing is left that would be a leak: it has gone, or has a name by which it may be there."""
        named = Counter(_what(one) for one in found if one.node != NOT_KNOWN_YET)
        if all(named[what] >= count for what, count in self._suspects.items()):
            self.why = ""
            self._suspects.clear()
        else:
            self.why, self.sure = f"{self.why} (it has gone before it had a name)", True


def _what(one: GraphEndpoint) -> tuple[str, str, str]:
    return one.role, one.name, one.type


class LeakWatch:
    """Looks at several graphs from a thread of its own until :meth:`close`.

    ``looks``: one for each graph; told whether all of it is to be looked at, or only what can be a leak. ``stop``:
    called once, in that thread, as soon as a leak is sure: nothing may be injected from there on.
    """

    def __init__(self, looks: Sequence[Callable[[bool], GraphSnapshot]], stop: Callable[[], object]) -> None:
        self._looks = [(look, Suspicion()) for look in looks]
        self._stop = stop
        self._failure = ""
        self._whole_s = self._looked_s = float("-inf")
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="mt-leaks", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Look no more."""
        self._closing.set()
        self._thread.join()

    @property
    def why(self) -> str:
        """Why nothing may be injected just now; empty when all is well."""
        return next((suspicion.why for _, suspicion in self._looks if suspicion.why), self._failure)

    @property
    def is_blind(self) -> bool:
        """Whether the last whole look is too long ago, or there was none yet."""
        return process_time_s() - self._looked_s > WORTH_S

    def refuse(self) -> None:
        """Raise once a leak is sure. Raises IsolationError: naming it. InfrastructureError: nobody looks any more."""
        for _, suspicion in self._looks:
            if suspicion.sure:
                raise IsolationError(f"{suspicion.why}; nothing more is tested")
        if self._failure:
            raise InfrastructureError(self._failure)

    def _run(self) -> None:
        try:
            while not self._closing.is_set():
                began_s = time.thread_time()
                if self._look():
                    self._stop()
                    return
                self._closing.wait(pause_s(time.thread_time() - began_s))
        except Exception as error:  # noqa: BLE001 - a thread has nobody to raise to: who tests asks
            traceback.print_exc()
            self._failure = f"nobody looks for leaks any more: {type(error).__name__}: {error}"

    def _look(self) -> bool:
        now_s = time.monotonic()
        whole = now_s - self._whole_s >= LATE_S
        if whole:
            self._whole_s = now_s
        for look, suspicion in self._looks:
            suspicion.take(now_s, look(whole))
        self._looked_s = process_time_s()
        return any(suspicion.sure for _, suspicion in self._looks)
