# SPDX-License-Identifier: Apache-2.0
"""How detectors are trained, and what came out of each hundred steps. Needs no PyTorch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from mt_nodes.base.params import param


@dataclass(frozen=True)
class SegmentationRecipe:
    """How the segmentation network for clouds is trained."""

    sensor: ClassVar[str] = "lidar"

    clouds: int = param(8000, low=1, high=10_000_000, help="clouds that are seen, each of another street")
    crops: int = param(4, low=1, high=100, help="squares that are cut out of each")
    crop_cells: int = param(256, low=32, high=640, help="side of a square, cells; a multiple of 16")
    batch: int = param(8, low=1, high=1000, help="squares a step")
    rate: float = param(0.003, low=1e-6, high=1.0, help="highest of AdamW; it rises, and falls to nothing")
    seed: int = param(1, low=0, high=2**31, help="of weights, streets and squares")

    @property
    def samples(self) -> int:
        """How many clouds are seen."""
        return self.clouds


@dataclass(frozen=True)
class PictureRecipe:
    """How the detector for pictures is trained."""

    sensor: ClassVar[str] = "camera"

    pictures: int = param(3600, low=1, high=10_000_000, help="pictures that are seen, each of another street")
    crops: int = param(8, low=1, high=100, help="squares that are cut out of each")
    crop_px: int = param(256, low=32, high=1024, unit="px", help="side of a square; a multiple of 32")
    batch: int = param(16, low=1, high=1000, help="squares a step")
    rate: float = param(0.003, low=1e-6, high=1.0, help="highest of AdamW; it rises, and falls to nothing")
    seed: int = param(1, low=0, high=2**31, help="of weights, streets and squares")

    @property
    def samples(self) -> int:
        """How many pictures are seen."""
        return self.pictures


@dataclass(frozen=True)
class StepReport:
    """The mean losses of the steps since the report before, by what is learned.

    Attributes:
        unseen: loss on streets that are not learned from, where that is measured.
    """

    step: int
    steps: int
    loss: dict[str, float] = field(default_factory=dict)
    unseen: float | None = None
