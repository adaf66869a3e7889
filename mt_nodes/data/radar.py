# SPDX-License-Identifier: Apache-2.0
"""Detections of a radar: places, Doppler speeds and strengths in the layouts that drivers publish.

Two-dimensional and imaging radars publish ``PointCloud2`` with a field for the Doppler speed and one for the strength,
or ``radar_msgs/RadarScan``; radars that track publish ``radar_msgs/RadarTracks``
(https://github.com/ros-perception/radar_msgs).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Rows
from mt_nodes.base.errors import UsageError
from mt_nodes.data.cloud import Cloud, Points

#: Names of a field with the Doppler speed (in lower case), of its value without the sensor's own motion, and of the
#: strength. A LiDAR that measures speeds has an intensity instead, so that is not among them.
DOPPLER = ("doppler", "doppler_velocity", "v_r", "radial_speed", "radial_velocity", "range_rate", "velocity", "vr")
COMPENSATED = ("v_r_compensated", "v_r_comp", "doppler_compensated")
STRENGTH = ("rcs", "amplitude", "power", "snr")
#: Fields with polar coordinates beside Cartesian ones.
RANGE, AZIMUTH, ELEVATION = ("range", "r"), ("azimuth", "azimuth_angle"), ("elevation", "elevation_angle")
_SPEEDS, _OWN_SPEEDS = ("vx", "vy", "vz"), ("vx_comp", "vy_comp", "vz_comp")


def is_radar(fields: Iterable[str]) -> bool:
    """Return whether a point cloud with these fields is a radar's: it has speeds along the rays, and strengths."""
    names = {name.lower() for name in fields}
    speeds = bool(names & {*DOPPLER}) or {"vx", "vy"} <= names
    return {"x", "y"} <= names and speeds and bool(names & {*STRENGTH})


@dataclass(frozen=True, eq=False)
class Radar(Cloud):
    """One radar message; a row for each detection, or for each track.

    Doppler speeds are range rates, positive for what goes away, relative to the moving sensor, as of Continental's
    ARS 400 series (nuScenes), ZF's FRGen21 (View-of-Delft) and most drivers (assumed of those that do not say).
    ``type``: message type on the wire. ``points`` of a ``RadarScan`` have its five fields and no x, y, z; those of
    ``RadarTracks`` have the columns of :data:`mt_nodes.data.cdr.further_messages.TRACK`.
    """

    type: str = "sensor_msgs/msg/PointCloud2"

    def named(self, names: Iterable[str]) -> str | None:
        """Return the field that has one of these names, in any case; None without one."""
        own = {name.lower(): name for name in self.fields}
        return next((own[name] for name in names if name in own), None)

    @property
    def tracks(self) -> bool:
        """Whether rows are tracks with an identity: none can be added without a history."""
        return self.type.endswith("RadarTracks")

    @property
    def xyz(self) -> Floats:
        """Coordinates (N, 3) in metres in the sensor's frame."""
        if "x" in self.fields:
            columns = [self.points[n] if n in self.fields else np.zeros(len(self)) for n in "xyz"]
            return np.stack([column.astype(np.float64) for column in columns], axis=1)
        return cartesian(*self._polar_fields)

    @property
    def polar(self) -> tuple[Floats, Floats, Floats]:
        """Range in metres, azimuth (to the left) and elevation in radians, each (N,)."""
        return polar(self.xyz) if "x" in self.fields else self._polar_fields

    @property
    def _polar_fields(self) -> tuple[Floats, Floats, Floats]:
        values = (self.points[name].astype(np.float64) for name in ("range", "azimuth", "elevation"))
        return next(values), next(values), next(values)

    @property
    def doppler_mps(self) -> Floats:
        """Range rate (N,) relative to the sensor, positive for what goes away."""
        field = self.named(DOPPLER)
        return self.points[field].astype(np.float64) if field else self._radial(_SPEEDS)

    @property
    def strength_db(self) -> Floats:
        """Strength (N,) in decibels: radar cross-section, power or amplitude, on the sensor's own scale; 0 if none."""
        field = self.named(STRENGTH)
        return self.points[field].astype(np.float64) if field else np.zeros(len(self))

    def take(self, rows: npt.NDArray[Any]) -> Radar:
        """Return some of the detections."""
        return replace(self, points=np.ascontiguousarray(self.raw[rows]).view(self.points.dtype))

    def moved(
        self,
        rows: Rows,
        place: tuple[Floats, Floats, Floats] | None = None,
        doppler_mps: Floats | None = None,
        strength_db: Floats | None = None,
    ) -> Radar:
        """Return it with other values of some detections, in every field that has them.

        ``rows``: (n,) of the detections. ``place``: range, azimuth, elevation, each (n,), as of :attr:`polar`.
        ``doppler_mps``, ``strength_db``: (n,). Without a Doppler speed the old one stays, in a new direction, too.
        """
        raw = self.raw.copy()
        changed = replace(self, points=raw.view(self.points.dtype))
        before = self.doppler_mps[rows]
        by = np.zeros(len(rows)) if doppler_mps is None else doppler_mps - before
        if place is not None:
            _write_place(changed, rows, place)
        for field in filter(None, (self.named(DOPPLER), self.named(COMPENSATED))):
            _write(changed.points, field, rows, self.points[field][rows] + by)
        for speeds in (_SPEEDS, _OWN_SPEEDS):
            if set(speeds[:2]) <= set(self.fields):
                wanted = self._radial(speeds)[rows] + by
                changed._write_radial(speeds, rows, wanted)
        if strength_db is not None:
            louder = strength_db - self.strength_db[rows]
            for field in self.strength_fields:
                _write(changed.points, field, rows, self.points[field][rows] + louder)
        if place is not None and self.named(("rcs",)):
            # What is no cross-section falls with the fourth power of the range.
            fainter = -40.0 * np.log10(np.maximum(place[0], 1e-3) / np.maximum(self.polar[0][rows], 1e-3))
            for field in (name for name in self.strength_fields if name.lower() != "rcs"):
                _write(changed.points, field, rows, changed.points[field][rows] + fainter)
        return changed

    @property
    def place_fields(self) -> tuple[str, ...]:
        """Fields with coordinates, Cartesian or polar."""
        polar_names = filter(None, (self.named(names) for names in (RANGE, AZIMUTH, ELEVATION)))
        return (*(name for name in "xyz" if name in self.fields), *polar_names)

    @property
    def speed_fields(self) -> tuple[str, ...]:
        """Fields with speeds."""
        scalar = filter(None, (self.named(DOPPLER), self.named(COMPENSATED)))
        return (*scalar, *(name for name in (*_SPEEDS, *_OWN_SPEEDS) if name in self.fields))

    @property
    def strength_fields(self) -> tuple[str, ...]:
        """Fields with strengths in decibels."""
        return tuple(name for name in self.fields if name.lower() in STRENGTH)

    def _radial(self, speeds: tuple[str, ...]) -> Floats:
        """Return the part (N,) along the ray of speeds given by components."""
        return np.asarray((self._directions(speeds) * self._components(speeds)).sum(axis=1))

    def _write_radial(self, speeds: tuple[str, ...], rows: Rows, wanted_mps: Floats) -> None:
        direction = self._directions(speeds)[rows]
        by = wanted_mps - self._radial(speeds)[rows]
        for i, name in enumerate(name for name in speeds if name in self.fields):
            _write(self.points, name, rows, self.points[name][rows] + by * direction[:, i])

    def _components(self, speeds: tuple[str, ...]) -> Floats:
        return np.stack([self.points[name].astype(np.float64) for name in speeds if name in self.fields], axis=1)

    def _directions(self, speeds: tuple[str, ...]) -> Floats:
        """Return unit vectors (N, 2 or 3) of the rays, in as many dimensions as there are components."""
        xyz = self.xyz[:, : sum(name in self.fields for name in speeds)]
        return np.asarray(xyz / np.maximum(np.linalg.norm(xyz, axis=1, keepdims=True), 1e-9))


