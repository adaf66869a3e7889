# SPDX-License-Identifier: Apache-2.0
"""``mt models cutouts``: real objects, cut out of your own labelled pictures, for ``object_added``."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from mt_nodes.base.errors import UsageError
from mt_nodes.cli.arguments import role_topics


def add_cutouts_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.epilog = "example: mt models cutouts my_bag --labels coco.json --out my_cutouts"
    add = parser.add_argument
    add("bag", metavar="BAG", help="bag or data set with images, camera_info, transforms and a LiDAR")
    labels = "COCO .json, or a folder of 16-bit instance pictures; default: the boxes of the data set"
    add("--labels", type=Path, metavar="PATH", help=labels)
    add("--out", type=Path, required=True, metavar="DIR", help="folder for the cut-outs; new or empty")
    add("--kind", action="append", default=[], metavar="KIND", help="only of this kind; may be given again")
    add("--topic", action="append", default=[], metavar="ROLE=TOPIC", help="where the bag has several of a role")
    add("--transforms", type=Path, metavar="FILE", help="transforms that the bag lacks")
    add("--limit", type=int, metavar="N", help="read at most N frames")
    add("--json", action="store_true", help="print JSON")


def run_cutouts(args: argparse.Namespace) -> int:
    """Write the cut-outs, and say how many there are, and why others are not.

    Raises UsageError: an argument is wrong, or nothing was cut out.
    """
    from mt_nodes.data.bags.bundles import BagSource
    from mt_nodes.data.transforms import load_transforms
    from mt_nodes.runs.models.cutout_labels import read_labels
    from mt_nodes.runs.models.cutout_making import CutoutTally, make_cutouts
    from mt_nodes.world.scene.objects import KINDS

    for kind in args.kind:
        if kind not in KINDS:
            raise UsageError(f"--kind: got '{kind}', expected one of {', '.join(KINDS)}")
    if args.out.exists() and (not args.out.is_dir() or any(args.out.iterdir())):
        raise UsageError(f"--out {args.out}: is there and not empty; name a new folder")
    labels = None if args.labels is None else read_labels(args.labels)
    tree = load_transforms(args.transforms) if args.transforms else None
    require = ("lidar", "camera")
    args.out.mkdir(parents=True, exist_ok=True)
    with BagSource(Path(args.bag), role_topics(args.topic), tree, limit=args.limit, require=require) as source:
        tally: CutoutTally = make_cutouts(iter(source), labels, args.out, frozenset(args.kind))
    if not tally.made:
        why = "; ".join(f"{count} {reason}" for reason, count in tally.refused.most_common())
        raise UsageError(f"{args.bag}: nothing was cut out: {why or 'no frame has a labelled object of a known kind'}")
    _print(args, tally.made, tally.refused, tally.frames)
    return 0


def _print(args: argparse.Namespace, made: dict[str, int], refused: dict[str, int], frames: int) -> None:
    from mt_nodes.base.wording import counted
    from mt_nodes.cli.terminal import table, text

    if args.json:
        print(json.dumps({"made": made, "refused": refused, "frames": frames}, indent=2))
        return
    table(("kind", "cut-outs"), [(kind, str(count)) for kind, count in sorted(made.items())])
    for reason, count in sorted(refused.items(), key=lambda pair: -pair[1]):
        text(f"left out: {counted(count, 'object')}: {reason}")
    first = next(iter(sorted(made)))
    text(f"{args.out}: cut out of {counted(frames, 'labelled frame')}. Use them:")
    text(f"  mt show object_added --bag {args.bag} --set kind={first} --set cutouts={args.out}")
