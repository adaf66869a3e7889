# SPDX-License-Identifier: Apache-2.0
"""What happens to the returns of a cloud in attenuating and scattering air."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mt_nodes.data.messages import Cloud
from mt_nodes.relations.mutations.joint.attenuation import Singles
from mt_nodes.relations.mutations.lidar.rays import At, Rows

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Fate:
    """What happens to the returns of one cloud.

    Attributes:
        at: which points they are.
        old_m, new_m: their ranges (n,) before and after.
        passing: share (n,) of the light that the air transmits.
        reflectivity: apparent reflectivity of an echo of the air (n,), where there is one.
        scattered: returns (n,) replaced by an echo of the air. lost: returns (n,) without replacement.
    """

    at: At
    old_m: Singles
    new_m: Singles
    passing: Singles
    reflectivity: Singles
    scattered: Mask
    lost: Mask

    def rows(self, mask: Mask) -> Rows:
        """Return the rows of the cloud that a mask (n,) over the returns names."""
        return np.flatnonzero(mask) if isinstance(self.at, slice) else self.at[mask]

    def echo_places(self, cloud: Cloud) -> npt.NDArray[np.float64]:
        """Return the places (k, 3) of the echoes of the air."""
        rows, share = self.rows(self.scattered), (self.new_m / self.old_m)[self.scattered]
        return np.stack([cloud.points[name][rows] * share for name in "xyz"], axis=1).astype(np.float64)

    def remaining_rows(self, cloud: Cloud) -> At:
        """Return the rows of the remaining returns in the new cloud."""
        if cloud.organised:
            return self.rows(~self.lost)
        if isinstance(self.at, slice):
            return self.at
        is_return = np.zeros(len(cloud), dtype=bool)
        is_return[self.at] = True
        return np.flatnonzero(np.delete(is_return, self.rows(self.lost)))
