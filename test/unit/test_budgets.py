# SPDX-License-Identifier: Apache-2.0
"""What a budget cuts is told, with its reason; and time is a limit only where it is asked for."""

from __future__ import annotations

import itertools
from pathlib import Path
from types import SimpleNamespace as Anything
from xml.etree import ElementTree as ET

import pytest
from campaign_runs import RELATIONS, campaign_file, carried_out, drives, here, summary_of
from made_runs import NOISE, made_run, verdicts
from test_shrink_searches import AlwaysFails, Sized

from mt_nodes.base.errors import ExitCode
from mt_nodes.base.jsonl import read_result
from mt_nodes.cli.main import _parsed
from mt_nodes.engine.finish import read_summary
from mt_nodes.runs.campaign.campaign_summary import sum_up_campaign
from mt_nodes.runs.campaign.conductor import BudgetCut, _cut_by_time, begin, conduct
from mt_nodes.runs.campaign.file import Campaign
from mt_nodes.runs.shrink import shrinker
from mt_nodes.runs.shrink.shrink_run import ShrinkRequest
from mt_nodes.runs.shrink.shrinker import Budget, Shrinker


def shrunk(budget: Budget, monkeypatch: pytest.MonkeyPatch, seconds_a_look: float) -> Shrinker[Sized, Sized]:
    """Make something small that could be made smaller for ever, while so much time passes from look to look."""
    clock = itertools.count(0.0, seconds_a_look)
    monkeypatch.setattr(shrinker.time, "monotonic", lambda: next(clock))
    made: Shrinker[Sized, Sized] = Shrinker(AlwaysFails(), budget, None)

    def smaller() -> None:
        for _ in range(1000):
            made.tries("halved", "half", made.best)

    made.shrink([smaller])
    return made


def test_shrinking_is_ended_by_plays_however_slow_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    slow, quick = (shrunk(Budget(50), monkeypatch, seconds).result.as_plain() for seconds in (3600.0, 0.0))
    assert slow == quick
    assert slow["budget"] == {"cut_by": "plays", "plays": 50, "plays_cut": 0} and not slow["complete"]
    assert slow["notes"] == ["the budget of 50 replays is used up; a larger --plays may find a smaller form"]
    assert ShrinkRequest("", "").minutes is None
    assert _parsed(["shrink", "d", "p"]).minutes is None


def test_a_limit_of_time_is_told_with_what_it_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    told = shrunk(Budget(50, 10.0), monkeypatch, 60.0).result.as_plain()
    played = told["budget"]["plays"]
    assert 0 < played < 50 and told["budget"] == {"cut_by": "minutes", "plays": played, "plays_cut": 50 - played}
    assert f"the budget of 10 min is used up after {played} of at most 50 replays" in told["notes"][-1]


def test_what_was_not_cut_says_so() -> None:
    made: Shrinker[Sized, Sized] = Shrinker(AlwaysFails(), Budget(50), None)
    made.shrink([])
    assert made.result.as_plain()["complete"] and made.result.as_plain()["budget"] is None


def test_a_campaign_says_what_its_time_left_undone(tmp_path: Path) -> None:
    bags = drives(tmp_path / "bags", 3, bundles=1)
    pairs = 3 * len(RELATIONS)
    out = carried_out(tmp_path, bags, budget={"pairs": pairs})
    assert summary_of(out)["campaign"]["budget"] == {"minutes": None, "pairs": pairs, "cut_by": None, "items_cut": 0}
    cut = begin(Campaign.load(campaign_file(tmp_path, bags, budget={"minutes": 0})), str(out))
    summary = conduct(cut, lambda: False, start=here)
    assert summary["campaign"]["budget"] == {"minutes": 0.0, "pairs": None, "cut_by": "minutes", "items_cut": 2}
    (words,) = summary["campaign"]["left"]
    assert words == "the budget of 0 min was spent, 2 items of the plan not begun"
    (cell,) = summary["cells"].values()
    undecided = [r for r in cell["relations"].values() if r["outcome"] in ("INCONCLUSIVE", "UNSTABLE")]
    assert undecided and all(r["why"].endswith(words) for r in undecided)
    whole = begin(Campaign.load(campaign_file(tmp_path, bags)), str(out))
    done = conduct(whole, lambda: False, start=here)
    assert done["campaign"]["budget"]["items_cut"] == 0 and done["items"]["left"] == 0
    assert not any("min was spent" in r["why"] for r in next(iter(done["cells"].values()))["relations"].values())


@pytest.mark.parametrize(("wanted", "minutes", "cut"), [(2, 5.0, 2), (0, 5.0, 0), (2, None, 0)])
def test_what_no_relation_wants_any_more_was_not_cut(wanted: int, minutes: float | None, cut: int) -> None:
    cells, works = [Anything(name="c", relations=("a",))], [Anything(cell="c", drive=i, relations=()) for i in range(3)]
    conducted = Anything(
        campaign=Anything(budget=Anything(minutes=minutes)), plan=Anything(cells=cells), items=3, allowed=3
    )
    stops = Anything(open=lambda cell, drive, relations: relations if drive < wanted else ())
    found = _cut_by_time(conducted, Anything(next=lambda count, drives: works), stops, interrupted=False)
    assert found.items == cut and bool(found.words) == bool(cut)
    assert _cut_by_time(conducted, Anything(next=lambda count, drives: works), stops, interrupted=True) == BudgetCut()


def test_a_campaign_that_its_time_cut_is_no_pass(tmp_path: Path) -> None:
    cell = read_summary(made_run(tmp_path / "cell", verdicts("noise"), NOISE))
    assert cell["exit_code"] == 0

    def summed(cut: str) -> tuple[int, str, int]:
        items = {"done": 1, "planned": 2}
        found = sum_up_campaign(tmp_path, {}, {"cell": cell}, items, why_left="", interrupted=False, cut=cut)
        assert read_result(tmp_path / "summary.json")["exit_code"] == found["exit_code"]
        failures = len(ET.parse(tmp_path / "junit.xml").findall(".//failure"))
        return found["exit_code"], found["exit_why"], failures

    assert summed("")[::2] == (ExitCode.PASS, 0)
    code, why, failures = summed("the budget of 5 min was spent, 2 items of the plan not begun")
    assert (code, failures) == (ExitCode.UNDECIDED, 1) and "so far, but the budget of 5 min was spent" in why
