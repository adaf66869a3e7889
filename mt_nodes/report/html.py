# SPDX-License-Identifier: Apache-2.0
"""``report.html``: one self-contained page, made from the results directory of a run alone."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
from jinja2.bccache import Bucket

from mt_nodes.base.directories import cache_dir, write_whole
from mt_nodes.base.errors import MtError, UsageError
from mt_nodes.base.jsonl import read_result
from mt_nodes.base.wording import counted
from mt_nodes.data.verdict import Outcome, Pair
from mt_nodes.engine.evidence import evidence_name
from mt_nodes.engine.finish import read_summary
from mt_nodes.engine.next_steps import next_steps
from mt_nodes.engine.pair_view import evidence_file
from mt_nodes.engine.recorded_pair import command
from mt_nodes.engine.summary.deaths import place_of
from mt_nodes.engine.summary.explored import explored_words, kind_words
from mt_nodes.engine.summary.headline import Headline, headline
from mt_nodes.engine.summary.oracle_sums import oracle_lines
from mt_nodes.engine.summary.score_range import describe_score_drops, score_warnings
from mt_nodes.engine.summary.shrunk_headline import FILE as SHRUNK_FILE
from mt_nodes.engine.summary.shrunk_headline import shrunk_headline
from mt_nodes.engine.summary.verdict_rows import PairRow
from mt_nodes.engine.worst import PICTURED, in_turn, worst_row
from mt_nodes.report import episodes, pair_views, scripts
from mt_nodes.report.beside import beside
from mt_nodes.report.blame_svg import blames_html
from mt_nodes.report.coverage.coverage_view import coverage_html
from mt_nodes.report.coverage.discovery_curve import discovery_curve
from mt_nodes.report.journal_contents import JournalContents, read_contents
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


def write_report(
    results_dir: Path, drives: Collection[str] = (), pairs: Collection[str] = (), journal: JournalContents | None = None
) -> Path:
    """Write ``report.html`` of a results directory and return its path.

    Reads ``result.jsonl``, ``summary.json``, and where they exist ``run.json``, ``ledger.jsonl``, ``experiment.json``
    (its table is made again from the summary), ``evidence/*.npz``, and for drives ``episodes/*.npz``.
    Raises MtError: the journal or the summary is missing or damaged, or there is no such pair.
    ``drives``: pairs of drives to show beside the worst violated ones, or ``all``. ``pairs``: violated pairs to show
    with pictures beside the worst ones. ``journal``: contents of the journal, if it was read already.
    """
    summary = read_summary(results_dir)
    run_file = results_dir / "run.json"
    run = read_result(run_file) if run_file.exists() else {}
    journal = journal or read_contents(results_dir)
    looped = (results_dir / FOLDER).is_dir()
    violated = sorted((row for row in journal.rows if row.outcome == Outcome.VIOLATED.value), key=worst_row)
    shrunk = read_result(results_dir / SHRUNK_FILE) if (results_dir / SHRUNK_FILE).is_file() else None
    found = _headline(summary, shrunk)
    driven = _driven(results_dir, journal.rows, violated if looped else (), frozenset(drives))
    worst = found.pair or next((row.pair for row in violated if row.judged_for == found.relation), "")
    shown = [] if looped else _pictured(results_dir, journal.rows, violated, worst, frozenset(pairs))
    described = read_experiment(results_dir)
    experiment = None if described is None else tabulate(described, summary)
    viewers = episodes.viewers(results_dir, driven)
    front = next((drive for drive in viewers if drive["pair"] == worst), None)
    context = {
        "name": results_dir.resolve().name,
        "found": found,
        "next_steps": next_steps(results_dir, replace(found, pair=worst)) if front or shown or not worst else [],
        "front_drive": front,
        "beside": beside(results_dir),
        "summary": summary,
        "relations": _worst_first(summary["relations"], found.relation),
        "looped": looped,
        "shrunk": shrunk,
        "blames": blames_html(results_dir),
        "condition": dict(flat(journal.condition)),
        "bags": _bags(journal.condition.get("bags", ())),
        "run": dict(flat(run)),
        "scale": _scale(summary["relations"]),
        "symbols": SYMBOLS,
        "experiment": experiment,
        "category_figure": _category_figure(experiment["rows"]) if experiment else None,
        "pictured": [{**_shown(row, results_dir), **pair_views.shown(results_dir, row.pair)} for row in shown],
        "violated": [_shown(row, results_dir) for row in violated[:LISTED]],
        "violated_count": len(violated),
        # Pairs without places, such as those of commands, have no map.
        "coverage": coverage_html(journal.coverage) if journal.coverage.cells else "",
        "maps": len(journal.coverage.labels) * len(journal.coverage.weathers),
        "drives": viewers,
        "drives_open": _first_of_each([front] if front else [], viewers),
        "drives_left": len({row.pair for row in violated} - {line["pair"] for line in driven}) if looped else 0,
        "pair_count": len(journal.rows),
        "packed": packed_pairs(results_dir, journal.rows, violated) if journal.rows else "",
        "scripts": scripts.of_report(drives=bool(driven), pairs=bool(journal.rows)),
        "counted": counted,
        "oracle_lines": oracle_lines,
        "explored": _explored(summary.get("explored")),
    }
    path = results_dir / "report.html"
    page = environment().get_template("report.html.j2").render(**context, parts=list(_parts(context)))
    path.write_text(page, encoding="utf-8", errors="backslashreplace")
    return path


def _headline(summary: Mapping[str, Any], shrunk: Mapping[str, Any] | None) -> Headline:
    """Return what the page begins with; that of a shrinking is what became of its pair."""
    found = headline(summary)
    return found if shrunk is None else replace(shrunk_headline(shrunk), relation=found.relation, pair=found.pair)


def _explored(found: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return what the page tells of an exploration: a sentence, how many kinds were known when, and all kinds."""
    if found is None:
        return None
    rows = [{**kind, "what": kind_words(kind)} for kind in found["kinds"]]
    return {"words": explored_words(found), "curve": discovery_curve(found) if rows else "", "kinds": rows}


def _worst_first(relations: Mapping[str, Any], first: str) -> dict[str, Any]:
    """Return the relations by their outcomes, that of the headline first."""
    order = ("FAIL", "UNSTABLE", "INCONCLUSIVE", "PASS")
    return dict(sorted(relations.items(), key=lambda named: (named[0] != first, order.index(named[1]["outcome"]))))


def _parts(context: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield anchor and name of each part that the page has."""
    yield ("shrunk", "Reduction") if context["shrunk"] else ("relations", "Relations")
    if context["summary"].get("claims"):
        yield "claims", "Claims"
    if context["explored"]:
        yield "explored", "Kinds found"
    if not context["front_drive"] and len(context["pictured"]) > 1:
        yield "more", "More violations"
    if context["blames"]:
        yield "blame", "Blame"
    if context["drives"]:
        yield "drives", "Drives"
    if context["packed"]:
        yield "pairs", "All pairs"
    if any("ground_truth" in relation for relation in context["relations"].values()):
        yield "ground-truth", "Ground truth"
    yield "statistics", "Statistics"
    if context["coverage"]:
        yield "coverage", "Coverage"
    yield "settings", "Settings"


def _first_of_each(shown: Sequence[Mapping[str, Any]], drives: Sequence[Mapping[str, Any]]) -> set[str]:
    """Return the pairs of the drives that are unfolded: the first of each relation that none is shown of yet."""
    relations = {drive["judged_for"] for drive in shown}
    first: set[str] = set()
    for drive in drives:
        if drive["arm"] == "relation" and drive["judged_for"] not in relations:
            relations.add(drive["judged_for"])
            first.add(drive["pair"])
    return first


def _pictured(
    results_dir: Path, rows: Sequence[PairRow], violated: Sequence[PairRow], front: str, pairs: frozenset[str]
) -> list[PairRow]:
    """Return the pairs to show with pictures: that of the headline, the worst others, then the named ones."""
    own = [row for row in violated if not row.of_background]
    first = [row for row in own if row.pair == front]
    if first and (results_dir / "evidence" / evidence_name(Pair.parse(front))).is_file():
        from mt_nodes.report.evidence_view import write_views  # imports readers of messages

        with suppress(MtError):  # the page says what is missing
            write_views(results_dir, [front])
    worst = _merged(first, in_turn(own, worst_row)[:PICTURED])[:PICTURED]
    return _merged(worst, _rows_of(results_dir, rows, pairs))


def _category_figure(rows: Rows) -> str:
    from mt_nodes.report.categories import figure_uri  # imports Matplotlib

    return figure_uri(rows)


class _CompiledTemplates(jinja2.BytecodeCache):
    """Compiled templates in the user's cache; where that cannot be read or written, they are compiled again.

    Jinja2 compares the checksum of the source, and the versions of Python and of its own bytecode.
    """

    def load_bytecode(self, bucket: Bucket) -> None:
        """Read a template."""
        with suppress(OSError), self._file(bucket).open("rb") as file:
            bucket.load_bytecode(file)

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Write a template, whole or not at all."""
        with suppress(OSError):
            self._file(bucket).parent.mkdir(parents=True, exist_ok=True)
            write_whole(self._file(bucket), bucket.bytecode_to_string())

    @staticmethod
    def _file(bucket: Bucket) -> Path:
        return cache_dir() / "templates" / f"{bucket.key}.jinja"


@lru_cache
def environment() -> jinja2.Environment:
    """Return the templates, compiled once a machine and user: that takes longer than most reports."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        bytecode_cache=_CompiledTemplates(),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"percent": _percent, "interval": _interval, "p": _p, "number": "{:g}".format}
    environment.filters |= {"place": place_of, "score_warnings": score_warnings, "score_falls": describe_score_drops}
    return environment


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
