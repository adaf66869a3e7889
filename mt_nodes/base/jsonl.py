# SPDX-License-Identifier: Apache-2.0
"""Append-only files of JSON lines, each with a checksum.

A line is one JSON object whose last key is ``crc32``: eight hexadecimal digits, the CRC-32 (zlib) of the UTF-8 text of
the same object without that key. Bytes of a file name that are not UTF-8 appear as JSON escapes ``\udc80`` to
``\udcff``, as Python reads them (PEP 383). To check a line, cut ``, "crc32": "…"}`` off its end, append ``}``, and
compute the checksum.
"""

from __future__ import annotations

import fcntl
import json
import math
import sys
import zlib
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

from mt_nodes.base.directories import write_whole
from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.base.record_shapes import Shape, expect_shape, quick_test

_KEY = ', "crc32": "'
_END = len(_KEY) + len('00000000"}')


def seal(line: Mapping[str, Any]) -> str:
    """Return the text of a line (without newline) with its checksum; keys keep their order.

    Numbers that JSON lacks (NaN, infinity) become null, NumPy values become plain ones.
    Raises ValueError: the mapping is empty or has a key ``crc32``. TypeError: a value has no form in JSON.
    """
    if not line or "crc32" in line:
        raise ValueError(f"got keys {list(line)}, expected at least one and no crc32")
    body = in_utf8(json.dumps(jsonable(line), ensure_ascii=False, allow_nan=False))
    return f'{body[:-1]}{_KEY}{_crc(body)}"}}'


def in_utf8(text: str) -> str:
    """Return JSON text as valid UTF-8: bytes of a file name that are not UTF-8 are escaped."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def unseal(text: str, where: str) -> dict[str, Any]:
    """Return a line without its checksum. Raises InfrastructureError: the line does not match its checksum."""
    body, tail = text[:-_END] + "}", text[-_END:]
    if not tail.startswith(_KEY) or tail[len(_KEY) : -2] != _crc(body):
        raise InfrastructureError(f"{where}: damaged or edited: the line does not match its crc32: {text[:80]!r}")
    return dict(json.loads(body))


class _LineReader:
    """Takes the checksums off the lines of a file, and expects shapes."""

    def __init__(self, path: Path, shapes: Mapping[str, Shape] | None) -> None:
        self._path, self._shapes = path, shapes
        self._quick_tests = {kind: quick_test(shape) for kind, shape in (shapes or {}).items()}

    def unsealed(self, raw: bytes, number: int) -> dict[str, Any]:
        where = f"{self._path}:{number}"
        line = unseal(raw.decode("utf-8", errors="replace"), where)
        if self._shapes is not None:
            kind = str(line.get("type"))
            if kind not in self._shapes or not self._quick_tests[kind](line):
                expect_shape(line, self._shapes.get(kind, {"type": str}), where)
        return line


def read_lines(path: Path, shapes: Mapping[str, Shape] | None = None) -> Iterator[dict[str, Any]]:
    """Yield the lines of a file without their checksums, but for an incomplete last line (no newline).

    ``shapes``: by ``type`` of a line, the shape that it must have; None: any.
    Raises InfrastructureError: a line is damaged, or of another shape.
    """
    lines = _LineReader(path, shapes)
    with path.open("rb") as file:
        for number, raw in enumerate(file, start=1):
            if not raw.endswith(b"\n"):
                return
            yield lines.unsealed(raw[:-1], number)


class LineTail:
    """Reads a file of checksummed lines while it grows."""

    def __init__(self, path: Path, shapes: Mapping[str, Shape] | None = None) -> None:
        """Begin at the start of a file, which need not exist yet; ``shapes`` as in :func:`read_lines`."""
        self._path, self._at, self._count, self._lines = path, 0, 0, _LineReader(path, shapes)

    def fresh(self) -> list[dict[str, Any]]:
        """Return the lines completed since the last call; an incomplete last line is left for later.

        Raises InfrastructureError: a line is damaged.
        """
        try:
            with self._path.open("rb") as file:
                file.seek(self._at)
                data = file.read()
        except FileNotFoundError:
            return []
        whole = data[: data.rfind(b"\n") + 1]
        rows = []
        for raw in whole.splitlines():
            self._count += 1
            rows.append(self._lines.unsealed(raw, self._count))
        self._at += len(whole)
        return rows


class LineFile:
    """An append-only file of checksummed lines; :meth:`append` hands each to the operating system before it returns."""

    def __init__(self, path: Path) -> None:
        """Open or create the file; cuts off an incomplete last line of an interrupted run.

        Raises UsageError: another process is writing to it.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._file = path.open("ab")
        try:
            # Held until the file is closed or the process ends, by whatever cause.
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
    """Return a value in the form that JSON holds."""
    if isinstance(value, Mapping):
        return {str(k): jsonable(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [jsonable(v) for v in value]
    # The import of NumPy takes longer than the rest of `mt --help`; without it there is no value of its types.
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)):
        return jsonable(value.tolist())
    if isinstance(value, Enum):
        return jsonable(value.value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _crc(body: str) -> str:
    return f"{zlib.crc32(body.encode()):08x}"


def _complete_bytes(path: Path) -> int:
    """Return the offset at which the last complete line ends, reading backwards from the end."""
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


KEY = "crc32"


def write_result(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file atomically, with a last key :data:`KEY`: the checksum of all others, whatever the layout."""
    body = json.loads(json.dumps({key: value for key, value in content.items() if key != KEY}))
    write_whole(path, in_utf8(json.dumps({**body, KEY: _checksum(body)}, indent=2, ensure_ascii=False)) + "\n")


def read_result(path: Path, instead: str = "expected the file of a results directory") -> dict[str, Any]:
    """Return the content of a file of :func:`write_result`, without the checksum.

    ``instead``: what was expected, or how to get one, for the error.
    Raises InfrastructureError: it is missing, or not as it was written.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        why = getattr(error, "strerror", None) or f"damaged: {error}"
        raise InfrastructureError(f"{path}: cannot be read: {why}; {instead}") from error
    if not isinstance(data, dict) or data.pop(KEY, None) != _checksum(data):
        raise InfrastructureError(f"{path}: damaged or edited: it does not match its {KEY}; {instead}")
    return data


def _checksum(content: Mapping[str, Any]) -> str:
    return f"{zlib.crc32(json.dumps(content, sort_keys=True).encode()):08x}"
