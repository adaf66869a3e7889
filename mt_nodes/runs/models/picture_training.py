# SPDX-License-Identifier: Apache-2.0
"""What the detector for pictures learns from made-up streets; import it only where PyTorch is wanted.

Which cells are to say a box is decided by how well they say it already, as in TOOD (Feng et al., ICCV 2021) and YOLOv8.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import nn

from mt_nodes.base.seeds import generator
from mt_nodes.runs.models.added_samples import AddedSamples, picture_of
from mt_nodes.runs.models.detector_recipes import PictureRecipe
from mt_nodes.runs.models.detector_training import Cuts, DetectorTask
from mt_nodes.runs.models.labelled_pictures import labelled_picture
from mt_nodes.runs.models.picture_labels import IGNORED, NOBODY, augmented, square
from mt_nodes.runs.models.picture_network import SmallDetector, edges_of, middles

#: Width and height that the exported network takes.
SIZE_PX = (640, 384)
#: Cells that say one box; powers of score and overlap by which they are chosen; how much boxes count against classes.
_CELLS, _SCORE_POWER, _OVERLAP_POWER, _BOXES = 9, 0.5, 6.0, 5.0
#: A box is no narrower than this to the cells that may say it, or thin things would have none.
_LEAST_PX = 12.0


@dataclass(frozen=True)
class PictureTask(DetectorTask[PictureRecipe]):
    """Squares (crops, 3, side, side) uint8 of pictures, and their objects (crops, MOST, 5)."""

    name = "yolo"
    ports = ("images", "boxes")
    multiple = 32
    pool = 256
    unseen = 24

    recipe: PictureRecipe
    added: AddedSamples = field(default_factory=AddedSamples)
    start: str = ""

    @property
    def side(self) -> tuple[str, int]:
        """Side of a square in pixels."""
        return "crop_px", self.recipe.crop_px

    def network(self) -> nn.Module:
        """Return a network that has learned nothing."""
        return SmallDetector().to(memory_format=torch.channels_last)

    def cuts(self, index: int, unseen: bool = False) -> Cuts:
        """Return the squares of a picture."""
        recipe = self.recipe
        seed = recipe.seed + 1_000_000 if unseen else recipe.seed
        rng = generator(seed, "picture_training", 0, index, "augmentation")
        added = None if unseen else self.added.drawn(rng)
        picture = augmented(picture_of(*added) if added else labelled_picture(seed, index), rng)
        squares = [square(picture, recipe.crop_px, rng) for _ in range(recipe.crops)]
        pixels = np.stack([one.transpose(2, 0, 1) for one, _ in squares])
        return torch.from_numpy(pixels), torch.from_numpy(np.stack([objects for _, objects in squares]))

    def losses(self, network: nn.Module, cuts: Cuts) -> dict[str, torch.Tensor]:
        """Return the loss of classes and that of boxes."""
        pixels, objects = cuts
        given = (pixels.float() / 255.0).contiguous(memory_format=torch.channels_last)
        away, logits = network.cells(given)
        middle = middles(pixels.shape[-2:]).to(pixels.device)
        predicted = edges_of(away, middle)
        with torch.no_grad():
            target, which, weight, counted = _assigned(predicted, logits.sigmoid(), objects, middle)
        total = weight.sum().clamp(min=1.0)
        classes = nn.functional.binary_cross_entropy_with_logits(logits, target, reduction="none")
        right = objects[..., 1:].gather(1, which[..., None].expand(-1, -1, 4))
        of_object = weight > 0.0
        off = 1.0 - _complete_iou(predicted[of_object], right[of_object])
        return {
            "class": (classes * counted[..., None]).sum() / total,
            "box": _BOXES * (off * weight[of_object]).sum() / total,
        }

    def example(self) -> torch.Tensor:
        """Return a picture (1, 3, 384, 640)."""
        return torch.zeros(1, 3, SIZE_PX[1], SIZE_PX[0])


def _assigned(
    predicted: torch.Tensor, score: torch.Tensor, objects: torch.Tensor, middle: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Say what each cell is to say.

    Args:
        predicted: (N, M, 4). score: (N, M, C). objects: (N, K, 5). middle: (M, 2).

    Returns:
        (N, M, C) score of each class; (N, M) the object; (N, M) how much its box counts; (N, M) whether it counts.
    """
    kind, edges = objects[..., 0], objects[..., 1:]
    inside = _inside(edges, middle)
    overlap = _iou(edges[:, :, None], predicted[:, None])
    likely = score.transpose(1, 2).gather(1, kind.clamp(min=0).long()[..., None].expand(-1, -1, score.shape[1]))
    fit = (likely**_SCORE_POWER * overlap**_OVERLAP_POWER + 1e-9) * inside * (kind >= 0)[..., None]
    best = fit.topk(min(_CELLS, fit.shape[2]), dim=2)
    chosen = torch.zeros_like(fit).scatter_(2, best.indices, (best.values > 0.0).float())
    # A cell says one box: that which it says best.
    which = (chosen * (overlap + 1e-6)).argmax(dim=1)
    taken = chosen.amax(dim=1) > 0.0
    mine = nn.functional.one_hot(which, kind.shape[1]).transpose(1, 2) * taken[:, None]
    fit, overlap = fit * mine, overlap * mine
    scaled = fit / fit.amax(dim=2, keepdim=True).clamp(min=1e-12) * overlap.amax(dim=2, keepdim=True)
    weight = scaled.sum(dim=1).clamp(min=0.0)
    of = kind.gather(1, which).clamp(min=0).long()
    target = nn.functional.one_hot(of, score.shape[2]) * weight[..., None]
    counted = taken | ~(inside & (kind == IGNORED)[..., None]).any(dim=1)
    return target, which, weight, counted


def _inside(edges: torch.Tensor, middle: torch.Tensor) -> torch.Tensor:
    """Return whether the middles of cells (M, 2) lie in boxes (N, K, 4): (N, K, M)."""
    centre, half = (edges[..., :2] + edges[..., 2:]) / 2.0, (edges[..., 2:] - edges[..., :2]) / 2.0
    reach = half.clamp(min=_LEAST_PX / 2.0)
    near = ((middle - centre[:, :, None]).abs() < reach[:, :, None]).all(dim=-1)
    return near & (edges[..., :1] > NOBODY)


def _iou(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return the intersection over union of boxes (…, 4)."""
    low, high = torch.maximum(a[..., :2], b[..., :2]), torch.minimum(a[..., 2:], b[..., 2:])
    both = (high - low).clamp(min=0.0).prod(dim=-1)
    union = sum((box[..., 2:] - box[..., :2]).clamp(min=0.0).prod(dim=-1) for box in (a, b)) - both
    return both / union.clamp(min=1e-6)


def _complete_iou(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return the complete IoU of boxes (K, 4) (Zheng et al., AAAI 2020): less where middles and shapes differ."""
    around = torch.maximum(a[:, 2:], b[:, 2:]) - torch.minimum(a[:, :2], b[:, :2])
    apart = (a[:, :2] + a[:, 2:] - b[:, :2] - b[:, 2:]) / 2.0
    away = (apart**2).sum(dim=1) / (around**2).sum(dim=1).clamp(min=1e-6)
    (aw, ah), (bw, bh) = ((box[:, 2:] - box[:, :2]).clamp(min=1e-3).unbind(1) for box in (a, b))
    shape = 4.0 / torch.pi**2 * (torch.atan(aw / ah) - torch.atan(bw / bh)) ** 2
    iou = _iou(a, b)
    with torch.no_grad():
        much = shape / (1.0 - iou + shape).clamp(min=1e-6)
    return iou - away - much * shape
