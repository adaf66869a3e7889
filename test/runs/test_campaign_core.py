# SPDX-License-Identifier: Apache-2.0
"""A campaign comes to what one replay of all its drives comes to, whoever works on it and whatever stops them."""

from __future__ import annotations

import fcntl
import json
import os
import random
import shutil
import signal
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from campaign_runs import (
    FAULT,
    RELATIONS,
    Here,
    campaign_file,
    carried_out,
    drives,
    gone_on_with,
    here,
    planned,
    results_of,
    summary_of,
    verdict_lines,
)
from hanging_worker import takes_and_says_nothing
from made_runs import carry_out, no_pages
from test_resume import cut

from mt_nodes.base.errors import UsageError
from mt_nodes.base.jsonl import read_result
from mt_nodes.cli.main import main
from mt_nodes.engine.journal import read_journal
from mt_nodes.engine.plan import ReplayRequest
from mt_nodes.relations.relation import CONTROL, SHAM
from mt_nodes.runs.campaign import item_execution, leader, local_pool
from mt_nodes.runs.campaign.campaign_store import FILE, CampaignStore
from mt_nodes.runs.campaign.cell_merging import CellPiece, merge
from mt_nodes.runs.campaign.conductor import CELLS, ITEMS, begin, conduct
from mt_nodes.runs.campaign.file import Campaign
from mt_nodes.runs.campaign.item import CampaignItem
from mt_nodes.runs.campaign.item_execution import perform
from mt_nodes.runs.campaign.leader import Leader, Limits, StoppedRelations
from mt_nodes.runs.campaign.local_pool import LocalPool
from mt_nodes.runs.campaign.pool import LostItem
from mt_nodes.runs.replay.replay_run import Run

SEEDS, BUNDLES = [0, 1], 2
CELL = "reference_detector-seed{}"
#: Cheap to make: fog would take most of the time of these campaigns.
VARIED = {"id": "noise_outside_roi_100", "set": {"noise_outside_roi.points": [30, 60]}}


