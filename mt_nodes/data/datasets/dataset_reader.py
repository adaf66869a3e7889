# SPDX-License-Identifier: Apache-2.0
"""Reads a recording of a data set as a stream of messages, in the place of a bag: nothing is converted on disk."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Collection, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from rosbags.interfaces import Connection, ConnectionExtRosbag2, MessageDefinition, MessageDefinitionFormat

from mt_nodes.base.errors import InfrastructureError, MtError
from mt_nodes.data.bags.reader import RecordedWire, Topic, qos_of
from mt_nodes.data.bags.writer import SENSOR_QOS, STATIC_QOS
from mt_nodes.data.cdr import codec
from mt_nodes.data.datasets.dataset_name import DatasetName
from mt_nodes.data.datasets.known_datasets import open_dataset
from mt_nodes.data.datasets.recorded_topic import RecordedTopic

#: Messages read ahead, side by side: the next clouds and pictures are there when the run asks for them.
_AHEAD, _READERS = 6, 2


@dataclass(frozen=True, eq=False)
class DatasetWire(RecordedWire):
    """A message of a data set: number of its topic in the recording, and of the message in the topic."""

    number: int
    place: int


class DatasetReader:
    """An open recording of a data set; a context manager. It has the members of :class:`BagReader`.

    Raises UsageError: there is no such recording, or several and none is chosen. InfrastructureError: a table of it
    cannot be read.
    """

    ros1 = False
    #: A data set that lacks files is refused when it is opened.
    damage = ""

    def __init__(self, name: DatasetName) -> None:
        self.recording = open_dataset(name)
        self.path = Path(str(self.recording.name))
        self.labels = self.recording.labels
        self.connections = [_connection(i, topic) for i, topic in enumerate(self.recording.topics, 1)]

    def __enter__(self) -> DatasetReader:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing stays open: files are opened one by one."""

    @property
    def topics(self) -> dict[str, Topic]:
        """Every topic by name."""
        rows = zip(self.connections, self.recording.topics, strict=True)
        return {c.topic: Topic(c.msgtype, c.msgcount, qos_of(c), topic.radar) for c, topic in rows}

    def wires(self, topics: Collection[str] | None = None) -> Iterator[RecordedWire]:
        """Yield the messages in the order of their stamps, static transforms first; they count as received then.

        Raises InfrastructureError: a file cannot be read; what comes before it was yielded.
        """
        numbers = [n for n, topic in enumerate(self.recording.topics) if topics is None or topic.topic in topics]
        count, pool = 0, ThreadPoolExecutor(_READERS, thread_name_prefix="mt_dataset")
        ahead: deque[Future[RecordedWire]] = deque()
        try:
            for number, i in self._in_order(numbers):
                ahead.append(pool.submit(self._wire, number, i))
                if len(ahead) > _AHEAD:
                    yield self._taken(ahead.popleft(), count)
                    count += 1
            while ahead:
                yield self._taken(ahead.popleft(), count)
                count += 1
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def definition(self, connection: Connection) -> tuple[str, str]:
        """Return the ROS 2 definition of a connection's type and its hash (``RIHS01_…``)."""
        return connection.msgdef.data, connection.digest

    def _in_order(self, numbers: Collection[int]) -> Iterator[tuple[int, int]]:
        """Yield topic and message by number: by stamp, transforms before the sensors that need them."""
        rows = (self._places(number) for number in numbers)
        yield from ((number, i) for *_, number, i in heapq.merge(*rows))

    def _places(self, number: int) -> Iterator[tuple[int, bool, bool, int, int]]:
        topic = self.recording.topics[number]
        for i, stamp_ns in enumerate(topic.stamps_ns):
            yield stamp_ns, not topic.latched, topic.type != codec.TF, number, i

    def _wire(self, number: int, i: int) -> RecordedWire:
        topic, connection = self.recording.topics[number], self.connections[number]
        cdr, stamp_ns = topic.read(i), topic.stamps_ns[i]
        return DatasetWire(topic.topic, topic.type, stamp_ns, cdr, stamp_ns, connection, cdr, number, i)

    def _taken(self, wire: Future[RecordedWire], count: int) -> RecordedWire:
        try:
            return wire.result()
        except (MtError, OSError, ValueError) as error:
            where = f"after {count} messages" if count else "at its first message"
            raise InfrastructureError(f"{self.path}: cannot be read {where}: {error}") from error


def _connection(number: int, topic: RecordedTopic) -> Connection:
    types = codec.typestore()
    text, digest = types.generate_msgdef(topic.type, ros_version=2)[0], types.hash_rihs01(topic.type)
    return Connection(
        id=number,
        topic=topic.topic,
        msgtype=topic.type,
        msgdef=MessageDefinition(MessageDefinitionFormat.MSG, text),
        digest=digest,
        msgcount=len(topic.stamps_ns),
        ext=ConnectionExtRosbag2("cdr", [STATIC_QOS if topic.latched else SENSOR_QOS]),
        owner=None,
    )
