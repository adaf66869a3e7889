# SPDX-License-Identifier: Apache-2.0
"""``mt rules review``: people rate relations on a sheet; AutoMT's table VII with agreement."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mt_nodes.base.errors import UsageError
from mt_nodes.cli.options import at_least_one
from mt_nodes.cli.rules_store import add_store, open_store

if TYPE_CHECKING:
    from mt_nodes.rules.relation_ratings import RatedQuestion

#: The paper has 90 ratings by three experts of each region, so 30 relations of each.
_COUNT = 30
_ANSWERS = ("strongly agree", "agree", "neutral", "disagree", "strongly disagree")


def add_review_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.epilog = "example: mt rules review --sheet sheet.csv; mt rules review --ratings anna.csv ben.csv"
    add = parser.add_argument
    rules = "rules that the relations were made of, as for `extract` (default: the shipped ones)"
    add("rules", nargs="*", default=["germany", "california"], metavar="FILE|NAME", help=rules)
    way = parser.add_mutually_exclusive_group(required=True)
    way.add_argument("--sheet", type=Path, metavar="FILE", help="write a sheet to rate (.csv); give each rater a copy")
    ratings = "filled-in sheets, one for each rater: print the shares of the answers, and how far the raters agree"
    way.add_argument("--ratings", type=Path, nargs="+", metavar="FILE", help=ratings)
    add(
        "--count", type=at_least_one, default=_COUNT, metavar="N", help="relations of each region (default %(default)s)"
    )
    add("--seed", type=int, default=0, metavar="N", help="seed of the random choice of relations (default %(default)s)")
    add("--json", action="store_true", help="with --ratings: print JSON")
    add_store(parser, "default: the shipped store")


def run_review(args: argparse.Namespace) -> int:
    """Write a sheet, or print what raters said."""
    if args.sheet:
        return _write_sheet(args)
    from mt_nodes.rules.reader_agreement import require_library
    from mt_nodes.rules.relation_ratings import rated, read_sheets

    require_library()
    sheets = read_sheets(args.ratings)
    found = rated(sheets)
    if args.json:
        print(json.dumps({"raters": list(sheets), "questions": [_plain(one) for one in found]}, indent=2))
    else:
        _print(list(sheets), found)
    return 0


def _write_sheet(args: argparse.Namespace) -> int:
    from mt_nodes.base.directories import cannot_write, write_whole
    from mt_nodes.cli.terminal import text
    from mt_nodes.rules.relation_ratings import POINTS, sheet
    from mt_nodes.rules.store_import import load_sets

    if args.sheet.exists():
        raise UsageError(f"{args.sheet}: exists already and may hold ratings; name another file")
    with open_store(args) as store:
        entries = store.entries()
    try:
        write_whole(args.sheet, sheet(entries, load_sets(args.rules), args.count, args.seed))
    except OSError as error:
        raise cannot_write(args.sheet, error) from error
    scale = ", ".join(f"{point} {answer}" for point, answer in zip(POINTS, _ANSWERS, strict=True))
    text(f"{args.sheet}: give each rater a copy with a name of their own")
    text(f"valid: the relation is a fair reading of its rule; clear: it can be understood without the rule: {scale}")
    return 0


def _plain(one: RatedQuestion) -> dict[str, Any]:
    return {**vars(one), "shares": one.shares}


def _print(raters: list[str], found: list[RatedQuestion]) -> None:
    from mt_nodes.base.wording import counted
    from mt_nodes.cli.terminal import table, text
    from mt_nodes.rules.published_figures import published

    text(f"{counted(len(raters), 'rater')}: {', '.join(raters)}")
    columns = ("region", "relations are", *_ANSWERS, "ratings", "Fleiss' kappa", "95 % interval", "alpha")
    rows = [_cells(one) for one in found]
    for region, row in published().expert_ratings.items():
        shares = [f"{row[answer.replace(' ', '_')]:.1f} %" for answer in _ANSWERS]
        rows.append((region, "valid, in the paper", *shares, "90", f"{row['kappa']:.2f}", "-", "-"))
    table(columns, rows)


def _cells(one: RatedQuestion) -> tuple[str, ...]:
    shares = [f"{100 * share:.1f} %" for share in one.shares or ()] or ["-"] * len(_ANSWERS)
    interval = "-" if one.interval is None else f"{one.interval[0]:.2f} … {one.interval[1]:.2f}"
    kappa, alpha = ("-" if value is None else f"{value:.2f}" for value in (one.kappa, one.alpha))
    return (one.region, one.question, *shares, str(sum(one.answers)), kappa, interval, alpha)
