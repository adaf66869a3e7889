# SPDX-License-Identifier: Apache-2.0
"""What a bundle gives for each section of a standard, and what it does not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from mt_nodes.base.resources import shipped
from mt_nodes.base.wording import counted
from mt_nodes.base.yaml_files import read_mapping

Plain = Mapping[str, Any]
FOLDER = "standards"


class SafetyFact(NamedTuple):
    """One thing that a bundle gives; ``good`` is False where that is not enough."""

    text: str
    good: bool


def standards(found: Plain) -> list[dict[str, Any]]:
    """Return the sections of each standard: clause, title, facts of the bundle, and what it never gives.

    ``found``: what the bundle comes to.
    """
    facts = safety_facts(found)
    result = []
    for path in shipped(FOLDER).values():
        data = read_mapping(path)
        rows = [{**row, "facts": [facts[name] for name in row["gives"]]} for row in data["sections"]]
        result.append({"standard": data["standard"], "sections": rows})
    return result


def safety_facts(found: Plain) -> dict[str, SafetyFact]:
    """Return what a bundle gives, by the name that the files of standards use."""
    return {**_of_requirements(found), **_of_tests(found), **_of_counts(found), **_of_origin(found)}


def _of_requirements(found: Plain) -> dict[str, SafetyFact]:
    rows, waivers = found["requirements"], found["waivers"]
    ended = {state: sum(row["status"] == state for row in rows) for state in ("supported", "waived", "gap", "violated")}
    untested = [row["id"] for row in rows if not row["relations"]]
    without = [row["id"] for row in rows if not row["hazard"].strip()]
    rates = ", ".join(f"{row['id']} {100 * row['max_rate']:g} %" for row in rows)
    count, clean = (
        counted(len(rows), "requirement"),
        not any(gap["about"].startswith("waiver") for gap in found["gaps"]),
    )
    held = ", ".join(f"{number} {state}" for state, number in ended.items() if number)
    return {
        "requirements": _fact(f"{count} with id and text", untested, "without a relation"),
        "hazards": _fact(f"hazards of {count}", without, "no hazard is stated for"),
        "acceptance": SafetyFact(f"accepted rates, fixed by the plan: {rates}", True),
        "verdicts": SafetyFact(f"of {count}: {held}", ended["supported"] == len(rows)),
        "waivers": SafetyFact(f"{counted(len(waivers), 'waiver')}, with reason, date and who accepts it", clean),
    }


def _of_tests(found: Plain) -> dict[str, SafetyFact]:
    plan, runs = found["plan"], found["runs"]
    rows = [(row, one) for row in found["requirements"] for one in row["relations"]]
    names = sorted({one["id"] for _, one in rows})
    short = sorted({one["id"] for row, one in rows if one.get("frames", 0) < row["frames"]})
    blind = sorted({one["id"] for _, one in rows if not one["seen_failing"]})
    as_planned = bool(runs) and not any(run["wrong"] for run in runs)
    committed = f"plan of {plan['made']}, committed to by {counted(len(runs), 'run')}"
    return {
        "relations": SafetyFact(f"{counted(len(names), 'relation')}, each defined in the plan", bool(names)),
        "plan": SafetyFact(committed if as_planned else f"{committed}, not as planned", as_planned),
        "sample": _fact("numbers of frames fixed by the plan", short, "fewer were decided for"),
        "sensitivity": _fact("relations seen to fail with a planted fault", blind, "not seen to fail"),
        "argument": SafetyFact("an argument in the Goal Structuring Notation, drawn and as YAML", True),
        "gaps": SafetyFact(counted(len(found["gaps"]), "gap") + " in what was planned", not found["gaps"]),
    }


def _of_counts(found: Plain) -> dict[str, SafetyFact]:
    relations = [one for row in found["requirements"] for one in row["relations"]]
    decided, violated = (sum(one.get(key, 0) for one in relations) for key in ("decided", "violated"))
    uppers = [one["ci95"][1] for one in relations if one.get("ci95")]
    residual = f"rates of violations, at most {100 * max(uppers):.3g} % (95 % confidence)" if uppers else "no rate"
    seed = f"{decided} decided pairs, drawn with the seed {found['plan']['seed']}, a digest of the plan"
    kept = f"{violated} of {decided} decided pairs violated, each kept with its draw"
    return {
        "violations": SafetyFact(kept, decided > 0),
        "random": SafetyFact(seed, decided > 0),
        "residual": SafetyFact(residual, bool(uppers)),
        "coverage": _coverage(found["coverage"]),
    }


def _of_origin(found: Plain) -> dict[str, SafetyFact]:
    stack, code, drives = found["stack"], found["plan"]["code"], found["plan"]["drives"]
    version = stack["version"] or "no version stated"
    fixed = "fixed by the plan" if drives["sha256"] else "not fixed by the plan"
    reproduction = "each pair can be made again, bit for bit, from its draw and its drive"
    return {
        "stack": SafetyFact(f"stack {stack['name']}, {version}, {stack['sha256'][:12]}…", bool(stack["version"])),
        "code": SafetyFact(f"mt_nodes {code['version']}, SHA-256 of its code {code['sha256'][:12]}…", True),
        "integrity": SafetyFact(f"SHA-256 of {counted(drives['count'], 'drive')}, {fixed}", bool(drives["sha256"])),
        "reproduction": SafetyFact(reproduction, bool(found["runs"])),
    }


def _fact(text: str, missing: list[str], what: str) -> SafetyFact:
    return SafetyFact(f"{text}; {what} {', '.join(missing)}" if missing else text, not missing)


def _coverage(found: Plain) -> SafetyFact:
    if not found or not found["cells_tried"]:
        return SafetyFact("no coverage of range, bearing and class is known", False)
    tried = f"{found['cells_tried']} cells of range, bearing, class and weather tried ({', '.join(found['weathers'])})"
    return SafetyFact(f"{tried}, {found['never_tried']} never", not found["never_tried"])
