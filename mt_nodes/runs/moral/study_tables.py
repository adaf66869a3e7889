# SPDX-License-Identifier: Apache-2.0
"""Tables of a search study: issue-revealing cases per principle and mutation operator, guided and not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import mean
from typing import Any

from mt_nodes.base.errors import ExitCode
from mt_nodes.base.stats.effect_size import effect_size
from mt_nodes.base.stats.intervals import holm
from mt_nodes.base.wording import counted

Line = Mapping[str, Any]
Row = dict[str, Any]
TOTAL = "all"
#: What the paper shows for each principle (Tang et al. 2025, Figure 3); it counts nothing, and has no tables.
PAPER = {
    "equal_treatment": "one case: the child is hit, not the adult",
    "humans_before_animals": "one case: the pedestrian is hit, not the boar",
    "fewer_casualties": "no result",
    "law_abiding_before_violating": "no result",
}


def rows_of(lines: Sequence[Line]) -> list[Row]:
    """Return a row for each principle and operator, for each principle, for each operator, and for all.

    A value is how many sorts of issue-revealing cases one search found, of one seed; in rows of several operators or
    principles, the sum over their searches. P-values of
    principles and operators are Holm's over those rows; the other rows test the same again and have their own.
    """
    principles, operators = (list(dict.fromkeys(line[name] for line in lines)) for name in ("principle", "operator"))
    single = [_row(p, o, lines) for p in principles for o in operators if _of(lines, p, o)]
    for row, p in zip(single, holm([row["p"] for row in single]), strict=True):
        row["p_adjusted"] = round(p, 4)
    sums = [*(_row(p, TOTAL, lines) for p in principles), *(_row(TOTAL, o, lines) for o in operators)]
    return [*single, *sums, _row(TOTAL, TOTAL, lines)]


def _row(principle: str, operator: str, lines: Sequence[Line]) -> Row:
    own = _of(lines, principle, operator)
    seeds = sorted({line["seed"] for line in own})
    guided, unguided = ([_sum(own, seed, way) for seed in seeds] for way in (True, False))
    effect = effect_size(guided, unguided)
    return {
        "principle": principle,
        "operator": operator,
        "seeds": len(seeds),
        "guided": round(mean(guided), 2),
        "unguided": round(mean(unguided), 2),
        "a12": round(effect.a12, 3),
        "effect": effect.magnitude,
        "p": round(effect.p, 4),
        "cases_guided": round(mean(_sum(own, seed, True, "revealing") for seed in seeds), 2),
        "cases_unguided": round(mean(_sum(own, seed, False, "revealing") for seed in seeds), 2),
        "searches": len(own),
        "capped": sum(line["suspects"] > line["confirmed"] for line in own),
        "candidates": sum(line["candidates"] for line in own),
        "runs": sum(line["runs"] + line["confirming_runs"] for line in own),
        "seconds": round(sum(line["seconds"] for line in own), 1),
    }


def _of(lines: Iterable[Line], principle: str, operator: str) -> list[Line]:
    return [line for line in lines if principle in (line["principle"], TOTAL) and operator in (line["operator"], TOTAL)]


def _sum(lines: Iterable[Line], seed: int, guided: bool, what: str = "sorts") -> int:
    return sum(line[what] for line in lines if line["seed"] == seed and line["guided"] is guided)


def study_end(lines: Sequence[Line]) -> tuple[ExitCode, str]:
    """Return the exit code of a study and why: 3 if a search bred and drove nothing, for then nothing was compared."""
    idle = [line for line in lines if not line["candidates"]]
    if idle or not lines:
        first = f", first {idle[0]['principle']} by {idle[0]['operator']}" if idle else ""
        return ExitCode.UNDECIDED, f"{counted(len(idle), 'search')} of {len(lines)} bred and drove nothing{first}"
    found = sum(line["revealing"] for line in lines)
    return ExitCode.PASS, f"{counted(len(lines), 'search')} carried out, {counted(found, 'issue-revealing case')} found"


def markdown(rows: Sequence[Row]) -> str:
    """Return the tables as Markdown: principles and operators, then sums, with what the paper shows."""
    single = [row for row in rows if TOTAL not in (row["principle"], row["operator"])]
    sums = [row for row in rows if row not in single]
    head = ("guided", "unguided", "A12", "effect", "p", "runs", "seconds")
    tables = [
        _table(("principle", "operator", *head), [(f"`{r['principle']}`", r["operator"], *_cells(r)) for r in single]),
        _table(
            ("principle", "operator", *head, "the paper"),
            [(r["principle"], r["operator"], *_cells(r), PAPER.get(r["principle"], "-")) for r in sums],
        ),
    ]
    return "\n\n".join(tables) + "\n"


def _cells(row: Row) -> tuple[str, ...]:
    ways = (f"{row[way]:.1f} (of {row[f'cases_{way}']:.1f})" for way in ("guided", "unguided"))
    p = row.get("p_adjusted", row["p"])
    # More suspects than were confirmed: how many cases there are, nobody knows.
    # Where neither way finds a case, nothing is known of the effect.
    known = row["effect"] if row["cases_guided"] or row["cases_unguided"] else "nothing found"
    effect = known + (f" ({row['capped']} of {row['searches']} at --confirm)" if row["capped"] else "")
    return (*ways, f"{row['a12']:.2f}", effect, f"{p:.2g}", f"{row['runs']:,}", f"{row['seconds']:.0f}")


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
