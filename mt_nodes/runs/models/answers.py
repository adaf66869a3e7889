# SPDX-License-Identifier: Apache-2.0
"""Asks a network about prepared pictures; import it only where PyTorch is wanted."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from mt_nodes.base.arrays import Floats
from mt_nodes.runs.models.weights_file import Weights


def as_input(planes: npt.NDArray[Any], device: str) -> torch.Tensor:
    """Return prepared pictures (N, T, 3, H, W) as a network takes them: x / 127.5 - 1, without T where that is 1."""
    given = torch.from_numpy(planes).to(device).float().div_(127.5).sub_(1.0)
    return given[:, 0] if given.shape[1] == 1 else given


class Answering:
    """A network in evaluation mode, and its outputs in m/s and rad."""

    def __init__(self, model: Weights, device: str) -> None:
        self._network = model.network.to(device).eval()
        self._device = device
        self._mean, self._spread = np.array(model.about.scale.mean), np.array(model.about.scale.spread)

    def __call__(self, planes: npt.NDArray[np.uint8]) -> Floats:
        """Return (N, 2) speed and steering for windows (N, T, 3, H, W) of prepared pictures."""
        with torch.inference_mode():
            prediction = self._network(as_input(planes, self._device)).double().cpu().numpy()
        return np.asarray(self._mean + self._spread * prediction)
