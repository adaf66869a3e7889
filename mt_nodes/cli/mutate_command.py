# SPDX-License-Identifier: Apache-2.0
"""``mt mutate BAG --mutation NAME --out BAG2``."""

from __future__ import annotations

import argparse
from pathlib import Path

from mt_nodes.cli.arguments import role_topics
from mt_nodes.cli.options import at_least_one, help_of, settings
from mt_nodes.data.datasets.dataset_name import RECORDING_HELP
from mt_nodes.engine.plan import ReplayRequest

INTENSITIES = "intensity convention of a LiDAR's topic, such as /points=ouster_signal; default: recognised"
OUT = (
    "bag to write; a name that ends in .bag is a ROS 1 bag; kitti:DIR, nuscenes:DIR, argoverse2:DIR or udacity:DIR "
    "for a recording of that data set; folder:DIR for clouds and pictures alone"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.epilog = "example: mt mutate my_bag --mutation noise_outside_roi --set points=100 --out my_bag_noise"
    add = parser.add_argument
    add("bag", type=Path, metavar="BAG", help=RECORDING_HELP)
    add(
        "--mutation",
        required=True,
        metavar="NAME",
        help="a mutation or manipulation, see `mt list mutations` and `mt list manipulations`",
    )
    add("--set", action="append", default=[], metavar="K=V", help="set a parameter of the mutation, see `mt show NAME`")
    add("--out", type=Path, required=True, metavar="BAG2", help=OUT)
    add("--storage", default="mcap", help="mcap or sqlite3 (default %(default)s)")
    add("--seed", type=int, default=0, help="seed of all random draws (default %(default)s)")
    add("--limit", type=at_least_one, metavar="N", help="read at most N bundles")
    add("--topic", action="append", default=[], metavar="ROLE=TOPIC", help=help_of(ReplayRequest)["topics"])
    add("--intensities", action="append", default=[], metavar="TOPIC=NAME", help=INTENSITIES)
    add("--transforms", type=Path, metavar="FILE", help="YAML file with transforms that the bag lacks")


def run(args: argparse.Namespace) -> int:
    """Write the mutated bag and print how many bundles were mutated."""
    from mt_nodes.base.wording import counted
    from mt_nodes.cli.terminal import progress_bar, text
    from mt_nodes.data.intensity.intensity_conventions import read_intensities
    from mt_nodes.data.transforms import load_transforms
    from mt_nodes.engine.bag_mutation import mutate_bag
    from mt_nodes.relations.manipulations import mutations_named

    mutations = mutations_named(args.mutation, settings(args.set), "--mutation")
    tree = load_transforms(args.transforms) if args.transforms else None
    topics = role_topics(args.topic)
    with progress_bar("{task.completed}/{task.total} bundles") as progress:
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
            intensities=read_intensities(settings(args.intensities), "--intensities"),
            progress=lambda count, total: progress.update(task, completed=count, total=total),
        )
    for topic, assumption in done.intensities.items():
        text(f"intensities of {topic}: {assumption}")
    text(f"{done.mutated} of {done.bundles} bundles mutated, {done.messages} messages written to {args.out}")
    if done.labels:
        text(done.labels)
    for reason, count in done.not_applicable.items():
        text(f"{counted(count, 'bundle')} passed unchanged: {reason}")
    return 0
