# SPDX-License-Identifier: Apache-2.0
"""``mt rules stats``."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mt_nodes.cli.rules_store import add_store, named, ontology_of, opened

if TYPE_CHECKING:
    from mt_nodes.rules.stats import Score


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.epilog = "example: mt rules stats --golden my_golden_set"
    golden = (
        "folder of .yaml files with what a person reads in rules (default: that of the source tree, if it is there)"
    )
    parser.add_argument("--golden", type=Path, metavar="DIR", help=golden)
    parser.add_argument("--json", action="store_true", help="print one object")
    add_store(parser, "without: the store that ships")


def run(args: argparse.Namespace) -> int:
    """Count the relations, say which shipped rules were read, and how well by the golden set."""
    from mt_nodes.rules.stats import counts

    with opened(args) as store:
        entries = store.entries()
    told: dict[str, Any] = {
        "store": named(args),
        "relations": len(entries),
        "by": counts(entries),
        "rules": _read(),
        "golden": _golden(args, entries),
    }
    if args.json:
        print(json.dumps(told, indent=2, ensure_ascii=False, default=lambda score: score.as_plain()))
    else:
        _tell(told)
    return 0


def _read() -> dict[str, dict[str, Any]]:
    """Return how many of the shipped rules the parser reads, and how many statements nothing shows, by region."""
    from mt_nodes.rules.shipped_rules import born, in_store, readings

    hidden = [one.rules.region for name, one in born().items() if name not in in_store()]
    return {
        region: {
            "rules": len(rows),
            "read": sum(bool(reading.statements) for _, reading in rows),
            "unread": [rule.id for rule, reading in rows if not reading.statements],
            "statements": sum(len(reading.statements) for _, reading in rows),
            "not_shown": hidden.count(region),
        }
        for region, rows in readings().items()
    }


def _golden(args: argparse.Namespace, entries: list[Any]) -> dict[str, dict[str, Score]]:
    """Return scores, reader -> golden file -> score; nothing where there is no golden set.

    Raises:
        UsageError: the one that was named is none.
    """
    from mt_nodes.base import resources
    from mt_nodes.base.errors import UsageError
    from mt_nodes.rules.stats import golden_files, load_golden, origin_scores, parser_score
    from mt_nodes.rules.store_entry import PARSER

    files = golden_files(args.golden or resources.config_dir().parent / "test" / "golden")
    if args.golden and not files:
        raise UsageError(f"--golden {args.golden}: got no .yaml file, expected at least one")
    golden = {name: load_golden(path) for name, path in files.items()}
    ontology = ontology_of(args)
    by_parser = {name: parser_score(name, rows, ontology) for name, rows in golden.items()}
    return {**({PARSER: by_parser} if by_parser else {}), **origin_scores(entries, golden)}


def _tell(told: dict[str, Any]) -> None:
    from mt_nodes.base.wording import counted
    from mt_nodes.cli.terminal import heading, table, text

    heading(f"{told['store']}: {counted(told['relations'], 'relation')}")
    for what, numbers in told["by"].items():
        text(f"by {what}: {', '.join(f'{name} {count}' for name, count in numbers.items())}")
    columns = ("rules", "read", "statements", "not_shown")
    rows = [(region, *(str(row[c]) for c in columns)) for region, row in told["rules"].items()]
    table(("shipped rules of", "rules", "read", "statements", "that nothing shows"), rows)
    for region, row in told["rules"].items():
        if row["unread"]:
            text(f"not read, of {region}: {', '.join(row['unread'])}")
    if not told["golden"]:
        text("precision and recall: no golden set here; name one by --golden DIR")
        return
    scores = [(reader, name, one) for reader, files in told["golden"].items() for name, one in files.items()]
    table(
        ("read by", "golden set", "precision", "recall", "right / read / meant"),
        [(r, n, _share(s.precision), _share(s.recall), f"{s.right} / {s.read} / {s.meant}") for r, n, s in scores],
    )


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
