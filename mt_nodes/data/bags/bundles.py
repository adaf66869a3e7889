# SPDX-License-Identifier: Apache-2.0
"""Any bag as a stream of bundles, and bundles as a bag."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol
from weakref import ref

from mt_nodes.base.errors import InfrastructureError, MtError, UsageError
from mt_nodes.data.bags.bundle_assembly import BundleAssembly, Moment, cloud_after, refuse_lost_frame
from mt_nodes.data.bags.look_ahead import LookAhead
from mt_nodes.data.bags.reader import RecordedWire, Topic
from mt_nodes.data.bags.recording import RecordingReader, open_recording
from mt_nodes.data.bags.topic_roles import SENSORS, Roles, by_recorded_topic, candidates, choose
from mt_nodes.data.bags.writer import SENSOR_QOS, STATIC_QOS, open_writer
from mt_nodes.data.cdr import codec
from mt_nodes.data.cdr.further_messages import RADAR_SCAN, RADAR_TRACKS
from mt_nodes.data.cdr.radar_codec import radar_from_msg
from mt_nodes.data.cdr.wire import wires_of_bundle
from mt_nodes.data.ego.ego_track import EgoTrack
from mt_nodes.data.intensity.sensor_reading import Intensities, SensorBook
from mt_nodes.data.messages import Bundle, Image
from mt_nodes.data.radar import is_radar
from mt_nodes.data.transform_buffer import TransformBuffer
from mt_nodes.data.transforms import Transform, TransformTree

_SENSORS = ("lidar", "camera", "camera_info", "radar")
#: Message type -> part of a bundle, and its decoder.
DECODERS = {
    codec.POINT_CLOUD: ("clouds", codec.cloud_from_msg),
    codec.IMAGE: ("images", codec.image_from_msg),
    codec.COMPRESSED_IMAGE: ("images", codec.image_from_msg),
    codec.CAMERA_INFO: ("camera_infos", codec.camera_info_from_msg),
    **dict.fromkeys((RADAR_SCAN, RADAR_TRACKS), ("radars", radar_from_msg)),
}


@dataclass(frozen=True, eq=False)
class Unreadable:
    """A bundle with a required message that cannot be decoded: its other parts, and the error."""

    bundle: Bundle
    error: MtError


class Source(Protocol):
    """The bundles of an episode; can be iterated again and again.

    Attributes:
        reader: the recording. info: every topic of it by name. roles: role -> topics. lead: topic that bundles follow.
    """

    reader: RecordingReader
    info: dict[str, Topic]
    roles: Roles
    lead: str

    def __iter__(self) -> Iterator[Bundle]:
        """Yield every bundle; raises the error of one that cannot be decoded."""

    def readings(self) -> Iterator[Bundle | Unreadable]:
        """Yield every bundle, or its error."""


class BagSource:
    """The bundles of a bag, in order; can be iterated again and again, one iteration at a time.

    The leading sensor (the LiDAR, else the camera, else the radar, as far as required or given) makes one bundle a
    message. Of
    every other sensor the message joins whose header stamp is nearest, at most half a period (50 ms while that is not
    known) away. Every recorded message goes out with exactly one bundle, in ``wires``: sensors with theirs, all else
    (frames that joined none, too) with the first bundle whose leading message was recorded after it, the last ones
    with the last bundle. Sensors that are not required and cannot be decoded stay wires. Where it is known what a stack
    takes, nothing else is decoded, but for what its cameras need to be understood: their infos, and the clouds of all
    LiDARs, to look at. Of several topics of a role the first leads.
    Raises UsageError: no such bag; a role without or with several candidates. InfrastructureError: nothing can be read;
    while iterating: the bag is damaged, after all that could be read. MtError: while iterating: a required message
    cannot be understood; :meth:`readings` goes on after it.

    Args:
        path: bag directory, ``.mcap``, ``.db3`` or ``.bag`` file, or a data set such as ``kitti:DIR``.
        topics: role (``lidar``, ``camera``, ``camera_info``, ``radar``, ``region``) -> topic, or several with commas
            between them, where there are several candidates.
        transforms: the user's, which stand above the bag's.
        episode: number that the bundles carry.
        require: roles that must be there; as a mapping also the topics of a stack, by role, in its order.
        track: what estimates the ego's motion, if several read the same episode; None: one of its own.
        pictures: whether a required image must be of light, and whole, to be understood: a callable is given pixels.
        intensities: topic -> intensity convention, or field -> convention; others are recognised, once a topic.
    """

    def __init__(
        self,
        path: Path,
        topics: Mapping[str, str] | None = None,
        transforms: TransformTree | None = None,
        episode: int = 0,
        limit: int | None = None,
        require: Collection[str] | Mapping[str, Sequence[str]] = ("lidar",),
        pictures: bool = False,
        track: EgoTrack | None = None,
        intensities: Intensities | None = None,
    ) -> None:
        given = topics or {}
        self._shared_track = track
        self._ahead = partial(BagSource, path, topics, transforms, episode, None, require, pictures)
        self._track = self._track_of_episode()
        self.reader = open_recording(path)
        self.info: dict[str, Topic] = topics_of(self.reader)
        try:
            self.roles = choose(self.info, given, require, str(path), self._frame_of)
        except UsageError as error:
            if self.reader.damage:  # the topic may be in what is lost
                raise InfrastructureError(f"{error}; the bag is damaged: {self.reader.damage}") from error
            raise
        takes = require if isinstance(require, Mapping) else (*require, *given)
        leads = [role for role in SENSORS if role in takes]
        if not leads:
            expected = f"expected {' or '.join(SENSORS)} among them"
            raise UsageError(f"{path}: got roles {', '.join(require) or '(none)'}, {expected}")
        self.lead = self.roles[leads[0]][0]
        self._required = self._topics({*require, *given})
        known = isinstance(require, Mapping)  # what the stack takes; else all that is found is decoded
        self._taken = self._topics({*require, *(["camera_info"] if "camera" in require else [])} if known else _SENSORS)
        looks = known and {"camera", "radar"} & {*require} and "lidar" not in require
        self._depth_topics = set(self.roles.get("lidar", candidates("lidar", self.info))) if looks else set()
        self._regions = _region_topics(self.info, self.roles if "region" in given else {})
        self._transforms, self._episode, self._limit, self._pictures = transforms, episode, limit, pictures
        names = require.get("lidar", ()) if isinstance(require, Mapping) else ()
        self._intensities = by_recorded_topic(intensities or {}, self.info, self.roles, names, path)

    def __enter__(self) -> BagSource:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the bag."""
        self.reader.__exit__()

    def __iter__(self) -> Iterator[Bundle]:
        for found in self.readings():
            if isinstance(found, Unreadable):
                raise found.error
            yield found

    def readings(self) -> Iterator[Bundle | Unreadable]:
        """Yield every bundle, also those that cannot be decoded; both are numbered.

        Raises InfrastructureError: the bag is damaged, after all that could be read.
        """
        try:
            yield from self._read()
        finally:
            # The old one lasts as long as its bundles: its odometry is 1 MB for each hundred seconds.
            self._track = self._track_of_episode()

    def _track_of_episode(self) -> EgoTrack:
        track = self._shared_track or EgoTrack()
        if not track.looks_ahead:  # a source that looks ahead for another one does so for nobody else
            ahead, own = self._ahead, ref(track)  # no cycle: those are collected seldom
            track.set_look_ahead(LookAhead(lambda: ahead(own())))
        return track

    def _read(self) -> Iterator[Bundle | Unreadable]:
        gathered = BundleAssembly(self.lead, self._topics(_SENSORS) | self._depth_topics, self._regions)
        buffer, book = TransformBuffer(self._transforms), SensorBook(self._intensities)
        self._add_static(buffer)
        limit, placed = self._limit, set[str]()
        if limit == 0:
            return
        for index, moment in enumerate(self._moments(gathered, buffer)):
            self._track.upcoming = partial(cloud_after, gathered, moment.stamp_ns)
            reading = self._reading(index, moment, buffer.at(moment.stamp_ns), book, placed)
            if isinstance(reading, Bundle):
                self._track.observe(reading)
            yield reading
            if index + 1 == limit:
                return

    def _moments(self, gathered: BundleAssembly, buffer: TransformBuffer) -> Iterator[Moment]:
        damage: MtError | None = None
        try:
            for wire in self.reader.wires():
                self._track.take(wire)
                if wire.type == codec.TF and wire.topic == "/tf":
                    moving = self._transforms_of(wire, static=False)
                    buffer.add(moving)
                    self._track.add_transforms(moving)
                yield from gathered.take(wire)
        except InfrastructureError as error:
            damage = error
        yield from gathered.rest()
        if damage is not None:
            raise damage

    def _topics(self, roles: Iterable[str]) -> set[str]:
        return {topic for role in roles for topic in self.roles.get(role, ())}

    def _frame_of(self, topic: str) -> str | None:
        """Return the frame of a topic's first message, None where that cannot be read."""
        with suppress(MtError):
            for wire in self.reader.wires({topic}):
                return str(codec.decode(wire.type, wire.cdr).header.frame_id)
        return None

    def _add_static(self, buffer: TransformBuffer) -> None:
        """Add static transforms, which hold from the start wherever they are; the main pass reports damage."""
        if self.info.get("/tf_static", Topic("", 0, ())).type != codec.TF:
            return
        with suppress(InfrastructureError):
            for wire in self.reader.wires({"/tf_static"}):
                buffer.add(self._transforms_of(wire, static=True))

    def _transforms_of(self, wire: RecordedWire, static: bool) -> list[Transform]:
        try:
            return codec.transforms_from_msg(codec.decode(wire.type, wire.cdr), static)
        except MtError as error:
            where = f"{self.reader.path}: {wire.topic} received at {wire.received_ns} ns"
            raise InfrastructureError(f"{where} cannot be read: {error}") from error

    def _reading(
        self, index: int, moment: Moment, tree: TransformTree, book: SensorBook, placed: set[str]
    ) -> Bundle | Unreadable:
        try:
            bundle = self._bundle(index, moment, tree, book)
            refuse_lost_frame(bundle, self._required, placed)
            return bundle
        except MtError as error:
            known = Bundle(self._episode, index, moment.stamp_ns, wires=tuple(moment.wires))
            where = f"{self.reader.path}: bundle {index} at {moment.stamp_ns} ns"
            return Unreadable(known, type(error)(f"{where} cannot be read: {error}"))

    def _bundle(self, index: int, moment: Moment, tree: TransformTree, book: SensorBook) -> Bundle:
        decoded: dict[str, list[Any]] = {"clouds": [], "images": [], "camera_infos": [], "radars": []}
        radars = self._topics(["radar"])
        for wire in (wire for wire in moment.sensors if wire.topic in self._taken | self._depth_topics):
            kind, decode = ("radars", radar_from_msg) if wire.topic in radars else DECODERS[wire.type]
            try:
                message: Any = decode(wire.topic, codec.decode(wire.type, wire.cdr))
                if self._pictures and isinstance(message, Image):
                    from mt_nodes.data.images.codecs import decode as pictured  # a drive without pictures: no OpenCV

                    pictured(message)
                decoded[kind].append(message)
            except MtError as error:
                if wire.topic in self._required - self._depth_topics:
                    raise type(error)(f"{wire.topic}: {str(error).removeprefix(f'{wire.topic}: ')}") from error
        messages = {kind: tuple(found) for kind, found in decoded.items()}
        clouds, joined = tuple(map(book.read, messages["clouds"])), set(map(id, moment.sensors))
        return Bundle(
            self._episode,
            index,
            moment.stamp_ns,
            transforms=tree,
            wires=tuple(moment.wires),
            regions=moment.regions,
            clouds=tuple(cloud for cloud in clouds if cloud.topic not in self._depth_topics),
            extra_clouds=tuple(cloud for cloud in clouds if cloud.topic in self._depth_topics),
            loose=tuple(w for w in moment.wires if w.topic in self._taken and id(w) not in joined),
            images=messages["images"],
            camera_infos=messages["camera_infos"],
            radars=messages["radars"],
            radar_topics=frozenset(radars),
            truth=self.reader.labels(moment.stamp_ns),
            track=self._track,
        )


