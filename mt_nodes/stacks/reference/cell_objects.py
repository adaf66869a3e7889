# SPDX-License-Identifier: Apache-2.0
"""Obstacles from the cell output of a segmentation network.

After the steps that Apollo documents for its own (ApolloAuto/apollo, ``docs/specs/3d_obstacle_perception.md``): each
cell that is likely to be of an object points at the cell of that object's middle; cells whose paths end in the same
place, or in places side by side, are one candidate; its score and its height are the means of its cells, its class has
the highest sum.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.stacks.reference.cell_features import CellGrid

Floats = npt.NDArray[np.float32]
Cells = npt.NDArray[np.int64]

#: Channels of what the network says.
CATEGORY, OFFSET, CONFIDENCE, CLASS, HEADING, HEIGHT = 0, slice(1, 3), 3, slice(4, 9), slice(9, 11), 11
CHANNELS = 12
#: In the order of the channels; Apollo's are unknown, small and big motor vehicle, other vehicle, pedestrian.
CLASSES = ("unknown", "car", "truck", "cyclist", "pedestrian")


@dataclass(frozen=True, eq=False)
class CellObjects:
    """Candidate obstacles.

    Attributes:
        number: (cells²,) which candidate a cell is of, −1 for none.
        score: (M,). top_m: (M,) from the sensor. kind: (M,) place in :data:`CLASSES`.
    """

    number: Cells
    score: npt.NDArray[np.float64]
    top_m: npt.NDArray[np.float64]
    kind: Cells


def objects_of(output: Floats, grid: CellGrid, objectness: float, apart_cells: int = 0) -> CellObjects:
    """Group the cells of each object.

    Args:
        output: (12, cells, cells); probabilities are between 0 and 1 already. objectness: least of a cell of an object.
        apart_cells: places in which paths end are of one object with up to so many cells between them.
    """
    flat = output.reshape(CHANNELS, -1)
    cell = np.flatnonzero(flat[CATEGORY] >= objectness)
    number = np.full(grid.cells**2, -1, dtype=np.int64)
    if not len(cell):
        nobody = np.empty(0)
        return CellObjects(number, nobody, nobody, np.empty(0, dtype=np.int64))
    _, of = np.unique(_joined(_roots(flat, cell, grid), grid, apart_cells), return_inverse=True)
    number[cell] = of
    count = np.bincount(of)
    score, top = (np.bincount(of, flat[channel, cell]) / count for channel in (CONFIDENCE, HEIGHT))
    likely = np.stack([np.bincount(of, row[cell]) for row in flat[CLASS]])
    return CellObjects(number, score, top, likely.argmax(axis=0).astype(np.int64))


def _roots(flat: Floats, cell: Cells, grid: CellGrid) -> Cells:
    """Return the cell (K,) where each cell's path ends: outside all objects, or the smallest cell of a cycle.

    Paths are followed in leaps that double, so that the longest one takes as many steps as its length has bits.
    """
    row, column = np.divmod(cell, grid.cells)
    step = np.rint(flat[OFFSET][:, cell] / grid.cell_m).astype(np.int64)
    row, column = (np.clip(at + delta, 0, grid.cells - 1) for at, delta in ((row, step[0]), (column, step[1])))
    leap = np.arange(grid.cells**2)
    leap[cell] = row * grid.cells + column
    for _ in range(int(np.ceil(np.log2(grid.cells)))):
        leap[cell] = leap[leap[cell]]
    return leap[cell]


def _joined(root: Cells, grid: CellGrid, apart_cells: int) -> Cells:
    """Return the patch number (K,) of each root; roots that touch, also at a corner, are one patch."""
    mask = np.zeros((grid.cells, grid.cells), dtype=np.uint8)
    mask.reshape(-1)[root] = 1
    # Half of the cells between two are added to each of them, and the odd one to the one above or to the left.
    side = apart_cells + 1
    wide = cv2.dilate(mask, np.ones((side, side), np.uint8)) if apart_cells else mask
    patches = cv2.connectedComponents(wide, connectivity=8)[1]
    return np.asarray(patches.reshape(-1)[root], dtype=np.int64)
