# SPDX-License-Identifier: Apache-2.0
"""Outputs of a stack: detections, image boxes, commands, paths, diagnostics; others: ``lanes``, ``perception``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats
from mt_nodes.data.detections import Detections as Detections
from mt_nodes.data.detections import ImageBoxes as ImageBoxes
from mt_nodes.data.lanes import Lanes, SignalStates
from mt_nodes.data.perception import FreeSpace, PredictedObjects


@dataclass(frozen=True)
class Control:
    """One command of the stack; what its message does not carry is NaN.

    Attributes:
        steering_rad: road-wheel angle, positive to the left. yaw_rate_radps: for stacks that command it instead.
        throttle, brake: 0..1.
    """

    stamp_ns: int | None
    steering_rad: float = float("nan")
    speed_mps: float = float("nan")
    acceleration_mps2: float = float("nan")
    yaw_rate_radps: float = float("nan")
    throttle: float = float("nan")
    brake: float = float("nan")

    @property
    def endless(self) -> list[str]:
        """Names of the infinite values, which no actuator can take."""
        return [name for name, value in vars(self).items() if value is not None and math.isinf(value)]


@dataclass(frozen=True)
class Diagnostics:
    """Diagnostics of a stack's nodes: the texts of statuses at level ERROR, by name."""

    errors: dict[str, str]


@dataclass(frozen=True, eq=False)
class Path:
    """A planned trajectory, or the middle of a lane: pose (K, 3) x, y, yaw; speed_mps (K,) and time_s (K,), NaN where
    not given. Without poses it says that there is none.
    """

    frame_id: str
    stamp_ns: int | None
    pose: Floats
    speed_mps: Floats
    time_s: Floats

    @classmethod
    def make(cls, frame_id: str, stamp_ns: int | None, pose: npt.ArrayLike) -> Path:
        """Build from poses (K, 3) alone."""
        rows = np.asarray(pose, dtype=np.float64).reshape(-1, 3)
        return cls(frame_id, stamp_ns, rows, np.full(len(rows), np.nan), np.full(len(rows), np.nan))


#: Parts of an answer, and those of them with class names.
ROLES = ("detections", "control", "boxes", "path", "tracks", "predictions", "signals", "lanes", "free_space")
RENAMED = ("detections", "boxes", "tracks", "predictions", "signals")


@dataclass(frozen=True, eq=False)
class Output:
    """All outputs of one arm for one input.

    ``extra`` holds outputs of other kinds by role name. None of the parts is set when the arm was silent.
    ``diagnostics``, what was heard of them since the last answer, is beside the answer and no part of it.
    ``tracks`` are obstacles with ids and velocities of a stack that publishes these beside its ``detections``.
    """

    detections: Detections | None = None
    control: Control | None = None
    path: Path | None = None
    boxes: ImageBoxes | None = None
    diagnostics: Diagnostics | None = None
    extra: dict[str, Any] = field(default_factory=dict)
    answer_ms: float | None = None
    tracks: Detections | None = None
    predictions: PredictedObjects | None = None
    signals: SignalStates | None = None
    lanes: Lanes | None = None
    free_space: FreeSpace | None = None

    def renamed(self, classes: Mapping[str, str]) -> Output:
        """Return it with renamed classes; the key ``*`` is for all others."""
        if not classes:
            return self
        known = {role: part for role in RENAMED if (part := getattr(self, role)) is not None}
        return replace(self, **{role: part.renamed(classes) for role, part in known.items()})

    @property
    def silent(self) -> bool:
        """Whether the arm had no output at all."""
        return all(getattr(self, role) is None for role in ROLES) and not self.extra
