# SPDX-License-Identifier: Apache-2.0
"""Processor time of a campaign's items, by relation, as pairs per core hour; what it cannot say is not measured."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from mt_nodes.base.record_shapes import NUMBER, Shape
from mt_nodes.runs.campaign.item import ItemCpu

_RATE = (*NUMBER, type(None))
_ROW: Shape = {"pairs": int, "pairs_per_core_hour": _RATE}
#: What :func:`cpu_cost` returns; None: not measured.
COST_SHAPE: Shape = (
    {**_ROW, "items": int, "seconds": NUMBER, "shared_s": NUMBER, "relations": {"*": {**_ROW, "cpu_s": NUMBER}}},
    type(None),
)


def cpu_cost(items: Iterable[ItemCpu]) -> dict[str, Any] | None:
    """Return what measured items took, as JSON can hold it; None without any.

    ``seconds`` is the sum of ``cpu_s`` over ``relations``, which name control and sham, too, and of ``shared_s``: what
    is of no relation.
    """
    known = list(items)
    if not known:
        return None
    cpu_s: defaultdict[str, float] = defaultdict(float)
    pairs: defaultdict[str, int] = defaultdict(int)
    for item in known:
        for name, (own_s, own_pairs) in item.relations.items():
            cpu_s[name] += own_s
            pairs[name] += own_pairs
    seconds = sum(item.seconds for item in known)
    return {
        "items": len(known),
        "seconds": round(seconds, 6),
        "shared_s": round(seconds - sum(cpu_s.values()), 6),
        "pairs": sum(pairs.values()),
        "pairs_per_core_hour": _per_hour(sum(pairs.values()), seconds),
        "relations": {
            name: {"cpu_s": round(cpu_s[name], 6), "pairs": pairs[name], "pairs_per_core_hour": rate}
            for name, rate in ((name, _per_hour(pairs[name], cpu_s[name])) for name in cpu_s)
        },
    }


def _per_hour(pairs: int, cpu_s: float) -> float | None:
    return 3600.0 * pairs / cpu_s if cpu_s else None
