# SPDX-License-Identifier: Apache-2.0
"""A trained model in one file: what it sees, what it says, and its numbers; import it only where PyTorch is wanted.

The file is what ``torch.save`` makes of ``{"format": 1, "about": text, "tensors": {name: tensor}}``; ``about`` is JSON.
It is read with ``weights_only=True``, so that nothing in it is ever executed.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import build, param
from mt_nodes.runs.models.network_catalogue import Network, network_named
from mt_nodes.runs.models.networks import make_network
from mt_nodes.runs.models.preprocessing import Preparation
from mt_nodes.runs.models.torch_files import read_torch, write_torch

FORMAT = 1


@dataclass(frozen=True)
class Scale:
    """What a network's two outputs stand for: speed = mean + spread * output, and steering likewise."""

    speed_mean_mps: float = param(0.0)
    speed_spread_mps: float = param(1.0, low=1e-9)
    steering_mean_rad: float = param(0.0)
    steering_spread_rad: float = param(1.0, low=1e-9)

    @property
    def mean(self) -> tuple[float, float]:
        """Of speed and steering."""
        return self.speed_mean_mps, self.steering_mean_rad

    @property
    def spread(self) -> tuple[float, float]:
        """Of speed and steering."""
        return self.speed_spread_mps, self.steering_spread_rad


@dataclass(frozen=True)
class About:
    """What is known of a trained model beside its numbers; ``made`` says how it was trained, in free form."""

    network: str = param("pilotnet")
    prepared: Preparation = field(default_factory=Preparation)
    scale: Scale = field(default_factory=Scale)
    made: dict[str, Any] = field(default_factory=dict)

    @property
    def architecture(self) -> Network:
        """Of the network."""
        return network_named(self.network)


@dataclass(frozen=True, eq=False)
class Weights:
    """A network and what it is for."""

    about: About
    network: nn.Module

    def save(self, path: Path, half: bool = False) -> None:
        """Write the file, whole or not at all; ``half`` keeps numbers of 16 bits, in half the room.

        Raises InfrastructureError: it cannot be written.
        """
        tensors = {key: value.detach().cpu() for key, value in self.network.state_dict().items()}
        if half:
            tensors = {key: t.half() if t.dtype == torch.float32 else t for key, t in tensors.items()}
        about = json.dumps(dataclasses.asdict(self.about))
        write_torch(path, {"format": FORMAT, "about": about, "tensors": tensors})


def load_weights(path: Path) -> Weights:
    """Read a trained model, ready to be asked (evaluation mode, on the processor).

    Raises UsageError: no such file, no such format, a network that is not known or does not fit, numbers that are none.
    """
    data = read_torch(path)
    if data.get("format") != FORMAT or not {"about", "tensors"} <= set(data):
        got = f"format {data['format']!r}" if "format" in data else f"keys {', '.join(map(str, list(data)[:4]))}"
        raise UsageError(f"{path}: got {got}, expected a file of format {FORMAT} that `mt models train` writes")
    about = _about(data["about"], str(path))
    network = make_network(about.network, (about.prepared.height_px, about.prepared.width_px))
    state, tensors = network.state_dict(), data["tensors"]
    _refuse_misfit(tensors if isinstance(tensors, Mapping) else {}, state, f"{path}: {about.network}")
    network.load_state_dict({key: tensors[key].to(value.dtype) for key, value in state.items()})
    return Weights(about, network.eval())


def _refuse_misfit(tensors: Mapping[str, Any], expected: Mapping[str, torch.Tensor], where: str) -> None:
    for key, value in expected.items():
        given: Any = tensors.get(key)
        if not torch.is_tensor(given) or given.shape != value.shape:
            got = tuple(given.shape) if torch.is_tensor(given) else given
            raise UsageError(f"{where}: {key}: got {got}, expected numbers of shape {tuple(value.shape)}")
        if not torch.isfinite(given).all():
            raise UsageError(f"{where}: {key}: got numbers that are not finite; the training failed, or it is damaged")


def _about(text: Any, where: str) -> About:
    try:
        data = json.loads(text)
        parts = {"prepared": build(Preparation, data.pop("prepared"), f"{where}: prepared")}
        parts["scale"] = build(Scale, data.pop("scale"), f"{where}: scale")  # type: ignore[assignment]
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise UsageError(f"{where}: what it says of itself cannot be read: {error}") from error
    about = build(About, {**data, **parts}, where)
    network_named(about.network, where)
    return about
