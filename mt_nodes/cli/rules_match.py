# SPDX-License-Identifier: Apache-2.0
"""``mt rules match BAG``."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from mt_nodes.base.errors import ExitCode, UsageError
from mt_nodes.cli import rules_choice
from mt_nodes.cli.options import help_of, whole_number
from mt_nodes.cli.rules_models import add_embedding, add_scene_model, scene_reader_of
from mt_nodes.cli.rules_store import add_store, ontology_of
from mt_nodes.data.datasets.dataset_name import RECORDING_HELP
from mt_nodes.engine.plan import ReplayRequest

if TYPE_CHECKING:
    from mt_nodes.rules.bag_cases import Recording
    from mt_nodes.rules.scene import SceneFacts


def add_match_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.epilog = "example: mt rules match my_bag --frame 12 --fact roads=intersection --fact weather=rain"
    add = parser.add_argument
    add("bags", type=Path, nargs="+", metavar="BAG", help=RECORDING_HELP)
    frame = "middle frame of a case, numbered from 0; may be given again (default 1)"
    add("--frame", type=whole_number, action="append", default=[], metavar="N", help=frame)
    rules_choice.add_plan_options(parser)
    add(
        "--fact",
        action="append",
        default=[],
        metavar="K=V",
        help="known fact of the scene, such as roads=crosswalk or absent=red_light; may be given again",
    )
    detector = "stack that says which elements are present or absent, by its coverage; may be given again"
    add("--detector", action="append", default=[], metavar="STACK", help=detector)
    add("--utc-offset-h", type=float, metavar="H", help="offset of the bag's local time from UTC, in hours")
    add("--region", default="", help="only relations of this region")
    stack = "only relations that can judge this stack; may be given again"
    add("--stack", action="append", default=[], metavar="NAME", help=stack)
    add("--origin", action="append", default=[], help="only relations that this reader extracted; may be given again")
    add(
        "--nearest",
        type=whole_number,
        default=0,
        metavar="N",
        help="consider only the N nearest relations (default: all)",
    )
    add("--seed", type=whole_number, default=0, help="seed of all random draws (default %(default)s)")
    add("--topic", action="append", default=[], metavar="ROLE=TOPIC", help=help_of(ReplayRequest)["topics"])
    add("--transforms", type=Path, metavar="FILE", help="YAML file with transforms that the bag lacks")
    add(
        "--count",
        action="store_true",
        help="count the choice in the store, so that another relation is chosen next time",
    )
    add("--json", action="store_true", help="print JSON: each case, its scene, and every candidate with the reason")
    add_embedding(parser)
    add_scene_model(parser)
    add_store(parser, "default: the shipped store", writes=True)


def run_match(args: argparse.Namespace) -> int:
    """Choose a relation for each case and print why; return 3 if no relation applies to any case."""
    if args.count and args.store is None:
        raise UsageError("--count: the shipped store is read-only; name a store of your own with --store")
    if rules_choice.is_for_whole_bags(args):
        return rules_choice.match_bags(args)
    if len(args.bags) > 1:
        raise UsageError(
            f"got {len(args.bags)} bags, expected one; several bags need --frames N, which cuts them into cases"
        )
    ontology = ontology_of(args)
    with scene_reader_of(args, ontology) as scene_reader:
        (recording,) = rules_choice.recordings(args, ontology, scene_reader)
        scenes = _scenes(recording, args.frame or [1], hidden=rules_choice.hidden(args))
    with rules_choice.store_of(args, ontology) as store:
        choices = rules_choice.matcher_of(args, ontology, recording).plan(store, scenes)
        entries = {entry.index: entry for entry in store.entries()}
    if args.json:
        rows = [rules_choice.choice_as_plain(choice, scenes[choice.case], entries) for choice in choices]
        print(json.dumps(rows, indent=2, ensure_ascii=False))
    else:
        for choice in choices:
            rules_choice.print_choice(args, choice, scenes[choice.case], entries)
    return int(ExitCode.PASS if any(c.index is not None for c in choices) else ExitCode.UNDECIDED)


def _scenes(recording: Recording, frames: list[int], *, hidden: bool) -> dict[str, SceneFacts]:
    from rich.progress import Progress

    with Progress(transient=True, disable=hidden) as progress:
        task = progress.add_task("frames", total=max(frames) + 2)
        return recording.scenes(frames, lambda read: progress.update(task, completed=read))
