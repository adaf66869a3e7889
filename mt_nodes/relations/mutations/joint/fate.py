# SPDX-License-Identifier: Apache-2.0
"""What happens to the returns of a cloud in attenuating and scattering air."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mt_nodes.data.messages import Cloud
from mt_nodes.relations.mutations.joint.attenuation import Singles
from mt_nodes.relations.mutations.joint.empty_beams import EmptyEchoes, spliced
from mt_nodes.relations.mutations.lidar.each_cloud import without
from mt_nodes.relations.mutations.lidar.rays import At, Rows

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Fate:
    """What happens to the returns of one cloud.

    Attributes:
        at: which points they are. scale: full scale of their intensities, None without.
        old_m, new_m: their ranges (n,) before and after.
        passing: share (n,) of the light that the air transmits.
        reads: (k,) apparent reflectivity of the echoes of the air.
        scattered: returns (n,) replaced by an echo of the air. lost: returns (n,) without replacement.
        on_empty: echoes of the air on beams without a return; None where the air is too thin for any.
    """

    at: At
    scale: float | None
    old_m: Singles
    new_m: Singles
    passing: Singles
    reads: Singles
    scattered: Mask
    lost: Mask
    on_empty: EmptyEchoes | None = None

    @property
    def reflectivity(self) -> Singles:
        """Apparent reflectivity (n,) of an echo of the air, 0 where there is none."""
        whole = np.zeros(len(self.scattered), np.float32)
        whole[self.scattered] = self.reads
        return whole

    def rows(self, mask: Mask) -> Rows:
        """Return the rows of the cloud that a mask (n,) over the returns names."""
        return np.flatnonzero(mask) if isinstance(self.at, slice) else self.at[mask]

    def echo_places(self, cloud: Cloud) -> npt.NDArray[np.float64]:
        """Return the places (k, 3) of the echoes of the air: those before returns, then those on empty beams."""
        rows, share = self.rows(self.scattered), (self.new_m / self.old_m)[self.scattered]
        places = np.stack([cloud.points[name][rows] * share for name in "xyz"], axis=1).astype(np.float64)
        return places if self.on_empty is None else np.concatenate([places, self.on_empty.xyz])

    def splice(self, cloud: Cloud) -> tuple[Cloud, At | Mask, Rows]:
        """Return a fresh cloud without the lost returns and with room for echoes on empty beams.

        Also returns the rows in it of the remaining returns, and those of the echoes.
        """
        lost, empty = self.rows(self.lost), np.empty(0, np.int64) if self.on_empty is None else self.on_empty.rows
        if cloud.organised:
            return without(cloud, lost), self.rows(~self.lost), empty
        if not len(empty):
            return without(cloud, lost), self.remaining_rows(cloud), empty
        raw, stay, copies = spliced(cloud.raw, lost, empty)
        remaining = self.remaining_rows(cloud)
        at = stay if isinstance(remaining, slice) else np.flatnonzero(stay)[remaining]
        return cloud.with_raw(raw), at, copies

    def remaining_rows(self, cloud: Cloud) -> At:
        """Return the rows of the remaining returns in the cloud without the lost ones."""
        if cloud.organised:
            return self.rows(~self.lost)
        if isinstance(self.at, slice):
            return self.at
        is_return = np.zeros(len(cloud), dtype=bool)
        is_return[self.at] = True
        return np.flatnonzero(np.delete(is_return, self.rows(self.lost)))
