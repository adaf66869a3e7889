# SPDX-License-Identifier: Apache-2.0
"""How fast a careful driver goes past what is beside its way, past signs, and where it sees little.

Traffic rules ask for it of children, the elderly, animals, oncoming vehicles, warning signs and weather; the speeds are
assumed. Signs are found as patches of a saturated sign colour in the right half of the picture, none of them read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mt_nodes.data.outputs import Detections

#: Largest speeds beside somebody, beside a vehicle, and at a sign.
PEOPLE_MPS, VEHICLES_MPS, SIGN_MPS = 4.5, 6.0, 7.0
#: Ahead and to either side, in metres, of what counts; a vehicle counts from the edge of the own lane on.
_AHEAD_M, _BESIDE_M, _LANE_M = 45.0, 8.0, 1.5
_PEOPLE = ("pedestrian", "cyclist", "animal")
_VEHICLES = ("car", "truck", "bus", "motorcycle")
#: Power of the sight by which it is slower, as of the camera stack; sight below which lit windows look like signs.
_CARE, _SIGN_SIGHT = 3.0, 0.75
#: Least part of a picture's area that a sign takes, ratio of a sign's colour to others (of bricks it is 1.4), and
#: brightness in steps of 8 bits.
_LEAST_SHARE, _RATIO, _LIT = 6e-5, 1.7, 60.0


@dataclass(frozen=True)
class Sighting:
    """What a driver's camera shows: whether a sign stands ahead, and how well it sees, 0 to 1."""

    sign: bool = False
    sight: float = 1.0


def sighting_in(inputs: Mapping[str, Any]) -> Sighting:
    """Return what the picture among inputs shows; nothing without one."""
    if "image" not in inputs:
        return Sighting()
    from mt_nodes.stacks.reference.camera import CameraStack, luma, visibility  # OpenCV is for those with a camera

    image, size = inputs["image"], inputs["image"].shape[:2]
    camera = CameraStack().camera_of(inputs.get("camera_info"), size)
    sight = visibility(luma(image), camera, CameraStack().clear_detail)
    return Sighting(sight >= _SIGN_SIGHT and _sign_in(image), sight)


def careful_mps(objects: Detections, sees: Sighting, cruise_mps: float) -> float:
    """Return the speed of a careful driver on a free road; objects in its frame, x ahead, y to the left."""
    x, y = objects.center_m[:, :2].T
    ahead = (x > 0.0) & (x < _AHEAD_M) & (np.abs(y) < _BESIDE_M)
    people = ahead & np.isin(objects.label, _PEOPLE)
    vehicles = ahead & np.isin(objects.label, _VEHICLES) & (np.abs(y) > _LANE_M)
    speed_mps = cruise_mps * min(1.0, sees.sight) ** _CARE
    for present, most_mps in ((people.any(), PEOPLE_MPS), (vehicles.any(), VEHICLES_MPS), (sees.sign, SIGN_MPS)):
        speed_mps = min(speed_mps, most_mps) if present else speed_mps
    return float(max(speed_mps, 1.0))


def _sign_in(image: np.ndarray) -> bool:
    """Return whether a patch as large as a sign has a sign's colour: red, orange or yellow."""
    import cv2

    half = image[: round(0.7 * len(image)), image.shape[1] // 2 :].astype(np.float32)
    red, green, blue = half[..., 0], half[..., 1], half[..., 2]
    is_red = (red >= _LIT) & (red >= _RATIO * np.maximum(green, blue))
    coloured = is_red | ((np.minimum(red, green) >= _LIT) & (np.minimum(red, green) >= _RATIO * blue))
    _, _, stats, _ = cv2.connectedComponentsWithStats(coloured.astype(np.uint8), connectivity=8)
    return bool(stats[1:, cv2.CC_STAT_AREA].max(initial=0) >= _LEAST_SHARE * image.shape[0] * image.shape[1])
