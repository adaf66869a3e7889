# SPDX-License-Identifier: Apache-2.0
"""How a mutator hands replacements to a relay: over a Unix socket, one mutator at a time, nothing is ever waited for.

Each is a header (number of the topic, stamp in ns, length) and the serialized message. A mutator that stands still in
the middle of one holds up nobody: what is not whole is no replacement.
"""

from __future__ import annotations

import os
import socket
import struct
import threading
from collections.abc import Callable
from pathlib import Path

from mt_nodes.base.errors import InfrastructureError
from mt_nodes.runs.vehicle.pipe import exactly, shut

_HEADER = struct.Struct("<HqI")
#: Longer messages are no sensor's; whoever offers one has lost the beginning of a header.
MOST_BYTES = 256 * 1024 * 1024

Take = Callable[[int, int, memoryview], None]


class OfferServer:
    """The relay's end: hears whoever connects, in a thread of its own, until :meth:`close`.

    ``path``: of the socket; a file that is there is taken away. ``take``: is given topic number, stamp and message.
    """

    def __init__(self, path: Path, take: Take) -> None:
        self._take, self._path = take, path
        path.unlink(missing_ok=True)
        self._server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        before = os.umask(0o177)
        try:
            self._server.bind(str(path))
        except OSError as error:
            raise InfrastructureError(f"{path}: cannot listen there ({error}); choose a shorter --out") from error
        finally:
            os.umask(before)
        self._server.listen(1)
        self._peer: socket.socket | None = None
        self._closing = False
        #: Whether a mutator is connected.
        self.connected = False
        self._thread = threading.Thread(target=self._hear, name="offers", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Hear nobody any more."""
        self._closing = True
        for each in (self._peer, self._server):
            if each is not None:
                shut(each)
        self._thread.join()
        self._path.unlink(missing_ok=True)

    def _hear(self) -> None:
        while not self._closing:
            try:
                self._peer, _ = self._server.accept()
            except OSError:  # closed
                return
            if self._closing:  # who closes has not seen this one, or ends it, too
                shut(self._peer)
                return
            self.connected = True
            with self._peer:
                self._read(self._peer)
            self.connected = False

    def _read(self, peer: socket.socket) -> None:
        """Take in what one mutator offers, until it ends or sends what is none."""
        while (header := exactly(peer, _HEADER.size)) is not None:
            number, stamp_ns, length = _HEADER.unpack(header)
            if length > MOST_BYTES or (data := exactly(peer, length)) is None:
                return
            self._take(number, stamp_ns, memoryview(data))


class Offers:
    """The mutator's end. Raises InfrastructureError: there is no relay."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.connect(str(path))
        except OSError as error:
            raise InfrastructureError(f"{path}: no relay listens there ({error})") from error

    def offer(self, number: int, stamp_ns: int, data: bytes) -> None:
        """Offer what may take the place of the original of a stamp, on the topic of this number.

        Raises InfrastructureError: the relay is gone.
        """
        try:
            self._socket.sendall(_HEADER.pack(number, stamp_ns, len(data)))
            self._socket.sendall(data)
        except OSError as error:
            raise InfrastructureError(f"the relay is gone ({error})") from error

    def close(self) -> None:
        """Offer nothing any more."""
        shut(self._socket)
