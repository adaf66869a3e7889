# SPDX-License-Identifier: Apache-2.0
"""Writes MCAP with checksums: bag directories, and quickly one small file without a directory, as evidence is."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, cast

from rosbags.interfaces import Connection, ConnectionExtRosbag2, MessageDefinition, MessageDefinitionFormat, Qos
from rosbags.rosbag2 import StoragePlugin
from rosbags.rosbag2 import Writer as Writer2
from rosbags.rosbag2.enums import CompressionMode
from rosbags.rosbag2.metadata import dump_qos_v8
from rosbags.rosbag2.storage_mcap import McapWriter
from rosbags.typesys.store import Typestore

#: Parameters of zstd by their numbers in ``zstd.h``: level 1, a window of 2^27 bytes (the largest that every reader
#: allows), matches over long distances.
_LONG_DISTANCE = {100: 1, 101: 27, 160: 1}


#: Where the checksum of a chunk stands: behind operation code, length, times and size (MCAP specification, "Chunk").
_CRC_AT = 1 + 8 + 8 + 8 + 8


class CheckedMcapWriter(McapWriter):
    """Gives each chunk the CRC-32 of its records, by which every reader finds bytes that changed on a disk."""

    def close_chunk(self) -> None:
        """Write the chunk, then its checksum, for which the library leaves zeros: not given."""
        begin, crc = self.bio.tell(), zlib.crc32(self.chunk.bio.getbuffer())
        super().close_chunk()
        end = self.bio.tell()
        self.bio.seek(begin + _CRC_AT)
        self.bio.write(crc.to_bytes(4, "little"))
        self.bio.seek(end)


class McapBagWriter(Writer2):
    """Writes a bag directory; its chunks have checksums where the storage is MCAP."""

    STORAGE_PLUGINS: Mapping[StoragePlugin, type[Any]] = {
        **Writer2.STORAGE_PLUGINS,
        StoragePlugin.MCAP: CheckedMcapWriter,
    }


class _Storage(CheckedMcapWriter):
    """A compressed file is one chunk: most of one arm's data is also the other's.

    Halves size and time of zstd on two clouds and images that differ in a thousand points.
    """

    def __init__(self, path: Path, compression: CompressionMode) -> None:
        super().__init__(path, compression)
        self._one_chunk = bool(self.compression)
        if self._one_chunk:
            self.compressor = partial(cast(Any, self.compressor), options=_LONG_DISTANCE)

    def close_chunk(self) -> None:
        """Leave the chunk open until the file is complete."""
        if not self._one_chunk:
            super().close_chunk()

    def close(self, version: int, metadata: str) -> None:
        """Finish the file."""
        self._one_chunk = False
        super().close(version, metadata)


class BareMcapWriter(Writer2):
    """Writes an MCAP file without a ``metadata.yaml`` beside it.

    Its metadata record is JSON, which is YAML as well, and each set of QoS profiles is put into words once: emitting
    YAML takes longer than the whole rest of a small file.
    """

    STORAGE_PLUGINS: Mapping[StoragePlugin, type[Any]] = {**Writer2.STORAGE_PLUGINS, StoragePlugin.MCAP: _Storage}

    def add_connection(
        self,
        topic: str,
        msgtype: str,
        *,
        typestore: Typestore | None = None,
        msgdef: str | None = None,
        rihs01: str | None = None,
        serialization_format: str = "cdr",
        offered_qos_profiles: Sequence[Qos] = (),
    ) -> Connection:
        """Announce a topic; the definition is text and hash, or looked up in the type store."""
        assert self.storage is not None, "add_connection() comes after open()"
        if typestore is not None:
            msgdef, rihs01 = _definition(typestore, msgtype)
        connection = Connection(
            id=len(self.connections) + 1,
            topic=topic,
            msgtype=msgtype,
            msgdef=MessageDefinition(MessageDefinitionFormat.MSG, msgdef or ""),
            digest=rihs01 or "",
            msgcount=0,
            ext=ConnectionExtRosbag2(serialization_format, list(offered_qos_profiles)),
            owner=self,
        )
        if msgtype not in self.added_types:
            self.storage.add_msgtype(connection)
            self.added_types.add(msgtype)
        self.storage.add_connection(connection, _qos_text(tuple(offered_qos_profiles)))
        self.connections.append(connection)
        self.counts[connection.id] = 0
        return connection

    def close(self) -> None:
        """Finish the file."""
        assert self.storage is not None, "close() comes after open()"
        name, count = self.storage.path.name, sum(self.counts.values())
        times = {
            "starting_time": {"nanoseconds_since_epoch": self.min_timestamp},
            "duration": {"nanoseconds": max(0, self.max_timestamp - self.min_timestamp)},
            "message_count": count,
        }
        metadata = {
            "version": self.version,
            "storage_identifier": "mcap",
            "relative_file_paths": [name],
            **times,
            "topics_with_message_count": [self._topic(connection) for connection in self.connections],
            "compression_format": "",
            "compression_mode": "",
            "files": [{"path": name, **times}],
            "custom_data": None,
            "ros_distro": "rosbags",
        }
        self.storage.close(self.version, json.dumps(metadata))
        self.storage = None

    def _topic(self, connection: Connection) -> dict[str, Any]:
        assert isinstance(connection.ext, ConnectionExtRosbag2), "this writer makes no other connections"
        described = {
            "name": connection.topic,
            "type": connection.msgtype,
            "serialization_format": connection.ext.serialization_format,
            "offered_qos_profiles": _qos_text(tuple(connection.ext.offered_qos_profiles)),
            "type_description_hash": connection.digest,
        }
        return {"topic_metadata": described, "message_count": self.counts[connection.id]}


@lru_cache
def _qos_text(profiles: tuple[Qos, ...]) -> str:
    return dump_qos_v8(list(profiles))


@lru_cache
def _definition(types: Typestore, name: str) -> tuple[str, str]:
    return types.generate_msgdef(name, ros_version=2)[0], types.hash_rihs01(name)
