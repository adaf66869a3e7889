# SPDX-License-Identifier: Apache-2.0
"""``mt search BAG``."""

from __future__ import annotations

import argparse
import dataclasses
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mt_nodes.base.errors import UsageError
from mt_nodes.cli.arguments import role_topics
from mt_nodes.cli.options import add_fields, add_results, help_of, put_out, request_of, resumed_directory
from mt_nodes.engine.plan import ReplayRequest
from mt_nodes.runs.campaign.search.search_request import SearchRequest

if TYPE_CHECKING:
    from mt_nodes.runs.campaign.search.search_run import SearchRun
    from mt_nodes.runs.campaign.search.trial import Trial

#: Bundles per episode by default: all are kept in memory, and each trial takes them all.
BUNDLES = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.epilog = "example: mt search my_bag --relation noise_outside_roi_1000 --stack my_stack.yaml --trials 40"
    replay, search = ReplayRequest(bags=(), limit=BUNDLES), SearchRequest()
    add_fields(parser, replay, "bags")
    parser.add_argument("--relation", default="", metavar="ID", help="relation to search: its name, or a .yaml file")
    over = {"help": f"{help_of(SearchRequest)['over']} (default: all that say how strong the change is)"}
    add_fields(parser, search, "over", "reach", "trials", "repeats", "confirm", "tolerance", over=over)
    add_fields(parser, replay, "limit", "draws", "stack", "mode", "transport", "seed", "faults", "topics")
    add_fields(parser, replay, "transforms", "qos")
    add_results(parser, "search", table="a table")


def run(args: argparse.Namespace) -> int:
    """Search, print the outcome, return the exit code: 1 where a violation was found and confirmed."""
    from mt_nodes.runs.campaign.search.search_run import SearchRun

    if args.resume:
        search = SearchRun.resume(resumed_directory(args, add_arguments))
    else:
        search = SearchRun.create(_request(args), args.out)
    summary = execute_search(search)
    put_out(args.json, summary, lambda: print_summary(summary, search.out))
    return int(summary["exit_code"])


def execute_search(run: SearchRun) -> dict[str, Any]:
    """Execute a search, in this process or in a suite process, and return the summary."""
    from mt_nodes.base.suite_client import in_suite
    from mt_nodes.cli.terminal import progress_bar
    from mt_nodes.engine.plan import suite_process, suite_stop_s
    from mt_nodes.runs.campaign.search.search_execution import search
    from mt_nodes.runs.replay.execute import in_process_arms

    with progress_bar("{task.completed}/{task.total} trials, {task.fields[violated]} violate") as bar:
        task = bar.add_task(run.relation.id, total=run.request.trials, violated=0)

        def show(trials: int, violated: int) -> None:
            bar.update(task, completed=trials, violated=violated)

        if run.request.replay.transport == "inprocess":
            return search(run, in_process_arms, _counting(show))
        afterwards = f"`mt search --resume {run.out}` goes on"
        process, stop_s = suite_process(run.out, os.environ), suite_stop_s(run.stack)
        return in_suite(process, stop_s, lambda event: show(event["trials"], event["violated"]), afterwards)


def _counting(show: Callable[[int, int], None]) -> Callable[[Trial], None]:
    trials: list[Trial] = []

    def count(trial: Trial) -> None:
        trials.append(trial)
        show(len(trials), sum(t.violated for t in trials))

    return count


def _request(args: argparse.Namespace) -> SearchRequest:
    if not args.bags:
        raise UsageError("got no bag; type `mt search BAG --relation ID`, or `mt search --resume DIR`")
    if not args.relation:
        raise UsageError("--relation: got none, expected the relation to search; see `mt list relations`")
    replay = request_of(ReplayRequest, args, relations=(args.relation,), topics=role_topics(args.topics))
    names = {field.name for field in dataclasses.fields(SearchRequest)} - {"replay"}
    return SearchRequest(replay=replay, **{name: getattr(args, name) for name in names})


def print_summary(summary: dict[str, Any], out: Path) -> None:
    """Print what was searched, what was found, whether it was confirmed, and where the results are."""
    from mt_nodes.cli.outcome import print_steps
    from mt_nodes.cli.terminal import heading, table, text
    from mt_nodes.engine.next_steps import pair_steps

    heading(f"relation {summary['relation']}")
    best = summary["found"] or summary["nearest"]
    title = "found" if summary["found"] else "nearest to a violation"
    columns = ("parameter", "weak end", "strong end", title, "unit")
    table(columns, [_row(axis, best) for axis in summary["axes"]], right=columns[1:4])
    text(f"{summary['trials']} trials by {summary['method'] or 'none'}: {_counts(summary['outcomes'])}")
    if summary["note"]:
        text(summary["note"])
    if summary["trials_spent"]:
        text("the search used up its trials before it ended; --trials N allows more")
    if found := summary["found"]:
        text(f"strength {found['strength']:.3f} of the searched range; pair {found['pair']}: {found['reason']}")
    for one in summary["confirmations"]:
        confirmed = "confirmed" if one["confirmed"] else "not confirmed"
        text(
            f"trial {one['trial']}: violated in {one['violated']} of {one['plays']} replays of the same input, the "
            f"control in {one['control']}: {confirmed}"
        )
    if found:
        text(f"as a relation: {out / found['relation_file']}; as a replay: {out / found['results']}")
    text(f"exit code {summary['exit_code']}: {summary['exit_why']}")
    text(f"results in {out}, report: {out / 'report.html'}")
    if found:
        print_steps(out, pair_steps(out / found["results"], found["pair"]))


def _row(axis: dict[str, Any], best: dict[str, Any] | None) -> tuple[str, ...]:
    value = "-" if best is None else f"{best['values'][axis['name']]:.6g}"
    return axis["name"], f"{axis['weak']:.6g}", f"{axis['strong']:.6g}", value, axis["unit"]


def _counts(outcomes: dict[str, int]) -> str:
    return ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items()) or "none"
