# SPDX-License-Identifier: Apache-2.0
"""Whole pieces of a stream socket, and its end."""

from __future__ import annotations

import socket
from contextlib import suppress


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
