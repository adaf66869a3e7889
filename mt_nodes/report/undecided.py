# SPDX-License-Identifier: Apache-2.0
"""Why pairs of a relation were not decided: what one looks for where a relation is INCONCLUSIVE."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

from mt_nodes.verdict import Outcome, Pair

#: Reasons shown of each relation.
SHOWN = 3
_DECIDED = frozenset({Outcome.HOLDS.value, Outcome.VIOLATED.value})
_NUMBER = re.compile(r"\d[\d.,]*")


class Undecided:
    """Counts outcomes and reasons of the relations' own pairs; reasons that differ in numbers only are one."""

    def __init__(self) -> None:
        self._counted: defaultdict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
        self._first: dict[tuple[str, str, str], str] = {}

    def count(self, line: Mapping[str, Any]) -> None:
        """Count a verdict line in, where it is of a relation's own pair and was not decided."""
        pair = Pair.parse(line["pair"])
        if line["outcome"] in _DECIDED or "@" in pair.draw:
            return
        alike = line["outcome"], _NUMBER.sub("0", line["reason"])
        self._counted[pair.relation][alike] += 1
        self._first.setdefault((pair.relation, *alike), line["reason"])

    def most_common(self) -> dict[str, list[dict[str, Any]]]:
        """Return outcome, reason (of the first such pair) and number of pairs by relation, most frequent first."""
        return {
            relation: [
                {"outcome": outcome, "pairs": pairs, "reason": self._first[relation, outcome, alike]}
                for (outcome, alike), pairs in counted.most_common(SHOWN)
            ]
            for relation, counted in self._counted.items()
        }
