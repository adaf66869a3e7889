# SPDX-License-Identifier: Apache-2.0
"""How a JPEG was coded, read from its markers (ITU-T T.81, annex B)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import lru_cache

import cv2
import numpy as np

from mt_nodes.base.arrays import Floats

#: Steps of luminance of ITU-T T.81, annex K.1, which libjpeg scales by the quality; their order does not matter here.
_TABLE = """
    16 11 10 16 24 40 51 61  12 12 14 19 26 58 60 55  14 13 16 24 40 57 69 56  14 17 22 29 51 87 80 62
    18 22 37 56 68 109 103 77  24 35 55 64 81 104 113 92  49 64 78 87 103 121 120 101  72 92 95 98 112 100 103 99
"""
_STEPS = np.array(_TABLE.split(), dtype=np.int64)
_QUALITIES = np.arange(1, 101)
_SOS, _DQT = 0xDA, 0xDB
_SOF = (0xC0, 0xC1, 0xC2)


def settings_of(data: bytes) -> list[int]:
    """Return the parameters with which OpenCV codes a picture as ``data`` was: quality and colour sampling."""
    settings = [cv2.IMWRITE_JPEG_QUALITY, quality_of(data)]
    sampling = next((body for marker, body in _segments(data) if marker in _SOF), b"")
    if len(sampling) >= 15 and sampling[5] == 3:
        factors = int.from_bytes(bytes((0, *(sampling[7 + 3 * i] for i in range(3)))), "big")
        settings += [cv2.IMWRITE_JPEG_SAMPLING_FACTOR, factors]
    return settings


def quality_of(data: bytes) -> int:
    """Return the quality, 1 to 100, whose first table is nearest to the one used."""
    table = next((body for marker, body in _segments(data) if marker == _DQT), b"")
    if len(table) < 65:
        return 95
    wide = table[0] >> 4
    steps = np.frombuffer(table[1 : 129 if wide else 65], ">u2" if wide else "u1")
    return int(_QUALITIES[np.abs(_means() - steps.mean()).argmin()])


@lru_cache
def _means() -> Floats:
    """Return the mean step (100,) of the first table at each quality, as libjpeg scales and rounds it."""
    percent = np.where(_QUALITIES < 50, 5000 // _QUALITIES, 200 - 2 * _QUALITIES)
    return np.asarray(np.clip((_STEPS * percent[:, None] + 50) // 100, 1, 255).mean(axis=1))


def _segments(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield marker and body of every segment before the scan."""
    at = 2
    while at + 4 <= len(data) and data[at] == 0xFF and data[at + 1] != _SOS:
        (length,) = struct.unpack_from(">H", data, at + 2)
        yield data[at + 1], data[at + 4 : at + 2 + length]
        at += 2 + length
