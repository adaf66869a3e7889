# SPDX-License-Identifier: Apache-2.0
"""What goes through the wall of a box: messages of topics that were named beforehand, by number, and reports as JSON.

Nothing that comes out is unpickled or imported: a message is bytes for one known topic, a report plain data.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Iterator, Mapping
from typing import Any

from mt_nodes.errors import InfrastructureError
from mt_nodes.vehicle.streams import exactly, shut

_HEADER = struct.Struct("<HI")
#: In place of a topic's number: what follows is a report.
_REPORT = 0xFFFF
_MOST_BYTES = 256 * 1024 * 1024


class Pipe:
    """One end. Several threads may send, one receives."""

    def __init__(self, end: socket.socket) -> None:
        self._end, self._lock = end, threading.Lock()

    def message(self, number: int, data: bytes) -> None:
        """Send a serialized message of the topic of this number.

        Raises:
            InfrastructureError: the other end is gone.
        """
        self._send(number, data)

    def report(self, told: Mapping[str, Any]) -> None:
        """Send plain data.

        Raises:
            InfrastructureError: the other end is gone.
        """
        self._send(_REPORT, json.dumps(told).encode())

    def received(self, topics: int) -> Iterator[tuple[int, bytes] | dict[str, Any]]:
        """Yield messages (number of the topic, bytes) and reports as they come, until the other end is gone.

        Args:
            topics: how many there are; a message of another is nobody's, and ends it.
        """
        while (header := exactly(self._end, _HEADER.size)) is not None:
            number, length = _HEADER.unpack(header)
            if length > _MOST_BYTES or (number >= topics and number != _REPORT):
                return
            if (data := exactly(self._end, length)) is None:
                return
            if number != _REPORT:
                yield number, bytes(data)
            else:
                yield dict(json.loads(data))

    def close(self) -> None:
        """End it for both ends."""
        shut(self._end)

    def _send(self, number: int, data: bytes) -> None:
        try:
            with self._lock:
                self._end.sendall(_HEADER.pack(number, len(data)))
                self._end.sendall(data)
        except OSError as error:
            raise InfrastructureError(f"the other side of the box is gone ({error})") from error
