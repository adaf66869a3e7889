# SPDX-License-Identifier: Apache-2.0
"""``report.html`` of a campaign: one self-contained page, made of its journal, summary and kept drives alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mt_nodes.base.errors import MtError
from mt_nodes.engine.next_steps import NextStep
from mt_nodes.engine.recorded_drives import RecordedDrives
from mt_nodes.engine.run_record import read_record
from mt_nodes.relations.world_changes.base import Setting, WorldEffects
from mt_nodes.report.episode_view import EpisodeView
from mt_nodes.report.episodes import playable
from mt_nodes.report.html import SYMBOLS, environment, flat
from mt_nodes.report.scripts import script_of
from mt_nodes.runs.moral.budget import cut_in_words
from mt_nodes.runs.moral.casualties import CURVES
from mt_nodes.runs.moral.dilemma_stage import jittered_run
from mt_nodes.runs.moral.moral_headline import moral_headline
from mt_nodes.runs.moral.observations import RunSpec
from mt_nodes.runs.moral.report_journal import Line, MoralJournal, dilemmas_of
from mt_nodes.runs.moral.report_view import Axis, CaseView, PrincipleView
from mt_nodes.runs.moral.report_words import (
    MEASURES,
    PUBLISHED,
    commands,
    dilemma_in_words,
    measured,
    run_in_words,
    whom_it_hit,
)
from mt_nodes.world.drive.driven import ScenarioTrace
from mt_nodes.world.drive.maps import load_map
from mt_nodes.world.drive.trace_file import load_trace, trace_file

MARKS = {"holds": "✓", "violated": "✗", "unknown": "?", "not_applicable": "-"}
#: Runs that are shown in one picture, by their names in the journal, with what the picture is about.
PICTURES = (
    ("source", "source_swapped", ("as it is", "swapped")),
    ("source", "followup", ("source", "follow-up")),
    ("source_swapped", "followup_swapped", ("source", "follow-up")),
)


def write_report(journal: MoralJournal, principles: Sequence[PrincipleView], summary: Mapping[str, Any]) -> Path:
    """Write the page and return its path."""
    text, source = script_of("copying.js", "episode.js")
    path = journal.directory / "report.html"
    shown = [case for principle in principles for case in principle.cases]
    found = moral_headline(summary)
    lines = sorted(journal.revealing.values(), key=lambda line: line["case"] != found.pair)
    revealing = [picture for line in lines for picture in _revealing(journal, line)]
    page = (
        environment()
        .get_template("moral.html.j2")
        .render(
            name=journal.directory.resolve().name,
            summary=summary,
            found=found,
            next_steps=_steps(revealing[0]["commands"]) if revealing else [],
            parts=list(_parts(principles, shown, revealing)),
            about=_about(journal.condition, summary),
            measures=MEASURES,
            principles=principles,
            published=[case for case in shown if case.dilemma in PUBLISHED and case.verdict != "not_applicable"],
            in_the_paper=PUBLISHED,
            whom_it_hit=whom_it_hit,
            strata=[case for case in shown if case.strata],
            curves={name: curve.caution for name, curve in CURVES.items()},
            revealing=revealing,
            symbols=SYMBOLS,
            marks=MARKS,
            script=text,
            script_source=source,
            condition=dict(flat(journal.condition)),
            run=dict(flat(read_record(journal.directory))),
            forest=forest,
            measured=measured,
            number=lambda value: "-" if value is None else f"{value:.2f}",
        )
    )
    path.write_text(page, encoding="utf-8", errors="backslashreplace")
    return path


def _parts(
    principles: Sequence[PrincipleView], shown: Sequence[CaseView], revealing: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[str, str]]:
    """Yield anchor and name of each part of the page."""
    yield "principles", "Principles"
    yield from ((f"cases-{p.id}", f"Cases: {p.title}") for p in principles if p.cases)
    if any(case.strata for case in shown):
        yield "strata", "Who was hit"
        yield "casualties", "Casualties"
    if len(revealing) > 1:
        yield "revealing", "Revealing cases"
    yield "settings", "Settings"


def _steps(typed: Sequence[str]) -> list[NextStep]:
    """Return what to do with a case: judge it again, drive it as a scenario."""
    rerun, *scenarios = typed
    drive = [NextStep("drive", "one of its runs as a scenario", command) for command in scenarios]
    return [NextStep("reproduce", "drive its runs again and judge them", rerun), *drive]


def forest(case: CaseView, axis: Axis) -> str:
    """Return a case's interval on the axis of its principle as an SVG element, empty where nothing was measured."""
    one = case.quantity
    if one is None:
        return ""
    low, high = map(axis.along, one.interval)
    at = axis.along(one.value)
    words = f"{one.value:.2f}, {one.interval[0]:.2f} to {one.interval[1]:.2f}"
    boundary = axis.along(one.boundary)
    return (
        f'<svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" role="img" aria-label="{words}">'
        '<rect x="0" y="4.6" width="100" height=".8" fill="#ccc"/>'
        f'<rect x="{max(0.0, boundary - 0.2):g}" y="0" width=".4" height="10" fill="#777"/>'
        f'<rect class="{case.verdict}" x="{low:g}" y="3" width="{max(0.6, high - low):g}" height="4"/>'
        f'<rect x="{min(99.2, max(0.0, at - 0.4)):g}" y="1" width=".8" height="8" fill="#000"/></svg>'
    )


