# SPDX-License-Identifier: Apache-2.0
"""``mt rules compare FILE|NAME…``: readers of rules side by side, and how far they agree."""

from __future__ import annotations

import argparse
import json
from typing import Any

from mt_nodes.base.errors import ExitCode, UsageError
from mt_nodes.cli.rules_extract import add_rules, read_all
from mt_nodes.cli.rules_models import add_models, readers_of, usage_line
from mt_nodes.cli.rules_store import add_store, ontology_of


def add_compare_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.epilog = "example: mt rules compare my_rules.txt --model qwen3:8b --model parser --judge llama3"
    add_rules(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_models(parser)
    add_store(parser, "also stores the relations; default: store nothing", writes=True)


def run_compare(args: argparse.Namespace) -> int:
    """Print what each reader reads and how far they agree; return 3 if no rule was read, 4 if a model failed."""
    from mt_nodes.rules.reader_agreement import as_plain, require_library
    from mt_nodes.rules.store_import import load_sets

    require_library()
    ontology, sets = ontology_of(args), load_sets(args.rules)
    with readers_of(args, ontology) as readers:
        if len(readers.readers) < 2:
            raise UsageError("got 1 reader, expected two or more; type: --model NAME --model parser")
        found = [one for _, one in read_all(args, sets, readers, ontology)]
    plain = as_plain(found)
    if args.json:
        print(json.dumps({**plain, "usage": readers.usage()}, indent=2))
    else:
        _print(plain, [usage_line(usage) for usage in readers.usage()])
    if not all(one.complete for one in found):
        return int(ExitCode.INFRASTRUCTURE)
    read = any(candidate.reading.statements for one in found for candidate in one.candidates)
    return int(ExitCode.PASS if read else ExitCode.UNDECIDED)


def _print(plain: dict[str, Any], usage: list[str]) -> None:
    from mt_nodes.cli.terminal import table, text

    counts = [
        (row["reader"], *(str(row[key]) for key in ("rules", "answered", "read", "relations", "judged", "rejected")))
        for row in plain["readers"]
    ]
    means = [_number(row["agreement"]) for row in plain["readers"]]
    columns = ("reader", "rules", "answered", "read", "relations", "judged", "rejected", "judge agrees")
    table(columns, [(*row, mean) for row, mean in zip(counts, means, strict=True)])
    aspects = ("readers agree on", "rules", "all alike", "Krippendorff's alpha", "Fleiss' kappa", "95 % interval")
    table(aspects, [_agreement_cells(row) for row in plain["agreement"]])
    for row in plain["pairs"]:
        text(f"{' and '.join(row['readers'])} read {_number(row['alike'])} of the rules alike")
    for line in usage:
        text(line)


def _agreement_cells(row: dict[str, Any]) -> tuple[str, ...]:
    interval = "-" if row["interval"] is None else " … ".join(map(_number, row["interval"]))
    numbers = (_number(row[key]) for key in ("alike", "alpha", "kappa"))
    return (row["aspect"], str(row["rules"]), *numbers, interval)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
