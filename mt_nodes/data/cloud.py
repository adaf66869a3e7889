# SPDX-License-Identifier: Apache-2.0
"""One LiDAR message without ROS."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from mt_nodes.data.intensity.sensor_reading import SensorCloud

Points = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Cloud(SensorCloud):
    """One LiDAR message.

    Attributes:
        stamp_ns: header stamp in nanoseconds.
        points: structured array (N,) whose dtype is the message's layout: field names, offsets, byte order and
            ``itemsize == point_step``; padding bytes are kept. Treat as read-only.
        height: rows of an organised cloud, 1 for an unorganised one; ``N == height * width``.
    """

    topic: str
    stamp_ns: int
    frame_id: str
    points: Points
    height: int = 1
    is_dense: bool = True

    def __len__(self) -> int:
        return len(self.points)

    @property
    def width(self) -> int:
        """Points per row."""
        return len(self.points) // self.height if self.height else 0

    @property
    def organised(self) -> bool:
        """Whether rows carry meaning (height > 1)."""
        return self.height > 1

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the fields, in the order of the message."""
        return tuple(self.points.dtype.names or ())

    @property
    def xyz(self) -> npt.NDArray[Any]:
        """Coordinates (N, 3) in metres; a view without a copy where the layout allows, so read-only."""
        dtype = self.points.dtype
        kinds = [dtype.fields[name][:2] for name in "xyz"] if dtype.fields else []
        same = len({kind for kind, _ in kinds}) == 1
        if same and kinds[0][0].isnative and kinds[0][0].kind == "f" and len(self.points):
            base, size = kinds[0][1], kinds[0][0].itemsize
            if [offset for _, offset in kinds] == [base, base + size, base + 2 * size]:
                return np.lib.stride_tricks.as_strided(
                    self.points["x"], (len(self.points), 3), (self.points.strides[0], size), writeable=False
                )
        return np.stack([self.points[name].astype(np.float64) for name in "xyz"], axis=1).reshape(-1, 3)

    @cached_property
    def reach_m(self) -> tuple[float, float]:
        """The least and the greatest, over all points, of the largest absolute coordinate; NaN if any coordinate is."""
        largest: npt.NDArray[Any] | None = None
        for name in "xyz":
            kind = np.result_type(self.points.dtype[name], np.float32)
            away = np.abs(self.points[name], dtype=kind)
            largest = away if largest is None else np.maximum(largest, away)
        return (float(largest.min()), float(largest.max())) if largest is not None and len(largest) else (0.0, 0.0)

    @property
    def raw(self) -> Points:
        """The points as opaque items of ``point_step`` bytes (N,): what to permute, take and join, padding included."""
        return self.points.view(f"V{self.points.dtype.itemsize}")

    def with_raw(self, raw: Points, *, height: int = 1) -> Cloud:
        """Return this cloud with other points of the same layout, given as :attr:`raw` items (M,)."""
        points = np.ascontiguousarray(raw).view(self.points.dtype)
        return replace(self, points=points, height=height).read_as(self.reading)
