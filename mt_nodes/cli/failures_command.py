# SPDX-License-Identifier: Apache-2.0
"""``mt replay failures list``, ``mt replay failures add DIR…`` and ``mt replay failures forget KEY…``."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from mt_nodes.base.errors import ExitCode, UsageError

#: Letters of a key that are shown: enough to tell cases apart.
_SHOWN = 12


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.epilog = "example: mt replay failures add night && mt replay --failures"
    add = parser.add_argument
    about = "list the cases; add the violated pairs of finished runs, campaigns, searches; take some out"
    add("verb", choices=("list", "add", "forget"), help=about)
    about = "of add: a results directory; of forget: a case, or how it begins, as `mt replay failures list` shows it"
    add("which", metavar="DIR|KEY", nargs="*", help=about)
    add("--all", action="store_true", help="forget every case")
    add("--failures-file", type=Path, metavar="FILE", help="database (default mt_failures.sqlite)")
    add("--json", action="store_true", help="print one array, or one object")


def run(args: argparse.Namespace) -> int:
    """List cases, add those of results, or take some out of the database."""
    from mt_nodes.runs.campaign.failures import FILE, Failures

    path = args.failures_file or Path(FILE)
    _refuse(args)
    if args.verb == "add":
        new, known = keep(list(map(Path, args.which)), path, aside=args.json)
        if args.json:
            print(json.dumps({"new": new, "known": known}))
        return int(ExitCode.PASS)
    if not path.is_file():
        raise UsageError(
            f"{path}: no such file; `mt replay failures add DIR` makes it of results, "
            "and so does `mt replay BAG --failures`, when something fails"
        )
    with Failures(path) as failures:
        if args.verb == "list":
            _list([_shown(case) for case in failures.cases()], args.json)
        else:
            gone = failures.forget([c.key for c in failures.cases()] if args.all else args.which)
            _forgotten(gone, args.json)
    return int(ExitCode.PASS)


def keep(directories: list[Path], path: Path, *, aside: bool = False) -> tuple[int, int]:
    """Keep the violated pairs of finished runs in a database; say, and return, how many are new and how many known.

    Args:
        aside: something else goes to standard output.

    Raises:
        MtError: one of the directories holds no results, or is damaged; or the database cannot be written.
    """
    from mt_nodes.base.wording import counted
    from mt_nodes.cli.terminal import text
    from mt_nodes.runs.campaign.failures import Failures
    from mt_nodes.runs.campaign.regression import add

    with Failures(path) as failures:
        new, known = add(failures, directories)
    if not aside and new + known:
        text(f"{counted(new, 'new case')} kept in {path}, {known} known before; `mt replay --failures` plays them")
    elif not aside:
        text(f"no violated pair to be kept in {path}")
    return new, known


def keep_of_campaign(out: Path, file: Path | None, *, aside: bool = False) -> None:
    """Keep the violated pairs of a campaign; what is wrong with the database is a warning, for it changes no result."""
    from mt_nodes.base.errors import MtError
    from mt_nodes.engine.results_dirs import cells_of
    from mt_nodes.runs.campaign.failures import FILE

    try:
        if cells_of(out):
            keep([out], file or Path(FILE), aside=aside)
    except MtError as error:
        print(f"mt: warning: {error}; the results of the campaign are not concerned", file=sys.stderr)


def _refuse(args: argparse.Namespace) -> None:
    """Refuse words that do not go with a verb.

    Raises:
        UsageError: saying what was expected.
    """
    if args.verb == "list" and (args.which or args.all):
        raise UsageError("mt replay failures list: takes no KEY and no --all")
    if args.verb == "add" and (args.all or not args.which):
        raise UsageError(
            "mt replay failures add: expected one or more results directories, of a run, a campaign or a search"
        )
    if args.verb == "forget" and bool(args.which) == args.all:
        raise UsageError("mt replay failures forget: expected keys, or --all")


def _shown(case: Any) -> dict[str, Any]:
    about = {name: getattr(case, name) for name in ("bag", "stack", "seed", "last_failed", "last_passed", "held")}
    return {"key": case.key, "pair": str(case.pair), **about}


def _list(cases: list[dict[str, Any]], as_json: bool) -> None:
    from mt_nodes.cli.terminal import table, text

    if as_json:
        print(json.dumps(cases, indent=2))
    elif cases:
        columns = ("key", "pair", "bag", "stack", "seed", "last_failed", "held")
        rows = [[str(case[name])[: _SHOWN if name == "key" else None] for name in columns] for case in cases]
        table(("key", "pair", "bag", "stack", "seed", "failed last", "held in runs"), rows)
    else:
        text("no case is kept")


def _forgotten(count: int, as_json: bool) -> None:
    from mt_nodes.base.wording import counted
    from mt_nodes.cli.terminal import text

    if as_json:
        print(json.dumps({"forgotten": count}))
    else:
        text(f"{counted(count, 'case')} forgotten")
