# SPDX-License-Identifier: Apache-2.0
"""What a bundle of evidence comes to: each requirement, each gap by name; from its plan and its runs' journals alone.

Whoever makes a bundle and whoever verifies it call this, so that nothing rests on what a bundle says of itself.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mt_nodes.base.errors import ExitCode, MtError
from mt_nodes.base.jsonl import read_lines
from mt_nodes.base.wording import counted
from mt_nodes.data.verdict import RelationOutcome
from mt_nodes.engine.finish import sum_up
from mt_nodes.engine.plan import PLAN_FILE
from mt_nodes.engine.run_record import read_record
from mt_nodes.engine.waivers import Waiver, load_waivers
from mt_nodes.report.coverage.coverage import coverage
from mt_nodes.runs.safety_case.preregistration import Preregistration
from mt_nodes.runs.safety_case.run_assessment import RunAssessment, assess_run, relation_infos

#: Parts of a bundle.
RUNS, SENSITIVITY, WAIVERS, PLAN_RUNS = "runs", "sensitivity", "waivers.yaml", "plan_runs.jsonl"
#: How a requirement, or a relation of it, ends.
VIOLATED, GAP, WAIVED, SUPPORTED = "violated", "gap", "waived", "supported"
_WORST_FIRST = (VIOLATED, GAP, WAIVED, SUPPORTED)
_SAME_TEST = ("given", "baseline", "mutate", "check")
#: Of the coverage of runs, what a case for safety tells.
_COVERED = ("classes", "weathers", "range_m", "bearing_deg", "never_tried", "undecided")
Plain = dict[str, Any]


def assess(bundle: Path, day: datetime.date) -> Plain:
    """Return what a bundle comes to on a day, by which waivers expire, as plain data.

    Raises UsageError: it has no plan, or its waivers cannot be read.
    """
    plan = Preregistration.load(bundle / PLAN_FILE)
    served = requirements_of(plan.content)
    waivers = load_waivers(bundle / WAIVERS) if (bundle / WAIVERS).is_file() else ()
    runs = [assess_run(place, plan, waivers, served, day) for place in places(bundle / RUNS)]
    failing, notes = _seen_failing(bundle, plan, runs)
    requirements = [_requirement(row, plan, runs, failing) for row in plan.content["requirements"]]
    gaps = [*_run_gaps(bundle, plan, runs), *_waiver_gaps(waivers, served, day)]
    gaps += [{"about": f"requirement {row['id']}", "what": what} for row in requirements for what in row["gaps"]]
    code, why = _verdict(requirements, runs, gaps)
    return {
        "schema": 1,
        "as_of": day.isoformat(),
        "exit_code": int(code),
        "exit_why": why,
        "plan": {key: plan.content[key] for key in ("made", "seed", "drives", "pairs", "code")}
        | {"sha256": plan.sha256},
        "stack": plan.content["stack"],
        "requirements": requirements,
        "runs": [run.as_plain() for run in runs],
        "sensitivity": {"relations": failing, "notes": notes},
        "waivers": [waiver.as_plain() for waiver in waivers],
        "coverage": _covered(bundle),
        "gaps": gaps,
    }


def places(folder: Path) -> list[Path]:
    """Return the results directories in a folder of a bundle, by number."""
    found = [place for place in folder.glob("*") if place.is_dir()] if folder.is_dir() else []
    return sorted(found, key=lambda place: (len(place.name), place.name))


def requirements_of(content: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the ids of the requirements that each relation of a plan tests."""
    served: dict[str, list[str]] = {}
    for row in content["requirements"]:
        for relation in row["relations"]:
            served.setdefault(relation, []).append(row["id"])
    return served


def _requirement(row: Plain, plan: Preregistration, runs: Sequence[RunAssessment], failing: Mapping[str, str]) -> Plain:
    because = {one["id"]: one.get("because", "") for one in plan.content["relations"]}
    found = [_relation(name, row, runs, failing) | {"because": because[name]} for name in row["relations"]]
    gaps = [f"{one['id']}: {what}" for one in found for what in one["gaps"]]
    gaps += [] if found else ["no relation tests it"]
    states = [one["status"] for one in found] or [GAP]
    return {**row, "status": min(states, key=_WORST_FIRST.index), "relations": found, "gaps": gaps}


def _relation(name: str, row: Plain, runs: Sequence[RunAssessment], failing: Mapping[str, str]) -> Plain:
    """Return what a relation came to for a requirement: of several runs, and each counts, the worst."""
    each = [_in_run(run.relations.get(name), row) for run in runs] or [(GAP, ["was not run"], {})]
    status, _, counts = min(each, key=lambda found: _WORST_FIRST.index(found[0]))
    gaps = list(dict.fromkeys(gap for _, some, _ in each for gap in some))
    if name not in failing:
        status = min(status, GAP, key=_WORST_FIRST.index)
        gaps = [*gaps, "no planted fault was seen to violate it, so that it may be unable to fail"]
    return {"id": name, "status": status, "gaps": gaps, "seen_failing": failing.get(name, ""), **counts}


def _in_run(found: Mapping[str, Any] | None, row: Plain) -> tuple[str, list[str], Plain]:
    if found is None:
        return GAP, ["was not run"], {}
    counts = {key: found[key] for key in ("outcome", "why", "decided", "violated", "frames", "ci95", "ci95_method")}
    gaps = list(_shortfalls(found, row))
    if found["outcome"] != RelationOutcome.FAIL.value:
        return GAP if gaps else SUPPORTED, gaps, counts
    if waived := found["waived"].get(row["id"]):
        return WAIVED, [], {**counts, "waived": waived}
    return VIOLATED, [f"VIOLATED in {found['violated']} of {found['decided']} pairs, and not waived"], counts


