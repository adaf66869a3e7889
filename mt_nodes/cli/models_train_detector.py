# SPDX-License-Identifier: Apache-2.0
"""``mt models train-detector``."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mt_nodes.base.params import build
from mt_nodes.cli.recipe_options import add_options, given_of
from mt_nodes.runs.models.segmentation_recipe import SegmentationRecipe

if TYPE_CHECKING:
    from mt_nodes.runs.models.segmentation_recipe import StepReport


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line: the recipe has one option a parameter."""
    parser.epilog = "example: mt models train-detector --out my_detector"
    add_options(parser, SegmentationRecipe)
    add = parser.add_argument
    add("--out", type=Path, metavar="DIR", required=True, help="directory of the training")
    add("--device", default="cpu", metavar="DEVICE", help="cpu, cuda or cuda:N (default %(default)s)")
    workers = "processes that make clouds beside the one that trains (default %(default)s)"
    add("--workers", type=int, default=1, metavar="N", help=workers)
    add("--json", action="store_true", help="print one object")


def run(args: argparse.Namespace) -> int:
    """Train, and say where the weights are."""
    from rich.progress import Progress

    from mt_nodes.cli.terminal import text
    from mt_nodes.runs.models.extra import torch_module

    for needed in ("torch", "onnx"):
        torch_module(needed)
    from mt_nodes.runs.models.cnnseg_training import ONNX, train_cnnseg

    recipe = build(SegmentationRecipe, given_of(SegmentationRecipe, args), "mt models train-detector")
    with Progress(transient=True, disable=args.json or not sys.stdout.isatty()) as progress:
        task = progress.add_task("steps", total=None)

        def report(row: StepReport) -> None:
            loss = sum(row.loss.values())
            progress.update(task, completed=row.step, total=row.steps, description=f"loss {loss:.4f}")

        reports = train_cnnseg(recipe, args.out, device=args.device, workers=args.workers, progress=report)
    if args.json:
        print(json.dumps({"weights": str(args.out / ONNX), "steps": reports[-1].steps, "loss": reports[-1].loss}))
        return 0
    text(f"weights: {args.out / ONNX}, after {reports[-1].steps} steps; loss {sum(reports[-1].loss.values()):.4f}")
    text("write `params: {weights: " + str(args.out / ONNX) + "}` into a copy of config/stacks/reference_cnnseg.yaml,")
    text("and see what it finds: `mt models evaluate-detector my_cnnseg.yaml`")
    return 0
