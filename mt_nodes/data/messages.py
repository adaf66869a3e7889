# SPDX-License-Identifier: Apache-2.0
"""Sensor data without ROS: clouds, images, camera models, messages of simulated worlds, and bundles of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy.typing as npt

from mt_nodes.base.arrays import Floats
from mt_nodes.data.cloud import Cloud as Cloud
from mt_nodes.data.cloud import Points as Points
from mt_nodes.data.ego.ego_motion import EgoMotion, MotionEstimator
from mt_nodes.data.ground_truth import GroundTruth
from mt_nodes.data.lanes import Lanes, SignalStates
from mt_nodes.data.outputs import Detections, Path
from mt_nodes.data.radar import Radar
from mt_nodes.data.rotations import seen_from
from mt_nodes.data.transforms import TransformTree


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
    d: Floats
    k: Floats
    r: Floats
    p: Floats


@dataclass(frozen=True)
class Odometry:
    """Pose and motion of a vehicle.

    ``frame_id``: of the pose. ``stamp_ns``: of the message. ``x_m``, ``y_m``, ``yaw_rad``: of ``child_frame_id``, the
    vehicle's own, in ``frame_id``. ``speed_mps``, ``yaw_rate_radps``: forward, negative in reverse, and about z.
    """

    frame_id: str
    stamp_ns: int | None
    x_m: float
    y_m: float
    yaw_rad: float
    speed_mps: float = 0.0
    yaw_rate_radps: float = 0.0
    child_frame_id: str = "base_link"

    def seen_from(self, places_m: Floats) -> Floats:
        """Return places (n, 2) of ``frame_id`` as the vehicle sees them: x ahead, y to the left."""
        return seen_from(self.x_m, self.y_m, self.yaw_rad, places_m)


@dataclass(frozen=True, eq=False)
class WorldMessage:
    """One message of a simulated world with what no sensor measures.

    Attributes:
        role: ``objects`` (:class:`~mt_nodes.data.outputs.Detections`: velocities over the ground, along the axes of
            ``frame_id``), ``odometry`` (:class:`Odometry`), ``route`` (:class:`~mt_nodes.data.outputs.Path`: the middle
            of the lane ahead), ``signals`` (:class:`~mt_nodes.data.lanes.SignalStates`) or ``lanes``
            (:class:`~mt_nodes.data.lanes.Lanes`).
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
    ``changed``: a mutation replaced its bytes.
    """

    topic: str
    type: str
    stamp_ns: int
    cdr: bytes
    came_s: float | None = field(default=None, kw_only=True)
    changed: bool = field(default=False, kw_only=True)


Message = Cloud | Image | CameraInfo | WorldMessage
"""Any decoded message; a radar's is a :class:`~mt_nodes.data.radar.Radar`, a kind of cloud."""
PARTS = ("clouds", "radars", "images", "camera_infos", "world_messages")
"""Attributes of a bundle that hold the decoded messages of what a stack takes."""
NO_MESSAGES: dict[str, Any] = dict.fromkeys(PARTS, ())


