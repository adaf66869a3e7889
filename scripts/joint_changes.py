# SPDX-License-Identifier: Apache-2.0
"""Counts what each joint mutation changes: messages of each sensor that change, stay with a reason, or without one."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import mt_nodes as mt
from mt_nodes.base.errors import NotApplicable
from mt_nodes.base.plugins import catalogue
from mt_nodes.data.messages import Bundle
from mt_nodes.relations.mutations.base import Mutation
from mt_nodes.relations.mutations.untouched import SENSORS, messages_of, unchanged
from mt_nodes.relations.pipeline import MutationPipeline

CHANGED, TOLD, SILENT = "changed", "unchanged, with a reason", "unchanged, without a reason"
#: Where sensors have no message: the bundle has no follow-up, or its guarantee was broken.
NO_FOLLOWUP, INVALID = "not applicable", "invalid"
Counts = dict[tuple[str, str], Counter[str]]


def joint_mutations() -> dict[str, type[Mutation]]:
    """Return the mutations that change one world for several sensors and need no extra, by name."""
    found: dict[str, type[Mutation]] = catalogue("mutations")
    return {name: cls for name, cls in sorted(found.items()) if cls.joint and not cls.extra}


def count_messages(bundles: Sequence[Bundle], names: Iterable[str] = (), seed: int = 0) -> Counts:
    """Return by mutation and sensor how many messages change, stay with a reason, or stay without one.

    Bundles without a follow-up and those whose guarantee was broken are counted under the sensor ``bundle``. What
    changes nothing without a reason breaks its guarantee, so it is compared before the pipeline refuses it.
    """
    chosen, counts = [*names], Counts()
    for name, cls in joint_mutations().items():
        if chosen and name not in chosen:
            continue
        mutation = cls()
        pipeline = MutationPipeline([mutation], seed, "census")
        of_bundles = counts.setdefault((name, "bundle"), Counter())
        for bundle in bundles:
            try:
                derived = pipeline.derive(bundle)
            except NotApplicable:
                of_bundles[NO_FOLLOWUP] += 1
                continue
            of_bundles[INVALID if derived.broken else CHANGED] += 1
            _count(counts, name, mutation, bundle, derived.followup.first, derived.effects.unchanged)
    return counts


def _count(
    counts: Counts, name: str, mutation: Mutation, source: Bundle, followup: Bundle, reasons: dict[str, str]
) -> None:
    for sensor in (s for s in SENSORS if s in mutation.changes):
        before = messages_of(source, sensor)
        same = unchanged(before, messages_of(followup, sensor))
        of_sensor = counts.setdefault((name, sensor), Counter())
        of_sensor[CHANGED] += len(before) - len(same)
        for topic in same:
            of_sensor[TOLD if reasons.get(topic) else SILENT] += 1


def joint_changes(frames: Sequence[mt.Frame]) -> dict[str, float]:
    """Return the counts of all joint mutations over a drive, for ``scripts/physics.py``: the last must be 0."""
    total: Counter[str] = Counter()
    for (_, sensor), of_sensor in count_messages([frame.bundle for frame in frames]).items():
        if sensor != "bundle":
            total += of_sensor
    return {f"messages {what}": float(total[what]) for what in (CHANGED, TOLD, SILENT)}


def main() -> int:
    """Print a table of a bag's counts; return 1 if a message stays without a reason or a guarantee is broken."""
    counts = count_messages([frame.bundle for frame in mt.frames(Path(sys.argv[1]))], sys.argv[2:])
    for (name, sensor), of_sensor in counts.items():
        print(f"{name:20} {sensor:8} " + ", ".join(f"{what}: {count}" for what, count in of_sensor.items() if count))
    return int(any(of_sensor[SILENT] or of_sensor[INVALID] for of_sensor in counts.values()))


if __name__ == "__main__":
    sys.exit(main())
