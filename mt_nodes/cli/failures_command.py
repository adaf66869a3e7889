# SPDX-License-Identifier: Apache-2.0
"""``mt failures list`` and ``mt failures forget KEY…``."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from mt_nodes.errors import ExitCode, UsageError

#: Letters of a key that are shown: enough to tell cases apart.
_SHOWN = 12


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.epilog = "example: mt failures list"
    add = parser.add_argument
    add("verb", choices=("list", "forget"), help="list the cases, or take some out")
    add("keys", metavar="KEY", nargs="*", help="of a case, or how it begins, as `mt failures list` shows it")
    add("--all", action="store_true", help="forget every case")
    add("--failures-file", type=Path, metavar="FILE", help="database (default mt_failures.sqlite)")
    add("--json", action="store_true", help="print one array, or one object")


def run(args: argparse.Namespace) -> int:
    """List cases, or take them out of the database."""
    from mt_nodes.campaign.failures import FILE, Failures

    path = args.failures_file or Path(FILE)
    if args.verb == "list" and (args.keys or args.all):
        raise UsageError("mt failures list: takes no KEY and no --all")
    if args.verb == "forget" and bool(args.keys) == args.all:
        raise UsageError("mt failures forget: expected keys, or --all")
    if not path.is_file():
        raise UsageError(f"{path}: no such file; `mt replay BAG --failures` makes it, when something fails")
    with Failures(path) as failures:
        if args.verb == "list":
            _list([_shown(case) for case in failures.cases()], args.json)
        else:
            gone = failures.forget([c.key for c in failures.cases()] if args.all else args.keys)
            _forgotten(gone, args.json)
    return int(ExitCode.PASS)


def _shown(case: Any) -> dict[str, Any]:
    about = {name: getattr(case, name) for name in ("bag", "stack", "seed", "last_failed", "last_passed", "held")}
    return {"key": case.key, "pair": str(case.pair), **about}


def _list(cases: list[dict[str, Any]], as_json: bool) -> None:
    from mt_nodes.cli.printing import table, text

    if as_json:
        print(json.dumps(cases, indent=2))
    elif cases:
        columns = ("key", "pair", "bag", "stack", "seed", "last_failed", "held")
        rows = [[str(case[name])[: _SHOWN if name == "key" else None] for name in columns] for case in cases]
        table(("key", "pair", "bag", "stack", "seed", "failed last", "held since"), rows)
    else:
        text("no case is kept")


def _forgotten(count: int, as_json: bool) -> None:
    from mt_nodes.cli.printing import text
    from mt_nodes.wording import counted

    if as_json:
        print(json.dumps({"forgotten": count}))
    else:
        text(f"{counted(count, 'case')} forgotten")
