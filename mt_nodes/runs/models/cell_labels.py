# SPDX-License-Identifier: Apache-2.0
"""What a segmentation network is to say of the cells of a labelled cloud, and clouds changed so that it learns more."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Ints
from mt_nodes.base.errors import NotApplicable
from mt_nodes.base.plugins import find
from mt_nodes.data.messages import Bundle
from mt_nodes.relations.mutations.base import Mutation
from mt_nodes.runs.models.labelled_clouds import NOT_TOLD, LabelledCloud
from mt_nodes.stacks.reference.cell_features import CellGrid
from mt_nodes.stacks.reference.cell_objects import CATEGORY, CHANNELS, CLASS, CONFIDENCE, HEADING, HEIGHT, OFFSET

Floats = npt.NDArray[np.float32]

#: What the clouds of the training are changed by: losses and errors of a sensor, and weather. Noise outside the region
#: of interest is not among them: what a relation is to find is not trained away.
AUGMENTATIONS = ("points_dropped", "beams_lost", "points_jittered", "density_decreased", "rain", "intensity_changed")


def cell_labels(cloud: LabelledCloud, grid: CellGrid) -> Floats:
    """Return (12, cells, cells), in the channels of :mod:`~mt_nodes.stacks.reference.cell_objects`.

    A cell belongs to the object that has the most returns in it, among objects. Offsets lead, in metres, from the
    middle of the cell to that of the object, towards higher rows and columns. Heights are those of the object's top.
    """
    out = np.zeros((CHANNELS, grid.cells**2), dtype=np.float32)
    cell, owner = _owners(cloud, grid)
    row, column = np.divmod(cell, grid.cells)
    out[CATEGORY, cell] = out[CONFIDENCE, cell] = 1.0
    out[OFFSET.start, cell] = grid.centres_m[row] - cloud.centre_m[owner, 0]
    out[OFFSET.start + 1, cell] = grid.centres_m[column] - cloud.centre_m[owner, 1]
    out[CLASS.start + cloud.kind[owner], cell] = 1.0
    out[HEADING.start, cell], out[HEADING.start + 1, cell] = np.cos(cloud.yaw_rad[owner]), np.sin(cloud.yaw_rad[owner])
    out[HEIGHT, cell] = cloud.top_m[owner]
    return out.reshape(CHANNELS, grid.cells, grid.cells)


def told_cells(cloud: LabelledCloud, grid: CellGrid) -> Floats:
    """Return (cells, cells): 0 where a return is not known to be of an object or of none, and no object's is there."""
    out = np.ones(grid.cells**2, dtype=np.float32)
    cell = grid.cell_of(*cloud.points[cloud.owner == NOT_TOLD, :2].T)
    out[cell[cell >= 0]] = 0.0
    out[_owners(cloud, grid)[0]] = 1.0
    return out.reshape(grid.cells, grid.cells)


def _owners(cloud: LabelledCloud, grid: CellGrid) -> tuple[Ints, Ints]:
    """Return the cells (K,) with returns of objects, and the object (K,) that has the most of them."""
    of_object = cloud.owner >= 0
    cell = grid.cell_of(*cloud.points[of_object, :2].T)
    inside = cell >= 0
    pair, count = np.unique(
        cell[inside] * len(cloud.kind) + cloud.owner[of_object][inside] if len(cloud.kind) else np.empty(0, np.int64),
        return_counts=True,
    )
    order = np.lexsort((pair, count))
    cells, owner = np.divmod(pair[order], max(len(cloud.kind), 1))
    # Of each cell the last row: that with the most.
    last = len(cells) - 1 - np.unique(cells[::-1], return_index=True)[1]
    return cells[last], owner[last]


def augmented(cloud: LabelledCloud, rng: np.random.Generator) -> LabelledCloud:
    """Return the cloud turned, mirrored, and perhaps mutated; in half of all cases with another scale of intensity."""
    changed = _mutated(cloud, str(rng.choice(AUGMENTATIONS)), rng) if rng.random() < 0.4 else cloud
    angle, mirror = rng.normal(0.0, 0.3), -1.0 if rng.random() < 0.5 else 1.0
    c, s = np.cos(angle), np.sin(angle)
    turn = np.array([[c, -s], [s, c]]) * np.array([[1.0, 1.0], [mirror, mirror]])
    points = changed.points.copy()
    points[:, :2] = points[:, :2] @ turn.T.astype(np.float32)
    if rng.random() < 0.5:
        points[:, 3] *= np.float32(rng.choice([0.0, rng.uniform(0.3, 1.5)]))
    yaw = mirror * (changed.yaw_rad + angle)
    return replace(changed, points=points, centre_m=changed.centre_m @ turn.T, yaw_rad=yaw)


def _mutated(cloud: LabelledCloud, name: str, rng: np.random.Generator) -> LabelledCloud:
    bundle = Bundle(0, 0, 0, (cloud.message(),))
    mutation: Mutation = find("mutations", name, "augmentation")()
    try:
        draw = mutation.draw(rng, bundle, mutation.begin(rng, bundle))
    except NotApplicable:
        return cloud
    return cloud.changed(mutation.apply(bundle, draw).first.clouds[0])
