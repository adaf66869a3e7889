# SPDX-License-Identifier: Apache-2.0
"""``mt compare DIR DIR``."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

COLUMNS = ("relation", "change", "before", "after", "violated before", "after", "p", "test")
#: Pairs that are listed of each kind; --json has them all.
LISTED = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.epilog = "example: mt compare results_of_main results_of_my_branch --waivers waivers.yaml"
    parser.add_argument("before", type=Path, metavar="DIR", help="results directory to compare with")
    parser.add_argument("after", type=Path, metavar="DIR", help="results directory that is judged")
    parser.add_argument("--waivers", type=Path, metavar="FILE", help="violations that are known and accepted for now")
    parser.add_argument("--json", action="store_true", help="print one object")


def run(args: argparse.Namespace) -> int:
    """Print what fails newly, no longer and still; 1 when a relation fails newly."""
    from mt_nodes.comparison import Finished, compare
    from mt_nodes.moral.report_journal import is_campaign
    from mt_nodes.waivers import load_waivers

    if is_campaign(args.before) and is_campaign(args.after):
        from mt_nodes.cli import moral_results

        return moral_results.compare(args.before, args.after, as_json=args.json)
    waivers = load_waivers(args.waivers) if args.waivers else None
    found = compare(Finished.load(args.before), Finished.load(args.after, waivers))
    if args.json:
        print(json.dumps(found, indent=2))
    else:
        _print(found)
    return int(found["exit_code"])


def _print(found: dict[str, Any]) -> None:
    from mt_nodes.cli.outcome import requirements
    from mt_nodes.cli.printing import table, text

    table(COLUMNS, [_row(name, relation) for name, relation in found["relations"].items()], right=("p",))
    for line in requirements(found["relations"]):
        text(line)
    for name, relation in found["relations"].items():
        if relation["waived"]:
            text(f"{name}: FAIL waived until {relation['waived']['expires']}: {relation['waived']['reason']}")
        for kind in ("newly_failing", "newly_passing", "still_failing"):
            _print_pairs(name, kind.replace("_", " "), (relation["pairs"] or {}).get(kind, []))
    for where, names in (("before", found["only_before"]), ("after", found["only_after"])):
        if names:
            text(f"only in the run {where}: {', '.join(names)}")
    for note in found["notes"]:
        text(note)
    text(f"exit code {found['exit_code']}: {found['exit_why']}")


def _print_pairs(name: str, kind: str, pairs: list[str]) -> None:
    from mt_nodes.cli.printing import text

    if pairs:
        more = f" and {len(pairs) - LISTED} more" if len(pairs) > LISTED else ""
        text(f"{name}, {len(pairs)} {kind}: {', '.join(pairs[:LISTED])}{more}")


def _row(name: str, relation: dict[str, Any]) -> tuple[str, ...]:
    was, now = relation["before"], relation["after"]
    return (
        name,
        relation["change"] + (" (waived)" if relation["waived"] else ""),
        was["outcome"],
        now["outcome"],
        f"{was['violated']}/{was['decided']}",
        f"{now['violated']}/{now['decided']}",
        "-" if relation["p_adjusted"] is None else f"{relation['p_adjusted']:.2g}",
        relation["test"],
    )
