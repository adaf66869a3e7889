# SPDX-License-Identifier: Apache-2.0
"""Clouds of one topic from their bytes: what all of them have in common is understood once."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

from mt_nodes.data.cdr import codec
from mt_nodes.data.messages import Cloud

#: Behind the four bytes of the encapsulation: seconds and nanoseconds, then the length of the frame's name.
_STAMP, _NAME = 4, 12
_LITTLE_ENDIAN = b"\x00\x01"


class CloudReader:
    """Reads ``PointCloud2`` messages as :func:`mt_nodes.data.cdr.codec.cloud_from_msg` does, whose errors it raises.

    Messages of one sensor differ in stamp, size and points. Where one is like the last in all that stands before its
    points, that is taken over, which spares a mutator that answers every message a tenth of its time.
    """

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._known: _Head | None = None

    def read(self, data: bytes) -> Cloud:
        """Return the cloud of CDR bytes; its points are a view of them unless rows are padded."""
        if self._known is not None and (count := self._known.points_of(data)):
            return self._known.cloud(data, count)
        cloud = codec.cloud_from_msg(self._topic, codec.decode(codec.POINT_CLOUD, data))
        self._known = _Head.of(data, cloud)
        return cloud


@dataclass(frozen=True)
class _Head:
    """What stands before the points of a message: ``like`` is a cloud with it, ``size_at`` where its height begins."""

    text: bytes
    size_at: int
    like: Cloud

    @classmethod
    def of(cls, data: bytes, cloud: Cloud) -> _Head | None:
        """Return the head of a message, None where its points are not where those of such a cloud are."""
        at = len(data) - cloud.points.nbytes - 1
        (name_size,) = struct.unpack_from("<I", data, _NAME)
        size_at = _NAME + 4 + name_size + -name_size % 4
        head = cls(data[:at], size_at, cloud)
        return head if head.points_of(data) == len(cloud) > 0 else None

    def points_of(self, data: bytes) -> int:
        """Return how many points a message has, 0 where its head is another one or its sizes do not fit it."""
        size, step, end = self.size_at, self.like.points.dtype.itemsize, len(self.text)
        same = data[:2] == _LITTLE_ENDIAN and data[_NAME:size] == self.text[_NAME:size]
        if not same or data[size + 8 : end - 8] != self.text[size + 8 : end - 8]:
            return 0
        height, width = struct.unpack_from("<II", data, size)
        row_step, nbytes = struct.unpack_from("<II", data, end - 8)
        fits = row_step == width * step and nbytes == height * row_step == len(data) - end - 1
        return height * width if fits else 0

    def cloud(self, data: bytes, count: int) -> Cloud:
        """Return the cloud of a message with such a head."""
        sec, nanosec = struct.unpack_from("<iI", data, _STAMP)
        (height,) = struct.unpack_from("<I", data, self.size_at)
        points = np.frombuffer(data, self.like.points.dtype, count, len(self.text))
        stamp_ns = sec * 1_000_000_000 + nanosec
        return Cloud(self.like.topic, stamp_ns, self.like.frame_id, points, height, bool(data[-1]))
