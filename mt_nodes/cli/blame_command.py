# SPDX-License-Identifier: Apache-2.0
"""``mt blame DIR PAIR``."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mt_nodes.cli.options import put_out

if TYPE_CHECKING:
    from collections.abc import Callable

    from mt_nodes.runs.blame.blame_run import BlameRun


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.epilog = "example: mt blame mt_results/latest 0/17/noise_outside_roi_1000/0"
    add = parser.add_argument
    add("dir", type=Path, metavar="DIR", help="results directory of a run of mt replay, scenario or live")
    add("pair", metavar="PAIR", help="a violated pair: EPISODE/BUNDLE/RELATION/DRAW, as in report and pairs.csv")
    about = "pattern of topics to record, such as '/perception/*' (default all); inputs and outputs always are"
    add("--topics", action="append", default=[], metavar="PATTERN", help=about)
    about = "play the pair, and the source alone, N times each (default %(default)s)"
    add("--repeats", type=int, default=6, metavar="N", help=about)
    add("--bag", default="", metavar="BAG", help="path of the pair's bag, where it has moved")
    add("--out", type=Path, metavar="DIR", help="results directory (default DIR/blamed/<pair>)")
    add("--json", action="store_true", help="print blame.json instead of a table")


def run(args: argparse.Namespace) -> int:
    """Play a violated pair again with all topics recorded, and name the node where the difference begins.

    Returns 0 if a node is named, 3 if none can be, such as of a pair that holds now, 4 or more if the stack failed.
    """
    from mt_nodes.base.errors import UsageError
    from mt_nodes.runs.blame.blame_run import BlameRequest, BlameRun
    from mt_nodes.runs.moral.report_journal import is_campaign

    if is_campaign(args.dir):
        raise UsageError(f"{args.dir}: got a moral campaign, expected a run of mt replay, scenario or live")
    request = BlameRequest(str(args.dir), args.pair, args.bag, tuple(args.topics), args.repeats)
    result = _execute(BlameRun.create(request, args.out))
    report = _drawn(args.dir) if "graph" in result and not args.out else None
    put_out(args.json, result, lambda: print_result(result, report))
    return int(result["exit_code"])


def _execute(blaming: BlameRun) -> dict[str, Any]:
    from mt_nodes.base.jsonl import read_result
    from mt_nodes.base.suite_client import in_suite
    from mt_nodes.engine.plan import suite_process, suite_stop_s
    from mt_nodes.engine.summary.blame_headline import FILE

    with _progress(2 * blaming.request.repeats) as show_play:

        def show(event: dict[str, Any]) -> None:
            if "play" in event:
                show_play(event["play"], event["words"])

        resume = "type the same command again with another --out"
        in_suite(suite_process(blaming.out, os.environ), suite_stop_s(blaming.run.stack), show, resume)
    result: dict[str, Any] = read_result(blaming.out / FILE)
    return result


@contextmanager
def _progress(plays: int) -> Iterator[Callable[[int, str], None]]:
    from mt_nodes.cli.terminal import progress_bar

    with progress_bar("play {task.completed} of {task.total}: {task.description}", label="blame") as bar:
        task = bar.add_task("", total=plays)
        yield lambda play, words: bar.update(task, completed=play, description=words)


def _drawn(directory: Path) -> Path:
    """Make the report of the run again, with the graph in it."""
    from mt_nodes.report.run_files import remake

    remake(directory)
    return directory / "report.html"


def print_result(result: dict[str, Any], report: Path | None = None) -> None:
    """Print the graph of the stack, topic by topic, and which node it begins in; ``report``: where it is drawn."""
    from mt_nodes.cli.terminal import heading, table, text
    from mt_nodes.engine.summary.blame_headline import headline, in_order

    heading(f"pair {result['pair']}")
    if "graph" in result:
        text(f"violated in {result['violated']} of {result['repeats']} plays; the source was played alone as often")
        rows = [_row(topic, result) for topic in in_order(result)]
        table(("topic", "from", "state", "pair", "control", "p", "what"), rows, right=("pair", "control", "p"))
    text(headline(result))
    text(f"results in {result['results']}" + (f", drawn in {report}" if report else ""))


def _row(topic: dict[str, Any], result: dict[str, Any]) -> tuple[str, ...]:
    from mt_nodes.engine.summary.blame_headline import publishers, spread

    whose = publishers(result, topic["topic"])
    if "pair" not in topic:
        return (topic["topic"], whose, topic["state"], "", "", "", "")
    pair, control = (spread(topic[name]) for name in ("pair", "control"))
    return (topic["topic"], whose, topic["state"], pair, control, f"{topic['p']:.2g}", topic["words"])
