# SPDX-License-Identifier: Apache-2.0
"""What a cell comes to, and what the campaign does over all its cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mt_nodes.base.errors import ExitCode
from mt_nodes.base.wording import counted
from mt_nodes.data.verdict import RelationOutcome
from mt_nodes.engine.finish import Summary, finish, write_summary
from mt_nodes.engine.journal import read_journal
from mt_nodes.engine.ledger import Ledger
from mt_nodes.engine.run_record import read_record
from mt_nodes.engine.summary.deaths import weighed
from mt_nodes.engine.summary.summary import RelationInfo, run_exit, summarise
from mt_nodes.relations.relation import CONTROL, SHAMS
from mt_nodes.report.junit import JunitCase, entries_of, write_entries
from mt_nodes.report.run_files import ReportTables
from mt_nodes.runs.campaign.campaign_store import DONE, FAILED, STOPPED, Work
from mt_nodes.runs.campaign.early_stop import StopEarly, sequential_evidence
from mt_nodes.runs.campaign.leader import StoppedRelations

SCHEMA = 1
#: The first that any cell ends with is that of the campaign.
ORDER = (
    ExitCode.INTERRUPTED,
    ExitCode.ISOLATION,
    ExitCode.USAGE,
    ExitCode.INFRASTRUCTURE,
    ExitCode.FAIL,
    ExitCode.UNDECIDED,
    ExitCode.PASS,
)


@dataclass(frozen=True)
class Policy:
    """How the relations of a campaign are judged: by a fixed plan, or (``stop_early``) by sequential evidence."""

    stop_early: StopEarly | None
    hypotheses: int
    waivers: str = ""


def infos_of(judges: Sequence[Mapping[str, Any]]) -> dict[str, RelationInfo]:
    """Return what must be known of relations, by id, from their plain form; control and sham are none."""
    return {r["id"]: RelationInfo.of(r) for r in judges if r["id"] not in (CONTROL, *SHAMS)}


def sum_up_cell(
    out: Path,
    name: str,
    policy: Policy,
    stops: StoppedRelations,
    failed: Sequence[Work],
    interrupted: bool,
    cut: str = "",
) -> Summary:
    """Write summary, tables and report of a merged cell, and return the summary.

    Args:
        out: directory of the cell. name: of the cell.
        policy: how it is judged. stops: where its relations ended.
        failed: items that came to no end. interrupted: whether the campaign was.
        cut: what a budget of time left undone, which is told with what is not decided; empty where it left nothing.
    """
    journal, infos = out / "result.jsonl", infos_of(read_record(out)["relations"])
    offered = next(line["relations"] for line in read_journal(journal) if line["type"] == "condition")
    relations = [infos[name] for name in offered if name in infos]

    def amend(summary: Summary) -> Summary:
        if policy.stop_early is not None:
            summary = _sequential(summary, name, infos, policy, policy.stop_early, stops)
        return {**summary, "relations": {n: _cut(r, cut) for n, r in summary["relations"].items()}} if cut else summary

    with Ledger(out) as ledger:
        ego_motion = sorted(ledger.ego_motion)
    return finish(
        *(out, relations),
        tables=ReportTables(out, relations),
        ego_motion=ego_motion,
        waivers=Path(policy.waivers) if policy.waivers else None,
        amend=amend,
        interrupted=interrupted,
        drive_by_drive=True,  # the lines of a cell are those of its items, a drive each, one after the other
        **_troubles(failed),
    )


def _cut(relation: Summary, cut: str) -> Summary:
    decided = relation["outcome"] in (RelationOutcome.PASS.value, RelationOutcome.FAIL.value)
    return relation if decided else {**relation, "why": f"{relation['why']}; {cut}"}


def empty_summary(failed: Sequence[Work], interrupted: bool) -> Summary:
    """Return the summary of a cell none of whose items got as far as to judge anything."""
    return summarise((), (), **_troubles(failed), interrupted=interrupted)


def _troubles(failed: Sequence[Work]) -> dict[str, Any]:
    """Return what kept items from their end, by its key in a summary."""
    keys = {int(ExitCode.ISOLATION): "isolation", int(ExitCode.USAGE): "usage"}
    sorted_out: dict[str, list[Work]] = {}
    for work in failed:
        sorted_out.setdefault(keys.get(work.exit_code or 0, "infrastructure"), []).append(work)
    return {
        key: f"{counted(len(works), 'item')} failed; the first, of drive {works[0].drive}: {works[0].trouble}"
        for key, works in sorted_out.items()
    }


def _sequential(
    summary: Summary,
    cell: str,
    infos: Mapping[str, RelationInfo],
    policy: Policy,
    when: StopEarly,
    stops: StoppedRelations,
) -> Summary:
    """Return the summary as a plan whose end was not settled beforehand may be judged."""
    ended, relations = stops.of(cell), {}
    for name, relation in summary["relations"].items():
        found = sequential_evidence(stops.counted(cell, name), infos[name], when, policy.hypotheses)
        outcome, why = weighed(summary.get("deaths", ()), name, RelationOutcome(found["outcome"]), found["why"])
        relations[name] = {
            # How much more would decide is another question where each drive may be the last.
            **{key: value for key, value in relation.items() if not key.startswith("more")},
            **{"outcome": outcome.value, "why": why},
            # What holds for a number of drives that was settled beforehand gives way to what holds at all times.
            **{"p": None, "p_adjusted": None, "test": "e-value, see sequential"},
            **{"ci95": found["interval"], "ci95_method": found["interval_method"]},
            "sequential": {**found, "stopped_after": ended.get(name)},
        }
    outcomes = {name: RelationOutcome(relation["outcome"]) for name, relation in relations.items()}
    code, why = run_exit(summary["outcomes"], outcomes, summary)
    return {**summary, "exit_code": int(code), "exit_why": why, "relations": relations}


def sum_up_campaign(
    out: Path,
    about: Mapping[str, Any],
    cells: Mapping[str, Summary],
    items: Mapping[str, int],
    *,
    why_left: str,
    interrupted: bool,
    cut: str = "",
) -> Summary:
    """Write ``summary.json`` and ``junit.xml`` of a campaign and return the summary.

    Args:
        out: directory of the campaign. about: what is to be told of it.
        items: how many are in each state.
        why_left: what goes on with those that were not begun. interrupted: whether it was.
        cut: what a budget of time left undone; how much that is goes by the load of the machine, so it is no PASS.
    """
    left = sum(items.values()) - sum(items.get(state, 0) for state in (DONE, FAILED, STOPPED))
    code, why = _exit(cells, interrupted)
    passed_so_far = code == ExitCode.PASS and bool(cut)
    if passed_so_far:
        code, why = ExitCode.UNDECIDED, f"{why} so far, but {cut}"
    note = f"; {counted(left, 'item')} left: {why_left}" if left and why_left else ""
    summary: Summary = {
        "schema": SCHEMA,
        "campaign": dict(about),
        "cells": dict(cells),
        "items": {**{state: items.get(state, 0) for state in (DONE, FAILED, STOPPED)}, "left": left},
        "interrupted": interrupted,
        "infrastructure": why if code == ExitCode.INFRASTRUCTURE else None,
        "isolation": why if code == ExitCode.ISOLATION else None,
        "exit_code": int(code),
        "exit_why": why + note,
    }
    entries = [entry for name, found in summary["cells"].items() for entry in entries_of(found, f"{name}.")]
    if passed_so_far:
        entries.append(JunitCase("run", "budget", (("failure", RelationOutcome.INCONCLUSIVE.value, why),)))
    write_entries(out / "junit.xml", entries, summary)
    write_summary(out, summary)
    return summary


def _exit(cells: Mapping[str, Summary], interrupted: bool) -> tuple[ExitCode, str]:
    if interrupted:
        return ExitCode.INTERRUPTED, "interrupted"
    ended = [(ExitCode(s["exit_code"]), f"{name}: {s['exit_why']}") for name, s in cells.items()]
    code = min((code for code, _ in ended), key=ORDER.index, default=ExitCode.UNDECIDED)
    whys = [why for each, why in ended if each == code]
    if code == ExitCode.PASS:
        return code, "all relations of all cells PASS"
    return code, "; ".join(whys[:3]) + (f"; and {len(whys) - 3} more cells" if len(whys) > 3 else "")
