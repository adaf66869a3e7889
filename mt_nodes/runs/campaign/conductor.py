# SPDX-License-Identifier: Apache-2.0
"""A campaign from its file to its summary, in a directory that can be gone on with after any kill.

DIR/campaign.sqlite   what is done and owed     DIR/items/<key>/      one item's own results
DIR/relations/        variants as files         DIR/cells/<cell>/     results as of one replay
DIR/summary.json, DIR/junit.xml, DIR/report.html     over all cells
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mt_nodes.base.directories import cache_dir, new_directory
from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import plain
from mt_nodes.base.wording import counted
from mt_nodes.engine.finish import Summary
from mt_nodes.engine.provenance import knowing, refuse_foreign, seal
from mt_nodes.relations.relation import load_relation
from mt_nodes.report.campaign_page import write_campaign_page
from mt_nodes.runs.campaign.campaign_plan import Cell, Plan, differences, plan_of, relation_files
from mt_nodes.runs.campaign.campaign_store import DONE, FAILED, FILE, PLANNED, RUNNING, CampaignProgress, CampaignStore
from mt_nodes.runs.campaign.campaign_summary import Policy, empty_summary, infos_of, sum_up_campaign, sum_up_cell
from mt_nodes.runs.campaign.campaign_view import LOCK
from mt_nodes.runs.campaign.cell_merging import CellPiece, merge
from mt_nodes.runs.campaign.cost import read_cost, write_cost
from mt_nodes.runs.campaign.early_stop import SequentialStopper
from mt_nodes.runs.campaign.file import Campaign
from mt_nodes.runs.campaign.inputs import drives
from mt_nodes.runs.campaign.leader import Leader, Limits, StoppedRelations
from mt_nodes.runs.campaign.pool import Pool

ITEMS, CELLS, RELATIONS = "items", "cells", "relations"
#: Keys of a campaign that do not change what its items come to.
FREE = ("bags", "workers", "retries", "stall_minutes", "budget", "cluster", "waivers", "most_evidence")
Change = Callable[[Campaign], Campaign]


@dataclass(frozen=True)
class PlannedCampaign:
    """A campaign that is planned and has a directory."""

    out: Path
    campaign: Campaign
    plan: Plan

    @property
    def allowed(self) -> int:
        """Drives of the plan, from the first, that the budget of pairs has room for."""
        return self.plan.within(self.campaign.budget.pairs)

    @property
    def items(self) -> int:
        """Items of these drives."""
        return self.allowed * len(self.plan.cells)


def is_campaign(directory: Path) -> bool:
    """Whether a directory is that of a campaign over recorded drives."""
    return (directory / FILE).is_file()


def begin(campaign: Campaign, out: str | None, changed: Change = lambda campaign: campaign) -> PlannedCampaign:
    """Plan a campaign, in a new directory or in the one that it was begun in.

    Raises UsageError: it cannot run, and nothing was written; or the directory holds another plan.
    ``campaign``: as its file has it. ``out``: its directory, None: a new one. ``changed``: sets what is another this
    time: workers, budget.
    """
    place = Path(out) if out else None
    if place is not None and is_campaign(place):
        with knowing(campaign.as_plain()):
            return _taken_up(place, campaign, campaign.bags, changed)
    plan = plan_of(campaign, drives(campaign.bags, _cache()))
    plan.within(changed(campaign).budget.pairs)
    directory = new_directory(out)
    if not any((directory / "evidence").iterdir()):  # what is there already is somebody's
        (directory / "evidence").rmdir()
    with CampaignStore(directory / FILE) as store:
        about = {"campaign": campaign.as_plain()}
        store.begin(plan, {**about, "seal": seal(directory, _names_code(about, plan))})
    return PlannedCampaign(directory, changed(campaign), plan)


def resume(out: Path, changed: Change = lambda campaign: campaign) -> PlannedCampaign:
    """Go on with the campaign of a directory: with its drives, wherever they were found.

    ``changed``: sets what is another this time: workers, budget.
    Raises UsageError: there is none, or it would be another one now: saying what has changed.
    """
    if not is_campaign(out):
        raise UsageError(f"{out}: holds no campaign; type `mt campaign FILE --out {out}`")
    with CampaignStore(out / FILE) as store:
        campaign = Campaign.from_plain(store.about["campaign"], str(out / FILE))
        urls = tuple(drive.url for drive in store.plan().drives)
    return _taken_up(out, campaign, urls, changed)


def _names_code(about: Mapping[str, Any], plan: Plan) -> dict[str, Any]:
    """Return what names code in a campaign, as JSON has it: its file, and the requests of its cells."""
    cells = {f"cell {number}": cell.request.as_plain() for number, cell in enumerate(plan.cells)}
    said: dict[str, Any] = json.loads(json.dumps({"campaign": about["campaign"], **cells}))
    return said


def _taken_up(out: Path, campaign: Campaign, bags: tuple[str, ...], changed: Change) -> PlannedCampaign:
    with CampaignStore(out / FILE) as store:
        before, about = store.plan(), store.about
    begun, said = about["campaign"], _names_code(about, before)
    refuse_foreign(out, said, about.get("seal", ""), said)
    # Early stop orders the drives: that it is another now is told as such, not as another order.
    as_begun = replace(campaign, stop_early=Campaign.from_plain(begun, str(out / FILE)).stop_early)
    now = plan_of(as_begun, drives(bags, _cache()), before)
    current = campaign.as_plain()
    changes = differences(before, now) or [
        f"{name}: was {begun[name]!r}, is {current[name]!r}"
        for name in current
        if name not in FREE and begun[name] != current[name]
    ]
    if changes:
        raise UsageError(f"{out}: cannot be gone on with, changed since: {'; '.join(changes)}; use another --out")
    before.within(changed(campaign).budget.pairs)
    return PlannedCampaign(out, changed(campaign), before)


def conduct(
    conducted: PlannedCampaign,
    interrupted: Callable[[], bool],
    show: Callable[[CampaignProgress], None] = lambda standing: None,
    start: Callable[[Campaign, Path], Pool] | None = None,
) -> Summary:
    """Have the items done, merge them, and return the summary of the campaign.

    Raises UsageError: another process conducts it.
    ``conducted``: which one. ``interrupted``: whether somebody wants it to end. ``show``: called now and then with how
    far it is. ``start``: starts other workers than :func:`pool_of`.
    """
    out, campaign, plan = conducted.out, conducted.campaign, conducted.plan
    with _alone(out), CampaignStore(out / FILE) as store:
        store.take_up()
        stops = _stops(store, plan, campaign, out)
        show(store.standing())
        seconds = None if campaign.budget.minutes is None else 60.0 * campaign.budget.minutes
        limits = Limits(conducted.allowed, campaign.retries, seconds)
        if store.next(1, conducted.allowed):
            with closing((start or pool_of)(campaign, out)) as pool:
                report = lambda: show(store.standing())  # noqa: E731
                Leader(store, plan, pool, stops, limits, report, _journalled(out)).lead(interrupted)
        summary = _merged(conducted, store, stops, interrupted=interrupted())
    write_campaign_page(out, read_cost(out))
    return summary


def sum_up(out: Path) -> None:
    """Write the summary of a killed campaign, of what is done. Raises UsageError: another process conducts it."""
    with _alone(out), CampaignStore(out / FILE) as store:
        campaign, plan = Campaign.from_plain(store.about["campaign"], str(out / FILE)), store.plan()
        _merged(PlannedCampaign(out, campaign, plan), store, _stops(store, plan, campaign, out), interrupted=True)


def pool_of(campaign: Campaign, out: Path) -> Pool:
    """Start the workers that a campaign in a directory asks for."""
    if campaign.cluster:
        from mt_nodes.runs.campaign.dask_pool import DaskPool

        return DaskPool(campaign.cluster, out / ITEMS, campaign.workers)
    from mt_nodes.runs.campaign.local_pool import LocalPool

    return LocalPool(campaign.workers, out / ITEMS, 60.0 * campaign.stall_minutes)


def _stops(store: CampaignStore, plan: Plan, campaign: Campaign, out: Path) -> StoppedRelations:
    """Return where relations ended, by all that is done."""
    stoppers = {}
    if campaign.stop_early is not None:
        hypotheses = _policy(plan, campaign).hypotheses
        for cell in plan.cells:
            names = relation_files(cell.relations, cell.texts, out / RELATIONS)
            infos = infos_of([load_relation(name).as_plain() for name in names])
            stoppers[cell.name] = SequentialStopper(infos, campaign.stop_early, hypotheses)
    stops = StoppedRelations(plan, stoppers)
    for cell_name, drive, part in store.parts():
        stops.take(cell_name, drive, part)
    return stops


def _policy(plan: Plan, campaign: Campaign) -> Policy:
    return Policy(campaign.stop_early, sum(len(cell.relations) for cell in plan.cells), campaign.waivers)


def _merged(conducted: PlannedCampaign, store: CampaignStore, stops: StoppedRelations, *, interrupted: bool) -> Summary:
    out, plan, campaign = conducted.out, conducted.plan, conducted.campaign
    items = store.standing().items
    cut = _cut_by_time(conducted, store, stops, interrupted=interrupted)
    cells = {cell.name: _merged_cell(conducted, cell, store, stops, interrupted, cut.words) for cell in plan.cells}
    about: Mapping[str, Any] = {
        "drives": len(plan.drives),
        "cells": {
            cell.name: {"stack": cell.request.stack, "seed": cell.request.seed, "relations": list(cell.relations)}
            for cell in plan.cells
        },
        "notes": list(plan.notes),
        "left": _why_left(conducted, items, cut, interrupted=interrupted),
        "budget": {**plain(campaign.budget), "cut_by": "minutes" if cut.items else None, "items_cut": cut.items},
        "stop_early": campaign.as_plain()["stop_early"],
        "stopped": {cell.name: stops.of(cell.name) for cell in plan.cells if stops.of(cell.name)},
        "failed": [
            {"cell": cell.name, "drive": work.drive, "url": plan.drives[work.drive].url, "trouble": work.trouble}
            for cell in plan.cells
            for work in store.ended(cell.name)
            if work.state == FAILED
        ],
        "failed_tries": [
            {"cell": cell.name, "drive": work.drive, "attempts": work.attempts, "why": work.trouble}
            for cell in plan.cells
            for work in store.ended(cell.name)
            if work.state == DONE and work.trouble
        ],
    }
    why = f"`mt campaign --resume {out}` goes on" + (
        ", with a larger budget of pairs" if conducted.allowed < len(plan.drives) else ""
    )
    summary = sum_up_campaign(out, about, cells, items, why_left=why, interrupted=interrupted, cut=cut.words)
    write_cost(out, {cell.name: cell.request.stack for cell in plan.cells}, store, out / CELLS)
    store.sum_up()
    return summary


@dataclass(frozen=True)
class BudgetCut:
    """Items that a budget of time kept from being begun, and that in words; none and nothing where it did not."""

    items: int = 0
    words: str = ""


def _cut_by_time(
    conducted: PlannedCampaign, store: CampaignStore, stops: StoppedRelations, *, interrupted: bool
) -> BudgetCut:
    """Return what is still wanted of the plan; what every relation of a cell ended before is not."""
    minutes, cells = conducted.campaign.budget.minutes, {cell.name: cell for cell in conducted.plan.cells}
    if minutes is None or interrupted:
        return BudgetCut()
    planned = store.next(conducted.items, conducted.allowed)
    left = sum(bool(stops.open(w.cell, w.drive, w.relations or cells[w.cell].relations)) for w in planned)
    return BudgetCut(
        left, f"the budget of {minutes:g} min was spent, {counted(left, 'item')} of the plan not begun" * bool(left)
    )


def _left_within(conducted: PlannedCampaign, items: Mapping[str, int]) -> int:
    """Return how many items are left that the budget of pairs has room for."""
    beyond = len(conducted.plan.drives) - conducted.allowed
    return items.get(PLANNED, 0) + items.get(RUNNING, 0) - beyond * len(conducted.plan.cells)


def _why_left(conducted: PlannedCampaign, items: Mapping[str, int], cut: BudgetCut, *, interrupted: bool) -> list[str]:
    """Return what kept items from being done."""
    beyond, pairs = len(conducted.plan.drives) - conducted.allowed, conducted.campaign.budget.pairs
    whys = []
    if beyond and items.get(PLANNED, 0) + items.get(RUNNING, 0):
        whys.append(f"{counted(beyond, 'drive')} beyond the budget of {counted(pairs or 0, 'pair')}")
    if interrupted and _left_within(conducted, items) > 0:
        whys.append("the campaign was interrupted")
    return [*whys, *([cut.words] if cut.words else [])]


def _journalled(out: Path) -> Callable[[str], int]:
    """Return what tells how many lines the journal of an item has, by its key: none while it has no journal here."""

    def lines(key: str) -> int:
        try:
            with (out / ITEMS / key / "result.jsonl").open("rb") as file:
                return sum(part.count(b"\n") for part in iter(lambda: file.read(1 << 20), b""))
        except FileNotFoundError:
            return 0

    return lines


def _merged_cell(
    conducted: PlannedCampaign, cell: Cell, store: CampaignStore, stops: StoppedRelations, interrupted: bool, cut: str
) -> Summary:
    out, plan = conducted.out, conducted.plan
    ended = store.ended(cell.name)
    pieces = []
    for work in ended:
        relations = frozenset(stops.open(cell.name, work.drive, work.relations))
        if (relations or work.trouble) and (out / ITEMS / work.key / "result.jsonl").exists():
            pieces.append(CellPiece(work.drive, out / ITEMS / work.key, relations))
    failed = [work for work in ended if work.state == FAILED]
    if not pieces:
        return empty_summary(failed, interrupted)
    place = out / CELLS / cell.name
    merge(place, cell, plan.drives, pieces, (out / RELATIONS).resolve())
    policy = _policy(plan, conducted.campaign)
    return sum_up_cell(place, cell.name, policy, stops, failed, interrupted, cut)


def _cache() -> Path:
    """Return where the content hashes of bags are remembered, of all campaigns of this user."""
    return cache_dir() / "bag_hashes.sqlite"


@contextmanager
def _alone(out: Path) -> Iterator[None]:
    with (out / LOCK).open("ab") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UsageError(f"{out}: another process conducts this campaign; wait for its end, or stop it") from error
        os.utime(held.fileno())  # whoever watches takes a summary that is older for that of a start before
        yield
