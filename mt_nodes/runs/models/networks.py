# SPDX-License-Identifier: Apache-2.0
"""The layers of the driving models, in PyTorch; import it only where that is wanted.

One network says both speed and steering (its last layer has two outputs), where AutoMT trains one for each: what the
road looks like is learned once, and a stack costs half. What is said is in units of the training's spread, see
:class:`~mt_nodes.runs.models.weights_file.Weights`.

A network takes (N, 3, H, W), one of several frames (N, T, 3, H, W), float32 in -1..1, and returns (N, 2).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from mt_nodes.base.errors import UsageError
from mt_nodes.runs.models.extra import torch_module
from mt_nodes.runs.models.network_catalogue import network_named

OUTPUTS = 2


class PerFrame(nn.Module):  # type: ignore[misc]
    """Applies one encoder to each frame: (N, T, ...) to (N, T, F)."""

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """Encode all frames at once."""
        count, times = frames.shape[:2]
        return self.encoder(frames.flatten(0, 1)).reshape(count, times, -1)


class LastStep(nn.Module):  # type: ignore[misc]
    """An LSTM over frames, of which the last output goes on: (N, T, F) to (N, hidden)."""

    def __init__(self, features: int, hidden: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(features, hidden, batch_first=True)

    def forward(self, steps: torch.Tensor) -> torch.Tensor:
        """Return what it says after the newest frame."""
        return self.lstm(steps)[0][:, -1]


class ChannelsFirst(nn.Module):  # type: ignore[misc]
    """Frames as the depth of a volume: (N, T, 3, H, W) to (N, 3, T, H, W)."""

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """Exchange times and channels."""
        return frames.transpose(1, 2)


def make_network(name: str, size: tuple[int, int], trunk: Path | None = None) -> nn.Module:
    """Return a network with random weights, for pictures of a size (height, width).

    ``trunk``: file of weights for the part that torchvision has, of ``resnet101`` and ``vgg16``.
    Raises UsageError: no such network, pictures too small for it, a trunk that is none.
    """
    network = network_named(name)
    convolutions = _TRUNKS[name]() if name not in _VISION else _vision(name, trunk)
    if trunk is not None and name not in _VISION:
        raise UsageError(f"trunk: got {trunk}, but {name} has none; {' and '.join(_VISION)} do")
    shape = (1, 3, *size) if network.frames == 1 else (1, network.frames, 3, *size)
    try:
        with torch.no_grad():
            features = int(convolutions.eval()(torch.zeros(shape)).shape[-1])
    except RuntimeError as error:
        got = f"{size[1]} x {size[0]} pixels"
        raise UsageError(f"{name} cannot see pictures of {got}: {error}; larger ones are needed") from error
    return nn.Sequential(convolutions, *_HEADS[name](features)).train()


def _convolutions(norm: bool) -> list[nn.Module]:
    """Return the five convolutions that PilotNet, and the encoder of CNN-LSTM, begin with."""
    rows = [(3, 24, 5, 2), (24, 36, 5, 2), (36, 48, 5, 2), (48, 64, 3, 1), (64, 64, 3, 1)]
    layers: list[nn.Module] = []
    for before, after, kernel, stride in rows:
        layers.append(nn.Conv2d(before, after, kernel, stride))
        layers += [nn.BatchNorm2d(after), nn.ELU()] if norm else [nn.ReLU()]
    return layers


def _pilotnet() -> nn.Module:
    return nn.Sequential(*_convolutions(norm=False), nn.Flatten())


def _epoch() -> nn.Module:
    blocks = [
        nn.Sequential(nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU(), nn.MaxPool2d(2))
        for before, after in itertools.pairwise((3, 32, 64, 128, 256))
    ]
    return nn.Sequential(*blocks, nn.Flatten())


def _cnn_lstm() -> nn.Module:
    return PerFrame(nn.Sequential(*_convolutions(norm=True), nn.AdaptiveAvgPool2d(2), nn.Dropout(0.2), nn.Flatten()))


def _cnn3d() -> nn.Module:
    layers: list[nn.Module] = [ChannelsFirst()]
    deep, flat = ((2, 5, 5), (1, 2, 2)), ((1, 3, 3), (1, 1, 1))
    channels = itertools.pairwise((3, 24, 36, 48, 64, 64))
    for (before, after), (kernel, stride) in zip(channels, (deep, deep, deep, flat, flat), strict=True):
        layers += [nn.Conv3d(before, after, kernel, stride), nn.BatchNorm3d(after), nn.ELU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool3d(3), nn.Flatten(), nn.Dropout(0.2))


def _resnet101(vision: Any) -> tuple[nn.Module, nn.Module]:
    """Return the whole of torchvision's, and what it is used in."""
    whole = vision.resnet101()
    whole.fc = nn.Identity()
    return whole, nn.Sequential(whole)


