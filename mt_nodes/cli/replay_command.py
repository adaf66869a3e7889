# SPDX-License-Identifier: Apache-2.0
"""``mt replay BAG…``."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from mt_nodes.base.errors import UsageError
from mt_nodes.cli.arguments import role_topics
from mt_nodes.cli.options import (
    add_fields,
    add_results,
    at_least_one,
    other_options,
    request_of,
    resumed_directory,
    settings,
)
from mt_nodes.engine.plan import ReplayRequest
from mt_nodes.relations.default_relations import RELATION_WORDS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    request = ReplayRequest(bags=())
    parser.epilog = "example: mt replay my_bag --stack my_stack.yaml --relations noise_outside_roi_1000 --limit 50"
    add = parser.add_argument
    names = ", ".join(request.relations)
    relations = f"{RELATION_WORDS} (default {names}, or others that fit the stack)"
    add_fields(parser, request, "bags", "relations", relations={"default": None, "help": relations})
    add("--suite", type=Path, metavar="FILE", help="YAML file with a list of relations")
    add_fields(parser, request, "cases", "stack", "stack_settings", "mode", "pace", "rate", "transport", "limit")
    add_fields(parser, request, "seed", "faults", "topics", "qos", "draws", "most_evidence", "transforms", "waivers")
    add_fields(parser, request, "explore", "explore_by", "plan")
    failures = "judge first what failed before, and store what fails now; without a BAG: replay the stored cases only"
    add("--failures", action="store_true", help=failures)
    add("--failures-file", type=Path, metavar="FILE", help="database of --failures (default mt_failures.sqlite)")
    expired = "keep stored cases whose mutation's code has changed (default: forget them)"
    add("--keep-expired", action="store_true", help=expired)
    about = "test nothing: check the outputs that the bag has recorded, or with --transport inprocess the stack's"
    add("--watch-only", action="store_true", help=f"{about} (docs/watching.md)")
    add("--watch-config", type=Path, metavar="FILE", help="with --watch-only: YAML file with a part `watch`")
    again = "with --failures and no BAG: also N fresh draws of each stored case's relation, on its frame"
    add("--fresh-draws", type=at_least_one, metavar="N", help=again)
    former = "results of the same replay with the former stack: says what was mended, and what was learned by heart"
    add("--before", type=Path, metavar="DIR", help=former)
    add_results(parser, "run", table="a table")


def run(args: argparse.Namespace) -> int:
    """Replay, print the outcome, return the run's exit code."""
    from mt_nodes.cli.replay_execution import replay, resume

    if args.watch_only or args.watch_config:
        from mt_nodes.cli.watch_table import watch_bags

        return watch_bags(args)
    if args.resume:
        return int(resume(resumed_directory(args, add_arguments), as_json=args.json)["exit_code"])
    if not (args.bags or args.failures):
        raise UsageError("got no bag; type `mt replay BAG`, or `mt replay --resume DIR`")
    options = {"keep_expired": args.keep_expired, "as_json": args.json}
    if args.failures and not args.bags:
        from mt_nodes.cli.stored_failures import replay_stored

        draws = {"fresh_draws": args.fresh_draws or 0, "before": args.before}
        if args.before and not args.fresh_draws:
            raise UsageError("--before goes with --fresh-draws: as many as the former replay had")
        return replay_stored(_request(args), args.out, args.failures_file, **options, **draws)
    if args.fresh_draws or args.before:
        raise UsageError("--fresh-draws and --before go with --failures, and without a BAG")
    if args.failures:
        from mt_nodes.cli.stored_failures import replay_stored_first

        return int(replay_stored_first(_request(args), args.out, args.failures_file, **options)["exit_code"])
    if args.failures_file or args.keep_expired:
        raise UsageError("--failures-file and --keep-expired go with --failures")
    summary = replay(_request(args), args.out, as_json=args.json)
    return int(summary["exit_code"])


def relations_given(args: argparse.Namespace, *, loop: bool = False) -> tuple[str, ...]:
    """Return the relations that ``--relations`` or ``--suite`` name; none where neither is given.

    Raises UsageError: both are given, or name no relation.
    """
    from mt_nodes.runs.relation_choice import words_of_suite_file

    if args.relations and args.suite:
        raise UsageError("got --relations and --suite, expected one of them")
    names = words_of_suite_file(args.suite, loop=loop) if args.suite else args.relations or ()
    relations = tuple(name.strip() for name in names if name.strip())
    if (args.relations is not None or args.suite) and not relations:
        raise UsageError("--relations: got no relation; see `mt list relations`")
    return relations


#: What may be typed beside ``--plan``: nothing that the plan settles.
_FREE = ("bags", "plan", "waivers", "most_evidence", "out", "json")


def _planned(args: argparse.Namespace) -> ReplayRequest:
    from mt_nodes.runs.safety_case.preregistration import Preregistration

    if more := other_options(args, add_arguments, *_FREE):
        raise UsageError(f"--plan settles {', '.join(more)}; leave {'them' if more[1:] else 'it'} out")
    free = ReplayRequest(tuple(args.bags), plan=args.plan, waivers=args.waivers, most_evidence=args.most_evidence)
    plugins = tuple(str(directory.resolve()) for directory in args.plugins)
    return Preregistration.load(Path(args.plan)).request(replace(free, plugins=plugins))


def _request(args: argparse.Namespace) -> ReplayRequest:
    if args.plan:
        return _planned(args)
    relations = relations_given(args)
    if args.cases and relations:
        raise UsageError("--cases names its relations; leave --relations and --suite out")
    from mt_nodes.api.replays import completed

    return completed(
        request_of(
            ReplayRequest,
            args,
            relations=relations,
            stack_settings=settings(args.stack_settings),
            topics=role_topics(args.topics),
        )
    )
