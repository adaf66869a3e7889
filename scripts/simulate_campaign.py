# SPDX-License-Identifier: Apache-2.0
"""What the loss of workers costs a large campaign: its own leader and store, with workers that only pass the time.

Events are simulated, the policy is not: :class:`mt_nodes.runs.campaign.leader.Leader` gives out items, counts what is
lost and gives up. Workers die at a constant rate (exponential lives) and are replaced. What they leave of an item is
gone on with (``resume``: they share a file system, or the item comes back to its machine; its journal grows) or begun
anew.
"""

from __future__ import annotations

import argparse
import hashlib
import heapq
import itertools
import math
import random
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from mt_nodes.engine.plan import ReplayRequest
from mt_nodes.runs.campaign.campaign_plan import Cell, Plan
from mt_nodes.runs.campaign.campaign_store import FILE, CampaignStore
from mt_nodes.runs.campaign.item import CampaignItem, Drive, ItemResult
from mt_nodes.runs.campaign.leader import Leader, Limits, StoppedRelations
from mt_nodes.runs.campaign.pool import LostItem

HOUR_S = 3600.0
#: Verdicts that a worker journals while it plays.
LINES_PER_S = 50.0


@dataclass(frozen=True)
class Fleet:
    """Workers and what they work on; times in seconds, of workers that never stand idle for want of items.

    Attributes:
        setup_s: of an item: fetching, starting the stack. play_s: the rest, its median where ``spread`` is above 0.
        spread: standard deviation of the logarithm of play_s. straggling: share of items that take ten times as long.
        poisoned: share of items that kill their worker in the middle, however often they are tried.
        lost_per_h: rate at which a worker dies. replaced_s: until another one is there.
        resume: what was played is gone on with; else the item begins anew.
    """

    workers: int = 100
    setup_s: float = 10.0
    play_s: float = 590.0
    spread: float = 0.0
    straggling: float = 0.0
    poisoned: float = 0.0
    lost_per_h: float = 0.0
    replaced_s: float = 60.0
    resume: bool = True


def expected_s(fleet: Fleet) -> float:
    """Return the mean time for which a worker's place is taken by one item of exactly ``play_s``.

    With deaths at rate r, a stretch of length L that has to be survived whole takes (1 / r + replaced) (e^(r L) - 1).
    Begun anew, that stretch is the item. Gone on with, it is the setup, before the play and after each of its r * play
    deaths.
    """
    rate = fleet.lost_per_h / HOUR_S
    if rate == 0.0:
        return fleet.setup_s + fleet.play_s

    def whole(stretch_s: float) -> float:
        return (1.0 / rate + fleet.replaced_s) * math.expm1(rate * stretch_s)

    if not fleet.resume:
        return whole(fleet.setup_s + fleet.play_s)
    return whole(fleet.setup_s) + fleet.play_s + rate * fleet.play_s * (fleet.replaced_s + whole(fleet.setup_s))


@dataclass
class Played:
    """What a simulated campaign came to.

    Attributes:
        end_s: when its last item ended. busy_s: places of workers taken by items, replacements included.
        least_s: what the items take where nobody dies. states: items by state. lost: workers that died at an item.
    """

    end_s: float = 0.0
    busy_s: float = 0.0
    least_s: float = 0.0
    lost: int = 0
    states: Counter[str] = field(default_factory=Counter)

    @property
    def overhead(self) -> float:
        """Share of working time that was lost."""
        return self.busy_s / self.least_s - 1.0


