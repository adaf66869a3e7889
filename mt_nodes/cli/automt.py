# SPDX-License-Identifier: Apache-2.0
"""``mt experiment automt BAG…``."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from mt_nodes.base.errors import ExitCode, InfrastructureError
from mt_nodes.cli.arguments import role_topics
from mt_nodes.cli.options import add_fields, add_results, request_of, resumed_directory, settings
from mt_nodes.runs.automt.automt_request import AutomtRequest

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from mt_nodes.runs.automt.automt_run import AutomtRun
    from mt_nodes.runs.automt.proposals import ProposalSet
    from mt_nodes.runs.replay.replay_run import Run


#: How often a log gets a line.
LINE_EVERY_S = 10.0


class ProgressBar:
    """One bar over all that the experiment does; lines on standard error where standard output is no terminal."""

    def __init__(self, progress: Progress, task: TaskID, *, lines: bool = False) -> None:
        self._progress, self._task, self._lines = progress, task, lines
        self._before, self._printed_s, self._printed = 0, 0.0, ""

    def count(self, what: str, done: int) -> None:
        """Show what is being done, and how much of it is done."""
        self._progress.update(self._task, description=what, completed=done)
        self._print()

    def begin(self, what: str, total: int) -> None:
        """Begin a part with a known number of steps."""
        self._before = 0
        self._progress.reset(self._task, total=total, description=what)
        self._print()

    def name(self, stack: str) -> None:
        """Show which stack is next."""
        self._before = int(self._progress.tasks[0].completed)
        self._progress.update(self._task, description=stack)
        self._print()

    def advance(self, count: int) -> None:
        """Count more steps as done."""
        self._progress.advance(self._task, count)
        self._print()

    def done_with_stack(self, count: int) -> None:
        """Show how many steps are done since :meth:`name`."""
        self._progress.update(self._task, completed=self._before + count)
        self._print()

    def _print(self) -> None:
        task = self._progress.tasks[0]
        now_s = time.monotonic()
        if not self._lines or not task.description:
            return
        if task.description == self._printed and now_s - self._printed_s < LINE_EVERY_S:
            return
        self._printed, self._printed_s = task.description, now_s
        of = f" of {task.total:.0f}" if task.total else ""
        print(f"mt experiment automt: {task.description}: {task.completed:.0f}{of}", file=sys.stderr, flush=True)


def add_automt_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    request = AutomtRequest()
    parser.epilog = (
        "example: mt experiment automt my_bag --stack pilotnet --stack my_stack.yaml --fact roads=intersection"
    )
    add_fields(parser, request, "bags", "stacks", "regions", "methods", "frames", "rounds", "bound", "models")
    add_fields(parser, request, "models_file", "readers", "judges", "samples", "least_agreement", "embed", "nearest")
    add_fields(parser, request, "scene_model", "scene_samples", "detectors", "edit_model", "check_model")
    add_fields(parser, request, "transport", "facts", "topics", "transforms", "limit", "seed")
    add_results(parser, "experiment", "automt.json", table="tables")


def run_automt(args: argparse.Namespace) -> int:
    """Run the experiment, print its tables beside the paper's, return its exit code."""
    from mt_nodes.runs.automt.automt_run import AutomtRun

    if args.resume:
        run = AutomtRun.resume(resumed_directory(args, add_automt_arguments))
    else:
        run = AutomtRun.create(_request(args), args.out)
    return execute_experiment(run, as_json=args.json)


def execute_experiment(run: AutomtRun, *, as_json: bool = False) -> int:
    """Execute an experiment, write its files, print its outcome and return its exit code.

    Raises MtError: it failed; it can be resumed.
    """
    from mt_nodes.cli.automt_outcome import print_experiment
    from mt_nodes.cli.terminal import progress_bar
    from mt_nodes.runs.automt.automt_run import summary_of
    from mt_nodes.runs.automt.files import write_all
    from mt_nodes.runs.automt.proposal_results import judge_all
    from mt_nodes.runs.automt.tables import tabulate

    with progress_bar("{task.completed:.0f}/{task.total}", hidden=as_json) as progress:
        lines = not as_json and not sys.stdout.isatty()
        bar = ProgressBar(progress, progress.add_task("starting", total=None), lines=lines)
        proposed = _proposals(run, bar)
        if not any(one.relation for one in proposed.proposals):
            return _nothing_applies(run, proposed)
        replays = run.replays()
        if not _replay_all(replays, bar):
            return _interrupted(run)
        _refuse_all_failed(replays)
        bar.begin("judging", len({(one.relation, one.case, one.round) for one in proposed.proposals if one.relation}))
        results = judge_all(run, proposed, replays, bar.advance)
    summaries = {name: summary_of(replay.out) for name, replay in replays.items()}
    table = tabulate(run.request, list(replays), proposed, results, summaries)
    files = write_all(run.out, table)
    if as_json:
        print(json.dumps(table, indent=1))
    else:
        print_experiment(run.out, table, files)
    return int(table["exit_code"])


