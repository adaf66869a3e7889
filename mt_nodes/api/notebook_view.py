# SPDX-License-Identifier: Apache-2.0
"""What a notebook shows of a result: the outcome of each relation, and the picture of the worst pair."""

from __future__ import annotations

import base64
import os
import sys
import webbrowser
from collections.abc import Iterable
from html import escape
from pathlib import Path

from mt_nodes.api.verdicts import RelationVerdict, RunOutcome
from mt_nodes.base.errors import UsageError

_COLUMNS = ("relation", "outcome", "violated", "rate", "95 % interval", "lost", "gained", "control", "sham")
_COLOURS = {"PASS": "#1a7f37", "FAIL": "#c62828"}
_UNDECIDED = "#9a6700"


def html_of(result: RunOutcome) -> str:
    """Return a table of the relations, and the worst pair in words and as a picture."""
    head = "".join(f"<th>{escape(name)}</th>" for name in _COLUMNS)
    body = "".join(map(_row, result.verdicts.values()))
    parts = [
        f"<p><b {_colour(result.outcome)}>{escape(result.outcome)}</b>: {escape(result.why)}</p>",
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>",
        *_worst(result),
        f"<p>Report: <code>{escape(str(result.report_path or result.directory))}</code></p>",
    ]
    # Paths below the notebook's directory are shown from there: shorter, and the same for everybody.
    return f"<div>{''.join(parts)}</div>".replace(escape(f"{Path.cwd()}{os.sep}"), "")


def show(result: RunOutcome) -> None:
    """Display a result in a notebook; elsewhere open its report in the browser.

    Raises:
        UsageError: it is no notebook, and there is no report.
    """
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is not None and shell.has_trait("kernel"):
        from IPython.display import HTML, display

        display(HTML(html_of(result)))
    elif result.report_path is None:
        raise UsageError(
            f"{result.directory}: there is no report to show; make one with `mt report {result.directory}`"
        )
    else:
        webbrowser.open(result.report_path.as_uri())


def _worst(result: RunOutcome) -> Iterable[str]:
    worst = result.worst
    if worst is None:
        return
    yield f"<p>Worst pair: {escape(str(worst))}</p>"
    if svg := worst.picture_svg():
        data = base64.b64encode(svg.encode()).decode()
        yield f'<img alt="source and follow-up" style="max-width:100%" src="data:image/svg+xml;base64,{data}">'
    yield f"<p><code>{escape(worst.reproduce_command)}</code></p>"


def _row(verdict: RelationVerdict) -> str:
    outcome = verdict.outcome.value
    ci95 = "" if verdict.ci95 is None else f"{100 * verdict.ci95[0]:.1f} … {100 * verdict.ci95[1]:.1f} %"
    cells = (
        f"{verdict.violated}/{verdict.decided}",
        "" if verdict.rate is None else f"{100 * verdict.rate:.1f} %",
        ci95,
        str(verdict.lost),
        str(verdict.gained),
        *(f"{arm.violated}/{arm.decided}" for arm in (verdict.control, verdict.sham)),
    )
    name = f'<td title="{escape(verdict.why)}">{escape(verdict.relation)}</td>'
    outcome_cell = f"<td><b {_colour(outcome)}>{outcome}{' (waived)' if verdict.waived else ''}</b></td>"
    return f"<tr>{name}{outcome_cell}{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"


def _colour(outcome: str) -> str:
    return f'style="color:{_COLOURS.get(outcome, _UNDECIDED)}"'
