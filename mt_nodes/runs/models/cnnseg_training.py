# SPDX-License-Identifier: Apache-2.0
"""What the segmentation network learns from clouds of made-up streets; import it only where PyTorch is wanted."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from mt_nodes.base.seeds import generator
from mt_nodes.runs.models.added_samples import AddedSamples, cloud_of
from mt_nodes.runs.models.cell_labels import augmented, cell_labels, told_cells
from mt_nodes.runs.models.cnnseg_network import SlimCnnSeg
from mt_nodes.runs.models.detector_recipes import SegmentationRecipe
from mt_nodes.runs.models.detector_training import Cuts, DetectorTask
from mt_nodes.runs.models.labelled_clouds import labelled_cloud
from mt_nodes.stacks.reference.cell_features import FEATURES, OCCUPIED, CellGrid
from mt_nodes.stacks.reference.cell_objects import CATEGORY, CHANNELS, CLASS, CONFIDENCE, HEADING, HEIGHT, OFFSET

Floats = npt.NDArray[np.float32]

INTENSITY_FULL_SCALE = 255.0
#: How much an object's cells of a class count: a pedestrian has few, a truck many.
_CLASS_WEIGHT = (2.0, 1.0, 0.7, 3.0, 4.0)


@dataclass(frozen=True)
class SegmentationTask(DetectorTask[SegmentationRecipe]):
    """Squares of features, labels, and whether those are known (crops, 21, cells, cells), of clouds."""

    name = "cnnseg"
    ports = ("features", "cells")
    multiple = 16

    recipe: SegmentationRecipe
    added: AddedSamples = field(default_factory=AddedSamples)
    start: str = ""

    @property
    def side(self) -> tuple[str, int]:
        """Side of a square in cells."""
        return "crop_cells", self.recipe.crop_cells

    def network(self) -> nn.Module:
        """Return a network that has learned nothing."""
        return SlimCnnSeg()

    def cuts(self, index: int, unseen: bool = False) -> Cuts:
        """Return the squares of a cloud."""
        recipe, grid = self.recipe, CellGrid()
        rng = generator(recipe.seed, "cnnseg_training", 0, index, "augmentation")
        added = self.added.drawn(rng)
        cloud = augmented(cloud_of(*added) if added else labelled_cloud(recipe.seed, index), rng)
        features, told = grid.features(cloud.points, INTENSITY_FULL_SCALE), told_cells(cloud, grid)
        both = np.concatenate([features, cell_labels(cloud, grid), told[None]])
        squares = np.stack([_square(both, recipe.crop_cells, rng) for _ in range(recipe.crops)])
        return (torch.from_numpy(squares),)

    def losses(self, network: nn.Module, cuts: Cuts) -> dict[str, torch.Tensor]:
        """Return the parts of the loss by channels."""
        return _losses(network, cuts[0])

    def example(self) -> torch.Tensor:
        """Return features (1, 8, 640, 640)."""
        return torch.zeros(1, FEATURES, CellGrid().cells, CellGrid().cells)


def _square(both: Floats, side: int, rng: np.random.Generator) -> Floats:
    """Cut out a square; three of four have an object somewhere in it."""
    cells = both.shape[1]
    aim = rng.integers(0, cells, 2)
    rows, columns = np.nonzero(both[FEATURES + CATEGORY])
    if len(rows) and rng.random() < 0.75:
        chosen = int(rng.integers(len(rows)))
        aim = np.array([rows[chosen], columns[chosen]])
    row, column = np.clip(aim - rng.integers(side // 4, 3 * side // 4, 2), 0, cells - side)
    return both[:, row : row + side, column : column + side]


def _losses(network: nn.Module, squares: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the parts of the loss; only cells with returns count, and for most parts only those of objects."""
    features, target, told = squares.split([FEATURES, CHANNELS, 1], dim=1)
    predicted = network(features)
    occupied = (features[:, OCCUPIED] > 0) & (told[:, 0] > 0)
    of_object = (target[:, CATEGORY] > 0) & occupied
    weights = torch.tensor(_CLASS_WEIGHT, device=squares.device)
    weight = 1.0 + ((target[:, CLASS] * weights[:, None, None]).sum(dim=1) - 1.0) * of_object
    predicted_rows, right, heavy = (plane.movedim(1, -1)[of_object] for plane in (predicted, target, weight[:, None]))
    huber, cross = nn.functional.smooth_l1_loss, nn.functional.binary_cross_entropy_with_logits
    total = heavy.sum().clamp(min=1.0)

    def of(what: slice) -> torch.Tensor:
        return (heavy * huber(predicted_rows[:, what], right[:, what], reduction="none")).sum() / total

    def sure(channel: int) -> torch.Tensor:
        known = (plane[occupied] for plane in (predicted[:, channel], target[:, channel], weight))
        # Of squares of which nothing is known there is nothing to learn: their mean would be no number.
        return cross(*known, reduction="sum") / occupied.sum().clamp(min=1)

    classes = cross(predicted_rows[:, CLASS], right[:, CLASS], reduction="none")
    return {
        "category": sure(CATEGORY),
        "offset": of(OFFSET),
        "confidence": sure(CONFIDENCE),
        "class": 0.5 * (heavy * classes).sum() / total,
        "heading": 0.1 * of(HEADING),
        "height": 0.5 * of(slice(HEIGHT, CHANNELS)),
    }
