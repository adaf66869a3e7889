# SPDX-License-Identifier: Apache-2.0
"""Cells of the operational design domain: weather, light, road, speed, range; the unknown is a cell of its own."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np

from mt_nodes.data.messages import Bundle, Image
from mt_nodes.runs.watch.watch_request import WatchSettings

UNKNOWN, NO_PLACE = "unknown", "no place"
#: Mean brightness of a picture, of 255, up to which it is night, and dusk (assumed; a camera's exposure hides much of
#: it, so a label in the configuration is better).
NIGHT, DUSK = 40.0, 80.0
#: The picture is looked at so often, at every so many rows and columns.
_LIGHT_EVERY_NS, _STRIDE = 1_000_000_000, 16
#: Weather, light, road, speed and range; None stands for any.
Cell = tuple[str | None, str | None, str | None, str | None, str | None]
EVERYWHERE: Cell = (None, None, None, None, None)


class ConditionCells:
    """Tells the cell of each instant."""

    def __init__(self, settings: WatchSettings) -> None:
        self._settings = settings
        self._light, self._light_ns = UNKNOWN, -_LIGHT_EVERY_NS

    def of(self, bundle: Bundle) -> tuple[str, str, str, str]:
        """Return weather, light, road and speed of an instant."""
        settings, motion = self._settings, bundle.motion
        speed = None if motion is None else motion.speed_mps
        named = UNKNOWN if speed is None else interval(abs(speed), settings.speed_edges_mps, "m/s")
        return settings.weather or UNKNOWN, settings.light or self._measured(bundle), settings.road or UNKNOWN, named

    def range(self, range_m: float | None) -> str:
        """Return the cell of a distance."""
        return NO_PLACE if range_m is None else interval(range_m, self._settings.range_edges_m, "m")

    def _measured(self, bundle: Bundle) -> str:
        """Return the light by a picture's brightness, once a second."""
        if abs(bundle.stamp_ns - self._light_ns) >= _LIGHT_EVERY_NS:
            found = next((value for image in bundle.images if (value := brightness(image)) is not None), None)
            self._light = UNKNOWN if found is None else light_of(found)
            self._light_ns = bundle.stamp_ns
        return self._light


def interval(value: float, edges: Sequence[float], unit: str) -> str:
    """Return the name of the interval that a value lies in, such as ``10-20 m``."""
    at = bisect_right(edges, value)
    if at == len(edges):
        return f"{edges[-1]:g} {unit} or more" if edges else "any"
    return f"{edges[at - 1] if at else 0:g}-{edges[at]:g} {unit}"


def light_of(mean: float) -> str:
    """Return the light of a picture with this mean brightness, of 255."""
    return "night" if mean < NIGHT else "dusk" if mean < DUSK else "day"


def brightness(image: Image) -> float | None:
    """Return the mean brightness of an image, of 255; None where its pixels are not light of eight bits."""
    if image.compressed is not None or image.pixels.dtype != np.uint8 or image.encoding.startswith("bayer"):
        return None
    pixels = image.pixels[::_STRIDE, ::_STRIDE]
    return float(pixels.mean()) if pixels.size else None
