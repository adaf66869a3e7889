# SPDX-License-Identifier: Apache-2.0
"""Numbers and texts for the script of a page, in a compact binary layout.

The layout, before zlib and base64: length of the header (four bytes), the header (JSON, UTF-8), then the arrays, each
at the next multiple of eight bytes. The header's ``arrays`` has [name, kind, length, offset] of each, ``kind`` being a
JavaScript typed array; offsets count from the header's end, which is a multiple of eight, too.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats

_KINDS = {
    "uint8": "Uint8Array",
    "uint16": "Uint16Array",
    "uint32": "Uint32Array",
    "int16": "Int16Array",
    "int32": "Int32Array",
    "float32": "Float32Array",
    "float64": "Float64Array",
}
_ALIGNMENT = 8
Value = TypeVar("Value", bound=Hashable)


def packed(header: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> str:
    """Return header and arrays as one text without characters that have a meaning in HTML.

    Raises KeyError: JavaScript has no typed array of a dtype.
    ``header``: plain data; the key ``arrays`` is reserved. ``arrays``: of any shape, flattened row by row, of dtypes
    that JavaScript has.
    """
    rows, parts, at = [], [], 0
    for name, array in arrays.items():
        data = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
        rows.append([name, _KINDS[array.dtype.name], array.size, at])
        parts.append(data + bytes(-len(data) % _ALIGNMENT))
        at += len(parts[-1])
    head = json.dumps({**header, "arrays": rows}, ensure_ascii=False, separators=(",", ":")).encode(
        errors="backslashreplace"
    )
    head += b" " * (-(4 + len(head)) % _ALIGNMENT)
    whole = b"".join((len(head).to_bytes(4, "little"), head, *parts))
    return base64.b64encode(zlib.compress(whole, 6)).decode()


def coded(values: Iterable[Value]) -> tuple[npt.NDArray[Any], list[Value]]:
    """Return a code for each value, in the smallest dtype, and the values by code."""
    numbers: dict[Value, int] = {}
    codes = [numbers.setdefault(value, len(numbers)) for value in values]
    return np.array(codes, dtype=np.min_scalar_type(max(len(numbers) - 1, 0))), list(numbers)


def floats(values: Iterable[float | None]) -> Floats:
    """Return numbers, NaN for None."""
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
