# SPDX-License-Identifier: Apache-2.0
"""``mt list KIND``."""

from __future__ import annotations

import argparse
import json
from typing import Any

from mt_nodes.cli import catalogue
from mt_nodes.cli.terminal import table

COLUMNS = {
    "mutations": ("sensors", "role"),
    "relations": ("kind", "role", "drives", "section"),
    "adapters": ("type", "role", "confidence", "use", "package"),
    "stacks": ("stateless",),
    "checks": ("needs",),
    "experiments": ("configs",),
    "faults": ("stack",),
    "manipulations": ("sensors",),
    "scenario_changes": ("role",),
    "principles": ("expect", "min_decided"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.epilog = "example: mt list relations"
    parser.add_argument("kind", metavar="KIND", help=", ".join(catalogue.kinds()))
    parser.add_argument("--json", action="store_true", help="print one array with everything that is known")


def run(args: argparse.Namespace) -> int:
    """Print a table, or one JSON array."""
    rows = catalogue.rows(args.kind)
    if args.json:
        print(json.dumps(rows, indent=2))
        return 0
    extra = COLUMNS.get(args.kind, ())
    table(("name", *extra, "what it is"), [(r["name"], *(_text(r[c]) for c in extra), r["summary"]) for r in rows])
    return 0


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(value) if isinstance(value, (list, dict)) else str(value)
