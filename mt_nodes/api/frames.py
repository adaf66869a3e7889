# SPDX-License-Identifier: Apache-2.0
"""Frames of a bag, for Python: what the sensors gave at one instant."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Pixels
from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.data.bags.bundles import BagSource, sensors_of
from mt_nodes.data.ego.ego_track import EgoTrack
from mt_nodes.data.intensity.intensity_conventions import read_intensities
from mt_nodes.data.messages import Bundle, Cloud, Episode, Image
from mt_nodes.data.transforms import load_transforms
from mt_nodes.stacks.callable_host import as_points, as_radar

SENSORS = ("lidar", "camera", "radar")
Points = npt.NDArray[np.float32]
_POINT = np.dtype([(name, np.float32) for name in ("x", "y", "z", "intensity")])


@dataclass(frozen=True, eq=False, repr=False)
class Frame:
    """All sensor messages of one instant. It does not change: arrays are read-only, :func:`mutate` returns another one.

    Attributes:
        bundle: the decoded messages with all their fields, their topics, and the transforms of that instant.
    """

    bundle: Bundle
    _drive: Episode | None = field(default=None, repr=False)

    @property
    def index(self) -> int:
        """Number of the frame in its bag, from 0."""
        return self.bundle.index

    @property
    def stamp_ns(self) -> int:
        """Stamp of the leading sensor in ns: the LiDAR, without one the camera, else the radar."""
        return self.bundle.stamp_ns

    @cached_property
    def clouds(self) -> dict[str, Points]:
        """Points (N, 4) float32 x, y, z in m and intensity by topic, each in the frame of its sensor."""
        return {c.topic: _read_only(as_points(c, c.frame_id, self.bundle.transforms)) for c in self.bundle.clouds}

    @property
    def points(self) -> Points:
        """Points (N, 4) of the first LiDAR, as a callable is given them.

        Raises:
            UsageError: the frame has no cloud.
        """
        return next(iter(self.clouds.values())) if self.clouds else self._lacking("cloud")

    def points_in(self, frame_id: str) -> Points:
        """Return the points (N, 4) of the first LiDAR in another frame, such as ``base_link``.

        Raises:
            UsageError: the frame has no cloud, or no transform leads there.
        """
        if not self.bundle.clouds:
            self._lacking("cloud")
        return _read_only(as_points(self.bundle.clouds[0], frame_id, self.bundle.transforms))

    @cached_property
    def images(self) -> dict[str, Pixels]:
        """Images (H, W, 3) uint8, red, green, blue, by topic."""
        from mt_nodes.data.images.codecs import decode  # imports OpenCV

        return {image.topic: _read_only(decode(image).rgb8()) for image in self.bundle.images}

    @property
    def image(self) -> Pixels:
        """Image (H, W, 3) of the first camera, as a callable is given it.

        Raises:
            UsageError: the frame has no image.
        """
        return next(iter(self.images.values())) if self.images else self._lacking("image")

    @cached_property
    def radars(self) -> dict[str, Points]:
        """Detections (N, 6) float32 by topic, each in the frame of its radar.

        Columns: x, y, z, range rate, strength, azimuth, as of :func:`mt_nodes.stacks.callable_host.as_radar`.
        """
        return {r.topic: _read_only(as_radar(r, r.frame_id, self.bundle.transforms)) for r in self.bundle.radars}

    @property
    def frame_id(self) -> str:
        """Coordinate frame of the leading sensor."""
        return self.lead.frame_id

    @property
    def lead(self) -> Cloud | Image:
        """Message of the leading sensor.

        Raises:
            UsageError: the frame has no message of a sensor.
        """
        messages: tuple[Cloud | Image, ...] = (*self.bundle.clouds, *self.bundle.images, *self.bundle.radars)
        return messages[0] if messages else self._lacking("cloud, image or radar message")

    @property
    def sensors(self) -> tuple[str, ...]:
        """Kinds of sensors of the frame: ``lidar``, ``camera``, ``radar``."""
        given = (self.bundle.clouds, self.bundle.images, self.bundle.radars)
        return tuple(name for name, messages in zip(SENSORS, given, strict=True) if messages)

    @classmethod
    def of_arrays(
        cls,
        points: npt.ArrayLike | None = None,
        image: npt.ArrayLike | None = None,
        *,
        frame_id: str = "base_link",
        index: int = 0,
        stamp_ns: int = 0,
    ) -> Frame:
        """Return a frame of your own arrays.

        Args:
            points: (N, 3) or (N, 4) x, y, z in m and intensity.
            image: (H, W, 3) uint8, red, green, blue.
            frame_id: coordinate frame of both.
            index: number of the frame, on which draws depend.
            stamp_ns: its stamp.

        Raises:
            UsageError: an array has another shape, or there is none.
        """
        clouds = () if points is None else (Cloud("/points", stamp_ns, frame_id, _structured(points)),)
        images = () if image is None else (Image("/image", stamp_ns, frame_id, _pixels(image), "rgb8"),)
        if not (clouds or images):
            raise UsageError("Frame.of_arrays: got neither points nor an image, expected one of them")
        return cls(Bundle(0, index, stamp_ns, clouds=clouds, images=images))

    def earlier(self) -> Iterator[Bundle]:
        """Yield the bundles before this one, from the beginning of its bag; none for a frame of your own arrays."""
        for bundle in () if self._drive is None else self._drive():
            if bundle.index >= self.index:
                return
            yield bundle

    def with_bundle(self, bundle: Bundle) -> Frame:
        """Return another frame of the same drive."""
        return Frame(bundle, self._drive)

    def _lacking(self, what: str) -> NoReturn:
        has = ", ".join(self.sensors) or "no sensor"
        raise UsageError(f"frame {self.index} at {self.stamp_ns} ns has no {what}; it has {has}")

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """For IPython and Hypothesis, which would print every field of a dataclass."""
        printer.text(repr(self))

    def __repr__(self) -> str:
        sizes = [f"{c.topic} {len(c):,} points" for c in self.bundle.clouds] + [i.topic for i in self.bundle.images]
        sizes += [f"{radar.topic} {len(radar)} detections" for radar in self.bundle.radars]
        return f"<{type(self).__name__} {self.index} at {self.stamp_ns} ns: {', '.join(sizes) or 'no sensor'}>"


def frames(
    bag: str | os.PathLike[str],
    *,
    sensors: Sequence[str] = (),
    topics: Mapping[str, str] | None = None,
    transforms: str | os.PathLike[str] = "",
    limit: int | None = None,
    intensities: Mapping[str, Any] | None = None,
) -> Iterator[Frame]:
    """Return the frames of a bag, one by one.

    Args:
        bag: bag directory, ``.mcap``, ``.db3`` or ROS 1 ``.bag``, or a data set such as ``kitti:DIR``.
        sensors: ``lidar``, ``camera``, ``radar``; default: all that the bag has one topic of.
        topics: role -> topic, such as ``{"lidar": "/points"}``, where the bag has several candidates.
        transforms: YAML file with transforms that the bag lacks.
        limit: frames at most.
        intensities: LiDAR topic -> intensity convention, such as ``{"/points": "ouster_signal"}``; default: recognised.

    Raises:
        UsageError: no such bag, or it has no such sensor.
        InfrastructureError: it is damaged, or has no frame.
    """
    if limit is not None and limit < 1:
        raise UsageError(f"limit: got {limit}, expected at least 1, or None for all frames")
    known = read_intensities(intensities or {}, "frames: intensities")
    given, roles = dict(topics or {}), (sensors,) if isinstance(sensors, str) else tuple(sensors)
    if unknown := sorted({*roles} - {*SENSORS}):
        raise UsageError(f"sensors: got {', '.join(map(repr, unknown))}, expected some of {', '.join(SENSORS)}")
    path, tree = Path(bag), load_transforms(Path(transforms)) if transforms else None
    required, track = roles or sensors_of(path, SENSORS, given)[:1], EgoTrack()

    def source() -> BagSource:
        return BagSource(path, given, tree, limit=limit, require=required, intensities=known, track=track)

    return _frames(source(), _drive_of(source, roles), roles, path)


def _drive_of(source: Callable[[], BagSource], sensors: Sequence[str]) -> Episode:
    """Return what opens the bundles of a bag again, with these sensors alone (none named: all)."""

    def drive() -> Iterator[Bundle]:
        with source() as opened:
            for bundle in opened:
                yield _only(bundle, sensors)

    return drive


def _frames(source: BagSource, drive: Episode, sensors: Sequence[str], bag: Path) -> Iterator[Frame]:
    count = 0
    with source:
        for bundle in source:
            count += 1
            yield Frame(_only(bundle, sensors), drive)
    if not count:
        raise InfrastructureError(f"{bag}: has no frame; a loop over nothing would test nothing")


def _only(bundle: Bundle, sensors: Sequence[str]) -> Bundle:
    parts = {"camera": ("images", "camera_infos"), "lidar": ("clouds",), "radar": ("radars",)}
    unwanted = [part for sensor in parts if sensors and sensor not in sensors for part in parts[sensor]]
    left_out: dict[str, Any] = dict.fromkeys(unwanted, ())
    return dataclasses.replace(bundle, **left_out)


def _structured(points: npt.ArrayLike) -> npt.NDArray[Any]:
    rows = np.asarray(points, dtype=np.float32)
    if rows.ndim != 2 or rows.shape[1] not in (3, 4):
        raise UsageError(f"points: got an array of shape {rows.shape}, expected (N, 3) or (N, 4): x y z [intensity]")
    filled = np.zeros((len(rows), 4), dtype=np.float32)
    filled[:, : rows.shape[1]] = rows
    return filled.reshape(-1).view(_POINT)


def _pixels(image: npt.ArrayLike) -> Pixels:
    pixels = np.asarray(image)
    if pixels.ndim != 3 or pixels.shape[2] != 3 or pixels.dtype != np.uint8:
        got = f"an array of shape {pixels.shape} and type {pixels.dtype}"
        raise UsageError(f"image: got {got}, expected (H, W, 3) uint8: red, green, blue")
    return np.ascontiguousarray(pixels)


def _read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    array.setflags(write=False)
    return array
