# SPDX-License-Identifier: Apache-2.0
"""``mt list [KIND]``: a line for each thing; a screen at a time on a terminal."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from mt_nodes.base import resources
from mt_nodes.base.errors import UsageError, suggest
from mt_nodes.base.wording import first_sentence
from mt_nodes.cli import catalogue
from mt_nodes.cli.options import comma_separated
from mt_nodes.cli.terminal import paged, table

if TYPE_CHECKING:
    from mt_nodes.cli.terminal import Section

LIDAR, CAMERA, BOTH, DRIVES = "of point clouds", "of images", "of clouds and images together", "of whole drives"
RADAR = "of radars, alone or with other sensors"
BACKGROUND, RULES = "control and sham", "of traffic rules"
#: Titles of the groups of relations, in the order of printing.
RELATION_GROUPS = (LIDAR, CAMERA, BOTH, RADAR, DRIVES, BACKGROUND, RULES)
Row = dict[str, Any]
COLUMNS = {
    "mutations": ("sensors", "role"),
    "relations": ("kind",),
    "suites": ("count",),
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
    parser.epilog = "example: mt list relations --filter weather,'*_boxes'"
    kinds = ", ".join(catalogue.SUMMARIES)
    parser.add_argument("kind", metavar="KIND", nargs="?", help=f"one of {kinds}; none: say what these are")
    about = "only these: a pattern ('noise_*') or part of a name or text; of relations also tag:fog or a suite"
    parser.add_argument("--filter", type=comma_separated, default=(), metavar="WORD,…", help=about)
    parser.add_argument("--json", action="store_true", help="print JSON, with all that is known")
    parser.add_argument("--all", action="store_true", help="with relations: also list those of traffic rules")


def run(args: argparse.Namespace) -> int:
    """Print what kinds there are, or a line for each thing of a kind, or JSON."""
    if args.kind is None:
        if args.filter or args.all:
            raise UsageError("mt list: --filter and --all go with a KIND, such as relations")
        return _print_kinds(as_json=args.json)
    if args.json:
        rows = catalogue.rows(args.kind)
        print(json.dumps(_filtered(args.kind, rows, args.filter), indent=2))
        return 0
    rows = _filtered(args.kind, _rows(args), args.filter)
    paged(_sections(args, rows))
    return 0


def _print_kinds(*, as_json: bool) -> int:
    if as_json:
        print(json.dumps(catalogue.SUMMARIES, indent=2))
        return 0
    table(("mt list", "what it lists"), list(catalogue.SUMMARIES.items()))
    return 0


def _rows(args: argparse.Namespace) -> list[Row]:
    """Return the rows; of relations only what is printed, and those of rules only if they are asked for."""
    if args.kind != "relations":
        return catalogue.brief_rows(args.kind, COLUMNS.get(args.kind, ()))
    rows = list(relation_rows())
    with_rules = args.all or any(word.startswith(("rule", "RULE")) for word in args.filter)
    if with_rules:
        names = [name for name in catalogue.names("relations") if name.startswith("rule_")]
        rows += [{**catalogue.row("relations", name), "group": RULES, "family": ""} for name in names]
    return rows


def relation_rows() -> Iterator[Row]:
    """Yield name, group, family, kind and summary of every relation with a file, without loading its plugins."""
    from mt_nodes.base.yaml_files import read_mapping
    from mt_nodes.relations.named_suites import BACKGROUND as OFFERED_ALWAYS
    from mt_nodes.relations.named_suites import family_of
    from mt_nodes.relations.relation import FOLDER, LOOP_FOLDER

    for folder in (FOLDER, LOOP_FOLDER):
        for name, path in resources.shipped(folder).items():
            data = read_mapping(path)
            group = BACKGROUND if name in OFFERED_ALWAYS else DRIVES if folder == LOOP_FOLDER else _of_sensors(data)
            family = family_of(name) if group in (LIDAR, CAMERA, BOTH, RADAR) else ""
            about = {"kind": data["kind"], "summary": " ".join(str(data["because"]).split())}
            yield {"name": name, "group": group, "family": family, **about}


def _of_sensors(data: Row) -> str:
    sensors = {need for need in data.get("requires") or () if need in ("lidar", "lidar_only", "camera", "radar")}
    if "radar" in sensors:
        return RADAR
    return CAMERA if sensors == {"camera"} else BOTH if "camera" in sensors else LIDAR


def _filtered(kind: str, rows: Sequence[Row], words: Sequence[str]) -> list[Row]:
    """Return the rows that a word stands for; all where there is none. Raises UsageError: a word stands for nothing."""
    if not words:
        return list(rows)
    selected: set[str] = set()
    for word in words:
        found = _named(kind, word) & {row["name"] for row in rows} or _matching(rows, word)
        if not found:
            names = [row["name"] for row in rows]
            raise UsageError(f"mt list: no {kind.rstrip('s')} matches '{word}'{suggest(word, names, ' ').rstrip('; ')}")
        selected |= found
    return [row for row in rows if row["name"] in selected]


def _named(kind: str, word: str) -> set[str]:
    """Return the relations that a word of ``--relations`` stands for, in open and closed loop."""
    if kind != "relations":
        return set()
    from mt_nodes.runs.relation_choice import members_of

    found: set[str] = set()
    for loop in (False, True):
        try:
            found |= set(members_of(word, loop) or (word,))
        except UsageError:  # it may be a part of names or texts
            continue
    return found


def _matching(rows: Sequence[Row], word: str) -> set[str]:
    part = word.lower()
    return {r["name"] for r in rows if fnmatchcase(r["name"], word) or part in f"{r['name']} {r['summary']}".lower()}


def _sections(args: argparse.Namespace, rows: Sequence[Row]) -> Iterator[Section]:
    """Yield title, columns and cells of each group."""
    extra = COLUMNS.get(args.kind, ())
    columns = ("name", *extra, "what it is")
    for title, group in _groups(args.kind, rows):
        yield title, columns, [(r["name"], *(_text(r[c]) for c in extra), _summary(r)) for r in group]
    if args.kind == "relations" and not args.all and not args.filter:
        yield f"{RULES}: `mt list relations --all` lists these, too, `mt rules list` the rules", (), []


def _summary(row: Row) -> tuple[str, str]:
    """Return what a thing is, in brief for a terminal and whole for a file."""
    return first_sentence(row["summary"]), row["summary"]


def _groups(kind: str, rows: Sequence[Row]) -> Iterator[tuple[str, list[Row]]]:
    """Yield relations by group, in the order of :data:`RELATION_GROUPS`, and family, with titles; all else as one."""
    if kind != "relations":
        yield "", list(rows)
        return
    from mt_nodes.relations.named_suites import FAMILIES

    for title in RELATION_GROUPS:
        group = [row for row in rows if row["group"] == title]
        if not group:
            continue
        families = [family for family in (*FAMILIES, "") if any(row["family"] == family for row in group)]
        yield f"{title} ({len(group)})", [] if families != [""] else group
        for family in families if families != [""] else ():
            members = [row for row in group if row["family"] == family]
            yield f"  {family} ({len(members)})", members


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(value) if isinstance(value, (list, dict)) else str(value)
