# SPDX-License-Identifier: Apache-2.0
"""Which cells of a picture have the colour of a surface that returns near by lie on."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Singles = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]
#: Parts of a picture whose surfaces are looked at together; each with its two neighbours.
_PARTS = 12
#: Steps of colour, of the square root of light, which is about as fine as eyes are.
_STEPS = 32
#: A colour is like those a step up or down from it.
_LIKE = np.stack(np.meshgrid(*[(-1, 0, 1)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)


def like_colours(light: Singles, surface: Singles, known: Mask) -> Mask:
    """Return which cells (h, w) have the colour of a surface of their column or of those near it.

    Args:
        light: (h, w, 3) of the cells. surface: (1, w, 3) light of a surface in each column, where it is known (1, w).
    """
    colour, own = _steps(light), _steps(surface)[0]
    place = (colour * np.array([_STEPS * _STEPS, _STEPS, 1])).sum(axis=-1)
    found = np.zeros(place.shape, bool)
    ends = np.linspace(0, place.shape[1], _PARTS + 1).astype(int)
    for part in range(_PARTS):
        near = slice(ends[max(part - 1, 0)], ends[min(part + 2, _PARTS)])
        colours = np.unique(own[near][known[0, near]], axis=0)
        like = np.clip(colours[:, None] + _LIKE, 0, _STEPS - 1).reshape(-1, 3)
        table = np.zeros((_STEPS,) * 3, bool)
        table[like[:, 0], like[:, 1], like[:, 2]] = True
        columns = slice(ends[part], ends[part + 1])
        found[:, columns] = table.reshape(-1)[place[:, columns]]
    return found


def _steps(light: Singles) -> npt.NDArray[np.int32]:
    return np.minimum(np.sqrt(light) * np.float32(_STEPS), np.float32(_STEPS - 1)).astype(np.int32)
