# SPDX-License-Identifier: Apache-2.0
"""``mt evidence make`` and ``mt evidence verify``."""

from __future__ import annotations

import argparse
import datetime
import json
import random
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mt_nodes.base.errors import ExitCode, UsageError
from mt_nodes.cli.options import at_least_one

if TYPE_CHECKING:
    from mt_nodes.runs.safety_case.bundle_check import BundleCheck

#: Gaps that are printed; the page and --json have all.
_MOST_GAPS = 10


def add_make_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.epilog = "example: mt evidence make plan.json mt_results/latest --sensitivity faulty --key key.pem -o bundle"
    add = parser.add_argument
    add("plan", type=Path, metavar="PLAN", help="signed plan")
    add("runs", type=Path, metavar="DIR", nargs="*", help="results of all runs that were begun by it")
    about = "results of a run with a planted fault, which shows that relations can fail; may be given again"
    add("--sensitivity", type=Path, action="append", default=[], metavar="DIR", help=about)
    add("--requirements", type=Path, metavar="FILE", help="the file of which the plan was made, to be kept with it")
    add("--waivers", type=Path, metavar="FILE", help="YAML file with known violations that are accepted for now")
    about = "response of a time stamp authority (RFC 3161) to the plan's SHA-256; may be given again"
    add("--witness", type=Path, action="append", default=[], metavar="FILE", help=about)
    add("--with-bags", action="store_true", help="copy the drives into the bundle; else it has their SHA-256 alone")
    add("--key", type=Path, required=True, metavar="FILE", help="your private Ed25519 key, which signed the plan")
    add("-o", "--out", type=Path, required=True, metavar="BUNDLE", help="directory of the bundle, a new one")
    add("--json", action="store_true", help="print what the bundle comes to as JSON")


def run_make(args: argparse.Namespace) -> int:
    """Make a bundle; 0: no gap, 1: a requirement is violated or something is missing, 3: nothing was decided."""
    from mt_nodes.base.directories import cannot_write
    from mt_nodes.base.dsse import private_key
    from mt_nodes.runs.safety_case.bundle import BundleParts, make_bundle

    parts = BundleParts(
        *(args.plan, args.runs, args.sensitivity, args.requirements, args.waivers, args.witness, args.with_bags)
    )
    try:
        found = make_bundle(parts, args.out, private_key(args.key), datetime.date.today())
    except OSError as error:
        raise cannot_write(args.out, error) from error
    if args.json:
        print(json.dumps(found, indent=2))
    else:
        from mt_nodes.cli.terminal import text

        _print(found)
        text(f"exit code {found['exit_code']}: {found['exit_why']}")
        text(f"bundle {args.out}, signed; page: {args.out / 'index.html'}")
    return int(found["exit_code"])


def add_verify_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.epilog = "example: mt evidence verify bundle --key signer.pub.pem --reproduce 0/17/noise_outside_roi_1000/0"
    add = parser.add_argument
    add("bundle", type=Path, metavar="BUNDLE", help="directory of a bundle")
    about = "the signer's public key, had from the signer; without it only integrity is checked"
    add("--key", type=Path, metavar="FILE", help=about)
    about = "public key of a witness who must have signed the plan, too; may be given again"
    add("--witness", type=Path, action="append", default=[], metavar="FILE", help=about)
    about = "root certificates of the time stamp authority, PEM; may be given again"
    add("--tsa-root", type=Path, action="append", default=[], metavar="FILE", help=about)
    add("--reproduce", metavar="PAIR", help="make a pair again, bit for bit, and have the stack judge it: 0/17/fog/0")
    about = "make N pairs again, chosen here at random, so that nobody could know which"
    add("--audit", type=at_least_one, metavar="N", help=about)
    add("--run", default="1", metavar="N", help="run of the bundle that has the pair (default 1)")
    add("--bag", default="", metavar="BAG", help="drive of the pair, where the bundle does not have it")
    add("--out", type=Path, metavar="DIR", help="results of the pair made again (default reproduced/<pair>)")
    add("--json", action="store_true", help="print JSON")


def run_verify(args: argparse.Namespace) -> int:
    """Verify a bundle; 1: not as signed, violated or with gaps; 3: nothing decided, or the signer is not known."""
    from mt_nodes.runs.safety_case.bundle import ATTESTATION
    from mt_nodes.runs.safety_case.bundle_check import BundleVerification, Trusted

    if not (args.bundle / ATTESTATION).is_file():
        raise UsageError(f"{args.bundle}: has no {ATTESTATION}; expected a bundle of `mt evidence make`")
    if (args.out and not args.reproduce) or (args.bag and not (args.reproduce or args.audit)):
        raise UsageError(f"{'--out' if args.out else '--bag'} goes with --reproduce PAIR")
    if args.json and (args.reproduce or args.audit):
        raise UsageError("got --json and --reproduce or --audit, expected one of them")
    verification = BundleVerification(
        args.bundle, Trusted(args.key, args.witness, args.tsa_root), datetime.date.today()
    )
    for check in verification.run():
        if not args.json:
            _print_check(check)
    code, found = verification.exit_code(), verification.found
    if args.json:
        checks = [check.as_plain() for check in verification.checks]
        print(json.dumps({"checks": checks, "found": found, "exit_code": int(code)}, indent=2))
    else:
        from mt_nodes.cli.terminal import text

        _print(found)
        text(f"exit code {int(code)}: {verification.exit_why()}")
    if any(check.wrong for check in verification.checks):
        return int(code)  # of what is not as it was signed nothing is executed
    codes = [int(code), *([_reproduce(args)] if args.reproduce else []), *([_audit(args)] if args.audit else [])]
    return max(codes, key=_severity)