@dataclass(frozen=True, eq=False)
class Bundle:
    """All sensor messages of one instant.

    Attributes:
        episode, index: numbers of the episode, an uninterrupted part of the input, and of the bundle within it.
        stamp_ns: the instant: header stamp of the leading sensor.
        clouds, images, camera_infos: decoded messages, at most one per topic; ``clouds`` are those of LiDARs.
        radars: likewise, detections of radars; no mutation of LiDARs looks at them.
        radar_topics: those whose messages are a radar's, whether one belongs to this instant or not.
        transforms: known transforms at this instant.
        wires: the original messages in the order of the bag: unchanged messages are sent as these bytes.
        regions: polygons (N, 3) by topic, from ``PolygonStamped`` topics, with their frame.
        extra_clouds: those of LiDARs that the stack does not take; read for depth, and sent as recorded.
        loose: those of ``wires`` that the stack takes, but which belong to no instant; sent as recorded.
        earlier: former bundles of the episode, the newest last, for mutations that need them; these have none.
        world_messages: of a simulated world, at most one per topic. facts: of the scene by name, for conditions.
        truth: labelled objects, None where the recording has no labels.
        scene: number of the first bundle of its scene, None if it is itself (:mod:`mt_nodes.data.scenes`).
        motion: of the ego at this instant, where a mutation in use needs it and there is a source (``track``) of it.
    """

    episode: int
    index: int
    stamp_ns: int
    clouds: tuple[Cloud, ...] = ()
    images: tuple[Image, ...] = ()
    camera_infos: tuple[CameraInfo, ...] = ()
    transforms: TransformTree = field(default_factory=TransformTree)
    wires: tuple[Wire, ...] = ()
    regions: dict[str, tuple[str, Floats]] = field(default_factory=dict)
    extra_clouds: tuple[Cloud, ...] = ()
    loose: tuple[Wire, ...] = ()
    earlier: tuple[Bundle, ...] = ()
    world_messages: tuple[WorldMessage, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    truth: GroundTruth | None = None
    scene: int | None = None
    motion: EgoMotion | None = None
    track: MotionEstimator | None = None
    radars: tuple[Radar, ...] = ()
    radar_topics: frozenset[str] = frozenset()

    def cloud(self, topic: str | None = None) -> Cloud:
        """Return the cloud of a topic, or the first one. Raises KeyError: the bundle has no such cloud."""
        if found := [cloud for cloud in self.clouds if topic in (None, cloud.topic)]:
            return found[0]
        raise KeyError(f"no cloud{'' if topic is None else f' on {topic}'} in bundle {self.index}")

    def with_clouds(self, clouds: Iterable[Cloud]) -> Bundle:
        """Return the bundle with the clouds, or radar detections, of the given topics replaced."""
        new: dict[str, Any] = {c.topic: c for c in clouds}
        radars = tuple(new.get(r.topic, r) for r in self.radars)
        return replace(self, clouds=tuple(new.get(c.topic, c) for c in self.clouds), radars=radars)

    def joined_with(self, pieces: Iterable[Bundle]) -> Bundle:
        """Return the bundle with the sensor messages of other bundles added, of topics that it lacks."""
        parts = (self, *pieces)
        joined: dict[str, Any] = {
            name: tuple(message for part in parts for message in getattr(part, name)) for name in PARTS
        }
        return replace(self, **joined)

    def changed_topics(self, source: Bundle) -> frozenset[str]:
        """Topics whose decoded message is not the same object as in ``source``: those that must be encoded again."""
        before = {id(m) for m in source.messages}
        return frozenset(m.topic for m in self.messages if id(m) not in before)

    @property
    def messages(self) -> tuple[Message, ...]:
        """Every decoded message that the stack takes."""
        return tuple(message for name in PARTS for message in getattr(self, name))

    def without_messages(self) -> Bundle:
        """Return the bundle without any decoded message, and without the wires of their topics."""
        topics = {message.topic for message in self.messages}
        wires = tuple(wire for wire in self.wires if wire.topic not in topics)
        return replace(self, wires=wires, **NO_MESSAGES)

    @property
    def apart(self) -> tuple[Bundle, tuple[Bundle, ...]]:
        """The bundle without frames of no instant, and each of these as one of its own."""
        own = set(map(id, self.loose))
        rest = replace(self, wires=tuple(wire for wire in self.wires if id(wire) not in own), loose=())
        return rest, tuple(Bundle(self.episode, self.index, wire.stamp_ns, wires=(wire,)) for wire in self.loose)

    @property
    def known_clouds(self) -> tuple[Cloud, ...]:
        """All clouds of this instant, whether the stack takes them or not."""
        return (*self.clouds, *self.extra_clouds)

    @property
    def intensity_assumptions(self) -> dict[str, str]:
        """What is taken for granted of the intensities of each cloud's topic, or why nothing can be."""
        return {c.topic: c.reading.fields.doubt or c.reading.fields.assumption for c in self.clouds}

    @property
    def used_intensities(self) -> dict[str, str]:
        """What is taken for granted of the intensities of those topics on which anything has asked for it so far."""
        return {c.topic: c.reading.fields.doubt or c.reading.fields.assumption for c in self.clouds if c.reading.used}

    @property
    def skew_ns(self) -> dict[str, int]:
        """Difference of each sensor's stamp from the bundle's, by topic."""
        messages: tuple[Cloud | Image, ...] = (*self.known_clouds, *self.radars, *self.images)
        return {message.topic: message.stamp_ns - self.stamp_ns for message in messages}


Episode = Callable[[], Iterator[Bundle]]
"""Opens an episode from its beginning; can be called again."""
