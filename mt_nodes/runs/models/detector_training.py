# SPDX-License-Identifier: Apache-2.0
"""Trains a detector on made-up streets, whatever its sensor; import it only where PyTorch is wanted.

Every cloud or picture is another one: nothing is seen twice but in several cuts. A directory of a training holds
``NAME.onnx``, ``NAME.pt`` (the same numbers, for PyTorch) and ``metrics.jsonl`` (a line every hundred steps).
"""

from __future__ import annotations

import dataclasses
import io
import json
import math
import multiprocessing
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from mt_nodes.base.directories import cannot_write, write_whole
from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.runs.models.detector_recipes import PictureRecipe, SegmentationRecipe, StepReport
from mt_nodes.runs.models.extra import device_of
from mt_nodes.runs.models.starting_weights import freeze_statistics, start_from
from mt_nodes.runs.models.torch_files import read_torch, write_torch

METRICS = "metrics.jsonl"
_REPORTED = 100

#: Tensors of one length: features and labels of so many cuts.
Cuts = tuple[torch.Tensor, ...]


Recipe = TypeVar("Recipe", SegmentationRecipe, PictureRecipe)


class DetectorTask(ABC, Generic[Recipe]):
    """What is learned: a network, cuts of samples, and how wrong the network is about them.

    It goes to other processes, which make the samples.
    """

    #: Of the files that are written.
    name: ClassVar[str]
    #: Names of input and output of the network as it is exported.
    ports: ClassVar[tuple[str, str]]
    #: The sides of what is cut out are a multiple of this.
    multiple: ClassVar[int]
    #: Of so many cuts that are ready, those of a step are drawn; 0: they are taken in order.
    pool: ClassVar[int] = 0
    #: Samples that are never learned from, by which the best of all steps is chosen; 0: the last step is taken.
    unseen: ClassVar[int] = 0

    recipe: Recipe
    #: Weights that the training begins with; empty: a network that has learned nothing.
    start: str

    @property
    @abstractmethod
    def side(self) -> tuple[str, int]:
        """Name of the recipe's parameter that is the side of a cut, and its value."""

    @abstractmethod
    def network(self) -> nn.Module:
        """Return a network that has learned nothing."""

    @abstractmethod
    def cuts(self, index: int, unseen: bool = False) -> Cuts:
        """Return the cuts of a sample, which may be one of those that are never learned from."""

    @abstractmethod
    def losses(self, network: nn.Module, cuts: Cuts) -> dict[str, torch.Tensor]:
        """Return the parts of the loss by name."""

    @abstractmethod
    def example(self) -> torch.Tensor:
        """Return an input of the size that the exported network takes."""


class _Samples(Dataset):  # type: ignore[misc]
    def __init__(self, task: DetectorTask[Any]) -> None:
        self._task = task

    def __len__(self) -> int:
        return int(self._task.recipe.samples)

    def __getitem__(self, index: int) -> Cuts:
        return self._task.cuts(index)


def train_detector(
    task: DetectorTask[Any],
    out: Path,
    *,
    device: str = "cpu",
    workers: int = 1,
    progress: Callable[[StepReport], None] = lambda report: None,
) -> list[StepReport]:
    """Train the network, write it, and return what each hundred steps brought.

    ``workers``: processes that make samples beside the one that trains.
    Raises UsageError: a training is there already, or the side of the cuts does not fit; no such device.
    InfrastructureError: the loss is no number any more, or the disk is full.
    """
    side, length = task.side
    if length % task.multiple:
        raise UsageError(f"{side}: got {length}, expected a multiple of {task.multiple}")
    if (out / f"{task.name}.onnx").exists():
        raise UsageError(f"{out}: holds a training already; choose another directory")
    device_of(device)
    torch.set_num_threads(max(1, multiprocessing.cpu_count() - workers))  # the others make samples
    torch.manual_seed(task.recipe.seed)
    network = task.network()
    if task.start:
        start_from(network, task.start)
    network = network.to(device)
    validation_cuts = [task.cuts(index, unseen=True) for index in range(task.unseen)]
    reports: list[StepReport] = []
    for report in _steps(network, task, device, workers):
        if not all(map(math.isfinite, report.loss.values())):
            raise InfrastructureError(f"step {report.step}: the loss is no number any more; try a lower rate")
        unseen = _unseen_loss(network, task, validation_cuts, device) if validation_cuts else None
        best = unseen is None or all(unseen <= (row.unseen or 0.0) for row in reports)
        reports.append(dataclasses.replace(report, unseen=unseen))
        _write(out, task, network if best else None, reports)
        progress(reports[-1])
    return reports


