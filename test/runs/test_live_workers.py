# SPDX-License-Identifier: Apache-2.0
"""Follow-ups that other processes make of several instants at a time: what becomes of each, whenever it is made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from fake_arms import FakeArm, answered, relation, seen, suite
from live_simulation import PERIOD_S, Simulation, VirtualTime, arriving, drive, one, virtual_time

from mt_nodes.data.messages import Bundle
from mt_nodes.data.verdict import Outcome
from mt_nodes.engine.followups import FollowupMaker, FollowupPlan
from mt_nodes.engine.judging import Offer
from mt_nodes.runs.live import live_followups
from mt_nodes.runs.live.config import Segments
from mt_nodes.runs.live.live_followups import _Making

RELATIONS = suite(relation("a"))
TURNS = Segments(settle_bundles=1, test_bundles=12)


@dataclass
class FakeWorkers:
    """Processes of the test's own: each takes as long as ``takes_s`` says of an instant, infinity for ever."""

    time: VirtualTime
    count: int = 3
    takes_s: dict[int, float] = field(default_factory=dict)
    usual_s: float = 0.05
    #: Of how many at a time each takes as long as if it were alone.
    cores: float = float("inf")
    dies_at: int | None = None
    lost: int = 0
    most: int = 0
    tickets: list[_Making] = field(default_factory=list)
    rows: list[tuple[float, _Making, FollowupPlan]] = field(default_factory=list)

    @property
    def free(self) -> bool:
        return len(self.rows) < self.count

    def open(self) -> bool:
        return True

    def warm_up(self, *_: Any) -> None:
        """Nothing gets faster."""

    def begin(self, ticket: _Making, offer: Offer, bundle: Bundle, begun: Any) -> None:
        plan = FollowupMaker(RELATIONS, 0).of_another(offer, bundle, begun)
        if bundle.index == self.dies_at:
            self.lost += 1
            plan = FollowupPlan(offer, None, Outcome.ERROR, "it died")
        self.tickets.append(ticket)
        takes_s = self.takes_s.get(bundle.index, self.usual_s) * max(1.0, len(self.tickets) / self.cores)
        self.rows.append((self.time.now_s + takes_s, ticket, plan))
        self.most = max(self.most, len(self.rows))

    def finished(self) -> Iterator[tuple[_Making, FollowupPlan]]:
        for row in [row for row in self.rows if row[0] <= self.time.now_s]:
            self.rows.remove(row)
            self.tickets.remove(row[1])
            yield row[1], row[2]


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Iterator[VirtualTime]:
    monkeypatch.setattr(live_followups, "LEAST_S", 0.0)
    with virtual_time() as made:
        yield made


def simulation(time: VirtualTime, workers: FakeWorkers | None, arm: FakeArm | None = None, **more: Any) -> Simulation:
    config = {"segments": TURNS, "delay_s": 1.0}
    return Simulation(time, RELATIONS, (one("source"), arm or one("followup")), workers=workers, config=config, **more)


def rows(live: Simulation, name: str = "a") -> list[tuple[int | None, str]]:
    return [(v.pair.bundle, v.outcome.value) for v in live.recorder.lines.values() if v.pair.relation == name]


def test_several_are_made_at_a_time_and_judged_in_the_order_of_the_input(time: VirtualTime) -> None:
    workers = FakeWorkers(time, usual_s=2.5 * PERIOD_S, takes_s={37: 4 * PERIOD_S})
    live = simulation(time, workers)
    live.play(arriving(drive(50)))
    alone = simulation(time, None)
    alone.play(arriving(drive(50)))
    assert workers.most == 3
    assert rows(live) == rows(alone) and Counter(o for _, o in rows(live))["HOLDS"] == 12
    sent = [[(s.bundle.index, bool(s.changed)) for s in run.arms[1].sent] for run in (live, alone)]
    assert sent[0] == sent[1], "each in its place and its order"
    assert all(
        (a.bundle.cloud().points == b.bundle.cloud().points).all()
        for a, b in zip(live.arms[1].sent, alone.arms[1].sent, strict=True)
    )
    assert len(live.recorder.lines) == live.owed()


