# SPDX-License-Identifier: Apache-2.0
"""Where a detector looks, and how much of what is there it finds: when "nothing found" means that nothing is there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import build, param
from mt_nodes.base.yaml_files import refuse_unknown

#: Outputs with objects of named classes.
ROLES = ("boxes", "detections")
#: Least recall with which finding nothing counts as absence, and least precision with which a find counts as presence.
#: An assumption: one miss in ten is what a relation of kind ``expected`` forgives.
LEAST_SHARE = 0.9


def _shares(value: Any, where: str) -> dict[str, float]:
    rows = value if isinstance(value, Mapping) else {}
    numbers = [v for v in rows.values() if isinstance(v, (int, float)) and not isinstance(v, bool) and 0.0 <= v <= 1.0]
    if not rows or len(numbers) != len(rows):
        raise UsageError(f"{where}: got {value!r}, expected a share from 0 to 1 by class, such as {{pedestrian: 0.93}}")
    return {str(name): float(share) for name, share in rows.items()}


def _condition(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise UsageError(f"{where}: got {value!r}, expected a condition such as scene_bright")
    return value


@dataclass(frozen=True)
class DetectorCoverage:
    """What an output is known to find. A class without a recall is never absent, one without a precision never present.

    ``recall``, ``precision``: shares by class, measured within range and field of view under the condition.
    ``measured``: on which data; it is quoted wherever an absence is used.
    """

    range_m: float = param(50.0, low=1.0, high=300.0, unit="m", help="up to which it looks")
    field_of_view_deg: float = param(360.0, low=1.0, high=360.0, unit="deg", help="about straight ahead")
    recall: dict[str, float] = param({}, convert=_shares, help="share of what is there that it finds, by class")
    precision: dict[str, float] = param({}, convert=_shares, help="share of what it finds that is there, by class")
    given: str = param("", convert=_condition, help="condition on the scene under which both were measured")
    measured: str = param("", help="data on which both were measured")

    def __post_init__(self) -> None:
        if (self.recall or self.precision) and not self.measured:
            raise UsageError("got recall or precision without measured, expected on which data they were measured")

    @property
    def place(self) -> str:
        """Where it looks, in words."""
        ahead = "" if self.field_of_view_deg == 360.0 else f" and {self.field_of_view_deg / 2.0:g}° to either side"
        return f"within {self.range_m:g} m{ahead}"


def read_coverage(value: Any, where: str) -> dict[str, DetectorCoverage]:
    """Read ``coverage`` of a stack file: a :class:`DetectorCoverage` by output. Raises UsageError."""
    if not isinstance(value, Mapping):
        raise UsageError(f"{where}: got {value!r}, expected a mapping such as {{boxes: {{range_m: 40, …}}}}")
    refuse_unknown(value, ROLES, where)
    return {
        role: given if isinstance(given, DetectorCoverage) else build(DetectorCoverage, given, f"{where}.{role}")
        for role, given in value.items()
    }
