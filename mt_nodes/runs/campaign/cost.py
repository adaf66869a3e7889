# SPDX-License-Identifier: Apache-2.0
"""What a campaign cost: workers' hours, processor time and bytes, as rates that a larger campaign can be priced by.

What processor time cannot say is not measured.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mt_nodes.base.jsonl import read_result, write_result
from mt_nodes.base.record_shapes import NUMBER, Shape, expect_shape
from mt_nodes.data.verdict import Outcome
from mt_nodes.runs.campaign.campaign_store import CampaignStore, CellEffort
from mt_nodes.runs.campaign.item import ItemCpu

_RATE = (*NUMBER, type(None))
_ROW: Shape = {"pairs": int, "pairs_per_core_hour": _RATE}
#: What :func:`cpu_cost` returns; None: not measured.
_CPU_COST: Shape = (
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


FILE = "cost.json"
#: Of each cell, beside its journal.
SUMMARY = "summary.json"
_RATE = (*NUMBER, type(None))
SHAPE: Shape = {
    "cells": {
        "*": {
            **{"pairs": int, "seconds": NUMBER, "pairs_per_worker_hour": _RATE},
            **{"record_bytes_per_pair": _RATE, "evidence_gb_per_1000_violated": _RATE},
            "cpu?": _CPU_COST,
            "relations?": {
                "*": {
                    **{"pairs": int, "violated": int, "evidence_bytes": int, "evidence_gb_per_1000_violated": _RATE},
                    **{"work_s?": NUMBER, "pairs_per_hour?": _RATE},
                }
            },
        }
    },
    "stacks?": {"*": _CPU_COST},
}


@dataclass(frozen=True)
class RelationCost:
    """What one relation left, judged and violated pairs and bytes of evidence, and what its follow-ups took.

    ``work_s``: time in which they were made, proved and answered; the source, control and what else there is of a
    replay are of all relations.
    """

    pairs: int
    violated: int
    evidence_bytes: int
    work_s: float

    def as_plain(self) -> dict[str, Any]:
        """Return it as JSON can hold it; a rate without anything to divide by is None."""
        evidence = _gb_per_1000(self.evidence_bytes, self.violated)
        an_hour = 3600.0 * self.pairs / self.work_s if self.work_s else None
        return {**vars(self), "evidence_gb_per_1000_violated": evidence, "pairs_per_hour": an_hour}


@dataclass(frozen=True)
class CellCost:
    """What one cell took.

    Attributes:
        effort: items, judged and violated pairs, and the wall time of its workers.
        evidence_bytes, record_bytes: of its evidence; of journal, ledger, draws, tables and report.
        relations: what each took.
    """

    effort: CellEffort
    evidence_bytes: int
    record_bytes: int
    relations: Mapping[str, RelationCost]

    def as_plain(self) -> dict[str, Any]:
        """Return it as JSON can hold it; a rate without anything to divide by is None."""
        hours = self.effort.seconds / 3600.0
        return {
            **vars(self.effort),
            "pairs_per_worker_hour": self.effort.pairs / hours if hours else None,
            "evidence_bytes": self.evidence_bytes,
            "record_bytes": self.record_bytes,
            "record_bytes_per_pair": self.record_bytes / self.effort.pairs if self.effort.pairs else None,
            "evidence_gb_per_1000_violated": _gb_per_1000(self.evidence_bytes, self.effort.violated),
            "relations": {name: cost.as_plain() for name, cost in self.relations.items()},
        }


def write_cost(out: Path, stacks: Mapping[str, str], store: CampaignStore, directory: Path) -> None:
    """Write ``cost.json``. Raises InfrastructureError: it cannot be written.

    ``stacks``: by cell, what it tests. ``directory``: of the cells' results.
    """
    found = {}
    work_s: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    for cell, _, part in store.parts():
        work_s[cell][part.relation] += part.work_s
    cpu: defaultdict[str, list[ItemCpu]] = defaultdict(list)
    of_stack: defaultdict[str, list[ItemCpu]] = defaultdict(list)
    for cell, item_cpu in store.cpu():
        cpu[cell].append(item_cpu)
        of_stack[stacks[cell]].append(item_cpu)
    for name in stacks:
        evidence, records = _sizes(directory / name)
        relations = _by_relation(directory / name, work_s[name])
        cost = CellCost(store.effort(name), evidence, records, relations).as_plain()
        found[name] = {**cost, "cpu": cpu_cost(cpu[name])}
    by_stack = {stack: cpu_cost(of_stack[stack]) for stack in dict.fromkeys(stacks.values())}
    write_result(out / FILE, {"cells": found, "stacks": by_stack})


def read_cost(out: Path) -> dict[str, Any]:
    """Return ``cost.json``, without cells if there is none. Raises InfrastructureError: it is damaged, or another."""
    if not (out / FILE).is_file():
        return {"cells": {}}
    data = read_result(out / FILE)
    expect_shape(data, SHAPE, str(out / FILE))
    return data


def _sizes(place: Path) -> tuple[int, int]:
    """Return the bytes of a cell's evidence, and of everything else."""
    files = [path for path in place.rglob("*") if path.is_file()] if place.is_dir() else []
    kept = sum(path.stat().st_size for path in files if path.parent.name == "evidence")
    return kept, sum(path.stat().st_size for path in files) - kept


def _by_relation(place: Path, work_s: Mapping[str, float]) -> dict[str, RelationCost]:
    """Return what each relation of a cell left, by its summary and the names of its evidence, and what it took."""
    if not (place / SUMMARY).is_file():
        return {}
    outcomes = {name: row["outcomes"] for name, row in read_result(place / SUMMARY)["relations"].items()}
    kept: Counter[str] = Counter()
    for path in (place / "evidence").iterdir() if (place / "evidence").is_dir() else ():
        of_pair = path.name.split("_", 2)[-1]  # behind episode and bundle
        names = [name for name in outcomes if of_pair.startswith(f"{name}_")]
        kept[max(names, key=len, default="")] += path.stat().st_size
    violated = Outcome.VIOLATED.value
    return {
        name: RelationCost(sum(row.values()), row.get(violated, 0), kept[name], round(work_s.get(name, 0.0), 3))
        for name, row in outcomes.items()
    }


def _gb_per_1000(bytes_: int, violated: int) -> float | None:
    return 1000.0 * bytes_ / violated / 1e9 if violated else None
