# SPDX-License-Identifier: Apache-2.0
"""The obstacle that a verdict is about: its class and its range, as far as the check names them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from mt_nodes.data.polar_cells import JUDGED_IN
from mt_nodes.data.verdict import OBJECTS, OBJECTS_BY

#: Keys of a verdict's detail with rows [x m, y m, class]; the first that has any counts.
_PLACES = ("lost_at", "gained_at", "changed_at")
#: The same in a camera image, rows [x0, y0, x1, y1, class] in pixels, which have no range.
_BOXES = ("lost_px", "gained_px")


class VerdictObstacle(NamedTuple):
    """Classes of the obstacles, sorted and joined by ``;``, empty if unknown; range of the nearest in m, or None.

    Ranges are from the origin of the frame that the check judges in.
    """

    classes: str = ""
    range_m: float | None = None


def obstacle_of(detail: Mapping[str, Any]) -> VerdictObstacle:
    """Return the obstacle that a verdict is about, from its ``detail``.

    That is the lost one, else the gained, else the changed one; where objects were added, those that were not found,
    else all. A pair that holds may have only the classes that were judged.
    """
    if rows := _first(detail, _PLACES):
        return VerdictObstacle(
            _classes(row[2:] for row in rows), round(min(math.hypot(row[0], row[1]) for row in rows), 2)
        )
    if rows := _first(detail, _BOXES):
        return VerdictObstacle(_classes(row[4:] for row in rows))
    if rows := detail.get(OBJECTS, ()):
        missed = [row for row in rows if not row[1]] or rows
        in_metres = detail.get(OBJECTS_BY, {}).get("unit") == "m"
        return VerdictObstacle(
            _classes(row[2:] for row in missed), min(row[0] for row in missed) if in_metres else None
        )
    return VerdictObstacle(";".join(sorted(detail.get(JUDGED_IN, ()))))


def _first(detail: Mapping[str, Any], names: Sequence[str]) -> Sequence[Sequence[Any]]:
    return next((rows for name in names if (rows := detail.get(name))), ())


def _classes(labels: Any) -> str:
    return ";".join(sorted({str(label[0]) for label in labels if label}))
