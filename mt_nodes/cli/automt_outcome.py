# SPDX-License-Identifier: Apache-2.0
"""Prints the outcome of ``mt experiment automt``."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mt_nodes.base.wording import counted
from mt_nodes.cli.rules_models import usage_line
from mt_nodes.cli.terminal import heading, table, text
from mt_nodes.rules.rates import NOT_RUN
from mt_nodes.rules.validation import FACTORS

Table = Mapping[str, Any]
SHARES = ("overall", *FACTORS)
VALIDATION = ("name", *SHARES, "95 % of overall", "p", "unknown", *(f"paper: {one}" for one in SHARES))
VIOLATION = ("name", "method", "of all cases", "95 %", "of valid cases", "decided", "p", "unchanged")


def print_experiment(out: Path, experiment: Table, files: Sequence[Path]) -> None:
    """Print both tables of each region beside the paper's, the outcome of each stack, and what was not run."""
    for region, row in experiment["regions"].items():
        cases, rounds = experiment["sources"], experiment["request"]["rounds"]
        heading(f"{region}: {counted(cases, 'source case')}, {counted(rounds, 'round')}")
        _print_counts(row["counts"])
        text("valid follow-ups (table VIII of the paper); p: compared with automt, adjusted after Holm")
        table(VALIDATION, [_valid(name, row) for name in row["validation"]], right=VALIDATION[1:])
        text("violations (table IX of the paper); p: compared with automt, adjusted after Holm")
        rows = [
            _violated(name, stack, row, experiment["identity"])
            for name in row["violation"]
            for stack in experiment["stacks"]
        ]
        table(VIOLATION, rows, right=VIOLATION[2:])
        _print_published(row["published"])
    for line in _remarks(experiment):
        text(line)
    text(f"exit code {experiment['exit_code']}: {experiment['exit_why']}")
    text(f"results in {out}: {', '.join(path.name for path in files)}")
    for stack in experiment["stacks"]:
        if (out / stack).is_dir():
            text(f"  mt show {shlex.quote(str(out / stack))}  # the pairs of {stack}, and what to type next")


def _print_counts(counts: Table) -> None:
    for method, row in counts.items():
        behaviours = ", ".join(f"{n} {name}" for name, n in row["behaviours"].items())
        run, different = f"{row['run']} of {row['cases']} cases run", counted(row["relations"], "different relation")
        text(f"  {method}: {run}, {different} ({behaviours})")


def _valid(method: str, region: Table) -> tuple[str, ...]:
    row, paper = region["validation"][method], region["published"]["validation"].get(method)
    published = tuple(_percent(paper[name]) for name in SHARES) if paper else ("-",) * len(SHARES)
    if row == NOT_RUN:
        return (method, *[NOT_RUN] * len(SHARES), "-", "-", "-", *published)
    shares = (_percent(row[name]["share"]) for name in SHARES)
    unclear = str(row["overall"]["unclear"])
    return (method, *shares, _interval(row["overall"]), _p(row.get("p_adjusted")), unclear, *published)


def _violated(method: str, stack: str, region: Table, identity: Table) -> tuple[str, ...]:
    row = region["violation"][method]
    floor = _percent(identity[stack]["per_case"]["share"])
    if row == NOT_RUN:
        return (stack, method, NOT_RUN, "-", "-", "-", "-", floor)
    one = row[stack]
    shares = (
        f"{_percent(one[key]['share'])} ({one[key]['hits']}/{one[key]['trials']})" for key in ("per_case", "per_valid")
    )
    of_all, of_valid = shares
    decided = str(one["decided"])
    return (stack, method, of_all, _interval(one["per_case"]), of_valid, decided, _p(one.get("p_adjusted")), floor)


def _print_published(published: Table) -> None:
    text(published["of"])
    rows = [
        (method, *(_percent(share) for share in by_stack.values()))
        for method, by_stack in published["violation"].items()
    ]
    columns = ("name", *next(iter(published["violation"].values())))
    table(columns, rows, right=columns[1:])


def _remarks(experiment: Table) -> Iterator[str]:
    for stack, row in experiment["standing"].items():
        yield f"{stack}: {row['outcome']}: {row['why']}"
    bound = experiment["bound"]
    other = f" in place of {bound['asked']}, which needs two stacks or more" if bound["asked"] != bound["kind"] else ""
    yield f"bound: {bound['kind']}{other}; {'; '.join(bound['from'])}"
    for method, why in experiment["not_run"].items():
        yield f"{method}: {why}"
    for usage in experiment["usage"]:
        yield f"{usage['task']}: {usage_line(usage)}"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100.0 * share:.1f} %"


def _interval(one: Table) -> str:
    return "-" if one["low"] is None else f"{100.0 * one['low']:.1f} … {100.0 * one['high']:.1f} %"


def _p(value: float | None) -> str:
    return "-" if value is None else f"{value:.2g}"
