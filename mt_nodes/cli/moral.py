# SPDX-License-Identifier: Apache-2.0
"""``mt experiment moral``."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mt_nodes.cli.arguments import help_of
from mt_nodes.cli.replay_command import refuse_more_than_resume
from mt_nodes.cli.whole_numbers import at_least_one, whole_number
from mt_nodes.runs.moral.moral_request import MoralRequest

if TYPE_CHECKING:
    from mt_nodes.runs.moral.moral_run import MoralRun


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    default, about = MoralRequest(), help_of(MoralRequest)
    with_default = {name: f"{text} (default %(default)s)" for name, text in about.items()}
    parser.epilog = "example: mt experiment moral --stack my_stack.yaml --principles humans_before_animals --runs 500"
    add = parser.add_argument
    add("--stack", default=default.stack, help=with_default["stack"])
    add(
        "--principles",
        metavar="ID,…",
        default=",".join(default.principles),
        help=f"{about['principles']} (default {', '.join(default.principles)})",
    )
    add("--pool", default=default.pool, metavar="NAME", help=with_default["pool"])
    add("--cases", type=at_least_one, default=default.cases, metavar="N", help=with_default["cases"])
    add("--search", type=whole_number, default=default.search, metavar="N", help=with_default["search"])
    add("--runs", type=whole_number, default=default.runs, metavar="N", help=with_default["runs"])
    add("--minutes", type=float, default=default.minutes, metavar="M", help=f"{about['minutes']} (default no limit)")
    add("--seed", type=whole_number, default=default.seed, help=with_default["seed"])
    add("--fault", action="append", default=[], metavar="NAME", help=about["faults"])
    add("--transport", default=default.transport, help=about["transport"])
    add("--workers", type=whole_number, default=default.workers, metavar="N", help=with_default["workers"])
    add("--out", metavar="DIR", help="results directory (default mt_results/<time>)")
    add("--resume", type=Path, metavar="DIR", help="go on with the campaign in DIR; nothing else is given")
    add("--json", action="store_true", help="print summary.json instead of tables")


def run(args: argparse.Namespace) -> int:
    """Carry out a campaign, print what it came to, return its exit code."""
    from mt_nodes.cli.replay_execution import go_where_it_started
    from mt_nodes.runs.moral.moral_run import MoralRun

    if args.resume:
        refuse_more_than_resume(args, add_arguments)
        out = args.resume.resolve()
        go_where_it_started(out)
        return conduct(MoralRun.resume(out), as_json=args.json)
    return conduct(MoralRun.create(_request(args), args.out), as_json=args.json)


def conduct(run: MoralRun, *, as_json: bool = False) -> int:
    """Carry out a campaign, write its files, print what it came to and return its exit code.

    Raises:
        MtError: nothing was driven, or the suite process ended without a summary.
    """
    from mt_nodes.cli.moral_outcome import print_campaign
    from mt_nodes.runs.moral.report_files import remake

    with _bar(run.stack.name, aside=as_json) as show:
        _drive(run, show)
    summary = remake(run.out)
    if as_json:
        print(json.dumps(summary, indent=2))
    else:
        print_campaign(run.out, summary)
    return int(summary["exit_code"])


def _drive(run: MoralRun, show: Callable[[Mapping[str, Any]], None]) -> None:
    from mt_nodes.base.environment import keep_freed_memory
    from mt_nodes.base.suite_client import in_suite
    from mt_nodes.engine.plan import suite_process, suite_stop_s
    from mt_nodes.runs.moral.campaign import execute

    if run.request.transport == "inprocess":
        (run.out / "console.log").touch()
        keep_freed_memory()
        execute(run, lambda standing: show(vars(standing)))
    else:
        suite = suite_process(run.out, os.environ)
        in_suite(suite, suite_stop_s(run.stack), show, f"`mt experiment moral --resume {run.out}` goes on")


@contextlib.contextmanager
def _bar(name: str, *, aside: bool) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """Yield what shows how far a campaign is: a bar on a terminal, nothing elsewhere.

    Args:
        aside: something else goes to standard output.
    """
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn(f"{name}: {{task.fields[doing]}}", markup=False),
        BarColumn(),
        TextColumn(
            "{task.completed}/{task.total} cases through, {task.fields[violated]} violated, {task.fields[runs]} runs"
        ),
        TimeElapsedColumn(),
    )
    with Progress(*columns, transient=True, disable=aside or not sys.stdout.isatty()) as progress:
        task = progress.add_task(name, total=None, doing="begins", violated=0, runs=0)

        def show(standing: Mapping[str, Any]) -> None:
            told = {key: standing[key] for key in ("doing", "violated", "runs")}
            progress.update(task, total=standing["cases"], completed=standing["through"], **told)

        yield show


def _request(args: argparse.Namespace) -> MoralRequest:
    return MoralRequest(
        principles=tuple(name.strip() for name in args.principles.split(",") if name.strip()),
        stack=args.stack,
        pool=args.pool,
        cases=args.cases,
        search=args.search,
        runs=args.runs,
        minutes=args.minutes,
        seed=args.seed,
        faults=tuple(args.fault),
        transport=args.transport,
        workers=args.workers,
        plugins=tuple(str(p.resolve()) for p in args.plugins),
    )
