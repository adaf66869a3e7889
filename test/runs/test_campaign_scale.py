# SPDX-License-Identifier: Apache-2.0
"""A hundred thousand drives: the store stays quick, and what the loss of workers costs is what theory says."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from mt_nodes.engine.summary.summary import RelationInfo
from mt_nodes.runs.campaign.campaign_store import DONE, FILE, PLANNED, CampaignStore
from mt_nodes.runs.campaign.early_stop import SequentialStopper, StopEarly
from mt_nodes.runs.campaign.item import ItemResult, ItemTally, PartResult

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
from simulate_campaign import Fleet, expected_s, made_plan, simulate

MANY = 100_000


@pytest.mark.parametrize("resume", [True, False])
@pytest.mark.parametrize("lost_per_h", [0.5, 2.0])
def test_the_loss_of_workers_costs_what_theory_says(lost_per_h: float, resume: bool) -> None:
    """Exponential lives, 1,000 items of ten minutes that are tried until they are done, 20 workers."""
    fleet = Fleet(workers=20, lost_per_h=lost_per_h, resume=resume)
    played = simulate(fleet, 1000, retries=10**6)
    theory = expected_s(fleet) / (fleet.setup_s + fleet.play_s) - 1.0
    assert played.states == {DONE: 1000} and played.lost > 50
    assert played.overhead == pytest.approx(theory, rel=0.2)
    assert played.end_s >= played.busy_s / fleet.workers


def test_nothing_is_lost_where_nobody_dies() -> None:
    played = simulate(Fleet(workers=10), 100, retries=0)
    assert (played.overhead, played.end_s, played.states) == (0.0, 6000.0, {DONE: 100})


@pytest.mark.parametrize(("resume", "tries"), [(False, 3), (True, 4)])
def test_an_item_that_kills_its_workers_ends_as_failed_and_the_rest_is_done(resume: bool, tries: int) -> None:
    """It is tried once and two times more; where its journal is kept, the try that gets on to the middle is none."""
    played = simulate(Fleet(workers=10, poisoned=0.05, resume=resume), 200, retries=2)
    failed = played.states["failed"]
    assert 0 < failed < 30 and played.states[DONE] == 200 - failed
    assert played.lost == tries * failed


def test_what_is_journalled_is_no_try_that_failed() -> None:
    """Items of an hour on workers that live half as long end well where they are gone on with."""
    fleet = Fleet(workers=20, play_s=3590.0, lost_per_h=2.0)
    played = simulate(fleet, 100, retries=2)
    assert played.lost > 100 and played.states["failed"] < 5


def test_tries_that_are_used_up_by_dying_workers_are_counted() -> None:
    """Items of an hour on workers that live as long: two tries more are too few."""
    fleet = Fleet(workers=20, play_s=3600.0, lost_per_h=1.0, resume=False)
    few, many = (simulate(fleet, 200, retries=retries).states["failed"] for retries in (2, 50))
    assert few > 20 and many == 0


def part(drive: int) -> PartResult:
    return PartResult(
        "noise_0",
        60,
        {"HOLDS": 60},
        ItemTally(20, drive % 97 == 0),
        ItemTally(20, drive % 101 == 0),
        ItemTally(20, 0),
        20,
    )


def test_a_store_of_many_items_stays_quick(tmp_path: Path) -> None:
    """Taking in the plan of 200,000 items, and an item late in it beside the first ones."""
    plan = made_plan(MANY, cells=2)
    with CampaignStore(tmp_path / FILE) as store:
        began_s = time.process_time()
        store.begin(plan, {})
        taken_in_s = time.process_time() - began_s
        early_s = _rounds(store)
        with store._db:
            store._db.execute(
                "UPDATE items SET state = ? WHERE state = ? AND place < ?", (DONE, PLANNED, 2 * MANY - 500)
            )
        late_s = _rounds(store)
        assert len(store.plan().drives) == MANY
    assert taken_in_s < 30.0
    assert late_s < 5.0 * early_s + 0.05, f"{early_s:.4f} s for 100 items at first, {late_s:.4f} s at the end"


def _rounds(store: CampaignStore) -> float:
    """Return the seconds of processor time for a hundred items: taken, begun, done."""
    began_s = time.process_time()
    for _ in range(100):
        (work,) = store.next(1, MANY)
        store.start(work, "0" * 64, ("noise_0",))
        store.done(work, ItemResult("0" * 64, 0, (part(work.drive),), "0" * 64, 1.0, "host:1"))
    return time.process_time() - began_s


def test_early_stop_looks_at_each_drive_once() -> None:
    """So that the last of many drives costs what the first did."""
    stopper = SequentialStopper({"noise_0": RelationInfo("noise_0", "expected")}, StopEarly(), 10**6)
    drives: list[PartResult | None] = [None] * MANY
    seconds = []
    for drive in range(20_000):
        drives[drive] = part(drive)
        began_s = time.process_time()
        assert stopper.stopped_at("noise_0", drives) is None
        seconds.append(time.process_time() - began_s)
    assert sum(seconds[-5000:]) < 3.0 * sum(seconds[:5000])
