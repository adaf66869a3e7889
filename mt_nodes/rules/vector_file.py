# SPDX-License-Identifier: Apache-2.0
"""Append-only file of embedding vectors by model: no text is embedded twice.

A line (:mod:`mt_nodes.base.jsonl`) is ``{"kind": "vector", "model", "served", "text", "values"}``: the user's name of
the model, the server's, and the numbers as base64 of 32-bit floats, little-endian.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.base.errors import InfrastructureError
from mt_nodes.base.jsonl import LineFile, read_lines

_KIND = "vector"


class VectorFile:
    """The vectors of a file; a context manager. Any number of processes may read it; one at a time may add to it."""

    def __init__(self, path: Path) -> None:
        """Read the file if it exists; it is created when something is added.

        Raises InfrastructureError: it is damaged, of another kind, or unreadable.
        """
        self.path = path
        self._vectors: dict[str, dict[str, Floats]] = {}
        self._served: dict[str, str] = {}
        try:
            for line in read_lines(path) if path.exists() else ():
                self._take(line)
        except OSError as error:
            raise InfrastructureError(f"{path}: cannot be read: {error.strerror}") from error

    def __enter__(self) -> VectorFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if "_file" in vars(self):
            self._file.close()

    def of(self, model: str) -> Mapping[str, Floats]:
        """Return the vectors (d,) of one model, by text, in the order in which they were added."""
        return self._vectors.get(model, {})

    def served(self, model: str) -> str:
        """Return the server's name of the model; empty before its first vector."""
        return self._served.get(model, "")

    def add(self, model: str, served: str, texts: Sequence[str], vectors: Floats) -> None:
        """Store the vectors (n, d) of n texts, 32-bit floats.

        Raises UsageError: another process is adding to the file. InfrastructureError: the file cannot be written.
        """
        try:
            for text, vector in zip(texts, vectors, strict=True):
                values = base64.b64encode(vector.astype("<f4").tobytes()).decode()
                line = {"kind": _KIND, "model": model, "served": served, "text": text, "values": values}
                self._file.append(line)
                self._take(line)
        except OSError as error:
            raise InfrastructureError(
                f"{self.path}: cannot be written: {error.strerror}; what was there before is kept"
            ) from error

    @cached_property
    def _file(self) -> LineFile:
        return LineFile(self.path)

    def _take(self, line: Mapping[str, Any]) -> None:
        try:
            model, text, kind = line["model"], line["text"], line["kind"]
            vector = np.frombuffer(base64.b64decode(line["values"]), dtype="<f4").astype(np.float64)
        except (KeyError, ValueError, TypeError) as error:
            raise InfrastructureError(f"{self.path}: got a line without {error}, expected a file of vectors") from error
        known = self._vectors.setdefault(model, {})
        if kind != _KIND or any(len(vector) != len(other) for other in list(known.values())[:1]):
            raise InfrastructureError(
                f"{self.path}: got vectors of '{model}' of several lengths; move the file away and have them made anew"
            )
        known[text] = vector
        self._served[model] = line.get("served", "")
