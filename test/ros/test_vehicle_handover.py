# SPDX-License-Identifier: Apache-2.0
"""What one relay leaves to the next, how it is watched, and how it tells what it does; without ROS."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt_nodes.base.processes import is_stopped, wait_until
from mt_nodes.runs.vehicle.backlog import MOST, Backlog
from mt_nodes.runs.vehicle.baton import CLAIMS, KIN, Baton, Phase
from mt_nodes.runs.vehicle.events import UNREAD_S, EventWriter
from mt_nodes.runs.vehicle.sentry import BUSY_TIMES, LOOKS, RelayFate, Sentry

LONG_S, FROZEN_S = 100.0, 0.3
DEPTH = 3


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 2**62), st.booleans()), max_size=60))
def test_both_sides_see_what_was_claimed_last_and_whether_it_went_out(rows: list[tuple[int, int, bool]]) -> None:
    one = Baton.create(3, DEPTH)
    other = Baton(one.descriptor, 3, DEPTH)
    claimed: dict[int, list[int]] = {0: [], 1: [], 2: []}
    out = {0: True, 1: True, 2: True}
    for topic, when_ns, sent in rows:
        one.claim(topic, when_ns)
        claimed[topic].append(when_ns)
        if sent:
            one.sent(topic)
        out[topic] = sent
    for topic, whens in claimed.items():
        assert other.claimed(topic) == set(whens[-CLAIMS - 2 * DEPTH :])
        assert other.in_doubt(topic) is not out[topic]
    other.forget()
    assert not any(one.claimed(topic) or one.in_doubt(topic) for topic in claimed)
    os.close(one.descriptor)


def test_a_topic_that_is_not_there_is_refused() -> None:
    baton = Baton.create(1)
    with pytest.raises(IndexError, match="got topic 1 of 1"):
        baton.claim(1, 5)
    os.close(baton.descriptor)


def test_relays_of_a_run_are_told_from_strangers_by_the_beginning_of_their_gids() -> None:
    baton = Baton.create(1)

    def gid(of: int, entity: int = 3) -> bytes:
        return bytes([of]) * 12 + bytes([0, 0, entity, 4])

    assert not baton.is_kin(bytes(16)), "an empty place is nobody's"
    for number in (1, 2):
        baton.announce(number, gid(number))
    assert baton.is_kin(gid(1, 9)) and baton.is_kin(gid(2)) and not baton.is_kin(gid(3))
    assert not baton.is_kin(b"\1" * 11 + b"\2" + bytes(4)) and not baton.is_kin(b"")
    baton.announce(KIN + 1, gid(77))
    assert baton.is_kin(gid(77)) and not baton.is_kin(gid(1))
    os.close(baton.descriptor)


def test_who_begins_is_busy_until_its_first_sign_of_life() -> None:
    baton = Baton.create(1)
    assert baton.phase is Phase.STARTING
    baton.begin(42)
    assert (baton.phase, baton.owner) == (Phase.BUSY, 42)
    baton.beat()
    assert (baton.phase, baton.beats) == (Phase.SERVING, 1)
    os.close(baton.descriptor)


@given(st.integers(0, 30), st.integers(0, 20), st.integers(0, 20))
def test_every_message_is_sent_by_one_of_two_whichever_is_ahead(sent: int, ahead: int, after: int) -> None:
    """The relay that dies sent so many; the standby had heard so many more or fewer by then, and hears on."""
    baton, backlog = Baton.create(1), Backlog()
    heard = max(0, sent + ahead - 10)
    for number in range(1, max(sent, heard) + 1):
        if number <= heard:
            backlog.add(number, b"%d" % number, baton.claimed(0))
        if number <= sent:
            baton.claim(0, number)
            baton.sent(0)
    claimed = baton.claimed(0)
    second = [number for number, _ in backlog.unsent(claimed)]
    second += [number for number in range(heard + 1, heard + after + 1) if number not in claimed]
    assert [*range(1, sent + 1), *second] == list(range(1, max(sent, heard + after) + 1))
    assert not len(backlog)
    os.close(baton.descriptor)


def test_what_the_other_left_out_before_it_sent_a_later_one_is_not_sent_afterwards() -> None:
    backlog = Backlog()
    for number in range(1, 6):
        backlog.add(number, b"", frozenset())
    assert [number for number, _ in backlog.unsent({2, 3})] == [4, 5]


def test_how_long_the_other_is_behind_goes_by_the_first_that_it_has_left_out() -> None:
    backlog = Backlog()
    assert backlog.oldest_s(frozenset()) is None
    for number in range(1, 5):
        backlog.add(number, b"", frozenset(), 0.1 * number)
    assert backlog.oldest_s(frozenset()) == 0.1
    assert backlog.oldest_s({2}) == pytest.approx(0.3)
    assert backlog.oldest_s({4}) is None


def test_a_backlog_does_not_grow_for_ever() -> None:
    backlog = Backlog()
    for number in range(2 * MOST):
        backlog.add(number, b"", frozenset())
    assert len(backlog) == MOST


class Watched:
    """A process that does nothing, a sentry in a thread, and what that found."""

    def __init__(self, ending: ExitStack, phase: Phase = Phase.SERVING, frozen_s: float = FROZEN_S) -> None:
        self._frozen_s, self.behind = frozen_s, False
        #: Whether it is behind at each look; the last holds on.
        self.looks: Iterator[bool] = iter(())
        self.looked = 0
        self.baton = Baton.create(1)
        ending.callback(os.close, self.baton.descriptor)
        self.process = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
        ending.callback(self.process.wait)
        ending.callback(self.process.kill)
        self.fate: RelayFate | None = None
        self.alive_then: bool | None = None
        self._over = self._still = False
        self.baton.phase = phase
        self._watching = threading.Thread(target=self._watch)
        self._beating = threading.Thread(target=self._beat)
        for thread in (self._beating, self._watching):
            thread.start()
        ending.callback(self.end)

    def _watch(self) -> None:
        sentry = Sentry(os.pidfd_open(self.process.pid), self.baton, self._frozen_s, self._look)
        self.fate = sentry.wait(lambda: self._over)
        sentry.close()
        self.alive_then = self.process.poll() is None

    def _look(self) -> bool:
        self.looked += 1
        return next(self.looks, self.behind)

    def _beat(self) -> None:
        while not self._over:
            if not self._still and self.baton.phase is Phase.SERVING:
                self.baton.beat()
            time.sleep(self._frozen_s / LOOKS / 2)

    def stand_still(self) -> None:
        self._still = True

    def found(self, within_s: float = LONG_S) -> RelayFate | None:
        self._watching.join(within_s)
        return self.fate

    def end(self) -> None:
        self._over = True
        self._watching.join()
        self._beating.join()


@pytest.fixture
def watched(ending: ExitStack) -> Watched:
    return Watched(ending)


def test_a_relay_that_lives_is_left_alone(ending: ExitStack) -> None:
    """However busy the machine is: for a second and a half it may give no sign of life."""
    watched = Watched(ending, frozen_s=1.5)
    beats = watched.baton.beats
    assert wait_until(lambda: watched.baton.beats > beats + 3 * LOOKS and watched.looked > LOOKS, LONG_S)
    watched.end()
    assert watched.fate is None and watched.process.poll() is None


def test_a_relay_that_dies_is_noticed(watched: Watched) -> None:
    watched.process.kill()
    assert watched.found() is RelayFate.DIED


def test_a_relay_that_was_told_to_end_is_not_followed(watched: Watched) -> None:
    watched.baton.phase = Phase.ENDED
    watched.process.terminate()
    assert watched.found() is RelayFate.ENDED


def test_a_relay_that_stands_still_is_dead_before_that_is_told(watched: Watched) -> None:
    os.kill(watched.process.pid, signal.SIGSTOP)
    assert wait_until(lambda: is_stopped(watched.process.pid), LONG_S)
    watched.stand_still()
    assert watched.found() is RelayFate.FROZEN
    assert watched.alive_then is False and watched.process.returncode == -signal.SIGKILL


def test_a_relay_that_lives_and_does_not_send_is_dead_before_that_is_told(watched: Watched) -> None:
    watched.behind = True
    assert watched.found() is RelayFate.DEAF
    assert watched.alive_then is False


def test_a_relay_that_catches_up_before_it_was_found_behind_often_enough_is_left_alone(watched: Watched) -> None:
    """As it does when the whole computer stood still, and who watches is the first to go on."""
    watched.looks = iter([*[True] * (LOOKS - 1), False] * 3)
    looked = watched.looked
    assert wait_until(lambda: watched.looked > looked + 3 * LOOKS, LONG_S)
    assert watched.fate is None and watched.process.poll() is None


@pytest.mark.parametrize("phase", [Phase.STARTING, Phase.ENDED])
def test_who_has_not_begun_or_ends_owes_no_sign_of_life(ending: ExitStack, phase: Phase) -> None:
    watched = Watched(ending, phase)
    watched.stand_still()
    assert watched.found(within_s=3 * FROZEN_S) is None and watched.process.poll() is None


def test_who_is_busy_is_not_expected_to_send(ending: ExitStack) -> None:
    watched = Watched(ending, Phase.BUSY)
    watched.behind = True
    assert watched.found(within_s=3 * FROZEN_S) is None and watched.process.poll() is None


def test_a_relay_that_gives_a_sign_of_life_now_and_then_is_left_alone(ending: ExitStack) -> None:
    """Looks without one count only in a row."""
    process = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    ending.callback(process.wait)
    ending.callback(process.kill)
    baton, looks = Baton.create(1), 0
    ending.callback(os.close, baton.descriptor)
    baton.beat()

    def look() -> bool:
        nonlocal looks
        looks += 1
        if looks % (LOOKS - 1) == 0:
            baton.beat()
        return False

    sentry = Sentry(os.pidfd_open(process.pid), baton, 0.01 * LOOKS, look)
    with closing(sentry):
        assert sentry.wait(lambda: looks > 4 * LOOKS) is None
    assert process.poll() is None


def test_who_is_busy_may_keep_silent_for_longer_but_not_for_ever(ending: ExitStack) -> None:
    begun_s, frozen_s = time.monotonic(), 0.06
    watched = Watched(ending, Phase.BUSY, frozen_s)
    assert watched.found() is RelayFate.FROZEN
    assert time.monotonic() - begun_s > 0.9 * BUSY_TIMES * frozen_s


class Told:
    """A pipe, its telling end, and a clock."""

    def __init__(self) -> None:
        self.reading, self.writing = os.pipe()
        os.set_blocking(self.reading, False)
        self.now_s = 0.0
        self.events = EventWriter(self.writing, lambda: self.now_s)
        self.count = 0

    def tell(self, size: int = 10) -> bool:
        def event() -> dict[str, Any]:
            self.count += 1
            return {"count": self.count, "padding": "x" * size}

        return self.events.tell(event)

    def read(self, most: int = 1_000_000) -> bytes:
        try:
            return os.read(self.reading, most)
        except BlockingIOError:
            return b""


@pytest.fixture
def told() -> Iterator[Told]:
    one = Told()
    yield one
    os.close(one.reading)
    os.close(one.writing)


def test_who_reads_is_there(told: Told) -> None:
    for number in range(1, 20):
        told.now_s += 0.5
        assert told.tell()
        assert json.loads(told.read())["count"] == number


def test_who_does_not_read_for_a_while_is_not_there_long_before_the_pipe_is_full(told: Told) -> None:
    found = []
    while told.now_s < 2 * UNREAD_S:
        found.append((told.now_s, told.tell()))
        told.now_s += 0.5
    assert [now_s for now_s, there in found if there] == [now_s for now_s, _ in found if now_s <= UNREAD_S]
    told.read()
    assert told.tell(), "he reads again"


def test_nothing_is_asked_for_that_cannot_be_told(told: Told) -> None:
    """What is asked for is taken out of the relay's memory."""
    told.tell()
    told.now_s = 2 * UNREAD_S
    assert not told.tell() and told.count == 1


def test_a_line_that_did_not_fit_is_finished_before_the_next_and_nobody_waits(told: Told) -> None:
    assert told.tell(size=200_000)
    got = told.read()
    while not got.endswith(b"\n"):
        told.now_s += 0.1
        told.tell(size=3)
        more = told.read()
        assert more
        got += more
    assert [json.loads(line)["count"] for line in got.splitlines()] == [1, 2]


def test_who_is_gone_is_not_there(told: Told) -> None:
    os.close(told.reading)
    assert not told.tell()
    told.reading = os.open(os.devnull, os.O_RDONLY)


def test_without_anybody_to_tell_nothing_is_told() -> None:
    assert EventWriter(None).tell(dict)
