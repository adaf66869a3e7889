# SPDX-License-Identifier: Apache-2.0
"""``junit.xml``: one case a relation, written so that a CI system is green exactly when the exit code is 0.

``failure`` is what the run found: FAIL, and also INCONCLUSIVE and UNSTABLE, told apart by the element's ``type``
(``skipped`` would show them as green); a waived FAIL is told by a property. ``error`` is what kept the run from
finding anything: ERROR pairs of a relation, and for the run itself one more case, ``run``, there only when it was
interrupted, refused, broken or empty.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from mt_nodes.verdict import Outcome, RelationOutcome

_NOT_XML = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

Trouble = tuple[str, str, str]
"""Element name, its type, its message."""


def write_junit(path: Path, summary: Mapping[str, Any]) -> None:
    """Write a summary (as :func:`mt_nodes.summary.summarise` makes it) as JUnit XML."""
    suite = ET.Element("testsuite", name="mt_nodes")
    for name, relation in summary["relations"].items():
        case = _case(suite, relation["kind"], name, _relation_trouble(relation))
        _properties(case, relation)
        ET.SubElement(case, "system-out").text = _clean(_account(relation))
    if trouble := _run_trouble(summary):
        _case(suite, "run", "run", [trouble])
    for tag, plural in (("testcase", "tests"), ("failure", "failures"), ("error", "errors")):
        suite.set(plural, str(len(suite.findall(f".//{tag}"))))
    suite.set("skipped", "0")
    ET.indent(suite)
    ET.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)


def _relation_trouble(relation: Mapping[str, Any]) -> Iterator[Trouble]:
    arms = (relation, relation["control"], relation["sham"])
    if errors := sum(arm["outcomes"].get(Outcome.ERROR.value, 0) for arm in arms):
        yield "error", Outcome.ERROR.value, f"{errors} pairs ended in ERROR, control and sham included"
    if relation["outcome"] != RelationOutcome.PASS.value and not relation.get("waived"):
        yield "failure", relation["outcome"], relation["why"]


def _run_trouble(summary: Mapping[str, Any]) -> Trouble | None:
    told_by_a_relation = summary["relations"] and not (
        summary["interrupted"] or summary["isolation"] is not None or summary["infrastructure"] is not None
    )
    return None if told_by_a_relation else ("error", f"exit code {summary['exit_code']}", summary["exit_why"])


def _case(suite: ET.Element, group: str, name: str, troubles: Iterator[Trouble] | list[Trouble]) -> ET.Element:
    case = ET.SubElement(suite, "testcase", classname=f"mt_nodes.{group}", name=name)
    for tag, kind, message in troubles:
        ET.SubElement(case, tag, type=kind, message=_clean(message))
    return case


def _properties(case: ET.Element, relation: Mapping[str, Any]) -> None:
    rows = [("requirement", identifier) for identifier in relation["requirement"]]
    if waived := relation.get("waived"):
        rows.append(("waived", f"until {waived['expires']}: {waived['reason']}"))
    if rows:
        properties = ET.SubElement(case, "properties")
        for name, value in rows:
            ET.SubElement(properties, "property", name=name, value=_clean(value))


def _account(relation: Mapping[str, Any]) -> str:
    control, sham, waived = relation["control"], relation["sham"], relation.get("waived")
    until = f"waived until {waived['expires']}: {waived['reason']}\n" if waived else ""
    return (
        f"{relation['outcome']}: {relation['why']}\n{until}"
        f"violated {relation['violated']} of {relation['decided']} decided pairs ({relation['frames']} frames), "
        f"control {control['violated']} of {control['decided']}, sham {sham['violated']} of {sham['decided']}\n"
        f"lost {relation['lost']}, gained {relation['gained']} obstacles\n"
    )


def _clean(text: str) -> str:
    """XML 1.0 cannot hold control characters, not even escaped; a stack's log may."""
    return _NOT_XML.sub("?", text)
