# SPDX-License-Identifier: Apache-2.0
"""The scale of a cloud's intensities: 0 to 1, to 255 or to 65,535, from their values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mt_nodes.base.errors import NotApplicable


def full_scale(low: float, high: float, kind: np.dtype[Any], topic: str) -> float:
    """Return the sensor's full scale, from the lowest and highest intensity of a cloud.

    Raises:
        NotApplicable: the values fit no known scale.
    """
    scales = (1.0, 255.0, 65535.0) if kind.kind == "f" else (255.0, 65535.0)
    candidates = [s for s in scales if high <= s]
    if low < 0.0 or not candidates:
        raise NotApplicable(
            f"intensities of {topic} from {low:g} to {high:g} fit none of the scales 0..1, 0..255, 0..65535"
        )
    largest = float(np.iinfo(kind).max) if kind.kind in "iu" else math.inf
    return min(candidates[0], largest)
