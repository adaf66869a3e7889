# SPDX-License-Identifier: Apache-2.0
"""``mt rules check`` and ``mt rules stats``."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mt_nodes.base.errors import ExitCode
from mt_nodes.cli.rules_store import add_store, ontology_of, open_store, store_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mt_nodes.rules.binding_checks import BindingResult
    from mt_nodes.rules.shipped_rules import RuleStatement
    from mt_nodes.rules.stats import Score


def add_check_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.epilog = "example: mt rules check --store my_rules.sqlite"
    parser.add_argument("--json", action="store_true", help="print JSON: each relation, and what it is bound to")
    add_store(parser, "default: the shipped store")


def run_check(args: argparse.Namespace) -> int:
    """Bind each relation to mutations and a check; print those that cannot be bound, and why.

    Returns 0 only if every relation is bound. For the shipped store also prints which statements are not in it.
    """
    from mt_nodes.rules.binding_checks import checked

    rows = checked(_relations(args), ontology_of(args))
    bound = sum(row.relation is not None for row in rows)
    left_out = _left_out() if args.store is None else []
    code = ExitCode.PASS if rows and bound == len(rows) else ExitCode.FAIL if rows else ExitCode.UNDECIDED
    if args.json:
        plain = {"relations": [row.as_plain() for row in rows], "bound": bound, "exit_code": int(code)}
        print(json.dumps({**plain, "not_in_store": left_out}, indent=2, ensure_ascii=False))
    else:
        _print_bindings(args, rows, bound, left_out)
    return int(code)


def _relations(args: argparse.Namespace) -> Sequence[RuleStatement]:
    from mt_nodes.rules.shipped_rules import in_store, of_entry

    if args.store is None:
        return tuple(in_store().values())
    with open_store(args) as store:
        return [of_entry(entry) for entry in store.entries()]


def _left_out() -> list[dict[str, Any]]:
    """Return the statements of shipped rules that no mutation can show, and the rules that cannot be read."""
    from mt_nodes.rules.ontology import load_ontology
    from mt_nodes.rules.shipped_rules import born, in_store, readings

    ontology = load_ontology()
    gaps = [
        {"rule": one.rule.id, "element": one.statement.element, "why": one.gap(ontology)}
        for name, one in born().items()
        if name not in in_store()
    ]
    read = [(rule, reading) for rows in readings().values() for rule, reading in rows]
    return gaps + [{"rule": rule.id, "element": "", "why": found.why} for rule, found in read if found.why]


def _print_bindings(
    args: argparse.Namespace, rows: Sequence[BindingResult], bound: int, left_out: Sequence[dict[str, Any]]
) -> None:
    from mt_nodes.base.wording import counted
    from mt_nodes.cli.terminal import text

    text(f"{store_name(args)}: {bound} of {counted(len(rows), 'relation')} bound to mutations and a check")
    for row in rows:
        if row.relation is None:
            text(f"  {row.born.id}: {row.why}")
    if left_out:
        text(f"not in the store: {counted(len(left_out), 'statement')} of the shipped rules")
    for one in left_out:
        text(f"  {one['rule']}: {one['element']}{': ' if one['element'] else ''}{one['why']}")


def add_stats_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.epilog = "example: mt rules stats --golden my_golden_set"
    golden = "folder of .yaml files with the correct relations of rules (default: that of the source tree, if there)"
    parser.add_argument("--golden", type=Path, metavar="DIR", help=golden)
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_store(parser, "default: the shipped store")


def run_stats(args: argparse.Namespace) -> int:
    """Count the relations and the shipped rules; print precision and recall of the readers by the golden set."""
    from mt_nodes.rules.stats import counts

    with open_store(args) as store:
        every = store.entries(rejected=True)
    entries = [entry for entry in every if not entry.rejected]
    stats: dict[str, Any] = {
        "store": store_name(args),
        "relations": len(entries),
        "rejected": len(every) - len(entries),
        "by": counts(entries),
        "rules": _shipped_counts(),
        "golden": _golden(args, entries),
    }
    if args.json:
        print(json.dumps(stats, indent=2, ensure_ascii=False, default=lambda score: score.as_plain()))
    else:
        _print_stats(stats)
    return 0


def _shipped_counts() -> dict[str, dict[str, Any]]:
    """Return, by region, how many shipped rules the parser reads, and how many statements no mutation can show."""
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
    """Return scores, reader -> golden file -> score; empty where there is no golden set."""
    from mt_nodes.base import resources
    from mt_nodes.base.errors import UsageError
    from mt_nodes.rules.rule_classifier import READINGS
    from mt_nodes.rules.stats import golden_files, load_golden, origin_scores, parser_score
    from mt_nodes.rules.store_entry import PARSER

    own = args.golden and golden_files(args.golden)
    shipped = (resources.config_dir() / READINGS, resources.config_dir().parent / "test" / "golden")
    files = own or {name: path for folder in shipped for name, path in golden_files(folder).items()}
    if args.golden and not own:
        raise UsageError(f"--golden {args.golden}: got no .yaml file, expected at least one")
    golden = {name: load_golden(path) for name, path in files.items()}
    ontology = ontology_of(args)
    by_parser = {name: parser_score(name, rows, ontology) for name, rows in golden.items()}
    return {**({PARSER: by_parser} if by_parser else {}), **origin_scores(entries, golden)}


def _print_stats(stats: dict[str, Any]) -> None:
    from mt_nodes.base.wording import counted
    from mt_nodes.cli.terminal import heading, table, text

    more = f", {stats['rejected']} more rejected by a judge" if stats["rejected"] else ""
    heading(f"{stats['store']}: {counted(stats['relations'], 'relation')}{more}")
    for what, numbers in stats["by"].items():
        text(f"by {what}: {', '.join(f'{name} {count}' for name, count in numbers.items())}")
    columns = ("rules", "read", "statements", "not_shown")
    rows = [(region, *(str(row[c]) for c in columns)) for region, row in stats["rules"].items()]
    table(("shipped rules of", "rules", "read", "statements", "without a mutation"), rows)
    for region, row in stats["rules"].items():
        if row["unread"]:
            text(f"not read in {region}: {', '.join(row['unread'])}")
    if not stats["golden"]:
        text("precision and recall: no golden set; name one with --golden DIR")
        return
    scores = [(reader, name, one) for reader, files in stats["golden"].items() for name, one in files.items()]
    table(
        ("read by", "golden set", "precision", "recall", "right / read / correct"),
        [(r, n, _share(s.precision), _share(s.recall), f"{s.right} / {s.read} / {s.expected}") for r, n, s in scores],
    )


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
