# SPDX-License-Identifier: Apache-2.0
"""``mt reproduce DIR PAIR``."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mt_nodes.base.errors import ExitCode
from mt_nodes.engine.plan import TRANSPORTS

if TYPE_CHECKING:
    from mt_nodes.data.verdict import Verdict
    from mt_nodes.engine.recorded_pair import RecordedPair
    from mt_nodes.runs.again.reproduce import Proof
    from mt_nodes.runs.loop.drive_reproduction import Redriven

ROWS = ("outcome", "measured", "bound", "margin", "lost", "gained", "reason")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.epilog = "example: mt reproduce mt_results/latest 0/17/noise_outside_roi_1000/0"
    add = parser.add_argument
    add("dir", type=Path, metavar="DIR", help="results directory of a run")
    about = "EPISODE/BUNDLE/RELATION/DRAW, as in report and pairs.csv; of a moral campaign a case or a run"
    add("pair", metavar="PAIR", help=about)
    add("--transport", default="", choices=TRANSPORTS, metavar="T", help="ros, inprocess (default that of the run)")
    add("--bag", default="", metavar="BAG", help="path of the pair's bag, where it has moved")
    add("--out", type=Path, metavar="DIR", help="results directory (default DIR/reproduced/<pair>)")
    add("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Make a follow-up again, compare it bit for bit, and have the stack and the check judge it again.

    Returns 1 if the follow-up differs, 3 if only the judgement differs, 4 or more if the stack failed.
    Of a live run's pair only the follow-up is made again; of a pair of drives both are driven again, of a case of a
    moral campaign all its runs.
    """
    from mt_nodes.engine.recorded_pair import RecordedPair
    from mt_nodes.runs.moral.report_journal import is_campaign

    if is_campaign(args.dir):
        from mt_nodes.cli import moral_results

        return moral_results.reproduce(args)
    recorded = RecordedPair.find(args.dir, args.pair)
    if recorded.driven:
        return _of_drives(recorded, args)
    return _of_live(recorded, args) if recorded.live else _of_replay(recorded, args)


def _of_live(recorded: RecordedPair, args: argparse.Namespace) -> int:
    from mt_nodes.base.errors import UsageError
    from mt_nodes.runs.again.changed_since import other_machine
    from mt_nodes.runs.again.from_evidence import prove_from_evidence

    if given := [f"--{name}" for name in ("transport", "bag", "out") if getattr(args, name)]:
        raise UsageError(
            f"{given[0]}: for a run of `mt live` the follow-up is made from the evidence; leave {given[0]} out"
        )
    proof, changed = prove_from_evidence(recorded), other_machine(recorded)
    plain = _proofs_as_plain(recorded, proof, changed)
    code = int(ExitCode.PASS if proof.same else ExitCode.FAIL)
    if args.json:
        print(json.dumps({**plain, "recorded": recorded.verdict.as_plain(), "exit_code": code}, indent=2))
        return code
    from mt_nodes.cli.terminal import text

    _print_proof(recorded, proof, f"evidence {recorded.evidence}", changed)
    text(f"in the run: {recorded.verdict.outcome.value}: {recorded.verdict.judgement.reason}")
    text("the stack is not run again: its earlier inputs were not recorded")
    return code


def _of_drives(recorded: RecordedPair, args: argparse.Namespace) -> int:
    from mt_nodes.base.errors import UsageError
    from mt_nodes.cli.scenario_command import drive
    from mt_nodes.runs.again.changed_since import changed_since, differences, judged_again
    from mt_nodes.runs.loop.drive_reproduction import redriven, request_again
    from mt_nodes.runs.loop.scenario_run import ScenarioRun

    if args.bag:
        raise UsageError("--bag: a run of `mt scenario` has no bag; leave --bag out")
    run = ScenarioRun.create(request_again(recorded, args.transport), str(args.out or recorded.new_directory()))
    changed, summary = changed_since(run, recorded), drive(run, quiet=True)
    drives, now = redriven(recorded, run.out), judged_again(run.out, recorded.pair)
    same, differs = all(one.same for one in drives), None if now is None else differences(recorded.verdict, now)
    code = _exit_code(same, summary, differs)
    if not args.json:
        _print_drives(recorded, drives, changed)
        _print_judgement(recorded.verdict, now, differs, summary, run.out)
        return code
    plain = {"pair": str(recorded.pair), "changed": changed, "same_drives": same, "differs": differs}
    plain |= {"drives": [dataclasses.asdict(one) for one in drives], "results": str(run.out), "exit_code": code}
    print(json.dumps({**plain, "recorded": recorded.verdict.as_plain(), "now": now and now.as_plain()}, indent=2))
    return code


