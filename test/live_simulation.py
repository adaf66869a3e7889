# SPDX-License-Identifier: Apache-2.0
"""A live run in one thread and in a time of its own: what comes when is the test's to say, and nothing waits."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fake_arms import FakeArm, FakeRecorder, answered, relation, seen, suite
from recordings import PERIOD_NS, bundles

from mt_nodes.base.process_clock import process_time_s
from mt_nodes.data.messages import Bundle
from mt_nodes.relations.relation import Suite
from mt_nodes.runs.live.attendance import Presence, always_present
from mt_nodes.runs.live.commands import Commands
from mt_nodes.runs.live.config import LiveConfig
from mt_nodes.runs.live.live_driver import LiveDriver
from mt_nodes.runs.live.live_judging import nothing_missed
from mt_nodes.runs.live.live_run import LiveRun
from mt_nodes.runs.live.live_surroundings import LiveSurroundings
from mt_nodes.stacks.stack import Stack

PERIOD_S = PERIOD_NS / 1e9
#: How often the suite's threads get to run.
TICK_S = 0.02
BEGAN_S = 1_000.0


class VirtualTime:
    """What :data:`process_time_s` reads instead of the machine's clocks."""

    def __init__(self) -> None:
        self.now_s = BEGAN_S

    def __call__(self) -> float:
        return self.now_s


@contextmanager
def virtual_time() -> Iterator[VirtualTime]:
    """Put a time of the test's in the place of own time."""
    time, before = VirtualTime(), dict(vars(process_time_s))
    virtual = {"_now_s": time, "_wall_s": time, "_watched": False, "_read_s": BEGAN_S, "_lost_s": 0.0, "_ahead_s": 0.0}
    assert set(virtual) < set(before), "a clock of another make"
    try:
        vars(process_time_s).update(virtual)
        yield time
    finally:
        vars(process_time_s).update(before)


@functools.lru_cache
def _made(count: int) -> tuple[Bundle, ...]:
    return tuple(bundles(count, 8))


def drive(count: int, first_ns: int = 10**12) -> list[Bundle]:
    """Bundles one period apart."""
    return [replace(b, stamp_ns=first_ns + i * PERIOD_NS) for i, b in enumerate(_made(count))]


def arriving(rows: Sequence[Bundle], at_s: float = 0.0, period_s: float = PERIOD_S) -> list[tuple[float, Bundle]]:
    """Say when each bundle comes: one period apart, from ``at_s`` after the beginning on."""
    return [(at_s + i * period_s, bundle) for i, bundle in enumerate(rows)]


def one(name: str, delay_s: float = 0.03, **rest: Any) -> FakeArm:
    """An arm that sees one obstacle, whatever it is given."""
    return FakeArm(name, lambda sent: answered(seen(1)), delay_s, **rest)


@dataclass
class Simulation:
    """One live run: what came of it is in ``recorder``, what the arms were given in ``arms``."""

    time: VirtualTime
    relations: Suite = field(default_factory=lambda: suite(relation("a"), relation("b")))
    arms: tuple[FakeArm, FakeArm] = field(default_factory=lambda: (one("source"), one("followup")))
    recorder: FakeRecorder = field(default_factory=FakeRecorder)
    stateless: bool = True
    publishes_when_empty: bool = False
    config: dict[str, Any] = field(default_factory=dict)
    missed: Callable[[int, int], int] = nothing_missed
    presence: Callable[[], Presence] = always_present
    stack: dict[str, Any] = field(default_factory=lambda: {"callable": "no:thing"})
    workers: Any = None
    over_duty: Callable[[float], str] = lambda most_ms_per_s: ""
    refusal: Callable[[], str] = str

    def __post_init__(self) -> None:
        self.time.now_s = BEGAN_S
        stack = Stack(
            name="test",
            **self.stack,
            stateless=self.stateless,
            publishes_when_empty=self.publishes_when_empty,
        )
        self.run = LiveRun(LiveConfig(**self.config), Path(), stack, self.relations)
        if self.run.request.mode == "alternate":
            self.arms = (self.arms[0], self.arms[0])
        self.commands = Commands(self.run.request, [r.id for r in self.relations.relations])
        self.driver = LiveDriver(
            *(self.run, self.arms, self.recorder, self.commands),  # type: ignore[arg-type]
            LiveSurroundings(
                missed_inputs=self.missed, presence=self.presence, over_duty=self.over_duty, refusal=self.refusal
            ),
            workers=self.workers,
        )

    def play(self, came: Iterable[tuple[float, Bundle]], lasting_s: float | None = None) -> FakeRecorder:
        """Let bundles come at their times, and time go on until everything is answered or ``lasting_s`` is over."""
        coming = [(BEGAN_S + at_s, bundle) for at_s, bundle in came]
        end_s = max((at_s for at_s, _ in coming), default=BEGAN_S) + 20.0 if lasting_s is None else BEGAN_S + lasting_s
        while self.time.now_s < end_s:
            while coming and coming[0][0] <= self.time.now_s + 1e-9:
                self.driver.received(coming.pop(0)[1])
            self.driver.line.send_due()
            if not self.driver.step() or (not coming and lasting_s is None and not self.driver.busy):
                break
            self.time.now_s += TICK_S
        return self.recorder

    @property
    def segments(self) -> list[tuple[str, Counter[str]]]:
        """What came of each turn, in order: whose, and the outcomes of its instants."""
        found: list[tuple[str, Counter[str]]] = []
        seen_: set[tuple[int, int | None]] = set()
        for verdict in self.recorder.lines.values():
            where = (verdict.pair.episode, verdict.pair.bundle)
            if where in seen_:
                continue
            seen_.add(where)
            if not found or found[-1][0] != verdict.pair.relation:
                found.append((verdict.pair.relation, Counter()))
            found[-1][1][verdict.outcome.value] += 1
        return found

    def owed(self) -> int:
        """How many lines the instants that were taken owe, by what was offered on each."""
        judges = {o.relation.id: len(o.judges) for o in self.run.offers}
        taken = {(v.pair.episode, v.pair.bundle): v.pair.relation for v in self.recorder.lines.values()}
        return sum(judges[name] for name in taken.values())
