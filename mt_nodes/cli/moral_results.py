# SPDX-License-Identifier: Apache-2.0
"""What the commands for results directories do with that of a campaign of ``mt experiment moral``."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from mt_nodes.base.errors import ExitCode, UsageError
from mt_nodes.cli.terminal import heading, table, text
from mt_nodes.data.verdict import RelationOutcome
from mt_nodes.report.comparison import FAIL, NEWLY_FAILING, NO_LONGER_DECIDED, PASS, Step, exit_of
from mt_nodes.runs.moral.report_journal import MoralJournal
from mt_nodes.runs.moral.report_words import asked_in_words, case_in_words, commands, run_in_words

#: What is printed of a comparison.
KINDS = (
    *("newly_violated", "no_longer_violated", "still_violated", "no_longer_decided"),
    *("only_before", "only_after"),
)
_AS_RELATION = {"HOLDS": PASS, "VIOLATED": FAIL}


def report(directory: Path, args: argparse.Namespace) -> int:
    """Make the report, ``cases.csv`` and ``junit.xml`` anew."""
    from mt_nodes.runs.moral.report_files import remake

    if args.waivers or args.drive:
        raise UsageError(f"{directory}: holds a campaign of `mt experiment moral`; leave --waivers and --drive out")
    remake(directory)
    text(str(directory / "report.html"))
    return int(ExitCode.PASS)


def show(directory: Path, name: str, *, as_json: bool) -> int:
    """Print what happened in a case."""
    told = MoralJournal.load(directory)
    line = told.case(name)
    words, again = list(case_in_words(told, line)), commands(directory, name, told)
    if as_json:
        print(json.dumps({"case": line, "words": words, "commands": again}, indent=2))
        return int(ExitCode.PASS)
    heading(f"case {name}: {line['outcome']}")
    text("\n".join((*words, *(again if line["runs"] else ()))))
    return int(ExitCode.PASS)


def reproduce(args: argparse.Namespace) -> int:
    """Drive the runs of a case again, or one run; 1 where one does not come again bit for bit."""
    from mt_nodes.cli.replay_execution import go_where_it_started
    from mt_nodes.runs.moral.moral_reproduction import chosen, repeat_campaign_runs
    from mt_nodes.runs.moral.moral_run import MoralRun

    if given := [f"--{name}" for name in ("transport", "bag", "out") if getattr(args, name)]:
        raise UsageError(f"{given[0]}: runs of a campaign are driven again as they were; leave {given[0]} out")
    directory = args.dir.resolve()
    told = MoralJournal.load(directory)
    runs = chosen(told, args.pair)
    go_where_it_started(directory)
    found = repeat_campaign_runs(MoralRun.load(directory), runs)
    same = all(one.same for one in found)
    code = int(ExitCode.PASS if same else ExitCode.FAIL)
    rows = [(one.key, asked_in_words(one.spec), one.expected, one.now.sha256, one.same) for one in found]
    if args.json:
        keys = ("run", "asked", "expected", "now", "same")
        drives = [dict(zip(keys, row, strict=True)) for row in rows]
        print(json.dumps({"case": args.pair, "runs": drives, "same": same, "exit_code": code}, indent=2))
        return code
    heading(args.pair)
    table(("run", "what", "SHA-256 in the journal", ""), [_row(*row) for row in rows])
    for one in found:
        text(f"{asked_in_words(one.spec)}: {run_in_words(one.now)}")
    again = sum(one.same for one in found)
    text(
        f"{again} of {len(found)} runs came again bit for bit" + ("" if same else "; the stack or versions are others")
    )
    return code


def _row(key: str, asked: str, expected: str, now: str, same: bool) -> tuple[str, ...]:
    return key, asked, expected, "same" if same else f"DIFFERS: {now}"


def watch(directory: Path) -> int:
    """Print how far a campaign is."""
    told = MoralJournal.load(directory)
    finished = (directory / "summary.json").exists()
    state = "ended" if finished else "goes on, or was cut off (`mt experiment moral --resume` goes on with it)"
    text(f"moral campaign of {told.condition['stack']}: {len(told.runs)} runs so far; it {state}")
    for name, line in told.principles.items():
        text(f"{name}: {line['outcome']}: {line['why']}")
    return int(ExitCode.PASS)


def compare(before: Path, after: Path, *, as_json: bool) -> int:
    """Print which cases are violated newly, no longer and still; 1 where one is newly, 3 where one is undecided now."""
    found = compared(MoralJournal.load(before), MoralJournal.load(after))
    if as_json:
        print(json.dumps(found, indent=2))
        return int(found["exit_code"])
    for kind in KINDS:
        if found[kind]:
            text(f"{kind.replace('_', ' ')}: {', '.join(found[kind])}")
    for note in found["notes"]:
        text(note)
    text(f"{found['compared']} cases in both; exit code {found['exit_code']}: {found['exit_why']}")
    return int(found["exit_code"])


def compared(before: MoralJournal, after: MoralJournal) -> dict[str, Any]:
    """Return what became of every case from one campaign to another; cases that both have are known by their names.

    The exit code goes by the rules of :func:`mt_nodes.report.comparison.exit_of`, a case in the place of a relation.
    That a case is missing which a search bred is no loss.

    Raises:
        UsageError: they have none in common.
    """
    both = [name for name in after.cases if name in before.cases]
    if not both:
        raise UsageError(f"nothing to compare: {before.directory} and {after.directory} have no case in common")
    drawn = [name for name, line in before.cases.items() if name in after.cases or line["stream"] != "confirm"]
    names = dict.fromkeys((*drawn, *after.cases))
    steps = [Step(name, _ended(before, name), _ended(after, name)) for name in names]
    code, why = exit_of(steps, what="case")
    was, now = ({name for name in both if one.cases[name]["outcome"] == "VIOLATED"} for one in (before, after))
    differ = [key for key in ("stack", "faults", "seed", "pool") if before.condition[key] != after.condition[key]]
    return {
        "compared": len(both),
        "newly_violated": [step.name for step in steps if step.change == NEWLY_FAILING],
        "no_longer_violated": sorted(name for name in was - now if _ended(after, name) == PASS),
        "still_violated": sorted(was & now),
        "no_longer_decided": [step.name for step in steps if step.change == NO_LONGER_DECIDED],
        "only_before": [name for name in before.cases if name not in after.cases],
        "only_after": [name for name in after.cases if name not in before.cases],
        "notes": [f"{key}: {before.condition[key]} before, {after.condition[key]} after" for key in differ],
        "exit_code": int(code),
        "exit_why": why,
    }


def _ended(told: MoralJournal, name: str) -> str | None:
    """Return how a case ended as a relation would: None where a campaign does not have it."""
    line = told.cases.get(name)
    return None if line is None else _AS_RELATION.get(line["outcome"], RelationOutcome.INCONCLUSIVE.value)
