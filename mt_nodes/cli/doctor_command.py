# SPDX-License-Identifier: Apache-2.0
"""``mt doctor``."""

from __future__ import annotations

import argparse
import dataclasses
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mt_nodes.base.errors import ExitCode, UsageError
from mt_nodes.base.wording import counted
from mt_nodes.cli.options import put_out

if TYPE_CHECKING:
    from mt_nodes.runs.doctor import Finding


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.epilog = "example: mt doctor --live-config live.yaml"
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--clean", action="store_true", help="first remove shared memory that killed runs have left behind"
    )
    parser.add_argument(
        "--stack", default="", help="also check the message types of a stack: shipped name, or .yaml file"
    )
    parser.add_argument(
        "--bag",
        type=Path,
        metavar="BAG",
        help="also run --stack, a Python callable, on some frames of a bag: what it detects",
    )
    parser.add_argument(
        "--write", action="store_true", help="write the score thresholds that --bag proposes into the stack file"
    )
    parser.add_argument(
        "--live-config",
        type=Path,
        metavar="FILE",
        help="also compare the running system with a config file of `mt live`",
    )
    parser.add_argument("--set", action="append", default=[], metavar="K=V", help="override a setting of --live-config")
    parser.add_argument(
        "--cost",
        action="store_true",
        help="also measure how many cores the relations of --live-config need, on messages of the running system",
    )
    parser.add_argument("--vehicle", action="store_true", help="also check what keeps test traffic away from a vehicle")
    parser.add_argument("--no-probe", action="store_true", help="start no ROS nodes")


def run(args: argparse.Namespace) -> int:
    """Print every finding and how to fix it; return 4 if a finding would spoil runs."""
    from mt_nodes.base.environment import clean_shared_memory
    from mt_nodes.cli.terminal import text
    from mt_nodes.runs.doctor import diagnose, worst
    from mt_nodes.runs.security_checkup import check_security

    if args.set and not args.live_config:
        raise UsageError("--set overrides a setting of --live-config FILE; give that, too")
    if args.cost and not args.live_config:
        raise UsageError("--cost measures the relations of --live-config FILE; give that, too")
    if (args.bag and not args.stack) or (args.write and not args.bag):
        raise UsageError("--bag goes with --stack, and --write with --bag")
    if args.clean:
        text(f"removed {counted(clean_shared_memory(), 'shared memory file')} of killed runs")
    # Without security libraries no probe node starts: that would only say so once more.
    security = list(check_security(os.environ))
    probe = not args.no_probe and worst(security) != "error"
    findings = [*diagnose(probe=probe, stack=args.stack), *security]
    if args.live_config:
        from mt_nodes.cli.options import settings
        from mt_nodes.runs.live.checkup import check_live_config

        findings += check_live_config(args.live_config, settings(args.set), os.environ, args.cost)
    if args.bag:
        findings += _first_look(args)
    if args.vehicle:
        findings += _vehicle(args)
    put_out(args.json, [dataclasses.asdict(f) for f in findings], lambda: print_findings(findings))
    return int(ExitCode.INFRASTRUCTURE if worst(findings) == "error" else ExitCode.PASS)


def print_findings(findings: Sequence[Finding]) -> None:
    """Print findings as a table, and below it how to fix each."""
    from mt_nodes.cli.terminal import table, text

    table(("", "what", "found"), [(f.level, f.title, f.detail) for f in findings])
    for finding in findings:
        if finding.fix:
            text(f"{finding.title}: {finding.fix}")


def _first_look(args: argparse.Namespace) -> Iterable[Finding]:
    from mt_nodes.runs.doctor import Finding
    from mt_nodes.runs.first_look import look_at, write_scores

    findings, proposal = look_at(args.stack, args.bag)
    if args.write and proposal:
        findings.append(Finding("info", "written", f"scores into {write_scores(args.stack, proposal)}"))
    return findings


def _vehicle(args: argparse.Namespace) -> Iterable[Finding]:
    from mt_nodes.cli.options import settings
    from mt_nodes.runs.live.settings import configured
    from mt_nodes.runs.vehicle.checkup import check_vehicle

    return check_vehicle(configured(args.live_config, settings(args.set)) if args.live_config else None)
