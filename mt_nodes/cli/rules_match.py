# SPDX-License-Identifier: Apache-2.0
"""``mt rules match BAG``."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from mt_nodes.base.errors import ExitCode, UsageError
from mt_nodes.cli import rules_plan
from mt_nodes.cli.arguments import help_of
from mt_nodes.cli.rules_choice import chooser, hidden, plain, recordings, store_of, tell
from mt_nodes.cli.rules_models import add_embedding, add_eyes, eyes_of
from mt_nodes.cli.rules_store import add_store, ontology_of
from mt_nodes.cli.whole_numbers import whole_number
from mt_nodes.engine.plan import ReplayRequest

if TYPE_CHECKING:
    from mt_nodes.rules.bag_cases import Recording
    from mt_nodes.rules.scene import SceneFacts


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.epilog = "example: mt rules match my_bag --frame 12 --fact roads=intersection --fact weather=rain"
    add = parser.add_argument
    add("bags", type=Path, nargs="+", metavar="BAG", help="bag directory, .mcap, .db3 or ROS 1 .bag")
    frame = "frame in the middle of a case, numbered from 0; may be given again (default 1)"
    add("--frame", type=whole_number, action="append", default=[], metavar="N", help=frame)
    rules_plan.add_arguments(parser)
    add(
        "--fact", action="append", default=[], metavar="K=V", help="what you know of the scene, such as roads=crosswalk"
    )
    add("--utc-offset-h", type=float, metavar="H", help="local time where the bag was recorded, in hours from UTC")
    add("--region", default="", help="only relations of this region")
    stack = "only relations that can judge this stack; may be given again"
    add("--stack", action="append", default=[], metavar="NAME", help=stack)
    add("--origin", action="append", default=[], help="only what this read; may be given again")
    add("--nearest", type=whole_number, default=0, metavar="N", help="look at the N nearest only (default: all)")
    add("--seed", type=whole_number, default=0, help="what lots depend on (default %(default)s)")
    add("--topic", action="append", default=[], metavar="ROLE=TOPIC", help=help_of(ReplayRequest)["topics"])
    add("--transforms", type=Path, metavar="FILE", help="YAML file of transforms that the bag lacks")
    add("--count", action="store_true", help="count the choice in the store, so that others are chosen next time")
    add(
        "--json", action="store_true", help="print one array: each case, its scene, and every candidate with the reason"
    )
    add_embedding(parser)
    add_eyes(parser)
    add_store(parser, "without: the store that ships", writes=True)


def run(args: argparse.Namespace) -> int:
    """Choose a relation for each case and say why; exit 3 if none applies to any."""
    if args.count and args.store is None:
        raise UsageError("--count: the shipped store is not written to; name one of your own by --store")
    if rules_plan.asked(args):
        return rules_plan.run(args)
    if len(args.bags) > 1:
        raise UsageError(f"got {len(args.bags)} bags, expected one; give several --frames to be cut into cases")
    ontology = ontology_of(args)
    with eyes_of(args, ontology) as seen_by:
        (recording,) = recordings(args, ontology, seen_by)
        scenes = _scenes(recording, args.frame or [1], hidden=hidden(args))
    with store_of(args, ontology) as store:
        choices = chooser(args, ontology, recording).plan(store, scenes)
        entries = {entry.index: entry for entry in store.entries()}
    if args.json:
        rows = [plain(choice, scenes[choice.case], entries) for choice in choices]
        print(json.dumps(rows, indent=2, ensure_ascii=False))
    else:
        for choice in choices:
            tell(args, choice, scenes[choice.case], entries)
    return int(ExitCode.PASS if any(c.index is not None for c in choices) else ExitCode.UNDECIDED)


def _scenes(recording: Recording, frames: list[int], *, hidden: bool) -> dict[str, SceneFacts]:
    from rich.progress import Progress

    with Progress(transient=True, disable=hidden) as progress:
        task = progress.add_task("frames", total=max(frames) + 2)
        return recording.scenes(frames, lambda read: progress.update(task, completed=read))
