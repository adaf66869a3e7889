# SPDX-License-Identifier: Apache-2.0
"""``mt models VERB``: driving models that see camera images, and detectors of obstacles."""

from __future__ import annotations

import argparse
import json
from typing import Any

from mt_nodes.cli.options import add_verbs, run_verb

VERBS = {
    "list": ("models_command", "List the networks, and the weights that are available"),
    "record": ("models_data", "Record images of an expert's drives, with its speed and steering"),
    "train": ("models_train", "Train a network on images labelled with speed and steering"),
    "evaluate": ("models_evaluate", "Measure the errors of a trained driving model"),
    "train-detector": ("models_detector", "Train a LiDAR or camera detector on generated streets"),
    "evaluate-detector": ("models_detector", "Measure recall and precision of a stack on generated streets"),
    "cutouts": ("models_cutouts", "Cut real objects out of your labelled images, for added objects"),
    "edit-video": ("models_video", "Edit a recording by a video model, for image_instructed"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line of every verb."""
    add_verbs(parser, VERBS, "VERB")


def run(args: argparse.Namespace) -> int:
    """Carry out the verb and return its exit code."""
    return run_verb(args, VERBS)


def add_list_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.epilog = "example: mt models list"
    parser.add_argument("--json", action="store_true", help="print JSON")


def run_list(args: argparse.Namespace) -> int:
    """List the networks as a table or as JSON."""
    from mt_nodes.cli.terminal import table

    rows = _rows()
    if args.json:
        print(json.dumps(rows, indent=2, ensure_ascii=False))
        return 0
    cells = [
        (r["name"], f"{r['width_px']} x {r['height_px']}", *(str(r[k]) for k in ("frames", "weights", "summary")))
        for r in rows
    ]
    table(("name", "image (px)", "frames", "weights", "what it is"), cells)
    return 0


def _rows() -> list[dict[str, Any]]:
    from mt_nodes.base import resources
    from mt_nodes.runs.models.network_catalogue import NETWORKS

    stacks = resources.shipped("stacks")
    return [
        {**vars(network), "stack": name if name in stacks else "", "weights": _weights(name) if name in stacks else ""}
        for name, network in NETWORKS.items()
    ]


def _weights(stack: str) -> str:
    """Return the file of a stack's weights; empty where there is none."""
    from mt_nodes.base.errors import UsageError
    from mt_nodes.runs.models.driving_model import weights_path
    from mt_nodes.stacks.stack import load_stack

    try:
        return str(weights_path(load_stack(stack).params["weights"]))
    except UsageError:
        return ""
