# SPDX-License-Identifier: Apache-2.0
"""Everything that is made of a campaign's journal: ``cases.csv``, ``junit.xml``, ``report.html``."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mt_nodes.base.jsonl import read_result
from mt_nodes.base.record_shapes import NUMBER, TEXT_OR_NULL, Shape, expect_shape
from mt_nodes.data.verdict import RelationOutcome
from mt_nodes.engine.run_record import read_record
from mt_nodes.report.junit import JunitCase, write_entries
from mt_nodes.runs.moral.report_html import write_report
from mt_nodes.runs.moral.report_journal import MoralJournal
from mt_nodes.runs.moral.report_view import CaseView, PrincipleView, principles_of

Summary = dict[str, Any]
_NUMBER_OR_NULL = (*NUMBER, type(None))
#: What is read of the summary of a campaign.
SHAPE: Shape = {
    **{"offered": int, "outcomes": {"*": int}, "exit_code": int, "exit_why": str, "runs": int, "decided": int},
    **{"seconds": NUMBER, **dict.fromkeys(("runs_per_decided", "seconds_per_decided"), _NUMBER_OR_NULL)},
    "budget?": {"minutes": _NUMBER_OR_NULL, "cut_by": TEXT_OR_NULL, "cases_cut": int, "*": object},
}
COLUMNS = (
    *("case", "principle", "verdict", "changed", "runs", "measured", "low", "high", "boundary"),
    *("people_hit", "impact_mps", "reason"),
)


def remake(out: Path) -> Summary:
    """Write all of it and return the campaign's summary.

    Raises MtError: the directory holds no campaign, or none that came to an end.
    """
    journal, summary = MoralJournal.load(out), read_summary(out)
    shown = principles_of(journal, _sources(out))
    write_cases_csv(out / "cases.csv", [case for principle in shown for case in principle.cases])
    write_entries(out / "junit.xml", [_entry(principle) for principle in shown], summary)
    write_report(journal, shown, summary)
    return summary


def read_summary(out: Path) -> Summary:
    """Return the ``summary.json`` of a campaign.

    Raises InfrastructureError: it is missing, as of one that was killed, or damaged.
    """
    path = out / "summary.json"
    data = read_result(path, f"`mt experiment moral --resume {out}` brings the campaign to an end")
    expect_shape(data, SHAPE, str(path))
    return data


def write_cases_csv(path: Path, cases: Iterable[CaseView]) -> None:
    """Write one row a case; what was not measured is an empty cell."""
    with path.open("w", newline="", encoding="utf-8", errors="backslashreplace") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(map(_row, cases))


def _row(case: CaseView) -> Mapping[str, Any]:
    one, hurt = case.quantity, case.casualties
    low, high = one.interval if one else (None, None)
    return {
        **{name: getattr(case, name) for name in ("principle", "verdict", "changed", "runs", "reason")},
        "case": case.id,
        **({"measured": one.value, "low": low, "high": high, "boundary": one.boundary} if one else {}),
        **({"people_hit": hurt[0].people, "impact_mps": hurt[0].impact_mps} if hurt else {}),
    }


def _entry(principle: PrincipleView) -> JunitCase:
    passed = principle.outcome == RelationOutcome.PASS.value
    troubles = () if passed else (("failure", principle.outcome, principle.why),)
    account = f"{principle.outcome}: {principle.why}\n{principle.counts}\n"
    return JunitCase(str(principle.numbers["kind"]), principle.id, troubles, account)


def _sources(out: Path) -> dict[str, Sequence[str]]:
    return {one["id"]: one.get("sources", ()) for one in read_record(out)["relations"]}
