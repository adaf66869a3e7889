# SPDX-License-Identifier: Apache-2.0
"""What ``mt models train`` and ``mt models evaluate`` read: folders and bags."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mt_nodes.base.errors import UsageError
from mt_nodes.cli.arguments import role_topics

if TYPE_CHECKING:
    from mt_nodes.runs.models.preprocessing import Preparation
    from mt_nodes.runs.models.samples import Frames


def add_data(parser: argparse.ArgumentParser, nargs: str) -> None:
    """Declare what is read."""
    add = parser.add_argument
    topic = "of a bag: camera=TOPIC where it has several"
    data = "folder with samples.csv (image,speed_mps,steering_rad,drive), or bag with pictures, speed and steering"
    add("data", type=Path, nargs=nargs, metavar="DATA", help=data)
    add("--topic", action="append", default=[], metavar="ROLE=TOPIC", help=topic)
    told = "topic of a bag that tells it, FIELD where the type is not known, times FACTOR for other units"
    for name in ("speed", "steering"):
        add(f"--{name}", default="", metavar="TOPIC[:FIELD[*FACTOR]]", help=f"{name}: {told}")
    tolerance = "how far from a picture labels of a bag may be, s (default %(default)s)"
    add("--tolerance-s", type=float, default=0.05, metavar="S", help=tolerance)
    wheelbase = "by which a yaw rate is turned into steering, m (default %(default)s)"
    add("--wheelbase-m", type=float, default=2.7, metavar="M", help=wheelbase)
    add("--device", default="cpu", help="cpu, cuda or cuda:N (default %(default)s)")


def read_data(args: argparse.Namespace, paths: Sequence[Path], prepared: Preparation, *, hidden: bool) -> Frames:
    """Read the frames, with a progress bar on a terminal.

    Raises:
        MtError: something of them cannot be read or used.
    """
    from rich.progress import Progress, TextColumn

    from mt_nodes.runs.models.bag_samples import BagReading
    from mt_nodes.runs.models.sources import frames_of

    for name in ("tolerance_s", "wheelbase_m"):
        if not 0.0 < getattr(args, name) < 100.0:
            option = name.replace("_", "-")
            raise UsageError(f"--{option}: got {getattr(args, name):g}, expected more than 0 and less than 100")
    named = args.speed, args.steering, args.tolerance_s, args.wheelbase_m
    reading = BagReading(role_topics(args.topic), *named)
    column = TextColumn("reading: {task.completed} frames")
    with Progress(column, transient=True, disable=hidden or not sys.stdout.isatty()) as progress:
        task = progress.add_task("frames", total=None)
        return frames_of(paths, prepared, reading, lambda read: progress.update(task, completed=read))
