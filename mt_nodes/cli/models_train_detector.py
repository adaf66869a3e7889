# SPDX-License-Identifier: Apache-2.0
"""``mt models train-detector``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mt_nodes.base.params import build
from mt_nodes.cli.recipe_options import add_shared_options, given_of, refuse_foreign
from mt_nodes.runs.models.detector_recipes import PictureRecipe, SegmentationRecipe

if TYPE_CHECKING:
    from mt_nodes.runs.models.detector_recipes import StepReport
    from mt_nodes.runs.models.detector_training import DetectorTask

_RECIPES: dict[str, type] = {recipe.sensor: recipe for recipe in (SegmentationRecipe, PictureRecipe)}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line: the recipes have one option a parameter."""
    parser.epilog = "example: mt models train-detector --sensor camera --out my_detector"
    add = parser.add_argument
    add("--sensor", choices=tuple(_RECIPES), default="lidar", help="by which it sees (default %(default)s)")
    add_shared_options(parser, _RECIPES)
    add("--out", type=Path, metavar="DIR", required=True, help="directory of the training")
    add("--device", default="cpu", metavar="DEVICE", help="cpu, cuda or cuda:N (default %(default)s)")
    workers = "processes that make clouds or pictures beside the one that trains (default %(default)s)"
    add("--workers", type=int, default=1, metavar="N", help=workers)
    add("--json", action="store_true", help="print one object")


def run(args: argparse.Namespace) -> int:
    """Train, and say where the weights are."""
    from rich.progress import Progress

    from mt_nodes.runs.models.extra import torch_module

    for needed in ("torch", "onnx"):
        torch_module(needed)
    from mt_nodes.runs.models.detector_training import train_detector

    task = _task(args)
    with Progress(transient=True, disable=args.json or not sys.stdout.isatty()) as progress:
        row_of = progress.add_task("steps", total=None)

        def report(row: StepReport) -> None:
            loss = sum(row.loss.values())
            progress.update(row_of, completed=row.step, total=row.steps, description=f"loss {loss:.4f}")

        reports = train_detector(task, args.out, device=args.device, workers=args.workers, progress=report)
    _tell(args, args.out / f"{task.name}.onnx", reports[-1])
    return 0


def _task(args: argparse.Namespace) -> DetectorTask[Any]:
    from mt_nodes.runs.models.cnnseg_training import SegmentationTask
    from mt_nodes.runs.models.picture_training import PictureTask

    refuse_foreign(args.sensor, _RECIPES, args)
    task: Callable[[Any], DetectorTask[Any]] = PictureTask if args.sensor == "camera" else SegmentationTask
    recipe: Any = build(_RECIPES[args.sensor], given_of(_RECIPES[args.sensor], args), "mt models train-detector")
    return task(recipe)


def _tell(args: argparse.Namespace, weights: Path, last: StepReport) -> None:
    from mt_nodes.cli.terminal import text

    if args.json:
        print(json.dumps({"weights": str(weights), "steps": last.steps, "loss": last.loss}))
        return
    text(f"weights: {weights}, after {last.steps} steps; loss {sum(last.loss.values()):.4f}")
    file, line = {
        "lidar": ("reference_cnnseg.yaml", f"params: {{weights: {weights}}}"),
        "camera": ("reference_yolo.yaml", f"onnx: {weights.resolve()}"),
    }[args.sensor]
    text(f"write `{line}` into a copy of config/stacks/{file},")
    text("and see what it finds: `mt models evaluate-detector my_copy.yaml`")
