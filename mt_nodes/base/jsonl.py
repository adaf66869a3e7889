# SPDX-License-Identifier: Apache-2.0
r"""Append-only files of JSON lines that prove themselves.

A line is one JSON object whose last key is ``crc32``: eight hexadecimal digits, CRC-32 (zlib) of the UTF-8 text of the
same object without that key. A byte of a file name that is no UTF-8 stands in it as JSON's escape ``\udc80`` to
``\udcff``, as Python reads it (PEP 383). To check a line, cut ``, "crc32": "…"}`` off its end, put ``}`` back, and sum.
"""

from __future__ import annotations

import fcntl
import json
import math
import zlib
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np

from mt_nodes.base.errors import InfrastructureError, UsageError

_KEY = ', "crc32": "'
_END = len(_KEY) + len('00000000"}')


def seal(line: Mapping[str, Any]) -> str:
    """Return the text of a line (without newline), checksum included; keys keep their order.

    Numbers that JSON does not have (NaN, infinity) become null, NumPy values plain ones.

    Raises:
        ValueError: the mapping is empty or has a key ``crc32``.
        TypeError: a value is nothing that JSON holds.
    """
    if not line or "crc32" in line:
        raise ValueError(f"got keys {list(line)}, expected at least one and no crc32")
    body = in_utf8(json.dumps(jsonable(line), ensure_ascii=False, allow_nan=False))
    return f'{body[:-1]}{_KEY}{_crc(body)}"}}'


def in_utf8(text: str) -> str:
    """Return JSON text as UTF-8 holds it: bytes of a file name that is none are escaped, all else is as it was."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def unseal(text: str, where: str) -> dict[str, Any]:
    """Return a line without its checksum.

    Raises:
        InfrastructureError: the text is not what was written.
    """
    body, tail = text[:-_END] + "}", text[-_END:]
    if not tail.startswith(_KEY) or tail[len(_KEY) : -2] != _crc(body):
        raise InfrastructureError(f"{where}: damaged or edited: the line does not match its crc32: {text[:80]!r}")
    return dict(json.loads(body))


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of a file without their checksums; a torn last line (no newline) is left out.

    Raises:
        InfrastructureError: a line is damaged.
    """
    with path.open("rb") as file:
        for number, raw in enumerate(file, start=1):
            if not raw.endswith(b"\n"):
                return
            yield unseal(raw[:-1].decode("utf-8", errors="replace"), f"{path}:{number}")


class LineTail:
    """Reads a file of sealed lines while it grows."""

    def __init__(self, path: Path) -> None:
        """Begin at the start of a file, which need not be there yet."""
        self._path, self._at, self._count = path, 0, 0

    def fresh(self) -> list[dict[str, Any]]:
        """Return the lines that were completed since the last call; a torn last one is left for later.

        Raises:
            InfrastructureError: a line is damaged.
        """
        try:
            with self._path.open("rb") as file:
                file.seek(self._at)
                data = file.read()
        except FileNotFoundError:
            return []
        whole = data[: data.rfind(b"\n") + 1]
        made = []
        for raw in whole.splitlines():
            self._count += 1
            made.append(unseal(raw.decode("utf-8", errors="replace"), f"{self._path}:{self._count}"))
        self._at += len(whole)
        return made


class LineFile:
    """An append-only file of sealed lines; each is handed to the operating system before :meth:`append` returns."""

    def __init__(self, path: Path) -> None:
        """Open or make the file; a torn last line of an interrupted run is cut off.

        Raises:
            UsageError: another process is writing to it.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._file = path.open("ab")
        try:
            # Held until the file is closed or the process ends, however it ends.
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self._file.close()
            raise UsageError(f"{path}: another run is writing to it; wait for its end, or stop it") from error
        self._file.truncate(_complete_bytes(path))

    def append(self, line: Mapping[str, Any]) -> str:
        """Write one line and return its text."""
        text = seal(line)
        self._file.write(text.encode() + b"\n")
        self._file.flush()
        return text

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def jsonable(value: Any) -> Any:
    """Return a value as JSON holds it."""
    if isinstance(value, Mapping):
        return {str(k): jsonable(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [jsonable(v) for v in value]
    if isinstance(value, np.ndarray):
        return jsonable(value.tolist())
    if isinstance(value, np.generic):
        return jsonable(value.item())
    if isinstance(value, Enum):
        return jsonable(value.value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _crc(body: str) -> str:
    return f"{zlib.crc32(body.encode()):08x}"


def _complete_bytes(path: Path) -> int:
    """Return where the last complete line ends, reading backwards from the end."""
    with path.open("rb") as file:
        at = file.seek(0, 2)
        while at:
            start = max(0, at - 65536)
            file.seek(start)
            newline = file.read(at - start).rfind(b"\n")
            if newline >= 0:
                return start + newline + 1
            at = start
    return 0
