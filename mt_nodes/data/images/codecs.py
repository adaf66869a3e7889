# SPDX-License-Identifier: Apache-2.0
"""Decodes images into arrays that can be changed, and encodes them again in the original encoding.

Raw encodings keep the very bytes of every pixel that did not change, Bayer and YUV 4:2:2 included; a JPEG is coded
again with the quality and colour sampling of the one it came from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.base.errors import UsageError
from mt_nodes.data.images import jpeg
from mt_nodes.data.messages import Image

Pixels = npt.NDArray[Any]
_PNG_HEAD, _PNG_END = b"\x89PNG\r\n\x1a\n", b"IEND\xaeB`\x82"
_JPEG_HEAD = b"\xff\xd8\xff"


@dataclass(frozen=True, eq=False)
class Picture:
    """A decoded image.

    ``pixels``: (H, W, 3), or (H, W) without colour; uint8 or uint16, in the machine's byte order. Read-only. ``order``:
    ``rgb``, ``bgr`` or ``mono``: what the last axis holds.
    """

    pixels: Pixels
    order: str

    @property
    def full_scale(self) -> int:
        """Largest value of a sample: 255 or 65535."""
        return int(np.iinfo(self.pixels.dtype).max)

    @property
    def size(self) -> tuple[int, int]:
        """Height and width in pixels."""
        return self.pixels.shape[0], self.pixels.shape[1]

    def channel(self, colour: str) -> int:
        """Return the place of ``r``, ``g`` or ``b`` on the last axis of a picture with colours."""
        return self.order.index(colour)

    def with_pixels(self, pixels: Pixels) -> Picture:
        """Return another picture of the same order."""
        return replace(self, pixels=pixels)

    def luma(self) -> Pixels:
        """Return the brightness (H, W) after BT.601, in the samples' own type."""
        if self.order == "mono":
            return self.pixels
        return np.asarray(cv2.cvtColor(self.pixels, getattr(cv2, f"COLOR_{self.order.upper()}2GRAY")))

    def rgb8(self) -> npt.NDArray[np.uint8]:
        """Return (H, W, 3) red, green, blue in 8 bits, for viewers and callables."""
        pixels = self.pixels if self.pixels.dtype == np.uint8 else (self.pixels >> 8).astype(np.uint8)
        if self.order == "rgb":
            return pixels
        return np.asarray(cv2.cvtColor(pixels, cv2.COLOR_GRAY2RGB if self.order == "mono" else cv2.COLOR_BGR2RGB))


@dataclass(frozen=True)
class _Coding:
    """One raw encoding: how a picture is read from its samples, and written over them.

    ``write(picture, old)`` returns new samples; ``spread_px`` is how far a changed pixel shows when it is read again.
    """

    order: str
    read: Callable[[Pixels], Pixels]
    write: Callable[[Pixels, Pixels], Pixels]
    spread_px: int = 0


_decoded: WeakKeyDictionary[Image, Picture] = WeakKeyDictionary()


def decode(image: Image) -> Picture:
    """Decode an image; the same object for the same image.

    Raises UsageError: an encoding that is none of light (depth, planar YUV…), or damaged compressed data.
    """
    if (known := _decoded.get(image)) is not None:
        return known
    if image.compressed is not None:
        picture = _decompressed(image)
    elif not image.pixels.size:
        raise UsageError(
            f"{image.topic}: an image of {image.pixels.shape[1]} x {image.pixels.shape[0]} pixels shows nothing"
        )
    else:
        coding = _coding(image)
        picture = Picture(coding.read(_native(image.pixels)), coding.order)
    picture.pixels.flags.writeable = False
    _decoded[image] = picture
    return picture


def encode(picture: Picture, like: Image) -> Image:
    """Return the image ``like`` with another picture of the same size, depth and order.

    Raises UsageError: the picture does not fit.
    """
    old = decode(like)
    if (picture.pixels.shape, picture.pixels.dtype, picture.order) != (old.pixels.shape, old.pixels.dtype, old.order):
        got = f"{picture.pixels.shape} of {picture.pixels.dtype} as {picture.order}"
        raise UsageError(f"{like.topic}: got a picture {got}, expected {old.pixels.shape} of {old.pixels.dtype}")
    if like.compressed is not None:
        return replace(like, compressed=_compressed(picture, like))
    samples = _coding(like).write(np.ascontiguousarray(picture.pixels), _native(like.pixels))
    return replace(like, pixels=samples.astype(like.pixels.dtype, copy=False))


def spread_px(image: Image) -> int:
    """Return how far, in pixels, a change may show around where it was made, by the encoding alone."""
    if image.compressed is not None:
        return 16 if image.compressed.startswith(_JPEG_HEAD) else 0  # one block of sub-sampled colours
    return _coding(image).spread_px


def lossy(image: Image) -> bool:
    """Return whether encoding an unchanged picture again changes it."""
    return image.compressed is not None and image.compressed.startswith(_JPEG_HEAD)


def _native(samples: Pixels) -> Pixels:
    return samples.astype(samples.dtype.newbyteorder("="), copy=False)


def _plain(order: str) -> _Coding:
    return _Coding(order, lambda samples: samples.view(), lambda pixels, _: pixels)


