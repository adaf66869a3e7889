# SPDX-License-Identifier: Apache-2.0
"""The published figures of AutoMT, for comparison with ours; ``config/experiments/published/automt.yaml``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from mt_nodes.base import resources
from mt_nodes.base.errors import UsageError
from mt_nodes.base.yaml_files import read_mapping

REGIONS = ("germany", "california")
FACTORS = ("scenario", "manipulation", "logical")
_FILE = "experiments/published/automt.yaml"


@dataclass(frozen=True)
class PublishedFigures:
    """Tables VIII and IX of the paper and related figures; shares are 0 to 1.

    Attributes:
        methods: the paper's names, by ours. stacks: its driving models. cases: of each region.
        validation: region -> method -> ``overall`` and each of :data:`FACTORS`. violation: region -> method -> stack,
            of all cases. counts: region -> stack -> AutoMT's violations of each round.
        expert_ratings: table VII: region -> answer -> percent, and the raters' ``kappa``.
        notes: caveats of the comparison.
    """

    methods: Mapping[str, str]
    stacks: tuple[str, ...]
    cases: Mapping[str, int]
    rounds: int
    validation: Mapping[str, Mapping[str, Mapping[str, float]]]
    violation: Mapping[str, Mapping[str, Mapping[str, float]]]
    counts: Mapping[str, Mapping[str, tuple[int, ...]]]
    expert_ratings: Mapping[str, Mapping[str, float]]
    notes: tuple[str, ...]

    def gain(self, region: str, stack: str, baseline: str) -> float:
        """Return by how much AutoMT's violation rate exceeds a baseline's."""
        return self.violation[region]["automt"][stack] - self.violation[region][baseline][stack]


@lru_cache
def published() -> PublishedFigures:
    """Return the published figures. Raises UsageError: the file is incomplete: names table, region and method."""
    path = resources.config_dir() / _FILE
    data = read_mapping(path)
    stacks, methods = tuple(data["stacks"]), dict(data["methods"])
    return PublishedFigures(
        methods=methods,
        stacks=stacks,
        cases=dict(data["cases"]),
        rounds=int(data["rounds"]),
        validation=_shares(data["validation"], tuple(methods), ("overall", *FACTORS), f"{path}: validation"),
        violation=_shares(data["violation"], tuple(methods), stacks, f"{path}: violation"),
        counts={
            region: {stack: tuple(rounds) for stack, rounds in data["violation_counts"][region].items()}
            for region in REGIONS
        },
        expert_ratings=data["expert_ratings"],
        notes=tuple(data["notes"]),
    )


def _shares(
    table: Mapping[str, Any], methods: tuple[str, ...], columns: tuple[str, ...], where: str
) -> dict[str, dict[str, dict[str, float]]]:
    """Return a table of percentages as shares, region -> method -> column."""
    for region in REGIONS:
        for method in methods:
            got = tuple(table.get(region, {}).get(method, {}))
            if sorted(got) != sorted(columns):
                raise UsageError(f"{where}.{region}.{method}: got {', '.join(got)}, expected {', '.join(columns)}")
    return {
        region: {method: {column: table[region][method][column] / 100.0 for column in columns} for method in methods}
        for region in REGIONS
    }
