# SPDX-License-Identifier: Apache-2.0
"""Writes bags: ROS 2 (MCAP, SQLite) and ROS 1. A bag appears under its name only when it is complete."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from rosbags.interfaces import (
    Connection,
    ConnectionExtRosbag1,
    Qos,
    QosDurability,
    QosHistory,
    QosLiveliness,
    QosReliability,
    QosTime,
)
from rosbags.rosbag1 import Writer as Writer1
from rosbags.rosbag2 import StoragePlugin
from rosbags.rosbag2.enums import CompressionFormat, CompressionMode

from mt_nodes.base.directories import ASIDE
from mt_nodes.base.errors import UsageError
from mt_nodes.data.bags.bare_mcap import BareMcapWriter, McapBagWriter
from mt_nodes.data.bags.reader import UNKNOWN_HASH
from mt_nodes.data.bags.ros1 import CdrToRos1, Convert
from mt_nodes.data.cdr import codec as cdr

STORAGES = {"mcap": StoragePlugin.MCAP, "sqlite3": StoragePlugin.SQLITE3}
_FOREVER = QosTime(2147483647, 4294967295)


def _reliable(depth: int, durability: QosDurability) -> Qos:
    times = _FOREVER, _FOREVER, QosLiveliness.AUTOMATIC, _FOREVER
    return Qos(QosHistory.KEEP_LAST, depth, QosReliability.RELIABLE, durability, *times, False)


SENSOR_QOS = _reliable(5, QosDurability.VOLATILE)
STATIC_QOS = _reliable(1, QosDurability.TRANSIENT_LOCAL)


class BagWriter(Protocol):
    """A bag being written; a context manager that leaves nothing behind when it is left by an error."""

    def add(
        self,
        topic: str,
        type_name: str,
        qos: Sequence[Qos] = (),
        definition: tuple[str, str] | None = None,
        like: Connection | None = None,
    ) -> Connection:
        """Announce a topic; ``definition`` is text and hash, looked up in ROS 2 Jazzy when None.

        ``like`` is the connection of the bag that the topic is copied from, if any.
        """

    def write(self, connection: Connection, stamp_ns: int, cdr: bytes) -> None:
        """Write one message, received at ``stamp_ns``."""

    def __enter__(self) -> BagWriter: ...

    def __exit__(self, kind: type[BaseException] | None, *rest: Any) -> None: ...


def open_writer(
    path: Path, storage: str = "mcap", compress: bool = False, definitions: Mapping[str, str] | None = None
) -> BagWriter:
    """Return the writer for a path: ROS 1 when it ends in ``.bag``, else a ROS 2 bag directory.

    Raises UsageError: the path exists, or the storage is unknown.

    Args:
        path: what to make; a bare MCAP file instead of a directory when it ends in ``.mcap``.
        storage: ``mcap`` or ``sqlite3``.
        compress: with zstd, in the storage's chunks, a bare MCAP file in a single one (MCAP only).
        definitions: definitions of types outside ROS, by name, for a ROS 1 bag.
    """
    if path.exists():
        raise UsageError(f"{path} exists already; give another path or remove it")
    if storage not in STORAGES:
        raise UsageError(f"got storage '{storage}', expected one of {', '.join(STORAGES)}")
    if path.suffix == ".bag":
        return Ros1BagWriter(path, definitions or {})
    return Ros2BagWriter(path, STORAGES[storage], compress)


class _Staged:
    """A path that is written aside and moved into place at the end."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._aside = Path(tempfile.mkdtemp(prefix=f"{ASIDE}bag_", dir=path.parent))
        self.path = self._aside / path.stem if path.suffix == ".mcap" else self._aside / path.name

    def close(self, complete: bool) -> None:
        if complete:
            staged = self.path / f"{self.path.name}.mcap" if self._path.suffix == ".mcap" else self.path
            staged.replace(self._path)
        shutil.rmtree(self._aside)


class Ros2BagWriter:
    """Writes a ROS 2 bag; see :class:`BagWriter`."""

    def __init__(self, path: Path, storage: StoragePlugin, compress: bool) -> None:
        self._staged = _Staged(path)
        # Version 8 is what Humble reads, too: version 9 writes QoS in a form that only Jazzy and later know.
        kind = BareMcapWriter if path.suffix == ".mcap" else McapBagWriter
        self._bag = kind(self._staged.path, version=8, storage_plugin=storage)
        if compress:
            self._bag.set_compression(CompressionMode.STORAGE, CompressionFormat.ZSTD)

    def __enter__(self) -> Ros2BagWriter:
        self._bag.open()
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: Any) -> None:
        self._bag.__exit__(kind, *rest)
        self._staged.close(kind is None)

    def add(
        self,
        topic: str,
        type_name: str,
        qos: Sequence[Qos] = (),
        definition: tuple[str, str] | None = None,
        like: Connection | None = None,
    ) -> Connection:
        """Announce a topic; one that was announced with the same type and QoS is returned."""
        for known in self._bag.connections:
            if (known.topic, known.msgtype) == (topic, type_name) and known.ext == ("cdr", list(qos)):
                return known
        types = cdr.typestore()
        if definition is None and type_name in types.fielddefs:
            return self._bag.add_connection(topic, type_name, typestore=types, offered_qos_profiles=qos)
        text, digest = definition or ("", UNKNOWN_HASH)
        return self._bag.add_connection(topic, type_name, msgdef=text, rihs01=digest, offered_qos_profiles=qos)

    def write(self, connection: Connection, stamp_ns: int, cdr: bytes) -> None:
        """Write one message."""
        self._bag.write(connection, stamp_ns, cdr)


class Ros1BagWriter:
    """Writes a ROS 1 bag; see :class:`BagWriter`."""

    def __init__(self, path: Path, definitions: Mapping[str, str]) -> None:
        self._staged = _Staged(path)
        self._bag = Writer1(self._staged.path)
        self._ros1 = CdrToRos1(path, definitions)
        self._converters: dict[str, Convert] = {}

    def __enter__(self) -> Ros1BagWriter:
        self._bag.open()
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: Any) -> None:
        self._bag.__exit__(kind, *rest)
        self._staged.close(kind is None)

    def add(
        self,
        topic: str,
        type_name: str,
        qos: Sequence[Qos] = (),
        definition: tuple[str, str] | None = None,
        like: Connection | None = None,
    ) -> Connection:
        """Announce a topic; transient-local becomes latched, a connection of a ROS 1 bag is copied."""
        latched = int(any(q.durability is QosDurability.TRANSIENT_LOCAL for q in qos))
        if like is not None and isinstance(like.ext, ConnectionExtRosbag1):
            text, md5sum = like.msgdef.data, like.digest
            return self._bag.add_connection(topic, like.msgtype, msgdef=text, md5sum=md5sum, **like.ext._asdict())
        self._converters[type_name] = self._ros1.converter(type_name)
        return self._bag.add_connection(topic, type_name, typestore=self._ros1.types, latching=latched)

    def write(self, connection: Connection, stamp_ns: int, cdr: bytes) -> None:
        """Convert and write one message."""
        name = connection.msgtype
        if name not in self._converters:
            self._converters[name] = self._ros1.converter(name)
        self.write_raw(connection, stamp_ns, self._converters[name](cdr))

    def write_raw(self, connection: Connection, stamp_ns: int, raw: bytes) -> None:
        """Write the bytes of a ROS 1 message."""
        self._bag.write(connection, stamp_ns, raw)
