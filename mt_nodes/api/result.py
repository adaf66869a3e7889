# SPDX-License-Identifier: Apache-2.0
"""The results of a run, for Python and for notebooks: how each relation ended, every pair, the worst one."""

from __future__ import annotations

import base64
import importlib.util
import os
import sys
import webbrowser
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any, NoReturn

from mt_nodes.api.verdict_places import places_of
from mt_nodes.api.verdicts import NO_TRUTH, RelationVerdict, RunOutcome, ViolatedPair
from mt_nodes.base.errors import ExitCode, UsageError
from mt_nodes.data.verdict import Outcome, RelationOutcome
from mt_nodes.engine.journal import read_journal
from mt_nodes.engine.summary.verdict_rows import PairRow
from mt_nodes.engine.worst import worst_row

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


def failure_text(result: RunOutcome) -> str:
    """Return why a result is no PASS; empty if it is one."""
    failed = [verdict for verdict in result.verdicts.values() if not _passed(verdict)]
    if result.exit_code is ExitCode.PASS and result.verdicts and not failed:
        return ""
    return "\n".join(_lines(result, failed))


def _passed(verdict: RelationVerdict) -> bool:
    return verdict.decided > 0 and (verdict.outcome is RelationOutcome.PASS or verdict.waived)


def _lines(result: RunOutcome, failed: list[RelationVerdict]) -> Iterator[str]:
    yield f"{result.outcome} (exit code {int(result.exit_code)}): {result.why}"
    for verdict in failed:
        yield f"  {verdict}"
    if not result.verdicts:
        yield "  no relation was judged"
    if failed and (worst := result.worst) is not None:
        yield f"  worst pair: {worst}"
        if picture := worst.picture:
            yield f"  picture: {picture}"
        yield f"  reproduce: {worst.reproduce_command}"
    yield f"  {'report' if result.report_path else 'results'}: {result.report_path or result.directory.resolve()}"


@dataclass(frozen=True, eq=False)
class Result:
    """What a run came to. It has no truth value: compare :attr:`outcome`, or call :meth:`assert_holds`.

    Attributes:
        directory: results directory, which ``mt show``, ``mt report``, ``mt compare`` and :func:`mt_nodes.load` take.
        summary: contents of its ``summary.json``.
    """

    directory: Path
    summary: Mapping[str, Any]

    def __bool__(self) -> NoReturn:
        raise TypeError(NO_TRUTH.format("Result", 'such as result.outcome == "PASS", or call result.assert_holds()'))

    @property
    def exit_code(self) -> ExitCode:
        """Exit code of the command line for this run."""
        return ExitCode(self.summary["exit_code"])

    @property
    def outcome(self) -> str:
        """Outcome of the whole run.

        PASS if every relation is PASS or its FAIL is waived, FAIL if one is FAIL, UNDECIDED if one is INCONCLUSIVE or
        UNSTABLE; INFRASTRUCTURE, ISOLATION, INTERRUPTED or USAGE if the run did not go as it should.
        """
        return self.exit_code.name

    @property
    def why(self) -> str:
        """The reason for the outcome, for people."""
        return str(self.summary["exit_why"])

    @cached_property
    def verdicts(self) -> dict[str, RelationVerdict]:
        """How each relation ended, by its id."""
        return {name: RelationVerdict.of(name, plain) for name, plain in self.summary["relations"].items()}

    @cached_property
    def pairs(self) -> list[PairRow]:
        """Every pair of the run, control and sham included, sorted."""
        from mt_nodes.report.csv_pairs import pair_rows

        requirements = {name: plain.get("requirement", ()) for name, plain in self.summary["relations"].items()}
        return pair_rows(read_journal(self.directory / "result.jsonl"), requirements)

    def rows(self) -> Any:
        """Return :attr:`pairs` as a ``pandas.DataFrame`` where pandas is installed, otherwise as they are."""
        if importlib.util.find_spec("pandas") is None:
            return self.pairs
        import pandas

        return pandas.DataFrame.from_records(self.pairs, columns=PairRow._fields).drop(columns="commanded")

    @cached_property
    def worst(self) -> ViolatedPair | None:
        """The pair with most lost objects, then with the largest violation; None if no pair is violated."""
        violated = [row for row in self.pairs if row.outcome == Outcome.VIOLATED.value]
        return self.violated_pair(min(violated, key=worst_row).pair) if violated else None

    def violated_pair(self, pair: str) -> ViolatedPair:
        """Return what is known of a violated pair, by its id in :attr:`pairs`.

        Raises:
            UsageError: there is no such pair, or it is not violated.
        """
        row = next((row for row in self.pairs if row.pair == pair), None)
        if row is None or row.outcome != Outcome.VIOLATED.value:
            got = "no such pair" if row is None else f"a pair that ended as {row.outcome}"
            raise UsageError(f"{self.directory}: '{pair}' is {got}, expected a violated one of result.pairs")
        lines = read_journal(self.directory / "result.jsonl")
        detail: Mapping[str, Any] = next((line.get("detail", {}) for line in lines if line.get("pair") == pair), {})
        return ViolatedPair(self.directory, row, *places_of(detail))

    @property
    def report_path(self) -> Path | None:
        """The report for people; None if the run made none."""
        path = (self.directory / "report.html").resolve()
        return path if path.exists() else None

    def assert_holds(self) -> None:
        """Do nothing if every relation is PASS, or its FAIL is waived.

        Raises:
            AssertionError: anything else; the text says what was lost where, and how to reproduce it.
        """
        __tracebackhide__ = True  # pytest shows the caller
        if text := failure_text(self):
            raise AssertionError(text)

    def show(self) -> None:
        """Show the result in a notebook; elsewhere open the report in the browser.

        Raises:
            UsageError: it is no notebook, and the run made no report.
        """
        show(self)

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        return html_of(self)

    def __str__(self) -> str:
        lines = [f"{self.outcome}: {self.why}", *(f"  {verdict}" for verdict in self.verdicts.values())]
        return "\n".join([*lines, f"results: {self.directory}"])

    def __repr__(self) -> str:
        return f"<Result {self.outcome} of {', '.join(self.verdicts) or 'no relation'} in {self.directory}>"
