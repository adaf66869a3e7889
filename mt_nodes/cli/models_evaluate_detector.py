# SPDX-License-Identifier: Apache-2.0
"""``mt models evaluate-detector STACK``."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from mt_nodes.base.errors import UsageError
from mt_nodes.cli.whole_numbers import at_least_one, whole_number

if TYPE_CHECKING:
    from mt_nodes.runs.models.detector_evaluation import DetectorScore
    from mt_nodes.runs.models.labelled_clouds import LabelledCloud

#: Of streets that no training is given by default.
_SEED = 1_000_003


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.epilog = "example: mt models evaluate-detector reference_cnnseg --clouds 200"
    add = parser.add_argument
    add("stack", metavar="STACK", help="a LiDAR stack that is a callable: name of one that ships, or its file")
    add(
        "--clouds",
        type=at_least_one,
        default=200,
        metavar="N",
        help="made-up streets, one cloud each (default %(default)s)",
    )
    least = "from which score on an obstacle counts as said (default: the stack's score_high)"
    add("--least-score", type=float, metavar="X", help=least)
    add("--seed", type=whole_number, default=_SEED, metavar="N", help="of the streets (default %(default)s)")
    add("--json", action="store_true", help="print one object")


def run(args: argparse.Namespace) -> int:
    """Ask the stack about streets that it never saw, and say what it finds."""
    from mt_nodes.runs.models.detector_evaluation import detector_score
    from mt_nodes.stacks.callable_host import CallableHost
    from mt_nodes.stacks.stack import load_stack

    stack = load_stack(args.stack)
    if not stack.callable or list(stack.inputs) != ["lidar"] or "detections" not in stack.outputs:
        raise UsageError(f"stack '{stack.name}': expected a callable that takes a LiDAR alone and says detections")
    least = stack.traits.thresholds("detections").high if args.least_score is None else args.least_score
    score = detector_score(CallableHost.make(stack), _clouds(args), least)
    if args.json:
        shares = {"recall": score.recall, "precision": score.precision}
        print(json.dumps({"stack": stack.name, "least_score": least, **dataclasses.asdict(score), **shares}, indent=2))
        return 0
    _tell(stack.name, least, score)
    return 0


def _clouds(args: argparse.Namespace) -> Iterator[LabelledCloud]:
    from rich.progress import track

    from mt_nodes.runs.models.labelled_clouds import labelled_cloud

    hidden = args.json or not sys.stdout.isatty()
    for index in track(range(args.clouds), "clouds", transient=True, disable=hidden):
        yield labelled_cloud(args.seed, index)


def _tell(name: str, least: float, score: DetectorScore) -> None:
    from mt_nodes.cli.terminal import heading, table, text
    from mt_nodes.runs.models.detector_evaluation import AREA_M, LEAST_RETURNS

    near, far, aside = AREA_M
    heading(f"{name}: {score.clouds} made-up streets, obstacles of a score of {least:g} or more")
    text(f"objects with {LEAST_RETURNS} returns or more, {near:g} to {far:g} m ahead, up to {aside:g} m aside")
    rows = [
        (row.label, str(row.objects), _share(row.found, row.objects), _share(row.named, row.objects))
        for row in score.classes
    ]
    table(("class", "objects", "found", "as what they are"), rows)
    text(
        f"recall {score.recall:.1%}, precision {score.precision:.1%}: of {score.said} obstacles {score.wrong} are none,"
        " or parts of one that was found already"
    )


def _share(count: int, of: int) -> str:
    return f"{count / of:.0%}" if of else "-"
