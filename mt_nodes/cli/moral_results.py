# SPDX-License-Identifier: Apache-2.0
"""``mt report``, ``show``, ``reproduce``, ``watch`` and ``compare`` for campaigns of ``mt experiment moral``."""

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
from mt_nodes.runs.moral.report_words import case_in_words, commands, run_in_words, spec_in_words

#: Printed lists of a comparison.
KINDS = (
    *("newly_violated", "no_longer_violated", "still_violated", "no_longer_decided"),
    *("only_before", "only_after"),
)
_AS_RELATION = {"HOLDS": PASS, "VIOLATED": FAIL}


def report(directory: Path, args: argparse.Namespace) -> int:
    """Make the report, ``cases.csv`` and ``junit.xml`` again."""
    from mt_nodes.runs.moral.campaign import sum_up
    from mt_nodes.runs.moral.moral_run import MoralRun
    from mt_nodes.runs.moral.report_files import remake

    if args.waivers or args.drive:
        raise UsageError(
            f"{directory}: holds a campaign of `mt experiment moral`, which takes no --waivers and --drive"
        )
    if not (directory / "summary.json").exists():  # it was killed
        sum_up(MoralRun.load(directory))
    remake(directory)
    text(str(directory / "report.html"))
    return int(ExitCode.PASS)


def show(directory: Path, name: str, *, as_json: bool) -> int:
    """Print what happened in a case."""
    journal = MoralJournal.load(directory)
    line = journal.case(name)
    words, rerun = list(case_in_words(journal, line)), commands(directory, name, journal)
    if as_json:
        print(json.dumps({"case": line, "words": words, "commands": rerun}, indent=2))
        return int(ExitCode.PASS)
    heading(f"case {name}: {line['outcome']}")
    text("\n".join((*words, *(rerun if line["runs"] else ()))))
    return int(ExitCode.PASS)


def reproduce(args: argparse.Namespace) -> int:
    """Drive all runs of a case, or one run, again; return 1 if one is not the same bit for bit."""
    from mt_nodes.cli.options import enter_start_directory
    from mt_nodes.runs.moral.moral_reproduction import chosen, repeat_campaign_runs
    from mt_nodes.runs.moral.moral_run import MoralRun

    if given := [f"--{name}" for name in ("transport", "bag", "out") if getattr(args, name)]:
        raise UsageError(f"{given[0]}: the runs of a campaign are driven again as they were; leave {given[0]} out")
    directory = args.dir.resolve()
    journal = MoralJournal.load(directory)
    runs = chosen(journal, args.pair)
    enter_start_directory(directory)
    found = repeat_campaign_runs(MoralRun.load(directory), runs)
    same = all(one.same for one in found)
    code = int(ExitCode.PASS if same else ExitCode.FAIL)
    rows = [(one.key, spec_in_words(one.spec), one.expected, one.now.sha256, one.same) for one in found]
    if args.json:
        keys = ("run", "asked", "expected", "now", "same")
        drives = [dict(zip(keys, row, strict=True)) for row in rows]
        print(json.dumps({"case": args.pair, "runs": drives, "same": same, "exit_code": code}, indent=2))
        return code
    heading(args.pair)
    table(("run", "what", "SHA-256 in the journal", ""), [_row(*row) for row in rows])
    for one in found:
        text(f"{spec_in_words(one.spec)}: {run_in_words(one.now)}")
    same_count = sum(one.same for one in found)
    text(
        f"{same_count} of {len(found)} runs are the same bit for bit"
        + ("" if same else "; the stack or a version has changed")
    )
    return code


def _row(key: str, run: str, expected: str, now: str, same: bool) -> tuple[str, ...]:
    return key, run, expected, "same" if same else f"DIFFERS: {now}"


def watch(directory: Path) -> int:
    """Print the progress of a campaign."""
    journal = MoralJournal.load(directory)
    finished = (directory / "summary.json").exists()
    state = "ended" if finished else "running or interrupted (`mt experiment moral --resume DIR` goes on)"
    text(f"moral campaign of {journal.condition['stack']}: {len(journal.runs)} runs so far; {state}")
    for name, line in journal.principles.items():
        text(f"{name}: {line['outcome']}: {line['why']}")
    return int(ExitCode.PASS)


def compare(before: Path, after: Path, *, as_json: bool) -> int:
    """Print which cases are newly, no longer and still violated; return 1 if one is new, 3 if one is undecided now."""
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
    """Compare the outcomes of two campaigns case by case; cases with the same name are the same.

    The exit code follows :func:`mt_nodes.report.comparison.exit_of`, with cases in place of relations.
    A missing case that the search had generated is no loss.
    Raises UsageError: they have no case in common.
    """
    both = [name for name in after.cases if name in before.cases]
    if not both:
        raise UsageError(f"nothing to compare: {before.directory} and {after.directory} have no case in common")
    drawn = [name for name, line in before.cases.items() if name in after.cases or line["stream"] != "confirm"]
    names = dict.fromkeys((*drawn, *after.cases))
    steps = [Step(name, _outcome(before, name), _outcome(after, name)) for name in names]
    code, why = exit_of(steps, what="case")
    was, now = ({name for name in both if one.cases[name]["outcome"] == "VIOLATED"} for one in (before, after))
    differ = [key for key in ("stack", "faults", "seed", "pool") if before.condition[key] != after.condition[key]]
    return {
        "compared": len(both),
        "newly_violated": [step.name for step in steps if step.change == NEWLY_FAILING],
        "no_longer_violated": sorted(name for name in was - now if _outcome(after, name) == PASS),
        "still_violated": sorted(was & now),
        "no_longer_decided": [step.name for step in steps if step.change == NO_LONGER_DECIDED],
        "only_before": [name for name in before.cases if name not in after.cases],
        "only_after": [name for name in after.cases if name not in before.cases],
        "notes": [f"{key}: {before.condition[key]} before, {after.condition[key]} after" for key in differ],
        "exit_code": int(code),
        "exit_why": why,
    }


def _outcome(journal: MoralJournal, name: str) -> str | None:
    """Return the outcome of a case as that of a relation; None where the campaign does not have it."""
    line = journal.cases.get(name)
    return None if line is None else _AS_RELATION.get(line["outcome"], RelationOutcome.INCONCLUSIVE.value)
