# SPDX-License-Identifier: Apache-2.0
"""Files of a finished experiment: ``automt.json``, tables and cases as CSV, and figures."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mt_nodes.base.directories import cannot_write
from mt_nodes.base.jsonl import jsonable, write_result
from mt_nodes.report.categories import render
from mt_nodes.rules.rates import NOT_RUN
from mt_nodes.rules.validation import FACTORS
from mt_nodes.runs.automt.automt_figures import manipulations_figure, violations_figure
from mt_nodes.runs.automt.automt_run import RESULT

Table = Mapping[str, Any]
VALIDATION_COLUMNS = (
    *("region", "method", "factor", "hits", "cases", "unclear", "share", "low", "high", "p_adjusted", "paper"),
)
VIOLATION_COLUMNS = (
    *("region", "method", "stack", "violated", "cases", "share", "low", "high", "valid", "share_of_valid"),
    *("decided", "p_adjusted", "identity_share"),
)
CASE_COLUMNS = (
    *("region", "method", "round", "case", "relation", "behaviour", "valid", *FACTORS, "stack", "outcome"),
    *("measured", "bound", "unit", "reason"),
)


def write_all(out: Path, table: Table) -> list[Path]:
    """Write all files and return their paths. Raises InfrastructureError: they cannot be written."""
    paths = [
        out / name
        for name in (
            *(RESULT, "automt_validation.csv", "automt_violation.csv", "automt_cases.csv"),
            *("automt.png", "automt_manipulations.png"),
        )
    ]
    try:
        write_result(paths[0], jsonable(table))
        _write_csv(paths[1], VALIDATION_COLUMNS, validation_rows(table))
        _write_csv(paths[2], VIOLATION_COLUMNS, violation_rows(table))
        _write_csv(paths[3], CASE_COLUMNS, case_rows(table))
        paths[4].write_bytes(render(violations_figure(table), "png"))
        paths[5].write_bytes(render(manipulations_figure(table), "png"))
    except OSError as error:
        raise cannot_write(out, error) from error
    return paths


def validation_rows(table: Table) -> Iterator[dict[str, Any]]:
    """Yield table VIII, a row each region, method and factor; ``paper``: the published share."""
    for region, results in table["regions"].items():
        for method, row in results["validation"].items():
            for factor in ("overall", *FACTORS):
                head = {"region": region, "method": method, "factor": factor}
                paper = results["published"]["validation"].get(method, {}).get(factor)
                yield {**head, **_share(row, factor), "paper": paper}


def violation_rows(table: Table) -> Iterator[dict[str, Any]]:
    """Yield table IX, a row each region, method and stack."""
    for region, results in table["regions"].items():
        for method, row in results["violation"].items():
            for stack in table["stacks"]:
                head = {"region": region, "method": method, "stack": stack}
                floor = table["identity"][stack]["per_case"]["share"]
                yield {**head, **_violated(row, stack), "identity_share": floor}


def case_rows(table: Table) -> Iterator[dict[str, Any]]:
    """Yield a row each proposal and stack; what was not run has one without a stack."""
    for one in table["judged"]:
        holds = {name: one["validation"][name]["holds"] for name in FACTORS}
        statement = one["statement"]
        head = {
            **{key: one[key] for key in ("region", "method", "round", "case", "relation")},
            "behaviour": statement["behaviour"] if statement else "",
            "valid": one["validation"]["valid"],
            **holds,
        }
        for stack, judgement in one["judgements"].items() or (("", {"reason": one["why"]}),):
            yield {**head, "stack": stack, **judgement}


def _share(row: Table | str, factor: str) -> dict[str, Any]:
    if isinstance(row, str):
        return {"share": NOT_RUN}
    one = row[factor]
    p = row.get("p_adjusted") if factor == "overall" else None
    figures = {key: one[key] for key in ("hits", "unclear", "share", "low", "high")}
    return {**figures, "cases": one["trials"], "p_adjusted": p}


def _violated(row: Table | str, stack: str) -> dict[str, Any]:
    if isinstance(row, str):
        return {"share": NOT_RUN}
    one, valid = row[stack]["per_case"], row[stack]["per_valid"]
    return {
        "violated": one["hits"],
        "cases": one["trials"],
        **{key: one[key] for key in ("share", "low", "high")},
        "valid": valid["trials"],
        "share_of_valid": valid["share"],
        "decided": row[stack]["decided"],
        "p_adjusted": row[stack].get("p_adjusted"),
    }


def _write_csv(path: Path, columns: Sequence[str], rows: Iterator[dict[str, Any]]) -> None:
    with path.open("w", newline="", encoding="utf-8", errors="backslashreplace") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
