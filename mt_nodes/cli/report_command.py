# SPDX-License-Identifier: Apache-2.0
"""``mt report DIR``."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.epilog = "example: mt report mt_results/latest"
    parser.add_argument("dir", type=Path, metavar="DIR", help="results directory of a finished run")


def run(args: argparse.Namespace) -> int:
    """Make report.html anew from the journal and print its path; the exit code says only whether that worked."""
    from mt_nodes.cli.printing import text
    from mt_nodes.report.html import write_report

    text(str(write_report(args.dir)))
    return 0
