# SPDX-License-Identifier: Apache-2.0
"""``mt search BAG``."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mt_nodes.base.errors import UsageError
from mt_nodes.cli.arguments import help_of, role_topics
from mt_nodes.cli.replay_command import refuse_more_than_resume
from mt_nodes.cli.whole_numbers import at_least_one, whole_number
from mt_nodes.engine.plan import MODES, TRANSPORTS, ReplayRequest
from mt_nodes.runs.campaign.search.search_request import REACHES, SearchRequest

if TYPE_CHECKING:
    from mt_nodes.runs.campaign.search.search_run import SearchRun
    from mt_nodes.runs.campaign.search.trial import Trial

#: All bundles are kept in memory, and each trial is given them all.
BUNDLES = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.epilog = "example: mt search my_bag --relation noise_outside_roi_1000 --stack my_stack.yaml --trials 40"
    add, played, asked = parser.add_argument, ReplayRequest(bags=()), SearchRequest()
    about = {name: f"{text} (default %(default)s)" for name, text in help_of(SearchRequest).items()}
    of_replay = help_of(ReplayRequest)
    add("bags", metavar="BAG", nargs="*", help=of_replay["bags"])
    add("--relation", default="", metavar="ID", help="relation or .yaml file whose least violating change is sought")
    add("--over", default="", metavar="NAME,…", help=help_of(SearchRequest)["over"] + " (default every strength)")
    add("--reach", default=asked.reach, choices=REACHES, help=about["reach"])
    add("--trials", type=at_least_one, default=asked.trials, metavar="N", help=about["trials"])
    add("--repeats", type=at_least_one, default=asked.repeats, metavar="N", help=about["repeats"])
    add("--confirm", default=asked.confirm, metavar="K/N", help=about["confirm"])
    add("--tolerance", type=float, default=asked.tolerance, metavar="T", help=about["tolerance"])
    add("--limit", type=at_least_one, default=BUNDLES, metavar="N", help=f"{of_replay['limit']} (default {BUNDLES})")
    add("--draws", type=at_least_one, default=played.draws, metavar="N", help=of_replay["draws"])
    add("--stack", default=played.stack, help=f"{of_replay['stack']} (default %(default)s)")
    add("--mode", default=played.mode, choices=MODES, help="how arms are made of instances of the stack")
    add("--transport", default=played.transport, choices=TRANSPORTS, help="ros or inprocess (default %(default)s)")
    add("--seed", type=whole_number, default=played.seed, help=f"{of_replay['seed']} (default %(default)s)")
    add("--fault", action="append", default=[], metavar="NAME", help=of_replay["faults"])
    add("--topic", action="append", default=[], metavar="ROLE=TOPIC", help=of_replay["topics"])
    add("--transforms", default="", metavar="FILE", help=of_replay["transforms"])
    add("--qos", default="", metavar="FILE", help=of_replay["qos"])
    add("--out", metavar="DIR", help="results directory (default mt_results/<time>)")
    add("--resume", type=Path, metavar="DIR", help="go on with the search in DIR; nothing else is given")
    add("--json", action="store_true", help="print summary.json instead of a table")


def run(args: argparse.Namespace) -> int:
    """Search, print what came out, return the exit code: 1 where a violation was found and confirmed."""
    from mt_nodes.cli.replay_execution import go_where_it_started
    from mt_nodes.runs.campaign.search.search_run import SearchRun

    if args.resume:
        refuse_more_than_resume(args, add_arguments, bags="BAG")
        out = args.resume.resolve()
        go_where_it_started(out)
        made = SearchRun.resume(out)
    else:
        made = SearchRun.create(_request(args), args.out)
    summary = carry_out(made)
    if args.json:
        print(json.dumps(summary, indent=2))
    else:
        print_summary(summary, made.out)
    return int(summary["exit_code"])


def carry_out(run: SearchRun) -> dict[str, Any]:
    """Carry out a search, in this process or in that of its suite, and return the summary."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from mt_nodes.base.suite_client import in_suite
    from mt_nodes.engine.plan import suite_process, suite_stop_s
    from mt_nodes.runs.campaign.search.search_execution import search
    from mt_nodes.runs.replay.execute import in_process_arms

    words = TextColumn("{task.completed}/{task.total} trials, {task.fields[violated]} violate")
    columns = (TextColumn("{task.description}"), BarColumn(), words, TimeRemainingColumn())
    with Progress(*columns, transient=True, disable=not sys.stdout.isatty()) as bar:
        task = bar.add_task(run.relation.id, total=run.request.trials, violated=0)

        def told(trials: int, violated: int) -> None:
            bar.update(task, completed=trials, violated=violated)

        if run.request.replay.transport == "inprocess":
            return search(run, in_process_arms, _counting(told))
        afterwards = f"`mt search --resume {run.out}` goes on"
        process, stop_s = suite_process(run.out, os.environ), suite_stop_s(run.stack)
        return in_suite(process, stop_s, lambda event: told(event["trials"], event["violated"]), afterwards)


