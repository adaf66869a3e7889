# SPDX-License-Identifier: Apache-2.0
"""``mt models train``."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import build
from mt_nodes.cli.models_data import add_data, read_data
from mt_nodes.cli.options import add_params, other_options, params_given
from mt_nodes.runs.models.network_catalogue import network_named
from mt_nodes.runs.models.preprocessing import Preparation
from mt_nodes.runs.models.recipe import Recipe

if TYPE_CHECKING:
    from mt_nodes.runs.models.recipe import EpochReport

#: Options of a training, in its directory.
_OPTIONS = "train.json"


def add_train_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line, with an option for each parameter of recipe and preparation."""
    parser.epilog = "example: mt models train my_drives --network pilotnet --ahead 0 --crop-top 0.4 --out my_pilot"
    add_data(parser, "*")
    add_params(parser, Recipe)
    add_params(parser, Preparation, height_px="that of the network", width_px="that of the network")
    add = parser.add_argument
    add("--trunk", type=Path, metavar="FILE", help="torchvision weights from which resnet101 or vgg16 starts")
    add("--out", type=Path, metavar="DIR", help="directory of the training (required without --resume)")
    add("--half", action="store_true", help="also write weights_half.pt, with numbers of 16 bits")
    add(
        "--resume",
        type=Path,
        metavar="DIR",
        help="go on with the training in DIR; takes only --epochs and --json beside",
    )
    add("--json", action="store_true", help="print JSON")


def run_train(args: argparse.Namespace) -> int:
    """Train, and print the errors of the best epoch."""
    from mt_nodes.runs.models.extra import torch_module

    torch_module()  # refused before minutes of reading data
    out = args.resume or args.out
    if out is None:
        raise UsageError("--out: got none, expected a directory for the weights")
    if args.resume:
        args = _resumed(args)
    if not args.data:
        raise UsageError("got no data; type `mt models train DATA --out DIR`, or `mt models train --resume DIR`")
    recipe = build(Recipe, params_given(Recipe, args), "mt models train")
    network = network_named(recipe.network, "--network")
    size = {"height_px": network.height_px, "width_px": network.width_px}
    prepared = build(Preparation, size | params_given(Preparation, args), "mt models train")
    frames = read_data(args, args.data, prepared, hidden=args.json)
    return _train(args, out, recipe, (frames, prepared))


def _train(args: argparse.Namespace, out: Path, recipe: Recipe, data: tuple[Any, Preparation]) -> int:
    from rich.progress import Progress

    from mt_nodes.runs.models.training import CHECKPOINT, WEIGHTS, train
    from mt_nodes.runs.models.weights_file import load_weights

    begun = (out / CHECKPOINT).exists()  # a training that was killed in its first epoch begins again
    if not begun:
        _save_options(args, out)
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
    _print_best(args, out / WEIGHTS, reports)
    return 0


def _print_best(args: argparse.Namespace, weights: Path, reports: list[EpochReport]) -> None:
    from mt_nodes.cli.terminal import text

    best = min(reports, key=lambda row: row.validation_loss)
    if args.json:
        print(json.dumps({"weights": str(weights), "epochs": len(reports), "best": vars(best)}, indent=2))
        return
    text(
        f"epoch {best.epoch} of {len(reports)} is best: mean absolute error on the validation part "
        f"{best.validation_mae_speed_mps:.3f} m/s and {best.validation_mae_steering_rad:.4f} rad"
    )
    text(f"weights: {weights}; evaluate them with `mt models evaluate {weights} DATA`")


#: Arguments that are not part of a training.
_OTHER = ("command", "verb", "plugins", "verbose", "json", "resume", "out")


def _save_options(args: argparse.Namespace, out: Path) -> None:
    from mt_nodes.base.directories import cannot_write, write_whole

    options = {name: value for name, value in vars(args).items() if name not in _OTHER and value is not None}
    absolute = {**options, "data": [str(path.resolve()) for path in args.data]}
    if args.trunk:
        absolute["trunk"] = str(args.trunk.resolve())
    try:
        out.mkdir(parents=True, exist_ok=True)
        write_whole(out / _OPTIONS, json.dumps(absolute, indent=2) + "\n")
    except OSError as error:
        raise cannot_write(out, error) from error


def _resumed(args: argparse.Namespace) -> argparse.Namespace:
    """Return the options of the training that goes on."""
    if more := other_options(args, add_train_arguments, "resume", "epochs", "json"):
        raise UsageError(
            f"--resume {args.resume}: got {', '.join(more)}, too; the training goes on as {_OPTIONS} there says"
        )
    try:
        options = json.loads((args.resume / _OPTIONS).read_text(encoding="utf-8"))
        options["data"] = [Path(path) for path in options["data"]]
        options["trunk"] = Path(options["trunk"]) if "trunk" in options else None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"--resume {args.resume}: no training to go on with: {error}") from error
    epochs = {"epochs": args.epochs} if args.epochs is not None else {}
    return argparse.Namespace(**{**vars(args), **options, **epochs})
