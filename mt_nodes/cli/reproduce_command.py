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
    from mt_nodes.runs.loop.drive_reproduction import DriveComparison

ROWS = ("outcome", "measured", "bound", "margin", "lost", "gained", "reason")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.epilog = "example: mt reproduce mt_results/latest 0/17/noise_outside_roi_1000/0"
    add = parser.add_argument
    add("dir", type=Path, metavar="DIR", help="results directory of a finished run")
    about = "EPISODE/BUNDLE/RELATION/DRAW, as report and pairs.csv name it; of a moral campaign a case or a run"
    add("pair", metavar="PAIR", help=about)
    add("--transport", default="", choices=TRANSPORTS, metavar="T", help="ros or inprocess (default that of the run)")
    add("--bag", default="", metavar="BAG", help="where the pair's bag is now")
    add("--out", type=Path, metavar="DIR", help="results directory (default DIR/reproduced/<pair>)")
    add("--json", action="store_true", help="print one object")


def run(args: argparse.Namespace) -> int:
    """Make a follow-up again, prove it, have it judged.

    Returns 1 when it is not the same, 3 when it is and the stack's judgement differs, 4 or more when the stack failed.
    Of a live run's pair only the follow-up is made again; of a pair of drives both are driven again, of a case of a
    moral campaign all its runs.
    """
    from mt_nodes.engine.recorded_pair import RecordedPair
    from mt_nodes.runs.moral.report_journal import is_campaign

    if is_campaign(args.dir):
        from mt_nodes.cli import moral_results

        return moral_results.reproduce(args)
    finished = RecordedPair.find(args.dir, args.pair)
    if finished.driven:
        return _of_drives(finished, args)
    return _of_live(finished, args) if finished.live else _of_replay(finished, args)


def _of_live(finished: RecordedPair, args: argparse.Namespace) -> int:
    from mt_nodes.base.errors import UsageError
    from mt_nodes.runs.again.changed_since import other_machine
    from mt_nodes.runs.again.from_evidence import prove_from_evidence

    if given := [f"--{name}" for name in ("transport", "bag", "out") if getattr(args, name)]:
        raise UsageError(f"{given[0]}: of a run of `mt live` the follow-up is made of evidence; leave {given[0]} out")
    proof, changed = prove_from_evidence(finished), other_machine(finished)
    told = _all_told(finished, proof, changed)
    code = int(ExitCode.PASS if proof.same else ExitCode.FAIL)
    if args.json:
        print(json.dumps({**told, "recorded": finished.verdict.as_plain(), "exit_code": code}, indent=2))
        return code
    from mt_nodes.cli.terminal import text

    _print_proof(finished, proof, f"evidence {finished.evidence}", changed)
    text(f"it was {finished.verdict.outcome.value}: {finished.verdict.judgement.reason}")
    text("the stack is not asked again: what it was given before is gone")
    return code


def _of_drives(finished: RecordedPair, args: argparse.Namespace) -> int:
    from mt_nodes.base.errors import UsageError
    from mt_nodes.cli.scenario_command import drive
    from mt_nodes.runs.again.changed_since import changed_since, differences, reproduction_verdict
    from mt_nodes.runs.loop.drive_reproduction import compare_drives, reproduction_request
    from mt_nodes.runs.loop.scenario_run import ScenarioRun

    if args.bag:
        raise UsageError("--bag: worlds of a run of `mt scenario` are made of its ledger; leave --bag out")
    run = ScenarioRun.create(reproduction_request(finished, args.transport), str(args.out or finished.new_directory()))
    changed, summary = changed_since(run, finished), drive(run, quiet=True)
    drives, now = compare_drives(finished, run.out), reproduction_verdict(run.out, finished.pair)
    same, differs = all(one.same for one in drives), None if now is None else differences(finished.verdict, now)
    code = _exit_code(same, summary, differs)
    if not args.json:
        _print_drives(finished, drives, changed)
        _print_judgement(finished.verdict, now, differs, summary, run.out)
        return code
    told = {"pair": str(finished.pair), "changed": changed, "same_drives": same, "differs": differs}
    told |= {"drives": [dataclasses.asdict(one) for one in drives], "results": str(run.out), "exit_code": code}
    print(json.dumps({**told, "recorded": finished.verdict.as_plain(), "now": now and now.as_plain()}, indent=2))
    return code


