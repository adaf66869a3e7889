# SPDX-License-Identifier: Apache-2.0
"""How a campaign is followed, how often it says how far it is, and which lost workers count as tries."""

from __future__ import annotations

import io
import os
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from campaign_runs import campaign_file, drives, here, planned
from rich.console import Console

from mt_nodes.base.jsonl import write_result
from mt_nodes.cli import campaign_command, watch_command
from mt_nodes.cli.campaign_progress import CHANGED_EVERY_S, Lines
from mt_nodes.cli.main import main
from mt_nodes.runs.campaign import conductor, leader
from mt_nodes.runs.campaign.campaign_store import DONE, FILE, CampaignProgress, CampaignStore
from mt_nodes.runs.campaign.campaign_view import LOCK, WatchedCampaign
from mt_nodes.runs.campaign.conductor import ITEMS, conduct
from mt_nodes.runs.campaign.item import CampaignItem, ItemResult
from mt_nodes.runs.campaign.leader import PAUSES, SHOW_EVERY_S, Leader, Limits, PacedCall, StoppedRelations
from mt_nodes.runs.campaign.pool import LostItem

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
from simulate_campaign import made_plan


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(leader, "time", made)
    return made


class Dying:
    """One worker; it dies at an item so many times, and has got on by so many lines each time."""

    def __init__(self, deaths: int, lines: int, clock: Clock | None = None) -> None:
        self._deaths, self._lines, self._clock = deaths, lines, clock
        self._item: CampaignItem | None = None
        self.given: Counter[str] = Counter()
        self.kept: Counter[str] = Counter()

    def submit(self, item: CampaignItem) -> None:
        self._item = item
        self.given[item.key] += 1

    def finished(self, timeout_s: float) -> Iterator[ItemResult | LostItem]:
        if self._clock:
            self._clock.sleep(0.01)
        key, self._item = (self._item.key if self._item else ""), None
        if self.given[key] > self._deaths:
            yield ItemResult(key, 0, (), "", 1.0, "here")
        else:
            self.kept[key] += self._lines
            yield LostItem(key, "killed")

    @property
    def free(self) -> int:
        return int(self._item is None)

    def close(self) -> None:
        pass


def led(place: Path, pool: Dying, drives_: int = 1, shown: list[int] | None = None) -> tuple[dict[str, int], int]:
    """Lead a campaign whose items are tried once; return how they ended, and the counted tries of the first."""
    plan = made_plan(drives_)
    with CampaignStore(place / FILE) as store:
        store.begin(plan, {})
        told = lambda: shown.append(1) if shown is not None else None  # noqa: E731
        limits = Limits(drives_, retries=0)
        Leader(store, plan, pool, StoppedRelations(plan, {}), limits, told, lambda key: pool.kept[key]).lead(
            lambda: False
        )
        return dict(store.standing().items), store.ended(plan.cells[0].name)[0].attempts


# --- tries


def test_a_lost_worker_that_got_on_does_not_count_as_a_try(tmp_path: Path) -> None:
    pool = Dying(deaths=5, lines=1)
    assert led(tmp_path, pool) == ({DONE: 1}, 0)
    assert list(pool.given.values()) == [6]


def test_a_worker_that_was_lost_stands_with_its_item_when_that_is_done(tmp_path: Path) -> None:
    """It got on, and another ended the item: whoever reads the result learns of it all the same."""
    led(tmp_path, Dying(deaths=2, lines=1))
    with CampaignStore(tmp_path / FILE) as store:
        (work,) = store.ended(made_plan(1).cells[0].name)
    assert (work.state, work.trouble) == (DONE, "killed")


def test_a_lost_worker_that_left_nothing_counts(tmp_path: Path) -> None:
    pool = Dying(deaths=5, lines=0)
    assert led(tmp_path, pool) == ({"failed": 1}, 1)
    assert list(pool.given.values()) == [1]


