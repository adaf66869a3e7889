# SPDX-License-Identifier: Apache-2.0
"""Pieces of pictures as SVG, for pages that every run writes: Matplotlib takes longer to import than these to draw."""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

#: Follows the page: dark where the reader likes it dark. On a phone, where the picture is small, text is larger.
STYLE = """
text{font:11px system-ui,sans-serif;fill:#444}
.halo{paint-order:stroke;stroke:#fff;stroke-width:3px;stroke-linejoin:round}
.line{fill:none;stroke:#111}.grid{fill:none;stroke:#8885;stroke-width:.6}
@media (max-width:450px){text{font-size:17px}.wide{display:none}}
@media (prefers-color-scheme:dark){text{fill:#c3c9cf}.line{stroke:#e4e6e8}.halo{stroke:#15181c}}
"""
_STEPS = (1.0, 2.0, 5.0, 10.0)


def document(width: float, height: float, parts: Iterable[str], style: str = "") -> str:
    """Return an SVG of a size in its own units, with :data:`STYLE` and more rules."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {number(width)} {number(height)}" '
        f'width="{number(width)}" height="{number(height)}"><style>{STYLE}{style}</style>{"".join(parts)}</svg>'
    )


def data_uri(svg: str) -> str:
    """Return an SVG as a data URI; equal pictures give equal bytes."""
    return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"


def number(value: float) -> str:
    """Return a coordinate with a tenth of a unit, without a needless zero."""
    return f"{round(float(value), 1) + 0.0:g}"


def path(points: npt.ArrayLike, *, closed: bool = False) -> str:
    """Return places (N, 2) as data of a path; it is interrupted where one is not finite."""
    parts, pen = [], "M"
    for x, y in np.asarray(points, dtype=np.float64).reshape(-1, 2).tolist():
        if not (math.isfinite(x) and math.isfinite(y)):
            pen = "M"
            continue
        parts.append(f"{pen}{number(x)} {number(y)}")
        pen = "L"
    return "".join(parts) + ("z" if closed and parts else "")


def ticks(low: float, high: float, most: int) -> list[float]:
    """Return round numbers between two, at most so many, a step of 1, 2 or 5 times a power of ten apart."""
    span = high - low
    if not (math.isfinite(span) and span > 0.0):
        return [low] if math.isfinite(low) else []
    power = 10.0 ** math.floor(math.log10(span / most))
    step = next(power * step for step in _STEPS if span / (power * step) < most)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(k * step, 12) + 0.0 for k in range(first, last + 1)]


def indexed_png(indices: npt.NDArray[np.uint8], colours: Sequence[tuple[str, float]]) -> str:
    """Return an image (H, W) of numbers of colours as a data URI.

    A palette makes it a third as large as with four channels, which is all that OpenCV writes.
    ``colours``: hexadecimal colour and opacity, by number.
    """
    height, width = indices.shape
    palette = b"".join(bytes.fromhex(colour.lstrip("#")) for colour, _ in colours)
    opacity = bytes(round(255 * share) for _, share in colours)
    rows = np.zeros((height, width + 1), np.uint8)  # each row begins with the number of its filter: none
    rows[:, 1:] = indices
    chunks = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
        (b"PLTE", palette),
        (b"tRNS", opacity),
        (b"IDAT", zlib.compress(rows.tobytes(), 6)),
        (b"IEND", b""),
    )
    parts = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
    whole = b"\x89PNG\r\n\x1a\n" + b"".join(parts)
    return f"data:image/png;base64,{base64.b64encode(whole).decode()}"
