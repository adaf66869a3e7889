# SPDX-License-Identifier: Apache-2.0
"""Deaths of the stack under test: lines of a journal beside its verdicts, and what they mean for a run.

A run in which the stack died or hung goes on when it is resumed, and never ends clean: the death stays in its journal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from mt_nodes.base.errors import InfrastructureError, StackCallError, StackError, headline
from mt_nodes.base.wording import counted
from mt_nodes.data.verdict import SCHEMA, Pair, RelationOutcome, Verdict

TYPE = "death"
Line = Mapping[str, Any]


def death_line(error: StackError) -> dict[str, Any]:
    """Return the line that keeps a death: how the stack ended, and the pairs that it was at.

    ``goes_on`` marks an exception that it survived.
    """
    alive = {"goes_on": True} if isinstance(error, StackCallError) else {}
    return {"schema": SCHEMA, "type": TYPE, "reason": headline(error), "pairs": list(error.pairs), **alive}


def note_pairs(error: InfrastructureError, struck: Iterable[Verdict]) -> None:
    """Note in an error that tells of a death which pairs it struck."""
    if isinstance(error, StackError):
        error.pairs = tuple(str(verdict.pair) for verdict in struck)


class Deaths:
    """The deaths in a journal, collected while its lines are read for something else."""

    def __init__(self) -> None:
        self._lines: list[Line] = []

    def take(self, line: Line) -> None:
        """Take in a line of a journal, if it tells of a death."""
        if line.get("type") == TYPE:
            self._lines.append(line)

    def passing(self, lines: Iterable[Line]) -> Iterator[Line]:
        """Yield the lines of a journal, and take in the deaths among them."""
        for line in lines:
            self.take(line)
            yield line

    @property
    def plain(self) -> list[dict[str, Any]]:
        """What a summary says of them: reason and pairs of each; equal exceptions are one, with ``times``."""
        rows: list[dict[str, Any]] = []
        survived: dict[str, dict[str, Any]] = {}
        for line in self._lines:
            row = {"reason": line["reason"], "pairs": list(line["pairs"])}
            if not line.get("goes_on"):
                rows.append(row)
            elif (same := survived.get(line["reason"])) is None:
                survived[line["reason"]] = {**row, "times": 1}
                rows.append(survived[line["reason"]])
            else:
                same["pairs"] += row["pairs"]
                same["times"] += 1
        return rows

    def weighed(self, relation: str, outcome: RelationOutcome, why: str) -> tuple[RelationOutcome, str]:
        """See :func:`weighed`."""
        return weighed(self._lines, relation, outcome, why)


def weighed(deaths: Sequence[Line], relation: str, outcome: RelationOutcome, why: str) -> tuple[RelationOutcome, str]:
    """Return the outcome of a relation: no PASS where the stack died at a pair of its, or at no pair."""
    struck = [death for death in deaths if not death["pairs"] or relation in _relations(death["pairs"])]
    if not struck or outcome is not RelationOutcome.PASS:
        return outcome, why
    return RelationOutcome.INCONCLUSIVE, f"{describe_deaths(struck)}; apart from that: {why}"


def describe_deaths(deaths: Sequence[Line]) -> str:
    """Say how often the stack failed (died, hung, raised, or answered twice) and how, the first three ways."""
    reasons = list(dict.fromkeys(death["reason"] for death in deaths))
    more = f", and {len(reasons) - 3} other ways" if len(reasons) > 3 else ""
    times = sum(death.get("times", 1) for death in deaths)
    return f"the stack failed {counted(times, 'time')}: {', '.join(reasons[:3])}{more}"


def place_of(death: Line) -> str:
    """Say at which pairs the stack died."""
    first = ", ".join(death["pairs"][:3]) or "no pair: at its start, between pairs or after the last one"
    return first + (f" and {len(death['pairs']) - 3} more" if len(death["pairs"]) > 3 else "")


def deaths_in(lines: Iterable[Line]) -> list[Line]:
    """Return those lines of a journal that tell of a death."""
    return [line for line in lines if line.get("type") == TYPE]


def _relations(pairs: Iterable[str]) -> set[str]:
    return {Pair.parse(pair).judged_for for pair in pairs}
