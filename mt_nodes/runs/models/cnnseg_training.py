# SPDX-License-Identifier: Apache-2.0
"""Trains the segmentation network on clouds of made-up streets; import it only where PyTorch is wanted.

Every cloud is another one: nothing is seen twice. A directory of a training holds ``cnnseg.onnx``, ``cnnseg.pt`` (the
same numbers, for PyTorch) and ``metrics.jsonl`` (a line every hundred steps).
"""

from __future__ import annotations

import dataclasses
import io
import json
import math
import multiprocessing
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from mt_nodes.base.directories import cannot_write, write_whole
from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.base.seeds import generator
from mt_nodes.runs.models.cell_labels import augmented, cell_labels
from mt_nodes.runs.models.cnnseg_network import SlimCnnSeg
from mt_nodes.runs.models.extra import device_of
from mt_nodes.runs.models.labelled_clouds import labelled_cloud
from mt_nodes.runs.models.segmentation_recipe import SegmentationRecipe, StepReport
from mt_nodes.runs.models.torch_files import write_torch
from mt_nodes.stacks.reference.cell_features import FEATURES, OCCUPIED, CellGrid
from mt_nodes.stacks.reference.cell_objects import CATEGORY, CHANNELS, CLASS, CONFIDENCE, HEADING, HEIGHT, OFFSET

Floats = npt.NDArray[np.float32]

ONNX, WEIGHTS, METRICS = "cnnseg.onnx", "cnnseg.pt", "metrics.jsonl"
INTENSITY_FULL_SCALE = 255.0
#: How much an object's cells of a class count: a pedestrian has few, a truck many.
_CLASS_WEIGHT = (2.0, 1.0, 0.7, 3.0, 4.0)
_REPORTED = 100


class _Squares(Dataset):  # type: ignore[misc]
    """Of each cloud the features and labels (crops, 20, cells, cells) of squares."""

    def __init__(self, recipe: SegmentationRecipe) -> None:
        self._recipe, self._grid = recipe, CellGrid()

    def __len__(self) -> int:
        return self._recipe.clouds

    def __getitem__(self, index: int) -> torch.Tensor:
        recipe, grid = self._recipe, self._grid
        rng = generator(recipe.seed, "cnnseg_training", 0, index, "augmentation")
        cloud = augmented(labelled_cloud(recipe.seed, index), rng)
        both = np.concatenate([grid.features(cloud.points, INTENSITY_FULL_SCALE), cell_labels(cloud, grid)])
        return torch.from_numpy(np.stack([_square(both, recipe.crop_cells, rng) for _ in range(recipe.crops)]))


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


def train_cnnseg(
    recipe: SegmentationRecipe,
    out: Path,
    *,
    device: str = "cpu",
    workers: int = 1,
    progress: Callable[[StepReport], None] = lambda report: None,
) -> list[StepReport]:
    """Train the network, write it, and return what each hundred steps brought.

    Args:
        workers: processes that make clouds beside the one that trains.

    Raises:
        UsageError: a training is there already, or the side of the squares is no multiple of 16; no such device.
        InfrastructureError: the loss is no number any more, or the disk is full.
    """
    if recipe.crop_cells % 16:
        raise UsageError(f"crop_cells: got {recipe.crop_cells}, expected a multiple of 16")
    if (out / ONNX).exists():
        raise UsageError(f"{out}: holds a training already; choose another directory")
    device_of(device)
    torch.set_num_threads(multiprocessing.cpu_count())
    torch.manual_seed(recipe.seed)
    network = SlimCnnSeg().to(device)
    reports = []
    for report in _steps(network, recipe, device, workers):
        if not all(map(math.isfinite, report.loss.values())):
            raise InfrastructureError(f"step {report.step}: the loss is no number any more; try a lower rate")
        reports.append(report)
        _write(out, network, reports)
        progress(report)
    return reports