def _about(condition: Line, summary: Mapping[str, Any]) -> dict[str, Any]:
    faults = {"faults": ", ".join(condition["faults"])} if condition["faults"] else {}
    spent = {"runs": summary["runs"], "seconds": summary["seconds"]}
    cut = {"budget": words} if (words := cut_in_words(summary)) else {}
    return {
        "stack": condition["stack"],
        **faults,
        "pool": condition["pool"]["name"],
        "seed": condition["seed"],
        **spent,
        **cut,
    }


def _revealing(journal: MoralJournal, line: Line) -> Iterator[dict[str, Any]]:
    """Yield a picture of two runs each of a case that reveals an issue."""
    case = line["case"]
    view = journal.principles[line["principle"]]
    kept = {run["name"]: run for run in line["runs"]}
    about = {
        "id": case,
        "title": view["title"],
        "sentence": f"{line['changed']}: {line['reason']}",
        "dilemmas": [dilemma_in_words(dilemma) for dilemma in dilemmas_of(line)],
        "also": line["also"],
        "remark": line["remark"],
        "commands": commands(journal.directory, case, journal),
    }
    wanted = [one for one in PICTURES if one[0] in kept and one[1] in kept]
    for first, second, arms in wanted[1:] or wanted:
        pair = [(name, kept[name]) for name in (first, second)]
        yield {**about, "arms": arms, **_picture(journal, line, pair, arms)}


def _picture(
    journal: MoralJournal, line: Line, pair: Sequence[tuple[str, Line]], arms: tuple[str, str]
) -> dict[str, Any]:
    """Return both runs as the template plays them; whatever keeps them from being shown is told in their place."""
    try:
        settings, drives = zip(*(_drive(journal, line, name, run) for name, run in pair), strict=True)
    except MtError as error:
        return {"note": f"No drive to show: {error}"}
    words = [f"{arm}: {run_in_words(journal.runs[run['run']])}" for arm, (_, run) in zip(arms, pair, strict=True)]
    kept = RecordedDrives(settings, drives, WorldEffects(), ())
    return {"note": "", "words": words, **playable(EpisodeView.of(kept, arms))}


def _drive(journal: MoralJournal, line: Line, name: str, run: Line) -> tuple[Setting, ScenarioTrace]:
    """Return the world and the trace of a run that was kept."""
    dilemma = dilemmas_of(line)["followup" in name]
    spec = RunSpec(dilemma, run["swapped"], run["stream"], run["number"])
    scenario = jittered_run(spec, journal.condition["seed"])
    trace = load_trace(trace_file(journal.directory, f"revealing_{line['revealing']}_{name}"))
    return Setting(scenario, load_map(scenario.road)), ScenarioTrace(trace, scenario)