def test_what_would_be_late_is_not_begun_and_what_is_late_is_skipped(time: VirtualTime) -> None:
    workers = FakeWorkers(time, count=1, usual_s=3 * PERIOD_S)
    live = simulation(time, workers)
    live.play(arriving(drive(60)))
    count = Counter(o for _, o in rows(live))
    assert count["HOLDS"] >= 3 and count["SKIPPED"] >= 3 and set(count) == {"HOLDS", "SKIPPED", "SETTLING"}
    said = [v.judgement.reason for v in live.recorder.lines.values() if v.outcome is Outcome.SKIPPED]
    assert any("needed before it was begun" in reason for reason in said), said
    changed = {s.bundle.index for s in live.arms[1].sent if s.changed}
    held = {bundle for bundle, outcome in rows(live) if outcome == "HOLDS"}
    assert held <= changed, "nothing holds whose follow-up was not sent"
    assert live.driver.status["tested"] == sum(
        o == "HOLDS" for n in ("identity", "a", "points_permuted") for _, o in rows(live, n)
    )


def test_what_is_made_too_late_is_skipped_and_the_source_went_out(time: VirtualTime) -> None:
    workers = FakeWorkers(time, takes_s={37: 1.5})
    live = simulation(time, workers)
    live.play(arriving(drive(50)))
    assert dict(rows(live))[37] == "SKIPPED"
    assert not next(s for s in live.arms[1].sent if s.bundle.index == 37).changed
    [reason] = [v.judgement.reason for v in live.recorder.lines.values() if v.outcome is Outcome.SKIPPED]
    assert "late, so the source went out" in reason


def test_what_a_process_dies_of_is_an_error(time: VirtualTime) -> None:
    live = simulation(time, FakeWorkers(time, dies_at=38))
    live.play(arriving(drive(50)))
    found = dict(rows(live))
    assert found.pop(38) == "ERROR" and live.driver.status["lost_workers"] == 1
    assert set(found.values()) == {"HOLDS", "SETTLING"}


def test_a_violation_is_found_in_what_another_process_made(time: VirtualTime) -> None:
    blind = FakeArm("followup", lambda sent: answered(seen(0 if sent.changed and sent.bundle.index > 36 else 1)), 0.03)
    live = simulation(time, FakeWorkers(time), blind)
    live.play(arriving(drive(50)))
    assert Counter(o for _, o in rows(live))["VIOLATED"] == 9


def test_a_run_ends_though_a_process_never_answers(time: VirtualTime) -> None:
    workers = FakeWorkers(time, takes_s={36: 1e9})
    live = simulation(time, workers)
    live.play(arriving(drive(40)), lasting_s=40 * PERIOD_S)
    assert live.driver.busy
    live.commands.stop()
    live.play([], lasting_s=10.0)
    assert not live.driver.busy and dict(rows(live))[36] == "SKIPPED"
    assert len(live.recorder.lines) == live.owed()


def test_where_cores_are_lacking_fewer_are_made_at_a_time(time: VirtualTime) -> None:
    """Of three at a time none would be in time; one after the other most are, and then it is tried with more."""
    workers = FakeWorkers(time, count=3, usual_s=0.45, cores=1.0)
    live = Simulation(
        time,
        RELATIONS,
        (one("source"), one("followup")),
        workers=workers,
        config={"segments": Segments(settle_bundles=1, test_bundles=100), "delay_s": 1.0, "relations": ("a",)},
    )
    live.play(arriving(drive(230)))
    held = [v for v in live.recorder.lines.values() if v.outcome is Outcome.HOLDS]
    assert workers.most == 3 and len(held) >= 25, "4, were three made at a time all along"
