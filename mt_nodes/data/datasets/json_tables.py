# SPDX-License-Identifier: Apache-2.0
"""Rows of large JSON tables, without holding the whole table: nuScenes has one of 900 MB."""

from __future__ import annotations

import json
import mmap
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

from mt_nodes.base.errors import InfrastructureError, UsageError

Row = dict[str, Any]
_OBJECT = re.compile(rb"\{[^{}]*\}")


def table_rows(path: Path, key: str = "", wanted: Collection[str] = ()) -> list[Row]:
    """Return the objects of a list of flat objects, in its order.

    ``key``, ``wanted``: give those whose value of ``key``, a text, is one of these; without ``key`` all.
    Raises UsageError: there is no such file. InfrastructureError: it is no such list.
    """
    if not path.is_file():
        raise UsageError(f"no table {path}; expected the data set's JSON there")
    if not path.stat().st_size:
        raise InfrastructureError(f"{path}: is empty, expected a list of objects")
    value, known = re.compile(rb'"%b"\s*:\s*"([^"]*)"' % key.encode()), {text.encode() for text in wanted}
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        if content[: min(64, len(content))].lstrip()[:1] != b"[" or content[-64:].rstrip()[-1:] != b"]":
            raise InfrastructureError(f"{path}: is no whole list of objects; it may be cut off")
        found = (match[0] for match in _OBJECT.finditer(content))
        chosen = [text for text in found if not key or ((m := value.search(text)) and m[1] in known)]
    try:
        return [json.loads(text) for text in chosen]
    except ValueError as error:
        raise InfrastructureError(f"{path}: is damaged: {error}") from error


def by_token(path: Path, tokens: Collection[str] | None = None) -> dict[str, Row]:
    """Return the rows of a table by their ``token``: all, or those wanted.

    Raises InfrastructureError: the table lacks one of them.
    """
    rows = table_rows(path) if tokens is None else table_rows(path, "token", tokens)
    found = {row["token"]: row for row in rows if "token" in row}
    if missing := set(tokens or ()) - set(found):
        raise InfrastructureError(f"{path}: lacks {len(missing)} of {len(tokens or ())} rows, such as {min(missing)}")
    return found
