# SPDX-License-Identifier: Apache-2.0
"""What happens to the returns of a cloud in attenuating and scattering air."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mt_nodes.data.messages import Cloud
from mt_nodes.relations.mutations.joint.attenuation import Singles
from mt_nodes.relations.mutations.joint.empty_beams import EmptyEchoes, counts_of, spliced
from mt_nodes.relations.mutations.lidar.each_cloud import without
from mt_nodes.relations.mutations.lidar.rays import At, Rows

Mask = npt.NDArray[np.bool_]
_NO_ROWS: Rows = np.empty(0, np.int64)


@dataclass(frozen=True, eq=False)
class Fate:
    """What happens to the returns of one cloud.

    Attributes:
        at: which points they are.
        old_m, new_m: their ranges (n,) before and after.
        passing: share (n,) of the light that the air transmits.
        reads: (k,) apparent reflectivity of the echoes of the air.
        scattered: returns (n,) replaced by an echo of the air. lost: returns (n,) without replacement.
        on_empty: echoes of the air on beams without a return; None where the air is too thin for any.
    """

    at: At
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

    def splice(self, cloud: Cloud) -> tuple[Cloud, Rows]:
        """Return a fresh cloud without the lost returns and with room for echoes on empty beams, and their rows."""
        lost, empty = self.rows(self.lost), self._empty_rows
        if cloud.organised or not len(empty):
            return without(cloud, lost), empty
        raw, copies = spliced(cloud.raw, lost, empty)
        return cloud.with_raw(raw), copies

    def blocks(self, cloud: Cloud) -> Iterator[tuple[slice, Mask, Rows]]:
        """Yield the returns in blocks: which they are of all returns, which of them (k,) stay, and their new rows."""
        lost, empty = (_NO_ROWS, _NO_ROWS) if cloud.organised else (self.rows(self.lost), self._empty_rows)
        begin = 0
        for start, count in counts_of(len(cloud), lost, empty):
            bounds = [start, start + len(count)]
            index = slice(*(bounds if isinstance(self.at, slice) else np.searchsorted(self.at, bounds)))
            own = np.arange(len(count)) if isinstance(self.at, slice) else self.at[index] - start
            stay, new = ~self.lost[index], np.cumsum(count) - count + begin
            yield index, stay, new[own[stay]]
            begin += int(count.sum())

    @property
    def _empty_rows(self) -> Rows:
        return _NO_ROWS if self.on_empty is None else self.on_empty.rows
