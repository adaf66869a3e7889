# SPDX-License-Identifier: Apache-2.0
"""Progress of a campaign: a bar on a terminal, elsewhere a line now and then for the log."""

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

#: Pauses between lines, with and without progress: some CI systems end a job that prints nothing.
CHANGED_EVERY_S, SAME_EVERY_S = 5.0, 60.0


@contextlib.contextmanager
def progress(total: int, *, hidden: bool) -> Iterator[Callable[[CampaignProgress], None]]:
    """Yield what shows the progress of a campaign.

    ``total``: items. ``hidden``: show no bar: standard output is for something else.
    """
    if hidden or not sys.stdout.isatty():
        yield Lines(total, sys.stderr)
        return
    with _bar(total) as show:
        yield show


class Lines:
    """Prints progress as lines, the first at once, further ones not too often for a log."""

    def __init__(self, total: int, file: TextIO, now_s: Callable[[], float] = time.monotonic) -> None:
        """Begin with so many items in all; lines go to the file."""
        self._total, self._file, self._now_s = total, file, now_s
        self._began_s, self._printed_s, self._done_before = now_s(), -math.inf, 0
        self._printed: CampaignProgress | None = None

    def __call__(self, standing: CampaignProgress) -> None:
        """Print a line, if it is time to."""
        now_s = self._now_s()
        if self._printed is None:  # items of an earlier session do not count for the pace
            self._done_before = standing.over
        if now_s - self._printed_s < (SAME_EVERY_S if standing == self._printed else CHANGED_EVERY_S):
            return
        self._printed, self._printed_s = standing, now_s
        done = f"{standing.over} of {counted(self._total, 'item')} finished"
        pairs = f"{counted(standing.pairs, 'pair')} judged, {standing.violated} violated"
        print(f"mt campaign: {done}, {pairs}{self._pace(standing, now_s)}", file=self._file, flush=True)

    def _pace(self, standing: CampaignProgress, now_s: float) -> str:
        so_far_s, new = now_s - self._began_s, standing.over - self._done_before
        if not new:
            return f"; {so_far_s / 60:.1f} min so far"
        left_s = so_far_s * max(0, self._total - standing.over) / new
        return f"; {so_far_s / 60:.1f} min so far, about {left_s / 60:.1f} min left"


@contextlib.contextmanager
def _bar(total: int) -> Iterator[Callable[[CampaignProgress], None]]:
    from mt_nodes.cli.terminal import progress_bar

    count = "{task.completed}/{task.total} items, {task.fields[pairs]} pairs, {task.fields[violated]} violated"
    with progress_bar(count, label="campaign") as bar:
        task: Any = None

        def show(standing: CampaignProgress) -> None:
            nonlocal task
            done, pairs, violated = standing.over, standing.pairs, standing.violated
            if task is None:  # items of an earlier session do not count for the pace
                task = bar.add_task("", total=total, completed=done, pairs=pairs, violated=violated)
            bar.update(task, completed=done, pairs=pairs, violated=violated)

        yield show
