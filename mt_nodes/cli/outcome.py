# SPDX-License-Identifier: Apache-2.0
"""Prints the outcome of a run."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mt_nodes.base.wording import counted
from mt_nodes.cli.terminal import fits, paragraph, table, text
from mt_nodes.data.verdict import SCORE_FALLS
from mt_nodes.engine.next_steps import NextStep, next_steps
from mt_nodes.engine.run_record import FILE, read_record
from mt_nodes.engine.summary.claim_sums import claim_lines
from mt_nodes.engine.summary.deaths import place_of
from mt_nodes.engine.summary.explored import explored_words, kind_words
from mt_nodes.engine.summary.headline import headline
from mt_nodes.engine.summary.oracle_sums import oracle_lines
from mt_nodes.engine.summary.score_range import describe_score_drops, score_warnings
from mt_nodes.engine.summary.summary import WARNING as UNSTAMPED
from mt_nodes.engine.summary.undecided_reasons import over_all, why_never_decided
from mt_nodes.engine.used_intensities import read_used_intensities

#: Kinds of violations that are printed of an exploration.
KINDS_SHOWN = 12
#: Names of relations that were left out for one reason that are printed; run.json has all.
NAMES_LEFT_OUT = 6
COLUMNS = ("relation", "outcome", "violated", "rate", "95 % interval", "lost", "gained", "control", "sham")


def print_summary(summary: dict[str, Any], out: Path) -> None:
    """Print a row for each relation, the totals, the reasons, and where the results are."""
    table(COLUMNS, [row(name, r) for name, r in summary["relations"].items()], right=COLUMNS[2:])
    for line in reasons(summary["relations"]):
        paragraph(line)
    if methods := sorted({r["ci95_method"] for r in summary["relations"].values() if r["ci95_method"]}):
        paragraph(f"95 % intervals: {'; '.join(methods)}")
    claimed = claim_lines(summary.get("claims", {}))
    for line in (*claimed, *requirements(summary["relations"]), *oracle_lines(summary["relations"])):
        paragraph(line)
    for line in score_warnings(summary.get("scores", {})):
        paragraph(line)
    if summary.get("unstamped"):
        paragraph(UNSTAMPED)
    print_waivers(summary)
    if found := summary.get("explored"):
        _print_explored(found)
    totals = ", ".join(f"{count} {outcome}" for outcome, count in summary["outcomes"].items() if count)
    paragraph(f"{counted(summary['offered'], 'pair')} offered: {totals or 'none'}")
    for line in over_all(summary["relations"].values()):
        paragraph(f"  {line}")
    if by_arrival := summary.get("by_arrival"):
        paragraph(f"{by_arrival} of them rest on outputs without a stamp, paired by their arrival: less certain")
    for line in clocks(summary):
        paragraph(line)
    if motion := summary.get("ego_motion"):
        paragraph(f"ego motion: {'; '.join(motion)}")
    for topic, assumption in read_used_intensities(out).items():
        paragraph(f"intensities of {topic}: {assumption}")
    for name, latency in summary["latency_ms"].items():
        paragraph(f"{name}: p50 {latency['p50']:.1f} ms, p99 {latency['p99']:.1f} ms")
    for line in added(summary):
        paragraph(line)
    for death in summary.get("deaths", ()):
        paragraph(f"the stack failed: {death['reason']} (at {place_of(death)})")
    if left_out := _left_out(out):
        paragraph(
            f"{counted(len(left_out), 'relation')} left out that cannot judge this stack: left_out in {out / FILE}"
        )
    paragraph(f"exit code {summary['exit_code']}: {summary['exit_why']}")
    text(f"results in {out}, report: {out / 'report.html'}")
    print_next(out, summary)


def _print_explored(found: Mapping[str, Any]) -> None:
    """Print how many kinds of violations an exploration found, and those that it found first."""
    paragraph(explored_words(found))
    shown = found["kinds"][:KINDS_SHOWN]
    if shown:
        rows = [(k["relation"], kind_words(k), str(k["pairs"]), k["first"]) for k in shown]
        table(("violated", "kind", "pairs", "first seen in"), rows, right=("pairs",))
    if left := len(found["kinds"]) - len(shown):
        paragraph(f"and {counted(left, 'kind')} more, see the report, or explored in summary.json")


def _left_out(out: Path) -> Mapping[str, str]:
    """Return which relations of patterns and suites a run left out; nothing where it keeps no record."""
    left_out: Mapping[str, str] = read_record(out).get("left_out", {}) if (out / FILE).is_file() else {}
    return left_out


def print_next(out: Path, summary: Mapping[str, Any]) -> None:
    """Print what a run comes to in one sentence, and what to type next."""
    found = headline(summary)
    text("")
    paragraph(f"{found.verdict}: {found.sentence}")
    print_steps(out, next_steps(out, found))


def print_steps(out: Path, steps: Sequence[NextStep]) -> None:
    """Print what to type next, paths as short as they can be from here."""
    rows = [(step.command.replace(str(out.resolve()), _relative_path(out)), step.what) for step in steps]
    width = max((len(command) for command, _ in rows), default=0)
    side_by_side = fits(f"  {'':<{width}}  # {max((what for _, what in rows), key=len, default='')}")
    for command, what in rows:
        text(f"  {command:<{width}}  # {what}" if side_by_side else f"  # {what}\n  {command}")


def _relative_path(path: Path) -> str:
    relative = os.path.relpath(path)
    return str(path.resolve()) if relative.startswith(os.pardir) else shlex.quote(relative)


def warn_of_left_out(left_out: Mapping[str, str]) -> None:
    """Print on standard error which relations of patterns and suites are left out, by reason."""
    if not left_out:
        return
    from mt_nodes.runs.relation_choice import left_out_lines

    for line in left_out_lines(left_out, NAMES_LEFT_OUT):
        print(f"mt: warning: {line}", file=sys.stderr)


def reasons(relations: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return a line for each relation that does not PASS: why, and what would decide."""
    undecided = [(name, relation) for name, relation in relations.items() if relation["outcome"] != "PASS"]
    return [f"{name}: {r['outcome']}: {'; '.join(filter(None, _why(r)))}" for name, r in undecided]