def _steps(network: nn.Module, task: DetectorTask[Any], device: str, workers: int) -> Iterator[StepReport]:
    recipe = task.recipe
    spawned: dict[str, Any] = {"num_workers": workers, "multiprocessing_context": "spawn"} if workers else {}
    samples = DataLoader(_Samples(task), batch_size=None, **spawned)
    steps = recipe.samples * recipe.crops // recipe.batch
    optimiser = torch.optim.AdamW(network.parameters(), lr=recipe.rate, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, recipe.rate, total_steps=steps, pct_start=0.1)
    _train(network, task)
    sums: dict[str, float] = {}
    for step, cuts in zip(range(1, steps + 1), _batches(samples, recipe.batch, task.pool), strict=False):
        optimiser.zero_grad(set_to_none=True)
        losses = task.losses(network, tuple(part.to(device) for part in cuts))
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


def _batches(samples: Iterable[Cuts], size: int, pool: int) -> Iterator[Cuts]:
    """Bring cuts of several samples together; what is left over at the end is used where it is drawn from."""
    ready: Cuts = ()
    for cuts in samples:
        ready = tuple(map(torch.cat, zip(ready, cuts, strict=True))) if ready else tuple(cuts)
        while len(ready[0]) >= size + pool:
            ready = _mixed(ready) if pool else ready
            yield tuple(part[:size] for part in ready)
            ready = tuple(part[size:] for part in ready)
    while pool and len(ready[0]) >= size:
        yield tuple(part[:size] for part in ready)
        ready = tuple(part[size:] for part in ready)


def _mixed(cuts: Cuts) -> Cuts:
    order = torch.randperm(len(cuts[0]))
    return tuple(part[order] for part in cuts)


def _unseen_loss(network: nn.Module, task: DetectorTask[Any], validation_cuts: list[Cuts], device: str) -> float:
    network.eval()
    with torch.no_grad():
        parts = [task.losses(network, tuple(part.to(device) for part in cuts)) for cuts in validation_cuts]
    _train(network, task)
    return sum(float(value) for losses in parts for value in losses.values()) / len(parts)


def _train(network: nn.Module, task: DetectorTask[Any]) -> None:
    network.train()
    if task.start:
        freeze_statistics(network)


def _write(out: Path, task: DetectorTask[Any], network: nn.Module | None, reports: list[StepReport]) -> None:
    """Keep what there is, whole or not at all; a network only where it is the best so far."""
    rows = "".join(f"{json.dumps(dataclasses.asdict(report))}\n" for report in reports)
    weights = out / f"{task.name}.pt"
    if network is not None:
        write_torch(weights, {key: value.detach().cpu() for key, value in network.state_dict().items()})
    try:
        write_whole(out / METRICS, rows)
        if reports[-1].step == reports[-1].steps:
            best = task.network()
            best.load_state_dict(read_torch(weights))
            write_whole(out / f"{task.name}.onnx", exported(task, best))
    except OSError as error:
        raise cannot_write(out, error) from error


def exported(task: DetectorTask[Any], network: nn.Module) -> bytes:
    """Return the network as ONNX, with the ports and the size that the task says."""
    file = io.BytesIO()
    names = {"input_names": [task.ports[0]], "output_names": [task.ports[1]]}
    torch.onnx.export(network.eval().cpu(), (task.example(),), file, dynamo=False, opset_version=17, **names)
    return file.getvalue()
