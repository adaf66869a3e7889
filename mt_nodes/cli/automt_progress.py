# SPDX-License-Identifier: Apache-2.0
"""How ``mt experiment automt`` shows how far it is: one bar over all that it does, with the time that is left."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn


class ProgressBar:
    """A bar on a terminal, nothing elsewhere."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress, self._task = progress, task
        self._before = 0

    def doing(self, what: str, done: int) -> None:
        """Tell what is being done, and how much of it is."""
        self._progress.update(self._task, description=what, completed=done)

    def begin(self, what: str, total: int) -> None:
        """Begin with something of which it is known how much there is."""
        self._before = 0
        self._progress.reset(self._task, total=total, description=what)

    def name(self, stack: str) -> None:
        """Tell which stack is next."""
        self._before = int(self._progress.tasks[0].completed)
        self._progress.update(self._task, description=stack)

    def advance(self, count: int) -> None:
        """Tell that more is done."""
        self._progress.advance(self._task, count)

    def so_far(self, count: int) -> None:
        """Tell how much is done since :meth:`name`."""
        self._progress.update(self._task, completed=self._before + count)


@contextmanager
def showing(*, hidden: bool) -> Iterator[ProgressBar]:
    """Yield what shows how far it is.

    Args:
        hidden: something else goes to standard output.
    """
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.completed:.0f}/{task.total}", markup=False),
        TimeRemainingColumn(),
    )
    with Progress(*columns, transient=True, disable=hidden or not sys.stdout.isatty()) as progress:
        yield ProgressBar(progress, progress.add_task("begins", total=None))
