# SPDX-License-Identifier: Apache-2.0
"""How far a campaign is, while it goes on: a bar on a terminal, elsewhere a line now and then for the log."""

from __future__ import annotations

import contextlib
import math
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TextIO

from mt_nodes.base.wording import counted

if TYPE_CHECKING:
    from mt_nodes.runs.campaign.campaign_store import CampaignProgress

#: A line where something has changed, and one that says that nothing has: some CI systems end a job that is silent.
CHANGED_EVERY_S, SAME_EVERY_S = 5.0, 60.0


@contextlib.contextmanager
def progress(total: int, *, aside: bool) -> Iterator[Callable[[CampaignProgress], None]]:
    """Yield what shows how far a campaign is.

    Args:
        total: items. aside: something else goes to standard output.
    """
    if aside or not sys.stdout.isatty():
        yield Lines(total, sys.stderr)
        return
    with _bar(total) as show:
        yield show


class Lines:
    """Says it in lines, at once and then no more often than a log wants."""

    def __init__(self, total: int, file: TextIO, now_s: Callable[[], float] = time.monotonic) -> None:
        """Say it of so many items, to a file."""
        self._total, self._file, self._now_s = total, file, now_s
        self._began_s, self._said_s, self._over_before = now_s(), -math.inf, 0
        self._said: CampaignProgress | None = None

    def __call__(self, standing: CampaignProgress) -> None:
        """Say it, if it is time to."""
        now_s = self._now_s()
        if self._said is None:  # what was done before says nothing about the pace
            self._over_before = standing.over
        if now_s - self._said_s < (SAME_EVERY_S if standing == self._said else CHANGED_EVERY_S):
            return
        self._said, self._said_s = standing, now_s
        over = f"{standing.over} of {counted(self._total, 'item')} over"
        told = f"{counted(standing.pairs, 'pair')} judged, {standing.violated} violated"
        print(f"mt campaign: {over}, {told}{self._pace(standing, now_s)}", file=self._file, flush=True)

    def _pace(self, standing: CampaignProgress, now_s: float) -> str:
        so_far_s, here = now_s - self._began_s, standing.over - self._over_before
        if not here:
            return f"; {so_far_s / 60:.1f} min so far"
        left_s = so_far_s * max(0, self._total - standing.over) / here
        return f"; {so_far_s / 60:.1f} min so far, about {left_s / 60:.1f} min left"


@contextlib.contextmanager
def _bar(total: int) -> Iterator[Callable[[CampaignProgress], None]]:
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("campaign"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total} items, {task.fields[pairs]} pairs, {task.fields[violated]} violated"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, transient=True) as bar:
        task: Any = None

        def show(standing: CampaignProgress) -> None:
            nonlocal task
            done, pairs, violated = standing.over, standing.pairs, standing.violated
            if task is None:  # what was done before says nothing about the pace
                task = bar.add_task("", total=total, completed=done, pairs=pairs, violated=violated)
            bar.update(task, completed=done, pairs=pairs, violated=violated)

        yield show
