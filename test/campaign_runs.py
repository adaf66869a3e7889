# SPDX-License-Identifier: Apache-2.0
"""What the tests of campaigns share: short drives, files, campaigns carried out here or as processes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml
from made_runs import sparse_drive

from mt_nodes.base.jsonl import read_result, seal
from mt_nodes.engine.journal import read_journal
from mt_nodes.runs.campaign.conductor import CELLS, ITEMS, PlannedCampaign, begin, conduct, resume
from mt_nodes.runs.campaign.file import Campaign
from mt_nodes.runs.campaign.item import CampaignItem, ItemResult
from mt_nodes.runs.campaign.item_execution import perform
from mt_nodes.runs.campaign.pool import LostItem

#: A reference stack that is wrong in a way that noise outside shows.
FAULT = "grid_index_wrap"
RELATIONS = ("noise_outside_roi_10", "noise_outside_roi_1000")


def drives(place: Path, count: int, bundles: int = 3) -> list[Path]:
    """Write short drives, each another one."""
    return [sparse_drive(place / f"drive_{number}", bundles, number, columns=450) for number in range(count)]


def campaign_file(place: Path, bags: Sequence[Path], **more: Any) -> Path:
    """Write a campaign over bags: in process, with a planted fault, unless said otherwise."""
    usual = {"relations": list(RELATIONS), "transport": "inprocess", "faults": [FAULT]}
    path = place / "campaign.yaml"
    path.write_text(yaml.safe_dump({"bags": list(map(str, bags)), **usual, **more}))
    return path


def planned(place: Path, bags: Sequence[Path], out: str = "out", **more: Any) -> PlannedCampaign:
    """Begin a campaign."""
    return begin(Campaign.load(campaign_file(place, bags, **more)), str(place / out))


class Here:
    """A pool of one worker, which is this process; it is "killed" before it begins the items with these numbers."""

    def __init__(self, scratch: Path, kills: Sequence[int] = ()) -> None:
        self._scratch, self._kills = scratch, set(kills)
        self._ended: list[ItemResult | LostItem] = []
        self.given: list[str] = []

    def submit(self, item: CampaignItem) -> None:
        self.given.append(item.key)
        killed = len(self.given) in self._kills
        self._ended.append(LostItem(item.key, "killed") if killed else perform(item, self._scratch))

    def finished(self, timeout_s: float) -> Iterator[ItemResult | LostItem]:
        ended, self._ended = self._ended, []
        yield from ended

    @property
    def free(self) -> int:
        return 1 - len(self._ended)

    def close(self) -> None:
        pass


def here(campaign: Campaign, out: Path) -> Here:
    """Start no worker."""
    return Here(out / ITEMS)


def carried_out(place: Path, bags: Sequence[Path], out: str = "out", **more: Any) -> Path:
    """Carry a campaign out, by processes where it asks for two workers or topics; return its directory."""
    conducted = planned(place, bags, out, **more)
    processes = conducted.campaign.workers > 1 or conducted.campaign.transport == "ros"
    conduct(conducted, lambda: False, start=None if processes else here)
    return place / out


def gone_on_with(out: Path) -> dict[str, Any]:
    """Go on with a campaign to its end."""
    return conduct(resume(out), lambda: False, start=here)


def summary_of(out: Path) -> dict[str, Any]:
    """Read what a campaign, or a cell, came to."""
    made: dict[str, Any] = read_result(out / "summary.json")
    return made


def verdict_lines(results: Path) -> list[str]:
    """Return the verdict lines of a results directory, sorted."""
    return sorted(seal(line) for line in read_journal(results / "result.jsonl") if line["type"] == "verdict")


def results_of(out: Path) -> dict[str, tuple[list[str], list[str], list[str], dict[str, Any]]]:
    """Return of each cell verdicts, ledger, names of evidence and draws, and the summary."""
    found = {}
    for cell in sorted((out / CELLS).iterdir()):
        kept = sorted(p.name for folder in ("evidence", "draws") for p in (cell / folder).iterdir())
        ledger = sorted((cell / "ledger.jsonl").read_text().splitlines())
        found[cell.name] = verdict_lines(cell), ledger, kept, summary_of(cell)
    return found