def _counting(told: Callable[[int, int], None]) -> Callable[[Trial], None]:
    trials: list[Trial] = []

    def show(trial: Trial) -> None:
        trials.append(trial)
        told(len(trials), sum(t.violated for t in trials))

    return show


def _request(args: argparse.Namespace) -> SearchRequest:
    if not args.bags:
        raise UsageError("got no bag; type `mt search BAG --relation ID`, or `mt search --resume DIR`")
    if not args.relation:
        raise UsageError("--relation: got none, expected the relation to search; see `mt list relations`")
    return SearchRequest(
        replay=ReplayRequest(
            bags=tuple(args.bags),
            relations=(args.relation,),
            stack=args.stack,
            mode=args.mode,
            transport=args.transport,
            limit=args.limit,
            seed=args.seed,
            faults=tuple(args.fault),
            topics=role_topics(args.topic),
            transforms=args.transforms,
            qos=args.qos,
            draws=args.draws,
            plugins=tuple(str(p.resolve()) for p in args.plugins),
        ),
        over=tuple(name.strip() for name in args.over.split(",") if name.strip()),
        reach=args.reach,
        trials=args.trials,
        repeats=args.repeats,
        confirm=args.confirm,
        tolerance=args.tolerance,
    )


def print_summary(summary: dict[str, Any], out: Path) -> None:
    """Print what was searched over, what was found, how sure that is, and where everything is."""
    from mt_nodes.cli.terminal import heading, table, text

    heading(f"relation {summary['relation']}")
    told = summary["found"] or summary["nearest"]
    word = "found" if summary["found"] else "nearest to a violation"
    columns = ("parameter", "weak end", "strong end", word, "unit")
    table(columns, [_row(axis, told) for axis in summary["axes"]], right=columns[1:4])
    text(f"{summary['trials']} trials by {summary['method'] or 'none'}: {_counts(summary['outcomes'])}")
    if summary["note"]:
        text(summary["note"])
    if summary["trials_spent"]:
        text("the trials were spent before the search came to its end; --trials gives it more")
    if found := summary["found"]:
        text(f"strength {found['strength']:.3f} of what was searched; pair {found['pair']}: {found['reason']}")
    for one in summary["confirmations"]:
        sure = "confirmed" if one["confirmed"] else "not confirmed"
        text(
            f"trial {one['trial']}: violated in {one['violated']} of {one['plays']} plays of the same input, the "
            f"control in {one['control']}: {sure}"
        )
    if found:
        text(f"as a relation: {out / found['relation_file']}; as a replay: {out / found['results']}")
    text(f"exit code {summary['exit_code']}: {summary['exit_why']}")
    text(f"results in {out}")


def _row(axis: dict[str, Any], told: dict[str, Any] | None) -> tuple[str, ...]:
    value = "-" if told is None else f"{told['values'][axis['name']]:.6g}"
    return axis["name"], f"{axis['weak']:.6g}", f"{axis['strong']:.6g}", value, axis["unit"]


def _counts(outcomes: dict[str, int]) -> str:
    return ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items()) or "none"
