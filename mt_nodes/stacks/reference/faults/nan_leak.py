# SPDX-License-Identifier: Apache-2.0
"""A mean over points that are none."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.stacks.reference.faults.base import Fault, Points, Steps


@dataclass(frozen=True)
class NanLeak(Fault):
    """Heights are centred sector by sector before returns that are not numbers are dropped, and not after.

    Such a return has no azimuth, falls into the sector that begins straight ahead, and the mean of that sector is not
    a number any more: every obstacle in it vanishes without a word, while the others stay.
    """

    sectors: int = param(8, low=1, high=360, help="sectors of a revolution, counted to the left from straight ahead")

    def plant(self, steps: Steps) -> Steps:
        """Centre the cloud as it came; the mean is added again, so that a clean cloud stays as it is."""

        def clean(cloud: Points) -> Points:
            with np.errstate(invalid="ignore"):
                share = np.nan_to_num(np.arctan2(cloud[:, 1], cloud[:, 0])) / (2.0 * np.pi) % 1.0
                sector = np.minimum((share * self.sectors).astype(np.intp), self.sectors - 1)
                total = np.bincount(sector, weights=cloud[:, 2], minlength=self.sectors)
                mean_m = (total / np.maximum(np.bincount(sector, minlength=self.sectors), 1))[sector]
                levelled = cloud.copy()
                levelled[:, 2] = (cloud[:, 2] - mean_m) + mean_m
            return steps.clean(levelled)

        return replace(steps, clean=clean)
