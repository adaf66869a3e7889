# SPDX-License-Identifier: Apache-2.0
"""How good an oracle a relation is, by the labels of a data set: its precision, and its blind spot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from mt_nodes.base.stats.cluster_sums import MIN_CLUSTERS, ClusterSums, Unit
from mt_nodes.base.stats.intervals import interval_of
from mt_nodes.data.verdict import Outcome
from mt_nodes.engine.label_comparison import BOTH_WRONG, FOLLOWUP_WRONG, NOT_COMPARABLE


class OracleSums:
    """Counts what the labels say of decided pairs."""

    def __init__(self) -> None:
        #: By outcome: pairs in which the follow-up, or both, are wrong; pairs that can be compared.
        self._wrong = {outcome: ClusterSums(MIN_CLUSTERS, 2) for outcome in (Outcome.VIOLATED, Outcome.HOLDS)}
        self._reasons: dict[Outcome, Counter[str]] = {outcome: Counter() for outcome in self._wrong}
        self._unlabelled: Counter[Outcome] = Counter()
        self._any = False

    def take(self, unit: Unit, outcome: Outcome, truth: Mapping[str, Any] | None) -> None:
        """Count a decided pair; ``truth``: the mark of its verdict line, None where its frame has no labels."""
        if truth is None:
            self._unlabelled[outcome] += 1
            return
        self._any = True
        if truth["case"] == NOT_COMPARABLE:
            self._reasons[outcome][str(truth.get("reason", ""))] += 1
        else:
            self._wrong[outcome].add(unit, int(truth["case"] in (FOLLOWUP_WRONG, BOTH_WRONG)), 1)

    def plain(self) -> dict[str, Any] | None:
        """Return what the labels come to, None where no frame has any.

        Returns:
            ``precision``: of the violated pairs that can be compared, in how many the follow-up is ``wrong``; and
            ``blind_spot``: of those that hold, in how many both are. Each with ``compared``, ``rate`` (None without
            any), ``ci95`` and its method, ``not_comparable`` (reason -> pairs) and ``unlabelled`` pairs, of frames
            without labels.
        """
        if not self._any:
            return None
        return {"precision": self._plain(Outcome.VIOLATED), "blind_spot": self._plain(Outcome.HOLDS)}

    def _plain(self, outcome: Outcome) -> dict[str, Any]:
        sums = self._wrong[outcome]
        wrong, compared = sums.finest.sums.sum(axis=0).tolist() if len(sums) else (0, 0)
        interval = interval_of(sums.finest) if len(sums) else None
        return {
            "wrong": int(wrong),
            "compared": int(compared),
            "rate": round(wrong / compared, 4) if compared else None,
            "ci95": [round(float(limit), 4) for limit in (interval.low, interval.high)] if interval else None,
            "ci95_method": interval.method if interval else None,
            "not_comparable": dict(sorted(self._reasons[outcome].items())),
            "unlabelled": self._unlabelled[outcome],
        }


def oracle_lines(relations: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return for people what the labels say of each relation, nothing of those without."""
    lines = []
    for name, relation in relations.items():
        if (found := relation.get("ground_truth")) is None:
            continue
        precision, blind = found["precision"], found["blind_spot"]
        texts = [
            f"the follow-up is really wrong in {_share(precision, 'violated pairs')}",
            f"both are wrong in {_share(blind, 'pairs that hold')}",
        ]
        skipped = sum(sum(part["not_comparable"].values()) + part["unlabelled"] for part in (precision, blind))
        lines.append(
            f"{name}: by the labels, {'; '.join(texts)}" + (f"; {skipped} pairs not comparable" if skipped else "")
        )
    return lines


def _share(part: Mapping[str, Any], what: str) -> str:
    if part["ci95"] is None:
        return f"none of the {what}, as none can be compared"
    low, high = part["ci95"]
    return f"{part['wrong']} of {part['compared']} {what} ({100 * low:.1f} … {100 * high:.1f} %)"
