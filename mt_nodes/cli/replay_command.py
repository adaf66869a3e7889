# SPDX-License-Identifier: Apache-2.0
"""``mt replay BAG…``."""

from __future__ import annotations

import argparse
from pathlib import Path

from mt_nodes.arguments import help_of, role_topic
from mt_nodes.errors import UsageError
from mt_nodes.plan import ReplayRequest


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    default = ReplayRequest(bags=())
    parser.epilog = "example: mt replay my_bag --stack my_stack.yaml --relations noise_outside_roi_1000 --limit 50"
    add = parser.add_argument
    about = help_of(ReplayRequest)
    with_default = {name: f"{text} (default %(default)s)" for name, text in about.items()}
    add("bags", metavar="BAG", nargs="+", help=about["bags"])
    add("--relations", metavar="ID,…", help=f"{about['relations']} (default {','.join(default.relations)})")
    add("--suite", type=Path, metavar="FILE", help="YAML file with a list of relations")
    add("--stack", default=default.stack, help=with_default["stack"])
    add("--mode", default=default.mode, help=with_default["mode"])
    add("--pace", default=default.pace, help=with_default["pace"])
    add("--rate", type=float, default=default.rate, help=with_default["rate"])
    add("--transport", default=default.transport, help=with_default["transport"])
    add("--limit", type=at_least_one, metavar="N", help=about["limit"])
    add("--seed", type=int, default=default.seed, help=with_default["seed"])
    add("--fault", action="append", default=[], metavar="NAME", help=about["faults"])
    add("--topic", action="append", default=[], metavar="ROLE=TOPIC", help=about["topics"])
    add("--qos", default="", metavar="FILE", help=about["qos"])
    add("--draws", type=at_least_one, default=default.draws, metavar="N", help=with_default["draws"])
    add("--transforms", default="", metavar="FILE", help=about["transforms"])
    add("--waivers", default="", metavar="FILE", help=about["waivers"])
    add("--out", metavar="DIR", help="results directory (default mt_results/<time>)")
    add("--json", action="store_true", help="print summary.json instead of a table")


def run(args: argparse.Namespace) -> int:
    """Replay, print what came out, return the run's exit code."""
    from mt_nodes.cli.running import replay

    summary = replay(_request(args), args.out, as_json=args.json)
    return int(summary["exit_code"])


def _request(args: argparse.Namespace) -> ReplayRequest:
    from mt_nodes.relations import names_from_suite_file

    if args.relations and args.suite:
        raise UsageError("--relations and --suite exclude each other")
    names = names_from_suite_file(args.suite) if args.suite else (args.relations or "").split(",")
    given = tuple(name.strip() for name in names if name.strip())
    if (args.relations is not None or args.suite) and not given:
        raise UsageError("--relations: got no relation; see `mt list relations`")
    return ReplayRequest(
        bags=tuple(args.bags),
        relations=given or ReplayRequest(bags=()).relations,
        stack=args.stack,
        mode=args.mode,
        pace=args.pace,
        transport=args.transport,
        limit=args.limit,
        seed=args.seed,
        faults=tuple(args.fault),
        topics=dict(role_topic(text) for text in args.topic),
        transforms=args.transforms,
        rate=args.rate,
        waivers=args.waivers,
        qos=args.qos,
        draws=args.draws,
        plugins=tuple(str(p.resolve()) for p in args.plugins),
    )


def at_least_one(text: str) -> int:
    """Read a whole number of at least 1, for argparse."""
    number = int(text) if text.isdigit() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"got '{text}', expected a whole number of at least 1")
    return number
