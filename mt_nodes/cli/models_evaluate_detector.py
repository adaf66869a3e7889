# SPDX-License-Identifier: Apache-2.0
"""``mt models evaluate-detector STACK``."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from typing import TYPE_CHECKING

from mt_nodes.base.errors import UsageError
from mt_nodes.cli.whole_numbers import at_least_one, whole_number

if TYPE_CHECKING:
    from mt_nodes.runs.models.detector_evaluation import DetectorScore
    from mt_nodes.stacks.stack import Stack

#: Of streets that no training is given by default.
_SEED = 1_000_003
#: Inputs of a stack -> the role of what it says; what it is asked about, by that.
_ROLES: dict[tuple[str, ...], str] = {("lidar",): "detections", ("camera",): "boxes"}
_NOUNS = {"detections": "clouds", "boxes": "pictures"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.epilog = "example: mt models evaluate-detector reference_cnnseg --clouds 200"
    add = parser.add_argument
    add("stack", metavar="STACK", help="name of one that ships, or its file; a callable or a network, not a command")
    streets = "made-up streets, one cloud or picture each (default %(default)s)"
    add("--clouds", "--pictures", dest="streets", type=at_least_one, default=200, metavar="N", help=streets)
    least = "from which score on an obstacle counts as said (default: the stack's score_high)"
    add("--least-score", type=float, metavar="X", help=least)
    add("--seed", type=whole_number, default=_SEED, metavar="N", help="of the streets (default %(default)s)")
    add("--json", action="store_true", help="print one object")


def run(args: argparse.Namespace) -> int:
    """Ask the stack about streets that it never saw, and say what it finds."""
    from mt_nodes.stacks.stack import load_stack

    stack = load_stack(args.stack)
    role = _ROLES.get(tuple(stack.inputs))
    if not stack.callable or role is None or role not in stack.outputs:
        raise UsageError(
            f"stack '{stack.name}': expected a callable that takes a LiDAR alone and says detections, or one that "
            "takes a camera alone and says boxes"
        )
    least = stack.traits.thresholds(role).high if args.least_score is None else args.least_score
    score = _score(stack, role, least, args)
    if args.json:
        rows = dataclasses.asdict(score)
        told = {_NOUNS[role]: rows.pop("streets"), **rows, "recall": score.recall, "precision": score.precision}
        print(json.dumps({"stack": stack.name, "least_score": least, **told}, indent=2))
        return 0
    _tell(stack.name, role, least, score)
    return 0


def _score(stack: Stack, role: str, least: float, args: argparse.Namespace) -> DetectorScore:
    from rich.progress import track

    from mt_nodes.runs.models import detector_evaluation as evaluation
    from mt_nodes.runs.models.labelled_clouds import labelled_cloud
    from mt_nodes.runs.models.labelled_pictures import labelled_picture
    from mt_nodes.stacks.callable_host import CallableHost

    hidden = args.json or not sys.stdout.isatty()
    numbers = track(range(args.streets), _NOUNS[role], transient=True, disable=hidden)
    host = CallableHost.make(stack)
    if role == "boxes":
        return evaluation.picture_score(host, (labelled_picture(args.seed, index) for index in numbers), least)
    return evaluation.detector_score(host, (labelled_cloud(args.seed, index) for index in numbers), least)


def _tell(name: str, role: str, least: float, score: DetectorScore) -> None:
    from mt_nodes.cli.terminal import heading, table, text
    from mt_nodes.runs.models import detector_evaluation as evaluation

    heading(f"{name}: {score.streets} made-up streets, obstacles of a score of {least:g} or more")
    if role == "boxes":
        text(
            f"objects of {evaluation.LEAST_HEIGHT_PX:g} pixels or more in height that show half of themselves; found: "
            f"intersection over union of {evaluation.LEAST_IOU:g} or more"
        )
    else:
        near, far, aside = evaluation.AREA_M
        text(
            f"objects with {evaluation.LEAST_RETURNS} returns or more, {near:g} to {far:g} m ahead, up to {aside:g} m "
            "aside"
        )
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
