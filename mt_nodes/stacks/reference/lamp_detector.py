# SPDX-License-Identifier: Apache-2.0
"""Finds whatever may be a lit lamp of a traffic light in a picture: it is made to miss none, and often mistaken.

A lit lamp is a saturated spot of its colour that lies wholly above the horizon: its post lifts it above the camera,
which looks level, and its housing is black all around. Tail lights of lorries, red awnings and leaves in the sun are
such spots, too, so that a find proves nothing; where it finds nothing, no lamp of that colour shines within its range.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np

from mt_nodes.base.arrays import Mask, Pixels
from mt_nodes.base.params import param
from mt_nodes.data.messages import CameraInfo
from mt_nodes.data.outputs import ImageBoxes

#: Ratio of the strongest channel to others that makes a lit lamp: red to both others, of bricks 1.5; yellow, of red and
#: green, to blue; green to red. A lamp that overexposes turns orange or white from its middle and keeps a rim. Assumed,
#: on pictures of generated streets and of one recorded drive.
_RED, _YELLOW, _GREEN = 1.6, 1.6, 1.4
#: Least brightness of the strongest channel, in steps of 8 bits.
_LIT = 130
_MOST = 200


@dataclass(frozen=True, eq=False)
class LampDetector:
    """Finds spots of red, yellow and green light; each picture on its own."""

    least_px: int = param(2, low=1, high=100, unit="px", help="area of the smallest spot that counts")

    def __call__(self, given: Pixels | Mapping[str, Any]) -> ImageBoxes:
        """Return boxes labelled red_light, yellow_light, green_light, with score 1.

        ``given``: a picture (H, W, 3) uint8, red, green, blue, as ``image``, with its ``camera_info``; the picture
        alone is looked at as a whole.
        """
        image = np.asarray(given["image"] if isinstance(given, Mapping) else given)
        horizon = _horizon(given["camera_info"], len(image)) if isinstance(given, Mapping) else len(image)
        boxes: list[tuple[int, int, int, int]] = []
        labels: list[str] = []
        for label, mask in _spots(image[:horizon]).items():
            count, _, stats, _ = cv2.connectedComponentsWithStats(mask.astype(np.uint8), connectivity=8)
            rows = sorted(range(1, count), key=lambda row: -int(stats[row, cv2.CC_STAT_AREA]))
            for row in rows[:_MOST]:
                x, y, wide, high, area = stats[row].tolist()
                if area >= self.least_px and y + high < horizon:
                    boxes.append((x, y, x + wide - 1, y + high - 1))
                    labels.append(label)
        return ImageBoxes.make("", None, np.array(boxes, dtype=np.float64).reshape(-1, 4), labels)


def _horizon(info: CameraInfo, height: int) -> int:
    """Return the row of the horizon of a level camera; the last one where its calibration says none."""
    row = float(np.asarray(info.k)[1, 2])
    return round(row) if 0.0 < row < height else height


def _spots(image: Pixels) -> dict[str, Mask]:
    """Return where (H, W) each colour shines."""
    red, green, blue = (channel.astype(np.float32) for channel in cv2.split(image))
    warm = np.minimum(red, green)
    return {
        "red_light": (red >= _LIT) & (red >= _RED * np.maximum(green, blue)),
        "yellow_light": (warm >= _LIT) & (warm >= _YELLOW * blue),
        "green_light": (green >= _LIT) & (green >= _GREEN * red),
    }
