# SPDX-License-Identifier: Apache-2.0
"""Sensor data without ROS: clouds, images, camera models, messages of simulated worlds, and bundles of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mt_nodes.data.ground_truth import GroundTruth
from mt_nodes.data.intensity.sensor_reading import SensorCloud
from mt_nodes.data.lanes import Lanes
from mt_nodes.data.outputs import Detections, Path
from mt_nodes.data.rotations import seen_from
from mt_nodes.data.transforms import TransformTree

Points = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Cloud(SensorCloud):
    """One LiDAR message.

    Attributes:
        topic: topic of the message.
        stamp_ns: header stamp in nanoseconds.
        frame_id: frame of the coordinates.
        points: structured array (N,) whose dtype is the message's layout: field names, offsets, byte order and
            ``itemsize == point_step``; padding bytes are kept. Treat as read-only.
        height: rows of an organised cloud, 1 for an unorganised one; ``N == height * width``.
        is_dense: as in the message.
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

    @property
    def raw(self) -> Points:
        """The points as opaque items of ``point_step`` bytes (N,): what to permute, take and join, padding included."""
        return self.points.view(f"V{self.points.dtype.itemsize}")

    def with_raw(self, raw: Points, *, height: int = 1) -> Cloud:
        """Return this cloud with other points of the same layout, given as :attr:`raw` items (M,)."""
        points = np.ascontiguousarray(raw).view(self.points.dtype)
        return replace(self, points=points, height=height).read_as(self.reading)


@dataclass(frozen=True, eq=False)
class Image:
    """One camera message.

    Attributes:
        pixels: (H, W) or (H, W, C), dtype as the encoding says; empty for a compressed image.
        encoding: as in ``sensor_msgs/Image``; for a compressed image the ``format`` text.
        compressed: the encoded bytes of a ``CompressedImage``, None for a plain one.
    """

    topic: str
    stamp_ns: int
    frame_id: str
    pixels: npt.NDArray[Any]
    encoding: str
    compressed: bytes | None = None


@dataclass(frozen=True, eq=False)
class CameraInfo:
    """Intrinsics of one camera: k (3, 3), r (3, 3), p (3, 4), distortion coefficients d (n,)."""

    topic: str
    stamp_ns: int
    frame_id: str
    width: int
    height: int
    distortion_model: str
    d: npt.NDArray[np.float64]
    k: npt.NDArray[np.float64]
    r: npt.NDArray[np.float64]
    p: npt.NDArray[np.float64]


