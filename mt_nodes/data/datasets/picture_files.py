# SPDX-License-Identifier: Apache-2.0
"""Pictures in files: ``.png`` and ``.jpg`` as messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats
from mt_nodes.base.errors import InfrastructureError
from mt_nodes.data.cdr import codec
from mt_nodes.data.datasets.recorded_topic import RecordedTopic
from mt_nodes.data.messages import CameraInfo, Cloud, Image

#: Ending -> what a ``CompressedImage`` calls it.
FORMATS = {".png": "png", ".jpg": "jpeg", ".jpeg": "jpeg"}
_PNG, _PNG_SIZE_AT, _HEADER_BYTES = b"\x89PNG", 16, 24


def picture_topic(
    topic: str, frame_id: str, stamps_ns: Sequence[int], files: Sequence[Path], raw: bool
) -> RecordedTopic:
    """Return the topic of a camera whose pictures are files.

    ``raw``: decoded (``sensor_msgs/Image``), otherwise the bytes of the files (``sensor_msgs/CompressedImage``).
    """

    def read(i: int) -> bytes:
        content = files[i].read_bytes()
        return picture_message(topic, frame_id, stamps_ns[i], content, files[i], raw)

    kind = codec.IMAGE if raw else codec.COMPRESSED_IMAGE
    return RecordedTopic(topic, kind, stamps_ns, read, files, encode=lambda i, image: picture_bytes(image, files[i]))


def picture_message(topic: str, frame_id: str, stamp_ns: int, content: bytes, path: Path, raw: bool) -> bytes:
    """Return the CDR bytes of a picture. Raises InfrastructureError: it is asked for decoded and cannot be."""
    if not raw:
        empty = np.empty((0, 0), np.uint8)
        return codec.encode_image(Image(topic, stamp_ns, frame_id, empty, FORMATS[path.suffix.lower()], content))
    pixels = _decoded(content, path)
    encoding = ("mono" if pixels.ndim == 2 else "bgr") + str(pixels.itemsize * 8)
    return codec.encode_image(Image(topic, stamp_ns, frame_id, pixels, encoding))


def picture_bytes(image: Cloud | Image, path: Path) -> bytes:
    """Return the content of a picture's file; another format is encoded as the ending says (JPEG with quality 95)."""
    import cv2

    assert isinstance(image, Image), "a camera's file holds a picture"
    if image.compressed is not None and image.compressed.startswith(_PNG) == (path.suffix.lower() == ".png"):
        return image.compressed
    from mt_nodes.data.images.codecs import decode

    picture = decode(image)
    pixels = picture.pixels[..., ::-1] if picture.order == "rgb" else picture.pixels
    encoded, data = cv2.imencode(path.suffix.lower(), np.ascontiguousarray(pixels))
    if not encoded:
        raise InfrastructureError(f"{path}: a picture {pixels.shape} of {pixels.dtype} cannot be encoded")
    return bytes(data)


def picture_size(path: Path) -> tuple[int, int]:
    """Return width and height of a picture's file. Raises InfrastructureError: it is no picture."""
    with path.open("rb") as file:
        head = file.read(_HEADER_BYTES)
    if head.startswith(b"\x89PNG\r\n\x1a\n") and len(head) == _HEADER_BYTES:
        width, height = np.frombuffer(head[_PNG_SIZE_AT:], ">u4").tolist()
        return int(width), int(height)
    pixels = _decoded(path.read_bytes(), path)
    return pixels.shape[1], pixels.shape[0]


def info_topic(topic: str, stamps_ns: Sequence[int], infos: Sequence[CameraInfo]) -> RecordedTopic:
    """Return the topic of a camera's intrinsics: one for all stamps, or one for each."""

    def read(i: int) -> bytes:
        info = infos[i if len(infos) > 1 else 0]
        return codec.encode_camera_info(replace(info, topic=topic, stamp_ns=stamps_ns[i]))

    return RecordedTopic(topic, codec.CAMERA_INFO, stamps_ns, read)


def pinhole(frame_id: str, size: tuple[int, int], k: Floats, distortion: Sequence[float] = (0.0,) * 5) -> CameraInfo:
    """Return the intrinsics of a camera of a size (width, height): ``k`` (3, 3), distortion after OpenCV."""
    p = np.column_stack([k, np.zeros(3)])
    return CameraInfo("", 0, frame_id, *size, "plumb_bob", np.array(distortion, dtype=np.float64), k, np.eye(3), p)


def _decoded(content: bytes, path: Path) -> npt.NDArray[Any]:
    import cv2

    pixels = cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_ANYCOLOR | cv2.IMREAD_ANYDEPTH)
    if pixels is None:
        raise InfrastructureError(f"{path}: cannot be decoded as a picture; it has {len(content)} bytes")
    return np.asarray(pixels)
