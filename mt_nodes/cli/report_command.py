# SPDX-License-Identifier: Apache-2.0
"""``mt report DIR``."""

from __future__ import annotations

import argparse
from pathlib import Path

from mt_nodes.base.errors import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.epilog = "example: mt report mt_results/latest --waivers waivers.yaml"
    about = "results directory of a run or campaign; with --coverage also of searches, and several"
    parser.add_argument("dirs", type=Path, nargs="+", metavar="DIR", help=about)
    parser.add_argument("--waivers", type=Path, metavar="FILE", help="apply these waivers in place of those of the run")
    about = "also show this pair of drives, even if it holds; 'all': every pair"
    parser.add_argument("--drive", action="append", default=[], metavar="PAIR", help=about)
    about = "also show this violated pair with point clouds, images and detections"
    parser.add_argument("--pair", action="append", default=[], metavar="PAIR", help=about)
    about = "show what the runs covered instead: range, bearing, class and weather, and what was never tried"
    parser.add_argument("--coverage", action="store_true", help=about)
    about = "with --coverage: directory for coverage.json and coverage.html (default the first DIR)"
    parser.add_argument("--out", type=Path, metavar="DIR", help=about)
    parser.add_argument("--json", action="store_true", help="with --coverage: print coverage.json instead of a table")


def run(args: argparse.Namespace) -> int:
    """Make report.html, pairs.csv and junit.xml again, or the coverage; return 0 if that worked."""
    if args.coverage:
        from mt_nodes.cli import coverage_command

        _refuse_beside_coverage(args)
        return coverage_command.run(args)
    if len(args.dirs) > 1 or args.out or args.json:
        raise UsageError("mt report: several DIR, --out and --json need --coverage")
    return _remake(args.dirs[0], args)


def _refuse_beside_coverage(args: argparse.Namespace) -> None:
    if args.waivers or args.drive or args.pair:
        raise UsageError("mt report --coverage: takes no --waivers, --drive or --pair; leave them out")


def _remake(directory: Path, args: argparse.Namespace) -> int:
    from mt_nodes.cli.outcome import print_waivers
    from mt_nodes.cli.terminal import text
    from mt_nodes.engine.summary.bisect_headline import FILE as BISECTION
    from mt_nodes.engine.summary.watch_sums import FILE as WATCHED
    from mt_nodes.engine.waivers import load_waivers
    from mt_nodes.report.bisect_page import write_bisect_page
    from mt_nodes.report.run_files import remake
    from mt_nodes.report.search_page import TRIALS, write_search_page
    from mt_nodes.report.watch_page import write_watch_page
    from mt_nodes.runs.campaign import conductor
    from mt_nodes.runs.moral.report_journal import is_campaign

    if is_campaign(directory):
        from mt_nodes.cli import moral_results

        return moral_results.report(directory, args)
    if conductor.is_campaign(directory):
        from mt_nodes.cli import campaign_command

        return campaign_command.report(directory, args)
    plain = not (args.waivers or args.drive or args.pair)
    for held, write_page in ((TRIALS, write_search_page), (BISECTION, write_bisect_page), (WATCHED, write_watch_page)):
        if (directory / held).is_file() and plain:
            text(str(write_page(directory)))
            return 0
    summary = remake(directory, load_waivers(args.waivers) if args.waivers else None, args.drive, args.pair)
    if args.waivers:
        print_waivers(summary)
        text(f"exit code of the run: {summary['exit_code']}: {summary['exit_why']}")
    text(str(directory / "report.html"))
    return 0
