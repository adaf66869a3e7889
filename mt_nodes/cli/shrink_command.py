# SPDX-License-Identifier: Apache-2.0
"""``mt shrink DIR PAIR``."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mt_nodes.cli.whole_numbers import at_least_one
from mt_nodes.engine.plan import TRANSPORTS

if TYPE_CHECKING:
    from mt_nodes.runs.shrink.shrink_run import ShrinkRun

Tell = Callable[[int, str], None]
#: Of the points that are needed so many are printed; shrunk.json has more.
_SHOWN_POINTS = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.epilog = "example: mt shrink mt_results/latest 0/17/noise_outside_roi_1000/0"
    add = parser.add_argument
    add("dir", type=Path, metavar="DIR", help="results directory of a finished run")
    add("pair", metavar="PAIR", help="a violated one: EPISODE/BUNDLE/RELATION/DRAW, as report and pairs.csv name it")
    advice = "3/3 for a stack that failed in each of five plays, 4/5 for any other"
    add("--confirm", default="", metavar="K/N", help=f"how many of how many plays must fail (default {advice})")
    add("--plays", type=at_least_one, default=500, metavar="N", help="plays at most (default %(default)s)")
    about = "time at most, after which it ends wherever it is (default no limit)"
    add("--minutes", type=_minutes, default=None, metavar="M", help=about)
    add("--transport", default="", choices=TRANSPORTS, metavar="T", help="ros or inprocess (default that of the run)")
    add("--bag", default="", metavar="BAG", help="where the pair's bag is now")
    add("--out", type=Path, metavar="DIR", help="results directory (default DIR/shrunk/<pair>)")
    add("--json", action="store_true", help="print shrunk.json instead of a table")


def run(args: argparse.Namespace) -> int:
    """Make a violated pair small and say what is left of it.

    Returns 0 when there is a smallest form, be it the pair itself, 3 when the pair holds now, 4 or more when the stack
    failed, 130 when it was interrupted; what was found until then is kept.
    """
    from mt_nodes.base.errors import UsageError
    from mt_nodes.base.stats.repeats import Confirm
    from mt_nodes.runs.moral.report_journal import is_campaign
    from mt_nodes.runs.shrink.shrink_run import ShrinkRequest, ShrinkRun

    if is_campaign(args.dir):
        raise UsageError(f"{args.dir}: a moral campaign makes its violated cases small itself; `mt report` shows them")
    if args.confirm:
        Confirm.parse(args.confirm)
    asked = ShrinkRequest(str(args.dir), args.pair, args.transport, args.bag, args.confirm, args.plays, args.minutes)
    told = _carried_out(ShrinkRun.create(asked, args.out))
    if args.json:
        print(json.dumps(told, indent=2))
    else:
        _print(told)
    return int(told["exit_code"])


def _carried_out(shrinking: ShrinkRun) -> dict[str, Any]:
    from mt_nodes.base.suite_client import in_suite
    from mt_nodes.engine.plan import suite_process, suite_stop_s
    from mt_nodes.runs.shrink.shrink_run import TOLD, carry_out

    run = shrinking.run
    with _progress(shrinking.request.plays) as tell:
        if run.request.transport == "inprocess":
            (run.out / "console.log").touch()
            return carry_out(shrinking, shrinking.subject.arms, lambda line: None, lambda verdicts: None, tell)

        def show(event: dict[str, Any]) -> None:
            if "play" in event:
                tell(event["play"], event["words"])

        again = "type the same again with another --out"
        in_suite(suite_process(run.out, os.environ), suite_stop_s(run.stack), show, again)
    told: dict[str, Any] = json.loads((run.out / TOLD).read_text(encoding="utf-8"))
    return told


@contextmanager
def _progress(most: int) -> Iterator[Tell]:
    """Show what is tried, on a terminal; nothing elsewhere."""
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (TextColumn("shrink"), BarColumn(), TextColumn("play {task.completed} of {task.total} at most:"))
    with Progress(*columns, TextColumn("{task.description}"), transient=True, disable=not sys.stdout.isatty()) as bar:
        task = bar.add_task("", total=most)
        yield lambda play, words: bar.update(task, completed=play, description=words)


def _print(told: dict[str, Any]) -> None:
    from mt_nodes.cli.terminal import heading, table, text

    heading(f"pair {told['pair']}")
    text(_how_often(told))
    rows = [(what, row["before"], row["after"]) for what, row in told["before_after"].items()]
    if rows:
        table(("what", "before", "after"), rows, right=("before", "after"))
    if not told["is_followup_of_mutation"]:
        text(f"the reduced input is no follow-up of the relation's mutation any more: {told['why']}")
    _print_scores(told)
    for note in told["notes"]:
        text(note)
    if "trouble" in told:
        text(f"ended early: {', '.join(f'{what}: {why}' for what, why in told['trouble'].items())}")
    plays = sum(step["plays"] for step in told["steps"])
    tried = f"{len(told['steps'])} smaller forms tried in {plays} plays; " if told["steps"] else ""
    text(f"{tried}results in {told['results']}")


def _print_scores(told: dict[str, Any]) -> None:
    from mt_nodes.cli.terminal import table, text

    for x, y, z, *intensity in told.get("needed_points", ())[:_SHOWN_POINTS]:
        bright = f", intensity {intensity[0]:g}" if intensity else ""
        text(f"needed: a point at x {x:.2f}, y {y:.2f}, z {z:.2f} m{bright}")
    if path := told.get("score_path"):
        rows = [
            (
                f"{row['label']} at {', '.join(f'{place:.4g}' for place in row['at'])}",
                *(f"{s:.2f}" for s in row["scores"]),
            )
            for row in path["objects"]
        ]
        steps = [f"{count}{'!' if fails else ''}" for count, fails in zip(path["atoms"], path["violated"], strict=True)]
        table(("score with so many of them (!: violated)", "source", *steps), rows)


def _how_often(told: dict[str, Any]) -> str:
    first = told["first"]
    if first is None:
        return "it was not played often enough to say anything"
    often = f"{first['failed']} of {first['plays']} plays of the pair as it was failed"
    if not first["failed"]:
        return f"{often}: there is nothing to make small; `mt reproduce` says what differs from the run"
    if told["deterministic_so_far"]:
        return f"{often}, and no input failed once and held once"
    return f"{often}: the stack is not deterministic, it fails by chance, and so may what is left here"


def _minutes(text: str) -> float:
    try:
        minutes = float(text)
    except ValueError:
        minutes = math.nan
    if not 0.0 < minutes < math.inf:
        raise argparse.ArgumentTypeError(f"got '{text:.30}', expected a number of minutes above 0")
    return minutes