def _shortfalls(found: Mapping[str, Any], row: Plain) -> Iterator[str]:
    if not found["decided"]:
        yield "nothing was decided"
        return
    if found["frames"] < row["frames"]:
        yield f"{counted(found['frames'], 'frame')} decided, {row['frames']} planned"
    if found["outcome"] != RelationOutcome.PASS.value:
        yield f"{found['outcome']}: {found['why']}"
    upper = found["ci95"][1] if found["ci95"] else 1.0
    if upper > row["max_rate"]:
        yield f"up to {upper:.3g} of pairs may be violated (95 % confidence), {row['max_rate']:g} accepted"


def _seen_failing(
    bundle: Path, plan: Preregistration, runs: Sequence[RunAssessment]
) -> tuple[dict[str, str], list[str]]:
    """Return for each relation that was seen to fail where that was, and what was given for it and does not count."""
    planned = {row["id"]: row for row in plan.content["relations"] if row.get("check") is not None}
    failing, notes = {}, []
    for run in runs:
        for name, row in run.relations.items():
            if row["outcome"] == RelationOutcome.FAIL.value:
                failing[name] = f"FAIL in run {run.name} itself"
    for place in places(bundle / SENSITIVITY):
        try:
            record = read_record(place)
            again = sum_up(place, relation_infos(record["relations"], {}))["relations"]
        except MtError as error:
            notes.append(f"{SENSITIVITY}/{place.name} does not count: {error}")
            continue
        faults, stack = record["request"].get("faults", []), record.get("stack", "")
        if not faults:
            notes.append(f"{SENSITIVITY}/{place.name} does not count: no fault was planted in it")
            continue
        for row in record["relations"]:
            name = row["id"]
            if name not in planned or again.get(name, {}).get("outcome") != RelationOutcome.FAIL.value:
                continue
            if any(row.get(key) != planned[name].get(key) for key in _SAME_TEST):
                notes.append(f"{SENSITIVITY}/{place.name}: {name} is defined otherwise than in the plan")
                continue
            count = f"{again[name]['violated']} of {again[name]['decided']} pairs"
            failing.setdefault(name, f"violated in {count} with the fault {', '.join(faults)} planted in {stack}")
    return failing, notes


def _run_gaps(bundle: Path, plan: Preregistration, runs: Sequence[RunAssessment]) -> Iterator[Plain]:
    if not runs:
        yield {"about": "runs", "what": "no run is in the bundle"}
    for run in runs:
        yield from ({"about": f"run {run.name}", "what": what} for what in run.wrong)
    given = [run.number for run in runs]
    listed = [row for row in _listed(bundle) if row.get("plan") == plan.sha256]
    for number in sorted({*range(1, max([*given, 0]) + 1), *(row["number"] for row in listed)} - {*given}):
        yield {"about": "runs", "what": f"run {number} of the plan was begun and is not in the bundle"}
    if twice := sorted({number for number in given if given.count(number) > 1}):
        yield {"about": "runs", "what": f"several runs have the number {', '.join(map(str, twice))}"}


def _listed(bundle: Path) -> list[Plain]:
    path = bundle / PLAN_RUNS
    return list(read_lines(path, {"run": {"number": int, "plan": str}})) if path.is_file() else []


def _waiver_gaps(waivers: Sequence[Waiver], served: Mapping[str, Sequence[str]], day: datetime.date) -> Iterator[Plain]:
    for waiver in waivers:
        about = f"waiver {waiver.id or waiver.name}"
        if day > waiver.expires:
            yield {"about": about, "what": f"expired on {waiver.expires}"}
        if not waiver.who:
            yield {"about": about, "what": "does not say who accepts it (key who)"}
        if waiver.requirement not in served.get(waiver.relation, ()):
            got = waiver.requirement or "none"
            yield {
                "about": about,
                "what": f"names requirement {got}, which {waiver.relation} does not test by the plan",
            }


def _verdict(
    requirements: Sequence[Plain], runs: Sequence[RunAssessment], gaps: Sequence[Plain]
) -> tuple[ExitCode, str]:
    ended = {status: [row["id"] for row in requirements if row["status"] == status] for status in _WORST_FIRST}
    if ended[VIOLATED]:
        return ExitCode.FAIL, f"violated, and not waived: {', '.join(ended[VIOLATED])}"
    if not any(row["decided"] for run in runs for row in run.relations.values()):
        return ExitCode.UNDECIDED, "nothing was decided"
    if gaps:
        return ExitCode.FAIL, f"{counted(len(gaps), 'gap')}, the first: {gaps[0]['about']}: {gaps[0]['what']}"
    waived = f", except violated and waived: {', '.join(ended[WAIVED])}" if ended[WAIVED] else ""
    return ExitCode.PASS, f"{counted(len(ended[SUPPORTED]), 'requirement')} supported as planned{waived}"


def _covered(bundle: Path) -> Plain:
    try:
        found = coverage(places(bundle / RUNS)).as_plain()
    except MtError:  # told of the run
        return {}
    return {**{key: found[key] for key in _COVERED}, "cells_tried": len(found["cells"])}
