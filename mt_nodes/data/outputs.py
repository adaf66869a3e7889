# SPDX-License-Identifier: Apache-2.0
"""Outputs of a stack: detections, image boxes, commands, paths, diagnostics; others: ``lanes``, ``perception``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mt_nodes.data.output_traits import OTHERS

if TYPE_CHECKING:
    from mt_nodes.data.lanes import Lanes, SignalStates
    from mt_nodes.data.perception import FreeSpace, Predictions

Floats = npt.NDArray[np.float64]


def _renamed(label: npt.NDArray[np.str_], classes: Mapping[str, str]) -> npt.NDArray[np.str_]:
    own, rows = np.unique(label, return_inverse=True)
    names = [classes.get(name, classes.get(OTHERS, name)) for name in own.tolist()]
    return np.array(names, dtype=np.str_)[rows] if len(label) else label


@dataclass(frozen=True, eq=False)
class Detections:
    """Obstacles of one instant, one row each.

    Attributes:
        frame_id: frame of centres, yaw and velocity.
        stamp_ns: stamp of the message, None for a headerless type.
        center_m: (M, 3) box centres. size_m: (M, 3) length, width, height. yaw_rad: (M,) about z.
        label: (M,) class names, ``unknown`` where the stack names none.
        score: (M,) in 0..1, 1 where the stack gives none.
        track_id: (M,) texts, empty where the stack does not track.
        velocity_mps: (M, 3), NaN where unknown. covariance: (M, 6, 6) of x, y, z, roll, pitch, yaw; NaN where unknown.
        traits: (M,) texts of what is known of a person, see :mod:`mt_nodes.data.traits`; empty where nothing is said.
    """

    frame_id: str
    stamp_ns: int | None
    center_m: Floats
    size_m: Floats
    yaw_rad: Floats
    label: npt.NDArray[np.str_]
    score: Floats
    track_id: npt.NDArray[np.str_]
    velocity_mps: Floats
    covariance: Floats
    traits: npt.NDArray[np.str_]

    def __len__(self) -> int:
        return len(self.center_m)

    @classmethod
    def make(
        cls,
        frame_id: str,
        stamp_ns: int | None,
        center_m: npt.ArrayLike,
        size_m: npt.ArrayLike | None = None,
        yaw_rad: npt.ArrayLike | None = None,
        label: Sequence[str] | None = None,
        score: npt.ArrayLike | None = None,
        track_id: Sequence[str] | None = None,
        velocity_mps: npt.ArrayLike | None = None,
        covariance: npt.ArrayLike | None = None,
        traits: Sequence[str] | None = None,
    ) -> Detections:
        """Build from the known values; others get their value for "unknown".

        Raises:
            ValueError: the columns differ in length.
        """
        center = np.asarray(center_m, dtype=np.float64).reshape(-1, 3)
        count = len(center)

        def column(value: Any, default: float, *shape: int) -> Floats:
            if value is None:
                return np.full((count, *shape), default)
            return np.asarray(value, dtype=np.float64).reshape(count, *shape)

        def texts(value: Sequence[str] | None, default: str) -> npt.NDArray[np.str_]:
            rows = [default] * count if value is None else [str(v) for v in value]
            if len(rows) != count:
                raise ValueError(f"got {len(rows)} texts for {count} obstacles")
            return np.array(rows, dtype=np.str_)

        return cls(
            frame_id,
            stamp_ns,
            center,
            column(size_m, 0.0, 3),
            column(yaw_rad, 0.0),
            texts(label, "unknown"),
            column(score, 1.0),
            texts(track_id, ""),
            column(velocity_mps, np.nan, 3),
            column(covariance, np.nan, 6, 6),
            texts(traits, ""),
        )

    @classmethod
    def none(cls, frame_id: str, stamp_ns: int | None) -> Detections:
        """Return an empty output: nothing was detected."""
        return cls.make(frame_id, stamp_ns, np.empty((0, 3)))

    def renamed(self, classes: Mapping[str, str]) -> Detections:
        """Return it with renamed classes; see :meth:`Output.renamed`."""
        return replace(self, label=_renamed(self.label, classes))

    def take(self, rows: npt.NDArray[Any]) -> Detections:
        """Return the rows that an index or boolean array selects."""
        return replace(self, **{column.name: getattr(self, column.name)[rows] for column in fields(self)[2:]})

    @property
    def finite(self) -> npt.NDArray[np.bool_]:
        """(M,) whether a row's box consists of finite numbers."""
        boxes = np.column_stack([self.center_m, self.size_m, self.yaw_rad, self.score])
        return np.asarray(np.isfinite(boxes).all(axis=1))


@dataclass(frozen=True, eq=False)
class ImageBoxes:
    """Detections in one image, one axis-aligned box each.

    Attributes:
        frame_id: of the image. stamp_ns: of the message, None where it carries none.
        box_px: (M, 4) x0, y0, x1, y1: left, upper, right and lower edge; pixel centres lie at whole numbers.
        label: (M,) class names. score: (M,) in 0..1.
    """

    frame_id: str
    stamp_ns: int | None
    box_px: Floats
    label: npt.NDArray[np.str_]
    score: Floats

    def __len__(self) -> int:
        return len(self.box_px)

    @classmethod
    def make(
        cls,
        frame_id: str,
        stamp_ns: int | None,
        box_px: npt.ArrayLike,
        label: Sequence[str] | None = None,
        score: npt.ArrayLike | None = None,
    ) -> ImageBoxes:
        """Build from what is known: without a class ``unknown``, without a score 1.

        Raises:
            ValueError: the columns differ in length.
        """
        boxes = np.asarray(box_px, dtype=np.float64).reshape(-1, 4)
        texts = ["unknown"] * len(boxes) if label is None else [str(text) for text in label]
        scores = np.ones(len(boxes)) if score is None else np.asarray(score, dtype=np.float64).reshape(-1)
        if not len(texts) == len(scores) == len(boxes):
            raise ValueError(f"got {len(texts)} classes and {len(scores)} scores for {len(boxes)} boxes")
        return cls(frame_id, stamp_ns, boxes, np.array(texts, dtype=np.str_), scores)

    @classmethod
    def none(cls, frame_id: str, stamp_ns: int | None) -> ImageBoxes:
        """Return an empty output: nothing was detected."""
        return cls.make(frame_id, stamp_ns, np.empty((0, 4)))

    def renamed(self, classes: Mapping[str, str]) -> ImageBoxes:
        """Return it with renamed classes; see :meth:`Output.renamed`."""
        return replace(self, label=_renamed(self.label, classes))

    def take(self, rows: npt.NDArray[Any]) -> ImageBoxes:
        """Return the rows that an index or boolean array selects."""
        return replace(self, box_px=self.box_px[rows], label=self.label[rows], score=self.score[rows])

    @property
    def finite(self) -> npt.NDArray[np.bool_]:
        """(M,) whether a row consists of finite numbers, its edges in order."""
        boxes = self.box_px
        known = np.isfinite(boxes).all(axis=1) & np.isfinite(self.score)
        return np.asarray(known & (boxes[:, 0] <= boxes[:, 2]) & (boxes[:, 1] <= boxes[:, 3]))


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
ROLES = ("detections", "control", "path", "boxes", "tracks", "predictions", "signals", "lanes", "free_space")
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
    predictions: Predictions | None = None
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
