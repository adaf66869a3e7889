# SPDX-License-Identifier: Apache-2.0
"""The beam of a vehicle's headlamps; its shape and strength are assumptions."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Singles = npt.NDArray[np.float32]

#: Headlamps: warm white, brightest straight ahead on the road, and the beam's widths in rad (one standard deviation).
WARM = np.array([1.0, 0.93, 0.8], np.float32)
_WIDE_RAD, _HIGH_RAD, _AIM_RAD = 0.3, 0.06, -0.02
#: Range at which headlamps are as bright as daylight, range below which they get no brighter, and their maximum.
_AS_DAY_M, _NEAREST_M, _MOST = 9.0, 3.0, 1.5


def headlamps(forward: Singles, left: Singles, upward: Singles, range_m: Singles, strength: float = 1.0) -> Singles:
    """Return the light of headlamps relative to daylight, along unit vectors of ``base_link`` at ranges; any shape.

    A beam of two Gaussians of the angle, falling with the square of the range.
    """
    above = np.maximum(np.arcsin(np.clip(upward, -1.0, 1.0)) - np.float32(_AIM_RAD), 0.0) / np.float32(_HIGH_RAD)
    beam = np.exp(-0.5 * (np.square(np.arctan2(left, forward) / np.float32(_WIDE_RAD)) + np.square(above)))
    near = np.square(_AS_DAY_M / np.maximum(range_m, np.float32(_NEAREST_M)))
    return np.asarray(strength * np.minimum(beam * near, _MOST), np.float32)