def _proposals(run: AutomtRun, bar: ProgressBar) -> ProposalSet:
    """Return the relations of every case, which stay as they are once they are chosen."""
    from mt_nodes.runs.automt.proposal_methods import propose

    proposed = run.proposed
    if proposed is None:
        proposed = propose(run, bar.count)
        run.freeze(proposed)
    return proposed


def _replay_all(replays: Mapping[str, Run], bar: ProgressBar) -> bool:
    """Replay the cases into every stack; return False if the user interrupted it."""
    from mt_nodes.runs.automt.automt_run import finished, summary_of

    left = {name: replay for name, replay in replays.items() if not finished(replay.out)}
    bar.begin("", sum(replay.pairs_to_come for replay in left.values()))
    for name, replay in left.items():
        bar.name(name)
        _replay(replay, bar)
        if summary_of(replay.out).get("interrupted", True):
            return False
    return True


def _replay(replay: Run, bar: ProgressBar) -> None:
    from mt_nodes.base.environment import keep_freed_memory
    from mt_nodes.base.suite_client import in_suite
    from mt_nodes.engine.plan import suite_process, suite_stop_s
    from mt_nodes.runs.replay.execute import execute, in_process_arms

    if replay.request.transport == "inprocess":
        (replay.out / "console.log").touch()
        keep_freed_memory()
        execute(
            replay,
            lambda ending: in_process_arms(replay, ending),
            lambda line: None,
            lambda verdicts: bar.advance(len(verdicts)),
        )
        return
    stop_s = suite_stop_s(replay.stack)
    afterwards = f"`mt experiment automt --resume {replay.out.parent}` goes on"
    suite = suite_process(replay.out, os.environ)
    in_suite(suite, stop_s, lambda event: bar.done_with_stack(event["done"]), afterwards)


def _refuse_all_failed(replays: Mapping[str, Run]) -> None:
    """Refuse to judge where the replays of all stacks failed. Raises InfrastructureError: saying how each failed."""
    from mt_nodes.runs.automt.automt_run import finished, summary_of

    if not any(finished(replay.out) for replay in replays.values()):
        whys = [f"stack '{name}': {summary_of(replay.out)['infrastructure']}" for name, replay in replays.items()]
        raise InfrastructureError("; ".join(whys))


def _interrupted(run: AutomtRun) -> int:
    from mt_nodes.cli.terminal import text

    text(f"interrupted; `mt experiment automt --resume {run.out}` goes on")
    return int(ExitCode.INTERRUPTED)


def _nothing_applies(run: AutomtRun, proposed: ProposalSet) -> int:
    from mt_nodes.base.wording import counted

    whys = sorted({one.why for one in proposed.proposals}) or sorted(set(proposed.not_run.values()))
    print(
        f"no relation applies to {counted(len(proposed.cases), 'case')}: {'; '.join(whys[:3])}. State what you know of "
        f"the scenes, such as --fact speed_kmh=30 --fact roads=intersection. The proposals are in {run.out}",
        file=sys.stderr,
    )
    return int(ExitCode.UNDECIDED)


def _request(args: argparse.Namespace) -> AutomtRequest:
    return request_of(
        AutomtRequest,
        args,
        regions=tuple(dict.fromkeys(args.regions)),
        methods=tuple(dict.fromkeys(args.methods)),
        readers=tuple(dict.fromkeys(args.readers)) or AutomtRequest().readers,
        edit_model=_whole_path(args.edit_model),
        facts=settings(args.facts, "--fact"),
        topics=role_topics(args.topics),
    )


def _whole_path(model: str) -> str:
    """Return the whole path of a model's directory, which replays find from where they run; another name as it is."""
    return str(Path(model).resolve()) if model and Path(model).is_dir() else model
