# SPDX-License-Identifier: Apache-2.0
"""``mt shrink DIR PAIR``."""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mt_nodes.base.jsonl import read_result
from mt_nodes.cli.options import at_least_one, put_out, real_number
from mt_nodes.engine.plan import TRANSPORTS

if TYPE_CHECKING:
    from mt_nodes.runs.shrink.shrink_run import ShrinkRun

ShowPlay = Callable[[int, str], None]
#: Printed points that the violation needs; shrunk.json has more.
_MAX_POINTS = 10
_minutes = real_number("a number of minutes above 0", lambda value: 0.0 < value < math.inf)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.epilog = "example: mt shrink mt_results/latest 0/17/noise_outside_roi_1000/0"
    add = parser.add_argument
    add("dir", type=Path, metavar="DIR", help="results directory of a run")
    add("pair", metavar="PAIR", help="a violated pair: EPISODE/BUNDLE/RELATION/DRAW, as in report and pairs.csv")
    default = "3/3 for a stack that fails in each of five replays, else 4/5"
    add(
        "--confirm", default="", metavar="K/N", help=f"a smaller form counts if K of N replays fail (default {default})"
    )
    add("--plays", type=at_least_one, default=500, metavar="N", help="replay at most N times (default %(default)s)")
    about = "end after M minutes with the smallest form so far (default no limit)"
    add("--minutes", type=_minutes, default=None, metavar="M", help=about)
    add("--transport", default="", choices=TRANSPORTS, metavar="T", help="ros, inprocess (default that of the run)")
    add("--bag", default="", metavar="BAG", help="path of the pair's bag, where it has moved")
    add("--out", type=Path, metavar="DIR", help="results directory (default DIR/shrunk/<pair>)")
    add("--json", action="store_true", help="print shrunk.json instead of a table")


def run(args: argparse.Namespace) -> int:
    """Reduce a violated pair and print its smallest form.

    Returns 0 if there is one, even if it is the pair itself, 3 if the pair holds now, 4 or more if the stack failed,
    130 if it was interrupted; the smallest form so far is saved.
    """
    from mt_nodes.base.errors import UsageError
    from mt_nodes.base.stats.repeats import Confirm
    from mt_nodes.runs.moral.report_journal import is_campaign
    from mt_nodes.runs.shrink.shrink_run import ShrinkRequest, ShrinkRun

    if is_campaign(args.dir):
        raise UsageError(f"{args.dir}: a moral campaign reduces its violated cases itself; `mt report` shows them")
    if args.confirm:
        Confirm.parse(args.confirm)
    request = ShrinkRequest(str(args.dir), args.pair, args.transport, args.bag, args.confirm, args.plays, args.minutes)
    result = _execute(ShrinkRun.create(request, args.out))
    put_out(args.json, result, lambda: print_result(result))
    return int(result["exit_code"])


def _execute(shrinking: ShrinkRun) -> dict[str, Any]:
    from mt_nodes.base.suite_client import in_suite
    from mt_nodes.engine.plan import suite_process, suite_stop_s
    from mt_nodes.runs.shrink.shrink_run import RESULT_FILE, carry_out

    run = shrinking.run
    with _progress(shrinking.request.plays) as show_play:
        if run.request.transport == "inprocess":
            (run.out / "console.log").touch()
            return carry_out(shrinking, shrinking.subject.arms, lambda line: None, lambda verdicts: None, show_play)

        def show(event: dict[str, Any]) -> None:
            if "play" in event:
                show_play(event["play"], event["words"])

        resume = "type the same command again with another --out"
        in_suite(suite_process(run.out, os.environ), suite_stop_s(run.stack), show, resume)
    result: dict[str, Any] = read_result(run.out / RESULT_FILE)
    return result


@contextmanager
def _progress(most: int) -> Iterator[ShowPlay]:
    """Show the smaller forms that are tried, on a terminal."""
    from mt_nodes.cli.terminal import progress_bar

    with progress_bar("replay {task.completed} of at most {task.total}: {task.description}", label="shrink") as bar:
        task = bar.add_task("", total=most)
        yield lambda play, words: bar.update(task, completed=play, description=words)


def print_result(result: dict[str, Any]) -> None:
    """Print what a violated pair was reduced to, and what to type next."""
    from mt_nodes.cli.outcome import print_steps
    from mt_nodes.cli.terminal import heading, table, text
    from mt_nodes.engine.next_steps import pair_steps

    heading(f"pair {result['pair']}")
    text(_how_often(result))
    rows = [(what, row["before"], row["after"]) for what, row in result["before_after"].items()]
    if rows:
        table(("what", "before", "after"), rows, right=("before", "after"))
    if not result["is_followup_of_mutation"]:
        text(f"the reduced input is not a follow-up of the relation's mutation: {result['why']}")
    _print_scores(result)
    for note in result["notes"]:
        text(note)
    if "trouble" in result:
        text(f"ended early: {', '.join(f'{what}: {why}' for what, why in result['trouble'].items())}")
    plays = sum(step["plays"] for step in result["steps"])
    tried = f"{len(result['steps'])} smaller forms tried in {plays} replays; " if result["steps"] else ""
    text(f"{tried}results in {result['results']}")
    if result["steps"]:
        out = Path(result["results"])
        print_steps(out, [step for step in pair_steps(out, result["pair"]) if step.name != "shrink"])


def _print_scores(result: dict[str, Any]) -> None:
    from mt_nodes.cli.terminal import table, text

    for x, y, z, *intensity in result.get("needed_points", ())[:_MAX_POINTS]:
        bright = f", intensity {intensity[0]:g}" if intensity else ""
        text(f"needed: a point at x {x:.2f}, y {y:.2f}, z {z:.2f} m{bright}")
    if path := result.get("score_path"):
        rows = [
            (
                f"{row['label']} at {', '.join(f'{place:.4g}' for place in row['at'])}",
                *(f"{s:.2f}" for s in row["scores"]),
            )
            for row in path["objects"]
        ]
        steps = [f"{count}{'!' if fails else ''}" for count, fails in zip(path["atoms"], path["violated"], strict=True)]
        table(("score by number of changes (!: violated)", "source", *steps), rows)


def _how_often(result: dict[str, Any]) -> str:
    first = result["first"]
    if first is None:
        return "the pair was not replayed often enough for a result"
    often = f"{first['failed']} of {first['plays']} replays of the original pair failed"
    if not first["failed"]:
        return f"{often}: there is nothing to reduce; `mt reproduce` shows what differs from the run"
    if result["deterministic_so_far"]:
        return f"{often}, and no input both failed and held"
    return f"{often}: the stack is not deterministic, so the smallest form may fail only by chance"
