# SPDX-License-Identifier: Apache-2.0
"""Reads any bag as a stream of recorded messages: ROS 1, ROS 2 (SQLite, MCAP), compressed, split, torn."""

from __future__ import annotations

import difflib
import resource
import weakref
from collections.abc import Collection, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rosbags.convert.converter import LATCH
from rosbags.interfaces import Connection, ConnectionExtRosbag1, MessageDefinitionFormat, Qos, QosDurability
from rosbags.rosbag1 import Reader as Reader1
from rosbags.rosbag2 import Reader as Reader2
from rosbags.typesys import Stores, TypesysError, get_types_from_idl, get_types_from_msg, get_typestore

from mt_nodes.base.directories import natural_order
from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.data.bags.ros1 import Convert, Ros1ToCdr, ros2_type
from mt_nodes.data.bags.salvage import TornMcap
from mt_nodes.data.cdr import codec
from mt_nodes.data.datasets.dataset_name import hint
from mt_nodes.data.ground_truth import LabelsAt, no_labels
from mt_nodes.data.messages import Wire

#: Bags of a directory that are named where one is looked for in vain.
_MOST_NEAR = 5
_SUFFIXES = (".mcap", ".db3", ".bag")
#: Hash of an unknown definition: readers that need it must know the type.
UNKNOWN_HASH = "RIHS01_" + "0" * 64


@dataclass(frozen=True)
class Topic:
    """A topic of a bag: ROS 2 type name, number of messages, offered QoS (empty if not recorded).

    ``radar`` is whether its point clouds are a radar's, None where nobody has looked.
    """

    type: str
    count: int
    qos: tuple[Qos, ...]
    radar: bool | None = None

    @property
    def latched(self) -> bool:
        """Whether a publisher offered it to late subscribers (transient local)."""
        return any(q.durability is QosDurability.TRANSIENT_LOCAL for q in self.qos)


@dataclass(frozen=True, eq=False)
class RecordedWire(Wire):
    """A wire from a bag: when it was received, over which connection, and its bytes as recorded.

    ``stamp_ns`` is the header's stamp for sensor messages, the time of reception for others. ``raw`` is ``cdr`` unless
    the bag is of ROS 1.
    """

    received_ns: int
    connection: Connection
    raw: bytes


