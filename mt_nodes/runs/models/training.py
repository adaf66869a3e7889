# SPDX-License-Identifier: Apache-2.0
"""Trains a driving model, and goes on after a kill as if nothing had been; import it only where PyTorch is wanted.

A directory of a training holds ``weights.pt`` (of the lowest validation loss so far), ``checkpoint.pt`` (the last
epoch, to go on from) and ``metrics.jsonl`` (one line an epoch). Everything that is drawn depends on seed and epoch.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from mt_nodes.base.arrays import Floats
from mt_nodes.base.directories import cannot_write, write_whole
from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.runs.models.answers import Answering, as_input
from mt_nodes.runs.models.extra import device_of
from mt_nodes.runs.models.network_catalogue import network_named
from mt_nodes.runs.models.networks import make_network
from mt_nodes.runs.models.preprocessing import Preparation
from mt_nodes.runs.models.recipe import EpochReport, Recipe, augmented, order_of, spread_of
from mt_nodes.runs.models.samples import Frames, Indices, Windows
from mt_nodes.runs.models.torch_files import read_torch, write_torch
from mt_nodes.runs.models.weights_file import About, Scale, Weights

WEIGHTS, CHECKPOINT, METRICS = "weights.pt", "checkpoint.pt", "metrics.jsonl"
#: Windows that are asked about at once.
_BATCH = 256
_LOSSES: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "l1": nn.functional.l1_loss,
    "mse": nn.functional.mse_loss,
}


def train(
    frames: Frames,
    prepared: Preparation,
    recipe: Recipe,
    out: Path,
    *,
    device: str = "cpu",
    trunk: Path | None = None,
    resume: bool = False,
    progress: Callable[[EpochReport], None] = lambda report: None,
) -> list[EpochReport]:
    """Train a network and return what each epoch brought.

    Raises UsageError: too few frames, a training in ``out`` already, or none that goes on; no such device.
    InfrastructureError: the loss is no number any more, or the disk is full.

    Args:
        frames: prepared as ``prepared`` says. out: directory of the training. device: ``cpu``, ``cuda`` or ``cuda:N``.
        trunk: file of weights that a trunk of torchvision begins with.
        resume: go on with the training in ``out``, of the same frames and recipe (more epochs may be asked for).
        progress: is told of each epoch, those before a resumption too.
    """
    training = _Training(frames, prepared, recipe, out, device_of(device), trunk)
    if resume:
        training.resume()
    elif (out / CHECKPOINT).exists():
        raise UsageError(f"{out}: holds a training already; go on with it by --resume, or choose another directory")
    for report in training.reports:
        progress(report)
    while len(training.reports) < recipe.epochs:
        progress(training.epoch())
    return training.reports


class _Training:
    def __init__(
        self, frames: Frames, prepared: Preparation, recipe: Recipe, out: Path, device: str, trunk: Path | None
    ) -> None:
        looks = network_named(recipe.network).frames
        self._recipe, self._out, self._device = recipe, out, device
        self._train = _enough(frames.windows(looks, recipe.ahead, "train"), 2, "train")
        self._validation = _enough(frames.windows(looks, recipe.ahead, "validation"), 1, "validation")
        mean, spread = spread_of(self._train.targets, recipe.mirror)
        scale = Scale(float(mean[0]), float(spread[0]), float(mean[1]), float(spread[1]))
        self._mean, self._spread = np.array(scale.mean), np.array(scale.spread)
        self._settings = {
            "recipe": dataclasses.asdict(recipe),
            "prepared": dataclasses.asdict(prepared),
            "frames": frames.crc32,
        }
        torch.manual_seed(recipe.seed)
        network = make_network(recipe.network, (prepared.height_px, prepared.width_px), trunk).to(device)
        origin = {**self._settings["recipe"], "frames": len(frames), "frames_crc32": frames.crc32}  # type: ignore[dict-item]
        self._model = Weights(About(recipe.network, prepared, scale, origin), network)
        self._optimiser = torch.optim.Adam(network.parameters(), lr=recipe.rate)
        self.reports: list[EpochReport] = []

    def epoch(self) -> EpochReport:
        """Train for one epoch, validate, and keep what there is."""
        number = len(self.reports)
        torch.manual_seed(_seed(self._recipe.seed, number))  # of dropout and augmentation
        loss = self._pass(order_of(self._recipe, number, self._train.targets[:, 1]))
        report = EpochReport(number, loss, *self._validated())
        if not (math.isfinite(report.train_loss) and math.isfinite(report.validation_loss)):
            raise InfrastructureError(f"epoch {number}: the loss is no number any more; try a lower rate")
        self.reports.append(report)
        self._keep(report)
        return report

    def resume(self) -> None:
        """Take up the last epoch. Raises UsageError: there is none, or it is of another recipe or other frames."""
        if not (self._out / CHECKPOINT).is_file():
            raise UsageError(f"{self._out}: got no {CHECKPOINT}, expected a training to go on with")
        checkpoint = read_torch(self._out / CHECKPOINT)
        before = json.loads(checkpoint["asked"])
        differs = [key for key, value in _flat(self._settings).items() if _flat(before).get(key) != value]
        if differs not in ([], ["epochs"]):
            differences = ", ".join(f"{k} {_flat(before).get(k)}, not {_flat(self._settings)[k]}" for k in differs)
            raise UsageError(f"--resume {self._out}: the training there has other settings: {differences}")
        self._model.network.load_state_dict(checkpoint["network"])
        self._optimiser.load_state_dict(checkpoint["optimiser"])
        self.reports = [EpochReport(**row) for row in json.loads(checkpoint["reports"])]

    def _pass(self, steps: list[Indices]) -> float:
        network, total = self._model.network.train(), 0.0
        for chosen in steps:
            given, target = self._augmented(chosen)
            self._optimiser.zero_grad(set_to_none=True)
            loss = _LOSSES[self._recipe.loss](network(given), target)
            loss.backward()
            self._optimiser.step()
            total += float(loss.detach()) * len(chosen)
        return total / sum(map(len, steps))

    def _augmented(self, chosen: Indices) -> tuple[torch.Tensor, torch.Tensor]:
        draws = torch.rand((2, len(chosen)), dtype=torch.float64).numpy()
        windows = self._train.pictures(chosen), self._train.targets[chosen]
        planes, targets = augmented(*windows, self._recipe, draws)
        aims = torch.from_numpy(((targets - self._mean) / self._spread).astype(np.float32))
        return as_input(planes, self._device), aims.to(self._device)

    def _validated(self) -> tuple[float, float, float]:
        """Return loss and mean absolute errors on the validation part, in evaluation mode."""
        off = predictions_of(self._model, self._validation, self._device) - self._validation.targets
        relative = off / self._spread
        loss = np.abs(relative).mean() if self._recipe.loss == "l1" else (relative**2).mean()
        return float(loss), *np.abs(off).mean(axis=0).tolist()

    def _keep(self, report: EpochReport) -> None:
        """Keep the epoch; what tells that it is over comes last."""
        if report.validation_loss <= min(row.validation_loss for row in self.reports):
            origin = {**self._model.about.made, "epoch": report.epoch, "validation_loss": report.validation_loss}
            about = dataclasses.replace(self._model.about, made=origin)
            Weights(about, self._model.network).save(self._out / WEIGHTS)
        rows = [dataclasses.asdict(row) for row in self.reports]
        try:
            write_whole(self._out / METRICS, "".join(f"{json.dumps(row)}\n" for row in rows))
        except OSError as error:
            raise cannot_write(self._out, error) from error
        states = {"network": self._model.network.state_dict(), "optimiser": self._optimiser.state_dict()}
        texts = {"asked": json.dumps(self._settings), "reports": json.dumps(rows)}
        write_torch(self._out / CHECKPOINT, {**states, **texts})


def predictions_of(model: Weights, windows: Windows, device: str) -> Floats:
    """Return (M, 2) what a model says of windows, in m/s and rad."""
    answer = Answering(model, device)
    steps = np.array_split(np.arange(len(windows)), max(1, -(-len(windows) // _BATCH)))
    return np.concatenate([answer(windows.pictures(step)) for step in steps])


def _enough(windows: Windows, least: int, part: str) -> Windows:
    if len(windows) < least:
        raise UsageError(
            f"got {len(windows)} windows of the part {part}, expected {least} at least; of each drive the first 80 % "
            "train and the next 10 % validate: drives must be longer, or more"
        )
    return windows


def _seed(seed: int, epoch: int) -> int:
    return int(np.random.SeedSequence((seed, epoch)).generate_state(1, np.uint64)[0] >> 1)


def _flat(settings: dict[str, Any]) -> dict[str, Any]:
    return {**settings["recipe"], **settings["prepared"], "frames": settings["frames"]}
