# SPDX-License-Identifier: Apache-2.0
"""Pictures that are projected on a body from the side, from before, from behind and from above.

A picture is drawn once at a few millimetres a pixel, and averaged to the resolution at which a camera sees the body.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Mask, Singles

Rgb = tuple[float, float, float]

#: Channels of a picture: colour, share of it over the body's own, reflectance, glass, retro-reflector.
CHANNELS = 7


@dataclass(eq=False)
class Decal:
    """A picture of (H, W, 7) float32 over a rectangle of the body.

    Attributes:
        low_m, high_m: corners of the rectangle (right, up) in metres. step_m: size of a pixel.
        pixels: red, green, blue, share over the body's own colour, mirror, glass, retro-reflector.
    """

    low_m: tuple[float, float]
    high_m: tuple[float, float]
    step_m: float = 0.005
    pixels: Singles = field(init=False)
    _smaller: dict[int, tuple[Singles, Singles]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        (x0, z0), (x1, z1) = self.low_m, self.high_m
        size = int(np.ceil((z1 - z0) / self.step_m)), int(np.ceil((x1 - x0) / self.step_m))
        self.pixels = np.zeros((*size, CHANNELS), np.float32)

    def grid(self) -> tuple[Singles, Singles]:
        """Return the coordinates (H, W), (H, W) of the pixels in metres."""
        rows, columns = self.pixels.shape[:2]
        x = self.low_m[0] + (np.arange(columns, dtype=np.float32) + 0.5) * np.float32(self.step_m)
        z = self.high_m[1] - (np.arange(rows, dtype=np.float32) + 0.5) * np.float32(self.step_m)
        right, up = np.meshgrid(x, z)
        return right, up

    def fill(self, mask: Mask, colour: Rgb, mirror: float = 0.0, glass: float = 0.0, retro: float = 0.0) -> None:
        """Paint the pixels of a mask (H, W)."""
        self.pixels[mask] = (*colour, 1.0, mirror, glass, retro)

    def polygon(
        self, points_m: list[tuple[float, float]], colour: Rgb, mirror: float = 0.0, retro: float = 0.0
    ) -> None:
        """Paint a polygon."""
        mask = np.zeros(self.pixels.shape[:2], np.uint8)
        cv2.fillPoly(mask, [self._at(points_m)], 1, cv2.LINE_8, 4)
        self.fill(mask > 0, colour, mirror, 0.0, retro)

    def disc(self, middle_m: tuple[float, float], radius_m: float, colour: Rgb, mirror: float) -> None:
        """Paint a disc."""
        right, up = self.grid()
        self.fill(np.hypot(right - middle_m[0], up - middle_m[1]) < radius_m, colour, mirror)

    def line(self, points_m: list[tuple[float, float]], width_m: float, colour: Rgb, share: float = 1.0) -> None:
        """Draw a line over what is there."""
        mask = np.zeros(self.pixels.shape[:2], np.uint8)
        cv2.polylines(mask, [self._at(points_m)], False, 1, max(1, round(width_m / self.step_m)), cv2.LINE_8, 4)
        self.fill(mask > 0, colour)
        self.pixels[mask > 0, 3] = share

    def text(
        self, text: str, middle_m: tuple[float, float], size_m: tuple[float, float], colour: Rgb, mirrored: bool
    ) -> None:
        """Write a line of text into a rectangle; ``mirrored`` where the picture is seen from its back."""
        (width, height), base = cv2.getTextSize(text, cv2.FONT_HERSHEY_DUPLEX, 2.0, 4)
        ink = np.zeros((height + base, width), np.uint8)
        cv2.putText(ink, text, (0, height + base // 2), cv2.FONT_HERSHEY_DUPLEX, 2.0, 255, 4)
        columns, rows = (max(2, round(v / self.step_m)) for v in size_m)
        ink = cv2.resize(ink[:, ::-1] if mirrored else ink, (columns, rows), interpolation=cv2.INTER_AREA)
        column, row = self._at([middle_m])[0] // 16
        top, left = int(row) - rows // 2, int(column) - columns // 2
        piece = self.pixels[top : top + rows, left : left + columns, :3]
        share = ink[: piece.shape[0], : piece.shape[1], None].astype(np.float32) / 255.0
        piece += share * (np.array(colour, np.float32) - piece)

    def sampled(self, right_m: Singles, up_m: Singles, pixel_m: float) -> Singles:
        """Return the picture (n, 7) at places (n,), (n,), averaged over ``pixel_m``."""
        factor = max(1, int(pixel_m / self.step_m))
        small = self._at_scale(factor)
        step = np.float32(self.step_m * factor)
        column = (right_m - np.float32(self.low_m[0])) / step - np.float32(0.5)
        row = (np.float32(self.high_m[1]) - up_m) / step - np.float32(0.5)
        x, y = (np.ascontiguousarray(v, np.float32)[:, None] for v in (column, row))
        parts = []
        for i in range(0, len(x), 30_000):
            piece = slice(i, i + 30_000)
            some = [
                cv2.remap(layer, x[piece], y[piece], cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
                for layer in small
            ]
            parts.append(np.concatenate([s[:, 0] for s in some], axis=1))
        return np.concatenate(parts) if parts else np.zeros((0, CHANNELS), np.float32)

    def _at_scale(self, factor: int) -> tuple[Singles, Singles]:
        """Return the first four channels and the others, averaged over a power of two of pixels."""
        factor = 1 << (factor.bit_length() - 1)
        if factor not in self._smaller:
            rows, columns = (max(2, round(n / factor)) for n in self.pixels.shape[:2])
            parts = (np.ascontiguousarray(self.pixels[..., c]) for c in (slice(0, 4), slice(4, CHANNELS)))
            first, rest = (cv2.resize(part, (columns, rows), interpolation=cv2.INTER_AREA) for part in parts)
            self._smaller[factor] = first, rest
        return self._smaller[factor]

    def _at(self, points_m: list[tuple[float, float]]) -> npt.NDArray[np.int32]:
        p = np.array(points_m, np.float64)
        at = np.column_stack([p[:, 0] - self.low_m[0], self.high_m[1] - p[:, 1]]) / self.step_m - 0.5
        return np.rint(at * 16.0).astype(np.int32)
