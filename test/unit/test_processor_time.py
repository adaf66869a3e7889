# SPDX-License-Identifier: Apache-2.0
"""Processor time by relation: sums that add up to the whole, rates, and what a store that knows none says."""

from __future__ import annotations

import json
import sqlite3
import time
from pathlib import Path

import pytest
from campaign_runs import planned
from made_runs import sparse_drive

from mt_nodes.base.errors import InfrastructureError
from mt_nodes.engine.processor_time import ProcessorTime
from mt_nodes.report.campaign_page import NOT_MEASURED, cost_rows
from mt_nodes.runs.campaign.campaign_store import FILE, CampaignStore
from mt_nodes.runs.campaign.cost import cpu_cost
from mt_nodes.runs.campaign.item import ItemCpu, ItemResult

ITEMS = (
    ItemCpu(10.0, {"fog": (4.0, 8), "identity": (1.0, 20)}),
    ItemCpu(6.0, {"fog": (2.0, 4), "crop": (0.5, 4), "identity": (0.0, 0)}),
)


def works_s(seconds: float) -> float:
    """Work so long and return how long it was, in processor time of this thread."""
    began_s = time.thread_time()
    while time.thread_time() - began_s < seconds:
        sum(range(1000))
    return time.thread_time() - began_s


def test_work_is_added_up_by_relation_and_waiting_is_not() -> None:
    cpu = ProcessorTime()
    with cpu.spent_on("fog"):
        worked_s = works_s(0.05)
        time.sleep(0.2)
    with pytest.raises(ValueError, match="midway"), cpu.spent_on("fog"):
        worked_s += works_s(0.02)
        raise ValueError("midway")
    cpu.add("crop", 3.0)
    found = cpu.by_relation_s
    assert list(found) == ["crop", "fog"] and found["crop"] == 3.0
    assert worked_s - 1e-6 <= found["fog"] < worked_s + 0.1


def test_rows_and_what_is_shared_sum_to_the_whole() -> None:
    cost = cpu_cost(ITEMS)
    assert cost is not None
    assert cost["items"] == 2 and cost["seconds"] == 16.0 and cost["pairs"] == 36
    assert {name: row["cpu_s"] for name, row in cost["relations"].items()} == {"fog": 6.0, "identity": 1.0, "crop": 0.5}
    assert cost["shared_s"] == 8.5
    assert cost["relations"]["fog"]["pairs_per_core_hour"] == 12 * 3600.0 / 6.0
    assert cost["pairs_per_core_hour"] == 36 * 3600.0 / 16.0


def test_what_took_nothing_has_no_rate_and_no_items_no_cost() -> None:
    cost = cpu_cost([ItemCpu(1.0, {"fog": (0.0, 3)})])
    assert cost is not None and cost["relations"]["fog"]["pairs_per_core_hour"] is None
    assert cpu_cost([]) is None


def result(cpu: ItemCpu | None) -> ItemResult:
    return ItemResult("0" * 64, 0, (), "0" * 64, 1.0, "host:1", cpu=cpu)


@pytest.fixture
def store_path(tmp_path: Path) -> Path:
    """The store of a campaign of which nothing was done."""
    conducted = planned(tmp_path, [sparse_drive(tmp_path / "drive", 1, seed=0)], seeds=[0, 1])
    return conducted.out / FILE


def test_a_store_keeps_what_was_measured_last(store_path: Path) -> None:
    with CampaignStore(store_path) as store:
        first, second = store.next(2, 1)
        assert store.cpu() == []
        store.done(first, result(ITEMS[0]))
        store.done(second, result(None))
        assert store.cpu() == [(first.cell, ITEMS[0])]
        store.done(first, result(ITEMS[1]))
        assert store.cpu() == [(first.cell, ITEMS[1])]
        store.done(first, result(None))
        assert store.cpu() == [], "what was done again is not priced by what was done before"


def test_a_store_of_an_older_version_is_summed_up_alike_and_gone_on_with(store_path: Path) -> None:
    with CampaignStore(store_path) as store, sqlite3.connect(store_path) as edited:
        assert not edited.execute("SELECT 1 FROM sqlite_master WHERE name = 'cpu'").fetchone()
        store.sum_up()
        older = edited.execute("SELECT value FROM meta WHERE name = 'digest'").fetchone()
    with CampaignStore(store_path, read_only=True) as store:
        assert store.cpu() == [] and not store.problem
    with CampaignStore(store_path) as store, sqlite3.connect(store_path) as edited:
        store.take_up()
        store.done(store.next(1, 1)[0], result(ITEMS[0]))
        store.sum_up()
        assert edited.execute("SELECT value FROM meta WHERE name = 'digest'").fetchone() != older
        assert not store.problem
        edited.execute("UPDATE cpu SET result = replace(result, '10.0', '11.0')")
        edited.commit()
        assert "damaged or edited" in store.problem


def test_a_damaged_row_is_refused(store_path: Path) -> None:
    with CampaignStore(store_path) as store, sqlite3.connect(store_path) as edited:
        store.done(store.next(1, 1)[0], result(ITEMS[0]))
        edited.execute("UPDATE cpu SET result = ?", (json.dumps({"seconds": "10", "relations": {}}),))
        edited.commit()
        with pytest.raises(InfrastructureError, match="seconds"):
            store.cpu()


def test_the_page_says_what_was_not_measured() -> None:
    cell = {"evidence_gb_per_1000_violated": 2.0, "relations": {"fog": {"evidence_gb_per_1000_violated": None}}}
    measured = cost_rows({"cells": {"a": {**cell, "cpu": cpu_cost(ITEMS)}}})
    assert [row["name"] for row in measured] == ["fog", "identity", "crop", "shared", "all"]
    assert measured[0] == {"cell": "a", "name": "fog", "cpu": "6.0", "rate": "7,200", "stored": "-"}
    assert measured[-1]["rate"] == "8,100" and measured[-1]["stored"] == "2.000"
    for older in ({**cell, "cpu": None}, cell):
        rows = cost_rows({"cells": {"a": older}})
        assert [(row["name"], row["cpu"], row["rate"]) for row in rows] == [
            ("fog", NOT_MEASURED, "-"),
            ("all", NOT_MEASURED, "-"),
        ]
    assert cost_rows({}) == []
