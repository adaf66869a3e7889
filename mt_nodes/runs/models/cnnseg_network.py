# SPDX-License-Identifier: Apache-2.0
"""A slim network of the form of Apollo's segmentation network, in PyTorch; import it only where that is wanted.

Apollo's (``modules/perception/model/cnn_segmentation/deploy.prototxt``) halves the grid five times, with 24 to 192
channels; this one halves it four times, with 12 to 64, and takes a fortieth of the sums.
"""

from __future__ import annotations

import itertools

import torch
from torch import nn

from mt_nodes.stacks.reference.cell_features import FEATURES, OCCUPIED
from mt_nodes.stacks.reference.cell_objects import CATEGORY, CHANNELS, CLASS, CONFIDENCE, OFFSET

_WIDTHS = (12, 32, 48, 64)


class SlimCnnSeg(nn.Module):  # type: ignore[misc]
    """Says (N, 12, H, W) of features (N, 8, H, W); H and W are multiples of 16.

    While it is trained it says logits. Afterwards probabilities, and that of an object is 0 in an empty cell.
    """

    def __init__(self) -> None:
        super().__init__()
        widths = (FEATURES, *_WIDTHS)
        self.down = nn.ModuleList(
            nn.Sequential(*_convolution(before, after, 2), *_convolution(after, after, 1))
            for before, after in itertools.pairwise(widths)
        )
        self.deepest = nn.Sequential(*_convolution(_WIDTHS[-1], _WIDTHS[-1], 1))
        steps = list(itertools.pairwise(reversed(_WIDTHS)))
        self.up = nn.ModuleList(nn.ConvTranspose2d(before, after, 4, 2, 1) for before, after in steps)
        self.join = nn.ModuleList(nn.Sequential(*_convolution(2 * after, after, 1)) for _, after in steps)
        self.says = nn.ConvTranspose2d(_WIDTHS[0], CHANNELS, 4, 2, 1)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """Return what is said of each cell."""
        x, passed = features, []
        for down in self.down:
            x = down(x)
            passed.append(x)
        x = self.deepest(x)
        for up, join, skip in zip(self.up, self.join, passed[-2::-1], strict=True):
            x = join(torch.cat([skip, torch.relu(up(x))], dim=1))
        logits = self.says(x)
        return logits if self.training else _probabilities(logits, features)


def _convolution(before: int, after: int, stride: int) -> list[nn.Module]:
    return [nn.Conv2d(before, after, 3, stride, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU(inplace=True)]


def _probabilities(logits: torch.Tensor, features: torch.Tensor) -> torch.Tensor:
    objectness = torch.sigmoid(logits[:, CATEGORY : CATEGORY + 1]) * features[:, OCCUPIED : OCCUPIED + 1]
    certain = torch.sigmoid(logits[:, CONFIDENCE : CLASS.stop])
    return torch.cat([objectness, logits[:, OFFSET], certain, logits[:, CLASS.stop :]], dim=1)
