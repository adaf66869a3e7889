# SPDX-License-Identifier: Apache-2.0
"""Recipes of the training of detectors, and its reports. Needs no PyTorch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from mt_nodes.base.params import param


@dataclass(frozen=True)
class SegmentationRecipe:
    """Recipe of the segmentation network for point clouds."""

    sensor: ClassVar[str] = "lidar"

    clouds: int = param(8000, low=1, high=10_000_000, help="training clouds, each of another street")
    crops: int = param(4, low=1, high=100, help="crops per cloud or image")
    crop_cells: int = param(256, low=32, high=640, help="side of a square crop in cells, a multiple of 16")
    batch: int = param(8, low=1, high=1000, help="crops per step")
    rate: float = param(
        0.003, low=1e-6, high=1.0, help="peak learning rate of AdamW, which first rises and then falls to 0"
    )
    seed: int = param(1, low=0, high=2**31, help="seed of weights, streets and crops")

    @property
    def samples(self) -> int:
        """Number of clouds."""
        return self.clouds


@dataclass(frozen=True)
class PictureRecipe:
    """Recipe of the detector for camera images."""

    sensor: ClassVar[str] = "camera"

    pictures: int = param(3600, low=1, high=10_000_000, help="training images, each of another street")
    crops: int = param(8, low=1, high=100, help="crops per cloud or image")
    crop_px: int = param(256, low=32, high=1024, unit="px", help="side of a square crop, a multiple of 32")
    batch: int = param(16, low=1, high=1000, help="crops per step")
    rate: float = param(
        0.003, low=1e-6, high=1.0, help="peak learning rate of AdamW, which first rises and then falls to 0"
    )
    seed: int = param(1, low=0, high=2**31, help="seed of weights, streets and crops")

    @property
    def samples(self) -> int:
        """Number of images."""
        return self.pictures


@dataclass(frozen=True)
class StepReport:
    """Mean losses since the last report, by output of the network.

    ``unseen``: loss on the validation streets, if it was measured.
    """

    step: int
    steps: int
    loss: dict[str, float] = field(default_factory=dict)
    unseen: float | None = None
