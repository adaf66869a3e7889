# SPDX-License-Identifier: Apache-2.0
"""``mt models train-detector`` and ``mt models evaluate-detector``."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import build, describe
from mt_nodes.cli.options import add_param, at_least_one, params_given, share, whole_number
from mt_nodes.runs.models.detector_recipes import PictureRecipe, SegmentationRecipe

if TYPE_CHECKING:
    from mt_nodes.runs.models.detector_evaluation import DetectorScore
    from mt_nodes.runs.models.detector_recipes import StepReport
    from mt_nodes.runs.models.detector_training import DetectorTask
    from mt_nodes.stacks.stack import Stack

#: Recipe of the training, by sensor.
_RECIPES: dict[str, type] = {recipe.sensor: recipe for recipe in (SegmentationRecipe, PictureRecipe)}
#: Seed of streets that no training has by default.
_SEED = 1_000_003
#: Inputs of a stack -> the role of its output.
_ROLES: dict[tuple[str, ...], str] = {("lidar",): "detections", ("camera",): "boxes"}
#: Role of the output -> the inputs of an evaluation.
_NOUNS = {"detections": "clouds", "boxes": "pictures"}


def add_train_detector_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line, with an option for each parameter of the recipes."""
    parser.epilog = "example: mt models train-detector --sensor camera --out my_detector"
    add = parser.add_argument
    add("--sensor", choices=tuple(_RECIPES), default="lidar", help="sensor of the detector (default %(default)s)")
    _add_recipe_options(parser)
    added = (
        "folder with labelled frames to learn from as well, as `mt replay failures export` writes it; may be repeated"
    )
    add("--add", type=Path, metavar="FOLDER", action="append", default=[], help=added)
    how_often = "share of the samples that are of --add (default %(default)s)"
    add("--add-share", type=share, default=0.5, metavar="X", help=how_often)
    start = "weights to begin with: name of weights that ship, or .onnx or .pt file of a training (default: none)"
    add("--start", default="", metavar="WEIGHTS", help=start)
    add("--out", type=Path, metavar="DIR", required=True, help="directory of the training")
    add("--device", default="cpu", metavar="DEVICE", help="cpu, cuda or cuda:N (default %(default)s)")
    workers = "processes that generate clouds or images (default %(default)s)"
    add("--workers", type=int, default=1, metavar="N", help=workers)
    add("--json", action="store_true", help="print JSON")


def _add_recipe_options(parser: argparse.ArgumentParser) -> None:
    """Declare an option for each parameter of the recipes; a parameter of both is one option."""
    rows = {sensor: {row["name"]: row for row in describe(recipe)} for sensor, recipe in _RECIPES.items()}
    for name in dict.fromkeys(name for row in rows.values() for name in row):
        having = {sensor: row[name] for sensor, row in rows.items() if name in row}
        first = next(iter(having.values()))
        defaults = {sensor: row["default"] for sensor, row in having.items()}
        alike = len(set(defaults.values())) == 1
        shown = first["default"] if alike else ", ".join(f"{sensor}: {value}" for sensor, value in defaults.items())
        only = "" if len(having) == len(_RECIPES) else f"{', '.join(having)}: "
        add_param(parser, {**first, "help": only + first["help"]}, shown)


def run_train_detector(args: argparse.Namespace) -> int:
    """Train, and print where the weights are."""
    from rich.progress import Progress

    from mt_nodes.runs.models.extra import torch_module

    for needed in ("torch", "onnx"):
        torch_module(needed)
    from mt_nodes.runs.models.detector_training import train_detector

    task = _task(args)
    with Progress(transient=True, disable=args.json or not sys.stdout.isatty()) as progress:
        bar = progress.add_task("steps", total=None)

        def report(row: StepReport) -> None:
            loss = sum(row.loss.values())
            progress.update(bar, completed=row.step, total=row.steps, description=f"loss {loss:.4f}")

        reports = train_detector(task, args.out, device=args.device, workers=args.workers, progress=report)
    _print_training(args, args.out / f"{task.name}.onnx", reports[-1])
    return 0


