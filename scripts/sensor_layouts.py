# SPDX-License-Identifier: Apache-2.0
"""A scan in the layouts and intensity conventions of other sensors: one scene, as each of them would publish it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mt_nodes.base.errors import UsageError, suggest
from mt_nodes.data.intensity.echo_fields import EchoField, write_values
from mt_nodes.data.intensity.intensity_conventions import CONVENTIONS, IntensityConvention
from mt_nodes.data.messages import Cloud, Points

Floats = npt.NDArray[np.float64]

_XYZ = [(name, "<f4") for name in "xyz"]
#: Scales of conventions that fix none, of the order of published clouds: signals of some hundreds (ouster-sdk issue
#: 128), Waymo's intensities of some tenths.
_WHITE = {"ouster_signal": 1.2e5, "waymo": 0.7}
#: Light of the surroundings on an Ouster, photons: any number that no echo depends on.
_AMBIENT = 300


@dataclass(frozen=True, eq=False)
class SensorLayout:
    """A layout of points, and the conventions of its fields with the strength of an echo.

    Attributes:
        whole: whether values are rounded although the type is a floating-point one.
        source: of the layout.
    """

    dtype: np.dtype[Any]
    conventions: Mapping[str, str]
    source: str
    whole: bool = True
    white: Mapping[str, float] = field(default_factory=lambda: _WHITE)

    def convention(self, name: str) -> IntensityConvention:
        """Return the convention of a field, with its scale."""
        row = CONVENTIONS[self.conventions[name]]
        return replace(row, white=self.white[row.name]) if np.isnan(row.white) else row

    def values(self, name: str, reflectivity: Floats, range_m: Floats) -> Points:
        """Return the values (n,) of a field for surfaces of some reflectivity (n,) at ranges (n,)."""
        row = self.convention(name)
        values = row.values(reflectivity, range_m)
        points = np.empty(0, self.dtype)
        return EchoField(name, row, row.top).as_field(points, np.rint(values) if self.whole else values)


def _of(*fields: tuple[str, str]) -> np.dtype[Any]:
    return np.dtype([*_XYZ, *fields])


_OUSTER = np.dtype(
    {
        "names": ["x", "y", "z", "intensity", "t", "reflectivity", "ring", "ambient", "range"],
        "formats": ["<f4", "<f4", "<f4", "<f4", "<u4", "<u2", "<u2", "<u2", "<u4"],
        "offsets": [0, 4, 8, 16, 20, 24, 26, 28, 32],
        "itemsize": 48,
    }
)
SENSOR_LAYOUTS: dict[str, SensorLayout] = {
    "kitti": SensorLayout(_of(("intensity", "<f4")), {"intensity": "kitti"}, "KITTI raw data", whole=False),
    "velodyne": SensorLayout(
        _of(("intensity", "<f4"), ("ring", "<u2"), ("time", "<f4")), {"intensity": "velodyne"}, "ROS driver velodyne"
    ),
    "nuscenes": SensorLayout(_of(("intensity", "<f4"), ("ring", "<f4")), {"intensity": "velodyne"}, "nuScenes"),
    "argoverse2": SensorLayout(
        _of(("intensity", "u1"), ("laser_number", "u1"), ("offset_ns", "<i4")), {"intensity": "velodyne"}, "Argoverse 2"
    ),
    "ouster": SensorLayout(
        _OUSTER, {"intensity": "ouster_signal", "reflectivity": "ouster_reflectivity"}, "ouster-ros, os_point.h"
    ),
    "ouster_signal": SensorLayout(
        _of(("intensity", "<f4"), ("ring", "<u2")), {"intensity": "ouster_signal"}, "an Ouster's cloud as PointXYZIR"
    ),
    "hesai": SensorLayout(
        _of(("intensity", "<f4"), ("timestamp", "<f8"), ("ring", "<u2")), {"intensity": "hesai"}, "HesaiLidar_ROS_2.0"
    ),
    "livox": SensorLayout(
        _of(("intensity", "<f4"), ("tag", "u1"), ("line", "u1"), ("timestamp", "<f8")),
        {"intensity": "livox"},
        "livox_ros_driver2, PointXYZRTLT",
    ),
    "waymo": SensorLayout(
        _of(("intensity", "<f4"), ("elongation", "<f4")), {"intensity": "waymo"}, "Waymo Open Dataset", whole=False
    ),
}


def as_sensor(cloud: Cloud, name: str) -> Cloud:
    """Return the returns of a cloud as another sensor would publish them: its layout, its conventions, rounded.

    Ring and time are kept under the layout's names for them. How the result is read is for it to tell.

    Raises:
        UsageError: there is no such layout.
        NotApplicable: it is in doubt what the cloud's own intensities mean.
    """
    if name not in SENSOR_LAYOUTS:
        raise UsageError(f"no sensor layout '{name}'{suggest(name, SENSOR_LAYOUTS)}")
    layout, xyz = SENSOR_LAYOUTS[name], cloud.xyz.astype(np.float64)
    range_m = np.linalg.norm(xyz, axis=1)
    rho = cloud.echoes.reflectivity(cloud.points, slice(None), range_m).astype(np.float64)
    points = np.zeros(len(cloud), layout.dtype)
    for axis, column in zip("xyz", xyz.T, strict=True):
        points[axis] = column
    for own in layout.conventions:
        points[own] = layout.values(own, rho, range_m)
    for own, values in _beside(cloud, range_m).items():
        if own in (layout.dtype.names or ()):
            points[own] = values
    return replace(cloud, points=points)


def _beside(cloud: Cloud, range_m: Floats) -> dict[str, Any]:
    """Return values of fields that repeat ring, time and range, under the names of all layouts."""
    names = cloud.fields
    number = cloud.points["ring"].astype(np.int64) if "ring" in names else np.zeros(len(cloud), np.int64)
    time_s = cloud.points["time"].astype(np.float64) if "time" in names else np.zeros(len(cloud))
    ring = {"ring": number, "laser_number": number, "line": number % 6}
    time = {"time": time_s, "timestamp": cloud.stamp_ns * 1e-9 + time_s, "offset_ns": time_s * 1e9, "t": time_s * 1e9}
    return {**ring, **time, "range": np.rint(range_m * 1e3), "ambient": _AMBIENT}


def dual_return(cloud: Cloud, rng: np.random.Generator, share: float = 0.2) -> Cloud:
    """Return a cloud as a sensor in dual-return mode gives it: a share of the firings has a return before its own.

    As from leaves and wires, which part of the beam passes: at 30 to 90 % of the range, of reflectivity 0.05 to 0.5,
    with the laser, time and ray of the firing's own return, right before it. The cloud is not organised.
    """
    rows = np.flatnonzero(rng.random(len(cloud)) < share)
    nearer = rng.uniform(0.3, 0.9, len(rows))
    added = cloud.raw.take(rows)
    points = added.view(cloud.points.dtype)
    for axis in "xyz":
        points[axis] = points[axis] * nearer
    range_m = np.linalg.norm(np.stack([points[axis] for axis in "xyz"]), axis=0).astype(np.float64)
    write_values(points, slice(None), cloud.echoes.values(cloud.points, rng.uniform(0.05, 0.5, len(rows)), range_m))
    for name in filter(cloud.single, ("range", "distance")):
        points[name] = points[name] * nearer
    return replace(cloud, points=np.insert(cloud.raw, rows, added).view(cloud.points.dtype))
