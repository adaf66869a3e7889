# SPDX-License-Identifier: Apache-2.0
"""Obstacles and boxes in an image, as stacks detect them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Mask
from mt_nodes.data.output_traits import OTHERS


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

        Raises ValueError: the columns differ in length.
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
        return Detections(self.frame_id, self.stamp_ns, *(getattr(self, name)[rows] for name in _columns()))

    @property
    def finite(self) -> Mask:
        """(M,) whether a row's box consists of finite numbers."""
        boxes = np.column_stack([self.center_m, self.size_m, self.yaw_rad, self.score])
        return np.asarray(np.isfinite(boxes).all(axis=1))


@cache
def _columns() -> list[str]:
    """Return the names of the columns of :class:`Detections`, in order."""
    return [column.name for column in fields(Detections)[2:]]


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

        Raises ValueError: the columns differ in length.
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
    def finite(self) -> Mask:
        """(M,) whether a row consists of finite numbers, its edges in order."""
        boxes = self.box_px
        known = np.isfinite(boxes).all(axis=1) & np.isfinite(self.score)
        return np.asarray(known & (boxes[:, 0] <= boxes[:, 2]) & (boxes[:, 1] <= boxes[:, 3]))