def radar_of(cloud: Cloud) -> Radar:
    """Return a point cloud as the detections of a radar. Raises UsageError: it has no Doppler speeds."""
    if not {name.lower() for name in cloud.fields} & {*DOPPLER} and not {"vx", "vy"} <= set(cloud.fields):
        raise UsageError(
            f"{cloud.topic}: got fields {', '.join(cloud.fields)}, expected a radar's Doppler speed: one of "
            f"{', '.join(DOPPLER)}, or vx and vy"
        )
    return Radar(cloud.topic, cloud.stamp_ns, cloud.frame_id, cloud.points, cloud.height, cloud.is_dense)


def joined(radar: Radar, others: Radar) -> Radar:
    """Return detections followed by others of the same layout; new ones get ids that none has, where there are ids."""
    points = np.concatenate([radar.raw, others.raw]).view(radar.points.dtype)
    if "id" in radar.fields and radar.points.dtype["id"].kind in "iu":
        free = np.setdiff1d(np.arange(len(points)), radar.points["id"].astype(np.int64))[: len(others)]
        points["id"][len(radar) :] = free
    return replace(radar, points=points, height=1)


def polar(xyz: Floats) -> tuple[Floats, Floats, Floats]:
    """Return range, azimuth and elevation, each (N,), of places (N, 3)."""
    across = np.hypot(xyz[:, 0], xyz[:, 1])
    return np.hypot(across, xyz[:, 2]), np.arctan2(xyz[:, 1], xyz[:, 0]), np.arctan2(xyz[:, 2], across)


def cartesian(range_m: Floats, azimuth_rad: Floats, elevation_rad: Floats) -> Floats:
    """Return places (N, 3) of range, azimuth and elevation, each (N,)."""
    across = range_m * np.cos(elevation_rad)
    return np.stack([across * np.cos(azimuth_rad), across * np.sin(azimuth_rad), range_m * np.sin(elevation_rad)], 1)


def _write_place(radar: Radar, rows: Rows, place: tuple[Floats, Floats, Floats]) -> None:
    values = dict(zip("xyz", cartesian(*place).T, strict=True))
    for names, column in zip((RANGE, AZIMUTH, ELEVATION), place, strict=True):
        if name := radar.named(names):
            degrees = _in_degrees(radar.points[name], names)
            values[name] = np.degrees(column) if degrees else column
    for name, value in values.items():
        if name in radar.fields:
            _write(radar.points, name, rows, value)


def _in_degrees(column: Points, names: tuple[str, ...]) -> bool:
    """Return whether angles are in degrees: one beyond a half turn cannot be in radians."""
    return names is not RANGE and bool(len(column)) and float(np.abs(column).max()) > np.pi + 1e-3


def _write(points: Points, name: str, rows: Rows, value: npt.NDArray[Any]) -> None:
    dtype = points.dtype[name]
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        value = np.clip(np.rint(value), limits.min, limits.max)
    points[name][rows] = value
