# SPDX-License-Identifier: Apache-2.0
"""``mt doctor``."""

from __future__ import annotations

import argparse
import dataclasses
import json

from mt_nodes.errors import ExitCode


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.epilog = "example: mt doctor"
    parser.add_argument("--json", action="store_true", help="print one array of findings")
    parser.add_argument("--clean", action="store_true", help="first remove shared memory that killed runs left")
    parser.add_argument("--stack", default="", help="also look for the message types of a stack: its name or file")
    parser.add_argument("--no-probe", action="store_true", help="start no ROS nodes")


def run(args: argparse.Namespace) -> int:
    """Print every finding and what to type; 4 when something is wrong enough to spoil runs."""
    from mt_nodes.cli.printing import table, text
    from mt_nodes.doctor import diagnose, worst
    from mt_nodes.environment import clean_shared_memory

    if args.clean:
        text(f"removed {clean_shared_memory()} leftovers of killed runs")
    findings = diagnose(probe=not args.no_probe, stack=args.stack)
    if args.json:
        print(json.dumps([dataclasses.asdict(f) for f in findings], indent=2))
    else:
        table(("", "what", "found"), [(f.level, f.title, f.detail) for f in findings])
        for finding in findings:
            if finding.fix:
                text(f"{finding.title}: {finding.fix}")
    return int(ExitCode.INFRASTRUCTURE if worst(findings) == "error" else ExitCode.PASS)
