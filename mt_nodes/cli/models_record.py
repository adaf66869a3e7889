# SPDX-License-Identifier: Apache-2.0
"""``mt models record SCENARIO… --out FOLDER``."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from mt_nodes.cli.arguments import help_of
from mt_nodes.cli.whole_numbers import at_least_one, whole_number

if TYPE_CHECKING:
    from mt_nodes.runs.models.record_request import RecordRequest


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    from mt_nodes.runs.models.record_request import RecordRequest

    parser.epilog = "example: mt models record town_lap_any_light --drives 6 --out my_frames"
    default, add = RecordRequest(scenarios=()), parser.add_argument
    about = {name: f"{text} (default %(default)s)" for name, text in help_of(RecordRequest).items()}
    add("scenarios", metavar="SCENARIO", nargs="+", help=help_of(RecordRequest)["scenarios"])
    add("--out", type=Path, required=True, metavar="FOLDER", help="where pictures and samples.csv go, or go on")
    add("--stack", default=default.stack, help=about["stack"])
    add("--driver", default="", metavar="WEIGHTS", help=help_of(RecordRequest)["driver"])
    add("--share", type=float, default=default.share, help=about["share"])
    add("--drives", type=at_least_one, default=default.drives, metavar="N", help=about["drives"])
    add("--push", type=float, default=default.push_mps2, metavar="MPS2", help=about["push_mps2"])
    add("--cruise", type=float, default=default.cruise_mps, metavar="MPS", help=about["cruise_mps"])
    add("--jitter", type=float, default=default.jitter, help=about["jitter"])
    add("--seed", type=whole_number, default=default.seed, help=about["seed"])
    add("--json", action="store_true", help="print what was made as JSON")


def run(args: argparse.Namespace) -> int:
    """Record, say what was made, return 0."""
    from mt_nodes.base.wording import counted
    from mt_nodes.cli.terminal import text
    from mt_nodes.runs.models.drive_recording import record
    from mt_nodes.runs.models.samples import FILE

    drives: dict[str, int] = {}

    def made(name: str, pictures: int) -> None:
        drives[name] = pictures
        if not args.json:
            text(f"{name}: {counted(pictures, 'picture')}")

    whole = record(_request(args), args.out, made)
    if args.json:
        print(json.dumps({"table": str(args.out / FILE), "pictures": whole, "made": drives}, indent=2))
    else:
        text(f"{args.out / FILE}: {counted(whole, 'picture')}; `mt models train {args.out}` learns from them")
    return 0


def _request(args: argparse.Namespace) -> RecordRequest:
    """Return what is asked for.

    Raises:
        UsageError: a number is out of its range.
    """
    from mt_nodes.base.params import build
    from mt_nodes.runs.models.record_request import RecordRequest

    given = {"scenarios": tuple(args.scenarios), "push_mps2": args.push, "cruise_mps": args.cruise}
    same = {name: getattr(args, name) for name in ("stack", "driver", "share", "drives", "jitter", "seed")}
    return build(RecordRequest, given | same, "mt models record")