@dataclass(frozen=True)
class Odometry:
    """Pose and motion of a vehicle.

    Attributes:
        frame_id: of the pose. stamp_ns: of the message.
        x_m, y_m, yaw_rad: of ``child_frame_id``, the vehicle's own, in ``frame_id``.
        speed_mps, yaw_rate_radps: forward, negative in reverse, and about z.
    """

    frame_id: str
    stamp_ns: int | None
    x_m: float
    y_m: float
    yaw_rad: float
    speed_mps: float = 0.0
    yaw_rate_radps: float = 0.0
    child_frame_id: str = "base_link"

    def seen_from(self, places_m: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return places (n, 2) of ``frame_id`` as the vehicle sees them: x ahead, y to the left."""
        return seen_from(self.x_m, self.y_m, self.yaw_rad, places_m)


@dataclass(frozen=True, eq=False)
class SignalStates:
    """States of the traffic lights and their stop lines, as from a map and a camera together.

    Attributes:
        name: (K,) texts. colour: (K,) ``red``, ``yellow``, ``green``, or ``off``.
        stop: (K, 3) x, y in metres and yaw in radians, in ``frame_id``: middle of the lane at the stop line, and the
            direction in which it is crossed.
    """

    frame_id: str
    stamp_ns: int | None
    name: npt.NDArray[np.str_]
    colour: npt.NDArray[np.str_]
    stop: npt.NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.name)

    @classmethod
    def make(
        cls, frame_id: str, stamp_ns: int | None, name: Iterable[str], colour: Iterable[str], stop: npt.ArrayLike
    ) -> SignalStates:
        """Build from columns.

        Raises:
            ValueError: they differ in length.
        """
        names, colours = np.array([*name], dtype=np.str_), np.array([*colour], dtype=np.str_)
        places = np.asarray(stop, dtype=np.float64).reshape(-1, 3)
        if not len(names) == len(colours) == len(places):
            raise ValueError(f"got {len(names)} names, {len(colours)} colours and {len(places)} stop lines")
        return cls(frame_id, stamp_ns, names, colours, places)


@dataclass(frozen=True, eq=False)
class WorldMessage:
    """One message of a simulated world with what no sensor measures.

    Attributes:
        role: ``objects`` (:class:`~mt_nodes.data.outputs.Detections`: velocities over the ground, along the axes of
            ``frame_id``), ``odometry`` (:class:`Odometry`), ``route`` (:class:`~mt_nodes.data.outputs.Path`: the middle
            of the lane ahead), ``signals`` (:class:`SignalStates`) or ``lanes`` (:class:`~mt_nodes.data.lanes.Lanes`).
        stamp_ns, frame_id: of the message; those in ``data`` are ignored.
    """

    topic: str
    role: str
    stamp_ns: int
    frame_id: str
    data: Detections | Odometry | Path | SignalStates | Lanes

    @property
    def stamped(self) -> Any:
        """The data with stamp and frame of the message."""
        return replace(self.data, stamp_ns=self.stamp_ns, frame_id=self.frame_id)


@dataclass(frozen=True, eq=False)
class Wire:
    """One serialized message: CDR bytes (with the 4-byte encapsulation header) and their type.

    ``came_s`` is the arrival time of a live message (monotonic), None if recorded or made; a replacement keeps it.
    """

    topic: str
    type: str
    stamp_ns: int
    cdr: bytes
    came_s: float | None = field(default=None, kw_only=True)


Message = Cloud | Image | CameraInfo | WorldMessage
"""Any decoded message."""


@dataclass(frozen=True, eq=False)
class Bundle:
    """All sensor messages of one instant.

    Attributes:
        episode: number of the episode, an uninterrupted part of the input.
        index: number of the bundle within the episode.
        stamp_ns: the instant: header stamp of the leading sensor.
        clouds, images, camera_infos: decoded messages, at most one per topic.
        transforms: known transforms at this instant.
        wires: the original messages in the order of the bag: unchanged messages are sent as these bytes.
        regions: polygons (N, 3) by topic, from ``PolygonStamped`` topics, with their frame.
        extra_clouds: those of LiDARs that the stack does not take; read for depth, and sent as recorded.
        loose: those of ``wires`` that the stack takes, but which belong to no instant; sent as recorded.
        earlier: former bundles of the episode, the newest last, for mutations that need them; these have none.
        world_messages: messages of a simulated world, at most one per topic.
        facts: known facts of the scene by name, for conditions.
        truth: labelled objects of this instant, None where the recording has no labels.
        scene: number of the first bundle of its scene, None if it is itself (:mod:`mt_nodes.data.scenes`).
    """

    episode: int
    index: int
    stamp_ns: int
    clouds: tuple[Cloud, ...] = ()
    images: tuple[Image, ...] = ()
    camera_infos: tuple[CameraInfo, ...] = ()
    transforms: TransformTree = field(default_factory=TransformTree)
    wires: tuple[Wire, ...] = ()
    regions: dict[str, tuple[str, npt.NDArray[np.float64]]] = field(default_factory=dict)
    extra_clouds: tuple[Cloud, ...] = ()
    loose: tuple[Wire, ...] = ()
    earlier: tuple[Bundle, ...] = ()
    world_messages: tuple[WorldMessage, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    truth: GroundTruth | None = None
    scene: int | None = None

    def cloud(self, topic: str | None = None) -> Cloud:
        """Return the cloud of a topic, or the first one.

        Raises:
            KeyError: the bundle has no such cloud.
        """
        for cloud in self.clouds:
            if topic is None or cloud.topic == topic:
                return cloud
        raise KeyError(f"no cloud{'' if topic is None else f' on {topic}'} in bundle {self.index}")

    def with_clouds(self, clouds: Iterable[Cloud]) -> Bundle:
        """Return the bundle with the clouds of the given topics replaced."""
        new = {c.topic: c for c in clouds}
        return replace(self, clouds=tuple(new.get(c.topic, c) for c in self.clouds))

    def joined_with(self, pieces: Iterable[Bundle]) -> Bundle:
        """Return the bundle with the sensor messages of other bundles added, of topics that it lacks."""
        parts = (self, *pieces)
        joined: dict[str, Any] = {
            name: tuple(message for part in parts for message in getattr(part, name))
            for name in ("clouds", "images", "camera_infos", "world_messages")
        }
        return replace(self, **joined)

    def changed_topics(self, source: Bundle) -> frozenset[str]:
        """Topics whose decoded message is not the same object as in ``source``: those that must be encoded again."""
        before = {id(m) for m in source.messages}
        return frozenset(m.topic for m in self.messages if id(m) not in before)

    @property
    def messages(self) -> tuple[Message, ...]:
        """Every decoded message that the stack takes."""
        return (*self.clouds, *self.images, *self.camera_infos, *self.world_messages)

    def without_messages(self) -> Bundle:
        """Return the bundle without any decoded message, and without the wires of their topics."""
        topics = {message.topic for message in self.messages}
        wires = tuple(wire for wire in self.wires if wire.topic not in topics)
        return replace(self, clouds=(), images=(), camera_infos=(), world_messages=(), wires=wires)

    @property
    def known_clouds(self) -> tuple[Cloud, ...]:
        """All clouds of this instant, whether the stack takes them or not."""
        return (*self.clouds, *self.extra_clouds)

    @property
    def skew_ns(self) -> dict[str, int]:
        """Difference of each sensor's stamp from the bundle's, by topic."""
        messages: tuple[Cloud | Image, ...] = (*self.known_clouds, *self.images)
        return {message.topic: message.stamp_ns - self.stamp_ns for message in messages}


Episode = Callable[[], Iterator[Bundle]]
"""Opens an episode from its beginning; can be called again."""
