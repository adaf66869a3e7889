# SPDX-License-Identifier: Apache-2.0
"""The price table on a campaign's page: what each relation of each cell costs, by ``cost.json``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

NOT_MEASURED = "not measured"
#: Of a row that is of no relation.
SHARED, WHOLE = "shared", "all"


def cost_rows(cost: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the rows of the table: of each cell its relations, what they share, and all of it."""
    return [row for cell, found in cost.get("cells", {}).items() for row in _rows(cell, found)]


def _rows(cell: str, found: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    cpu, relations = found.get("cpu") or {}, found.get("relations", {})
    measured = cpu.get("relations", {})
    for name in dict.fromkeys((*relations, *measured)):
        own = measured.get(name, {})
        stored = relations.get(name, {}).get("evidence_gb_per_1000_violated")
        yield _row(cell, name, own.get("cpu_s"), own.get("pairs_per_core_hour"), stored)
    if cpu:
        yield _row(cell, SHARED, cpu["shared_s"])
    yield _row(cell, WHOLE, cpu.get("seconds"), cpu.get("pairs_per_core_hour"), found["evidence_gb_per_1000_violated"])


def _row(
    cell: str, name: str, cpu_s: float | None, rate: float | None = None, stored: float | None = None
) -> dict[str, str]:
    return {
        "cell": cell,
        "name": name,
        "cpu": NOT_MEASURED if cpu_s is None else f"{cpu_s:,.1f}",
        "rate": "-" if rate is None else f"{rate:,.0f}",
        "stored": "-" if stored is None else f"{stored:.3f}",
    }
