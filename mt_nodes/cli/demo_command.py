# SPDX-License-Identifier: Apache-2.0
"""``mt demo``: a replay of a generated drive into an honest and a faulty stack."""

from __future__ import annotations

import argparse
import datetime
from pathlib import Path
from typing import Any

from mt_nodes.api.demo_drive import FRAMES, SEED, demo_drive
from mt_nodes.base.errors import ExitCode, UsageError
from mt_nodes.cli.options import add_fields
from mt_nodes.engine.plan import ReplayRequest

FAULT = "grid_index_wrap"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.epilog = "example: mt demo --out my_demo"
    parser.add_argument("--out", type=Path, metavar="DIR", help="results directory (default mt_results/demo_<time>)")
    parser.add_argument(
        "--seed", type=int, default=SEED, help="seed of the drive and of all random draws (default %(default)s)"
    )
    add_fields(parser, ReplayRequest(bags=()), "transport")


def run(args: argparse.Namespace) -> int:
    """Generate the drive, replay it into an honest and a faulty stack, print whether only the fault was found."""
    from mt_nodes.cli.outcome import print_summary
    from mt_nodes.cli.replay_execution import replay
    from mt_nodes.cli.terminal import heading, text

    out = _directory(args.out)
    text(f"generating a drive: {FRAMES} clouds of a 64-beam LiDAR in a street, 10 Hz, seed {args.seed}")
    demo_drive(out / "drive", seed=args.seed)
    summaries: dict[str, dict[str, Any]] = {}
    for name, faults in (("honest", ()), ("faulty", (FAULT,))):
        request = ReplayRequest((str(out / "drive"),), seed=args.seed, faults=faults, transport=args.transport)
        summaries[name] = replay(request, str(out / name), quiet=True)
        text("")
        heading(f"{name}: {request.stack}" + (f" with the planted fault {FAULT}" if faults else ""))
        print_summary(summaries[name], out / name)
        if summaries[name]["exit_code"] == ExitCode.INTERRUPTED:
            return int(ExitCode.INTERRUPTED)
    honest = summaries["honest"]["exit_code"] == ExitCode.PASS
    found = summaries["faulty"]["exit_code"] == ExitCode.FAIL
    text("")
    text(f"honest stack {'passes' if honest else 'DOES NOT PASS'}, planted fault {'found' if found else 'NOT FOUND'}")
    return int(ExitCode.PASS if honest and found else ExitCode.FAIL)


def _directory(out: Path | None) -> Path:
    from mt_nodes.base.directories import DEFAULT_ROOT

    path = out or DEFAULT_ROOT / f"demo_{datetime.datetime.now():%Y%m%d_%H%M%S}"
    if path.exists() and any(path.iterdir()):
        raise UsageError(f"--out {path}: directory is not empty; choose another one")
    path.mkdir(parents=True, exist_ok=True)
    return path