def _steps(network: nn.Module, recipe: SegmentationRecipe, device: str, workers: int) -> Iterator[StepReport]:
    spawned = {"num_workers": workers, "multiprocessing_context": "spawn"} if workers else {}
    clouds = DataLoader(_Squares(recipe), batch_size=None, **spawned)
    steps = recipe.clouds * recipe.crops // recipe.batch
    optimiser = torch.optim.AdamW(network.parameters(), lr=recipe.rate, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, recipe.rate, total_steps=steps, pct_start=0.1)
    network.train()
    sums: dict[str, float] = {}
    for step, squares in zip(range(1, steps + 1), _batches(clouds, recipe.batch), strict=False):
        optimiser.zero_grad(set_to_none=True)
        losses = _losses(network, squares.to(device))
        torch.stack(list(losses.values())).sum().backward()
        nn.utils.clip_grad_norm_(network.parameters(), 10.0)
        optimiser.step()
        schedule.step()
        for name, value in losses.items():
            sums[name] = sums.get(name, 0.0) + float(value.detach())
        since = step % _REPORTED or _REPORTED
        if since == _REPORTED or step == steps:
            yield StepReport(step, steps, {name: value / since for name, value in sums.items()})
            sums.clear()


def _batches(clouds: DataLoader, size: int) -> Iterator[torch.Tensor]:
    """Bring squares of several clouds together; what is left over at the end is not used."""
    kept = torch.empty(0)
    for squares in clouds:
        kept = torch.cat([kept, squares]) if len(kept) else squares
        while len(kept) >= size:
            yield kept[:size]
            kept = kept[size:]


def _losses(network: nn.Module, squares: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the parts of the loss; only cells with returns count, and for most parts only those of objects."""
    features, wanted = squares[:, :FEATURES], squares[:, FEATURES:]
    said = network(features)
    occupied = features[:, OCCUPIED] > 0
    of_object = (wanted[:, CATEGORY] > 0) & occupied
    weights = torch.tensor(_CLASS_WEIGHT, device=squares.device)
    weight = 1.0 + ((wanted[:, CLASS] * weights[:, None, None]).sum(dim=1) - 1.0) * of_object
    told, right, heavy = (plane.movedim(1, -1)[of_object] for plane in (said, wanted, weight[:, None]))
    huber, cross = nn.functional.smooth_l1_loss, nn.functional.binary_cross_entropy_with_logits
    total = heavy.sum().clamp(min=1.0)

    def of(what: slice) -> torch.Tensor:
        return (heavy * huber(told[:, what], right[:, what], reduction="none")).sum() / total

    def sure(channel: int) -> torch.Tensor:
        return cross(said[:, channel][occupied], wanted[:, channel][occupied], weight[occupied])

    classes = cross(told[:, CLASS], right[:, CLASS], reduction="none")
    return {
        "category": sure(CATEGORY),
        "offset": of(OFFSET),
        "confidence": sure(CONFIDENCE),
        "class": 0.5 * (heavy * classes).sum() / total,
        "heading": 0.1 * of(HEADING),
        "height": 0.5 * of(slice(HEIGHT, CHANNELS)),
    }


def _write(out: Path, network: nn.Module, reports: list[StepReport]) -> None:
    """Keep what there is, whole or not at all."""
    rows = "".join(f"{json.dumps(dataclasses.asdict(report))}\n" for report in reports)
    write_torch(out / WEIGHTS, {key: value.detach().cpu() for key, value in network.state_dict().items()})
    try:
        write_whole(out / METRICS, rows)
        if reports[-1].step == reports[-1].steps:
            write_whole(out / ONNX, exported(network))
    except OSError as error:
        raise cannot_write(out, error) from error


def exported(network: nn.Module) -> bytes:
    """Return the network as ONNX: input ``features`` (1, 8, 640, 640), output ``cells`` (1, 12, 640, 640)."""
    side, file = CellGrid().cells, io.BytesIO()
    network = network.eval().cpu()
    given = (torch.zeros(1, FEATURES, side, side),)
    names = {"input_names": ["features"], "output_names": ["cells"]}
    torch.onnx.export(network, given, file, dynamo=False, opset_version=17, **names)
    return file.getvalue()
