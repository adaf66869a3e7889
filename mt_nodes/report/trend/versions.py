# SPDX-License-Identifier: Apache-2.0
"""Runs as versions of one stack: the violation rate of each relation in each, and the versions at which it changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from mt_nodes.base.errors import UsageError
from mt_nodes.base.stats.intervals import ALPHA, holm
from mt_nodes.data.verdict import SCHEMA
from mt_nodes.engine.results_dirs import cells_of
from mt_nodes.engine.run_record import FILE, read_record
from mt_nodes.engine.waivers import Waiver
from mt_nodes.report.comparison import (
    COMPLETE,
    FAIL,
    SETTINGS,
    ComparedRun,
    Step,
    change_of,
    claim_steps,
    exit_of,
    setting_text,
)
from mt_nodes.report.trend.changes import Counts, best_split, further_splits

_POINT = ("outcome", "violated", "decided", "rate", "ci95")


@dataclass(frozen=True)
class Version:
    """One version: its name in the table, its directory, when its run began ("" where unknown), and its runs.

    ``runs`` has the run of each cell of a campaign by name, else one run under the name "".
    """

    label: str
    path: Path
    started: str
    runs: Mapping[str, ComparedRun]

    @classmethod
    def load(cls, path: Path, label: str = "", waivers: Sequence[Waiver] | None = None) -> Version:
        """Read a results directory, or the cells of a campaign's.

        Raises MtError: it is no results directory, or is damaged.
        """
        directories = cells_of(path) or {"": path}
        started = [str(read_record(d).get("started", "")) for d in directories.values() if (d / FILE).exists()]
        runs = {name: ComparedRun.load(directory, waivers) for name, directory in directories.items()}
        return cls(label or str(path), path, min(started, default=""), runs)


def by_date(versions: Sequence[Version]) -> list[Version]:
    """Return versions in the order in which their runs began. Raises UsageError: of a version that is not known."""
    for version in versions:
        if not version.started:
            raise UsageError(f"--by date: {version.path / FILE} has no start time; use --by given")
    return sorted(versions, key=lambda version: version.started)


def trend(versions: Sequence[Version]) -> dict[str, Any]:
    """Return the changes of every relation from version to version, and the exit code.

    The exit code is that of the last version against the one before (:func:`mt_nodes.report.comparison.exit_of`); where
    that one lacks a relation, against the last that has it. A relation has changed where the best split of the versions
    in two is significant after correction for the splits (Bonferroni) and for the relations (Holm); further changes are
    searched for on both sides.
    Raises UsageError: no relation is in two versions.
    """
    rows = [row for row in _rows(versions) if sum(point is not None for point in row["points"]) > 1]
    if not rows:
        had = "; ".join(f"{v.label} has {', '.join(_relations(v)) or '(none)'}" for v in versions)
        raise UsageError(f"nothing to compare: no relation is in two of the versions: {had}")
    _find_changes(rows, versions)
    steps = [*map(_last_step, _rows(versions)), *_claim_steps(versions)]
    code, why = exit_of(steps, _incomplete(versions[-1]), f" in {versions[-1].label}")
    return {
        "schema": SCHEMA,
        "versions": [{"label": v.label, "path": str(v.path), "started": v.started} for v in versions],
        "relations": rows,
        "notes": list(_notes(versions)),
        "exit_code": int(code),
        "exit_why": why,
    }


def _rows(versions: Sequence[Version]) -> list[dict[str, Any]]:
    return [_row(cell, name, versions) for cell, name in _named(versions)]


def _last_step(row: Mapping[str, Any]) -> Step:
    """Return the step of a relation to the last version; one that the version before lacks, too, is not missing."""
    *earlier, last = row["points"]
    known = [point for point in earlier if point]
    was = known[-1] if known and (last or earlier[-1]) else None
    return Step.of(row["name"], was, last)


def _claim_steps(versions: Sequence[Version]) -> list[Step]:
    """Return the steps of the claims of scenarios from the last version but one to the last."""
    before, after = (version.runs for version in versions[-2:])
    return [
        step for cell, run in after.items() if cell in before for step in claim_steps(before[cell].summary, run.summary)
    ]


def _incomplete(version: Version) -> str:
    """Return which runs of the last version are incomplete."""
    return "; ".join(
        f"{run.path} is incomplete: {run.summary['exit_why']}"
        for run in version.runs.values()
        if run.summary["exit_code"] not in COMPLETE
    )


def _named(versions: Sequence[Version]) -> list[tuple[str, str]]:
    """Return (cell, relation) of all versions, in their order of appearance."""
    return list(dict.fromkeys((cell, name) for v in versions for cell, run in v.runs.items() for name in _names(run)))


def _names(run: ComparedRun) -> Mapping[str, Any]:
    relations: Mapping[str, Any] = run.summary["relations"]
    return relations


def _relations(version: Version) -> list[str]:
    return [name for _, name in _named([version])]


def _row(cell: str, name: str, versions: Sequence[Version]) -> dict[str, Any]:
    points = [_point(v, cell, name) for v in versions]
    present = [(v.label, point) for v, point in zip(versions, points, strict=True) if point]
    steps = [
        {"version": label, "change": change_of(was["outcome"], now["outcome"])}
        for (_, was), (label, now) in pairwise(present)
    ]
    return {
        "cell": cell,
        "relation": name,
        "name": f"{cell}: {name}" if cell else name,
        "points": points,
        "change": steps[-1]["change"] if steps and points[-1] else None,
        "turns": [step for step in steps if step["change"] not in ("as before", "still failing")],
        "failing_since": _failing_since(present),
    }


def _point(version: Version, cell: str, name: str) -> dict[str, Any] | None:
    run = version.runs.get(cell)
    if run is None or name not in run.summary["relations"]:
        return None
    relation = run.summary["relations"][name]
    return {**{key: relation[key] for key in _POINT}, "waived": relation.get("waived")}


def _failing_since(points: Sequence[tuple[str, Mapping[str, Any]]]) -> str | None:
    """Return the version since which a relation fails; None where it does not fail in the last one."""
    since = None
    for label, point in points:
        since = (since or label) if point["outcome"] == FAIL else None
    return since


def _find_changes(rows: Sequence[dict[str, Any]], versions: Sequence[Version]) -> None:
    """Add to each row its ``test``, ``p``, ``p_adjusted`` and ``changes``."""
    tables = [_strata(row, versions) for row in rows]
    firsts = [best_split(hits, trials) for hits, trials, _ in tables]
    adjusted = iter(holm([first.p for first in firsts if first]))
    for row, first, (hits, trials, test) in zip(rows, firsts, tables, strict=True):
        row |= {"test": test, "p": first and first.p, "p_adjusted": next(adjusted) if first else None, "changes": []}
        if first and row["p_adjusted"] < ALPHA:
            found = [(first.at, row["p_adjusted"]), *further_splits(hits, trials, first.at, len(rows), ALPHA)]
            row["changes"] = _changes(sorted(found), hits, trials, versions)


def _changes(
    found: Sequence[tuple[int, float]], hits: Counts, trials: Counts, versions: Sequence[Version]
) -> list[dict[str, Any]]:
    """Return changes with the rates before and after each, up to the next ones."""
    ends = [0, *(at for at, _ in found), len(versions)]
    rates = [_rate(hits[:, start:end], trials[:, start:end]) for start, end in pairwise(ends)]
    return [
        {"version": versions[at].label, "p_adjusted": p, "rate_before": before, "rate_after": after}
        for (at, p), (before, after) in zip(found, pairwise(rates), strict=True)
    ]


def _strata(row: Mapping[str, Any], versions: Sequence[Version]) -> tuple[Counts, Counts, str]:
    """Return hits and trials (S, V): a stratum for each pair where all versions were offered the same, else one."""
    runs = [None if point is None else v.runs[row["cell"]] for v, point in zip(versions, row["points"], strict=True)]
    name = row["relation"]
    decided = [{} if run is None else run.violated[name] for run in runs]
    offered = {run.offered[name] for run in runs if run is not None}
    if len(offered) == 1 and offered != {frozenset()}:
        pairs = sorted({pair for run in decided for pair in run})
        trials = np.array([[pair in run for run in decided] for pair in pairs], dtype=np.int64)
        hits = np.array([[run.get(pair, False) for run in decided] for pair in pairs], dtype=np.int64)
        shape = (len(pairs), len(versions))
        return hits.reshape(shape), trials.reshape(shape), "exact test of each split, pair by pair"
    hits = np.array([[sum(run.values()) for run in decided]], dtype=np.int64)
    return (
        hits,
        np.array([[len(run) for run in decided]], dtype=np.int64),
        "Fisher's exact test of each split, other pairs",
    )


def _rate(hits: Counts, trials: Counts) -> float:
    """Return the share of hits; between two changes there are trials."""
    return int(hits.sum()) / int(trials.sum())


def _notes(versions: Sequence[Version]) -> Iterator[str]:
    """Yield which settings differ from version to version, and which runs are incomplete."""
    for was, now in pairwise(versions):
        for cell in (cell for cell in now.runs if cell in was.runs):
            before, after = was.runs[cell].condition, now.runs[cell].condition
            for key in (key for key in SETTINGS if before.get(key) != after.get(key)):
                where = f"{now.label}, {cell}" if cell else now.label
                yield f"{where}: {key}: {setting_text(after.get(key))}; in {was.label}: {setting_text(before.get(key))}"
    for version in versions:
        for run in version.runs.values():
            if run.summary["exit_code"] not in COMPLETE:
                yield f"{version.label}: {run.path} is incomplete: {run.summary['exit_why']}"
            yield from (f"{version.label}: {note}" for note in run.summary.get("waivers", ()))
