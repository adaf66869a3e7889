# SPDX-License-Identifier: Apache-2.0
"""A small one-stage detector for pictures without anchors, in PyTorch; import it only where that is wanted.

The form is that of YOLOv8 (ultralytics/ultralytics): of each cell of three grids, which halve the picture three, four
and five times, it says how far the edges of a box are from the cell's middle, and how likely each class is. Distances
are numbers here, not distributions.
"""

from __future__ import annotations

import torch
from torch import nn

from mt_nodes.runs.models.labelled_pictures import PICTURE_CLASSES

STRIDES = (8, 16, 32)
#: Channels after halving the picture once, twice, …, five times, and of what is brought together.
_WIDTHS, _NECK = (16, 32, 64, 96, 128), 64
#: How likely a class is in a cell before anything is learned: nearly all cells are of nobody.
_RARE = -4.6


class SmallDetector(nn.Module):  # type: ignore[misc]
    """Says boxes of pictures (N, 3, H, W) of 0..1, red first; H and W are multiples of 32.

    They are (N, 4 + C, M), middle and size in pixels and probabilities, as YOLOv8's export says it.
    """

    def __init__(self, classes: int = len(PICTURE_CLASSES)) -> None:
        super().__init__()
        a, b, c, d, e = _WIDTHS
        self.classes = classes
        self.early = nn.Sequential(
            _convolution(3, a, 2), _convolution(a, b, 2), _convolution(b, c, 2), _Block(c, c // 2)
        )
        self.middle = nn.Sequential(_convolution(c, d, 2), _Block(d, d // 2), _Block(d, d // 2))
        self.late = nn.Sequential(_thin(d, e, 2), _Thin(e), _Pooled(e))
        self.lateral = nn.ModuleList(_convolution(width, _NECK, 1, 1) for width in (c, d, e))
        self.join = nn.ModuleList(_Thin(_NECK) for _ in STRIDES)
        self.down = nn.ModuleList(_thin(_NECK, _NECK, 2) for _ in STRIDES[1:])
        self.head = nn.ModuleList(nn.Sequential(_Thin(_NECK), nn.Conv2d(_NECK, 4 + classes, 1)) for _ in STRIDES)
        for head in self.head:
            nn.init.constant_(head[-1].bias[4:], _RARE)
            nn.init.constant_(head[-1].bias[:4], 1.0)

    def forward(self, picture: torch.Tensor) -> torch.Tensor:
        """Return what an exported network says."""
        away, logits = self.cells(picture)
        edges = edges_of(away, middles(picture.shape[-2:]))
        low, high = edges[..., :2], edges[..., 2:]
        return torch.cat([(low + high) / 2.0, high - low, logits.sigmoid()], dim=2).transpose(1, 2)

    def cells(self, picture: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return what is said of each cell, the finest grid first.

        Returns:
            (N, M, 4) distances to left, upper, right and lower edge in pixels, and (N, M, C) logits.
        """
        outputs = [head(plane) for head, plane in zip(self.head, self._planes(picture), strict=True)]
        flat = [
            torch.cat([(nn.functional.softplus(x[:, :4]) - 0.5) * stride, x[:, 4:]], dim=1).flatten(2)
            for x, stride in zip(outputs, STRIDES, strict=True)
        ]
        joined = torch.cat(flat, dim=2).transpose(1, 2)
        return joined[..., :4], joined[..., 4:]

    def _planes(self, picture: torch.Tensor) -> list[torch.Tensor]:
        """Return the three grids, each of which knows of the others: down, and up again."""
        fine = self.early(picture)
        middle = self.middle(fine)
        low, mid, high = (lay(x) for lay, x in zip(self.lateral, (fine, middle, self.late(middle)), strict=True))
        mid = self.join[0](mid + nn.functional.interpolate(high, scale_factor=2.0, mode="nearest"))
        low = self.join[1](low + nn.functional.interpolate(mid, scale_factor=2.0, mode="nearest"))
        mid = self.join[2](mid + self.down[0](low))
        return [low, mid, high + self.down[1](mid)]


def middles(size: tuple[int, int]) -> torch.Tensor:
    """Return x, y (M, 2) of the middles of all cells of a picture of height and width, in pixels from its corner."""
    points = []
    for stride in STRIDES:
        y, x = torch.meshgrid(*(torch.arange(edge // stride) for edge in size), indexing="ij")
        points.append((torch.stack([x, y], dim=-1).reshape(-1, 2) + 0.5) * stride)
    return torch.cat(points)


def edges_of(away: torch.Tensor, middle: torch.Tensor) -> torch.Tensor:
    """Return boxes (…, M, 4) of distances (…, M, 4) from the middles of cells (M, 2)."""
    return torch.cat([middle - away[..., :2], middle + away[..., 2:]], dim=-1)


def _convolution(before: int, after: int, stride: int, size: int = 3) -> nn.Module:
    layer = nn.Conv2d(before, after, size, stride, size // 2, bias=False)
    return nn.Sequential(layer, nn.BatchNorm2d(after), nn.ReLU(inplace=True))


def _thin(before: int, after: int, stride: int) -> nn.Module:
    """A convolution of 5 × 5 for each channel, and one of 1 × 1 that mixes them."""
    each = nn.Conv2d(before, before, 5, stride, 2, groups=before, bias=False)
    mix = nn.Conv2d(before, after, 1, bias=False)
    return nn.Sequential(each, nn.BatchNorm2d(before), mix, nn.BatchNorm2d(after), nn.ReLU(inplace=True))


class _Block(nn.Module):  # type: ignore[misc]
    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.way = nn.Sequential(_convolution(width, inner, 1, 1), _convolution(inner, width, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.way(x)


class _Thin(nn.Module):  # type: ignore[misc]
    def __init__(self, width: int) -> None:
        super().__init__()
        self.way = _thin(width, width, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.way(x)


class _Pooled(nn.Module):  # type: ignore[misc]
    """What is around, brought to each cell: the largest of windows of 5, 9 and 13 cells."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.less = _convolution(width, width // 2, 1, 1)
        self.mix = _convolution(2 * width, width, 1, 1)
        self.pool = nn.MaxPool2d(5, 1, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = [self.less(x)]
        for _ in range(3):
            parts.append(self.pool(parts[-1]))
        return self.mix(torch.cat(parts, dim=1))
