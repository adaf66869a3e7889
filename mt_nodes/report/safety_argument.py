# SPDX-License-Identifier: Apache-2.0
"""The argument of a case for safety in the Goal Structuring Notation, made from what its bundle comes to.

The YAML has the form that the tool gsn2x reads: elements by id, whose first letters tell the kind (G goal, S strategy,
Sn solution, C context, A assumption, J justification), with ``text``, ``supportedBy``, ``inContextOf`` and
``undeveloped``. Source: GSN Community Standard, version 3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from mt_nodes.base.wording import counted

Element = dict[str, Any]
#: Statuses that are drawn as such; everything else is as it should be.
MARKED = ("violated", "gap", "waived")
_NO_HAZARD = "no hazard stated"


class _Argument:
    """Numbers the elements of an argument as they are added."""

    def __init__(self) -> None:
        self.elements: dict[str, Element] = {}

    def add(self, kind: str, text: str, status: str = "", above: str = "", **more: Any) -> str:
        """Add an element that supports, or is the context of, the one ``above``; return its id."""
        number = 1 + sum(1 for name in self.elements if name.rstrip("0123456789") == kind)
        name = f"{kind}{number}"
        self.elements[name] = {"text": text, **({"status": status} if status in MARKED else {}), **more}
        if above:
            key = "inContextOf" if kind in ("C", "A", "J") else "supportedBy"
            self.elements[above].setdefault(key, []).append(name)
        return name


def safety_argument(found: Mapping[str, Any]) -> dict[str, Element]:
    """Return the elements of the argument by id, the top goal first; ``found``: what the bundle comes to."""
    made = _Argument()
    stack, requirements = found["stack"], found["requirements"]
    status = _worst([row["status"] for row in requirements] + (["gap"] if found["gaps"] else []))
    count = counted(len(requirements), "requirement")
    top = made.add("G", f"{stack['name']} meets {count} on the drives that were tested", status)
    version = stack["version"] or "of no stated version"
    made.add("C", f"Stack {stack['name']} {version}, definition {stack['sha256'][:12]}…", "", top)
    drives = found["plan"]["drives"]
    fixed = "fixed by SHA-256" if drives["sha256"] else "not fixed by content"
    made.add("C", f"{counted(drives['count'], 'drive')}, {fixed} by plan {found['plan']['sha256'][:12]}…", "", top)
    made.add("A", "The drives stand for the operational domain; the bundle does not show that they do", "", top)
    made.add("J", "A relation needs no ground truth: it compares the answers to an input and to a changed one", "", top)
    over = made.add("S", "Argument over each hazard, and each requirement that bounds it", "", top)
    for hazard, rows in _by_hazard(requirements).items():
        state = _worst([row["status"] for row in rows] + (["gap"] if hazard == _NO_HAZARD else []))
        text = f"Hazard: {hazard}" if hazard != _NO_HAZARD else "Requirements for which no hazard is stated"
        above = made.add("G", text, state, over)
        for row in rows:
            _add_requirement(made, row, above, len(found["runs"]))
    return made.elements


def argument_yaml(elements: Mapping[str, Element]) -> str:
    """Return an argument as YAML that gsn2x reads."""
    return yaml.safe_dump(dict(elements), sort_keys=False, allow_unicode=True, width=1000)


def _add_requirement(made: _Argument, row: Mapping[str, Any], above: str, runs: int) -> None:
    undeveloped = {} if row["relations"] else {"undeveloped": True}
    goal = made.add("G", f"{row['id']}: {row['text']}", row["status"], above, **undeveloped)
    for one in row["relations"]:
        text = f"{one['id']} is violated in at most {100 * row['max_rate']:g} % of pairs"
        decided = bool(one.get("decided"))
        name = made.add("G", text, one["status"], goal, **({} if decided else {"undeveloped": True}))
        if decided:
            upper = f", at most {100 * one['ci95'][1]:.1f} %" if one["ci95"] else ""
            share = f"{one['violated']} of {one['decided']} violated{upper}"
            enough = one["status"] == "gap" and len(one["gaps"]) == (not one["seen_failing"])
            made.add("Sn", f"{counted(runs, 'run')}: {share}: {one['outcome']}", "" if enough else one["status"], name)
        if "waived" in one:
            waived = one["waived"]
            made.add("J", f"Waived until {waived['expires']}: {waived['reason']}", "waived", name)
        if one["seen_failing"]:
            made.add("Sn", f"It can fail: {one['seen_failing']}", "", name)
        else:
            can_fail = f"{one['id']} can fail: no planted fault was seen to violate it"
            made.add("G", can_fail, "gap", name, undeveloped=True)


def _by_hazard(requirements: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for row in requirements:
        groups.setdefault(row["hazard"].strip() or _NO_HAZARD, []).append(row)
    return groups


def _worst(statuses: Sequence[str]) -> str:
    return next((status for status in MARKED if status in statuses), "")
