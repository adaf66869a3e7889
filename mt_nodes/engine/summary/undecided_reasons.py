# SPDX-License-Identifier: Apache-2.0
"""Why pairs were not decided: what one looks for where a relation is INCONCLUSIVE."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from mt_nodes.data.verdict import Outcome

#: So many reasons are told, the most frequent ones.
MOST = 3
#: What was measured is another number each time; a digit in a name is none.
_NUMBER = re.compile(r"(?<![\w.])\d[\d.,]*")


class UndecidedReasons:
    """Outcomes that are no decision, counted by their reasons; reasons that differ in numbers only are one."""

    def __init__(self) -> None:
        #: How many there are of each sort, and the reason of one of them: in alphabetical order the first.
        self._sorts: dict[tuple[Outcome, str], tuple[int, str]] = {}

    def take(self, outcome: Outcome, reason: str, pairs: int = 1) -> None:
        """Count so many pairs."""
        sort = outcome, _NUMBER.sub("0", reason)
        known, first = self._sorts.get(sort, (0, reason))
        self._sorts[sort] = known + pairs, min(first, reason)

    def plain(self) -> list[dict[str, Any]]:
        """Return ``outcome``, ``reason`` (one of those that are alike) and number of ``pairs``, most frequent first."""
        most = sorted((-pairs, outcome.value, reason) for (outcome, _), (pairs, reason) in self._sorts.items())
        return [{"outcome": outcome, "reason": reason, "pairs": -pairs} for pairs, outcome, reason in most[:MOST]]


def over_all(relations: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return a line for each of the most frequent reasons over relations, as a summary tells of them."""
    together = UndecidedReasons()
    for relation in relations:
        for row in relation.get("undecided", ()):
            together.take(Outcome(row["outcome"]), row["reason"], row["pairs"])
    return [_reason_in_words(row) for row in together.plain()]


def why_never_decided(relation: Mapping[str, Any]) -> str:
    """Return the most frequent reason of a relation of a summary that no pair decided; empty where some did."""
    rows = relation.get("undecided", ())
    return _reason_in_words(rows[0]) if rows and not relation["decided"] else ""


def _reason_in_words(row: Mapping[str, Any]) -> str:
    return f"{row['pairs']} {row['outcome']}{', such as' if row['pairs'] > 1 else ''}: {row['reason']}"
