# SPDX-License-Identifier: Apache-2.0
"""The experiment of Z. Q. Zhou and L. Sun, *Metamorphic Testing of Driverless Cars*, CACM 62(3), 2019, on any drive.

Their question: how often does a stack report fewer obstacles inside the region, |O| > |O′|, if n noise points are
added outside of it? Here it is a replay of one relation for each n; this module makes the relations before it, and
the table after it, from ``summary.json`` alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mt_nodes.base import resources
from mt_nodes.base.errors import UsageError
from mt_nodes.base.jsonl import read_result, write_result
from mt_nodes.base.stats.intervals import sign_test_p, wilson_interval
from mt_nodes.base.yaml_files import read_text
from mt_nodes.relations.relation import load_relation

NAME = "noise-outside-roi"
FILE = "experiment.json"
#: Placeholder for the number of noise points in a configuration, which is a relation file.
PLACE = "{n}"
MOST_POINTS = 1_000_000
#: n -> pairs with |O| > |O′|, |O| = |O′|, |O| < |O′|, as published: 1,000 pairs for each n.
PUBLISHED: dict[int, tuple[int, int, int]] = {10: (27, 951, 22), 100: (121, 781, 98), 1000: (335, 533, 132)}
OVERALL = "all"
CATEGORIES = (OVERALL, "car", "pedestrian", "cyclist", "unknown")
SIGNS = (">", "=", "<")

Table = dict[str, Any]


def draws_needed(pairs: int, frames: int) -> int:
    """Return how often each frame must be used so that ``frames`` frames give at least ``pairs`` pairs.

    Raises UsageError: there is no frame.
    """
    if frames < 1:
        raise UsageError("the bags have no frame of the leading sensor")
    return -(-pairs // frames)


def write_relations(config: str, points: Sequence[int], directory: Path) -> tuple[str, ...]:
    """Write one relation file for each number of noise points, and return their paths.

    ``config``: name of a shipped configuration, or a relation file with ``{n}`` in it. ``points``: numbers of noise
    points, each once. ``directory``: for the files; may be new.
    Raises UsageError: no such configuration, no ``{n}`` in it, it is no relation, or a number that is no number of
    points.
    """
    path = resources.find("experiments", config)
    text = read_text(path)
    if PLACE not in text:
        raise UsageError(f"{path}: got no {PLACE}, expected it in place of the number of noise points")
    if not points or len(set(points)) < len(points) or not all(1 <= n <= MOST_POINTS for n in points):
        given = ",".join(map(str, points))
        raise UsageError(f"--n: got '{given}', expected different whole numbers from 1 to {MOST_POINTS:,}")
    directory.mkdir(parents=True, exist_ok=True)
    files = [directory / f"{path.stem}_{n}.yaml" for n in points]
    for n, file in zip(points, files, strict=True):
        file.write_text(text.replace(PLACE, str(n)), encoding="utf-8")
        try:
            load_relation(str(file))
        except UsageError as error:
            # The user's file is another one than the file that is read.
            raise UsageError(str(error).replace(str(file), f"{path} with {PLACE} = {n}")) from error
    return tuple(map(str, files))


def describe(config: str, pairs: int, draws: int, relations: Mapping[int, str]) -> Table:
    """Return ``experiment.json`` as it is before the run: its settings; ``relations`` names that of each n."""
    return {
        "schema": 1,
        "experiment": NAME,
        "config": config,
        "pairs_wanted": pairs,
        "draws": draws,
        "relations": {str(n): name for n, name in relations.items()},
    }


def tabulate(experiment: Mapping[str, Any], summary: Mapping[str, Any]) -> Table:
    """Return the whole ``experiment.json``: the settings, and a row of results for each n."""
    named = summary["relations"]
    rows = [_row(int(n), name, named[name]) for n, name in experiment["relations"].items() if name in named]
    return {**{k: v for k, v in experiment.items() if k != "rows"}, "rows": rows}


def read_experiment(directory: Path) -> Table | None:
    """Return the ``experiment.json`` of a results directory; None if it has none."""
    path = directory / FILE
    if not path.is_file():
        return None
    return read_result(path)


def write_experiment(directory: Path, table: Table) -> None:
    """Write ``experiment.json``."""
    write_result(directory / FILE, table)


def categories(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the categories of a table: all, the paper's, then other classes of the stack."""
    counted = {name for row in rows for name in row["counts"]}
    return [c for c in CATEGORIES if c in counted] + sorted(counted - set(CATEGORIES))


def _row(n: int, name: str, relation: Mapping[str, Any]) -> Table:
    arms = {arm: _arm(relation[arm]) for arm in ("control", "sham")}
    head = {"n": n, "relation": name, "outcome": relation["outcome"], "why": relation["why"]}
    return {**head, **_arm(relation), **arms, "published": _published(n)}


def _arm(arm: Mapping[str, Any]) -> Table:
    columns = ("decided", "violated", "rate", "ci95", "ci95_method", "frames", "drives", "pairs_lost", "pairs_gained")
    counts = {c: {s: cells[s] for s in SIGNS} for c, cells in arm["counts"].items()}
    return {**{k: arm[k] for k in columns}, "p_sign": arm["p_counts"], "counts": counts}


def _published(n: int) -> Table | None:
    if n not in PUBLISHED:
        return None
    fewer, equal, more = PUBLISHED[n]
    pairs = sum(PUBLISHED[n])
    return {
        "decided": pairs,
        "rate": fewer / pairs,
        "ci95": wilson_interval(fewer, pairs),
        "p_sign": sign_test_p(fewer, more),
        "counts": {OVERALL: dict(zip(SIGNS, (fewer, equal, more), strict=True))},
    }
