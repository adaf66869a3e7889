# SPDX-License-Identifier: Apache-2.0
"""Live topics that are mutated together: clouds, images and camera infos, of one instant each time."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.subscription import Subscription

from mt_nodes.base.errors import UsageError
from mt_nodes.data.cdr import codec
from mt_nodes.data.cdr.further_messages import RADAR_SCAN, RADAR_TRACKS
from mt_nodes.data.cdr.radar_codec import radar_from_msg
from mt_nodes.data.ego.ego_track import EgoTrack
from mt_nodes.data.intensity.sensor_reading import SensorBook
from mt_nodes.data.messages import Bundle, CameraInfo, Cloud, Image, Message, Wire
from mt_nodes.data.radar import Radar, is_radar, radar_of
from mt_nodes.data.transforms import TransformTree
from mt_nodes.nodes import qos
from mt_nodes.nodes.raw_subscription import subscribe_raw
from mt_nodes.stacks.topic_sync import Joiner

#: Behind the four bytes of the encapsulation: seconds and nanoseconds, then the length of the frame's name.
_STAMP, _NAME = 4, 12
_LITTLE_ENDIAN = b"\x00\x01"


class CloudReader:
    """Reads ``PointCloud2`` messages as :func:`mt_nodes.data.cdr.codec.cloud_from_msg` does, whose errors it raises.

    Messages of one sensor differ in stamp, size and points. Where one is like the last in all that stands before its
    points, that is taken over, which spares a mutator that answers every message a tenth of its time.
    """

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._known: _Head | None = None

    def read(self, data: bytes) -> Cloud:
        """Return the cloud of CDR bytes; its points are a view of them unless rows are padded."""
        if self._known is not None and (count := self._known.points_of(data)):
            return self._known.cloud(data, count)
        cloud = codec.cloud_from_msg(self._topic, codec.decode(codec.POINT_CLOUD, data))
        self._known = _Head.of(data, cloud)
        return cloud


@dataclass(frozen=True)
class _Head:
    """What stands before the points of a message: ``like`` is a cloud with it, ``size_at`` where its height begins."""

    text: bytes
    size_at: int
    like: Cloud

    @classmethod
    def of(cls, data: bytes, cloud: Cloud) -> _Head | None:
        """Return the head of a message, None where its points are not where those of such a cloud are."""
        at = len(data) - cloud.points.nbytes - 1
        (name_size,) = struct.unpack_from("<I", data, _NAME)
        size_at = _NAME + 4 + name_size + -name_size % 4
        head = cls(data[:at], size_at, cloud)
        return head if head.points_of(data) == len(cloud) > 0 else None

    def points_of(self, data: bytes) -> int:
        """Return how many points a message has, 0 where its head is another one or its sizes do not fit it."""
        size, step, end = self.size_at, self.like.points.dtype.itemsize, len(self.text)
        same = data[:2] == _LITTLE_ENDIAN and data[_NAME:size] == self.text[_NAME:size]
        if not same or data[size + 8 : end - 8] != self.text[size + 8 : end - 8]:
            return 0
        height, width = struct.unpack_from("<II", data, size)
        row_step, nbytes = struct.unpack_from("<II", data, end - 8)
        fits = row_step == width * step and nbytes == height * row_step == len(data) - end - 1
        return height * width if fits else 0

    def cloud(self, data: bytes, count: int) -> Cloud:
        """Return the cloud of a message with such a head."""
        sec, nanosec = struct.unpack_from("<iI", data, _STAMP)
        (height,) = struct.unpack_from("<I", data, self.size_at)
        points = np.frombuffer(data, self.like.points.dtype, count, len(self.text))
        stamp_ns = sec * 1_000_000_000 + nanosec
        return Cloud(self.like.topic, stamp_ns, self.like.frame_id, points, height, bool(data[-1]))


Take = Callable[[Sequence[Wire]], None]


@dataclass(eq=False)
class LiveInput:
    """One topic: its type and who taps it, as far as they are known, and what its first publisher offers."""

    topic: str
    type: str = ""
    offered: QoSProfile | None = None
    tap: Subscription | None = None


class LiveInputs:
    """Taps live topics best effort, so that nobody who publishes them is ever held back.

    Types are those of their publishers. While nobody publishes a single topic it is taken for clouds, so that the tap
    is there when the first one comes.
    ``within_ns``: how far from the leading message's stamp the others' of its instant may be. ``take``: called with the
    messages of each instant, the leading one first. ``profile``: of the taps, where they are to keep more.
    """

    def __init__(
        self, node: Node, topics: Sequence[str], within_ns: int, take: Take, profile: QoSProfile = qos.LIVE_TAP
    ) -> None:
        self._node, self._take, self._profile = node, take, profile
        self.inputs = [LiveInput(topic) for topic in topics]
        self._joiner = Joiner[Wire](topics, within_ns) if len(topics) > 1 else None
        self.look()
        if self._joiner is None and not self.inputs[0].type:
            self._tap(self.inputs[0], codec.POINT_CLOUD)

    @property
    def passed_over(self) -> tuple[Wire, ...]:
        """Messages between the last two instants that belong to neither: of a camera that is faster than the LiDAR."""
        return () if self._joiner is None else self._joiner.passed_over

    def look(self) -> bool:
        """Look for publishers of topics that had none; tell whether all have one by now.

        Raises UsageError: one is of a type that is no sensor's.
        """
        for each in (i for i in self.inputs if i.offered is None):
            if not (rows := self._node.get_publishers_info_by_topic(each.topic)):
                continue
            if each.tap is not None and each.type != rows[0].topic_type:
                self._untap(each)
                continue
            if each.tap is None:
                self._tap(each, rows[0].topic_type)
            each.offered = rows[0].qos_profile
        return all(each.offered is not None for each in self.inputs)

    def _untap(self, each: LiveInput) -> None:
        """Take down a tap of another type. The next look makes the right one: until the executor has let go of this one
        its topic is there with its type, and no other may be subscribed to.
        """
        assert each.tap is not None
        self._node.destroy_subscription(each.tap)
        each.tap = None

    def _tap(self, each: LiveInput, type_name: str) -> None:
        if type_name not in codec.SENSOR_TYPES:
            raise UsageError(f"{each.topic}: got type {type_name}, expected one of {', '.join(codec.SENSOR_TYPES)}")
        each.type = type_name

        def received(data: bytes) -> None:
            came_s = time.monotonic()
            self._received(Wire(each.topic, type_name, codec.header_stamp_ns(data) or 0, data, came_s=came_s))

        each.tap = subscribe_raw(self._node, type_name, each.topic, received, self._profile)

    def _received(self, wire: Wire) -> None:
        if self._joiner is None:
            self._take((wire,))
        elif (instant := self._joiner.take(wire.topic, wire)) is not None:
            self._take(tuple(instant.values()))


@dataclass(frozen=True, eq=False)
class InstantReader:
    """Makes bundles of the messages of live instants.

    ``transforms_at``: returns the transforms of an instant. ``track``: what estimates the ego's motion from them, and
    from what else it is given. ``radars``: topics whose point clouds are a radar's; None: their fields tell.
    """

    transforms_at: Callable[[int], TransformTree]
    track: EgoTrack = field(default_factory=EgoTrack)
    intensities: SensorBook = field(default_factory=SensorBook)
    radars: frozenset[str] | None = None
    _clouds: dict[str, CloudReader] = field(default_factory=dict)

    def read(self, index: int, wires: Sequence[Wire], episode: int = 0) -> Bundle:
        """Return the bundle of an instant, the leading sensor's message before the others'.

        Odometry and IMU messages go to the ego track; other types are passed along as they are.
        Raises MtError: a sensor's message cannot be understood, or there is none.
        """
        for wire in wires:
            self.track.take(wire)
        messages = [self._message(wire) for wire in wires if wire.type in codec.SENSOR_TYPES]
        if not messages:
            got = ", ".join(f"{wire.topic} ({wire.type})" for wire in wires) or "no message"
            raise UsageError(f"an instant: got {got}, expected one of {', '.join(codec.SENSOR_TYPES)}")
        return Bundle(
            episode,
            index,
            messages[0].stamp_ns,
            clouds=tuple(
                self.intensities.read(m) for m in messages if isinstance(m, Cloud) and not isinstance(m, Radar)
            ),
            radars=tuple(m for m in messages if isinstance(m, Radar)),
            radar_topics=frozenset(m.topic for m in messages if isinstance(m, Radar)),
            images=tuple(m for m in messages if isinstance(m, Image)),
            camera_infos=tuple(m for m in messages if isinstance(m, CameraInfo)),
            transforms=self.transforms_at(messages[0].stamp_ns),
            wires=tuple(wires),
            track=self.track,
        )

    def _message(self, wire: Wire) -> Message:
        if wire.type == codec.POINT_CLOUD:
            if wire.topic not in self._clouds:
                self._clouds[wire.topic] = CloudReader(wire.topic)
            cloud = self._clouds[wire.topic].read(wire.cdr)
            by_fields = self.radars is None and is_radar(cloud.fields)
            return radar_of(cloud) if by_fields or wire.topic in (self.radars or ()) else cloud
        if wire.type in (RADAR_SCAN, RADAR_TRACKS):
            return radar_from_msg(wire.topic, codec.decode(wire.type, wire.cdr))
        read = codec.camera_info_from_msg if wire.type == codec.CAMERA_INFO else codec.image_from_msg
        return read(wire.topic, codec.decode(wire.type, wire.cdr))
