# SPDX-License-Identifier: Apache-2.0
"""What goes through the wall of a box: messages of topics that were named beforehand, by number, and reports as JSON.

Nothing that comes out is unpickled or imported: a message is bytes for one known topic, a report plain data. Whoever is
at the other end is not trusted: what is neither is refused, and ends it.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from mt_nodes.base.errors import InfrastructureError

_HEADER = struct.Struct("<HI")
#: In place of a topic's number: what follows is a report.
_REPORT = 0xFFFF
_MOST_BYTES, _MOST_OF_REPORT = 256 * 1024 * 1024, 4096


class Pipe:
    """One end. Several threads may send, one receives."""

    def __init__(self, end: socket.socket) -> None:
        self._end, self._lock = end, threading.Lock()

    def message(self, number: int, data: bytes) -> None:
        """Send a serialized message of the topic of this number. Raises InfrastructureError: the other end is gone."""
        self._send(number, data)

    def report(self, data: Mapping[str, Any]) -> None:
        """Send plain data, of 4096 bytes at most. Raises InfrastructureError: the other end is gone."""
        self._send(_REPORT, json.dumps(data).encode())

    def received(self, topics: int) -> Iterator[tuple[int, bytes] | dict[str, Any]]:
        """Yield messages (number of the topic, bytes) and reports as they come, until the other end is gone.

        ``topics``: how many there are.
        Raises InfrastructureError: what came is neither a message of a topic nor a report, or is too long.
        """
        while (header := exactly(self._end, _HEADER.size)) is not None:
            number, length = _HEADER.unpack(header)
            if number >= topics and number != _REPORT:
                raise _refused(f"a message of topic number {number}", f"a number below {topics}")
            most = _MOST_OF_REPORT if number == _REPORT else _MOST_BYTES
            if length > most:
                raise _refused(f"{length} bytes at once", f"{most} at most")
            if (data := exactly(self._end, length)) is None:
                return
            yield _report(data) if number == _REPORT else (number, bytes(data))

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


def _report(data: bytearray) -> dict[str, Any]:
    try:
        report = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise _refused(f"a report that is no JSON ({error})", "an object") from error
    if not isinstance(report, dict):
        raise _refused(f"a report that is a {type(report).__name__}", "an object")
    return report


def _refused(got: str, expected: str) -> InfrastructureError:
    return InfrastructureError(f"from the other side of the box: got {got}, expected {expected}")


def exactly(peer: socket.socket, length: int) -> bytearray | None:
    """Return so many bytes, None where they end before; waits for them."""
    data = bytearray(length)
    view, got = memoryview(data), 0
    while got < length:
        try:
            more = peer.recv_into(view[got:])
        except OSError:
            return None
        if not more:
            return None
        got += more
    return data


def shut(one: socket.socket) -> None:
    """End a socket for both sides, also while another thread waits for it."""
    with suppress(OSError):  # nobody is connected
        one.shutdown(socket.SHUT_RDWR)
    one.close()
