# SPDX-License-Identifier: Apache-2.0
"""``mt models list``: driving models that see camera images, and their weights."""

from __future__ import annotations

import argparse
import json
from typing import Any


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
