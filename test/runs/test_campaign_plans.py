# SPDX-License-Identifier: Apache-2.0
"""What a campaign may cost, what its file may say, and where a relation stops."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from campaign_runs import (
    RELATIONS,
    Here,
    campaign_file,
    carried_out,
    here,
    planned,
    summary_of,
)
from test_campaign_core import BUNDLES, CELL, bags, without_reports

from mt_nodes.base.errors import UsageError
from mt_nodes.runs.campaign.campaign_plan import in_order
from mt_nodes.runs.campaign.campaign_store import FILE, CampaignStore
from mt_nodes.runs.campaign.conductor import ITEMS, begin, conduct, resume
from mt_nodes.runs.campaign.file import Campaign
from mt_nodes.runs.campaign.item import Drive, ItemTally, PartResult
from mt_nodes.runs.campaign.leader import Leader, Limits, StoppedRelations

__all__ = ["bags", "without_reports"]

FOG = {"id": "fog_keeps_near_obstacles"}


# --- budgets and plans


@pytest.mark.usefixtures("without_reports")
def test_a_budget_of_pairs_is_a_prefix_of_drives(bags: list[Path], tmp_path: Path) -> None:
    each = 3 * BUNDLES * len(RELATIONS)
    out = carried_out(tmp_path, bags, budget={"pairs": 3 * each - 1})
    summary = summary_of(out)
    assert summary["items"] == {"done": 2, "failed": 0, "stopped": 0, "left": 1}
    assert "1 item left" in summary["exit_why"]
    assert summary["cells"][CELL.format(0)]["offered"] == 2 * each
    larger = begin(Campaign.load(campaign_file(tmp_path, bags, budget={"pairs": 3 * each})), str(out))
    assert conduct(larger, lambda: False, start=here)["items"]["left"] == 0
    with pytest.raises(UsageError, match=f"the first drive alone owes {each}"):
        planned(tmp_path, bags, "none", budget={"pairs": each - 1})


def test_a_budget_of_time_lets_nothing_further_begin(bags: list[Path], tmp_path: Path) -> None:
    out = carried_out(tmp_path, bags, budget={"minutes": 0})
    summary = summary_of(out)
    assert summary["items"] == {"done": 0, "failed": 0, "stopped": 0, "left": 3}
    assert summary["exit_code"] == 3
    assert "goes on" in summary["exit_why"]


def test_what_others_left_in_the_directory_stays(bags: list[Path], tmp_path: Path) -> None:
    theirs = tmp_path / "out" / "evidence" / "theirs"
    theirs.mkdir(parents=True)
    planned(tmp_path, bags[:1])
    assert theirs.is_dir()


def test_a_drive_that_is_there_twice_counts_once(bags: list[Path], tmp_path: Path) -> None:
    again = shutil.copytree(bags[0], tmp_path / "again")
    conducted = planned(tmp_path, [bags[0], again, bags[1]])
    assert [(drive.number, drive.url) for drive in conducted.plan.drives] == [(0, str(bags[0])), (1, str(bags[1]))]
    [note] = conducted.plan.notes
    assert note.startswith(f"{again} has the content of {bags[0]}")


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"stack": ["reference_detector"]}, "unknown parameter 'stack'; did you mean 'stacks'"),
        ({"relations": []}, "relations: got [], expected a list"),
        ({"relations": [{**FOG, "sets": {}}]}, "unknown key 'sets'; did you mean 'set'"),
        ({"relations": [{**FOG, "set": {"fog.visibility": [1]}}]}, "did you mean 'fog.visibility_m'"),
        ({"relations": [{**FOG, "set": {"fog.visibility_m": [1]}}]}, "expected 10 to 2000 m"),
        ({"relations": [{**FOG, "set": {"fog.visibility_m": []}}]}, "got no value"),
        ({"relations": [*RELATIONS, RELATIONS[0]]}, "noise_outside_roi_10 twice"),
        ({"seeds": [1, 1]}, "seeds: got 1 twice"),
        ({"seeds": ["a"]}, "expected whole numbers"),
        ({"budget": {"hours": 2}}, "unknown parameter 'hours'"),
        ({"stop_early": {"alpha": 2}}, "expected 1e-09 to 0.5"),
        ({"faults": ["no_such"]}, "no_such"),
        ({"search": {"trials": 3}}, "`mt search`"),
        ({"workers": 0}, "expected 1 to"),
    ],
)
def test_what_a_file_may_not_say(bags: list[Path], tmp_path: Path, more: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError) as error:
        planned(tmp_path, bags, **more)
    assert told in str(error.value)
    assert not (tmp_path / "out").exists(), "nothing was written"


def test_paths_of_a_file_are_relative_to_it(bags: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(bags[0], tmp_path / "here" / "street")
    (tmp_path / "here" / "campaign.yaml").write_text(f"{{bags: [str*], relations: [{RELATIONS[0]}]}}")
    monkeypatch.chdir(tmp_path)
    campaign = Campaign.load(Path("here/campaign.yaml"))
    assert campaign.bags == (str(tmp_path / "here" / "str*"),)
    assert Campaign.from_plain(json.loads(json.dumps(campaign.as_plain())), "here") == campaign


# --- early stop


class After:
    """Stops a relation after so many drives, once they are all known."""

    def __init__(self, drives: int) -> None:
        self._drives = drives

    def stopped_at(self, relation: str, drives: Sequence[PartResult | None]) -> int | None:
        known = all(part is not None for part in drives[: self._drives])
        return self._drives if relation == RELATIONS[0] and known else None


def part(relation: str) -> PartResult:
    return PartResult(relation, 1, {"HOLDS": 1}, ItemTally(1, 0), ItemTally(0, 0), ItemTally(0, 0), 1)


def test_where_a_relation_stops_does_not_depend_on_who_was_ready_first(bags: list[Path], tmp_path: Path) -> None:
    plan = planned(tmp_path, bags).plan
    cell = plan.cells[0].name
    stops = StoppedRelations(plan, {cell: After(2)})
    stops.take(cell, 2, part(RELATIONS[0]))
    stops.take(cell, 0, part(RELATIONS[0]))
    assert stops.open(cell, 2, RELATIONS) == RELATIONS
    stops.take(cell, 1, part(RELATIONS[0]))
    assert stops.open(cell, 2, RELATIONS) == RELATIONS[1:]
    assert stops.open(cell, 1, RELATIONS) == RELATIONS
    assert stops.of(cell) == {RELATIONS[0]: 2}
    assert len(stops.counted(cell, RELATIONS[0])) == 2, "what came of drives beyond does not count"


def test_a_drive_that_failed_holds_up_no_stop(bags: list[Path], tmp_path: Path) -> None:
    plan = planned(tmp_path, bags).plan
    cell = plan.cells[0].name
    stops = StoppedRelations(plan, {cell: After(2)})
    stops.take(cell, 0, part(RELATIONS[0]))
    stops.fail(cell, 1)
    assert stops.open(cell, 2, RELATIONS) == RELATIONS[1:]
    assert sum(found.own.decided for found in stops.counted(cell, RELATIONS[0])) == 1, "it says nothing"


def test_what_was_decided_without_a_failed_drive_is_decided_anew_with_it(bags: list[Path], tmp_path: Path) -> None:
    """The second drive is lost; the third is then not needed, until the second is tried again."""
    conducted = planned(tmp_path, bags, relations=[RELATIONS[0]])
    cell, pool = conducted.plan.cells[0].name, Here(conducted.out / ITEMS, kills=[2])
    with CampaignStore(conducted.out / FILE) as store:
        stops = StoppedRelations(conducted.plan, {cell: After(2)})
        Leader(store, conducted.plan, pool, stops, Limits(3, retries=0), lambda: None).lead(lambda: False)
        assert store.standing().items == {"done": 1, "failed": 1, "stopped": 1}
        store.take_up()
        assert store.standing().items == {"done": 1, "planned": 2}
        store.take_up()
        assert store.standing().items == {"done": 1, "planned": 2}


def test_for_early_stop_drives_are_in_an_order_of_chance(bags: list[Path], tmp_path: Path) -> None:
    def made(seeds: Sequence[int] = (0,), **stop: str) -> Campaign:
        return Campaign.load(campaign_file(tmp_path, bags, seeds=list(seeds), **({"stop_early": stop} if stop else {})))

    listed = [Drive(n, f"drive_{n}", hashlib.sha256(b"%d" % n).hexdigest()) for n in range(50)]
    moved = [replace(drive, number=n, url=f"elsewhere_{drive.url}") for n, drive in enumerate(listed[::-1])]
    assert in_order(listed, made()) == in_order(listed, made(when="clear", order="listed")) == listed
    shuffled = in_order(listed, made(when="clear"))
    assert [drive.number for drive in shuffled] == list(range(50))
    contents = [drive.sha256 for drive in shuffled]
    assert sorted(contents) == sorted(drive.sha256 for drive in listed) and contents != [d.sha256 for d in listed]
    assert contents == [drive.sha256 for drive in in_order(moved, made(when="clear"))], "wherever they lie"
    assert contents != [drive.sha256 for drive in in_order(listed, made([1, 0], when="clear"))]
    fewer = [drive.sha256 for drive in in_order(listed[:-1], made(when="clear"))]
    assert fewer == [sha256 for sha256 in contents if sha256 != listed[-1].sha256]
    plan = begin(made([3], when="clear"), str(tmp_path / "out")).plan
    assert list(plan.drives) == in_order(plan.drives, made([3], when="clear")), "that is the order of a plan"
    assert resume(tmp_path / "out").plan == plan, "and of one that is gone on with"
