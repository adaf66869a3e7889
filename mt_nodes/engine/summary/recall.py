# SPDX-License-Identifier: Apache-2.0
"""How many of the objects that were added are found: by class, and by a number that tells them apart, as range does."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any

from mt_nodes.base.stats.cluster_sums import MIN_CLUSTERS, ClusterSums, Unit
from mt_nodes.base.stats.intervals import interval_of
from mt_nodes.data.verdict import OBJECTS, OBJECTS_BY

ALL = "all"

Detail = Mapping[str, Any]


def about_objects(detail: Detail) -> Detail:
    """Return what of a verdict's detail is about single objects; nothing where it does not say what they go by."""
    return {name: detail[name] for name in (OBJECTS, OBJECTS_BY)} if {OBJECTS, OBJECTS_BY} <= detail.keys() else {}


class Recall:
    """Counts objects that were found, pair by pair."""

    def __init__(self) -> None:
        self._axis: dict[str, Any] | None = None
        #: By class (None: all together) and bin (None: all of them).
        self._rates: dict[tuple[str | None, int | None], ClusterSums] = {}

    def take(self, unit: Unit, detail: Detail) -> None:
        """Count what a decided pair says of single objects, which may be nothing: see :func:`about_objects`."""
        if not detail:
            return
        self._axis = axis = self._axis or dict(detail[OBJECTS_BY])
        for number, found, label in detail[OBJECTS]:
            place = math.floor(number / axis["bin"])
            for key in itertools.product((None, label), (None, place)):
                self._rates.setdefault(key, ClusterSums(MIN_CLUSTERS, 2)).add(unit, int(found), 1)

    def plain(self) -> dict[str, Any] | None:
        """Return what was found, None where nothing was said.

        Returns:
            ``by``: name, unit and bin of the number. ``classes``: how many were found of each class, of all together
            first where there are several: ``found`` of ``objects``, ``rate``, ``ci95`` and its method; the same of
            every bin that has an object in ``bins``, ``from`` and ``to`` its limits. Intervals are Wilson's, as those
            of all rates.
        """
        if self._axis is None or not self._rates:
            return None
        labels = sorted({label for label, _ in self._rates if label is not None})
        by_class = {label: self._binned(label, self._axis["bin"]) for label in labels}
        return {
            "by": self._axis,
            "classes": by_class if len(labels) == 1 else {ALL: self._binned(None, self._axis["bin"]), **by_class},
        }

    def _binned(self, label: str | None, width: float) -> dict[str, Any]:
        places = sorted(place for of, place in self._rates if of == label and place is not None)
        bins = [
            {"from": place * width, "to": (place + 1) * width, **_rate(self._rates[label, place])} for place in places
        ]
        return {**_rate(self._rates[label, None]), "bins": bins}


def _rate(sums: ClusterSums) -> dict[str, Any]:
    found, objects = sums.finest.sums.sum(axis=0).tolist()
    interval = interval_of(sums.finest)
    return {
        "found": found,
        "objects": objects,
        "rate": round(found / objects, 4),
        "ci95": [round(float(limit), 4) for limit in (interval.low, interval.high)] if interval else None,
        "ci95_method": interval.method if interval else None,
    }
