# SPDX-License-Identifier: Apache-2.0
"""``mt replay BAG…``."""

from __future__ import annotations

import argparse
from pathlib import Path

from mt_nodes.errors import UsageError
from mt_nodes.plan import MODES, PACES, TRANSPORTS, ReplayRequest


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    default = ReplayRequest(bags=())
    parser.epilog = "example: mt replay my_bag --stack my_stack.yaml --relations noise_outside_roi_1000 --limit 50"
    add = parser.add_argument
    add("bags", metavar="BAG", nargs="+", help="bag directory, .mcap, .db3 or ROS 1 .bag")
    add("--relations", metavar="ID,…", help=f"relations or .yaml files (default {','.join(default.relations)})")
    add("--suite", type=Path, metavar="FILE", help="YAML file with a list of relations")
    add("--stack", default=default.stack, help="name of a shipped stack or a .yaml file (default %(default)s)")
    add("--mode", default=default.mode, help=f"{', '.join(MODES)} (default %(default)s)")
    add("--pace", default=default.pace, help=f"{', '.join(PACES)} (default %(default)s)")
    add("--rate", type=float, default=default.rate, help="speed of the realtime pace (default %(default)s)")
    add("--transport", default=default.transport, help=f"{', '.join(TRANSPORTS)} (default %(default)s)")
    add("--limit", type=_at_least_one, metavar="N", help="bundles per episode at most")
    add("--seed", type=int, default=default.seed, help="what every draw depends on (default %(default)s)")
    add("--fault", action="append", default=[], metavar="NAME", help="plant a fault in a reference stack")
    add("--topic", action="append", default=[], metavar="ROLE=TOPIC", help="choose among several topics of the bag")
    add("--transforms", default="", metavar="FILE", help="YAML file of transforms that the bag lacks")
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
        plugins=tuple(str(p.resolve()) for p in args.plugins),
    )


def role_topic(text: str) -> tuple[str, str]:
    """Read ``ROLE=TOPIC``."""
    role, separator, topic = text.partition("=")
    if not (separator and role and topic):
        raise UsageError(f"--topic: got '{text}', expected ROLE=TOPIC such as lidar=/points")
    return role, topic


def _at_least_one(text: str) -> int:
    number = int(text) if text.isdigit() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"got '{text}', expected a whole number of at least 1")
    return number
