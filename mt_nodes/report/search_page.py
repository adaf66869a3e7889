# SPDX-License-Identifier: Apache-2.0
"""``report.html`` of a search: what was found, its picture, and where the trials were; made from its results alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mt_nodes.base.directories import write_whole
from mt_nodes.base.jsonl import read_result
from mt_nodes.base.wording import counted
from mt_nodes.data.verdict import Outcome
from mt_nodes.engine.journal import read_journal
from mt_nodes.engine.next_steps import NextStep, pair_steps
from mt_nodes.engine.summary.search_headline import search_headline
from mt_nodes.report import pair_views
from mt_nodes.report.html import environment
from mt_nodes.report.picture_colours import BLUE, GREY, LIGHT_BLUE, VERMILLION
from mt_nodes.report.svg_parts import data_uri, document, number

#: The page, and the journal of the trials, in the results directory.
FILE, TRIALS = "report.html", "search.jsonl"
Line = Mapping[str, Any]
#: A plot in units of the SVG: width, height of a trial, room beside and above.
_WIDTH, _ROW, _LEFT, _ABOVE, _BELOW = 470, 9, 36, 8, 34
_STYLE = (
    f".violated{{fill:{VERMILLION}}}.holds{{fill:none;stroke:{BLUE};stroke-width:1.6}}.other{{fill:{GREY}}}"
    f"@media (prefers-color-scheme:dark){{.holds{{stroke:{LIGHT_BLUE}}}}}"
)


def write_search_page(out: Path) -> Path:
    """Write ``report.html`` of a search and return its path.

    Reads ``summary.json`` and ``search.jsonl``, and the evidence of the replay of what was found.
    Raises MtError: one of them is missing or damaged.
    """
    summary = _summary(out)
    lines = read_journal(out / TRIALS) if (out / TRIALS).is_file() else ()  # nothing was tried
    trials = [line for line in lines if line.get("type") == "trial"]
    found, found_at = search_headline(summary), summary["found"]
    page = (
        environment()
        .get_template("search.html.j2")
        .render(
            name=out.resolve().name,
            found=found,
            summary=summary,
            trials=trials,
            plots=[(axis, trials_plot(axis, trials, found_at)) for axis in summary["axes"]] if trials else [],
            pictured=_picture(out, found_at),
            next_steps=_steps(out, found_at),
            counted=counted,
        )
    )
    write_whole(out / FILE, page)
    return out / FILE


def trials_plot(axis: Line, trials: Sequence[Line], found: Line | None) -> str:
    """Return where the trials were on the range of a parameter as a data URI: weak end left, first trial on top."""
    height = _ABOVE + _ROW * len(trials) + _BELOW
    return data_uri(document(_LEFT + _WIDTH + 10, height, _marks(axis, trials, found), _STYLE))


def _marks(axis: Line, trials: Sequence[Line], found: Line | None) -> Iterator[str]:
    names = list(trials[0]["values"])
    at, below = names.index(axis["name"]), _ABOVE + _ROW * len(trials)
    yield f'<rect class="grid" x="{_LEFT}" y="{_ABOVE - 4}" width="{_WIDTH}" height="{below - _ABOVE + 4}"/>'
    if found is not None:
        yield f'<path class="line" stroke-dasharray="4 3" d="M{number(_across(found, at))} {_ABOVE - 4}V{below}"/>'
    for row, trial in enumerate(trials):
        left, y = _across(trial, at), _ABOVE + _ROW * (row + 0.3)
        kind = {Outcome.VIOLATED.value: "violated", Outcome.HOLDS.value: "holds"}.get(trial["outcome"], "other")
        title = f"<title>trial {trial['number']}: {trial['values'][axis['name']]:.6g}, {trial['outcome']}</title>"
        if kind == "violated":
            yield f'<rect class="{kind}" x="{number(left - 3)}" y="{number(y - 3)}" width="6" height="6">{title}</rect>'
        else:
            yield f'<circle class="{kind}" cx="{number(left)}" cy="{number(y)}" r="3">{title}</circle>'
    unit = f" {axis['unit']}" if axis["unit"] else ""
    yield f'<text x="{_LEFT}" y="{below + 16}">{axis["weak"]:.6g}{unit}</text>'
    yield f'<text x="{_LEFT + _WIDTH}" y="{below + 16}" text-anchor="end">{axis["strong"]:.6g}{unit}</text>'
    if found is not None:
        value, x = f"{found['values'][axis['name']]:.6g}{unit}", number(_across(found, at))
        yield f'<text class="halo" x="{x}" y="{below + 29}" text-anchor="middle">{value}</text>'
    yield f'<text x="{_LEFT - 5}" y="{_ABOVE + 6}" text-anchor="end">1</text>'
    yield f'<text x="{_LEFT - 5}" y="{below}" text-anchor="end">{len(trials)}</text>'


def _across(trial: Line, axis: int) -> float:
    return float(_LEFT + 6 + (_WIDTH - 12) * trial["fractions"][axis])


def _picture(out: Path, found: Line | None) -> dict[str, Any] | None:
    if found is None:
        return None
    shown = pair_views.shown(out / found["results"], found["pair"], turning=False)
    return {"pair": found["pair"], "lost": 0, "gained": 0, **shown}


def _steps(out: Path, found: Line | None) -> list[NextStep]:
    return [] if found is None else pair_steps(out / found["results"], found["pair"], {"bags": ()})


def _summary(out: Path) -> dict[str, Any]:
    return read_result(out / "summary.json", f"`mt search --resume {out}` writes it")