def _task(args: argparse.Namespace) -> DetectorTask[Any]:
    from mt_nodes.runs.models.added_samples import added_clouds, added_pictures
    from mt_nodes.runs.models.cnnseg_training import SegmentationTask
    from mt_nodes.runs.models.picture_training import PictureTask

    _refuse_other_parameters(args)
    recipe = _RECIPES[args.sensor]
    parameters: Any = build(recipe, params_given(recipe, args), "mt models train-detector")
    if args.sensor == "camera":
        return PictureTask(parameters, added_pictures(args.add, args.add_share), args.start)
    return SegmentationTask(parameters, added_clouds(args.add, args.add_share), args.start)


def _refuse_other_parameters(args: argparse.Namespace) -> None:
    """Refuse parameters that only the recipe of another sensor has. Raises UsageError: naming the option."""
    own = {row["name"] for row in describe(_RECIPES[args.sensor])}
    given = {name for recipe in _RECIPES.values() for name in params_given(recipe, args)}
    for name in sorted(given - own):
        raise UsageError(f"--{name.replace('_', '-')}: got it with --sensor {args.sensor}, which has no such parameter")


def _print_training(args: argparse.Namespace, weights: Path, last: StepReport) -> None:
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
    text("and measure what it finds: `mt models evaluate-detector my_copy.yaml`")


def add_evaluate_detector_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.epilog = "example: mt models evaluate-detector reference_cnnseg --clouds 200"
    add = parser.add_argument
    add("stack", metavar="STACK", help="stack that is a Python callable or a network: shipped name, or .yaml file")
    streets = "generated streets, one cloud or image each (default %(default)s)"
    add("--clouds", "--pictures", dest="streets", type=at_least_one, default=200, metavar="N", help=streets)
    least = "lowest score of an obstacle that counts (default: the stack's high threshold)"
    add("--least-score", type=float, metavar="X", help=least)
    add("--seed", type=whole_number, default=_SEED, metavar="N", help="seed of the streets (default %(default)s)")
    add("--json", action="store_true", help="print JSON")


def run_evaluate_detector(args: argparse.Namespace) -> int:
    """Measure recall and precision of the stack on streets that it was not trained on."""
    from mt_nodes.stacks.stack import load_stack

    stack = load_stack(args.stack)
    role = _ROLES.get(tuple(stack.inputs))
    if not stack.callable or role is None or role not in stack.outputs:
        raise UsageError(
            f"stack '{stack.name}': expected a Python callable or a network, from a point cloud alone to detections, "
            "or from an image alone to boxes"
        )
    least = stack.traits.thresholds(role).high if args.least_score is None else args.least_score
    score = _score(stack, role, least, args)
    if args.json:
        rows = dataclasses.asdict(score)
        plain = {_NOUNS[role]: rows.pop("streets"), **rows, "recall": score.recall, "precision": score.precision}
        print(json.dumps({"stack": stack.name, "least_score": least, **plain}, indent=2))
        return 0
    _print_score(stack.name, role, least, score)
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


def _print_score(name: str, role: str, least: float, score: DetectorScore) -> None:
    from mt_nodes.cli.terminal import heading, table, text

    heading(f"{name}: {score.streets} generated streets, obstacles with a score of at least {least:g}")
    text(_demand(role))
    rows = [
        (row.label, str(row.objects), _share(row.found, row.objects), _share(row.named, row.objects))
        for row in score.classes
    ]
    table(("class", "objects", "found", "with their class"), rows)
    text(
        f"recall {score.recall:.1%}, precision {score.precision:.1%}: {score.wrong} of {score.said} detections are no "
        "object, or part of one that was found already"
    )


def _demand(role: str) -> str:
    """Describe which objects count, and when one is found."""
    from mt_nodes.runs.models import detector_evaluation as evaluation

    if role == "boxes":
        return (
            f"objects at least {evaluation.LEAST_HEIGHT_PX:g} px high and half visible; found: a box with an "
            f"intersection over union of at least {evaluation.LEAST_IOU:g}"
        )
    near, far, aside = evaluation.AREA_M
    least = evaluation.LEAST_RETURNS
    return f"objects with at least {least} returns, {near:g} to {far:g} m ahead, up to {aside:g} m to the side"


def _share(count: int, of: int) -> str:
    return f"{count / of:.0%}" if of else "-"
