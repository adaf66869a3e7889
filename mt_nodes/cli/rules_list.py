# SPDX-License-Identifier: Apache-2.0
"""``mt rules list``."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from mt_nodes.base.errors import UsageError
from mt_nodes.cli.rules_models import add_embedding, indexer_of
from mt_nodes.cli.rules_store import add_store, opened

if TYPE_CHECKING:
    from mt_nodes.rules.store_entry import Entry


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.epilog = "example: mt rules list --region germany --find pedestrian"
    parser.add_argument("--region", default="", help="only the relations of this region")
    parser.add_argument("--origin", action="append", default=[], help="only what this read; may be given again")
    find = "only relations with all of these words; with --embed those nearest to them in meaning, the nearest first"
    parser.add_argument("--find", default="", metavar="WORDS", help=find)
    parser.add_argument("--json", action="store_true", help="print one array with everything that is known")
    add_embedding(parser)
    add_store(parser, "without: the store that ships")


def run(args: argparse.Namespace) -> int:
    """Print a table, or one JSON array."""
    from mt_nodes.cli.terminal import table, text

    if args.embed and not args.find.strip():
        raise UsageError("--embed NAME finds what is near in meaning; say to what by --find WORDS")
    with indexer_of(args) as indexer, opened(args, indexer) as store:
        rows = store.entries(args.region, args.origin)
        if args.embed:
            rows = [entry for entry, _ in store.nearest(args.find, rows)]
        elif args.find:
            there = {entry.index for entry in rows}
            rows = [entry for entry in store.find(args.find, len(store.entries())) if entry.index in there]
    if args.json:
        print(json.dumps([_plain(entry) for entry in rows], indent=2, ensure_ascii=False))
        return 0
    if not rows:
        narrowed = args.region or args.origin or args.find
        text(
            "no relation; "
            + ("without --region, --origin and --find all are listed" if narrowed else "the store is empty")
        )
        return 0
    told = [(str(e.index), e.region, e.origin, str(e.executions), " ".join(e.statement.rules), e.text) for e in rows]
    table(("no.", "region", "read by", "run", "rules", "what it says"), told)
    return 0


def _plain(entry: Entry) -> dict[str, Any]:
    from mt_nodes.rules.shipped_rules import ids_of, section_of

    said, ids = entry.statement, ids_of(entry)
    return {
        "name": ids[0] if ids else f"relation {entry.index}",
        "index": entry.index,
        "relations": list(ids),
        "sections": [section_of(name) for name in ids],
        "text": entry.text,
        **{key: value for key, value in vars(said).items() if key != "rules"},
        "rules": list(said.rules),
        **{key: getattr(entry, key) for key in ("region", "origin", "prompt_id", "answer_id", "executions")},
    }