class BagReader:
    """An open bag; a context manager.

    ``path`` is a ROS 2 bag directory, one of its ``.mcap`` or ``.db3`` files, or a ROS 1 ``.bag`` file.
    Raises UsageError: there is no such bag, or it is none. InfrastructureError: nothing of it can be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.ros1 = path.suffix == ".bag"
        self.labels: LabelsAt = no_labels
        self._stack = ExitStack()
        # Readers of rosbags and their connections refer to each other: files would stay open until the next collection.
        weakref.finalize(self, self._stack.close)
        #: Damage that is known before the bag is read; empty: none.
        self.damage = ""
        self._readers = self._open()
        self.connections: list[Connection] = [c for reader in self._readers for c in reader.connections]
        texts = {c.msgtype: c.msgdef.data for c in self.connections}
        self._ros1 = Ros1ToCdr(path, texts) if self.ros1 else None
        self._converters: dict[str, Convert] = {}

    def __enter__(self) -> BagReader:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def topics(self) -> dict[str, Topic]:
        """Every topic by name."""
        found: dict[str, Topic] = {}
        for c in self.connections:
            before = found.get(c.topic)
            count = c.msgcount + (before.count if before else 0)
            found[c.topic] = Topic(ros2_type(c.msgtype), count, before.qos if before else qos_of(c))
        return found

    def wires(self, topics: Collection[str] | None = None) -> Iterator[RecordedWire]:
        """Yield recorded messages in order of reception; ``stamp_ns`` is the time of reception here.

        Raises InfrastructureError: the bag is damaged; what could be read was yielded before.
        """
        count, last_ns = 0, 0
        for reader in self._readers:
            chosen = [c for c in reader.connections if topics is None or c.topic in topics]
            messages = reader.messages(chosen) if chosen else iter(())
            while True:
                try:
                    connection, received_ns, raw = next(messages)
                    wire = self._wire(connection, received_ns, bytes(raw))
                except StopIteration:
                    break
                # Damaged bytes make storage libraries and decompressors raise errors of any kind.
                except Exception as error:
                    _raise_shortage(error)
                    raise self._damaged(_named(error), count, last_ns) from error
                count, last_ns = count + 1, received_ns
                yield wire
        # A corrupt index or length hides messages without making anything unreadable.
        counted = sum(c.msgcount for c in self.connections if topics is None or c.topic in topics)
        lost = f"{counted - count} of {counted} messages that the bag counts are not in it" if count < counted else ""
        if damage := self.damage or lost:
            raise self._damaged(damage, count, last_ns)

    def definition(self, connection: Connection) -> tuple[str, str]:
        """Return the ROS 2 definition of a connection's type and its hash (``RIHS01_…``).

        The text is empty where neither the bag nor ROS 2 Jazzy defines the type.
        """
        text, name = connection.msgdef, ros2_type(connection.msgtype)
        if self._ros1 is None and text.format is not MessageDefinitionFormat.NONE:
            return text.data, connection.digest or _hash(connection)
        types = self._ros1.types if self._ros1 else codec.typestore()
        if name not in types.fielddefs:
            return "", UNKNOWN_HASH
        return types.generate_msgdef(name, ros_version=2)[0], types.hash_rihs01(name)

    def _wire(self, connection: Connection, received_ns: int, raw: bytes) -> RecordedWire:
        name, data = ros2_type(connection.msgtype), raw
        if self._ros1 is not None:
            if connection.msgtype not in self._converters:
                self._converters[connection.msgtype] = self._ros1.converter(connection.msgtype)
            data = self._converters[connection.msgtype](raw)
        return RecordedWire(connection.topic, name, received_ns, data, received_ns, connection, raw)

    def _damaged(self, what: str, count: int, last_ns: int) -> InfrastructureError:
        where = f"after {count} messages, the last received at {last_ns} ns" if count else "before its first message"
        return InfrastructureError(f"{self.path}: bag is damaged {where}: {what}")

    def _open(self) -> list[Any]:
        if not self.path.exists():
            expected = "expected the path of a ROS 2 bag directory, .mcap, .db3 or .bag, or DATASET:DIR"
            raise UsageError(f"no bag {self.path}; {expected}{hint(self.path) or near_bags(self.path)}")
        why = "it has no metadata.yaml"
        if not self.path.is_dir() or (self.path / "metadata.yaml").is_file():
            reader, why = self._opened(self.path)
            if reader is not None:
                return [reader]
            if self.path.is_dir():
                self.damage = f"its metadata.yaml does not match the files: {why}"
        return self._salvage(why)

    def _opened(self, path: Path | TornMcap) -> tuple[Any, str]:
        """Return an open reader, or None and the reason."""
        try:
            reader: Any = Reader1(self.path) if self.ros1 else Reader2(path)  # type: ignore[arg-type]
            return self._stack.enter_context(reader), ""
        # Damaged bytes make storage libraries and decompressors raise errors of any kind.
        except Exception as error:  # noqa: BLE001
            _raise_shortage(error)
            return None, _named(error)

    def _salvage(self, why: str) -> list[Any]:
        """Open the storage files of a bag one by one, the torn ones repaired; ``why`` the ordinary way failed."""
        files = (
            sorted(self.path.iterdir(), key=lambda path: natural_order(path.name))
            if self.path.is_dir()
            else [self.path]
        )
        files = [f for f in files if f.suffix in (".mcap", ".db3")]
        if files:
            return [self._open_alone(f) for f in files]
        if self.path.is_dir():
            raise UsageError(f"{self.path}: no bag: {why}; expected a ROS 2 bag directory, .mcap, .db3 or .bag")
        hint = "; try: rosbag reindex" if self.ros1 else "; expected a ROS 2 bag directory, .mcap, .db3 or .bag"
        raise InfrastructureError(f"{self.path}: cannot be read as a bag: {why}{hint}")

    def _open_alone(self, file: Path) -> Any:
        reader, why = self._opened(file)
        if reader is None and file.suffix == ".mcap":
            torn = TornMcap(file)
            reader, more = self._opened(torn)
            self.damage = f"{file.name} ends at byte {torn.end} of {torn.size}: {why}"
            why = f"{why}; without its end: {more}"
        if reader is None:
            hint = f"; try: sqlite3 {file} .recover" if file.suffix == ".db3" else ""
            raise InfrastructureError(f"{file}: nothing of this file can be read: {why}{hint}")
        return reader


def qos_of(connection: Connection) -> tuple[Qos, ...]:
    """Return the QoS that the recorded publisher offered; a latched ROS 1 topic is transient-local."""
    ext = connection.ext
    if isinstance(ext, ConnectionExtRosbag1):
        return tuple(LATCH) if ext.latching else ()
    return tuple(ext.offered_qos_profiles)


def _hash(connection: Connection) -> str:
    text, types = connection.msgdef, get_typestore(Stores.EMPTY)
    try:
        if text.format is MessageDefinitionFormat.MSG:
            types.register(get_types_from_msg(text.data, connection.msgtype))
        else:
            types.register(get_types_from_idl(text.data))
        return types.hash_rihs01(connection.msgtype)
    except (TypesysError, KeyError):
        return UNKNOWN_HASH


def _raise_shortage(error: Exception) -> None:
    """Raise an error on where it is the machine's: a damaged length asks for too much memory, too, but of any machine.

    Raises MemoryError: this process may have only so much address space.
    """
    if isinstance(error, MemoryError) and resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:
        raise error


def _named(error: Exception) -> str:
    """Return an error's type and text in one line, without the name that PyYAML gives every text."""
    return " ".join(f"{type(error).__name__}: {error}".split()).replace('in "<unicode string>", ', "in ")


def near_bags(path: Path) -> str:
    """Return a hint at the bags where one was looked for: one of a similar name, or some of all; empty without any."""
    try:
        found = sorted(p for p in path.parent.iterdir() if p.suffix in _SUFFIXES or (p / "metadata.yaml").is_file())
    except OSError:  # no such directory, or not ours to read
        return ""
    names = {bag.name: bag for bag in found}
    if close := difflib.get_close_matches(path.name, names, n=1):
        return f"; did you mean '{names[close[0]]}'?"
    more = ", …" if len(found) > _MOST_NEAR else ""
    return f"; bags in {path.parent}: {', '.join(list(names)[:_MOST_NEAR])}{more}" if found else ""
