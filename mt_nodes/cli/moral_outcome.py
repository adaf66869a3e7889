# SPDX-License-Identifier: Apache-2.0
"""Prints the outcome of a campaign of ``mt experiment moral``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mt_nodes.base.wording import counted
from mt_nodes.cli.terminal import heading, table, text
from mt_nodes.runs.moral.budget import cut_in_words
from mt_nodes.runs.moral.report_journal import MoralJournal
from mt_nodes.runs.moral.report_view import CaseView, PrincipleView, principles_of
from mt_nodes.runs.moral.report_words import PUBLISHED, commands, measured, remarks, sentence, undecided, whom_it_hit

COLUMNS = ("name", "outcome", "cases", "holds", "violated", "unknown", "n/a", "runs")
CASES = ("name", "verdict", "runs", "measured", "people hit", "m/s")
#: Violated cases of a principle that are printed as sentences; the report has all.
MAX_SENTENCES = 5


def print_campaign(out: Path, summary: Mapping[str, Any]) -> None:
    """Print a table of the cases of each principle, one of all principles, what is violated, and the exit code."""
    journal = MoralJournal.load(out)
    principles = principles_of(journal, {})
    for principle in principles:
        _print_cases(principle)
    table(COLUMNS, [_row(principle) for principle in principles], right=COLUMNS[2:])
    _print_published([case for principle in principles for case in principle.cases])
    _print_casualties(principles)
    for principle in principles:
        for line in _findings(principle, journal, out):
            text(line)
    text(_cost(summary))
    if cut := cut_in_words(summary):
        text(cut)
    text(f"exit code {summary['exit_code']}: {summary['exit_why']}")
    text(f"results in {out}, report: {out / 'report.html'}")


def _cost(summary: Mapping[str, Any]) -> str:
    """Return cases, runs and time; of a resumed campaign only the time since it was resumed is known."""
    costs = {"runs": summary["runs_per_decided"], "s": summary["seconds_per_decided"]}
    known = " and ".join(f"{value:g} {unit}" for unit, value in costs.items() if value is not None)
    each = f", {known} for each decided case" if known else ""
    last = " since it was resumed" if summary["decided"] and costs["s"] is None else ""
    cases, runs = counted(summary["offered"], "case"), counted(summary["runs"], "run")
    return f"{cases}, {runs}, {summary['seconds']:.0f} s{last}{each}"


def _row(principle: PrincipleView) -> tuple[str, ...]:
    numbers = (principle.numbers[key] for key in ("cases", "holds", "violated", "unknown", "not_applicable", "runs"))
    return (principle.id, principle.outcome, *map(str, numbers))


def _print_cases(principle: PrincipleView) -> None:
    heading(f"{principle.title}: {principle.why}")
    if principle.axis:
        text(f"measured: {principle.axis.label[0].lower()}{principle.axis.label[1:]}; judged by the bound of its file")
    driven = [case for case in principle.cases if case.runs]
    if driven:
        table(CASES, [_case(case) for case in driven], right=CASES[2:])


def _case(case: CaseView) -> tuple[str, ...]:
    hurt = case.casualties
    people, speed = (
        " / ".join(_number(getattr(one, name)) for one in hurt) or "-" for name in ("people", "impact_mps")
    )
    return (case.name, case.verdict, str(case.runs), measured(case), people, speed)


def _print_published(cases: Sequence[CaseView]) -> None:
    for case in cases:
        if case.dilemma in PUBLISHED and case.verdict != "not_applicable":
            paper = PUBLISHED[case.dilemma]
            hit = f" ({whom_it_hit(case)})" if case.strata else ""
            text(f"published case {case.id}: {case.verdict}: {case.reason}{hit}. In the paper: {paper}")


def _print_casualties(principles: Sequence[PrincipleView]) -> None:
    """Print the means over all runs of each principle: people hit, and expected deaths by each risk curve."""
    rows = []
    curves: list[str] = []
    for principle in principles:
        hurt = [(case.runs, one) for case in principle.cases for one in case.casualties]
        curves = curves or list(dict.fromkeys(curve for _, one in hurt for curve in one.deaths))
        deaths = (_mean([(runs, one.deaths.get(curve)) for runs, one in hurt]) for curve in curves)
        if hurt:
            rows.append((principle.id, _mean([(runs, one.people) for runs, one in hurt]), *deaths))
    if rows:
        text("casualties per run: people hit, and expected deaths by published risk curves of the impact speed")
        columns = ("name", "people hit", *curves)
        table(columns, rows, right=columns[1:])


def _mean(weighted: Sequence[tuple[int, float | None]]) -> str:
    known = [(runs, value) for runs, value in weighted if value is not None]
    return f"{sum(r * v for r, v in known) / sum(r for r, _ in known):.2f}" if known else "-"


def _findings(principle: PrincipleView, journal: MoralJournal, out: Path) -> Iterator[str]:
    violated = [case for case in principle.cases if case.verdict == "violated"]
    for case in violated[:MAX_SENTENCES]:
        yield sentence(case, principle)
        yield from (f"    {line}" for line in (*remarks(case.id, journal), *commands(out, case.id, journal)))
    if len(violated) > MAX_SENTENCES:
        yield f"{principle.id}: {len(violated) - MAX_SENTENCES} more violated cases; the report has all"
    if principle.outcome == "INCONCLUSIVE":
        yield f"{principle.id}, not decided: {'; '.join(undecided(principle)) or principle.why}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
