# SPDX-License-Identifier: Apache-2.0
"""``mt report --coverage DIR…``, formerly ``mt coverage DIR…``."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from mt_nodes.base.errors import ExitCode


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.epilog = "example: mt report --coverage mt_results/latest"
    add = parser.add_argument
    about = "results directory of a run, a campaign (all its cells) or a search (its finding)"
    add("dirs", type=Path, nargs="+", metavar="DIR", help=about)
    add("--out", type=Path, metavar="DIR", help="directory for coverage.json and coverage.html (default the first DIR)")
    add("--json", action="store_true", help="print coverage.json instead of a table")


def run(args: argparse.Namespace) -> int:
    """Print what the runs covered; return 0, or 3 where no pair was decided."""
    from mt_nodes.base.directories import cannot_write, write_whole
    from mt_nodes.cli.terminal import table, text
    from mt_nodes.report.coverage.coverage import coverage
    from mt_nodes.report.coverage.coverage_view import COLUMNS, coverage_page, rows, summary

    found, out = coverage(args.dirs), args.out or args.dirs[0]
    content = json.dumps(found.as_plain(), indent=2)
    try:
        out.mkdir(parents=True, exist_ok=True)
        write_whole(out / "coverage.json", content + "\n")
        write_whole(out / "coverage.html", coverage_page(found))
    except OSError as error:
        raise cannot_write(out, error) from error
    if args.json:
        print(content)
    else:
        table(COLUMNS, rows(found), right=COLUMNS[2:])
        for line in summary(found):
            text(line)
        text(f"map: {out / 'coverage.html'}, numbers: {out / 'coverage.json'}")
    return int(ExitCode.PASS if found.weathers else ExitCode.UNDECIDED)