def test_only_what_is_new_since_the_last_try_counts_for_an_item(tmp_path: Path) -> None:
    """It has a journal from before; that alone is no progress."""
    pool = Dying(deaths=5, lines=0)
    pool.kept[made_plan(1).cells[0].item(made_plan(1).drives[0]).key] = 7
    assert led(tmp_path, pool) == ({"failed": 1}, 1)


def test_lines_of_a_journal_that_is_kept_here_are_counted(tmp_path: Path) -> None:
    lines = conductor._journalled(tmp_path)
    assert lines("key") == 0
    (tmp_path / ITEMS / "key").mkdir(parents=True)
    (tmp_path / ITEMS / "key" / "result.jsonl").write_bytes(b"{}\n{}\n{torn")
    assert lines("key") == 2


class Killed(Dying):
    """As a local worker that journals one more line before it is killed; it never gets to the end."""

    def __init__(self, out: Path, lines: int) -> None:
        super().__init__(deaths=lines, lines=0)
        self._out = out

    def submit(self, item: CampaignItem) -> None:
        super().submit(item)
        place = self._out / ITEMS / item.key
        place.mkdir(parents=True, exist_ok=True)
        with (place / "result.jsonl").open("a") as journal:
            journal.write("{}\n")


def test_a_campaign_looks_at_the_journals_of_its_items(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    conducted = planned(tmp_path, drives(tmp_path, 1, bundles=1), retries=0)
    pool = Killed(conducted.out, lines=4)
    monkeypatch.setattr(conductor, "_merged", lambda *rest, **more: {})
    monkeypatch.setattr(conductor, "write_campaign_page", lambda out, cost: out)
    conduct(conducted, lambda: False, start=lambda campaign, out: pool)
    assert list(pool.given.values()) == [5]


# --- how far it is


def test_it_says_how_far_it_is_now_and_then(clock: Clock) -> None:
    told: list[float] = []
    paced = PacedCall(lambda: told.append(clock.now_s))
    for _ in range(1000):
        paced()
        clock.sleep(0.01)
    assert 0.9 * 10.0 / SHOW_EVERY_S <= len(told) <= 10.0 / SHOW_EVERY_S + 1
    paced(now=True)
    assert told[-1] == clock.now_s


def test_what_takes_long_is_said_less_often(clock: Clock) -> None:
    """As of a million items, where counting alone takes long."""
    paced = PacedCall(lambda: clock.sleep(0.2))
    for _ in range(100_000):
        paced()
        clock.sleep(0.001)
    assert 100.0 < clock.now_s < 100.0 * (1.0 + 1.5 / PAUSES)


def test_a_leader_does_not_say_it_at_every_item(tmp_path: Path, clock: Clock) -> None:
    shown: list[int] = []
    assert led(tmp_path, Dying(0, 0, clock), 500, shown)[0] == {DONE: 500}
    assert 2 <= len(shown) <= 500 * 0.01 / SHOW_EVERY_S + 2


class Said(io.StringIO):
    """A log, and the time that each line was written at."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock, self.at_s = clock, list[float]()

    def write(self, text: str) -> int:
        if text.strip():
            self.at_s.append(self._clock.now_s)
        return super().write(text)


def test_a_log_gets_a_line_now_and_then(clock: Clock) -> None:
    said = Said(clock)
    lines = Lines(8, said, clock.monotonic)
    for second in range(600):
        done = min(6, 2 + second // 60)  # two were done before
        lines(CampaignProgress({DONE: done, "planned": 8 - done}, 10 * done, 1))
        clock.sleep(1.0)
    told = said.getvalue().splitlines()
    assert told[0] == "mt campaign: 2 of 8 items finished, 20 pairs judged, 1 violated; 0.0 min so far"
    assert said.at_s == [60.0 * n for n in range(10)]
    assert told[1].endswith("3 of 8 items finished, 30 pairs judged, 1 violated; 1.0 min so far, about 5.0 min left")
    assert told[-1].endswith("9.0 min so far, about 4.5 min left")


def test_a_log_is_not_flooded(clock: Clock) -> None:
    said = Said(clock)
    lines = Lines(10_000, said, clock.monotonic)
    for done in range(1000):
        lines(CampaignProgress({DONE: done}, done, 0))
        clock.sleep(0.1)
    assert len(said.at_s) == 100.0 / CHANGED_EVERY_S


def test_a_campaign_without_a_terminal_says_how_far_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = campaign_file(tmp_path, drives(tmp_path, 1, bundles=1))
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        assert main(["campaign", str(file), "--out", str(tmp_path / "out"), "--minutes", "0"]) == 3
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    told = capsys.readouterr()
    assert "mt campaign: 0 of 1 item finished, 0 pairs judged" in told.err
    assert "1 drive, items: 1 left" in told.out and "outcome" not in told.out, "no table of nothing"


# --- watching


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    """A campaign of two items that somebody conducts; an older start has left a summary."""
    write_result(tmp_path / "summary.json", {"exit_code": 130, "exit_why": "interrupted"})
    os.utime(tmp_path / "summary.json", (1.0, 1.0))
    (tmp_path / LOCK).touch()
    with CampaignStore(tmp_path / FILE) as store:
        store.begin(made_plan(2), {})
    return tmp_path


def one_more_done(out: Path) -> None:
    with CampaignStore(out / FILE) as store:
        (work,) = store.next(1, 2)
        store.done(work, ItemResult("0" * 64, 0, (), "0" * 64, 1.0, "here"))


def test_a_campaign_is_followed_to_its_end(begun: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    monkeypatch.setattr("mt_nodes.cli.terminal.console", lambda: Console(file=out, force_terminal=True, width=200))
    looks: list[float] = []

    def sleep(seconds: float) -> None:
        looks.append(seconds)
        if len(looks) <= 2:
            one_more_done(begun)
        elif len(looks) == 3:
            write_result(begun / "summary.json", {"exit_code": 1, "exit_why": "fog FAIL"})
        else:
            pytest.fail("it has ended")

    monkeypatch.setattr(watch_command, "time", SimpleNamespace(sleep=sleep))
    assert main(["watch", str(begun)]) == 0
    told = out.getvalue()
    assert len(looks) == 3
    for words in (*(f"{n} of 2 items finished" for n in range(3)), "last summary with exit code 130"):
        assert words in told
    assert told.rindex("ended with exit code 1: fog FAIL") > told.rindex("last summary")


def test_where_nobody_looks_it_is_shown_once(begun: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one_more_done(begun)
    assert main(["watch", str(begun)]) == 0
    told = capsys.readouterr().out
    assert "1 of 2 items finished" in told and "running; last summary with exit code 130: interrupted" in told


def test_a_start_makes_an_older_summary_old(tmp_path: Path) -> None:
    conducted = planned(tmp_path, drives(tmp_path, 1, bundles=1), budget={"minutes": 0})
    watched = WatchedCampaign(conducted.out)
    assert not watched.finished and watched.summary() is None
    ends: list[bool] = []

    def look() -> bool:
        ends.append(watched.finished)
        return False

    conduct(conducted, look, start=here)
    assert watched.finished
    conduct(conducted, look, start=here)
    assert watched.finished and not any(ends)


def test_what_does_not_pass_is_explained_failures_first_and_not_endlessly() -> None:
    told = {"a": {"outcome": "PASS", "why": "fine"}, "b": {"outcome": "INCONCLUSIVE", "why": "3 more drives"}}
    failed = {"c": {"outcome": "FAIL", "why": "violated"}}
    assert campaign_command._reasons({"one": {"relations": told}, "two": {"relations": failed}}) == [
        "two: c: FAIL: violated",
        "one: b: INCONCLUSIVE: 3 more drives",
    ]
    many = {str(i): {"outcome": "UNSTABLE", "why": "x"} for i in range(20)}
    lines = campaign_command._reasons({"one": {"relations": many}})
    assert len(lines) == campaign_command.MAX_REASONS + 1 and "8 more" in lines[-1]
