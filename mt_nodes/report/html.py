# SPDX-License-Identifier: Apache-2.0
"""``report.html``: one self-contained page, made from what a run left on disk and nothing else."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import jinja2

from mt_nodes.drive.trace_file import FOLDER
from mt_nodes.errors import InfrastructureError, UsageError
from mt_nodes.experiment import read_experiment, tabulate
from mt_nodes.finished import command
from mt_nodes.journal import read_journal
from mt_nodes.relations import CONTROL, LOOP_SHAM, SHAMS
from mt_nodes.report import birdseye, camera_view, episodes
from mt_nodes.report.categories import figure_uri
from mt_nodes.report.series_view import draw_stretches
from mt_nodes.report.undecided import Undecided
from mt_nodes.report.view import evidence_file, load_view
from mt_nodes.report.worst import PICTURED, in_turn, worst_first
from mt_nodes.verdict import Outcome, Pair

#: Violated pairs in the list; the rest is in ``pairs.csv``.
LISTED = 200
#: In place of a pair: all drives that were judged.
ALL = "all"
SYMBOLS = {"PASS": "✓", "FAIL": "✗", "INCONCLUSIVE": "?", "UNSTABLE": "≈"}


def write_report(results_dir: Path, drives: Collection[str] = ()) -> Path:
    """Make ``report.html`` of a results directory anew and return its path.

    Reads ``result.jsonl``, ``summary.json``, and where they are there ``run.json``, ``experiment.json`` (what was
    asked; its table is made anew from the summary), ``evidence/*.npz``, and of drives ``ledger.jsonl`` and
    ``episodes/*.npz``.

    Args:
        drives: pairs of drives that are shown beside the worst violated ones, or ``all``.

    Raises:
        MtError: the journal or the summary is missing or damaged, or there is no such pair.
    """
    summary = _json(results_dir / "summary.json")
    run_file = results_dir / "run.json"
    run = _json(run_file) if run_file.exists() else {}
    looped = (results_dir / FOLDER).is_dir()
    condition, violated, asked_for, undecided = _from_journal(results_dir, frozenset(drives))
    own = [v for v in violated if v["arm"] == "relation" and not looped]
    driven = _driven(violated if looped else (), asked_for)
    script, script_source = episodes.script()
    asked = read_experiment(results_dir)
    experiment = None if asked is None else tabulate(asked, summary)
    path = results_dir / "report.html"
    page = (
        environment()
        .get_template("report.html.j2")
        .render(
            name=results_dir.resolve().name,
            summary=summary,
            relations=summary["relations"],
            condition=dict(flat(condition)),
            run=dict(flat(run)),
            scale=_scale(summary["relations"]),
            symbols=SYMBOLS,
            experiment=experiment,
            category_figure=figure_uri(experiment["rows"]) if experiment else None,
            pictured=[{**v, **_pictures(v["evidence"])} for v in in_turn(own)[:PICTURED]],
            violated=violated[:LISTED],
            violated_count=len(violated),
            undecided=undecided,
            drives=episodes.viewers(results_dir, driven),
            script=script,
            script_source=script_source,
            drives_left=len({v["pair"] for v in violated} - {v["pair"] for v in driven}) if looped else 0,
        )
    )
    path.write_text(page, encoding="utf-8")
    return path


@lru_cache
def environment() -> jinja2.Environment:
    """Templates are compiled once: that takes longer than most reports."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"percent": _percent, "interval": _interval, "p": _p, "number": "{:g}".format}
    return environment


def _json(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InfrastructureError(f"{path}: cannot be read: {error}; expected a results directory of a run") from error
    if not isinstance(data, dict):
        raise InfrastructureError(f"{path}: got {type(data).__name__}, expected a mapping")
    return data


def _from_journal(
    results_dir: Path, drives: frozenset[str]
) -> tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]], dict[str, list[dict[str, Any]]]]:
    """Return what the journal says of the run, the violated pairs, worst first, the drives that are asked for, and why
    pairs were not decided.

    One pass, little is kept.
    """
    condition: dict[str, Any] = {}
    violated, asked_for = [], []
    undecided = Undecided()
    for line in read_journal(results_dir / "result.jsonl"):
        if line.get("type") == "condition":
            condition |= {k: v for k, v in line.items() if k not in ("schema", "type", "crc32")}
        elif line.get("outcome") == Outcome.VIOLATED.value:
            violated.append(_violation(line, results_dir))
        elif "outcome" in line:
            undecided.count(line)
        if "outcome" in line and (line["pair"] in drives or (ALL in drives and Outcome(line["outcome"]).decided)):
            asked_for.append(_violation(line, results_dir))
    if unknown := drives - {ALL} - {line["pair"] for line in asked_for}:
        raise UsageError(f"{results_dir}: no verdict of pair '{min(unknown)}'; pairs.csv lists them")
    return condition, sorted(violated, key=worst_first), asked_for, undecided.most_common()


def _driven(violated: Sequence[dict[str, Any]], asked_for: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the drives that are shown: the worst, then those that are asked for."""
    worst = in_turn(violated)[: episodes.SHOWN]
    return list({line["pair"]: line for line in (*worst, *asked_for)}.values())


def _violation(line: Mapping[str, Any], results_dir: Path) -> dict[str, Any]:
    pair = Pair.parse(line["pair"])
    return {
        **line,
        "arm": {CONTROL: "control", **dict.fromkeys((*SHAMS, LOOP_SHAM), "sham")}[pair.relation]
        if "@" in pair.draw
        else "relation",
        "where": f"episode {pair.episode}" + ("" if pair.bundle is None else f", frame {pair.bundle}"),
        "command": command(results_dir, pair),
        "evidence": evidence_file(results_dir, pair),
    }


def _pictures(evidence: Path) -> dict[str, Any]:
    """Damaged evidence must not cost the whole report: the page says what is wrong in the picture's place."""
    nothing = {"views": [], "added": 0, "series": None}
    table = evidence.with_suffix(".csv")
    if table.exists():
        try:
            return {**nothing, "series": draw_stretches(table), "note": ""}
        except InfrastructureError as error:
            return {**nothing, "note": f"No picture: {error}"}
    if not evidence.exists():
        return {**nothing, "note": f"No picture: {evidence.parent.name}/{evidence.name} is not there."}
    try:
        view = load_view(evidence)
    except InfrastructureError as error:
        return {**nothing, "note": f"No picture: {error}"}
    seen = [camera_view.draw(view)] if len(view.source_image) else []
    if len(view.source_xyz) or not seen:
        seen.append(birdseye.draw(view))
    return {**nothing, "views": seen, "added": len(view.added_xyz), "note": ""}


def _scale(relations: Mapping[str, Mapping[str, Any]]) -> float:
    """Upper end of the axis that all rates share: the next round number above every interval."""
    arms = [arm for r in relations.values() for arm in (r, r["control"], r["sham"])]
    highest = max((arm["ci95"][1] for arm in arms if arm["ci95"]), default=0.0)
    return next(step for step in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0) if step >= min(highest, 1.0))


def flat(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Turn nested settings into rows such as ``versions.numpy``: page readers know no JSON."""
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
