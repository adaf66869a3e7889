# SPDX-License-Identifier: Apache-2.0
"""``mt models evaluate WEIGHTS DATA…``."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from mt_nodes.base.errors import UsageError
from mt_nodes.cli.models_data import add_data, read_data

if TYPE_CHECKING:
    from mt_nodes.runs.models.evaluation import Errors


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.epilog = "example: mt models evaluate my_pilot/weights.pt my_drives"
    parser.add_argument("weights", metavar="WEIGHTS", help="file of weights, or the name of one that ships")
    add_data(parser, "+")
    part = "train, validation, test (the last 10 %% of each drive) or all (for drives that it never saw); default test"
    parser.add_argument("--part", choices=("train", "validation", "test", "all"), default="test", help=part)
    parser.add_argument("--json", action="store_true", help="print one object")


def run(args: argparse.Namespace) -> int:
    """Ask the model about every window, and say how far it is from what was driven."""
    from mt_nodes.runs.models.driving_model import weights_path
    from mt_nodes.runs.models.evaluation import errors_of
    from mt_nodes.runs.models.extra import device_of

    device = device_of(args.device)
    from mt_nodes.runs.models.training import said_of
    from mt_nodes.runs.models.weights_file import load_weights

    path = weights_path(args.weights)
    model = load_weights(path)
    frames = read_data(args, args.data, model.about.prepared, hidden=args.json)
    ahead = int(model.about.made.get("ahead", 1))
    windows = frames.windows(model.about.architecture.frames, ahead, "" if args.part == "all" else args.part)
    if not len(windows):
        raise UsageError(f"--part {args.part}: got no window of it; drives must be longer, or type --part all")
    rows = errors_of(said_of(model, windows, device), windows.wanted)
    told = {"weights": str(path), "network": model.about.network, "ahead_frames": ahead, "part": args.part}
    _tell(args, {**told, "errors": rows})
    return 0


def _tell(args: argparse.Namespace, told: dict[str, Any]) -> None:
    from mt_nodes.base.wording import counted
    from mt_nodes.cli.terminal import heading, table, text

    rows: list[Errors] = told["errors"]
    if args.json:
        print(json.dumps({**told, "errors": [vars(row) for row in rows]}, indent=2))
        return
    when = f"{counted(told['ahead_frames'], 'frame')} later" if told["ahead_frames"] else "at the last frame"
    heading(f"{told['weights']}: {told['network']}, what is driven {when}")
    text(f"part {told['part']}: {rows[0].windows} windows")
    columns = ("quantity", "mean absolute error", "95 % below", "root mean square", "bias", "who says always the same")
    numbers = ("mae", "p95", "rmse", "bias", "constant_mae")
    table(columns, [(row.quantity, *(f"{getattr(row, n):.4g} {row.unit}" for n in numbers)) for row in rows])
    for row in rows:
        if row.mae >= row.constant_mae:
            text(f"{row.quantity}: no better than always saying the median: it has not learned it")
