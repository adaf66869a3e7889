# SPDX-License-Identifier: Apache-2.0
"""How the segmentation network is trained, and what came out of each hundred steps. Needs no PyTorch."""

from __future__ import annotations

from dataclasses import dataclass

from mt_nodes.base.params import param


@dataclass(frozen=True)
class SegmentationRecipe:
    """How the segmentation network is trained."""

    clouds: int = param(8000, low=1, high=10_000_000, help="training clouds, each of another street")
    crops: int = param(4, low=1, high=100, help="crops per cloud")
    crop_cells: int = param(256, low=32, high=640, help="side of a square crop in cells, a multiple of 16")
    batch: int = param(8, low=1, high=1000, help="crops per step")
    rate: float = param(
        0.003, low=1e-6, high=1.0, help="peak learning rate of AdamW, which first rises and then falls to 0"
    )
    seed: int = param(1, low=0, high=2**31, help="seed of weights, streets and crops")


@dataclass(frozen=True)
class StepReport:
    """The mean losses of the steps since the report before, by what is learned."""

    step: int
    steps: int
    loss: dict[str, float]
