# SPDX-License-Identifier: Apache-2.0
"""What a relay's line sends, compared with what may be said of it from all that came in: nothing here is the code's.

1. Originals leave once each, in the order in which they came; one that may not be replaced leaves at once.
2. One that may be replaced leaves as it is when its time is up, or when a later one leaves; not before.
3. What leaves in its place was made for its stamp, and came while it was held and input might be changed; or came
   before it, by no more than an original is held, with no original in between that was not to be replaced.
4. What came so, and is the last of its stamp, does leave; of those that come before their originals, a few.
5. Each replacement is counted once: as replaced, late, unasked; or waits still.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from mt_nodes.runs.vehicle.line import Line

#: All instants are ticks of this length, which floating-point numbers hold exactly.
TICK_S, HOLD = 1.0 / 64.0, 8
#: So many replacements may wait for their originals at least; so many stamps make one that comes again another's.
WAIT, LATELY = 4, 100


@dataclass(frozen=True)
class Came:
    """An original, or a replacement, at a tick; whether input might be changed then."""

    number: int
    stamp: int
    at: int
    may: bool
    is_original: bool


@dataclass
class Record:
    """All that came in, in its order, and what left, with the tick at which it did."""

    came: list[Came] = field(default_factory=list)
    left: list[tuple[bytes, int]] = field(default_factory=list)

    def originals(self) -> list[Came]:
        return [one for one in self.came if one.is_original]

    def replaceable(self, one: Came) -> bool:
        stamps = [other.stamp for other in self.originals()[: one.number]][-LATELY:]
        return one.may and one.stamp != 0 and one.stamp not in stamps

    def in_time_before(self, one: Came) -> list[Came]:
        """Replacements that came before their original, and may be used, oldest first."""
        upto = self.came[: self.came.index(one)]
        since = max((n for n, c in enumerate(upto) if c.is_original and not self.replaceable(c)), default=-1)
        own = [c for c in upto[since + 1 :] if not c.is_original and c.stamp == one.stamp]
        return [c for c in own if one.at - c.at < HOLD]


def data_of(one: Came) -> bytes:
    return b"%s %d" % (b"original" if one.is_original else b"other", one.number)


class Lines(RuleBasedStateMachine):
    """A sensor, a mutator that is early, late, wrong or repeats itself, and permission that comes and goes."""

    def __init__(self) -> None:
        super().__init__()
        self.record, self.now, self.may, self.stamp = Record(), 0, True, 0
        self.line = Line(HOLD * TICK_S, self._send, lambda: self.may)
        self.offered = 0

    def _send(self, data: bytes | memoryview, came_s: float) -> None:
        one = self.record.originals()[len(self.record.left)]
        assert came_s == one.at * TICK_S, "each is as late as its own original"
        self.record.left.append((bytes(data), self.now))

    @rule(step=st.sampled_from([1, 1, 1, 1, 2, 0, -1]))
    def an_original_comes(self, step: int) -> None:
        """Stamps are left out, repeated, and missing (0)."""
        self.stamp = max(0, self.stamp + step)
        one = Came(len(self.record.originals()), self.stamp, self.now, self.may, True)
        self.record.came.append(one)
        before = len(self.record.left)
        self.line.original(one.stamp, data_of(one), self.now * TICK_S, self.may)
        early = self.record.in_time_before(one)
        if not self.record.replaceable(one):
            assert len(self.record.left) == len(self.record.originals()), "it leaves at once, and all before it"
            assert self.record.left[-1][0] == data_of(one)
        elif early and self._waits(early[-1], one):
            assert self.record.left[-1][0] == data_of(early[-1])
        elif not early:
            assert len(self.record.left) == before, "it is held, and nothing leaves before its time"

    @rule(which=st.integers(0, 5), ahead=st.sampled_from([1, 1, 2, 0, -1, -3]))
    def a_replacement_comes(self, which: int, ahead: int) -> None:
        """Of one that is held, or of one that comes, was sent, or never comes."""
        held = self._held()
        stamp = held[which % len(held)].stamp if held and which else max(0, self.stamp + ahead)
        one = Came(self.offered, stamp, self.now, self.may, False)
        self.offered += 1
        self.record.came.append(one)
        held = [c for c in self._held() if c.stamp == one.stamp and self.now < c.at + HOLD]
        self.line.replacement(one.stamp, data_of(one), self.now * TICK_S)
        if held and self.may:
            assert self.record.left[held[0].number] == (data_of(one), self.now)

    @rule()
    def time_is_looked_at(self) -> None:
        due_s = self.line.release_due(self.now * TICK_S)
        held = self._held()
        assert all(self.now < one.at + HOLD for one in held)
        assert due_s == ((held[0].at + HOLD) * TICK_S if held else None)

    @rule(ticks=st.sampled_from([1, 1, 2, 3, HOLD - 1, HOLD, HOLD, 2 * HOLD]))
    def time_passes(self, ticks: int) -> None:
        self.now += ticks

    @rule()
    def permission_comes_or_goes(self) -> None:
        self.may = not self.may

    @rule(steps=st.lists(st.sampled_from([1, 1, 1, 2, 0]), min_size=1, max_size=6), ticks=st.integers(0, 2))
    def several_originals_come(self, steps: list[int], ticks: int) -> None:
        """So that several are held."""
        self.may = True
        for step in steps:
            self.an_original_comes(step)
            self.now += ticks

    def _held(self) -> list[Came]:
        return self.record.originals()[len(self.record.left) :]

    def _waits(self, early: Came, one: Came) -> bool:
        """Whether so few came after an early one that it must still be there."""
        after = self.record.came[self.record.came.index(early) : self.record.came.index(one)]
        return early.may and len([c for c in after if not c.is_original]) <= WAIT

    @invariant()
    def each_leaves_once_in_its_order_as_it_is_or_rightly_replaced(self) -> None:
        originals = self.record.originals()
        assert len(self.record.left) <= len(originals)
        for number, (one, (data, left_at)) in enumerate(zip(originals, self.record.left, strict=False)):
            if data == data_of(one):
                later_left = len(self.record.left) > number + 1 and self.record.left[number + 1][1] == left_at
                assert not self.record.replaceable(one) or left_at >= one.at + HOLD or later_left
                continue
            [used] = [c for c in self.record.came if not c.is_original and data_of(c) == data]
            assert self.record.replaceable(one) and used.stamp == one.stamp
            while_held = used.may and one.at <= used.at < one.at + HOLD and left_at == used.at
            assert while_held or (used in self.record.in_time_before(one) and left_at == one.at)

    @invariant()
    def counts_say_what_became_of_each(self) -> None:
        counts, left = self.line.counts, [data for data, _ in self.record.left]
        replaced = [data for data in left if data.startswith(b"other")]
        assert len(set(replaced)) == len(replaced) == counts.replaced
        assert counts.originals == len(left) - counts.replaced
        waiting = self.offered - counts.replaced - counts.late - counts.unasked
        assert 0 <= waiting <= WAIT
        originals = self.record.originals()
        may = [one for one in originals if one.may]
        assert counts.ambiguous == len(may) - len([one for one in may if self.record.replaceable(one)])

    def teardown(self) -> None:
        self.now += HOLD
        self.line.release_due(self.now * TICK_S)
        assert not self._held(), "nothing is lost"
        stamps = [one.stamp for one, (data, _) in self._outcomes() if data != data_of(one)]
        assert list(self.line.replaced_ns) == stamps

    def _outcomes(self) -> list[tuple[Came, tuple[bytes, int]]]:
        return list(zip(self.record.originals(), self.record.left, strict=True))


TestLines = Lines.TestCase
TestLines.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)
