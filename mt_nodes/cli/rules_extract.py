# SPDX-License-Identifier: Apache-2.0
"""``mt rules extract FILE|NAME…``: by the built-in parser, or by language models."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mt_nodes.base.errors import ExitCode
from mt_nodes.cli.rules_models import add_models, readers_of, usage_line
from mt_nodes.cli.rules_store import add_store, ontology_of

if TYPE_CHECKING:
    from mt_nodes.cli.rules_models import Readers
    from mt_nodes.rules.extraction import CandidateReading, Extraction
    from mt_nodes.rules.ontology import Ontology
    from mt_nodes.rules.rule_sets import RuleSet
    from mt_nodes.rules.store_import import Taken


def add_extract_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.epilog = "example: mt rules extract germany my_rules.txt --store my_rules.sqlite"
    add_rules(parser)
    files = "also write a relation file for each, for `mt replay --relations`"
    parser.add_argument("--relations", type=Path, metavar="DIR", help=files)
    world = "with --relations: write files for `mt scenario --relations`, the closed loop, instead"
    parser.add_argument("--in-world", action="store_true", help=world)
    parser.add_argument(
        "--json", action="store_true", help="print JSON: each rule with its relations, or why it has none"
    )
    add_models(parser)
    add_store(parser, "default: store nothing", writes=True)


def add_rules(parser: argparse.ArgumentParser) -> None:
    """Declare the rules and how they are read."""
    rules = "shipped set (germany, california), or your own: .txt with one rule per line, or .yaml"
    parser.add_argument("rules", nargs="+", metavar="FILE|NAME", help=rules)
    strict = "tell stop, give_way and keep_distance from slow_down, stay_behind and start_moving from keep_current"
    parser.add_argument("--strict", action="store_true", help=f"{strict}; the paper does not")


def run_extract(args: argparse.Namespace) -> int:
    """Read the rules, store and print their relations; return 3 if no rule could be read, 4 if a model failed."""
    from mt_nodes.rules.store_import import load_sets, statements_of, write_relations

    ontology, sets = ontology_of(args), load_sets(args.rules)
    with readers_of(args, ontology) as readers:
        found = read_all(args, sets, readers, ontology)
    if args.json:
        print(json.dumps([_plain(one) for one in found], indent=2, ensure_ascii=False))
    else:
        _print_found(args, found, readers)
    for rules in sets if args.relations else ():
        statements = statements_of(found, rules)
        _print_files(args, *write_relations(args.relations, rules, statements, ontology, args.in_world))
    if not all(one.complete for _, one in found):
        return int(ExitCode.INFRASTRUCTURE)
    return int(ExitCode.PASS if any(one.chosen for _, one in found) else ExitCode.UNDECIDED)


def read_all(args: argparse.Namespace, sets: Sequence[RuleSet], readers: Readers, ontology: Ontology) -> list[Taken]:
    """Return the readings of all rules, stored if ``--store`` is given, with progress."""
    from rich.progress import Progress

    from mt_nodes.rules.rule_store import Store
    from mt_nodes.rules.store_import import take_in

    found = []
    with ExitStack() as stack:
        store = stack.enter_context(Store(args.store, wait_s=args.wait, ontology=ontology)) if args.store else None
        progress = stack.enter_context(Progress(transient=True, disable=args.json or not sys.stdout.isatty()))
        task = progress.add_task("rules", total=sum(len(one.rules) for one in sets))
        for one in take_in(sets, readers.readers, readers.check, store):
            found.append(one)
            progress.update(task, advance=1)
    return found


def _plain(taken: Taken) -> dict[str, Any]:
    from mt_nodes.rules.store_entry import sentence

    rules, found = taken
    chosen = found.chosen
    statements = chosen.reading.statements if chosen else ()
    return {
        "rule": found.rule.id,
        "region": rules.region,
        "text": found.rule.text,
        "relations": [{"text": sentence(one), **vars(one)} for one in statements],
        "read_by": chosen.origin if chosen else None,
        "readers": {
            one.origin: {
                "relations": len(one.reading.statements),
                "why": one.reading.why,
                **{key: getattr(one, key) for key in ("score", "agreement", "rejected")},
            }
            for one in found.candidates
        },
        "rejected": [row for one in found.rejected for row in _plain_rejected(one)],
        "complete": found.complete,
        "why": found.why,
    }


def _plain_rejected(one: CandidateReading) -> list[dict[str, Any]]:
    from mt_nodes.rules.store_entry import sentence

    return [
        {"text": sentence(statement), "read_by": one.origin, "agreement": one.agreement}
        for statement in one.reading.statements
    ]


def _print_found(args: argparse.Namespace, found: Sequence[Taken], readers: Readers) -> None:
    from mt_nodes.base.wording import counted
    from mt_nodes.cli.terminal import table, text
    from mt_nodes.rules.store_entry import sentence

    chosen = [(one.rule.id, one.chosen) for _, one in found if one.chosen]
    rows = [(rule, one.origin, sentence(s)) for rule, one in chosen for s in one.reading.statements]
    if rows:
        table(("rule", "read by", "relation"), rows)
    without = len(found) - len(chosen)
    text(f"{counted(len(found), 'rule')}: {counted(len(rows), 'relation')}, {without} without a relation")
    for _, one in found:
        if not one.chosen:
            text(f"  {one.rule.id}: {one.why}")
    if without and not args.model:
        text("--least-sure 0.5 and --model parser read more, and more of it wrongly: check those readings")
    _print_rejected([one for _, one in found], readers)
    for usage in readers.usage():
        text(usage_line(usage))
    if unanswered := sum(not one.complete for _, one in found):
        text(f"{counted(unanswered, 'rule')} not answered by every model and not stored; type the same again to go on")
    text(f"stored in {args.store}" if args.store else "not stored; --store FILE stores the relations")


def _print_rejected(found: Sequence[Extraction], readers: Readers) -> None:
    """Print what the judge rejects, with its agreement."""
    from mt_nodes.base.wording import counted
    from mt_nodes.cli.terminal import text
    from mt_nodes.rules.store_entry import sentence

    if readers.check is None:
        return
    rejected = [(one.rule.id, reading) for one in found for reading in one.rejected]
    judges = ", ".join(judge.name for judge in readers.check.judges)
    least = readers.check.least_agreement
    text(f"{counted(len(rejected), 'answer')} rejected by {judges}: agreement below {least:g}; in no suite")
    for rule, reading in rejected:
        said = "; ".join(map(sentence, reading.reading.statements))
        text(f"  {rule}: rejected, agreement {reading.agreement:.2f}: {reading.origin}: {said}")


def _print_files(args: argparse.Namespace, ids: Sequence[str], unbound: Sequence[str]) -> None:
    from mt_nodes.base.wording import counted

    out = sys.stderr if args.json else sys.stdout
    print(f"{counted(len(ids), 'relation file')} in {args.relations}", file=out)
    for why in unbound:
        print(f"  no file: {why}", file=out)
