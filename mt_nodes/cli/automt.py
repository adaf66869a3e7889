# SPDX-License-Identifier: Apache-2.0
"""``mt experiment automt BAG…``."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from mt_nodes.base.errors import ExitCode, InfrastructureError
from mt_nodes.cli.arguments import help_of, role_topics
from mt_nodes.cli.replay_command import refuse_more_than_resume
from mt_nodes.cli.whole_numbers import at_least_one, whole_number
from mt_nodes.runs.automt.automt_request import BOUNDS, METHODS, AutomtRequest

if TYPE_CHECKING:
    from mt_nodes.cli.automt_progress import ProgressBar
    from mt_nodes.runs.automt.automt_run import AutomtRun
    from mt_nodes.runs.automt.proposals import ProposalSet
    from mt_nodes.runs.replay.replay_run import Run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    default, about = AutomtRequest(), help_of(AutomtRequest)
    with_default = {name: f"{text} (default %(default)s)" for name, text in about.items()}
    parser.epilog = (
        "example: mt experiment automt my_bag --stack pilotnet --stack my_stack.yaml --fact roads=intersection"
    )
    add = parser.add_argument
    add("bags", metavar="BAG", nargs="*", help=about["bags"])
    add("--stack", action="append", default=[], metavar="NAME", help=f"{about['stacks']}; may be given again")
    add("--region", default=",".join(default.regions), metavar="NAME,…", help="whose rules (default %(default)s)")
    add("--methods", default=",".join(METHODS), metavar="NAME,…", help="what to compare (default %(default)s)")
    add("--frames", type=at_least_one, default=default.frames, metavar="N", help=with_default["frames"])
    add("--rounds", type=at_least_one, default=default.rounds, metavar="N", help=with_default["rounds"])
    add("--bound", default=default.bound, metavar="NAME", help=f"{', '.join(BOUNDS)} (default %(default)s)")
    model = f"{about['models']}, of the server in MT_LLM_URL (key: MT_LLM_KEY)"
    add("--model", action="append", default=[], metavar="NAME", help=model)
    add("--models", default="", metavar="FILE", help=about["models_file"])
    add("--transport", default=default.transport, help=with_default["transport"])
    add("--fact", action="append", default=[], metavar="K=V", help=about["facts"])
    add("--topic", action="append", default=[], metavar="ROLE=TOPIC", help=about["topics"])
    add("--transforms", default="", metavar="FILE", help=about["transforms"])
    add("--limit", type=at_least_one, metavar="N", help=about["limit"])
    add("--seed", type=whole_number, default=default.seed, help=with_default["seed"])
    add("--out", metavar="DIR", help="results directory (default mt_results/<time>)")
    add("--resume", type=Path, metavar="DIR", help="go on with the experiment in DIR; nothing else is given")
    add("--json", action="store_true", help="print automt.json instead of tables")


def run(args: argparse.Namespace) -> int:
    """Carry out the experiment, print its tables beside the paper's, return its exit code."""
    from mt_nodes.cli.replay_execution import go_where_it_started
    from mt_nodes.runs.automt.automt_run import AutomtRun

    if args.resume:
        refuse_more_than_resume(args, add_arguments, bags="BAG")
        out = args.resume.resolve()
        go_where_it_started(out)
        return conduct(AutomtRun.resume(out), as_json=args.json)
    return conduct(AutomtRun.create(_request(args), args.out), as_json=args.json)


def conduct(run: AutomtRun, *, as_json: bool = False) -> int:
    """Carry out an experiment, write its files, print what it came to and return its exit code.

    Raises:
        MtError: what it ended with; it can be gone on with.
    """
    from mt_nodes.cli.automt_outcome import print_experiment
    from mt_nodes.cli.automt_progress import showing
    from mt_nodes.runs.automt.automt_run import summary_of
    from mt_nodes.runs.automt.files import write_all
    from mt_nodes.runs.automt.proposal_results import judge_all
    from mt_nodes.runs.automt.tables import tabulate

    with showing(hidden=as_json) as show:
        proposed = _proposed(run, show)
        if not any(one.relation for one in proposed.proposals):
            return _nothing_applies(run, proposed)
        replays = run.replays()
        if not _play(replays, show):
            return _interrupted(run)
        _refuse_broken(replays)
        show.begin("looking", len({(one.relation, one.case, one.round) for one in proposed.proposals if one.relation}))
        results = judge_all(run, proposed, replays, show.advance)
    summaries = {name: summary_of(replay.out) for name, replay in replays.items()}
    table = tabulate(run.request, list(replays), proposed, results, summaries)
    files = write_all(run.out, table)
    if as_json:
        print(json.dumps(table, indent=1))
    else:
        print_experiment(run.out, table, files)
    return int(table["exit_code"])


def _proposed(run: AutomtRun, show: ProgressBar) -> ProposalSet:
    """Return what every case is given, frozen by now."""
    from mt_nodes.runs.automt.proposal_methods import propose

    known = run.proposed
    if known is None:
        known = propose(run, show.doing)
        run.freeze(known)
    return known


def _play(replays: Mapping[str, Run], show: ProgressBar) -> bool:
    """Replay the cases into every stack; return whether all came to an end, rather than being interrupted."""
    from mt_nodes.runs.automt.automt_run import finished, summary_of

    left = {name: replay for name, replay in replays.items() if not finished(replay.out)}
    show.begin("", sum(replay.pairs_to_come for replay in left.values()))
    for name, replay in left.items():
        show.name(name)
        _replay(replay, show)
        if summary_of(replay.out).get("interrupted", True):
            return False
    return True


def _replay(replay: Run, show: ProgressBar) -> None:
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
            lambda some: show.advance(len(some)),
        )
        return
    stop_s = suite_stop_s(replay.stack)
    afterwards = f"`mt experiment automt --resume {replay.out.parent}` goes on"
    in_suite(suite_process(replay.out, os.environ), stop_s, lambda event: show.so_far(event["done"]), afterwards)


def _refuse_broken(replays: Mapping[str, Run]) -> None:
    """Refuse to judge where no stack came to its end.

    Raises:
        InfrastructureError: none did; says how each broke down.
    """
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
        f"nothing can be run on {counted(len(proposed.cases), 'case')}: {'; '.join(whys[:3])}. State what you know of "
        f"the scenes, such as --fact speed_kmh=30 --fact roads=intersection. What was given is in {run.out}",
        file=sys.stderr,
    )
    return int(ExitCode.UNDECIDED)


def _request(args: argparse.Namespace) -> AutomtRequest:
    from mt_nodes.cli.mutate_command import settings

    return AutomtRequest(
        bags=tuple(args.bags),
        stacks=tuple(args.stack),
        regions=_names(args.region),
        methods=_names(args.methods),
        frames=args.frames,
        rounds=args.rounds,
        bound=args.bound,
        models=tuple(args.model),
        models_file=args.models,
        transport=args.transport,
        facts=dict(settings(args.fact, "--fact")),
        topics=role_topics(args.topic),
        transforms=args.transforms,
        limit=args.limit,
        seed=args.seed,
        plugins=tuple(str(p.resolve()) for p in args.plugins),
    )


def _names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