def _severity(code: int) -> int:
    return (0, 3, 1).index(code) if code in (0, 1, 3) else code


def _reproduce(args: argparse.Namespace) -> int:
    """Make a pair again, outside of the bundle. Raises UsageError: the bundle has neither the run nor the drive."""
    from mt_nodes.base.directories import unused
    from mt_nodes.cli import reproduce_command
    from mt_nodes.runs.safety_case.bundle_drives import drive_of_pair

    drive = drive_of_pair(args.bundle, args.run, args.reproduce, args.bag)
    out = args.out or unused(Path("reproduced") / args.reproduce.replace("/", "_"))
    place = args.bundle / "runs" / args.run
    wanted = argparse.Namespace(dir=place, pair=args.reproduce, transport="", bag=drive, out=out, json=args.json)
    return int(reproduce_command.run(wanted))


def _audit(args: argparse.Namespace) -> int:
    """Make pairs again that this machine chooses, and print a line for each."""
    from mt_nodes.cli.terminal import text
    from mt_nodes.runs.safety_case.bundle_drives import drive_of_pair, reproducible_pairs

    pairs, codes = reproducible_pairs(args.bundle), []
    for run, pair in random.SystemRandom().sample(pairs, min(args.audit, len(pairs))):
        drive = drive_of_pair(args.bundle, run, pair, args.bag)
        code, said = _made_again(args.bundle / "runs" / run, pair, drive)
        codes.append(code)
        text(f"audit: run {run}, {pair}: {said}")
    text(f"audit: {codes.count(0)} of {len(codes)} pairs as in the run, of {len(pairs)} that can be made again")
    return max(codes, key=_severity, default=int(ExitCode.UNDECIDED))


def _made_again(place: Path, pair: str, drive: str) -> tuple[int, str]:
    """Make a pair again; return an exit code, and what came of it."""
    from mt_nodes.cli.replay_execution import replay
    from mt_nodes.engine.recorded_pair import RecordedPair
    from mt_nodes.runs.again.changed_since import differences, reproduction_verdict
    from mt_nodes.runs.again.reproduce import prove
    from mt_nodes.runs.replay.replay_run import Run

    recorded = RecordedPair.find(place, pair)
    request = recorded.request("", drive)
    if not prove(Run.make(request, place), recorded).same:
        return int(ExitCode.FAIL), "its follow-up is another one, by its SHA-256"
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "again"
        summary = replay(request, str(out), quiet=True)
        now = reproduction_verdict(out, recorded.pair)
    if now is None:
        return max(int(summary["exit_code"]), int(ExitCode.INFRASTRUCTURE)), f"not judged: {summary['exit_why']}"
    if differs := differences(recorded.verdict, now):
        was, again = recorded.verdict.outcome, now.outcome
        code = ExitCode.UNDECIDED if was is again else ExitCode.FAIL
        return int(code), f"{was.value} in the run, {again.value} now; {', '.join(differs)} differ"
    return int(ExitCode.PASS), f"same follow-up, {now.outcome.value} as in the run"


def _print_check(check: BundleCheck) -> None:
    from mt_nodes.cli.terminal import text

    text(f"{check.what}: {'WRONG' if check.wrong else check.found or 'nothing found'}")
    for problem in check.wrong:
        text(f"  {problem}")
    if check.unproved:
        text(f"  not proved: {check.unproved}")


def _print(found: Mapping[str, Any]) -> None:
    from mt_nodes.cli.terminal import table, text

    rows = []
    for row in found.get("requirements", ()):
        for one in row["relations"] or [{}]:
            share = f"{one['violated']}/{one['decided']}" if "decided" in one else "-"
            upper = f"{100 * one['ci95'][1]:.1f} %" if one.get("ci95") else "-"
            accepted = f"{100 * row['max_rate']:g} %"
            rows.append((row["id"], one.get("id", "none"), share, upper, accepted, one.get("status", row["status"])))
    if rows:
        table(("requirement", "relation", "violated", "at most", "accepted", ""), rows)
    gaps = found.get("gaps", ())
    for gap in gaps[:_MOST_GAPS]:
        text(f"gap: {gap['about']}: {gap['what']}")
    if len(gaps) > _MOST_GAPS:
        text(f"and {len(gaps) - _MOST_GAPS} more gaps")
