# SPDX-License-Identifier: Apache-2.0
"""``mt watch [DIR]``."""

from __future__ import annotations

import argparse
import datetime
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rich.console import RenderableType

    from mt_nodes.report.run_view import WatchedRun

#: The journal is read at least so far apart, and at least so many times the duration of reading.
EVERY_S, PAUSES = 0.5, 4.0


class RunInProgress(Protocol):
    """A run of another process."""

    @property
    def finished(self) -> bool:
        """Whether the run has ended."""

    def look(self) -> bool:
        """Read on; return whether there was anything new."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.epilog = "example: mt watch mt_results/latest"
    default = Path("mt_results/latest")
    parser.add_argument(
        "dir",
        type=Path,
        nargs="?",
        default=default,
        metavar="DIR",
        help="directory of a run or campaign (default %(default)s)",
    )


def run(args: argparse.Namespace) -> int:
    """Show a run or campaign until it ends; only once where standard output is no terminal."""
    from mt_nodes.runs.moral.report_journal import is_campaign

    if is_campaign(args.dir):
        from mt_nodes.cli import moral_results

        return moral_results.watch(args.dir)
    from mt_nodes.engine.summary.watch_sums import FILE

    if (args.dir / FILE).is_file():
        from mt_nodes.cli.watch_table import print_watched
        from mt_nodes.report.watch_page import watch_result

        print_watched(watch_result(args.dir), args.dir)
        return 0
    # The link mt_results/latest may change meanwhile.
    return follow(*_watched(args.dir.resolve()))


def print_progress(directory: Path) -> None:
    """Print how far a run or campaign is, once."""
    from mt_nodes.cli.terminal import console
    from mt_nodes.runs.moral.report_journal import is_campaign

    if is_campaign(directory):
        from mt_nodes.cli import moral_results

        moral_results.watch(directory)
        return
    watched, view = _watched(directory)
    watched.look()
    console().print(view())


def _watched(directory: Path) -> tuple[RunInProgress, Callable[[], RenderableType]]:
    """Return the run or campaign of a directory, and what shows it."""
    from mt_nodes.report.run_view import WatchedRun

    if (directory / "campaign.sqlite").is_file():
        from mt_nodes.cli import campaign_command
        from mt_nodes.runs.campaign.campaign_view import WatchedCampaign

        campaign = WatchedCampaign(directory)
        return campaign, lambda: campaign_command.progress_text(campaign)
    watched = WatchedRun(directory)
    return watched, lambda: _view(watched)


def follow(watched: RunInProgress, view: Callable[[], RenderableType]) -> int:
    """Show a run until it ends; only once where standard output is no terminal."""
    from rich.live import Live

    from mt_nodes.cli.terminal import console

    out = console()
    watched.look()
    if not out.is_terminal:
        out.print(view())
        return 0
    with Live(view(), console=out, auto_refresh=False) as live:
        took_s = 0.0
        while not watched.finished:
            time.sleep(max(EVERY_S, PAUSES * took_s))
            began_s = monotonic()
            if watched.look():
                live.update(view(), refresh=True)
            took_s = monotonic() - began_s
        watched.look()
        live.update(view(), refresh=True)
    return 0


def _view(watched: WatchedRun) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    from mt_nodes.cli.outcome import COLUMNS, requirements, row
    from mt_nodes.cli.terminal import Rows

    if not watched.condition:
        return Text(f"{watched.directory}: nothing is judged yet")
    summary = watched.summary()
    rows = [row(name, relation) for name, relation in summary["relations"].items()]
    return Group(
        Text(_title(watched), style="bold"),
        Rows(COLUMNS, rows, right=COLUMNS[2:]),
        *(Text(line) for line in (*requirements(summary["relations"]), *_latency(summary))),
        Text(_totals(watched, summary)),
        *(Text(f"VIOLATED {v['pair']}: {v['reason']}", style="red") for v in watched.violations),
        Text(_end(watched, summary), style="bold"),
    )


def _title(watched: WatchedRun) -> str:
    condition = watched.condition
    faults = f" with {', '.join(condition['faults'])} planted" if condition.get("faults") else ""
    often = Counter(Path(bag).name for bag in condition.get("bags", ()))
    bags = ", ".join(f"{name} ({times} times)" if times > 1 else name for name, times in often.items())
    where = f"on {bags}" if bags else "live"
    mode, pace, seed = (condition.get(name) for name in ("mode", "pace", "seed"))
    return f"{condition.get('stack')}{faults} {where}: {mode}, {pace}, seed {seed}"


def _totals(watched: WatchedRun, summary: dict[str, object]) -> str:
    outcomes: dict[str, int] = summary["outcomes"]  # type: ignore[assignment]
    counts = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items() if count)
    pace = watched.pairs_per_s
    left_s = None if watched.finished else watched.left_s
    left = "" if left_s is None else f", about {datetime.timedelta(seconds=round(left_s))} left"
    return f"{watched.done} pairs: {counts or 'none'}" + (f"; {pace:.1f} pairs/s{left}" if pace else "")


def _latency(summary: dict[str, object]) -> list[str]:
    quantiles: dict[str, dict[str, float]] = summary["latency_ms"]  # type: ignore[assignment]
    return [f"{name}: p50 {q['p50']:.1f} ms, p99 {q['p99']:.1f} ms" for name, q in quantiles.items()]


def _end(watched: WatchedRun, summary: dict[str, object]) -> str:
    if not watched.finished:
        return "running"
    return f"exit code {summary['exit_code']}: {summary['exit_why']}; report: {watched.directory / 'report.html'}"
