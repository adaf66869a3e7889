# SPDX-License-Identifier: Apache-2.0
"""``mt reproduce DIR PAIR``."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mt_nodes.errors import ExitCode
from mt_nodes.plan import TRANSPORTS

if TYPE_CHECKING:
    from mt_nodes.reproduce import Finished, Proof
    from mt_nodes.verdict import Verdict

ROWS = ("outcome", "measured", "bound", "margin", "lost", "gained", "reason")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.epilog = "example: mt reproduce mt_results/latest 0/17/noise_outside_roi_1000/0"
    add = parser.add_argument
    add("dir", type=Path, metavar="DIR", help="results directory of a finished run")
    add("pair", metavar="PAIR", help="EPISODE/BUNDLE/RELATION/DRAW, as report and pairs.csv name it")
    add("--transport", default="", choices=TRANSPORTS, metavar="T", help="ros or inprocess (default that of the run)")
    add("--bag", default="", metavar="BAG", help="where the pair's bag is now")
    add("--out", type=Path, metavar="DIR", help="results directory (default DIR/reproduced/<pair>)")
    add("--json", action="store_true", help="print one object")


def run(args: argparse.Namespace) -> int:
    """Make a follow-up again, prove it, have it judged.

    Returns 1 when it is not the same, 3 when it is and the stack's judgement differs, 4 or more when the stack failed.
    """
    from mt_nodes import reproduce
    from mt_nodes.cli.running import replay
    from mt_nodes.runs import Run

    finished = reproduce.Finished.find(args.dir, args.pair)
    request = finished.request(args.transport, args.bag)
    checked = Run.make(request, args.dir)
    proof, changed = reproduce.prove(checked, finished), reproduce.changed_since(checked, finished)
    told: dict[str, Any] = {"pair": str(finished.pair), "changed": changed, "same_followup": proof.same}
    told |= _told(proof) | ({"baseline": _told(proof.baseline)} if proof.baseline else {})
    now, summary, out = None, None, args.out or finished.new_directory()
    if not args.json:
        _print_proof(finished, proof, request.bags[finished.pair.episode], changed)
    if proof.same:
        summary = replay(request, str(out), quiet=True)
        now = reproduce.judged_again(out, finished.pair)
        told |= {"recorded": finished.verdict.as_plain(), "now": now and now.as_plain(), "results": str(out)}
        told["differs"] = None if now is None else reproduce.differences(finished.verdict, now)
        if not args.json:
            _print_judgement(finished.verdict, now, told["differs"], summary, out)
    code = _exit_code(proof, summary, told.get("differs"))
    if args.json:
        print(json.dumps({**told, "exit_code": code}, indent=2))
    return code


def _exit_code(proof: Proof, summary: dict[str, Any] | None, differs: list[str] | None) -> int:
    if not proof.same or summary is None:
        return int(ExitCode.FAIL)
    if summary["exit_code"] >= ExitCode.INFRASTRUCTURE or differs is None:
        return max(int(summary["exit_code"]), int(ExitCode.INFRASTRUCTURE))
    return int(ExitCode.UNDECIDED if differs else ExitCode.PASS)


def _print_proof(finished: Finished, proof: Proof, bag: str, changed: list[str]) -> None:
    from mt_nodes.cli.printing import heading, table, text

    heading(f"pair {finished.pair}")
    where = "the whole episode from" if finished.pair.bundle is None else f"bundle {finished.pair.bundle},"
    text(f"bag {bag}, {where} stamp {finished.verdict.stamp_ns}")
    for note in changed:
        print(f"mt: warning: not as in the run: {note}", file=sys.stderr)
    for what, part in (("follow-up", proof), ("baseline", proof.baseline)):
        if part is not None:
            table((what, "SHA-256", ""), _hash_rows(part))
    if proof.before[0]:
        text(f"of {proof.before[0]} follow-ups before it, {proof.before[1]} could not be made again")
    for why in proof.why:
        text(why)
    if not proof.same:
        text("the follow-up could not be made again bit for bit: it needs the same bag, versions and CPU type")


def _told(proof: Proof) -> dict[str, Any]:
    return {"expected": proof.expected, "from_draws": proof.from_draws, "from_seed": proof.from_seed}


def _hash_rows(proof: Proof) -> list[tuple[str, str, str]]:
    made = (("from the recorded draws", proof.from_draws), ("from the seed", proof.from_seed))
    rows = [(name, got or "(none)", "same" if got == proof.expected else "DIFFERS") for name, got in made]
    return [("in the ledger", proof.expected, "expected"), *rows]


def _print_judgement(
    was: Verdict, now: Verdict | None, differs: list[str] | None, summary: dict[str, Any], out: Path
) -> None:
    from mt_nodes.cli.printing import table, text

    if now is None:
        text(f"no judgement: {summary['exit_why']}")
    else:
        before, after = was.as_plain(), now.as_plain()
        table(("judgement", "in the run", "now"), [(row, _cell(before[row]), _cell(after[row])) for row in ROWS])
        text(f"the judgement differs in {', '.join(differs)}" if differs else "the same judgement as in the run")
    text(f"results in {out}, evidence in {out / 'evidence'}")


def _cell(value: Any) -> str:
    return "-" if value is None else str(value)
