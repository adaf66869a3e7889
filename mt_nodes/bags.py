# SPDX-License-Identifier: Apache-2.0
"""Any bag as a stream of bundles, and bundles as a bag."""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mt_nodes import cdr
from mt_nodes.bag_reader import BagReader, RecordedWire, Topic
from mt_nodes.bag_writer import SENSOR_QOS, STATIC_QOS, open_writer
from mt_nodes.errors import InfrastructureError, MtError, UsageError
from mt_nodes.frames import Bundle
from mt_nodes.topic_roles import choose
from mt_nodes.transform_buffer import TransformBuffer
from mt_nodes.transforms import Transform, TransformTree

#: Farthest that a sensor's stamp may lie from the leading one's while the period is not known.
JOIN_NS = 50_000_000
_SENSORS = ("lidar", "camera", "camera_info")
#: Where the stamp of a message that begins with a header ends, in bytes of its CDR.
_STAMP_END = 12
_DECODERS = {
    cdr.POINT_CLOUD: ("clouds", cdr.cloud_from_msg),
    cdr.IMAGE: ("images", cdr.image_from_msg),
    cdr.COMPRESSED_IMAGE: ("images", cdr.image_from_msg),
    cdr.CAMERA_INFO: ("camera_infos", cdr.camera_info_from_msg),
}
Region = tuple[str, npt.NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class Unreadable:
    """A bundle of which a required message cannot be understood: what is known of it, and what is wrong."""

    bundle: Bundle
    error: MtError


class BagSource:
    """The bundles of a bag, in order; can be iterated again and again, one iteration at a time.

    The leading sensor (the LiDAR, or the camera when no LiDAR is required or given) makes one bundle a message. Of
    every other sensor the message joins whose header stamp is nearest, at most half a period (50 ms while that is not
    known) away. Every recorded message goes out with exactly one bundle, in ``wires``: sensors with theirs, all else
    (frames that joined none, too) with the first bundle whose leading message was recorded after it, the last ones
    with the last bundle. Sensors that are not required and cannot be decoded stay wires.

    Args:
        path: bag directory, ``.mcap``, ``.db3`` or ``.bag`` file.
        topics: role (``lidar``, ``camera``, ``camera_info``, ``region``) -> topic, where there are several candidates.
        transforms: the user's, which stand above the bag's.
        episode: number that the bundles carry.
        limit: bundles to give at most.
        require: roles that must be there.

    Raises:
        UsageError: no such bag; a role without or with several candidates.
        InfrastructureError: nothing can be read; while iterating: the bag is damaged, after all that could be read.
        MtError: while iterating: a required message cannot be understood; :meth:`readings` goes on after it.
    """

    def __init__(
        self,
        path: Path,
        topics: Mapping[str, str] | None = None,
        transforms: TransformTree | None = None,
        episode: int = 0,
        limit: int | None = None,
        require: Collection[str] = ("lidar",),
    ) -> None:
        given = topics or {}
        self.reader = BagReader(path)
        self.info: dict[str, Topic] = self.reader.topics
        try:
            self.roles = choose(self.info, given, require, str(path))
        except UsageError as error:
            if self.reader.damage:  # the topic may be in what is lost
                raise InfrastructureError(f"{error}; the bag is damaged: {self.reader.damage}") from error
            raise
        leads = [role for role in ("lidar", "camera") if role in require or role in given]
        if not leads:
            raise UsageError(f"{path}: got roles {', '.join(require) or '(none)'}, expected lidar or camera among them")
        self.lead = self.roles[leads[0]]
        self._required = {self.roles[role] for role in (*require, *given)}
        self._regions = _region_topics(self.info, given)
        self._transforms, self._episode, self._limit = transforms, episode, limit

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
        """Yield every bundle, those that cannot be understood as such; numbers count both.

        Raises:
            InfrastructureError: the bag is damaged, after all that could be read.
        """
        gathered = _Gathering(self.lead, {self.roles[r] for r in _SENSORS if r in self.roles}, self._regions)
        buffer = TransformBuffer(self._transforms)
        self._add_static(buffer)
        limit = self._limit
        if limit == 0:
            return
        for index, moment in enumerate(self._moments(gathered, buffer)):
            yield self._reading(index, moment, buffer.at(moment.stamp_ns))
            if index + 1 == limit:
                return

    def _moments(self, gathered: _Gathering, buffer: TransformBuffer) -> Iterator[_Moment]:
        damage: MtError | None = None
        try:
            for wire in self.reader.wires():
                if wire.type == cdr.TF and wire.topic == "/tf":
                    buffer.add(self._transforms_of(wire, static=False))
                yield from gathered.take(wire)
        except InfrastructureError as error:
            damage = error
        yield from gathered.rest()
        if damage is not None:
            raise damage

    def _add_static(self, buffer: TransformBuffer) -> None:
        """Static transforms hold from the start, wherever the recorder put them; the main pass reports damage."""
        if self.info.get("/tf_static", Topic("", 0, ())).type != cdr.TF:
            return
        with suppress(InfrastructureError):
            for wire in self.reader.wires({"/tf_static"}):
                buffer.add(self._transforms_of(wire, static=True))

    def _transforms_of(self, wire: RecordedWire, static: bool) -> list[Transform]:
        try:
            return cdr.transforms_from_msg(cdr.decode(wire.type, wire.cdr), static)
        except MtError as error:
            where = f"{self.reader.path}: {wire.topic} received at {wire.received_ns} ns"
            raise InfrastructureError(f"{where} cannot be read: {error}") from error

    def _reading(self, index: int, moment: _Moment, tree: TransformTree) -> Bundle | Unreadable:
        try:
            return self._bundle(index, moment, tree)
        except MtError as error:
            known = Bundle(self._episode, index, moment.stamp_ns, wires=tuple(moment.wires))
            where = f"{self.reader.path}: bundle {index} at {moment.stamp_ns} ns"
            return Unreadable(known, type(error)(f"{where} cannot be read: {error}"))

    def _bundle(self, index: int, moment: _Moment, tree: TransformTree) -> Bundle:
        decoded: dict[str, list[Any]] = {"clouds": [], "images": [], "camera_infos": []}
        for wire in moment.sensors:
            kind, decode = _DECODERS[wire.type]
            try:
                decoded[kind].append(decode(wire.topic, cdr.decode(wire.type, wire.cdr)))
            except MtError as error:
                if wire.topic in self._required:
                    raise type(error)(f"{wire.topic}: {str(error).removeprefix(f'{wire.topic}: ')}") from error
        messages = {kind: tuple(found) for kind, found in decoded.items()}
        return Bundle(
            self._episode,
            index,
            moment.stamp_ns,
            transforms=tree,
            wires=tuple(moment.wires),
            regions=moment.regions,
            **messages,
        )


@dataclass(eq=False)
class _Moment:
    """What belongs to one message of the leading sensor; ``at`` is its position in the bag."""

    at: int
    stamp_ns: int
    sensors: list[RecordedWire]
    others: list[tuple[int, RecordedWire]]
    regions: dict[str, Region] = field(default_factory=dict)
    wires: list[RecordedWire] = field(default_factory=list)


class _Gathering:
    """Puts recorded messages together. A moment is complete when two later leading messages have been seen, so that
    other sensors may be recorded late by more than a period.
    """

    def __init__(self, lead: str, sensors: set[str], regions: set[str]) -> None:
        self._lead, self._sensors, self._region_topics = lead, sensors, regions
        self._at = 0
        self._open: deque[_Moment] = deque()
        self._loose: list[tuple[int, RecordedWire]] = []  # of other sensors, not joined yet
        self._others: list[tuple[int, RecordedWire]] = []  # since the last leading message
        self._regions: dict[str, Region] = {}
        self._previous_ns: int | None = None

    def take(self, wire: RecordedWire) -> Iterator[_Moment]:
        """Take in the next recorded message; yield a moment that became complete."""
        self._at += 1
        if wire.topic in self._sensors:
            wire = replace(wire, stamp_ns=_header_stamp_ns(wire))
        if wire.topic == self._lead:
            self._begin(wire)
        elif wire.topic in self._sensors:
            self._loose.append((self._at, wire))
        else:
            self._others.append((self._at, wire))
            if wire.topic in self._region_topics:
                self._set_region(wire)
        if len(self._open) > 2:
            yield self._close()

    def rest(self) -> Iterator[_Moment]:
        """Yield the moments that are still open; the last one takes everything left."""
        while len(self._open) > 1:
            yield self._close()
        if self._open:
            yield self._close(last=True)

    def _begin(self, wire: RecordedWire) -> None:
        others = [*self._others, (self._at, wire)]
        self._open.append(_Moment(self._at, wire.stamp_ns, [wire], others, dict(self._regions)))
        self._others = []

    def _set_region(self, wire: RecordedWire) -> None:
        region = cdr.polygon_from_msg(cdr.decode(wire.type, wire.cdr))
        self._regions[wire.topic] = region
        for moment in self._open:  # only those that had none: a region counts from when it was recorded
            moment.regions.setdefault(wire.topic, region)

    def _close(self, last: bool = False) -> _Moment:
        moment = self._open.popleft()
        near_ns = self._tolerance_ns(moment)
        joined = [n for topic in sorted(self._sensors) if (n := self._nearest(topic, moment.stamp_ns, near_ns))]
        moment.sensors += [wire for _, wire in joined]
        places = {at for at, _ in joined}
        passed = {
            at for at, w in self._loose if last or at < moment.at or w.stamp_ns <= moment.stamp_ns + near_ns
        } | places
        leaving = [entry for entry in self._loose if entry[0] in passed]
        self._loose = [entry for entry in self._loose if entry[0] not in passed]
        everything = moment.others + leaving + (self._others if last else [])
        moment.wires = [wire for _, wire in sorted(everything, key=lambda entry: entry[0])]
        self._previous_ns = moment.stamp_ns
        return moment

    def _tolerance_ns(self, moment: _Moment) -> int:
        gaps = [self._open[0].stamp_ns - moment.stamp_ns] if self._open else []
        gaps += [moment.stamp_ns - self._previous_ns] if self._previous_ns is not None else []
        return min((gap for gap in gaps if gap > 0), default=2 * JOIN_NS) // 2

    def _nearest(self, topic: str, stamp_ns: int, within_ns: int) -> tuple[int, RecordedWire] | None:
        entries = [entry for entry in self._loose if entry[1].topic == topic]
        best = min(entries, key=lambda entry: abs(entry[1].stamp_ns - stamp_ns), default=None)
        return best if best and abs(best[1].stamp_ns - stamp_ns) <= within_ns else None


def write_bundles(path: Path, bundles: Iterable[Bundle], storage: str = "mcap") -> None:
    """Write a ROS 2 bag (uncompressed) with the messages of bundles, ``/tf_static`` from the first one's transforms.

    Recorded messages go out as they are, others are encoded; each is received at its stamp.

    Raises:
        UsageError: the path exists, or the storage is unknown.
    """
    with open_writer(path, storage) as bag:
        for i, bundle in enumerate(bundles):
            if i == 0 and bundle.transforms.transforms and all(w.topic != "/tf_static" for w in bundle.wires):
                static = bag.add("/tf_static", cdr.TF, [STATIC_QOS])
                bag.write(static, bundle.stamp_ns, cdr.encode_transforms(bundle.transforms, bundle.stamp_ns))
            for wire in cdr.wires_of(bundle):
                qos = STATIC_QOS if wire.topic == "/tf_static" else SENSOR_QOS
                bag.write(bag.add(wire.topic, wire.type, [qos]), wire.stamp_ns, wire.cdr)


def _region_topics(info: Mapping[str, Topic], given: Mapping[str, str]) -> set[str]:
    return {given["region"]} if "region" in given else {name for name, t in info.items() if t.type == cdr.POLYGON}


def _header_stamp_ns(wire: RecordedWire) -> int:
    """Read the stamp of a message that begins with a header, without decoding the rest; a torn one has none."""
    data = wire.cdr
    if len(data) < _STAMP_END:
        return wire.received_ns
    sec, nanosec = struct.unpack_from("<iI" if data[1] else ">iI", data, 4)
    return int(sec) * 1_000_000_000 + int(nanosec)
