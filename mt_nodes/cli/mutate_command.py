# SPDX-License-Identifier: Apache-2.0
"""``mt mutate BAG --mutation NAME --out BAG2``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from mt_nodes.base.errors import UsageError
from mt_nodes.cli.arguments import help_of, role_topics
from mt_nodes.cli.whole_numbers import at_least_one
from mt_nodes.engine.plan import ReplayRequest


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.epilog = "example: mt mutate my_bag --mutation noise_outside_roi --set points=100 --out my_bag_noise"
    add = parser.add_argument
    add("bag", type=Path, metavar="BAG", help="bag directory, .mcap, .db3 or ROS 1 .bag")
    add("--mutation", required=True, metavar="NAME", help="see `mt list mutations` and `mt list manipulations`")
    add("--set", action="append", default=[], metavar="K=V", help="a parameter of the mutation, see `mt show NAME`")
    add("--out", type=Path, required=True, metavar="BAG2", help="bag to write; a name ending in .bag is a ROS 1 bag")
    add("--storage", default="mcap", help="mcap or sqlite3 (default %(default)s)")
    add("--seed", type=int, default=0, help="what every draw depends on (default %(default)s)")
    add("--limit", type=at_least_one, metavar="N", help="bundles to read at most")
    add("--topic", action="append", default=[], metavar="ROLE=TOPIC", help=help_of(ReplayRequest)["topics"])
    add("--transforms", type=Path, metavar="FILE", help="YAML file of transforms that the bag lacks")


def run(args: argparse.Namespace) -> int:
    """Write the mutated bag and say what became of it."""
    from rich.progress import Progress

    from mt_nodes.base.wording import counted
    from mt_nodes.cli.terminal import text
    from mt_nodes.data.transforms import load_transforms
    from mt_nodes.engine.bag_mutation import mutate_bag
    from mt_nodes.relations.manipulations import mutations_named

    mutations = mutations_named(args.mutation, settings(args.set), "--mutation")
    tree = load_transforms(args.transforms) if args.transforms else None
    topics = role_topics(args.topic)
    with Progress(transient=True, disable=not sys.stdout.isatty()) as progress:
        task = progress.add_task(args.mutation, total=args.limit)
        done = mutate_bag(
            args.bag,
            mutations,
            args.out,
            seed=args.seed,
            topics=topics,
            transforms=tree,
            storage=args.storage,
            limit=args.limit,
            progress=lambda count: progress.update(task, completed=count),
        )
    text(f"{done.mutated} of {done.bundles} bundles mutated, {done.messages} messages written to {args.out}")
    for reason, count in done.not_applicable.items():
        text(f"{counted(count, 'bundle')} passed unchanged: {reason}")
    return 0


def settings(given: list[str], where: str = "--set") -> dict[str, Any]:
    """Read ``K=V`` words of an option, the values as YAML.

    Raises:
        UsageError: one is something else.
    """
    import yaml

    settings: dict[str, Any] = {}
    for word in given:
        name, separator, value = word.partition("=")
        if not (separator and name):
            raise UsageError(f"{where}: got '{word}', expected PARAMETER=VALUE such as points=100")
        try:
            settings[name] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise UsageError(f"{where} {name}: got '{value}', expected a YAML value") from error
    return settings
