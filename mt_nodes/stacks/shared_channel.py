# SPDX-License-Identifier: Apache-2.0
"""Objects from one process to another: their bytes go through shared memory, the sizes of these through a socket."""

from __future__ import annotations

import io
import mmap
import os
import pickle
import socket
import struct
from collections.abc import Sequence
from typing import Any

#: Buffers of so many bytes go beside the pickle, which saves a copy.
_APART_BYTES = 4096
_ALIGNED_BYTES = 64
#: More than the sizes of a message ever take: a datagram is read whole or not at all.
_MESSAGE_BYTES = 1 << 17
#: Packages whose classes a message to a wary end may name.
_KNOWN = ("mt_nodes", "numpy", "builtins", "collections")


class SharedChannel:
    """One end. Each side sends only when it has received the answer to what it sent before.

    A message is whole or does not come: a sender that dies in the middle leaves none.
    """

    def __init__(self, end: socket.socket, outgoing: int, incoming: int, *, wary: bool = False) -> None:
        """Take over a socket of datagrams, and descriptors of shared memory to write to and to read from.

        A ``wary`` end receives the types of this package alone, so that it never imports the other side's code.
        """
        self._end = end
        self._unpickler = _Wary if wary else pickle.Unpickler
        self._outgoing, self._incoming = _Memory(outgoing), _Memory(incoming)

    def fileno(self) -> int:
        """Return the descriptor that is readable when a message has come, or the other side is gone."""
        return self._end.fileno()

    def send(self, value: Any) -> None:
        """Send an object.

        Raises:
            OSError: the other side is gone.
            Exception: whatever pickling raises.
        """
        parts: list[Any] = []

        def in_band(buffer: pickle.PickleBuffer) -> bool:
            raw = buffer.raw()
            if raw.nbytes >= _APART_BYTES:
                parts.append(raw)
            return raw.nbytes < _APART_BYTES

        body = pickle.dumps(value, protocol=5, buffer_callback=in_band)
        sizes = self._outgoing.write([body, *parts])
        self._end.send(struct.pack(f"<{len(sizes)}Q", *sizes))

    def receive(self) -> Any:
        """Wait for an object and return it; its arrays are its own.

        Raises:
            EOFError: the other side is gone.
            pickle.UnpicklingError: this end is wary, and it names a class of another package.
        """
        try:
            message = self._end.recv(_MESSAGE_BYTES)
        except ConnectionError:
            message = b""
        if not message:
            raise EOFError
        body, *parts = self._incoming.read(struct.unpack(f"<{len(message) // 8}Q", message))
        return self._unpickler(io.BytesIO(body), buffers=parts).load()

    def hang_up(self) -> None:
        """Say that nothing more comes."""
        self._end.close()

    def close(self) -> None:
        """Hang up and free the memory, once."""
        self.hang_up()
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


class _Wary(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if module.partition(".")[0] not in _KNOWN:
            raise pickle.UnpicklingError(f"it holds a {module}.{name}, expected the package's own types")
        return super().find_class(module, name)


def _aligned(size: int) -> int:
    return -(-size // _ALIGNED_BYTES) * _ALIGNED_BYTES