class SimulatedPool:
    """A pool in simulated time; an event a call."""

    def __init__(self, fleet: Fleet, seed: int) -> None:
        self._fleet, self._random = fleet, random.Random(seed)
        self._events: list[tuple[float, int, bool, str, float]] = []
        self._serial = itertools.count()
        self._left_s: dict[str, float] = {}
        self._journals_s: dict[str, float] = {}
        #: What is left of an item where it kills its worker.
        self._poison_s: dict[str, float] = {}
        self._idle: list[float] = [0.0] * fleet.workers  # since when
        self.played = Played()

    def submit(self, item: CampaignItem) -> None:
        """Give an item to the place that has been idle longest."""
        fleet, began_s = self._fleet, max(heapq.heappop(self._idle), self.played.end_s)
        if item.key not in self._left_s:
            self._begin(item.key)
        left_s = self._left_s[item.key]
        needed_s = fleet.setup_s + left_s
        dies_s = self._random.expovariate(fleet.lost_per_h / HOUR_S) if fleet.lost_per_h else math.inf
        dies_s = min(dies_s, fleet.setup_s + left_s - self._poison_s.get(item.key, -math.inf))
        dead = dies_s < needed_s
        if dead and fleet.resume:
            played_s = max(0.0, dies_s - fleet.setup_s)
            self._left_s[item.key] -= played_s
            self._journals_s[item.key] = self._journals_s.get(item.key, 0.0) + played_s
        taken_s = dies_s + fleet.replaced_s if dead else needed_s
        self.played.busy_s += taken_s
        heapq.heappush(self._events, (began_s + taken_s, next(self._serial), dead, item.key, taken_s))

    def finished(self, timeout_s: float) -> Iterator[ItemResult | LostItem]:
        """Go on to the next event."""
        if not self._events:
            return
        self.played.end_s, _, dead, key, taken_s = heapq.heappop(self._events)
        heapq.heappush(self._idle, self.played.end_s)
        self.played.lost += dead
        yield LostItem(key, "simulated") if dead else ItemResult(key, 0, (), "", taken_s, "simulated")

    def journalled(self, key: str) -> int:
        """Return how many lines of an item are kept where the next worker finds them."""
        return round(LINES_PER_S * self._journals_s.get(key, 0.0))

    @property
    def free(self) -> int:
        """How many places are idle."""
        return len(self._idle)

    def close(self) -> None:
        """Nothing to end."""

    def _begin(self, key: str) -> None:
        fleet, draw = self._fleet, self._random
        play_s = fleet.play_s * math.exp(fleet.spread * draw.gauss(0.0, 1.0))
        self._left_s[key] = play_s * (10.0 if draw.random() < fleet.straggling else 1.0)
        if draw.random() < fleet.poisoned:
            self._poison_s[key] = 0.5 * self._left_s[key]
        else:
            self.played.least_s += fleet.setup_s + self._left_s[key]


def made_plan(drives: int, cells: int = 1) -> Plan:
    """Return a plan of drives that need not exist."""
    found = tuple(Drive(i, f"s3://bucket/drive_{i:06}", hashlib.sha256(b"%d" % i).hexdigest()) for i in range(drives))
    names = tuple(f"noise_{i}" for i in range(3))
    request = ReplayRequest((), names)
    return Plan(found, tuple(Cell(f"stack-seed{seed}", request, {}, {}) for seed in range(cells)), {})


def simulate(fleet: Fleet, drives: int, retries: int, seed: int = 0) -> Played:
    """Play a campaign of so many drives, one item each."""
    plan, pool = made_plan(drives), SimulatedPool(fleet, seed)
    with tempfile.TemporaryDirectory() as place, CampaignStore(Path(place) / FILE) as store:
        store.begin(plan, {})
        stops, limits = StoppedRelations(plan, {}), Limits(drives, retries)
        leader = Leader(store, plan, pool, stops, limits, lambda: None, pool.journalled)
        leader.lead(lambda: False)
        pool.played.states.update(store.standing().items)
    return pool.played


def main() -> None:
    """Print tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--drives", type=int, default=2000)
    parser.add_argument("--retries", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    print("| lost per worker and hour | item | what is left | overhead % | theory % | time over ideal | failed |")
    print("| ---: | ---: | --- | ---: | ---: | ---: | ---: |")
    for rate, play_s, resume in itertools.product((0.01, 0.1, 0.5, 2.0), (590.0, 3590.0), (True, False)):
        fleet = Fleet(play_s=play_s, lost_per_h=rate, resume=resume)
        forever, given = (simulate(fleet, asked.drives, r, asked.seed) for r in (10**6, asked.retries))
        theory = expected_s(fleet) / (fleet.setup_s + fleet.play_s) - 1.0
        ideal_s = math.ceil(asked.drives / fleet.workers) * (fleet.setup_s + fleet.play_s)
        cells = (f"{rate:g}", f"{(play_s + fleet.setup_s) / 60:.0f} min", "resumed" if resume else "begun anew")
        figures = f"{100 * forever.overhead:.1f} | {100 * theory:.1f} | {forever.end_s / ideal_s:.2f}"
        print(f"| {' | '.join(cells)} | {figures} | {given.states['failed']} of {asked.drives} |", flush=True)
    for name, fleet in (
        ("1 % of the items take ten times as long", Fleet(spread=0.5, straggling=0.01, lost_per_h=0.1)),
        ("0.5 % of the items kill their worker", Fleet(spread=0.5, poisoned=0.005, lost_per_h=0.1)),
    ):
        played = simulate(fleet, asked.drives, asked.retries, asked.seed)
        ideal_s = played.least_s / fleet.workers
        print(f"{name}: time {played.end_s / ideal_s:.2f} of ideal, {dict(played.states)}, {played.lost} workers lost")


if __name__ == "__main__":
    main()
