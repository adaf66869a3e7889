# SPDX-License-Identifier: Apache-2.0
"""What mutations that lose drawn returns have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np

from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.effects import Effects, Volume
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.lidar.each_cloud import EachCloud, proof_of_removal, without
from mt_nodes.relations.mutations.lidar.rays import Rows


class RowsLost(EachCloud):
    """Loses the returns at the ``rows`` of a draw: points vanish, or leave an empty return in an organised cloud.

    One cloud of a bundle may keep every return; a bundle of which nothing is lost has no follow-up.
    """

    @abstractmethod
    def prove_lost(self, bundle: Bundle, old: Cloud, draw: Draw) -> str | None:
        """Prove that the rows of a draw are those that are to be lost."""

    def volumes(self, bundle: Bundle, clouds: Mapping[str, Cloud], draws: Mapping[str, Draw]) -> tuple[Volume, ...]:
        """Return where no obstacle can be demanded any more."""
        return ()

    def draw(self, rng: np.random.Generator, bundle: Bundle, state: Any) -> Draw:
        """Draw for every cloud; something must be lost in one of them."""
        draw = super().draw(rng, bundle, state)
        if not any(len(value) for name, value in draw.items() if name.endswith("|rows")):
            raise NotApplicable(f"bundle {bundle.index} has no return that would be lost")
        return draw

    def change_cloud(self, bundle: Bundle, cloud: Cloud, draw: Draw) -> Cloud:
        """Lose the rows drawn."""
        return without(cloud, rows_of(draw))

    def prove_cloud(self, bundle: Bundle, old: Cloud, new: Cloud, draw: Draw) -> str | None:
        """Prove that the rows drawn are lost, no other, and that they are the right ones."""
        return proof_of_removal(old, new, rows_of(draw)) or self.prove_lost(bundle, old, draw)

    def describe_change(self, bundle: Bundle, clouds: Mapping[str, Cloud], draws: Mapping[str, Draw]) -> Effects:
        """Count what was lost, and tell where."""
        lost = float(sum(len(draw["rows"]) for draw in draws.values()))
        return Effects(occluded=self.volumes(bundle, clouds, draws), numbers={"points_removed": lost})


def rows_of(draw: Draw) -> Rows:
    """Return the rows (n,) of a draw, which may be kept in a smaller type, as NumPy indexes fastest."""
    return np.asarray(draw["rows"], dtype=np.int64)


def as_mask(cloud: Cloud, rows: Rows) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return (N,) whether each point of the cloud is at one of the rows."""
    mask = np.zeros(len(cloud), dtype=bool)
    mask[rows] = True
    return mask
