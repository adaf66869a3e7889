# SPDX-License-Identifier: Apache-2.0
"""Files of a finished experiment: ``automt.json``, tables and cases as CSV, and a figure."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from mt_nodes.base.directories import cannot_write
from mt_nodes.base.jsonl import jsonable
from mt_nodes.base.result_files import write_result
from mt_nodes.report.categories import render
from mt_nodes.report.picture_colours import BLUE, VERMILLION
from mt_nodes.rules.rates import NOT_RUN
from mt_nodes.rules.validation import FACTORS
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
#: Methods are told apart by colour (Okabe and Ito, 2008) and hatching.
_STYLES = ((VERMILLION, ""), (BLUE, "////"), ("#E69F00", "...."), ("#999999", "xxxx"))


def write_all(out: Path, table: Table) -> list[Path]:
    """Write all files and return their paths.

    Raises:
        InfrastructureError: they cannot be written.
    """
    paths = [
        out / name
        for name in (RESULT, "automt_validation.csv", "automt_violation.csv", "automt_cases.csv", "automt.png")
    ]
    try:
        write_result(paths[0], jsonable(table))
        _write_csv(paths[1], VALIDATION_COLUMNS, validation_rows(table))
        _write_csv(paths[2], VIOLATION_COLUMNS, violation_rows(table))
        _write_csv(paths[3], CASE_COLUMNS, case_rows(table))
        paths[4].write_bytes(render(_figure(table), "png"))
    except OSError as error:
        raise cannot_write(out, error) from error
    return paths


def validation_rows(table: Table) -> Iterator[dict[str, Any]]:
    """Yield table VIII, a row each region, method and factor; ``paper``: the published share."""
    for region, results in table["regions"].items():
        for method, row in results["validation"].items():
            for factor in ("overall", *FACTORS):
                head = {"region": region, "method": method, "factor": factor}
                paper = results["published"]["validation"][method][factor]
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


def _figure(table: Table) -> Figure:
    """Return bars of violations per case by stack and method, a panel each region; a dash: the floor."""
    regions, stacks = table["regions"], table["stacks"]
    figure = Figure(figsize=(1.5 + max(3.4, 1.1 * len(stacks)) * len(regions), 4.0), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, len(regions), sharey=True, squeeze=False)[0]
    for axes, (region, results) in zip(panels, regions.items(), strict=True):
        _panel(axes, region, results["violation"], stacks, table["identity"])
    panels[0].set_ylabel("violations, share of all cases (%)")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False, fontsize=8)
    return figure


def _panel(axes: Axes, region: str, methods: Table, stacks: Sequence[str], identity: Table) -> None:
    width = 0.8 / max(1, len(methods))
    for i, (method, row) in enumerate(methods.items()):
        if row == NOT_RUN:
            continue
        colour, hatch = _STYLES[i % len(_STYLES)]
        at = [n - 0.4 + (i + 0.5) * width for n in range(len(stacks))]
        rates = [row[stack]["per_case"] for stack in stacks]
        heights = [100.0 * (one["share"] or 0.0) for one in rates]
        axes.bar(at, heights, width, color=colour, hatch=hatch, edgecolor="white", label=method.replace("_", " "))
        low = [height - 100.0 * (one["low"] or 0.0) for height, one in zip(heights, rates, strict=True)]
        high = [100.0 * (one["high"] or 0.0) - height for height, one in zip(heights, rates, strict=True)]
        spread = [[max(0.0, value) for value in side] for side in (low, high)]
        axes.errorbar(at, heights, spread, fmt="none", ecolor="black", capsize=2, linewidth=0.8)
    floors = [100.0 * (identity[stack]["per_case"]["share"] or 0.0) for stack in stacks]
    axes.hlines(
        floors,
        [n - 0.45 for n in range(len(stacks))],
        [n + 0.45 for n in range(len(stacks))],
        "black",
        "dashed",
        label="where nothing was changed",
    )
    axes.set_xticks(range(len(stacks)), stacks, fontsize=7, rotation=15)
    axes.set_ylim(-1.0, 100.0)  # so that a floor of 0 is seen
    axes.set_title(region)
