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


def like_colours(light: Singles, cells: Mask, surface: Singles, known: Mask) -> Mask:
    """Return which of some cells (n,) have the colour of a surface of their column or of those near it.

    Args:
        light: (h, w, 3) of all cells. cells: (h, w) those in question.
        surface: (1, w, 3) light of a surface in each column, where it is known (1, w).
    """
    own = _steps(surface[0])
    tables = np.zeros((_PARTS, _STEPS, _STEPS, _STEPS), bool)
    ends = np.linspace(0, cells.shape[1], _PARTS + 1).astype(int)
    for number, table in enumerate(tables):
        near = slice(ends[max(number - 1, 0)], ends[min(number + 2, _PARTS)])
        like = np.clip(own[near][known[0, near]][:, None] + _LIKE, 0, _STEPS - 1).reshape(-1, 3)
        table[like[:, 0], like[:, 1], like[:, 2]] = True
    row, column = np.nonzero(cells)
    red, green, blue = _steps(light[row, column]).T
    return np.asarray(tables[column * _PARTS // cells.shape[1], red, green, blue])


def _steps(light: Singles) -> npt.NDArray[np.int32]:
    return np.minimum(np.sqrt(light) * np.float32(_STEPS), np.float32(_STEPS - 1)).astype(np.int32)
