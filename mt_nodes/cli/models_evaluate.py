# SPDX-License-Identifier: Apache-2.0
"""``mt models evaluate`` and ``mt models evaluate-detector``."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from mt_nodes.base.errors import UsageError
from mt_nodes.cli.models_data import add_data, read_data
from mt_nodes.cli.options import at_least_one, whole_number

if TYPE_CHECKING:
    from mt_nodes.runs.models.detector_evaluation import DetectorScore
    from mt_nodes.runs.models.evaluation import Errors
    from mt_nodes.runs.models.labelled_clouds import LabelledCloud

#: Seed of streets that no training has by default.
_SEED = 1_000_003


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
    from mt_nodes.runs.models.training import said_of
    from mt_nodes.runs.models.weights_file import load_weights

    path = weights_path(args.weights)
    model = load_weights(path)
    frames = read_data(args, args.data, model.about.prepared, hidden=args.json)
    ahead = int(model.about.made.get("ahead", 1))
    windows = frames.windows(model.about.architecture.frames, ahead, "" if args.part == "all" else args.part)
    if not len(windows):
        raise UsageError(f"--part {args.part}: the drives are too short, it has no window; type --part all")
    rows = errors_of(said_of(model, windows, device), windows.wanted)
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


def add_evaluate_detector_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.epilog = "example: mt models evaluate-detector reference_cnnseg --clouds 200"
    add = parser.add_argument
    add("stack", metavar="STACK", help="LiDAR stack that is a Python callable: shipped name, or .yaml file")
    add(
        "--clouds",
        type=at_least_one,
        default=200,
        metavar="N",
        help="generated streets, one cloud each (default %(default)s)",
    )
    least = "lowest score of an obstacle that counts (default: the stack's high threshold)"
    add("--least-score", type=float, metavar="X", help=least)
    add("--seed", type=whole_number, default=_SEED, metavar="N", help="seed of the streets (default %(default)s)")
    add("--json", action="store_true", help="print JSON")


def run_evaluate_detector(args: argparse.Namespace) -> int:
    """Measure recall and precision of the stack on streets that it was not trained on."""
    from mt_nodes.runs.models.detector_evaluation import detector_score
    from mt_nodes.stacks.callable_host import CallableHost
    from mt_nodes.stacks.stack import load_stack

    stack = load_stack(args.stack)
    if not stack.callable or list(stack.inputs) != ["lidar"] or "detections" not in stack.outputs:
        raise UsageError(f"stack '{stack.name}': expected a Python callable from a point cloud alone to detections")
    least = stack.traits.thresholds("detections").high if args.least_score is None else args.least_score
    score = detector_score(CallableHost.make(stack), _clouds(args), least)
    if args.json:
        shares = {"recall": score.recall, "precision": score.precision}
        print(json.dumps({"stack": stack.name, "least_score": least, **dataclasses.asdict(score), **shares}, indent=2))
        return 0
    _print_score(stack.name, least, score)
    return 0


def _clouds(args: argparse.Namespace) -> Iterator[LabelledCloud]:
    from rich.progress import track

    from mt_nodes.runs.models.labelled_clouds import labelled_cloud

    hidden = args.json or not sys.stdout.isatty()
    for index in track(range(args.clouds), "clouds", transient=True, disable=hidden):
        yield labelled_cloud(args.seed, index)


def _print_score(name: str, least: float, score: DetectorScore) -> None:
    from mt_nodes.cli.terminal import heading, table, text
    from mt_nodes.runs.models.detector_evaluation import AREA_M, LEAST_RETURNS

    near, far, aside = AREA_M
    heading(f"{name}: {score.clouds} generated streets, obstacles with a score of at least {least:g}")
    text(f"objects with at least {LEAST_RETURNS} returns, {near:g} to {far:g} m ahead, up to {aside:g} m to the side")
    rows = [
        (row.label, str(row.objects), _share(row.found, row.objects), _share(row.named, row.objects))
        for row in score.classes
    ]
    table(("class", "objects", "found", "with their class"), rows)
    text(
        f"recall {score.recall:.1%}, precision {score.precision:.1%}: {score.wrong} of {score.said} detections are no "
        "object, or part of one that was found already"
    )


def _share(count: int, of: int) -> str:
    return f"{count / of:.0%}" if of else "-"
