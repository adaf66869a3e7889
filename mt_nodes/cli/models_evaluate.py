# SPDX-License-Identifier: Apache-2.0
"""``mt models evaluate``."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from mt_nodes.base.errors import UsageError
from mt_nodes.cli.models_data import add_data, read_data

if TYPE_CHECKING:
    from mt_nodes.runs.models.evaluation import Errors


def add_evaluate_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.epilog = "example: mt models evaluate my_pilot/weights.pt my_drives"
    parser.add_argument("weights", metavar="WEIGHTS", help="file of weights, or the name of a shipped one")
    add_data(parser, "+")
    part = "part of each drive: train, validation, test (its last 10 %%), all (for unseen drives) (default %(default)s)"
    parser.add_argument("--part", choices=("train", "validation", "test", "all"), default="test", help=part)
    parser.add_argument("--json", action="store_true", help="print JSON")


def run_evaluate(args: argparse.Namespace) -> int:
    """Compare the model's speed and steering with the driven ones, for every window of frames."""
    from mt_nodes.runs.models.driving_model import weights_path
    from mt_nodes.runs.models.evaluation import errors_of
    from mt_nodes.runs.models.extra import device_of

    device = device_of(args.device)
    from mt_nodes.runs.models.training import predictions_of
    from mt_nodes.runs.models.weights_file import load_weights

    path = weights_path(args.weights)
    model = load_weights(path)
    frames = read_data(args, args.data, model.about.prepared, hidden=args.json)
    ahead = int(model.about.made.get("ahead", 1))
    windows = frames.windows(model.about.architecture.frames, ahead, "" if args.part == "all" else args.part)
    if not len(windows):
        raise UsageError(f"--part {args.part}: the drives are too short, it has no window; type --part all")
    rows = errors_of(predictions_of(model, windows, device), windows.targets)
    about = {"weights": str(path), "network": model.about.network, "ahead_frames": ahead, "part": args.part}
    _print_errors(args, {**about, "errors": rows})
    return 0


def _print_errors(args: argparse.Namespace, result: dict[str, Any]) -> None:
    from mt_nodes.base.wording import counted
    from mt_nodes.cli.terminal import heading, table, text

    rows: list[Errors] = result["errors"]
    if args.json:
        print(json.dumps({**result, "errors": [vars(row) for row in rows]}, indent=2))
        return
    when = f"{counted(result['ahead_frames'], 'frame')} later" if result["ahead_frames"] else "at the last frame"
    heading(f"{result['weights']}: {result['network']}, predicts speed and steering {when}")
    text(f"part {result['part']}: {rows[0].windows} windows")
    columns = ("quantity", "mean absolute error", "95 % below", "root mean square", "bias", "constant prediction")
    numbers = ("mae", "p95", "rmse", "bias", "constant_mae")
    table(columns, [(row.quantity, *(f"{getattr(row, n):.4g} {row.unit}" for n in numbers)) for row in rows])
    for row in rows:
        if row.mae >= row.constant_mae:
            text(f"{row.quantity}: no better than a constant prediction, the median: the model has not learned it")
