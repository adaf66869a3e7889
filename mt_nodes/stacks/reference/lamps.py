# SPDX-License-Identifier: Apache-2.0
"""Finds whatever may be a lit lamp of a traffic light in a picture: it is made to miss none, and often mistaken.

A lit lamp is a small saturated spot of its colour. Tail lights, red lorries and leaves in the sun are such spots, too,
so that a find proves nothing; where it finds nothing, no lamp of that colour shines within its range.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.base.params import param
from mt_nodes.data.outputs import ImageBoxes

Pixels = npt.NDArray[np.uint8]

#: Channel excess, in steps of 8 bits: red over green and blue; green over red; of yellow, red and green over blue.
_RED, _GREEN, _YELLOW = 60, 40, 90
#: Least brightness of the strongest channel. A lit lamp that overexposes turns orange: its green may come near its red.
_LIT, _ORANGE = 130, 40
_MOST = 200


@dataclass(frozen=True, eq=False)
class LampDetector:
    """Finds spots of red, yellow and green light; each picture on its own."""

    least_px: int = param(3, low=1, high=100, unit="px", help="area of the smallest spot that counts")

    def __call__(self, given: Pixels | Mapping[str, Any]) -> ImageBoxes:
        """Return boxes labelled red_light, yellow_light, green_light, with score 1.

        Args:
            given: a picture (H, W, 3) uint8, red, green, blue.
        """
        image = np.asarray(given["image"] if isinstance(given, Mapping) else given)
        boxes, labels = [], []
        for label, mask in _spots(image).items():
            count, _, stats, _ = cv2.connectedComponentsWithStats(mask.astype(np.uint8), connectivity=8)
            rows = sorted(range(1, count), key=lambda row: -int(stats[row, cv2.CC_STAT_AREA]))
            for row in rows[:_MOST]:
                x, y, wide, high, area = stats[row].tolist()
                if area >= self.least_px:
                    boxes.append((x, y, x + wide - 1, y + high - 1))
                    labels.append(label)
        return ImageBoxes.make("", None, np.array(boxes, dtype=np.float64).reshape(-1, 4), labels)


def _spots(image: Pixels) -> dict[str, npt.NDArray[np.bool_]]:
    """Return where (H, W) each colour shines."""
    red, green, blue = (channel.astype(np.int16) for channel in cv2.split(image))
    is_red = (red >= _LIT) & (red - blue >= _RED) & (red - green >= _ORANGE)
    is_yellow = (red >= _LIT) & (green >= _LIT) & (np.minimum(red, green) - blue >= _YELLOW)
    is_green = (green >= _LIT) & (green - red >= _GREEN)
    return {"red_light": is_red, "yellow_light": is_yellow, "green_light": is_green}