def _vgg16(vision: Any) -> tuple[nn.Module, nn.Module]:
    """Return the convolutions of torchvision's, begun as it begins them, and what they are used in.

    The whole has a classifier of 124 million weights, which is not wanted.
    """
    features = vision.vgg.make_layers(vision.vgg.cfgs["D"])
    for layer in features:
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
            nn.init.zeros_(layer.bias)
    more = [nn.Conv2d(512, 512, 3, padding=1), nn.BatchNorm2d(512), nn.ReLU(), nn.AdaptiveAvgPool2d(7), nn.Flatten()]
    return nn.ModuleDict({"features": features}), nn.Sequential(features, *more)


def _vision(name: str, trunk: Path | None) -> nn.Module:
    torch_module("torchvision")
    from torchvision import models

    whole, used = _VISION[name](models)
    if trunk is not None:
        _load_trunk(whole, trunk)
    return used


def _load_trunk(whole: nn.Module, trunk: Path) -> None:
    """Put a file of torchvision's weights in; those of its last layers are not needed."""
    from mt_nodes.runs.models.torch_files import read_torch

    tensors = read_torch(trunk)
    state = whole.state_dict()
    lacking = [key for key in state if key not in tensors or tensors[key].shape != state[key].shape]
    if lacking:
        shape = tuple(state[lacking[0]].shape)
        raise UsageError(f"trunk {trunk}: got no {lacking[0]} of shape {shape}; is it of another network?")
    whole.load_state_dict({key: tensors[key] for key in state})


def _stacked(sizes: Sequence[int], between: Callable[[], nn.Module] | None) -> list[nn.Module]:
    """Return fully connected layers of sizes and the last one, with activations between them."""
    layers: list[nn.Module] = []
    for before, after in itertools.pairwise(sizes):
        layers += [nn.Linear(before, after)] + ([between()] if between else [])
    return [*layers, nn.Linear(sizes[-1], OUTPUTS)]


def _resnet_head(features: int) -> list[nn.Module]:
    norm = [nn.BatchNorm1d(features), nn.Dropout(0.25)]
    return [*norm, *_stacked((features, 256), nn.ReLU)]


#: Ports of PilotNet differ in a layer of 1164 after the flattened 1152 features. It is left out: it would hold five of
#: six weights of the network.
_HEADS: dict[str, Callable[[int], list[nn.Module]]] = {
    "pilotnet": lambda features: _stacked((features, 100, 50, 10), nn.ReLU),
    "pilotnet_published": lambda features: _stacked((features, 1200, 100, 50, 10), None),
    "epoch": lambda features: [nn.Linear(features, 256), nn.ReLU(), nn.Dropout(0.5), nn.Linear(256, OUTPUTS)],
    "resnet101": _resnet_head,
    "vgg16": lambda features: [nn.BatchNorm1d(features), *_stacked((features, 256), None)],
    "cnn_lstm": lambda features: [LastStep(features, 100), *_stacked((100, 50, 10), nn.ELU)],
    "cnn3d": lambda features: [nn.Linear(features, 256), nn.ReLU(), *_stacked((256, 50, 10), nn.ELU)],
}
_TRUNKS: dict[str, Callable[[], nn.Module]] = {
    "pilotnet": _pilotnet,
    "pilotnet_published": _pilotnet,
    "epoch": _epoch,
    "cnn_lstm": _cnn_lstm,
    "cnn3d": _cnn3d,
}
_VISION: dict[str, Callable[[Any], tuple[nn.Module, nn.Module]]] = {"resnet101": _resnet101, "vgg16": _vgg16}
