# SPDX-License-Identifier: Apache-2.0
"""``mt verify DIR``."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from mt_nodes.base.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from mt_nodes.runs.again.verification import Verification

#: Problems of a check that are printed; --json has all.
MOST_PROBLEMS = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.epilog = "example: mt verify mt_results/latest"
    parser.add_argument("dir", type=Path, metavar="DIR", help="results directory of a run or of a campaign")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Check every checksum, the totals, and every follow-up of a replay, made again; for archives.

    Returns 1 if anything is not as it was written, 3 if part of it could not be checked.
    """
    from mt_nodes.runs.again.verification import verify

    if not args.dir.is_dir():
        raise UsageError(f"{args.dir}: no such directory; expected a results directory")
    checks = []
    for check in verify(args.dir):
        checks.append(check)
        if not args.json:
            _print(check, args.dir)
    code = _exit_code(checks)
    if args.json:
        print(json.dumps({"checks": [check.as_plain() for check in checks], "exit_code": int(code)}, indent=2))
    return int(code)


def _exit_code(checks: Iterable[Verification]) -> ExitCode:
    if any(check.wrong for check in checks):
        return ExitCode.FAIL
    return ExitCode.UNDECIDED if any(check.unchecked for check in checks) else ExitCode.PASS


def _print(check: Verification, directory: Path) -> None:
    from mt_nodes.cli.terminal import text

    place = Path(check.directory)
    name = "" if place == directory else f"{place.relative_to(directory)}: "
    if check.unchecked:
        text(f"{name}{check.what}: not checked: {check.unchecked}")
    else:
        wrong = f"{len(check.wrong)} wrong" if check.wrong else "as written"
        text(f"{name}{check.what}: {check.checked} checked, {wrong}")
    for problem in check.wrong[:MOST_PROBLEMS]:
        text(f"  {problem}")
    if len(check.wrong) > MOST_PROBLEMS:
        text(f"  and {len(check.wrong) - MOST_PROBLEMS} more: --json")
