# SPDX-License-Identifier: Apache-2.0
"""How a relay tells whoever started it how it goes: JSON lines over a pipe. Who does not read is not waited for."""

from __future__ import annotations

import array
import fcntl
import json
import os
import termios
import time
from collections.abc import Callable, Mapping
from typing import Any

#: What lies unread for so long is read by nobody: whoever started us stands still. A busy machine is faster.
UNREAD_S = 2.0


class EventWriter:
    """The telling end. ``descriptor``: of the pipe; None where nobody asked to be told. ``now_s``: monotonic."""

    def __init__(self, descriptor: int | None, now_s: Callable[[], float] = time.monotonic) -> None:
        self._descriptor, self._now_s = descriptor, now_s
        self._rest = b""
        self._read_s = now_s()
        if descriptor is not None:
            os.set_blocking(descriptor, False)

    def tell(self, event: Callable[[], Mapping[str, Any]]) -> bool:
        """Tell what ``event()`` returns; return whether somebody is there and reads.

        It is not asked for, and nothing told, while what was told before has not gone out or lies there unread.
        """
        if self._descriptor is None:
            return True
        try:
            reads = self._is_read(self._descriptor)
            self._write(self._descriptor)
            if reads and not self._rest:
                self._rest = json.dumps(event()).encode() + b"\n"
                self._write(self._descriptor)
        except BrokenPipeError:
            return False
        return reads

    def _is_read(self, descriptor: int) -> bool:
        waiting = array.array("i", [0])
        fcntl.ioctl(descriptor, termios.FIONREAD, waiting)
        if not waiting[0]:
            self._read_s = self._now_s()
        return self._now_s() - self._read_s <= UNREAD_S

    def _write(self, descriptor: int) -> None:
        """Write what fits; a line that was begun is finished before another."""
        try:
            while self._rest:
                self._rest = self._rest[os.write(descriptor, self._rest) :]
        except BlockingIOError:
            return
