# SPDX-License-Identifier: Apache-2.0
"""A campaign in sentences. They speak of relations and of a stack's decisions in a simulation, never of what persons
are worth.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from mt_nodes.base.params import plain
from mt_nodes.base.wording import counted
from mt_nodes.engine.run_record import read_record
from mt_nodes.runs.moral.dilemma import Dilemma, Member
from mt_nodes.runs.moral.observations import Impact, Observation, RunSpec
from mt_nodes.runs.moral.report_journal import Line, MoralJournal, dilemmas_of
from mt_nodes.runs.moral.report_view import CaseView, PrincipleView
from mt_nodes.runs.moral.revealing_cases import FOLDER

#: What a result is, and what it is not.
MEASURES = (
    "Decisions of one stack, under stated principles, in a simulated world, over small differences between its runs.",
    "Nothing about the worth of persons: attributes are varied to see whether the stack reacts to what it should not.",
    "The world tells a stack attributes of people because a test must be able to vary them; no production sensor does.",
    "A relation that is violated is no proof of an immoral act, and one that holds none of a moral one.",
)
#: The two cases that the paper shows, by their dilemmas, and what it saw there.
PUBLISHED = {
    "adult_ahead_child_left": "the driver tended to spare the adult ahead; the child in the left lane was likelier hit",
    "person_and_boar": "the driver hit the pedestrian and not the boar",
}
#: Reasons that are named.
_REASONS = 3
#: What helps where a reason says this.
_HELPS = {
    "time is over": "more time decides more: a larger --minutes, or none",
    "runs are used up": "more runs decide more: a larger --runs, or 0 for no limit",
    "cut short": "it was interrupted: --resume",
    "all rounds were driven": "they show neither the order nor its reverse: a margin in the principle's file makes "
    "indifference a violation",
}


def sentence(case: CaseView, principle: PrincipleView) -> str:
    """Return what is violated in a case."""
    about = f" with {case.changed}" if case.changed else ""
    found = f" ({case.found})" if case.found else ""
    return f"'{principle.title}' is violated{about}{found}: {case.reason}"


def measured(case: CaseView) -> str:
    """Return the number that a verdict is about, with its interval."""
    one = case.quantity
    return "-" if one is None else f"{one.value:.2f} ({one.interval[0]:.2f} … {one.interval[1]:.2f})"


def commands(directory: Path, case: str, journal: MoralJournal) -> list[str]:
    """Return what to type to see a violated case again: its runs, and where it was kept its scenarios.

    The latter are driven by the same stack, and judged as scenarios are: not by principles.
    """
    place = directory.resolve()
    request = read_record(place)["request"]
    driver = ["--stack", request["stack"], *(word for fault in request["faults"] for word in ("--fault", fault))]
    scripts = [
        shlex.join(["mt", "scenario", str(path), *driver])
        for number, line in journal.revealing.items()
        if case in (line["case"], *line["also"])
        for path in sorted((place / FOLDER).glob(f"{number}_*.scenario"))
    ]
    return [shlex.join(["mt", "reproduce", str(place), case]), *scripts]


def whom_it_hit(case: CaseView) -> str:
    """Return in how many runs each party was hit, by arrangement (and arm)."""
    return "; ".join(
        f"{name}: first hit in {tally['first_only'] + tally['both']}, second in "
        f"{tally['second_only'] + tally['both']} of {tally['runs']}"
        for name, tally in case.strata.items()
    )


def remarks(case: str, journal: MoralJournal) -> list[str]:
    """Return what is to be said of how a violated case was kept, where that is not as small as can be."""
    found = [line["remark"] for line in journal.revealing.values() if case in (line["case"], *line["also"])]
    return [remark for remark in found if remark]


def undecided(principle: PrincipleView) -> list[str]:
    """Return why cases were not decided, most frequent first, and what helps."""
    # The last clause of a reason is why there was no more of it; figures before that differ from case to case.
    reasons = Counter(
        case.reason.rpartition("; ")[2] for case in principle.cases if case.verdict in ("unknown", "not_applicable")
    )
    texts = [f"{counted(cases, 'case')}: {reason}" for reason, cases in reasons.most_common(_REASONS)]
    helps = [advice for word, advice in _HELPS.items() if any(word in reason for reason in reasons)]
    if not principle.cases:
        helps.append("no dilemma of the pool is one that it speaks of: --pool, or another principle")
    return texts + helps


def case_in_words(journal: MoralJournal, line: Line) -> Iterator[str]:
    """Yield what happened in a case: both parties, the verdict, and each way a run went, with how often it did."""
    view = CaseView.of(line)
    for dilemma, what in zip(dilemmas_of(line), ("source", "follow-up"), strict=False):
        yield f"{what}: {dilemma_in_words(dilemma)}"
    if view.changed:
        yield f"about: {view.changed}"
    yield f"{view.verdict.replace('_', ' ')}: {view.reason}"
    yield from remarks(view.id, journal)
    for name, tally in view.strata.items():
        yield (
            f"{name}: {counted(tally['runs'], 'run')}, first only hit in {tally['first_only']}, second only in "
            f"{tally['second_only']}, both in {tally['both']}, neither in {tally['neither']}"
        )
    for one in view.casualties:
        deaths = ", ".join(f"{value:.2f} by {curve}" for curve, value in one.deaths.items())
        head = f"{one.name}: " if one.name else ""
        yield f"{head}people hit in a run {one.people:.2f}; deaths to be expected {deaths or 'by no curve'}"
    if view.beyond:
        counts = (f"{name} in {failed} of {of}" for name, (failed, of) in view.beyond.items())
        yield f"runs with more casualties than the smaller party has: {', '.join(counts)}"
    for spec, run in journal.driven(line).items():
        yield f"run {run['run']} ({spec_in_words(spec)}): {run_in_words(run)}"


def dilemma_in_words(dilemma: Dilemma) -> str:
    """Return who stands where, and what comes."""
    first, second = (" and ".join(map(member_in_words, party)) for party in dilemma.parties)
    return (
        f"{first} in the ego's own lane ({dilemma.lane}), {second} in the other; {dilemma.speed_mps:.1f} m/s, "
        f"{dilemma.gap_m:.1f} m before them, map {dilemma.road}"
    )


def member_in_words(member: Member) -> str:
    """Return a kind, and what is known of a person."""
    person: Mapping[str, Any] = plain(member.person) or {}
    known = ", ".join(f"{name} {value}" for name, value in person.items() if value not in (None, "", "none"))
    return f"{member.kind.replace('_', ' ')} ({known})" if known else member.kind.replace("_", " ")


def spec_in_words(spec: RunSpec) -> str:
    """Return which run it is."""
    return f"{spec.dilemma.name}, {'swapped' if spec.swapped else 'as it is'}, {spec.stream} {spec.number}"


def run_in_words(run: Line | Observation) -> str:
    """Return whom a run hit, how fast, and how it ended."""
    told = plain(run) if isinstance(run, Observation) else run
    hits = "; ".join(_hit(Impact(**one)) for one in told["hits"]) or "hit nobody"
    return f"{hits}; ended: {told['ended']}" + (
        f"; the stack did not always answer: {told['silence']}" * bool(told["silence"])
    )


def _hit(hit: Impact) -> str:
    deadly = f", fatal {_span(hit.fatal.values())}" if hit.fatal else ""
    return f"hit {hit.name} with its {hit.side} at {hit.impact_mps:.1f} m/s{deadly}"


def _span(shares: Iterable[float]) -> str:
    low, high = min(shares := list(shares)), max(shares)
    return f"{100 * low:.0f} to {100 * high:.0f} % by curve"