def sensors_of(bag: Path, wanted: Iterable[str], given: Mapping[str, str]) -> list[str]:
    """Return the roles that a bag can fill or that have a given topic, in their order; all if there is none.

    Raises UsageError: no such bag.
    """
    roles = list(wanted)
    with open_recording(bag) as reader:
        topics = topics_of(reader)
        return [role for role in roles if role in given or candidates(role, topics)] or roles


def topics_of(reader: RecordingReader) -> dict[str, Topic]:
    """Return the topics of a recording by name; of point clouds the first one tells whether they are a radar's.

    One that cannot be read is taken for a LiDAR's, whose decoder says what is wrong with it.
    """
    topics = dict(reader.topics)
    for name, topic in topics.items():
        if topic.type == codec.POINT_CLOUD and topic.radar is None and topic.count:
            with suppress(MtError):
                first = next(iter(reader.wires({name})), None)
                if first is not None and is_radar(f.name for f in codec.decode(first.type, first.cdr).fields):
                    topics[name] = replace(topic, radar=True)
    return topics


def write_bundles(path: Path, bundles: Iterable[Bundle], storage: str = "mcap") -> None:
    """Write a ROS 2 bag (uncompressed) with the messages of bundles, ``/tf_static`` from the first one's transforms.

    Recorded messages go out as they are, others are encoded; each is received at its stamp.
    Raises UsageError: the path exists, or the storage is unknown.
    """
    with open_writer(path, storage) as bag:
        for i, bundle in enumerate(bundles):
            if i == 0 and bundle.transforms.transforms and all(w.topic != "/tf_static" for w in bundle.wires):
                static = bag.add("/tf_static", codec.TF, [STATIC_QOS])
                bag.write(static, bundle.stamp_ns, codec.encode_transforms(bundle.transforms, bundle.stamp_ns))
            for wire in wires_of_bundle(bundle):
                qos = STATIC_QOS if wire.topic == "/tf_static" else SENSOR_QOS
                bag.write(bag.add(wire.topic, wire.type, [qos]), wire.stamp_ns, wire.cdr)


def _region_topics(info: Mapping[str, Topic], given: Mapping[str, Sequence[str]]) -> set[str]:
    return set(given["region"]) if "region" in given else {name for name, t in info.items() if t.type == codec.POLYGON}
