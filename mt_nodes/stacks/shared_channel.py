# SPDX-License-Identifier: Apache-2.0
"""Sends objects between two processes: their bytes through shared memory, the sizes through a socket."""

from __future__ import annotations

import io
import mmap
import os
import pickle
import socket
import struct
from collections.abc import Callable, Sequence
from typing import Any

#: Buffers of at least this size are sent beside the pickle, which saves a copy.
_OUT_OF_BAND_BYTES = 4096
_ALIGNMENT_BYTES = 64
#: Longest datagram: more than the sizes of any message.
_MESSAGE_BYTES = 1 << 17
#: Packages whose classes a restricted end accepts.
_TRUSTED = ("mt_nodes", "numpy", "builtins", "collections")


class SharedChannel:
    """One end of a channel. Each side sends only after it has received the reply to its last message.

    A message arrives whole or not at all, even if the sender dies in the middle.
    """

    def __init__(self, end: socket.socket, outgoing: int, incoming: int, *, restricted: bool = False) -> None:
        """Take over a socket of datagrams, and descriptors of shared memory to write to and to read from.

        A ``restricted`` end accepts only types of this package, so that it never imports the other side's code.
        """
        self._end = end
        self._unpickler = _RestrictedUnpickler if restricted else pickle.Unpickler
        self._outgoing, self._incoming = _Memory(outgoing), _Memory(incoming)

    def fileno(self) -> int:
        """Return the descriptor that is readable when a message has arrived, or the other side is gone."""
        return self._end.fileno()

    def send(self, value: Any, pickler: Callable[..., pickle.Pickler] = pickle.Pickler) -> None:
        """Send an object. Raises OSError: the other side is gone. Exception: whatever pickling raises.

        ``pickler``: makes what pickles it.
        """
        parts: list[Any] = []

        def in_band(buffer: pickle.PickleBuffer) -> bool:
            raw = buffer.raw()
            if raw.nbytes >= _OUT_OF_BAND_BYTES:
                parts.append(raw)
            return raw.nbytes < _OUT_OF_BAND_BYTES

        body = io.BytesIO()
        pickler(body, protocol=5, buffer_callback=in_band).dump(value)
        sizes = self._outgoing.write([body.getbuffer(), *parts])
        self._end.send(struct.pack(f"<{len(sizes)}Q", *sizes))

    def receive(self, unpickler: Callable[..., pickle.Unpickler] | None = None) -> Any:
        """Wait for an object and return it; its arrays are copies.

        ``unpickler``: makes what reads it, None: what this end is for.
        Raises EOFError: the other side is gone. pickle.UnpicklingError: this end is restricted, and the object has a
        class of another package.
        """
        try:
            message = self._end.recv(_MESSAGE_BYTES)
        except ConnectionError:
            message = b""
        if not message:
            raise EOFError
        body, *parts = self._incoming.read(struct.unpack(f"<{len(message) // 8}Q", message))
        return (unpickler or self._unpickler)(io.BytesIO(body), buffers=parts).load()

    def close_socket(self) -> None:
        """Close the socket: nothing more is sent."""
        self._end.close()

    def close(self) -> None:
        """Close the socket and free the memory, once."""
        self.close_socket()
        for memory in (self._outgoing, self._incoming):
            memory.close()


def shared_memory(name: str) -> int:
    """Return the descriptor of new, empty shared memory."""
    return os.memfd_create(name, os.MFD_CLOEXEC)


class _Memory:
    """Shared memory that grows with what is written to it."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._map: mmap.mmap | None = None
        self._size = 0

    def write(self, parts: Sequence[Any]) -> list[int]:
        """Write parts one after another; return their sizes."""
        sizes = [memoryview(part).nbytes for part in parts]
        needed = sum(map(_aligned, sizes))
        if needed > self._size:
            os.ftruncate(self._number, 2 * needed)
        with memoryview(self._mapped(needed)) as target:
            at = 0
            for part, size in zip(parts, sizes, strict=True):
                target[at : at + size] = memoryview(part).cast("B")
                at += _aligned(size)
        return sizes

    def read(self, sizes: Sequence[int]) -> list[bytearray]:
        """Return copies of parts of these sizes."""
        with memoryview(self._mapped(sum(map(_aligned, sizes)))) as source:
            parts, at = [], 0
            for size in sizes:
                parts.append(bytearray(source[at : at + size]))
                at += _aligned(size)
        return parts

    def close(self) -> None:
        if self._map is not None:
            self._map.close()
        os.close(self._number)

    def _mapped(self, needed: int) -> mmap.mmap:
        if self._map is None or needed > self._size:
            self._size = os.fstat(self._number).st_size
            self._map = mmap.mmap(self._number, self._size)
        return self._map


class _RestrictedUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if module.partition(".")[0] not in _TRUSTED:
            raise pickle.UnpicklingError(f"it holds a {module}.{name}, expected the package's own types")
        return super().find_class(module, name)


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES
