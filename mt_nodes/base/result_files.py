# SPDX-License-Identifier: Apache-2.0
"""JSON files of a results directory, written whole and with a checksum: what was damaged or edited is refused."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mt_nodes.base.directories import write_whole
from mt_nodes.base.errors import InfrastructureError
from mt_nodes.base.jsonl import in_utf8

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
