# SPDX-License-Identifier: Apache-2.0
"""``mt show NAME``."""

from __future__ import annotations

import argparse
import json
from typing import Any

import yaml

from mt_nodes.cli import catalogue
from mt_nodes.cli.printing import heading, table, text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.epilog = "example: mt show noise_outside_roi"
    parser.add_argument("name", metavar="NAME", help="a name that `mt list` shows")
    parser.add_argument("--json", action="store_true", help="print one object")


def run(args: argparse.Namespace) -> int:
    """Print what is known of one thing."""
    kind, row = catalogue.find(args.name)
    if args.json:
        print(json.dumps({"kind_of_thing": kind, **row}, indent=2))
        return 0
    heading(f"{row['name']} ({kind.rstrip('s')})")
    if "parameters" not in row:
        text(yaml.safe_dump(row, sort_keys=False, allow_unicode=True).rstrip())
        return 0
    text(row["doc"])
    if row["parameters"]:
        table(("parameter", "default", "range", "what it is"), [_parameter(p) for p in row["parameters"]])
    return 0


def _parameter(p: dict[str, Any]) -> tuple[str, str, str, str]:
    unit = f" {p['unit']}" if p["unit"] else ""
    bounds = [p["low"], p["high"]]
    limits = "" if bounds == [None, None] else " … ".join("" if b is None else f"{b:g}" for b in bounds) + unit
    default = "" if p["default"] is None else str(p["default"])
    return p["name"], default, ", ".join(p["choices"]) or limits, p["help"]
