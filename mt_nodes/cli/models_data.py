# SPDX-License-Identifier: Apache-2.0
"""``mt models record``, and the options and bags that ``train`` and ``evaluate`` share."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mt_nodes.base.errors import UsageError
from mt_nodes.cli.arguments import role_topics
from mt_nodes.cli.options import add_fields, settings

if TYPE_CHECKING:
    from mt_nodes.runs.models.preprocessing import Preparation
    from mt_nodes.runs.models.record_request import RecordRequest
    from mt_nodes.runs.models.samples import Frames


_RECORDED = ("stack", "driver", "share", "drives", "push_mps2", "cruise_mps", "jitter", "seed", "edits", "edited")


def add_record_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    from mt_nodes.runs.models.record_request import RecordRequest

    parser.epilog = "example: mt models record town_lap_any_light --drives 6 --out my_frames"
    request = RecordRequest(scenarios=())
    add_fields(parser, request, "scenarios", scenarios={"nargs": "+"})
    parser.add_argument(
        "--out", type=Path, required=True, metavar="FOLDER", help="folder for images and samples.csv; may hold some"
    )
    add_fields(parser, request, *_RECORDED, "parameters")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run_record(args: argparse.Namespace) -> int:
    """Record the drives, print how many images there are, return 0."""
    from mt_nodes.base.wording import counted
    from mt_nodes.cli.terminal import text
    from mt_nodes.runs.models.drive_recording import record
    from mt_nodes.runs.models.samples import FILE

    drives: dict[str, int] = {}

    def show(drive: str, images: int) -> None:
        drives[drive] = images
        if not args.json:
            text(f"{drive}: {counted(images, 'image')}")

    total = record(_record_request(args), args.out, show)
    if args.json:
        print(json.dumps({"table": str(args.out / FILE), "pictures": total, "made": drives}, indent=2))
    else:
        text(f"{args.out / FILE}: {counted(total, 'image')}; train a model with `mt models train {args.out} --out DIR`")
    return 0


def _record_request(args: argparse.Namespace) -> RecordRequest:
    """Return the request. Raises UsageError: a number is out of its range."""
    from mt_nodes.base.params import build
    from mt_nodes.runs.models.record_request import RecordRequest

    values = {name: getattr(args, name) for name in _RECORDED}
    values |= {"scenarios": tuple(args.scenarios), "edits": tuple(args.edits)}
    values["parameters"] = {name: str(value) for name, value in settings(args.parameters).items()}
    return build(RecordRequest, values, "mt models record")


def add_data(parser: argparse.ArgumentParser, nargs: str) -> None:
    """Declare which folders and bags are read, and how."""
    add = parser.add_argument
    data = (
        "folder with samples.csv (image,speed_mps,steering_rad,drive), bag with images, speed and steering, or data "
        "set with them: udacity:DIR, a2d2:DIR"
    )
    add("data", type=Path, nargs=nargs, metavar="DATA", help=data)
    topic = "camera=TOPIC, for a bag with several cameras"
    add("--topic", action="append", default=[], metavar="ROLE=TOPIC", help=topic)
    about = "topic of a bag with the {}; FIELD where the message type is not known, FACTOR for other units"
    for name in ("speed", "steering"):
        add(f"--{name}", default="", metavar="TOPIC[:FIELD[*FACTOR]]", help=about.format(name))
    tolerance = "largest time between an image of a bag and its labels, s (default %(default)s)"
    add("--tolerance-s", type=float, default=0.05, metavar="S", help=tolerance)
    wheelbase = "wheelbase that turns a yaw rate into a steering angle, m (default %(default)s)"
    add("--wheelbase-m", type=float, default=2.7, metavar="M", help=wheelbase)
    add("--device", default="cpu", help="cpu, cuda or cuda:N (default %(default)s)")


def read_data(args: argparse.Namespace, paths: Sequence[Path], prepared: Preparation, *, hidden: bool) -> Frames:
    """Read the frames, with a progress bar on a terminal. Raises MtError: a folder or bag cannot be read or used."""
    from rich.progress import Progress, TextColumn

    from mt_nodes.runs.models.bag_samples import BagReading, frames_of

    for name in ("tolerance_s", "wheelbase_m"):
        if not 0.0 < getattr(args, name) < 100.0:
            option = name.replace("_", "-")
            raise UsageError(f"--{option}: got {getattr(args, name):g}, expected more than 0 and less than 100")
    reading = BagReading(role_topics(args.topic), args.speed, args.steering, args.tolerance_s, args.wheelbase_m)
    column = TextColumn("reading: {task.completed} frames")
    with Progress(column, transient=True, disable=hidden or not sys.stdout.isatty()) as progress:
        task = progress.add_task("frames", total=None)
        return frames_of(paths, prepared, reading, lambda read: progress.update(task, completed=read))