@pytest.fixture(scope="module")
def bags(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return drives(tmp_path_factory.mktemp("drives"), 3, bundles=BUNDLES)


@pytest.fixture(scope="module")
def whole(bags: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An undisturbed campaign of one worker."""
    asked: dict[str, Any] = {"relations": [*RELATIONS, VARIED], "seeds": SEEDS}
    with no_pages():
        return carried_out(tmp_path_factory.mktemp("campaign"), bags, **asked)


@pytest.fixture
def without_reports() -> Iterator[None]:
    """Pages for people take most of the time of such small campaigns."""
    with no_pages():
        yield


# --- what comes out


@pytest.mark.usefixtures("without_reports")
@pytest.mark.parametrize("seed", [pytest.param(SEEDS[0], marks=pytest.mark.long), *SEEDS[1:]])
def test_a_cell_is_what_one_replay_of_all_drives_leaves(
    bags: list[Path], whole: Path, tmp_path: Path, seed: int
) -> None:
    cell = whole / CELLS / CELL.format(seed)
    relations = (*RELATIONS, *sorted(map(str, (whole / "relations").glob("*.yaml")), key=len))
    asked = ReplayRequest(
        tuple(map(str, bags)), relations, transport="inprocess", seed=seed, faults=(FAULT,), mode="twin"
    )
    run = Run.create(asked, str(tmp_path / "one"))
    carry_out(run)
    one = tmp_path / "one"
    assert verdict_lines(cell) == verdict_lines(one)
    assert any('"VIOLATED"' in line for line in verdict_lines(one)), "there is something to find"
    assert sorted((cell / "ledger.jsonl").read_text().splitlines()) == sorted(
        (one / "ledger.jsonl").read_text().splitlines()
    )
    for folder in ("draws", "evidence"):
        assert {p.name for p in (one / folder).glob("*.npz" if folder == "draws" else "*.mcap")} == {
            p.name for p in (cell / folder).glob("*.npz" if folder == "draws" else "*.mcap")
        }
    mine, its = summary_of(cell), summary_of(one)
    times: dict[str, Any] = {"latency_ms": {}, "work_s": {}, "cpu_s": {}}
    assert {**mine, **times} == {**its, **times}
    first = [json.loads((place / "result.jsonl").open().readline()) for place in (cell, one)]
    for line in first:
        del line["crc32"]
    assert first[0] == first[1], "the journal begins as that of the one run"


def test_the_commands_for_results_take_a_cell(whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cell = shutil.copytree(whole / CELLS / CELL.format(0), tmp_path / "cell")
    pair = next(json.loads(line)["pair"] for line in verdict_lines(cell) if '"VIOLATED"' in line and '"1/' in line)
    assert main(["report", str(cell)]) == 0
    assert main(["compare", str(cell), str(whole / CELLS / CELL.format(1))]) in (0, 1)
    assert main(["reproduce", str(cell), pair]) == 0
    assert "the judgement is the same as in the run" in capsys.readouterr().out
    assert main(["show", str(whole), pair]) == 2 and "several cells have a pair" in capsys.readouterr().err
    assert main(["show", str(whole), pair.replace("1/", "99/", 1)]) == 2
    assert "no cell has a verdict of pair" in capsys.readouterr().err
    assert main(["shrink", str(whole), pair]) == 2
    assert f"expected one of its cells: {whole / CELLS / CELL.format(0)}" in capsys.readouterr().err


def test_evidence_and_draws_are_links(whole: Path) -> None:
    for folder in ("draws", "evidence"):
        files = list((whole / CELLS / CELL.format(0) / folder).iterdir())
        assert files
        assert all(file.stat().st_nlink == 2 for file in files)


def test_what_each_cell_cost_is_told(whole: Path) -> None:
    for name, cost in read_result(whole / "cost.json")["cells"].items():
        summary = read_result(whole / "cells" / name / "summary.json")
        assert cost["pairs"] == sum(summary["outcomes"].values()) and cost["items"] == 3
        assert cost["pairs_per_worker_hour"] == pytest.approx(3600.0 * cost["pairs"] / cost["seconds"])
        evidence = sum(path.stat().st_size for path in (whole / "cells" / name / "evidence").iterdir())
        assert cost["evidence_bytes"] == evidence and cost["record_bytes"] > 0
        rate = cost["evidence_gb_per_1000_violated"]
        violated = summary["outcomes"].get("VIOLATED", 0)
        assert cost["violated"] == violated and (rate is None) == (violated == 0)
        for relation, row in summary["relations"].items():
            of_it = cost["relations"][relation]
            assert of_it["violated"] == row["violated"] and of_it["pairs"] == sum(row["outcomes"].values())
            assert (of_it["evidence_bytes"] > 0) == (row["violated"] > 0)
            assert of_it["work_s"] > 0.0
            assert of_it["pairs_per_hour"] == pytest.approx(3600.0 * of_it["pairs"] / of_it["work_s"])
        assert sum(row["evidence_bytes"] for row in cost["relations"].values()) <= evidence


def test_processor_time_by_relation_and_what_is_shared_sum_to_the_whole(whole: Path) -> None:
    document = read_result(whole / "cost.json")
    for name, cost in document["cells"].items():
        cpu, relations = cost["cpu"], read_result(whole / "cells" / name / "summary.json")["relations"]
        assert cpu["items"] == 3 and set(cpu["relations"]) == {*relations, CONTROL, SHAM}
        assert all(row["cpu_s"] > 0.0 and row["pairs"] > 0 for row in cpu["relations"].values())
        assert cpu["shared_s"] > 0.0, "reading and the answers to the source are of no relation"
        own_s = sum(row["cpu_s"] for row in cpu["relations"].values())
        assert own_s + cpu["shared_s"] == pytest.approx(cpu["seconds"], abs=1e-5)
        assert cpu["pairs"] == sum(row["pairs"] for row in cpu["relations"].values()) == cost["pairs"]
        for relation, row in relations.items():
            assert cpu["relations"][relation]["pairs"] == sum(row["outcomes"].values())
    [of_stack] = document["stacks"].values()
    assert of_stack["items"] == 6
    assert of_stack["seconds"] == pytest.approx(sum(c["cpu"]["seconds"] for c in document["cells"].values()), abs=1e-5)


@pytest.mark.usefixtures("without_reports")
def test_weather_costs_more_than_a_few_points(bags: list[Path], tmp_path: Path) -> None:
    weather, points = "fog_keeps_near_obstacles", RELATIONS[0]
    out = carried_out(tmp_path, bags[:1], relations=[points, weather])
    [cell] = read_result(out / "cost.json")["cells"].values()
    rows = cell["cpu"]["relations"]
    assert rows[weather]["pairs"] == rows[points]["pairs"] == BUNDLES
    assert rows[weather]["pairs_per_core_hour"] < rows[points]["pairs_per_core_hour"] / 2


def test_the_page_and_the_terminal_tell_what_a_core_hour_gives(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = shutil.copytree(whole, tmp_path / "out")
    main(["show", str(out)])
    told = " ".join(capsys.readouterr().out.split())
    assert told.count("pairs a core hour") == len(SEEDS) * (1 + len(RELATIONS) + 2), "each cell and its relations"
    assert main(["report", str(out)]) == 0
    page = (out / "report.html").read_text()
    assert page.count('<td data-label="relation">shared</td>') == len(SEEDS) and ">not measured<" not in page


def test_a_campaign_of_an_older_version_is_gone_on_with_and_not_measured(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = shutil.copytree(whole, tmp_path / "out")
    with sqlite3.connect(out / FILE) as edited:
        edited.execute("DROP TABLE cpu")
        edited.execute("DELETE FROM meta WHERE name = 'digest'")
    gone_on_with(out)
    document = read_result(out / "cost.json")
    assert [cell["cpu"] for cell in document["cells"].values()] == [None] * len(SEEDS)
    assert list(document["stacks"].values()) == [None]
    main(["show", str(out)])
    told = " ".join(capsys.readouterr().out.split())
    assert main(["report", str(out)]) == 0 and ">not measured<" in (out / "report.html").read_text()
    assert "cost of" in told and "core hour" not in told


WORKS = """import threading
import time


def work():
    until_s = time.thread_time() + 0.1
    while time.thread_time() < until_s:
        sum(range(1000))


def detect(points):
    worker = threading.Thread(target=work)
    worker.start()
    worker.join()
    return []
"""


@pytest.mark.usefixtures("without_reports")
def test_what_the_stack_works_counts_for_the_relation_that_it_answers(
    bags: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "working_stack.py").write_text(WORKS)
    monkeypatch.syspath_prepend(str(tmp_path))
    stack = tmp_path / "working.yaml"
    stack.write_text("callable: working_stack:detect\npoints_frame: base_link\nstateless: true\n")
    out = carried_out(tmp_path, bags[:1], stacks=[str(stack)], relations=RELATIONS[:1], faults=[])
    document = read_result(out / "cost.json")
    [cpu] = (cell["cpu"] for cell in document["cells"].values())
    assert set(cpu["relations"]) == {RELATIONS[0], CONTROL, SHAM} and document["stacks"] == {str(stack): cpu}
    answers_s = 0.1 * BUNDLES
    assert all(row["cpu_s"] > answers_s for row in cpu["relations"].values())
    assert cpu["shared_s"] > answers_s, "the answers to the source are of no relation"


def test_an_item_that_is_gone_on_with_is_not_measured(bags: list[Path], tmp_path: Path) -> None:
    conducted = planned(tmp_path, bags[:1])
    item = conducted.plan.cells[0].item(conducted.plan.drives[0])
    first = perform(item, tmp_path / "scratch")
    assert first.cpu is not None and first.cpu.seconds > sum(own_s for own_s, _ in first.cpu.relations.values())
    (tmp_path / "scratch" / item.key / "summary.json").unlink()  # as if killed before its end
    assert perform(item, tmp_path / "scratch").cpu is None
    assert perform(item, tmp_path / "scratch").cpu is None, "nor what had ended"


def test_the_campaign_sums_up_its_cells(whole: Path) -> None:
    summary = summary_of(whole)
    assert set(summary["cells"]) == {CELL.format(seed) for seed in SEEDS}
    assert summary["items"] == {"done": 6, "failed": 0, "stopped": 0, "left": 0}
    assert summary["exit_code"] == max(cell["exit_code"] for cell in summary["cells"].values())
    cases = ET.parse(whole / "junit.xml").getroot().findall("testcase")
    assert len(cases) == len(SEEDS) * (len(RELATIONS) + 2)
    assert {case.get("classname", "").split(".")[1] for case in cases} == set(summary["cells"])


def first_cell_of(whole: Path) -> dict[str, Any]:
    """Return what the campaign with the first seed alone comes to: half of the work of the whole one."""
    name = CELL.format(SEEDS[0])
    return {name: results_of(whole)[name]}


@pytest.mark.usefixtures("without_reports")
def test_two_workers_and_one_come_to_the_same(bags: list[Path], whole: Path, tmp_path: Path) -> None:
    asked: dict[str, Any] = {"relations": [*RELATIONS, VARIED], "seeds": SEEDS[:1]}
    assert results_of(carried_out(tmp_path, bags, workers=2, **asked)) == first_cell_of(whole)


def test_an_item_done_twice_is_done_once(bags: list[Path], tmp_path: Path) -> None:
    conducted = planned(tmp_path, bags[:1])
    item = conducted.plan.cells[0].item(conducted.plan.drives[0])
    first = perform(item, tmp_path / "scratch")
    journal = (tmp_path / "scratch" / item.key / "result.jsonl").read_bytes()
    again = perform(item, tmp_path / "scratch")
    assert (tmp_path / "scratch" / item.key / "result.jsonl").read_bytes() == journal
    elsewhere = perform(item, tmp_path / "elsewhere")
    assert first.sha256 == again.sha256 == elsewhere.sha256
    assert first.parts == again.parts == elsewhere.parts
    assert {part.relation: part.offered for part in first.parts} == dict.fromkeys(RELATIONS, 3 * BUNDLES)


def test_a_part_does_not_depend_on_the_others(bags: list[Path], tmp_path: Path) -> None:
    conducted = planned(tmp_path, bags[:2])
    item = conducted.plan.cells[0].item(conducted.plan.drives[1])
    alone = item.narrowed(RELATIONS[1:])
    assert alone.key != item.key
    assert perform(alone, tmp_path / "scratch").parts == perform(item, tmp_path / "scratch").parts[1:]
    every = verdict_lines(tmp_path / "scratch" / item.key)
    assert set(verdict_lines(tmp_path / "scratch" / alone.key)) < set(every)


def test_items_travel_as_plain_data(bags: list[Path], tmp_path: Path) -> None:
    conducted = planned(tmp_path, bags, relations=[VARIED])
    items = [cell.item(drive) for drive in conducted.plan.drives for cell in conducted.plan.cells]
    assert [CampaignItem.from_plain(json.loads(json.dumps(item.as_plain()))) for item in items] == items
    assert len({item.key for item in items}) == len(items)
    moved = CampaignItem.make(items[0].cell, items[0].drive, items[0].request, items[0].texts, items[0].versions)
    assert moved.key == items[0].key


# --- kills


def torn(whole: Path, out: Path, at: random.Random) -> None:
    """Leave of a campaign what a kill at any moment leaves: items done, cut off, or not begun, and half a merge."""
    shutil.copytree(whole, out)
    with CampaignStore(out / FILE) as store, sqlite3.connect(out / FILE) as edited:
        edited.execute("DELETE FROM meta WHERE name = 'digest'")  # whoever takes it up does that first
        begun = at.randrange(7)
        for place, work in enumerate(store.ended(CELL.format(0)) + store.ended(CELL.format(1))):
            state = at.choice(("done", "running", "planned")) if place <= begun else "planned"
            edited.execute("UPDATE items SET state = ? WHERE place = ?", (state, work.place))
            if state == "done":
                continue
            edited.execute("DELETE FROM parts WHERE place = ?", (work.place,))
            if place > begun:
                edited.execute("UPDATE items SET key = NULL, relations = NULL WHERE place = ?", (work.place,))
                shutil.rmtree(out / ITEMS / work.key)
            elif at.random() < 0.7:
                shutil.rmtree(out / ITEMS / work.key)
                cut(whole / ITEMS / work.key, out / ITEMS / work.key, at)
    for cell in (out / CELLS).iterdir():
        for path in [path for path in cell.iterdir() if path.is_file() and at.random() < 0.5]:
            path.unlink()


@pytest.mark.usefixtures("without_reports")
@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.long) for n in range(1, 6))])
def test_a_campaign_cut_off_anywhere_comes_to_the_same(whole: Path, tmp_path: Path, seed: int) -> None:
    out = tmp_path / "torn"
    torn(whole, out, random.Random(seed))
    assert gone_on_with(out)["items"] == {"done": 6, "failed": 0, "stopped": 0, "left": 0}
    assert results_of(out) == results_of(whole)
    for journal in out.glob("items/*/result.jsonl"):
        pairs = [line["pair"] for line in read_journal(journal) if line["type"] == "verdict"]
        assert len(pairs) == len(set(pairs)), "nothing is judged twice"


@pytest.mark.usefixtures("without_reports")
def test_what_a_dead_worker_was_at_goes_back_and_counts(bags: list[Path], tmp_path: Path) -> None:
    conducted = planned(tmp_path, bags)
    with CampaignStore(conducted.out / FILE) as store:
        pool = Here(conducted.out / ITEMS, kills=[1, 3, 4, 5])
        limits = Limits(3, retries=2)
        Leader(store, conducted.plan, pool, StoppedRelations(conducted.plan, {}), limits, lambda: None).lead(
            lambda: False
        )
        ended = store.ended(CELL.format(0))
    assert [work.state for work in ended] == ["done", "failed", "done"]
    assert (ended[1].trouble, ended[1].attempts) == ("killed", 3)
    assert len(pool.given) == 6
    summary = gone_on_with(conducted.out)
    assert summary["items"] == {"done": 3, "failed": 0, "stopped": 0, "left": 0}, "asked for again, it is tried again"


@pytest.mark.usefixtures("without_reports")
def test_a_killed_worker_is_replaced_and_its_item_gone_on_with(
    bags: list[Path], whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leader, "SHOW_EVERY_S", 0.0)  # it is looked at after each item, however quick that is
    monkeypatch.setattr(leader, "PAUSES", 0.0)
    conducted = planned(tmp_path, bags, relations=[*RELATIONS, VARIED], seeds=SEEDS[:1], retries=50)
    killed: list[int] = []
    with CampaignStore(conducted.out / FILE) as store:
        pool = LocalPool(1, conducted.out / ITEMS)

        def kill_some() -> None:
            if len(killed) < 2 and any((conducted.out / ITEMS).glob("*/result.jsonl")):
                [pid] = pool.pids
                if pid not in killed:
                    os.kill(pid, signal.SIGKILL)
                    killed.append(pid)

        limits = Limits(3, retries=50)
        try:
            Leader(store, conducted.plan, pool, StoppedRelations(conducted.plan, {}), limits, kill_some).lead(
                lambda: False
            )
        finally:
            pool.close()
    assert len(killed) == 2
    gone_on_with(conducted.out)
    assert results_of(conducted.out) == first_cell_of(whole)


def test_an_item_that_somebody_else_does_not_leave_is_trouble_of_the_infrastructure(
    bags: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(item_execution, "LET_GO_S", 0.1)
    monkeypatch.setattr(item_execution, "suite_stop_s", lambda stack: 0.1)
    conducted = planned(tmp_path, bags[:1])
    item = conducted.plan.cells[0].item(conducted.plan.drives[0])
    (tmp_path / item.key).mkdir()
    with (tmp_path / item.key / item_execution.LOCK).open("ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        found = perform(item, tmp_path)
    assert found.exit_code == 4 and not any(part.offered for part in found.parts)
    assert f"{tmp_path / item.key / '.lock'}: another process is still at this item after 0.2 s" in found.trouble
    assert perform(item, tmp_path).trouble == "", "once it has gone"


class OwnTime:
    """Own time that passes when it is told to."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s

    def start_watching(self) -> None:
        pass


def test_a_worker_that_gets_no_further_is_ended_and_replaced(
    bags: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    time = OwnTime()
    monkeypatch.setattr(local_pool, "process_time_s", time)
    monkeypatch.setattr(local_pool, "serve", takes_and_says_nothing)
    conducted = planned(tmp_path, bags[:1])
    item = conducted.plan.cells[0].item(conducted.plan.drives[0])
    pool = LocalPool(1, tmp_path / "items", stall_s=120.0)
    try:
        time.now_s = 500.0
        assert not list(pool.finished(0.0)), "idle, it may wait as long as it likes"
        pool.submit(item)
        time.now_s = 600.0
        assert not list(pool.finished(0.0))
        (tmp_path / "items" / item.key).mkdir(parents=True)
        (tmp_path / "items" / item.key / "result.jsonl").write_text("{}\n")
        time.now_s = 700.0
        assert not list(pool.finished(0.0)), "its journal has grown"
        [before] = pool.pids
        time.now_s = 821.0
        [lost] = pool.finished(0.0)
        assert isinstance(lost, LostItem) and lost.key == item.key
        assert "no further for 2 min (stall_minutes)" in lost.why and "SIGTERM" in lost.why
        assert pool.free == 1 and pool.pids != (before,)
    finally:
        pool.close()


@pytest.mark.usefixtures("without_reports")
def test_a_merge_that_was_killed_is_made_anew(whole: Path, tmp_path: Path) -> None:
    out = shutil.copytree(whole, tmp_path / "torn", copy_function=os.link)
    cell = out / CELLS / CELL.format(0)
    for name in ("summary.json", "ledger.jsonl", "run.json"):
        (cell / name).unlink()
    text = (cell / "result.jsonl").read_bytes()
    (cell / "result.jsonl").unlink()
    (cell / "result.jsonl").write_bytes(text[: len(text) // 2])
    shutil.rmtree(cell / "draws")
    (cell / "notes.txt").write_text("the user's")
    gone_on_with(out)
    assert results_of(out) == results_of(whole)
    assert (cell / "notes.txt").exists(), "what others put there stays"


@pytest.mark.usefixtures("without_reports")
def test_an_interrupted_campaign_says_so_and_goes_on(bags: list[Path], whole: Path, tmp_path: Path) -> None:
    conducted = planned(tmp_path, bags, relations=[*RELATIONS, VARIED], seeds=SEEDS)
    with CampaignStore(conducted.out / FILE) as looked_at:
        enough = lambda: looked_at.standing().items.get("done", 0) >= 2  # noqa: E731
        summary = conduct(conducted, enough, start=here)
    assert summary["exit_code"] == 130
    assert summary["items"]["left"] >= 1
    assert gone_on_with(conducted.out)["exit_code"] != 130
    assert results_of(conducted.out) == results_of(whole)


@pytest.mark.usefixtures("without_reports")
def test_two_leaders_do_not_share_a_campaign(bags: list[Path], tmp_path: Path) -> None:
    conducted = planned(tmp_path, bags)
    told: list[str] = []

    def second() -> bool:
        with pytest.raises(UsageError, match="another process conducts"):
            conduct(conducted, lambda: True)
        told.append("refused")
        return True

    conduct(conducted, second)
    assert told


# --- trouble


@pytest.mark.usefixtures("without_reports")
def test_a_drive_that_cannot_be_read_is_tried_again_and_ends_as_infrastructure(
    bags: list[Path], tmp_path: Path
) -> None:
    damaged = tmp_path / "damaged"
    shutil.copytree(bags[0], damaged)
    data = next(damaged.glob("*.mcap"))
    data.write_bytes(data.read_bytes()[: data.stat().st_size // 2])
    out = carried_out(tmp_path, [damaged, bags[1]], retries=1)
    summary = summary_of(out)
    assert summary["items"] == {"done": 1, "failed": 1, "stopped": 0, "left": 0}
    assert summary["exit_code"] == 4
    [failed] = summary["campaign"]["failed"]
    assert failed["url"] == str(damaged)
    with CampaignStore(out / FILE) as store:
        assert [work.attempts for work in store.ended(CELL.format(0))] == [2, 0]
    assert "1 item failed" in summary["exit_why"]
    assert {line.split("/")[0][-1] for line in verdict_lines(out / CELLS / CELL.format(0))} >= {"1"}


def test_a_changed_plan_is_refused_with_what_changed(bags: list[Path], whole: Path, tmp_path: Path) -> None:
    def refused(bags: Sequence[Path], **more: object) -> str:
        asked = {"relations": [*RELATIONS, VARIED], "seeds": SEEDS, **more}
        with pytest.raises(UsageError) as error:
            begin(Campaign.load(campaign_file(tmp_path, bags, **asked)), str(whole))
        return str(error.value)

    assert "1 drive gone" in refused(bags[:2])
    assert "1 drive added" in refused([*bags, *drives(tmp_path / "more", 4)[3:]])
    assert "order of drives" in refused(bags[::-1])
    assert f"cell {CELL.format(2)} added" in refused(bags, seeds=[0, 1, 2])
    assert "limit: was None, is 2" in refused(bags, limit=2)
    assert "stop_early" in refused(bags, stop_early={"when": "clear"})
    assert "noise_outside_roi_100~points_30" in refused(bags, relations=list(RELATIONS))
    assert "stack 'reference_detector'" in refused(bags, faults=[])
    free = {"relations": [*RELATIONS, VARIED], "seeds": SEEDS, "workers": 3, "retries": 9}
    begin(Campaign.load(campaign_file(tmp_path, bags, **free)), str(whole))


# --- early stop


@pytest.mark.usefixtures("without_reports")
@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.long)])
def test_a_relation_whose_answer_is_clear_ends_and_what_comes_after_is_left_out(
    bags: list[Path], whole: Path, tmp_path: Path, workers: int
) -> None:
    stop = {"when": "first_violation", "order": "listed"}
    out = carried_out(tmp_path, bags, "stopped", stop_early=stop, workers=workers)
    summary = summary_of(out)
    stopped = summary["campaign"]["stopped"][CELL.format(0)]
    assert stopped
    asked_of_both = [
        line
        for line in verdict_lines(whole / CELLS / CELL.format(0))
        if _whose(json.loads(line)["pair"])[1] in RELATIONS
    ]
    kept = [
        line
        for line in asked_of_both
        for drive, relation in [_whose(json.loads(line)["pair"])]
        if drive < stopped.get(relation, len(bags))
    ]
    assert verdict_lines(out / CELLS / CELL.format(0)) == kept
    assert len(kept) < len(asked_of_both)
    for name, after in stopped.items():
        row = summary["cells"][CELL.format(0)]["relations"][name]
        assert row["sequential"]["stopped_after"] == after
        assert (row["outcome"], row["p_adjusted"]) == ("FAIL", None)
    assert results_of(out)[CELL.format(0)][2], "evidence of what counts is there"


def test_what_drives_beyond_a_stop_had_ready_is_kept_out_of_the_cell(whole: Path, tmp_path: Path) -> None:
    with CampaignStore(whole / FILE) as store:
        plan, works = store.plan(), store.ended(CELL.format(0))
    cell, stopped = plan.cells[0], RELATIONS[1]
    pieces = [
        CellPiece(
            work.drive, whole / ITEMS / work.key, frozenset(work.relations) - ({stopped} if work.drive else set())
        )
        for work in works
    ]
    merge(tmp_path / "cell", cell, plan.drives, pieces, tmp_path / "relations")

    def kept(pair: str) -> bool:
        drive, relation = _whose(pair)
        return drive == 0 or relation != stopped

    every = verdict_lines(whole / CELLS / cell.name)
    assert verdict_lines(tmp_path / "cell") == [line for line in every if kept(json.loads(line)["pair"])]
    ledgers = [
        (place / "ledger.jsonl").read_text().splitlines() for place in (whole / CELLS / cell.name, tmp_path / "cell")
    ]
    assert ledgers[1] == [line for line in ledgers[0] if kept(json.loads(line)["pair"])]
    for folder in ("draws", "evidence"):
        names = {path.name for path in (tmp_path / "cell" / folder).iterdir()}
        assert names < {path.name for path in (whole / CELLS / cell.name / folder).iterdir()}
        assert not [name for name in names if stopped in name and name[0] != "0"]


def _whose(pair: str) -> tuple[int, str]:
    episode, _, relation, draw = pair.split("/")
    return int(episode), draw.partition("@")[2] or relation


# --- the command


def test_the_command_prints_and_resumes(
    bags: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    monkeypatch.chdir(tmp_path)
    file = campaign_file(tmp_path, bags[:2])
    try:
        code = main(["campaign", str(file), "--out", "night", "--minutes", "0"])
        assert code == 3
        assert "2 items left" in capsys.readouterr().out
        assert main(["watch", "night"]) == 0
        assert "0 of 2 items finished" in capsys.readouterr().out
        code = main(["campaign", "--resume", "night"])
        told = capsys.readouterr().out
        assert "2 done" in told
        assert (tmp_path / "night" / CELLS / CELL.format(0) / "report.html").is_file()
        assert code == summary_of(tmp_path / "night")["exit_code"]
        assert main(["campaign", "--resume", "night", "--json"]) == code
        assert json.loads(capsys.readouterr().out)["exit_code"] == code
        assert main(["show", "night"]) == 0
        shown = capsys.readouterr().out
        table, _, rest = shown.partition("results in ")
        assert told.startswith(table) and "mt show night/cells/" in rest, "the same again, and what to type next"
        assert main(["campaign", "--resume", "night", str(file)]) == 2
        assert main(["replay", str(bags[0]), "--transport", "inprocess", "--out", "night"]) == 2
        assert "holds the results of a campaign already" in capsys.readouterr().err
        assert main(["campaign"]) == 2
        assert main(["campaign", "--resume", "nothing"]) == 2
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
