# SPDX-License-Identifier: Apache-2.0
"""Claims of scenario scripts in a journal: one line per claim and drive, and what they come to.

A claim is about one drive, not about a pair. It is FAIL where it is violated on a drive, PASS where it holds on one and
is undecided on none, and INCONCLUSIVE otherwise: where no drive put it to the test, one ended before it was decided, or
one was not driven.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mt_nodes.base.wording import counted
from mt_nodes.data.verdict import SCHEMA, Outcome, RelationOutcome

TYPE, CLAIMS = "claim", "claims"
Line = Mapping[str, Any]
#: Reasons of undecided drives that a summary names.
_NAMED = 3


@dataclass(frozen=True)
class ClaimVerdict:
    """What a claim comes to on one drive.

    Attributes:
        episode: the drive. claim: which one. formula: what it claims.
        outcome: HOLDS, VIOLATED; NOT_APPLICABLE if nothing put it to the test; ERROR, or why the drive is none;
            SKIPPED if the drive ended before it was decided.
        margin: robustness, in the unit of the comparison that decides. at_s: when it was least, if that is one time.
    """

    episode: int
    claim: str
    formula: str
    outcome: Outcome
    reason: str
    margin: float | None = None
    at_s: float | None = None

    def as_plain(self) -> dict[str, Any]:
        """Return the line of the journal."""
        numbers = {"margin": self.margin, "at_s": self.at_s}
        known = {name: round(value, 6) for name, value in numbers.items() if value is not None}
        names = {"episode": self.episode, "claim": self.claim, "formula": self.formula}
        return {"schema": SCHEMA, "type": TYPE, **names, "verdict": self.outcome.value, "reason": self.reason, **known}


class ClaimSums:
    """The claims in a journal, collected while its lines are read for something else."""

    def __init__(self) -> None:
        self._lines: dict[str, list[Line]] = {}
        self._drives: dict[str, int] = {}

    def passing(self, lines: Iterable[Line]) -> Iterator[Line]:
        """Yield the lines of a journal, and take in its claims."""
        for line in lines:
            if line.get("type") == "condition":
                self._drives = dict(line.get(CLAIMS, {}))
            elif line.get("type") == TYPE:
                self._lines.setdefault(line["claim"], []).append(line)
            yield line

    @property
    def plain(self) -> dict[str, dict[str, Any]]:
        """What a summary says of each claim, whether or not it was judged on any drive."""
        names = dict.fromkeys([*self._drives, *self._lines])
        return {name: _row(self._lines.get(name, []), self._drives.get(name, 0)) for name in names}


def _row(lines: Sequence[Line], drives: int) -> dict[str, Any]:
    tally = Counter(line["verdict"] for line in lines)
    outcome, why = _outcome(lines, tally, max(drives, len(lines)))
    margins = [line for line in lines if "margin" in line]
    worst = min(margins, key=lambda line: line["margin"], default=None)
    named = {key: worst[key] for key in ("episode", "margin", "at_s") if key in worst} if worst else {}
    return {
        "outcome": outcome.value,
        "why": why,
        "formula": lines[0]["formula"] if lines else "",
        "drives": max(drives, len(lines)),
        "outcomes": dict(tally),
        **({"worst": named} if named else {}),
    }


def _outcome(lines: Sequence[Line], tally: Mapping[str, int], drives: int) -> tuple[RelationOutcome, str]:
    holds, violated, idle = (tally.get(o.value, 0) for o in (Outcome.HOLDS, Outcome.VIOLATED, Outcome.NOT_APPLICABLE))
    if violated:
        reason = next(line["reason"] for line in lines if line["verdict"] == Outcome.VIOLATED.value)
        return RelationOutcome.FAIL, f"violated on {violated} of {counted(drives, 'drive')}: {reason}"
    open_lines = [line for line in lines if line["verdict"] not in (Outcome.HOLDS.value, Outcome.NOT_APPLICABLE.value)]
    missing = drives - len(lines)
    if open_lines or missing:
        reasons = list(dict.fromkeys(line["reason"] for line in open_lines))[:_NAMED]
        reasons += ["not driven"] if missing else []
        undecided = f"undecided on {len(open_lines) + missing} of {counted(drives, 'drive')}"
        return RelationOutcome.INCONCLUSIVE, f"{undecided}: {'; '.join(reasons)}"
    if not holds:
        return RelationOutcome.INCONCLUSIVE, f"never put to the test: {lines[0]['reason'] if lines else 'not driven'}"
    tested = f"holds on {holds} of {counted(drives, 'drive')}"
    return RelationOutcome.PASS, tested + (f", {idle} did not put it to the test" if idle else "")


def claim_lines(claims: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return a line for each claim of a summary: what became of it, and its worst robustness."""
    return [
        f"claim {name}: {row['outcome']}: {row['formula']}: {row['why']}{_worst(row)}" for name, row in claims.items()
    ]


def _worst(row: Mapping[str, Any]) -> str:
    worst = row.get("worst")
    if not worst:
        return ""
    at = f" at {worst['at_s']:.1f} s" if "at_s" in worst else ""
    return f"; least robustness {worst['margin']:.3g} on drive {worst['episode']}{at}"
