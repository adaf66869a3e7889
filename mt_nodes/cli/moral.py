# SPDX-License-Identifier: Apache-2.0
"""``mt experiment moral``."""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from mt_nodes.cli.options import add_fields, add_results, put_out, request_of, resumed_directory
from mt_nodes.runs.moral.moral_request import MoralRequest

if TYPE_CHECKING:
    from mt_nodes.runs.moral.moral_run import MoralRun


def add_moral_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    request = MoralRequest()
    parser.epilog = "example: mt experiment moral --stack my_stack.yaml --principles humans_before_animals --runs 500"
    add_fields(parser, request, "stack", "principles", "pool", "cases", "search", "runs", "minutes", "seed", "faults")
    add_fields(parser, request, "transport", "workers")
    add_results(parser, "campaign", table="tables")


def run_moral(args: argparse.Namespace) -> int:
    """Drive the cases of a campaign, print its outcome, return its exit code."""
    from mt_nodes.runs.moral.moral_run import MoralRun

    if args.resume:
        run = MoralRun.resume(resumed_directory(args, add_moral_arguments))
    else:
        run = MoralRun.create(request_of(MoralRequest, args), args.out)
    return execute_campaign(run, as_json=args.json)


def execute_campaign(run: MoralRun, *, as_json: bool = False) -> int:
    """Drive the cases of a campaign, write its files, print its outcome and return its exit code.

    Raises MtError: nothing was driven, or the suite process ended without a summary.
    """
    from mt_nodes.cli.moral_outcome import print_campaign
    from mt_nodes.runs.moral.report_files import remake

    with _progress(run.stack.name, hidden=as_json) as show:
        _drive(run, show)
    summary = remake(run.out)
    put_out(as_json, summary, lambda: print_campaign(run.out, summary))
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
def _progress(name: str, *, hidden: bool) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """Yield what shows the progress of a campaign."""
    from mt_nodes.cli.terminal import progress_bar

    count = "{task.completed}/{task.total} cases done, {task.fields[violated]} violated, {task.fields[runs]} runs"
    label = f"{name}: {{task.fields[doing]}}"
    with progress_bar(count, hidden=hidden, label=label) as progress:
        task = progress.add_task(name, total=None, doing="starting", violated=0, runs=0)

        def show(standing: Mapping[str, Any]) -> None:
            fields = {key: standing[key] for key in ("doing", "violated", "runs")}
            progress.update(task, total=standing["cases"], completed=standing["through"], **fields)

        yield show
