# SPDX-License-Identifier: Apache-2.0
"""Settings of a stack file about its detections: score thresholds and class names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import build, param
from mt_nodes.base.yaml_files import refuse_unknown
from mt_nodes.data.detector_coverage import DetectorCoverage


@dataclass(frozen=True)
class Thresholds:
    """Two thresholds with a gap between them, so that a score that wavers about one of them decides nothing.

    ``high``: what the source shows with this score or more is demanded. ``low``: what the follow-up shows with this
    score or more answers.
    """

    high: float
    low: float

    def with_given(self, high: float | None, low: float | None) -> Thresholds:
        """Return thresholds of which one or both are given; the other is this one's.

        Raises UsageError: the low one is above the high one.
        """
        thresholds = Thresholds(self.high if high is None else high, self.low if low is None else low)
        if thresholds.low > thresholds.high:
            alone = "; give both" if None in (high, low) else ""
            raise UsageError(f"score_low {thresholds.low:g} is above score_high {thresholds.high:g}{alone}")
        return thresholds


#: Output of a stack -> default thresholds.
DEFAULT_THRESHOLDS = {
    "detections": Thresholds(0.5, 0.3),
    "boxes": Thresholds(0.9, 0.5),
    **dict.fromkeys(("tracks", "predictions", "signals"), Thresholds(0.5, 0.3)),
}


#: Key for all classes of a stack that are not in its file.
OTHERS = "*"


@dataclass(frozen=True)
class OutputTraits:
    """Thresholds and classes with which a stack's detections and boxes are judged.

    Attributes:
        scores: thresholds by output; :data:`DEFAULT_THRESHOLDS` of those that are not here.
        classes: those that it reports, empty where that is not known.
        coverage: where it looks and how much it finds, by output; of others nothing is known to be absent.
    """

    scores: Mapping[str, Thresholds] = field(default_factory=dict)
    classes: tuple[str, ...] = ()
    coverage: Mapping[str, DetectorCoverage] = field(default_factory=dict)

    def thresholds(self, role: str) -> Thresholds:
        """Return the thresholds of an output."""
        return self.scores.get(role, DEFAULT_THRESHOLDS[role])


def read_classes(value: Any, where: str) -> dict[str, str]:
    """Read ``classes`` of a stack file: ``{1: car, Pedestrian: pedestrian, "*": unknown}``, or a list of its own names.

    Raises UsageError: it is something else.
    """
    rows = {name: name for name in value} if isinstance(value, (list, tuple)) else value
    if not isinstance(rows, Mapping) or not all(isinstance(name, str) and name for name in rows.values()):
        raise UsageError(f"{where}: got {value!r}, expected a mapping such as {{1: car, 2: pedestrian}}, or [car]")
    return {str(own): name for own, name in rows.items()}


@dataclass(frozen=True)
class _Given:
    high: float | None = param(None, low=0.0, high=1.0)
    low: float | None = param(None, low=0.0, high=1.0)


def read_thresholds(value: Any, where: str) -> dict[str, Thresholds]:
    """Read ``scores`` of a stack file: ``{detections: {high: 0.7, low: 0.5}}``; missing values are the defaults.

    Raises UsageError: naming the key, what was got and what was expected.
    """
    if not isinstance(value, Mapping):
        raise UsageError(f"{where}: got {value!r}, expected a mapping such as {{detections: {{high: 0.7, low: 0.5}}}}")
    refuse_unknown(value, DEFAULT_THRESHOLDS, where)
    return {role: _thresholds(role, given, f"{where}.{role}") for role, given in value.items()}


def _thresholds(role: str, value: Any, where: str) -> Thresholds:
    if isinstance(value, Thresholds):
        return value
    given = build(_Given, value, where)
    try:
        return DEFAULT_THRESHOLDS[role].with_given(given.high, given.low)
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from error
