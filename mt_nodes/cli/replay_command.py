# SPDX-License-Identifier: Apache-2.0
"""``mt replay BAG…``."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from mt_nodes.base.errors import UsageError
from mt_nodes.cli.arguments import help_of, role_topics
from mt_nodes.cli.mutate_command import settings
from mt_nodes.cli.whole_numbers import at_least_one, whole_number
from mt_nodes.engine.plan import ReplayRequest


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    default = ReplayRequest(bags=())
    parser.epilog = "example: mt replay my_bag --stack my_stack.yaml --relations noise_outside_roi_1000 --limit 50"
    add = parser.add_argument
    about = help_of(ReplayRequest)
    with_default = {name: f"{text} (default %(default)s)" for name, text in about.items()}
    add("bags", metavar="BAG", nargs="*", help=about["bags"])
    usual = f"default {','.join(default.relations)}; where the stack takes or says something else, some that fit it"
    add("--relations", metavar="ID,…", help=f"{about['relations']} ({usual})")
    add("--suite", type=Path, metavar="FILE", help="YAML file with a list of relations")
    add("--cases", default="", metavar="FILE", help=about["cases"])
    add("--stack", default=default.stack, help=with_default["stack"])
    add("--set", action="append", default=[], metavar="K=V", help=about["stack_settings"])
    add("--mode", default=default.mode, help=with_default["mode"])
    add("--pace", default=default.pace, help=with_default["pace"])
    add("--rate", type=float, default=default.rate, help=with_default["rate"])
    add("--transport", default=default.transport, help=with_default["transport"])
    add("--limit", type=at_least_one, metavar="N", help=about["limit"])
    add("--seed", type=whole_number, default=default.seed, help=with_default["seed"])
    add("--fault", action="append", default=[], metavar="NAME", help=about["faults"])
    add("--topic", action="append", default=[], metavar="ROLE=TOPIC", help=about["topics"])
    add("--qos", default="", metavar="FILE", help=about["qos"])
    add("--draws", type=at_least_one, default=default.draws, metavar="N", help=with_default["draws"])
    add("--transforms", default="", metavar="FILE", help=about["transforms"])
    add("--waivers", default="", metavar="FILE", help=about["waivers"])
    kept = "judge first what failed before, and keep what fails now for later runs; without a BAG play only the former"
    add("--failures", action="store_true", help=kept)
    add("--failures-file", type=Path, metavar="FILE", help="database of --failures (default mt_failures.sqlite)")
    add(
        "--keep-expired",
        action="store_true",
        help="keep cases whose mutation's code has changed; else they are taken out",
    )
    add("--out", metavar="DIR", help="results directory (default mt_results/<time>)")
    add(
        "--resume",
        type=Path,
        metavar="DIR",
        help="go on with the run in DIR that was interrupted; nothing else is given",
    )
    add("--json", action="store_true", help="print summary.json instead of a table")


def run(args: argparse.Namespace) -> int:
    """Replay, print what came out, return the run's exit code."""
    from mt_nodes.cli.replay_execution import replay, resume

    if args.resume:
        refuse_more_than_resume(args, add_arguments, bags="BAG")
        return int(resume(args.resume, as_json=args.json)["exit_code"])
    if not (args.bags or args.failures):
        raise UsageError("got no bag; type `mt replay BAG`, or `mt replay --resume DIR`")
    if args.failures and not args.bags:
        from mt_nodes.cli.failing_again import replay_failing_again

        given = {"keep_expired": args.keep_expired, "as_json": args.json}
        return replay_failing_again(_request(args), args.out, args.failures_file, **given)
    if args.failures:
        from mt_nodes.cli.failing_first import replay_failing_first

        summary = replay_failing_first(
            _request(args), args.out, args.failures_file, keep_expired=args.keep_expired, as_json=args.json
        )
        return int(summary["exit_code"])
    if args.failures_file or args.keep_expired:
        raise UsageError("--failures-file and --keep-expired go with --failures")
    summary = replay(_request(args), args.out, as_json=args.json)
    return int(summary["exit_code"])


def refuse_more_than_resume(
    args: argparse.Namespace, declare: Callable[[argparse.ArgumentParser], None], **positional: str
) -> None:
    """A resumed run is the run it was: what it is asked for stands in its directory.

    Args:
        args: what was given. declare: declares the command line. positional: what has no dashes, and is called else.

    Raises:
        UsageError: more than ``--resume`` was given.
    """
    parser = argparse.ArgumentParser()
    declare(parser)
    usual = vars(parser.parse_args([]))
    more = [name for name, value in usual.items() if name not in ("resume", "json") and getattr(args, name) != value]
    if more:
        given = ", ".join(positional.get(name, f"--{name.replace('_', '-')}") for name in more)
        raise UsageError(f"--resume {args.resume}: got {given}, too; the run goes on as {args.resume}/run.json says")


def relations_given(args: argparse.Namespace) -> tuple[str, ...]:
    """Return what ``--relations`` or ``--suite`` name, nothing where neither is given.

    Raises:
        UsageError: both are, or there is none in them.
    """
    from mt_nodes.relations.relation import names_from_suite_file

    if args.relations and args.suite:
        raise UsageError("--relations and --suite exclude each other")
    names = names_from_suite_file(args.suite) if args.suite else (args.relations or "").split(",")
    given = tuple(name.strip() for name in names if name.strip())
    if (args.relations is not None or args.suite) and not given:
        raise UsageError("--relations: got no relation; see `mt list relations`")
    return given


def _request(args: argparse.Namespace) -> ReplayRequest:
    given = relations_given(args)
    if args.cases and given:
        raise UsageError("--cases names its relations; leave --relations and --suite out")
    return ReplayRequest(
        bags=tuple(args.bags),
        relations=given or _default(args),
        stack=args.stack,
        stack_settings=settings(args.set),
        mode=args.mode,
        pace=args.pace,
        transport=args.transport,
        limit=args.limit,
        seed=args.seed,
        faults=tuple(args.fault),
        topics=role_topics(args.topic),
        transforms=args.transforms,
        rate=args.rate,
        waivers=args.waivers,
        qos=args.qos,
        draws=args.draws,
        cases=args.cases,
        plugins=tuple(str(p.resolve()) for p in args.plugins),
    )


def _default(args: argparse.Namespace) -> tuple[str, ...]:
    from mt_nodes.engine.compatibility import default_relations
    from mt_nodes.stacks.stack import load_stack

    usual = ReplayRequest(bags=()).relations
    return usual if args.cases else default_relations(load_stack(args.stack, settings(args.set)))
