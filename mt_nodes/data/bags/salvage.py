# SPDX-License-Identifier: Apache-2.0
"""Makes an MCAP file without its end readable, after a killed recording or a full disk."""

from __future__ import annotations

import io
import struct
from pathlib import Path
from typing import Any, BinaryIO, cast

MAGIC = b"\x89MCAP0\r\n"
_DATA_END, _FOOTER = 0x0F, 0x02
_RECORD = struct.Struct("<BQ")  # operation code, length of what follows (MCAP specification, "Records")
#: The end of a file without index: data end (CRC not given), footer (no summary), magic.
_TAIL = _RECORD.pack(_DATA_END, 4) + bytes(4) + _RECORD.pack(_FOOTER, 20) + bytes(20) + MAGIC


class TornMcap:
    """Stands in for the path of a torn file: opens as its complete records followed by a well-formed end."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.size = path.stat().st_size
        #: Where the first incomplete record begins, in bytes.
        self.end = _end_of_records(path, self.size)
        self.suffix, self.stem = path.suffix, path.stem

    def __str__(self) -> str:
        return str(self._path)

    def exists(self) -> bool:
        """As of a path."""
        return True

    def is_dir(self) -> bool:
        """As of a path."""
        return False

    def open(self, *_: Any, **__: Any) -> BinaryIO:
        """Return a seekable stream of the repaired file."""
        return cast(BinaryIO, io.BufferedReader(_Spliced(self._path, self.end), 1 << 20))


class _Spliced(io.RawIOBase):
    """The first ``end`` bytes of a file, then the tail."""

    def __init__(self, path: Path, end: int) -> None:
        self._file, self._end, self._at = path.open("rb"), end, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._end + len(_TAIL)}[whence]
        self._at = base + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        size = len(memoryview(buffer))
        if self._at < self._end:
            self._file.seek(self._at)
            data = self._file.read(min(size, self._end - self._at))
        else:
            data = _TAIL[self._at - self._end :][:size]
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()


def _end_of_records(path: Path, size: int) -> int:
    at = len(MAGIC)
    with path.open("rb") as file:
        while True:
            file.seek(at)
            head = file.read(_RECORD.size)
            if len(head) < _RECORD.size:
                return at
            code, length = _RECORD.unpack(head)
            if code in (0, _DATA_END, _FOOTER) or at + _RECORD.size + length > size:
                return at
            at += _RECORD.size + length
