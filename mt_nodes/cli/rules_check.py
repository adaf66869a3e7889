# SPDX-License-Identifier: Apache-2.0
"""``mt rules check``: exits 0 only if every relation is bound to mutations and a check."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from mt_nodes.base.errors import ExitCode
from mt_nodes.cli.rules_store import add_store, named, ontology_of, opened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mt_nodes.rules.binding_checks import BindingResult
    from mt_nodes.rules.shipped_rules import RuleStatement


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.epilog = "example: mt rules check --store my_rules.sqlite"
    parser.add_argument("--json", action="store_true", help="print one object: each relation, and what it is bound to")
    add_store(parser, "without: the store that ships")


def run(args: argparse.Namespace) -> int:
    """Bind each relation; say which cannot be, and of the shipped rules what is not in the store, and why."""
    from mt_nodes.rules.binding_checks import checked

    rows = checked(_relations(args), ontology_of(args))
    bound = sum(row.relation is not None for row in rows)
    left_out = _left_out() if args.store is None else []
    code = ExitCode.PASS if rows and bound == len(rows) else ExitCode.FAIL if rows else ExitCode.UNDECIDED
    if args.json:
        told = {"relations": [row.as_plain() for row in rows], "bound": bound, "exit_code": int(code)}
        print(json.dumps({**told, "not_in_store": left_out}, indent=2, ensure_ascii=False))
    else:
        _tell(args, rows, bound, left_out)
    return int(code)


def _relations(args: argparse.Namespace) -> Sequence[RuleStatement]:
    from mt_nodes.rules.shipped_rules import in_store, of_entry

    if args.store is None:
        return tuple(in_store().values())
    with opened(args) as store:
        return [of_entry(entry) for entry in store.entries()]


def _left_out() -> list[dict[str, Any]]:
    """Return the statements of shipped rules that nothing shows, and the rules that say nothing we can read."""
    from mt_nodes.rules.ontology import load_ontology
    from mt_nodes.rules.shipped_rules import born, in_store, readings

    ontology = load_ontology()
    shown = [
        {"rule": one.rule.id, "element": one.statement.element, "why": one.gap(ontology)}
        for name, one in born().items()
        if name not in in_store()
    ]
    read = [(rule, reading) for rows in readings().values() for rule, reading in rows]
    return shown + [{"rule": rule.id, "element": "", "why": found.why} for rule, found in read if found.why]


def _tell(
    args: argparse.Namespace, rows: Sequence[BindingResult], bound: int, left_out: Sequence[dict[str, Any]]
) -> None:
    from mt_nodes.base.wording import counted
    from mt_nodes.cli.terminal import text

    text(f"{named(args)}: {bound} of {counted(len(rows), 'relation')} bound to mutations and a check")
    for row in rows:
        if row.relation is None:
            text(f"  {row.born.id}: {row.why}")
    if left_out:
        text(f"not in the store: {counted(len(left_out), 'statement')} of the shipped rules")
    for one in left_out:
        text(f"  {one['rule']}: {one['element']}{': ' if one['element'] else ''}{one['why']}")
