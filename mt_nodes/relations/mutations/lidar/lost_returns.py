# SPDX-License-Identifier: Apache-2.0
"""Base of mutations that lose returns by a rule, and the sectors that they hide."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from mt_nodes.base.arrays import Floats, Ints, Mask, Singles
from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.effects import Effects, Volume
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.lidar.each_cloud import EachCloud, proof_of_removal, without
from mt_nodes.relations.mutations.lidar.placement import empty_returns
from mt_nodes.relations.mutations.lidar.rays import returns

#: Obstacles farther away than this are out of any sensor's range.
OUT_OF_SIGHT_M = 300.0
_PIECE_RAD = np.pi / 2
_CORNER_RAD = np.radians(5.0)


class LostReturns(EachCloud):
    """Loses the returns that a rule selects; every other one stays, byte for byte, in order.

    The proof checks each return, lost or not, by :meth:`excess`, which uses another formula than :meth:`lost`.
    """

    random = False
    #: A return this close to the limit of the rule may be lost or stay: rounding decides.
    tolerance: ClassVar[float] = 1e-5

    @abstractmethod
    def lost(self, cloud: Cloud, draw: Draw) -> Mask:
        """Return which points (N,) are lost; values for empty returns do not matter."""

    @abstractmethod
    def excess(self, cloud: Cloud, draw: Draw) -> Floats:
        """Return by how much each point (N,) exceeds the limit, negative if it must stay, by an independent formula."""

    def hidden(self, cloud: Cloud) -> tuple[Volume, ...]:
        """Return the volumes that are no longer visible."""
        return ()

    def choose(self, cloud: Cloud, state: Any) -> Draw:
        """Return the draw: empty, unless ``begin`` drew something."""
        return {}

    def weakened(self, cloud: Cloud) -> Cloud:
        """Return the cloud as it is before anything is lost."""
        return cloud

    def draw_cloud(self, rng: np.random.Generator, bundle: Bundle, cloud: Cloud, state: Any) -> Draw:
        """Check that there is something to lose."""
        rows, draw = returns(cloud), self.choose(cloud, state)
        if not self.lost(cloud, draw)[rows].any() and self.weakened(cloud) is cloud:
            raise NotApplicable(f"none of the {len(rows)} returns of {cloud.topic} would be lost")
        return draw

    def change_cloud(self, bundle: Bundle, cloud: Cloud, draw: Draw) -> Cloud:
        """Drop the returns."""
        return without(self.weakened(cloud), self._rows(cloud, draw))

    def prove_cloud(self, bundle: Bundle, old: Cloud, new: Cloud, draw: Draw) -> str | None:
        """Prove that exactly the right returns are gone."""
        rows = self._rows(old, draw)
        broken = proof_of_removal(self.weakened(old), new, rows)
        if broken is not None:
            return broken
        excess = self.excess(old, draw)
        wrong = int(np.count_nonzero(excess[rows] < -self.tolerance))
        if wrong:
            return f"{wrong} of {len(rows)} lost returns had to stay"
        excess[rows] = 0.0
        over = int(np.count_nonzero((excess > self.tolerance) & ~empty_returns(old)))
        return f"{over} returns stayed that had to be lost" if over else None

    def describe_change(self, bundle: Bundle, clouds: Mapping[str, Cloud], draws: Mapping[str, Draw]) -> Effects:
        """Report what is hidden from at least one of the sensors, so that checks do not demand it."""
        hidden = tuple(volume for cloud in bundle.clouds for volume in self.hidden(cloud))
        return Effects(occluded=hidden, numbers={"points_removed": count_lost(bundle, clouds)})

    def _rows(self, cloud: Cloud, draw: Draw) -> Ints:
        return np.flatnonzero(self.lost(cloud, draw) & ~empty_returns(cloud))


def count_lost(bundle: Bundle, clouds: Mapping[str, Cloud]) -> float:
    """Return how many returns the changed clouds have less than the bundle's own."""
    return float(sum(_returns_count(cloud) - _returns_count(clouds[cloud.topic]) for cloud in bundle.clouds))


def _returns_count(cloud: Cloud) -> int:
    return int(np.count_nonzero(~empty_returns(cloud))) if cloud.organised else len(cloud)


def azimuth_rad(cloud: Cloud) -> Singles:
    """Return the azimuth (N,) of points in their sensor's frame, from the x axis towards y."""
    x, y = (np.ascontiguousarray(cloud.points[name], dtype=np.float32) for name in "xy")
    return np.asarray(np.arctan2(y, x))


def bearing_offset_rad(angle_rad: Singles, centre_rad: float) -> Singles:
    """Return the angle (N,) between azimuths and a bearing, 0 to π."""
    turned = angle_rad - np.float32(centre_rad)
    turned -= np.float32(2.0 * np.pi) * np.rint(turned / np.float32(2.0 * np.pi))
    return np.asarray(np.abs(turned))


def cloud_offset_rad(cloud: Cloud, centre_rad: float) -> Floats:
    """Return the same as :func:`bearing_offset_rad`, from the scalar product with the bearing."""
    x, y = (cloud.points[name].astype(np.float64) for name in "xy")
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        cosine = (x * np.cos(centre_rad) + y * np.sin(centre_rad)) / np.hypot(x, y)
    return np.asarray(np.arccos(np.clip(cosine, -1.0, 1.0)))


def sector(
    frame_id: str, centre_rad: float, width_rad: float, near_m: float = 0.0, far_m: float = OUT_OF_SIGHT_M
) -> Iterator[Volume]:
    """Yield volumes that together form a sector (or ring) between two distances around a frame's origin.

    Pieces span a quarter turn at most, because an outline has no hole; the inner edge lies within ``near_m`` of the
    origin, the outer one nowhere nearer than ``far_m``.
    """
    pieces = int(np.ceil(width_rad / _PIECE_RAD - 1e-9))
    edges = centre_rad + width_rad * (np.arange(pieces + 1) / max(pieces, 1) - 0.5)
    for low, high in pairwise(edges.tolist()):
        angle = np.linspace(low, high, 2 + int((high - low) / _CORNER_RAD))
        outer = far_m / np.cos((angle[1] - angle[0]) / 2.0)
        rim = np.column_stack([np.cos(angle), np.sin(angle)])
        outline = np.concatenate([outer * rim, near_m * rim[::-1] if near_m > 0.0 else np.zeros((1, 2))])
        (x0, y0), (x1, y1) = outline.min(axis=0).tolist(), outline.max(axis=0).tolist()
        centre, size = ((x0 + x1) / 2, (y0 + y1) / 2, 0.0), (x1 - x0, y1 - y0, 2.0 * far_m)
        corners = tuple((float(x), float(y)) for x, y in outline.tolist())
        yield Volume(frame_id, centre, size, label="sector", outline_m=corners)
