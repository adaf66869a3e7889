# SPDX-License-Identifier: Apache-2.0
"""How many of the objects that were added are found: by class, and by a number that tells them apart, as range does."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from mt_nodes.statistics import Unit, proportion_interval

#: What a check writes into the detail of a verdict: rows [number, found, class]; name, unit and bin of that number.
OBJECTS, OBJECTS_BY = "objects", "objects_by"
ALL = "all"

Detail = Mapping[str, Any]


class _Object(NamedTuple):
    unit: Unit
    bin: int
    found: bool
    label: str


def about_objects(detail: Detail) -> Detail:
    """Return what of a verdict's detail is about single objects; nothing where it does not say what they go by."""
    return {name: detail[name] for name in (OBJECTS, OBJECTS_BY)} if {OBJECTS, OBJECTS_BY} <= detail.keys() else {}


def recall(pairs: Iterable[tuple[Unit, Detail]]) -> dict[str, Any] | None:
    """Return the recall of a relation's decided pairs, None where they say nothing of single objects.

    Args:
        pairs: source case, and what :func:`about_objects` finds, of each.

    Returns:
        ``by``: name, unit and bin of the number. ``classes``: how many were found of each class, of all together first
        where there are several: ``found`` of ``objects``, ``rate``, ``ci95`` and its method; the same of every bin
        that has an object in ``bins``, ``from`` and ``to`` its limits. Intervals are Wilson's, as those of all rates.
    """
    said = [(unit, detail) for unit, detail in pairs if detail]
    if not said:
        return None
    by = dict(said[0][1][OBJECTS_BY])
    objects = [
        _Object(unit, math.floor(number / by["bin"]), found, label)
        for unit, detail in said
        for number, found, label in detail[OBJECTS]
    ]
    labels = sorted({o.label for o in objects})
    classes = {label: _binned([o for o in objects if o.label == label], by["bin"]) for label in labels}
    return {"by": by, "classes": classes if len(labels) == 1 else {ALL: _binned(objects, by["bin"]), **classes}}


def _binned(objects: Sequence[_Object], width: float) -> dict[str, Any]:
    bins = (
        {"from": place * width, "to": (place + 1) * width, **_rate([o for o in objects if o.bin == place])}
        for place in sorted({o.bin for o in objects})
    )
    return {**_rate(objects), "bins": list(bins)}


def _rate(objects: Sequence[_Object]) -> dict[str, Any]:
    trials = Counter(o.unit for o in objects)
    hits = Counter(o.unit for o in objects if o.found)
    interval = proportion_interval({unit: (hits[unit], count) for unit, count in trials.items()})
    return {
        "found": hits.total(),
        "objects": len(objects),
        "rate": round(hits.total() / len(objects), 4),
        "ci95": [round(float(limit), 4) for limit in (interval.low, interval.high)] if interval else None,
        "ci95_method": interval.method if interval else None,
    }
