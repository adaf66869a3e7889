# SPDX-License-Identifier: Apache-2.0
"""``mt list KIND``."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import Any

from mt_nodes.cli import catalogue
from mt_nodes.cli.terminal import heading, table, text

LIDAR, CAMERA, BOTH, DRIVES = "of point clouds", "of images", "of clouds and images together", "of whole drives"
BACKGROUND, RULES = "control and sham", "of traffic rules"
#: Titles of the groups of relations, in the order of printing.
RELATION_GROUPS = (LIDAR, CAMERA, BOTH, DRIVES, BACKGROUND, RULES)
Row = dict[str, Any]
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
    parser.add_argument("kind", metavar="KIND", help=f"one of {', '.join(catalogue.kinds())}")
    parser.add_argument("--json", action="store_true", help="print JSON, with all that is known")
    parser.add_argument("--all", action="store_true", help="with relations: also list those of traffic rules")


def run(args: argparse.Namespace) -> int:
    """Print a table, or JSON."""
    rows = catalogue.rows(args.kind)
    if args.json:
        print(json.dumps(rows, indent=2))
        return 0
    extra = COLUMNS.get(args.kind, ())
    for title, group in _groups(args.kind, rows).items():
        if title == RULES and not args.all:
            text(f"{len(group)} more {title}: `mt list relations --all` lists them, `mt rules list` the rules")
            continue
        if title:
            heading(f"{title} ({len(group)})")
        table(("name", *extra, "what it is"), [(r["name"], *(_text(r[c]) for c in extra), r["summary"]) for r in group])
    return 0


def _groups(kind: str, rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Return relations in groups by title, in the order of :data:`RELATION_GROUPS`; all else in one without title."""
    if kind != "relations":
        return {"": list(rows)}
    groups: dict[str, list[Row]] = {title: [] for title in RELATION_GROUPS}
    for row in rows:
        groups[_group(row)].append(row)
    return {title: group for title, group in groups.items() if group}


def _group(row: Row) -> str:
    if row["name"].startswith("rule_"):
        return RULES
    if row["role"] != "relation":
        return BACKGROUND
    if row["drives"]:
        return DRIVES
    sensors = {need for need in row["requires"] if need in ("lidar", "lidar_only", "camera")}
    return CAMERA if sensors == {"camera"} else BOTH if "camera" in sensors else LIDAR


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(value) if isinstance(value, (list, dict)) else str(value)
