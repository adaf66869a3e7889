# SPDX-License-Identifier: Apache-2.0
"""Layouts of binary sensor data: ``sensor_msgs/PointField`` lists and image encodings as NumPy types, and back."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from mt_nodes.base.errors import UsageError

#: ``sensor_msgs/PointField`` datatype number -> NumPy kind and size
DATATYPES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 8: "f8"}
COORDINATES = ("x", "y", "z")
_NUMBERS = {code: number for number, code in DATATYPES.items()}

#: A point that is larger than that is none (drivers use 12 to 128 bytes); NumPy's limit is 2 GiB.
_LARGEST_STEP = 1 << 20

#: Encodings of ``sensor_msgs/image_encodings.hpp`` with one sample a channel and pixel: kind and size, channels
_ENCODINGS = {
    **{f"{name}{bits}": (f"u{bits // 8}", len(name)) for name in ("rgb", "bgr", "rgba", "bgra") for bits in (8, 16)},
    **{f"bayer_{order}{bits}": (f"u{bits // 8}", 1) for order in ("rggb", "bggr", "gbrg", "grbg") for bits in (8, 16)},
    **dict.fromkeys(("yuv422", "yuv422_yuy2", "uyvy", "yuyv"), ("u1", 2)),
    "mono8": ("u1", 1),
    "mono16": ("u2", 1),
}
_OPENCV_SAMPLES = {"8U": "u1", "8S": "i1", "16U": "u2", "16S": "i2", "32S": "i4", "32F": "f4", "64F": "f8"}


@dataclass(frozen=True)
class Field:
    """One ``sensor_msgs/PointField``: name, byte offset, datatype number, elements."""

    name: str
    offset: int
    datatype: int
    count: int


def point_dtype(fields: Iterable[Field], point_step: int, big_endian: bool, where: str) -> np.dtype[np.void]:
    """Return the structured type of one point; ``itemsize`` is ``point_step``, gaps are kept.

    Raises UsageError: an unknown datatype, a field given twice or beyond ``point_step``; x, y or z missing, of several
    elements, or in the place of another field.
    """
    return _point_dtype(tuple(fields), point_step, big_endian, where)


@lru_cache(maxsize=64)
def _point_dtype(fields: tuple[Field, ...], point_step: int, big_endian: bool, where: str) -> np.dtype[np.void]:
    names = [f.name for f in fields]
    if missing := [name for name in COORDINATES if name not in names]:
        raise UsageError(f"{where}: got fields {', '.join(names) or '(none)'}, expected also {', '.join(missing)}")
    if len(set(names)) < len(names):
        raise UsageError(f"{where}: got fields {', '.join(names)}, expected each name once")
    if point_step > _LARGEST_STEP:
        raise UsageError(f"{where}: got point_step {point_step}, expected at most {_LARGEST_STEP} bytes a point")
    ends = [f.offset + max(1, f.count) * _kind(f, where).itemsize for f in fields]
    for f, end in zip(fields, ends, strict=True):
        if end > point_step:
            many = f" with {f.count} elements" if f.count > 1 else ""
            raise UsageError(
                f"{where}: field '{f.name}'{many} at offset {f.offset} does not fit point_step {point_step}"
            )
    _refuse_shared_coordinates(fields, ends, where)
    formats = [_format(f, big_endian) for f in fields]
    layout = {"names": names, "formats": formats, "offsets": [f.offset for f in fields], "itemsize": point_step}
    return np.dtype(layout)  # type: ignore[call-overload, no-any-return]


def _refuse_shared_coordinates(fields: tuple[Field, ...], ends: Sequence[int], where: str) -> None:
    """Other fields may share their bytes (rgb and rgba do); a coordinate that does cannot be read or changed alone."""
    for f, end in zip(fields, ends, strict=True):
        if f.name in COORDINATES and f.count > 1:
            raise UsageError(f"{where}: field '{f.name}' has {f.count} elements, expected one")
        for other, other_end in zip(fields, ends, strict=True):
            if f.name in COORDINATES and other is not f and f.offset < other_end and other.offset < end:
                raise UsageError(f"{where}: fields '{f.name}' and '{other.name}' overlap, expected each in its place")


def _kind(field: Field, where: str) -> np.dtype[Any]:
    if field.datatype not in DATATYPES:
        raise UsageError(f"{where}: field '{field.name}' has datatype {field.datatype}, expected 1 to 8 (PointField)")
    return np.dtype(DATATYPES[field.datatype])


def _format(field: Field, big_endian: bool) -> str | tuple[str, tuple[int]]:
    code = (">" if big_endian else "<") + DATATYPES[field.datatype]
    # Some drivers leave count at 0 for a single element.
    return code if field.count <= 1 else (code, (field.count,))


def fields_of(dtype: np.dtype[np.void], where: str) -> tuple[list[Field], bool]:
    """Return the PointField list of a structured type, in the order of its names, and whether it is big-endian.

    Raises UsageError: a field's type has no datatype number, or byte orders are mixed.
    """
    rows, orders = [], set()
    for name, (whole, offset, *_) in _in_order(dtype):
        code = whole.base.str
        if code[1:] not in _NUMBERS:
            raise UsageError(f"{where}: field '{name}' is {whole.base}, expected int8 to uint32, float32 or float64")
        orders.add(code[0])
        rows.append(Field(name, int(offset), _NUMBERS[code[1:]], math.prod(whole.shape)))
    if {"<", ">"} <= orders:
        raise UsageError(f"{where}: fields mix little and big endian; a message has one byte order")
    return rows, ">" in orders


def _in_order(dtype: np.dtype[np.void]) -> list[tuple[str, tuple[Any, ...]]]:
    fields = dtype.fields
    return [(name, fields[name]) for name in dtype.names or ()] if fields else []


def pixel_layout(encoding: str, where: str) -> tuple[np.dtype[np.generic], int]:
    """Return the sample type (native order) and the channels of an image encoding.

    Raises UsageError: the encoding is unknown or does not hold whole samples a pixel (planar YUV).
    """
    if encoding in _ENCODINGS:
        code, channels = _ENCODINGS[encoding]
        return np.dtype(code), channels
    if match := re.fullmatch(r"(8U|8S|16U|16S|32S|32F|64F)C([1-9]\d{0,2})?", encoding):
        return np.dtype(_OPENCV_SAMPLES[match[1]]), int(match[2] or 1)
    raise UsageError(f"{where}: got image encoding '{encoding}', expected one such as bgr8, rgb8, mono16, 32FC1")


def rows_of(data: npt.NDArray[np.uint8], height: int, step: int, used: int, where: str) -> npt.NDArray[np.uint8]:
    """Return bytes (height, used) of rows that are ``step`` bytes apart: a view, without the padding.

    Raises UsageError: the rows do not fit the step, or the data does not fit the rows.
    """
    if height and step < used:
        raise UsageError(f"{where}: got rows of {step} bytes, expected at least {used} (width times size of one item)")
    if len(data) != height * step:
        raise UsageError(f"{where}: got {len(data)} bytes of data, expected {height} rows of {step} = {height * step}")
    return data.reshape(height, step if height else used)[:, :used]