def _with_alpha(order: str) -> _Coding:
    def write(pixels: Pixels, old: Pixels) -> Pixels:
        return np.asarray(cv2.merge([*cv2.split(pixels), np.ascontiguousarray(old[..., 3])]))

    # Dropping the fourth channel is the same for both orders.
    return _Coding(order, lambda samples: np.asarray(cv2.cvtColor(samples, cv2.COLOR_BGRA2BGR)), write)


def _bayer(pattern: str) -> _Coding:
    def read(samples: Pixels) -> Pixels:
        # Mirrored beyond its edges, a mosaic goes on as it is, and every pixel keeps its own sample; without, OpenCV
        # shows those along the edges in the colours of their inner neighbours.
        wide = cv2.copyMakeBorder(samples, 2, 2, 2, 2, cv2.BORDER_REFLECT_101)
        code: int = getattr(cv2, f"COLOR_Bayer{pattern.upper()}2BGR")
        return np.ascontiguousarray(cv2.demosaicing(wide, code)[2:-2, 2:-2])

    def write(pixels: Pixels, old: Pixels) -> Pixels:
        new = np.empty_like(old)
        for i, colour in enumerate(pattern):
            cell = np.s_[i // 2 :: 2, i % 2 :: 2]
            new[cell] = pixels[cell][..., "bgr".index(colour)]
        return new

    return _Coding("bgr", read, write, spread_px=2)


def _yuv422(name: str) -> _Coding:
    def read(samples: Pixels) -> Pixels:
        return np.asarray(cv2.cvtColor(samples, getattr(cv2, f"COLOR_YUV2BGR_{name}")))

    def write(pixels: Pixels, old: Pixels) -> Pixels:
        new = cv2.cvtColor(pixels, getattr(cv2, f"COLOR_BGR2YUV_{name}"))
        changed = (pixels != read(old)).any(axis=2)
        pairs = changed[:, ::2] | changed[:, 1::2]  # two neighbours share their colour
        return np.where(np.repeat(pairs, 2, axis=1)[..., None], new, old)

    return _Coding("bgr", read, write, spread_px=1)


_CODINGS = {
    **{f"{order}{bits}": _plain(order) for order in ("rgb", "bgr", "mono") for bits in (8, 16)},
    **{f"{order}a{bits}": _with_alpha(order) for order in ("rgb", "bgr") for bits in (8, 16)},
    **{f"bayer_{p}{bits}": _bayer(p) for p in ("rggb", "bggr", "gbrg", "grbg") for bits in (8, 16)},
    **dict.fromkeys(("yuv422", "uyvy"), _yuv422("UYVY")),
    **dict.fromkeys(("yuv422_yuy2", "yuyv"), _yuv422("YUY2")),
    # OpenCV's own names: one channel of bytes is brightness, three are its usual order.
    "8UC1": _plain("mono"),
    "8UC3": _plain("bgr"),
    "8UC4": _with_alpha("bgr"),
}
ENCODINGS = tuple(_CODINGS)


def _coding(image: Image) -> _Coding:
    if image.encoding not in _CODINGS:
        known = ", ".join(ENCODINGS)
        raise UsageError(f"{image.topic}: got encoding '{image.encoding}', expected one of light: {known}")
    height, width = image.pixels.shape[:2]
    odd = (width % 2 and image.encoding.startswith(("yuv", "uyvy", "yuyv"))) or (
        (height % 2 or width % 2) and "bayer" in image.encoding
    )
    if odd:
        raise UsageError(f"{image.topic}: got {width} x {height} pixels, {image.encoding} has them in twos")
    return _CODINGS[image.encoding]


def _decompressed(image: Image) -> Picture:
    data = image.compressed or b""
    kind = next((k for k, head in (("JPEG", _JPEG_HEAD), ("PNG", _PNG_HEAD)) if data.startswith(head)), None)
    if kind is None:
        raise UsageError(
            f"{image.topic}: got '{image.encoding}' data that begins with {data[:4]!r}, expected JPEG or PNG"
        )
    # A decoder fills what is missing with grey and says so to nobody.
    whole = data.rstrip(b"\0").endswith(b"\xff\xd9") if kind == "JPEG" else _PNG_END in data[-64:]
    pixels = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED) if whole else None
    if pixels is None:
        raise UsageError(f"{image.topic}: got {len(data)} bytes of {kind} that are cut off or damaged")
    if pixels.ndim == 3 and pixels.shape[2] != 3:
        raise UsageError(f"{image.topic}: got a {kind} of {pixels.shape[2]} channels, expected 1 or 3")
    return Picture(pixels, "bgr" if pixels.ndim == 3 else "mono")


def _compressed(picture: Picture, like: Image) -> bytes:
    data = like.compressed or b""
    if lossy(like):
        encoded, out = cv2.imencode(".jpg", picture.pixels, jpeg.settings_of(data))
    else:
        encoded, out = cv2.imencode(".png", picture.pixels, [cv2.IMWRITE_PNG_COMPRESSION, 1])
    assert encoded, "OpenCV codes every picture that it decoded"
    return bytes(out)
