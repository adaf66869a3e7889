# SPDX-License-Identifier: Apache-2.0
"""The driving models by name: what each looks at and where its layers are from. Needs no PyTorch."""

from __future__ import annotations

from dataclasses import dataclass

from mt_nodes.base.errors import UsageError, suggest

_AUTOMT = "as in the public code of AutoMT (Liang et al., arXiv 2510.19438)"
#: Height and width that AutoMT gives to all its models.
AUTOMT_SIZE = (160, 320)


@dataclass(frozen=True)
class Network:
    """One architecture.

    Attributes:
        frames: pictures that it sees at once, the newest last.
        height_px, width_px: of the pictures, unless another size is asked for.
        features: how many numbers its convolutions leave of those, which its last layers decide by.
    """

    name: str
    summary: str
    frames: int
    height_px: int
    width_px: int
    features: int
    source: str


NETWORKS = {
    network.name: network
    for network in (
        Network(
            "pilotnet",
            "five convolutions, four layers upon them; small enough to drive on one core",
            1,
            *(66, 200),
            1152,
            "Bojarski et al., End to End Learning for Self-Driving Cars (arXiv 1604.07316, 2016)",
        ),
        Network(
            "pilotnet_published",
            "PilotNet on large pictures, its five last layers without activations: together one linear map",
            1,
            *AUTOMT_SIZE,
            27456,
            _AUTOMT,
        ),
        Network("epoch", "four blocks of convolution and pooling", 1, *AUTOMT_SIZE, 51200, _AUTOMT),
        Network("resnet101", "ResNet-101, its mean features, two layers", 1, *AUTOMT_SIZE, 2048, _AUTOMT),
        Network("vgg16", "VGG-16, one more convolution, two layers", 1, *AUTOMT_SIZE, 25088, _AUTOMT),
        Network(
            "cnn_lstm", "convolutions of each of four frames, and an LSTM over them", 4, *AUTOMT_SIZE, 256, _AUTOMT
        ),
        Network("cnn3d", "convolutions in space and time over four frames", 4, *AUTOMT_SIZE, 1728, _AUTOMT),
    )
}


def network_named(name: str, where: str = "network") -> Network:
    """Return a network. Raises UsageError: there is none of that name."""
    if name not in NETWORKS:
        raise UsageError(f"{where}: no network '{name}'{suggest(name, NETWORKS)}")
    return NETWORKS[name]
