# SPDX-License-Identifier: Apache-2.0
"""``junit.xml``: one case per relation; a CI system is green exactly if the exit code is 0.

``failure`` is an outcome of the run: FAIL, and also INCONCLUSIVE and UNSTABLE, distinguished by the element's ``type``
(``skipped`` would be green); a waived FAIL has a property. ``error`` is what prevents an outcome: ERROR pairs of a
relation, and for the run itself one more case, ``run``, only if it was interrupted, refused, broken or empty.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from mt_nodes.base.wording import counted
from mt_nodes.data.verdict import Outcome, RelationOutcome

_NOT_XML = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

Trouble = tuple[str, str, str]
"""Element name, its type, its message."""


@dataclass(frozen=True)
class JunitCase:
    """One case of the suite: its group and name, failures and errors, the result in words, and properties by name."""

    group: str
    name: str
    troubles: tuple[Trouble, ...]
    account: str = ""
    properties: tuple[tuple[str, str], ...] = ()


def write_junit(path: Path, summary: Mapping[str, Any]) -> None:
    """Write a summary (as :func:`mt_nodes.engine.summary.summary.summarise` makes it) as JUnit XML."""
    write_entries(path, entries_of(summary), summary)


def entries_of(summary: Mapping[str, Any], group: str = "") -> list[JunitCase]:
    """Return one entry per relation of a summary; ``group`` is a prefix of its group, the kind."""
    return [
        JunitCase(group + r["kind"], name, tuple(_relation_trouble(r)), _account(r), tuple(_properties(r)))
        for name, r in summary["relations"].items()
    ] + [_claim_case(group, name, row) for name, row in summary.get("claims", {}).items()]


def _claim_case(group: str, name: str, row: Mapping[str, Any]) -> JunitCase:
    failed = row["outcome"] != RelationOutcome.PASS.value
    troubles = (("failure", row["outcome"], row["why"]),) if failed else ()
    margin = row.get("worst", {}).get("margin")
    properties = () if margin is None else (("robustness", f"{margin:g}"),)
    return JunitCase(f"{group}claim", name, troubles, f"{row['formula']}: {row['why']}", properties)


def write_entries(path: Path, entries: Sequence[JunitCase], summary: Mapping[str, Any]) -> None:
    """Write entries, and one more, ``run``, where the summary says what prevented an outcome."""
    suite = ET.Element("testsuite", name="mt_nodes")
    for entry in (*entries, *_run_entry(summary, any(entry.troubles for entry in entries))):
        case = ET.SubElement(suite, "testcase", classname=f"mt_nodes.{entry.group}", name=_clean(entry.name))
        for tag, kind, message in entry.troubles:
            ET.SubElement(case, tag, type=kind, message=_clean(message))
        if entry.properties:
            properties = ET.SubElement(case, "properties")
            for name, value in entry.properties:
                ET.SubElement(properties, "property", name=name, value=_clean(value))
        if entry.account:
            ET.SubElement(case, "system-out").text = _clean(entry.account)
    for tag, plural in (("testcase", "tests"), ("failure", "failures"), ("error", "errors")):
        suite.set(plural, str(len(suite.findall(f".//{tag}"))))
    suite.set("skipped", "0")
    ET.indent(suite)
    ET.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)


def _relation_trouble(relation: Mapping[str, Any]) -> Iterator[Trouble]:
    arms = (relation, relation["control"], relation["sham"])
    if errors := sum(arm["outcomes"].get(Outcome.ERROR.value, 0) for arm in arms):
        yield "error", Outcome.ERROR.value, f"{counted(errors, 'pair')} ended in ERROR, control and sham included"
    if relation["outcome"] != RelationOutcome.PASS.value and not relation.get("waived"):
        yield "failure", relation["outcome"], relation["why"]


def _run_entry(summary: Mapping[str, Any], troubled: bool) -> Iterator[JunitCase]:
    """Yield a case of the run itself if it was cut short, or if no relation explains its exit code."""
    cut = summary["interrupted"] or summary["isolation"] is not None or summary["infrastructure"] is not None
    if cut or summary.get("deaths") or (summary["exit_code"] and not troubled):
        yield JunitCase("run", "run", (("error", f"exit code {summary['exit_code']}", summary["exit_why"]),))


def _properties(relation: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for identifier in relation["requirement"]:
        yield "requirement", identifier
    if waived := relation.get("waived"):
        yield "waived", f"until {waived['expires']}: {waived['reason']}"


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
    """Replace control characters, which XML 1.0 cannot hold; a stack's log may have some."""
    return _NOT_XML.sub("?", text)
