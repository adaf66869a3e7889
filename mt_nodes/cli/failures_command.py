# SPDX-License-Identifier: Apache-2.0
"""``mt replay failures list``, ``add DIR…``, ``forget KEY…`` and ``export DIR…``."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from mt_nodes.base.errors import ExitCode, UsageError
from mt_nodes.cli.failures_export import OWN, add_export_arguments, export

#: Shown letters of a key: enough to tell cases apart.
_KEY_LETTERS = 12


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.epilog = "example: mt replay failures add night && mt replay --failures"
    add = parser.add_argument
    about = (
        "list stored cases; add the violated pairs of finished runs, campaigns or searches; forget cases; export the "
        "follow-ups of violated pairs as labelled training data"
    )
    add("verb", choices=("list", "add", "forget", "export"), help=about)
    about = "for add and export: results directories; for forget: keys, or the first letters of keys, that list shows"
    add("which", metavar="DIR|KEY", nargs="*", help=about)
    add("--all", action="store_true", help="forget every case")
    add_export_arguments(parser)
    add("--failures-file", type=Path, metavar="FILE", help="database (default mt_failures.sqlite)")
    add("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """List, add or forget stored cases."""
    from mt_nodes.cli.stored_failures import refuse_no_database
    from mt_nodes.runs.campaign.failures import FILE, Failures

    path = args.failures_file or Path(FILE)
    _refuse(args)
    if args.verb == "export":
        return export(args, path)
    if args.verb == "add":
        new, known = store(list(map(Path, args.which)), path, quiet=args.json)
        if args.json:
            print(json.dumps({"new": new, "known": known}))
        return int(ExitCode.PASS)
    refuse_no_database(path)
    with Failures(path) as failures:
        if args.verb == "list":
            _list([_row(case) for case in failures.cases()], args.json)
        else:
            forgotten = failures.forget([c.key for c in failures.cases()] if args.all else args.which)
            _print_forgotten(forgotten, args.json)
    return int(ExitCode.PASS)


def store(directories: list[Path], path: Path, *, quiet: bool = False) -> tuple[int, int]:
    """Store the violated pairs of finished runs in a database; print and return how many are new and how many known.

    ``quiet``: print nothing.
    Raises MtError: a directory holds no results, or is damaged; or the database cannot be written.
    """
    from mt_nodes.base.wording import counted
    from mt_nodes.cli.terminal import text
    from mt_nodes.runs.campaign.failures import Failures
    from mt_nodes.runs.campaign.regression import add

    with Failures(path) as failures:
        new, known = add(failures, directories)
    if not quiet and new + known:
        text(f"{counted(new, 'new case')} stored in {path}, {known} known before; `mt replay --failures` replays them")
    elif not quiet:
        text(f"no violated pair to store in {path}")
    return new, known


def store_campaign(out: Path, file: Path | None, *, quiet: bool = False) -> None:
    """Store the violated pairs of a campaign; a damaged database is a warning: it changes no result."""
    from mt_nodes.base.errors import MtError
    from mt_nodes.engine.results_dirs import cells_of
    from mt_nodes.runs.campaign.failures import FILE

    try:
        if cells_of(out):
            store([out], file or Path(FILE), quiet=quiet)
    except MtError as error:
        print(f"mt: warning: {error}; the results of the campaign are unaffected", file=sys.stderr)


def _refuse(args: argparse.Namespace) -> None:
    """Refuse arguments that the verb does not take. Raises UsageError: saying what was expected."""
    if args.verb == "list" and (args.which or args.all):
        raise UsageError("mt replay failures list: got a KEY or --all, expected neither")
    if args.verb != "export" and (given := [name for name in OWN if getattr(args, name) is not None]):
        raise UsageError(f"mt replay failures {args.verb}: --{given[0]} goes with export alone")
    if args.verb in ("add", "export") and (args.all or not args.which):
        raise UsageError(
            f"mt replay failures {args.verb}: expected results directories of runs, campaigns or searches, and no --all"
        )
    if args.verb == "forget" and bool(args.which) == args.all:
        raise UsageError("mt replay failures forget: expected either keys or --all")


def _row(case: Any) -> dict[str, Any]:
    about = {name: getattr(case, name) for name in ("bag", "stack", "seed", "last_failed", "last_passed", "held")}
    return {"key": case.key, "pair": str(case.pair), **about}


def _list(cases: list[dict[str, Any]], as_json: bool) -> None:
    from mt_nodes.cli.terminal import table, text

    if as_json:
        print(json.dumps(cases, indent=2))
    elif cases:
        columns = ("key", "pair", "bag", "stack", "seed", "last_failed", "held")
        rows = [[str(case[name])[: _KEY_LETTERS if name == "key" else None] for name in columns] for case in cases]
        table(("key", "pair", "bag", "stack", "seed", "last failed", "holds since (runs)"), rows)
    else:
        text("no case is stored")


def _print_forgotten(count: int, as_json: bool) -> None:
    from mt_nodes.base.wording import counted
    from mt_nodes.cli.terminal import text

    if as_json:
        print(json.dumps({"forgotten": count}))
    else:
        text(f"{counted(count, 'case')} forgotten")
