# SPDX-License-Identifier: Apache-2.0
"""Messages whose data is written in place, so that serializing them copies nothing: one pass, one copy."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt

from mt_nodes.data.messages import Cloud, Image, Points

#: CPython's way to a ``bytes`` object that may be written until somebody else knows it.
_unwritten_bytes = ctypes.pythonapi.PyBytes_FromStringAndSize
_unwritten_bytes.argtypes, _unwritten_bytes.restype = (ctypes.c_char_p, ctypes.c_ssize_t), ctypes.py_object
#: Where the content of a ``bytes`` object begins; behind it is one more byte, 0.
_CONTENT_AT = bytes.__basicsize__ - 1


class OutgoingMessage:
    """The bytes of one message with room for a head, data that are written first, and a tail.

    NumPy reads ``__array_interface__``: an array of this is the whole memory, and keeps it.
    """

    def __init__(self, head_size: int, data_size: int, tail_size: int) -> None:
        size = head_size + data_size + tail_size
        message = _unwritten_bytes(None, size)
        self._sizes = head_size, data_size, tail_size
        address = id(message) + _CONTENT_AT
        self.__array_interface__ = {"data": (address, False), "shape": (size,), "typestr": "|u1", "version": 3}
        #: Emptied by whoever completes the message; taking from a list is atomic.
        self._message = [message]
        self._memory = message

    @property
    def data(self) -> npt.NDArray[np.uint8]:
        """The memory (data_size,) of the data, not yet written."""
        head_size, data_size, _ = self._sizes
        return np.asarray(self)[head_size : head_size + data_size]

    def completed(self, head: bytes | bytearray, tail: bytes) -> bytes | None:
        """Return the message with its head and tail; None where they do not fit, and from the second time on.

        Who has it already must not see another one's stamp in it.
        """
        head_size, data_size, tail_size = self._sizes
        if (len(head), len(tail)) != (head_size, tail_size) or not self._message:
            return None
        try:
            message = self._message.pop()
        except IndexError:  # another thread was quicker
            return None
        address = id(message) + _CONTENT_AT
        ctypes.memmove(address, bytes(head), head_size)
        ctypes.memmove(address + head_size + data_size, tail, tail_size)
        return message  # type: ignore[no-any-return]


def outgoing_message(data: npt.NDArray[Any]) -> OutgoingMessage | None:
    """Return the message that an array is all the data of, None where there is none."""
    owner = data
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    message = owner.base
    whole = isinstance(message, OutgoingMessage) and data.flags.c_contiguous and data.nbytes == message.data.nbytes
    return message if whole else None


def unwritten_points(like: Cloud, count: int) -> Points:
    """Return :attr:`Cloud.raw` items (count,) of a cloud's layout, to be written: the first message made of a cloud of
    them has them already, and copies nothing.
    """
    layout = like.points.dtype
    fields = sum(_text_size(name) + 12 for name in layout.names or ())
    head_size = _HEADER + _text_size(like.frame_id) + 8 + 4 + fields + 16
    return OutgoingMessage(head_size, count * layout.itemsize, 1).data.view(f"V{layout.itemsize}")


def unwritten_pixels(like: Image) -> Points:
    """Return pixels of an image's shape and type, to be written, as :func:`unwritten_points` does points."""
    head_size = _HEADER + _text_size(like.frame_id) + 8 + _text_size(like.encoding, 1) + 8
    return OutgoingMessage(head_size, like.pixels.nbytes, 0).data.view(like.pixels.dtype).reshape(like.pixels.shape)


#: Encapsulation and stamp.
_HEADER = 12


def _text_size(text: str, more: int = 0) -> int:
    """Return the bytes of a string: its length, itself, so many more, and zeros up to the next four bytes."""
    size = len(text.encode()) + 1 + more
    return 4 + size + -size % 4