def _why(relation: Mapping[str, Any]) -> tuple[str, ...]:
    falls = describe_score_drops(relation[SCORE_FALLS]) if SCORE_FALLS in relation else ""
    return relation["why"], why_never_decided(relation), falls


def requirements(relations: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return a line for each relation that carries ids of the user's requirements."""
    carried = {name: ", ".join(relation["requirement"]) for name, relation in relations.items()}
    return [f"{name}: requirement {identifiers}" for name, identifiers in carried.items() if identifiers]


def clocks(summary: Mapping[str, Any]) -> list[str]:
    """Return a line for each other computer whose clock was measured: its offset, or the warning."""
    rows = summary.get("clocks", {}).items()
    line = "the clock of {0} is ahead of ours by {1[offset_ms]:.1f} ms, give or take {1[bound_ms]:.1f} ms"
    return [row.get("warning") or line.format(name, row) for name, row in rows]


def added(summary: Mapping[str, Any]) -> list[str]:
    """Return a line for each topic beside a live stack: how much later our instance received its messages."""
    line = "{0}: reaches our instance {1[p50]:.1f} ms later (p50), p99 {1[p99]:.1f} ms, at most {1[max]:.1f} ms"
    return [line.format(topic, row["added_ms"]) for topic, row in summary.get("topics", {}).items()]


def print_waivers(summary: dict[str, Any]) -> None:
    """Print what is waived, until when and why, and which waivers do not count."""
    for name, relation in summary["relations"].items():
        if waived := relation.get("waived"):
            text(f"{name}: FAIL waived until {waived['expires']}: {waived['reason']}")
    for note in summary.get("waivers", ()):
        text(note)


def row(name: str, relation: dict[str, Any]) -> tuple[str, ...]:
    """Return the cells of one relation, as :data:`COLUMNS` names them."""
    ci = relation["ci95"]
    return (
        name,
        relation["outcome"] + (" (waived)" if relation.get("waived") else ""),
        f"{relation['violated']}/{relation['decided']}",
        "-" if relation["rate"] is None else f"{100 * relation['rate']:.1f} %",
        "-" if ci is None else f"{100 * ci[0]:.1f} … {100 * ci[1]:.1f} %",
        str(relation["lost"]),
        str(relation["gained"]),
        *(f"{relation[arm]['violated']}/{relation[arm]['decided']}" for arm in ("control", "sham")),
    )
