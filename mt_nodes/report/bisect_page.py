# SPDX-License-Identifier: Apache-2.0
"""``report.html`` of a bisection: the first bad version, where the tests were, and what each rests on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from mt_nodes.base.directories import write_whole
from mt_nodes.base.jsonl import read_result
from mt_nodes.engine.summary.bisect_headline import FILE, certainty_words, short_name
from mt_nodes.report.html import environment
from mt_nodes.report.picture_colours import BLUE, GREY, LIGHT_BLUE, VERMILLION
from mt_nodes.report.svg_parts import data_uri, document, number

_WIDTH, _ROW, _LEFT, _ABOVE, _BELOW = 620, 22, 40, 14, 34
_STYLE = (
    f".bad{{fill:{VERMILLION}}}.good{{fill:none;stroke:{BLUE};stroke-width:2}}.skip{{stroke:{GREY};stroke-width:2}}"
    f".left{{fill:{VERMILLION};fill-opacity:.15}}@media (prefers-color-scheme:dark){{.good{{stroke:{LIGHT_BLUE}}}}}"
)


class Sentence(NamedTuple):
    """What the page begins with."""

    verdict: str
    sentence: str
    rest: str


def write_bisect_page(out: Path) -> Path:
    """Write ``report.html`` of a bisection and return its path. Raises MtError: its result is missing or damaged."""
    result = read_result(out / FILE, f"`mt bisect --resume {out}` writes it")
    verdict = "FOUND" if result["found"] else "INCONCLUSIVE"
    rows = [
        {**test, "name": short_name(result, test["version"]), "ratio": ratio_words(test["log_ratio"])}
        for test in result["tests"]
    ]
    page = (
        environment()
        .get_template("bisect.html.j2")
        .render(
            name=out.resolve().name,
            found=Sentence(verdict, result["headline"], ""),
            result=result,
            rows=rows,
            first=result["about"][result["first_bad"][0]] if result["found"] else {},
            picture=tests_picture(result) if rows else "",
            certainty=certainty_words(result),
        )
    )
    write_whole(out / "report.html", page)
    return out / "report.html"


def ratio_words(log_ratio: float) -> str:
    """Return a likelihood ratio of bad to good in words, such as ``2,400 : 1 for bad``."""
    if not log_ratio:
        return ""
    ratio = math.exp(min(abs(log_ratio), 700.0))
    return f"{f'{ratio:,.0f}' if ratio < 1e7 else f'{ratio:.0e}'} : 1 for {'bad' if log_ratio > 0 else 'good'}"


def tests_picture(result: Mapping[str, Any]) -> str:
    """Return which versions were tested as a data URI: older ones left, the first test on top."""
    height = _ABOVE + _ROW * len(result["tests"]) + _BELOW
    return data_uri(document(_LEFT + _WIDTH + 40, height, _marks(result), _STYLE))


def _marks(result: Mapping[str, Any]) -> Iterator[str]:
    below = _ABOVE + _ROW * len(result["tests"])
    last = result["between"] + 1

    def across(version: str) -> float:
        return float(_LEFT + _WIDTH * result["places"][version] / last)

    yield f'<rect class="grid" x="{_LEFT}" y="{_ABOVE}" width="{_WIDTH}" height="{below - _ABOVE}"/>'
    if result["first_bad"]:
        ends = [across(version) for version in (result["first_bad"][0], result["first_bad"][-1])]
        left, width = ends[0] - 5, ends[1] - ends[0] + 10
        yield f'<rect class="left" x="{number(left)}" y="{_ABOVE}" width="{number(width)}" height="{below - _ABOVE}"/>'
    for row, test in enumerate(result["tests"]):
        x, y = across(test["version"]), _ABOVE + _ROW * (row + 0.5)
        title = f"<title>{test['version'][:12]}: {test['state']}</title>"
        yield f'<text x="{_LEFT - 8}" y="{number(y + 4)}" text-anchor="end">{row + 1}</text>'
        yield _mark(test["state"], x, y, title)
    yield f'<text x="{_LEFT}" y="{below + 16}">good</text>'
    yield f'<text x="{_LEFT + _WIDTH}" y="{below + 16}" text-anchor="end">bad</text>'
    middle = f"{result['between']} versions between"
    yield f'<text x="{_LEFT + _WIDTH / 2}" y="{below + 16}" text-anchor="middle">{middle}</text>'


def _mark(state: str, x: float, y: float, title: str) -> str:
    if state == "bad":
        return f'<rect class="bad" x="{number(x - 5)}" y="{number(y - 5)}" width="10" height="10">{title}</rect>'
    if state == "good":
        return f'<circle class="good" cx="{number(x)}" cy="{number(y)}" r="5">{title}</circle>'
    cross = f"M{number(x - 5)} {number(y - 5)}l10 10m0 -10l-10 10"
    return f'<path class="skip" d="{cross}">{title}</path>'
