# SPDX-License-Identifier: Apache-2.0
"""``report.html``: one self-contained page, made from the results directory of a run alone."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jinja2

from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.data.verdict import Outcome, Pair
from mt_nodes.engine.journal import read_journal
from mt_nodes.engine.pair_view import evidence_file
from mt_nodes.engine.recorded_pair import command
from mt_nodes.engine.summary.deaths import place_of
from mt_nodes.engine.summary.score_range import said_of_falls, score_warnings
from mt_nodes.engine.summary.verdict_rows import PairRow
from mt_nodes.engine.worst import PICTURED, in_turn, worst_row
from mt_nodes.report import episodes, pair_views, scripts
from mt_nodes.report.beside import beside
from mt_nodes.report.coverage.coverage import Coverage, CoverageCounter
from mt_nodes.report.coverage.coverage_view import coverage_html
from mt_nodes.report.csv_pairs import pair_rows
from mt_nodes.report.packed_pairs import arm_of, packed_pairs
from mt_nodes.report.published_tables import read_experiment, tabulate
from mt_nodes.world.drive.trace_file import FOLDER

if TYPE_CHECKING:
    from mt_nodes.report.categories import Rows

#: Violated pairs in the list without JavaScript; the script shows all.
LISTED = 200
#: In place of a pair: all judged drives.
ALL = "all"
SYMBOLS = {"PASS": "✓", "FAIL": "✗", "INCONCLUSIVE": "?", "UNSTABLE": "≈"}


class JournalContents(NamedTuple):
    """Contents of a journal: the condition line, the pairs, sorted, and their coverage."""

    condition: dict[str, Any]
    rows: list[PairRow]
    coverage: Coverage


def read_contents(
    results_dir: Path,
    lines: Iterable[Mapping[str, Any]],
    requirements: Mapping[str, Sequence[str]] | None = None,
) -> JournalContents:
    """Read the lines of a run's journal once; ``requirements`` are the user's ids by relation.

    Raises:
        InfrastructureError: a line of its ledger is damaged.
    """
    condition: dict[str, Any] = {}
    counter = CoverageCounter()

    def verdicts() -> Iterator[Mapping[str, Any]]:
        for line in counter.passing(results_dir, lines):
            if line.get("type") == "condition":
                condition.update({k: v for k, v in line.items() if k not in ("schema", "type", "crc32")})
            else:
                yield line

    rows = pair_rows(verdicts(), requirements)
    return JournalContents(condition, rows, counter.coverage)


def write_report(
    results_dir: Path, drives: Collection[str] = (), pairs: Collection[str] = (), journal: JournalContents | None = None
) -> Path:
    """Write ``report.html`` of a results directory and return its path.

    Reads ``result.jsonl``, ``summary.json``, and where they exist ``run.json``, ``ledger.jsonl``, ``experiment.json``
    (its table is made again from the summary), ``evidence/*.npz``, and for drives ``episodes/*.npz``.

    Args:
        drives: pairs of drives to show beside the worst violated ones, or ``all``.
        pairs: violated pairs to show with pictures beside the worst ones.
        journal: contents of the journal, if it was read already.

    Raises:
        MtError: the journal or the summary is missing or damaged, or there is no such pair.
    """
    summary = _json(results_dir / "summary.json")
    run_file = results_dir / "run.json"
    run = _json(run_file) if run_file.exists() else {}
    journal = journal or read_contents(results_dir, read_journal(results_dir / "result.jsonl"))
    looped = (results_dir / FOLDER).is_dir()
    violated = sorted((row for row in journal.rows if row.outcome == Outcome.VIOLATED.value), key=worst_row)
    driven = _driven(results_dir, journal.rows, violated if looped else (), frozenset(drives))
    own = [] if looped else [row for row in violated if not row.of_background]
    pictured = _merged(in_turn(own, worst_row)[:PICTURED], _rows_of(results_dir, journal.rows, frozenset(pairs)))
    views = [pair_views.shown(results_dir, row) for row in pictured]
    described = read_experiment(results_dir)
    experiment = None if described is None else tabulate(described, summary)
    path = results_dir / "report.html"
    page = (
        environment()
        .get_template("report.html.j2")
        .render(
            name=results_dir.resolve().name,
            beside=beside(results_dir),
            summary=summary,
            relations=summary["relations"],
            condition=dict(flat(journal.condition)),
            bags=_bags(journal.condition.get("bags", ())),
            run=dict(flat(run)),
            scale=_scale(summary["relations"]),
            symbols=SYMBOLS,
            experiment=experiment,
            category_figure=_category_figure(experiment["rows"]) if experiment else None,
            pictured=[{**_shown(row, results_dir), **view} for row, view in zip(pictured, views, strict=True)],
            violated=[_shown(row, results_dir) for row in violated[:LISTED]],
            violated_count=len(violated),
            # Pairs without places, such as those of commands, have no map.
            coverage=coverage_html(journal.coverage) if journal.coverage.cells else "",
            maps=len(journal.coverage.labels) * len(journal.coverage.weathers),
            drives=episodes.viewers(results_dir, driven),
            drives_left=len({row.pair for row in violated} - {line["pair"] for line in driven}) if looped else 0,
            pair_count=len(journal.rows),
            packed=packed_pairs(results_dir, journal.rows, violated) if journal.rows else "",
            scripts=scripts.of_report(drives=bool(driven), pairs=bool(journal.rows)),
        )
    )
    path.write_text(page, encoding="utf-8", errors="backslashreplace")
    return path


def _category_figure(rows: Rows) -> str:
    from mt_nodes.report.categories import figure_uri  # imports Matplotlib

    return figure_uri(rows)


@lru_cache
def environment() -> jinja2.Environment:
    """Return the templates, compiled once: that takes longer than most reports."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"percent": _percent, "interval": _interval, "p": _p, "number": "{:g}".format}
    environment.filters |= {"place": place_of, "score_warnings": score_warnings, "score_falls": said_of_falls}
    return environment


def _json(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InfrastructureError(f"{path}: cannot be read: {error}; expected a results directory of a run") from error
    if not isinstance(data, dict):
        raise InfrastructureError(f"{path}: got {type(data).__name__}, expected a mapping")
    return data


def _driven(
    results_dir: Path, rows: Sequence[PairRow], violated: Sequence[PairRow], drives: frozenset[str]
) -> list[dict[str, Any]]:
    """Return the drives to show: the worst, then the named ones."""
    named = _rows_of(results_dir, rows, drives - {ALL})
    if ALL in drives:
        named = [row for row in rows if Outcome(row.outcome).decided]
    return [_shown(row, results_dir) for row in _merged(in_turn(violated, worst_row)[: episodes.SHOWN], named)]


def _rows_of(results_dir: Path, rows: Sequence[PairRow], pairs: frozenset[str]) -> list[PairRow]:
    named = [row for row in rows if row.pair in pairs] if pairs else []
    if unknown := pairs - {row.pair for row in named}:
        raise UsageError(f"{results_dir}: no verdict of pair '{min(unknown)}'; pairs.csv lists them")
    return named


def _merged(worst: Sequence[PairRow], named: Sequence[PairRow]) -> list[PairRow]:
    return list({row.pair: row for row in (*worst, *named)}.values())


def _shown(row: PairRow, results_dir: Path) -> dict[str, Any]:
    pair = Pair.parse(row.pair)
    return {
        **row._asdict(),
        "arm": arm_of(row),
        "where": f"episode {row.episode}" + ("" if row.bundle is None else f", frame {row.bundle}"),
        "command": command(results_dir, pair),
        "evidence": evidence_file(results_dir, pair),
    }


def _bags(bags: Sequence[str]) -> str:
    """Return the bags of a run as text; a bag that was played several times only once."""
    distinct = list(dict.fromkeys(map(str, bags)))
    return ", ".join(distinct) + (f" ({len(bags)} times)" if len(distinct) == 1 < len(bags) else "")


def _scale(relations: Mapping[str, Mapping[str, Any]]) -> float:
    """Return the upper end of the common axis of rates: the next round number above every interval."""
    arms = [arm for r in relations.values() for arm in (r, r["control"], r["sham"])]
    highest = max((arm["ci95"][1] for arm in arms if arm["ci95"]), default=0.0)
    return next(step for step in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0) if step >= min(highest, 1.0))


def flat(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Turn nested settings into rows such as ``versions.numpy``."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from flat(inner, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list) and all(not isinstance(v, (list, dict)) for v in value):
        yield name, ", ".join(map(str, value)) or "(none)"
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from flat(inner, f"{name}[{i}]")
    else:
        yield name, "(none)" if value is None else str(value)


def _percent(value: float | None) -> str:
    return "not measured" if value is None else f"{100 * value:.1f} %"


def _interval(value: Sequence[float] | None) -> str:
    return "" if value is None else f"{100 * value[0]:.1f} to {100 * value[1]:.1f} %"


def _p(value: float | None) -> str:
    if value is None:
        return "not tested"
    return "p < 0.0001" if value < 1e-4 else f"p = {value:.2g}"
