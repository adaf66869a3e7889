# SPDX-License-Identifier: Apache-2.0
"""``mt report DIR``."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.epilog = "example: mt report mt_results/latest --waivers waivers.yaml"
    parser.add_argument("dir", type=Path, metavar="DIR", help="directory of a finished run, or of a campaign")
    parser.add_argument("--waivers", type=Path, metavar="FILE", help="mark these in place of the waivers of the run")
    about = "show this pair of drives, too, violated or not; 'all': every one that was judged"
    parser.add_argument("--drive", action="append", default=[], metavar="PAIR", help=about)
    about = "show this violated pair with pictures, too: clouds to turn, cameras, what was reported"
    parser.add_argument("--pair", action="append", default=[], metavar="PAIR", help=about)


def run(args: argparse.Namespace) -> int:
    """Make report.html, pairs.csv and junit.xml anew; the exit code says only whether that worked."""
    from mt_nodes.cli.outcome import print_waivers
    from mt_nodes.cli.terminal import text
    from mt_nodes.engine.waivers import load_waivers
    from mt_nodes.report.run_files import remake
    from mt_nodes.runs.campaign import conductor
    from mt_nodes.runs.moral.report_journal import is_campaign

    if is_campaign(args.dir):
        from mt_nodes.cli import moral_results

        return moral_results.report(args.dir, args)
    if conductor.is_campaign(args.dir):
        from mt_nodes.cli import campaign_command

        return campaign_command.report(args.dir, args)
    summary = remake(args.dir, load_waivers(args.waivers) if args.waivers else None, args.drive, args.pair)
    if args.waivers:
        print_waivers(summary)
        text(f"exit code of the run: {summary['exit_code']}: {summary['exit_why']}")
    text(str(args.dir / "report.html"))
    return 0
