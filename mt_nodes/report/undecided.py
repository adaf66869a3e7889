# SPDX-License-Identifier: Apache-2.0
"""Why pairs of a relation were not decided: what one looks for where a relation is INCONCLUSIVE."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

from mt_nodes.report.csv_pairs import PairRow
from mt_nodes.verdict import Outcome

#: Reasons shown of each relation.
SHOWN = 3
_DECIDED = frozenset({Outcome.HOLDS.value, Outcome.VIOLATED.value})
_NUMBER = re.compile(r"\d[\d.,]*")


def why_undecided(rows: Iterable[PairRow]) -> dict[str, list[dict[str, Any]]]:
    """Return outcome, reason (of the first such pair) and number of pairs by relation, most frequent first.

    Of the relations' own pairs; reasons that differ in numbers only are one.
    """
    counted: defaultdict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
    first: dict[tuple[str, str, str], str] = {}
    for row in rows:
        if row.outcome in _DECIDED or row.of_background:
            continue
        alike = row.outcome, _NUMBER.sub("0", row.reason)
        counted[row.relation][alike] += 1
        first.setdefault((row.relation, *alike), row.reason)
    return {
        relation: [
            {"outcome": outcome, "pairs": pairs, "reason": first[relation, outcome, alike]}
            for (outcome, alike), pairs in of_it.most_common(SHOWN)
        ]
        for relation, of_it in counted.items()
    }