def _of_replay(recorded: RecordedPair, args: argparse.Namespace) -> int:
    from mt_nodes.cli.replay_execution import replay
    from mt_nodes.runs.again.changed_since import changed_since, differences, judged_again
    from mt_nodes.runs.again.reproduce import prove
    from mt_nodes.runs.replay.replay_run import Run

    request = recorded.request(args.transport, args.bag)
    checked = Run.make(request, args.dir)
    proof, changed = prove(checked, recorded), changed_since(checked, recorded)
    plain = _proofs_as_plain(recorded, proof, changed)
    now, summary, out = None, None, args.out or recorded.new_directory()
    if not args.json:
        _print_proof(recorded, proof, f"bag {request.bags[recorded.pair.episode - request.first_episode]}", changed)
    if proof.same:
        summary = replay(request, str(out), quiet=True)
        now = judged_again(out, recorded.pair)
        plain |= {"recorded": recorded.verdict.as_plain(), "now": now and now.as_plain(), "results": str(out)}
        plain["differs"] = None if now is None else differences(recorded.verdict, now)
        if not args.json:
            _print_judgement(recorded.verdict, now, plain["differs"], summary, out)
    code = _exit_code(proof.same, summary, plain.get("differs"))
    if args.json:
        print(json.dumps({**plain, "exit_code": code}, indent=2))
    return code


def _exit_code(same: bool, summary: dict[str, Any] | None, differs: list[str] | None) -> int:
    if summary is None:
        return int(ExitCode.FAIL)
    if summary["exit_code"] >= ExitCode.INFRASTRUCTURE or differs is None:
        return max(int(summary["exit_code"]), int(ExitCode.INFRASTRUCTURE))
    if not same:
        return int(ExitCode.FAIL)
    return int(ExitCode.UNDECIDED if differs else ExitCode.PASS)


def _print_proof(recorded: RecordedPair, proof: Proof, given: str, changed: list[str]) -> None:
    from mt_nodes.cli.terminal import heading, table, text

    heading(f"pair {recorded.pair}")
    where = "the whole episode from" if recorded.pair.bundle is None else f"bundle {recorded.pair.bundle},"
    text(f"{given}, {where} stamp {recorded.verdict.stamp_ns}")
    _warn(changed)
    for what, part in (("follow-up", proof), ("baseline", proof.baseline)):
        if part is not None:
            table((what, "SHA-256", ""), _hash_rows(part))
    if proof.before[0]:
        text(f"{proof.before[1]} of the {proof.before[0]} follow-ups before it could not be made again")
    for why in proof.why:
        text(why)
    if not proof.same:
        text("the follow-up is not the same bit for bit: that takes the same input, versions and CPU type")


def _print_drives(recorded: RecordedPair, drives: list[Redriven], changed: list[str]) -> None:
    from mt_nodes.cli.terminal import heading, table, text

    heading(f"pair {recorded.pair}")
    _warn(changed)
    for one in drives:
        verdict = "same" if one.same else "DIFFERS"
        rows = [("in the ledger", one.expected, "expected"), ("driven again", one.now or "(not driven)", verdict)]
        table((one.what, "SHA-256", ""), rows)
        if one.why:
            text(one.why)
    if any(not one.same for one in drives):
        text("the drives are not the same bit for bit")


def _warn(changed: list[str]) -> None:
    for note in changed:
        print(f"mt: warning: differs from the run: {note}", file=sys.stderr)


def _proofs_as_plain(recorded: RecordedPair, proof: Proof, changed: list[str]) -> dict[str, Any]:
    plain = {"pair": str(recorded.pair), "changed": changed, "same_followup": proof.same, "why": list(proof.why)}
    return plain | _as_plain(proof) | ({"baseline": _as_plain(proof.baseline)} if proof.baseline else {})


def _as_plain(proof: Proof) -> dict[str, Any]:
    plain = {"expected": proof.expected, "from_draws": proof.from_draws}
    return {**plain, "from_seed": proof.from_seed} if proof.drawn_anew else plain


def _hash_rows(proof: Proof) -> list[tuple[str, str, str]]:
    hashes = [("from the recorded draws", proof.from_draws), ("from the seed", proof.from_seed)][: 1 + proof.drawn_anew]
    rows = [(name, got or "(none)", "same" if got == proof.expected else "DIFFERS") for name, got in hashes]
    return [("in the ledger", proof.expected, "expected"), *rows]


def _print_judgement(
    was: Verdict, now: Verdict | None, differs: list[str] | None, summary: dict[str, Any], out: Path
) -> None:
    from mt_nodes.cli.terminal import table, text

    if now is None:
        text(f"no judgement: {summary['exit_why']}")
    else:
        before, after = was.as_plain(), now.as_plain()
        table(("judgement", "in the run", "now"), [(row, _cell(before[row]), _cell(after[row])) for row in ROWS])
        text(f"the judgement differs in {', '.join(differs)}" if differs else "the judgement is the same as in the run")
    text(f"results in {out}, evidence in {out / 'evidence'}")


def _cell(value: Any) -> str:
    return "-" if value is None else str(value)