def _of_replay(finished: RecordedPair, args: argparse.Namespace) -> int:
    from mt_nodes.cli.replay_execution import replay
    from mt_nodes.runs.again.changed_since import changed_since, differences, reproduction_verdict
    from mt_nodes.runs.again.reproduce import prove
    from mt_nodes.runs.replay.replay_run import Run

    request = finished.request(args.transport, args.bag)
    checked = Run.make(request, args.dir)
    proof, changed = prove(checked, finished), changed_since(checked, finished)
    told = _all_told(finished, proof, changed)
    now, summary, out = None, None, args.out or finished.new_directory()
    if not args.json:
        _print_proof(finished, proof, f"bag {request.bags[finished.pair.episode - request.first_episode]}", changed)
    if proof.same:
        summary = replay(request, str(out), quiet=True)
        now = reproduction_verdict(out, finished.pair)
        told |= {"recorded": finished.verdict.as_plain(), "now": now and now.as_plain(), "results": str(out)}
        told["differs"] = None if now is None else differences(finished.verdict, now)
        if not args.json:
            _print_judgement(finished.verdict, now, told["differs"], summary, out)
    code = _exit_code(proof.same, summary, told.get("differs"))
    if args.json:
        print(json.dumps({**told, "exit_code": code}, indent=2))
    return code


def _exit_code(same: bool, summary: dict[str, Any] | None, differs: list[str] | None) -> int:
    if summary is None:
        return int(ExitCode.FAIL)
    if summary["exit_code"] >= ExitCode.INFRASTRUCTURE or differs is None:
        return max(int(summary["exit_code"]), int(ExitCode.INFRASTRUCTURE))
    if not same:
        return int(ExitCode.FAIL)
    return int(ExitCode.UNDECIDED if differs else ExitCode.PASS)


def _print_proof(finished: RecordedPair, proof: Proof, given: str, changed: list[str]) -> None:
    from mt_nodes.cli.terminal import heading, table, text

    heading(f"pair {finished.pair}")
    where = "the whole episode from" if finished.pair.bundle is None else f"bundle {finished.pair.bundle},"
    text(f"{given}, {where} stamp {finished.verdict.stamp_ns}")
    _warn(changed)
    for what, part in (("follow-up", proof), ("baseline", proof.baseline)):
        if part is not None:
            table((what, "SHA-256", ""), _hash_rows(part))
    if proof.before[0]:
        text(f"of {proof.before[0]} follow-ups before it, {proof.before[1]} could not be made again")
    for why in proof.why:
        text(why)
    if not proof.same:
        text("the follow-up could not be made again bit for bit: it needs the same input, versions and CPU type")


def _print_drives(finished: RecordedPair, drives: list[DriveComparison], changed: list[str]) -> None:
    from mt_nodes.cli.terminal import heading, table, text

    heading(f"pair {finished.pair}")
    _warn(changed)
    for one in drives:
        verdict = "same" if one.same else "DIFFERS"
        rows = [("in the ledger", one.expected, "expected"), ("driven again", one.now or "(nobody drove)", verdict)]
        table((one.what, "SHA-256", ""), rows)
        if one.why:
            text(one.why)
    if any(not one.same for one in drives):
        text("the pair could not be driven again bit for bit")


def _warn(changed: list[str]) -> None:
    for note in changed:
        print(f"mt: warning: not as in the run: {note}", file=sys.stderr)


def _all_told(finished: RecordedPair, proof: Proof, changed: list[str]) -> dict[str, Any]:
    told = {"pair": str(finished.pair), "changed": changed, "same_followup": proof.same, "why": list(proof.why)}
    return told | _told(proof) | ({"baseline": _told(proof.baseline)} if proof.baseline else {})


def _told(proof: Proof) -> dict[str, Any]:
    told = {"expected": proof.expected, "from_draws": proof.from_draws}
    return {**told, "from_seed": proof.from_seed} if proof.drawn_anew else told


def _hash_rows(proof: Proof) -> list[tuple[str, str, str]]:
    made = [("from the recorded draws", proof.from_draws), ("from the seed", proof.from_seed)][: 1 + proof.drawn_anew]
    rows = [(name, got or "(none)", "same" if got == proof.expected else "DIFFERS") for name, got in made]
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
        text(f"the judgement differs in {', '.join(differs)}" if differs else "the same judgement as in the run")
    text(f"results in {out}, evidence in {out / 'evidence'}")


def _cell(value: Any) -> str:
    return "-" if value is None else str(value)
