# SPDX-License-Identifier: Apache-2.0
"""A trend as one self-contained page: the rate of each relation over the versions, with its interval."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jinja2

from mt_nodes.base.directories import cannot_write, write_whole
from mt_nodes.base.errors import ExitCode
from mt_nodes.base.jsonl import in_utf8
from mt_nodes.base.wording import counted
from mt_nodes.engine.summary.headline import INCONCLUSIVE, Headline
from mt_nodes.report.comparison import FAIL, NEWLY_FAILING, PASS
from mt_nodes.report.html import SYMBOLS, environment
from mt_nodes.report.picture_colours import BLUE, GREY, LIGHT_BLUE, VERMILLION
from mt_nodes.report.svg_parts import data_uri, document, number, path, ticks

_TEMPLATES = Path(__file__).parent / "templates"
#: Lines of a label below the axis; longer ones lose their beginning, because paths differ at their ends. Width of a
#: letter, and how many of them at least make a line.
_LINES, _LETTER, _LEAST_LETTERS = 3, 6.6, 7
#: The report in a version's results directory.
REPORT = "report.html"
#: Plot and the room around it, in units of the SVG.
_WIDTH, _HIGH, _LEFT, _ABOVE, _BELOW = 480, 150, 48, 8, 70
_STYLE = (
    f".between{{fill:none;stroke:{GREY}}}.failed{{stroke:{VERMILLION};stroke-width:2}}.failed.dot{{fill:{VERMILLION}}}"
    f".other{{stroke:{BLUE};stroke-width:2}}.other.dot{{fill:#fff}}"
    f"@media (prefers-color-scheme:dark){{.other{{stroke:{LIGHT_BLUE}}}.other.dot{{fill:#15181c}}}}"
)
_Place = tuple[float, float]


def write_page(file: Path, found: Mapping[str, Any]) -> None:
    """Write what :func:`mt_nodes.report.trend.versions.trend` found as HTML, plots as SVG in it; it has no script.

    Raises InfrastructureError: the file cannot be written.
    """
    shared = environment()
    loader = jinja2.ChoiceLoader([jinja2.FileSystemLoader(_TEMPLATES), *([shared.loader] if shared.loader else [])])
    labels = [version["label"] for version in found["versions"]]
    rows = [
        {**row, "plot": plot(row, labels), "loud": bool(row["changes"] or row["failing_since"])}
        for row in found["relations"]
    ]
    reports = [_link(file.parent, Path(version["path"]) / REPORT) for version in found["versions"]]
    template = shared.overlay(loader=loader).get_template("trend.html.j2")
    page = template.render(found=found, front=front(found), rows=rows, reports=reports, symbols=SYMBOLS)
    try:
        write_whole(file, page)
    except OSError as error:
        raise cannot_write(file, error) from error


def front(found: Mapping[str, Any]) -> Headline:
    """Return a trend in a sentence: what fails in the last version, and what has changed on the way there."""
    last = found["versions"][-1]["label"]
    points = {row["name"]: row["points"][-1] for row in found["relations"] if row["points"][-1]}
    fails = [name for name, point in points.items() if point["outcome"] == FAIL]
    new = [row["name"] for row in found["relations"] if row["change"] == NEWLY_FAILING]
    changes = [
        f"{row['name']} changed at {change['version']}: {100 * change['rate_before']:.1f} % before, "
        f"{100 * change['rate_after']:.1f} % since then."
        for row in found["relations"]
        for change in row["changes"]
    ]
    rest = " ".join(changes) or "No significant change of any rate."
    if fails:
        newly = f"newly: {', '.join(new)}" if new else "none of them newly"
        of = f"{len(fails)} of {counted(len(points), 'relation')}"
        return Headline(FAIL, f"{of} {'fails' if len(fails) == 1 else 'fail'} in {last} ({newly}).", rest)
    if found["exit_code"] == ExitCode.PASS and points and all(p["outcome"] == PASS for p in points.values()):
        who = f"All {len(points)} relations pass" if len(points) > 1 else "The one relation passes"
        return Headline(PASS, f"{who} in {last}.", rest)
    return Headline(INCONCLUSIVE, f"In {last}: {found['exit_why']}.", rest)


def _link(directory: Path, report: Path) -> str:
    """Return a relative link from a directory to a report; empty where there is no report."""
    if not report.is_file():
        return ""
    # Resolved: a browser goes up by names even through links, and `latest` will be another run tomorrow.
    return quote(os.fsencode(os.path.relpath(report.resolve(), directory.absolute())))


def plot(row: Mapping[str, Any], labels: Sequence[str]) -> str:
    """Return the rates of a relation over the versions (percent, 95 % intervals) as a data URI (SVG).

    A version in which the relation is FAIL has a filled square, any other an open circle; changes are dashed lines.
    """
    known = [(at, p) for at, p in enumerate(row["points"]) if p and p["rate"] is not None]
    top = 1.06 * max((100.0 * p["ci95"][1] for _, p in known), default=0.0) or 1.0
    pitch = _WIDTH / max(1, len(labels))

    def place(at: float, percent: float) -> _Place:
        return _LEFT + pitch * (at + 0.5), _ABOVE + _HIGH * (1.0 - percent / top)

    parts = [_grid_line(percent, number(place(0, percent)[1])) for percent in ticks(0.0, top, 5)]
    parts.append(f'<path class="between" d="{path([place(at, 100.0 * p["rate"]) for at, p in known])}"/>')
    for at, point in known:
        parts.append(_point(point, *(place(at, 100.0 * value) for value in (*point["ci95"], point["rate"]))))
    for change in row["changes"]:
        x = number(place(labels.index(change["version"]) - 0.5, 0.0)[0])
        parts.append(f'<path class="line" stroke-dasharray="5 4" d="M{x} {_ABOVE}V{_ABOVE + _HIGH}"/>')
    for at, label in enumerate(labels):
        parts += _label(number(place(at, 0.0)[0]), str(at + 1), _lines(label, int(pitch / _LETTER)))
    return data_uri(document(_LEFT + _WIDTH + 8, _ABOVE + _HIGH + _BELOW, parts, _STYLE))


def _grid_line(percent: float, down: str) -> str:
    line = f'<path class="grid" d="M{_LEFT} {down}H{_LEFT + _WIDTH}"/>'
    return f'{line}<text x="{_LEFT - 5}" y="{down}" dy="4" text-anchor="end">{percent:g} %</text>'


def _label(x: str, number_of_version: str, lines: Sequence[str]) -> Iterator[str]:
    """Yield the texts below a version; where there is little room, its number alone."""
    for below, line in enumerate((number_of_version, *lines)):
        kind, y = ' class="wide"' if below else "", _ABOVE + _HIGH + 16 + 13 * below
        yield f'<text{kind} x="{x}" y="{y}" text-anchor="middle">{escape(line)}</text>'


def _point(point: Mapping[str, Any], low: _Place, high: _Place, rate: _Place) -> str:
    (x, y), failed = rate, point["outcome"] == FAIL
    kind = "failed" if failed else "other"
    shape = (
        f'<rect class="{kind} dot" x="{number(x - 4.5)}" y="{number(y - 4.5)}" width="9" height="9"/>'
        if failed
        else f'<circle class="{kind} dot" cx="{number(x)}" cy="{number(y)}" r="4.5"/>'
    )
    return f'<path class="{kind}" d="M{number(x)} {number(low[1])}V{number(high[1])}"/>{shape}'


def _lines(label: str, letters: int) -> list[str]:
    """Return a label in lines of so many letters; none where these are too few to say anything."""
    shown, room = in_utf8(label), _LINES * letters
    if letters < _LEAST_LETTERS:
        return []
    shown = shown if len(shown) <= room else f"…{shown[1 - room :]}"
    return [shown[at : at + letters] for at in range(0, len(shown), letters)]
