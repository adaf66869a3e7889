# SPDX-License-Identifier: Apache-2.0
"""``mt models train DATA…``."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import build
from mt_nodes.cli.models_data import add_data, read_data
from mt_nodes.cli.recipe_options import add_options, given_of
from mt_nodes.runs.models.network_catalogue import network_named
from mt_nodes.runs.models.preprocessing import Preparation
from mt_nodes.runs.models.recipe import Recipe

if TYPE_CHECKING:
    from mt_nodes.runs.models.recipe import EpochReport

#: What was asked for, in the directory of a training.
_ASKED = "train.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line: recipe and preparation have one option a parameter."""
    parser.epilog = "example: mt models train my_drives --network pilotnet --ahead 0 --crop-top 0.4 --out my_pilot"
    add_data(parser, "*")
    add_options(parser, Recipe)
    add_options(parser, Preparation, height_px="that of the network", width_px="that of the network")
    add = parser.add_argument
    add("--trunk", type=Path, metavar="FILE", help="weights that torchvision's part of resnet101 or vgg16 begins with")
    add("--out", type=Path, metavar="DIR", help="directory of the training (needed)")
    add("--half", action="store_true", help="write weights_half.pt, too: numbers of 16 bits")
    add("--resume", type=Path, metavar="DIR", help="go on with the training in DIR; only --epochs may be given beside")
    add("--json", action="store_true", help="print one object")


def run(args: argparse.Namespace) -> int:
    """Train, and say what came out."""
    from mt_nodes.runs.models.extra import torch_module

    torch_module()  # before data is read for minutes
    out = args.resume or args.out
    if out is None:
        raise UsageError("--out: got none, expected the directory that the weights are written to")
    if args.resume:
        args = _as_before(args)
    if not args.data:
        raise UsageError("got no data; type `mt models train DATA --out DIR`, or `mt models train --resume DIR`")
    recipe = build(Recipe, given_of(Recipe, args), "mt models train")
    network = network_named(recipe.network, "--network")
    size = {"height_px": network.height_px, "width_px": network.width_px}
    prepared = build(Preparation, size | given_of(Preparation, args), "mt models train")
    frames = read_data(args, args.data, prepared, hidden=args.json)
    return _train(args, out, recipe, (frames, prepared))


def _train(args: argparse.Namespace, out: Path, recipe: Recipe, data: tuple[Any, Preparation]) -> int:
    from rich.progress import Progress

    from mt_nodes.runs.models.training import CHECKPOINT, WEIGHTS, train
    from mt_nodes.runs.models.weights_file import load_weights

    begun = (out / CHECKPOINT).exists()  # one that was killed in its first epoch begins again
    if not begun:
        _note(args, out)
    with Progress(transient=True, disable=args.json or not sys.stdout.isatty()) as progress:
        task = progress.add_task("epochs", total=recipe.epochs)

        def report(epoch: EpochReport) -> None:
            progress.update(task, completed=epoch.epoch + 1, description=f"loss {epoch.validation_loss:.4f}")

        try:
            reports = train(
                *data,
                recipe,
                out,
                device=args.device,
                trunk=args.trunk,
                resume=begun and bool(args.resume),
                progress=report,
            )
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"interrupted; go on with `mt models train --resume {out}`") from None
    if args.half:
        load_weights(out / WEIGHTS).save(out / "weights_half.pt", half=True)
    _tell(args, out / WEIGHTS, reports)
    return 0


def _tell(args: argparse.Namespace, weights: Path, reports: list[EpochReport]) -> None:
    from mt_nodes.cli.terminal import text

    best = min(reports, key=lambda row: row.validation_loss)
    if args.json:
        print(json.dumps({"weights": str(weights), "epochs": len(reports), "best": vars(best)}, indent=2))
        return
    text(
        f"epoch {best.epoch} of {len(reports)} is best: on the validation part {best.validation_mae_speed_mps:.3f} m/s "
        f"and {best.validation_mae_steering_rad:.4f} rad off (mean absolute error)"
    )
    text(f"weights: {weights}; what that means: `mt models evaluate {weights} DATA`")


#: What is no part of a training.
_OTHER = ("command", "name", "plugins", "verbose", "json", "resume", "out")


def _note(args: argparse.Namespace, out: Path) -> None:
    from mt_nodes.base.directories import cannot_write, write_whole

    asked = {name: value for name, value in vars(args).items() if name not in _OTHER and value is not None}
    absolute = {**asked, "data": [str(path.resolve()) for path in args.data]}
    if args.trunk:
        absolute["trunk"] = str(args.trunk.resolve())
    try:
        out.mkdir(parents=True, exist_ok=True)
        write_whole(out / _ASKED, json.dumps(absolute, indent=2) + "\n")
    except OSError as error:
        raise cannot_write(out, error) from error


def _as_before(args: argparse.Namespace) -> argparse.Namespace:
    """Return what the training that goes on was asked for.

    Raises:
        UsageError: there is none, or more than the number of epochs was given.
    """
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    usual = vars(parser.parse_args([]))
    allowed = ("resume", "epochs", "json")
    if more := [name for name, value in usual.items() if name not in allowed and getattr(args, name) != value]:
        given = ", ".join("DATA" if name == "data" else f"--{name.replace('_', '-')}" for name in more)
        raise UsageError(f"--resume {args.resume}: got {given}, too; the training goes on as {_ASKED} there says")
    try:
        asked = json.loads((args.resume / _ASKED).read_text(encoding="utf-8"))
        asked["data"] = [Path(path) for path in asked["data"]]
        asked["trunk"] = Path(asked["trunk"]) if "trunk" in asked else None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"--resume {args.resume}: no training to go on with: {error}") from error
    told = {"epochs": args.epochs} if args.epochs is not None else {}
    return argparse.Namespace(**{**vars(args), **asked, **told})
