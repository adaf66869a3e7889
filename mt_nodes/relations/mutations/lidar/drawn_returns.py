# SPDX-License-Identifier: Apache-2.0
"""Returns that are drawn and then lost or duplicated: at random, by range, or in sectors."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mt_nodes.base.arrays import Floats, Rows
from mt_nodes.base.errors import NotApplicable
from mt_nodes.base.params import param
from mt_nodes.data.effects import Effects, Volume
from mt_nodes.data.firings import return_pairs
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.lidar.each_cloud import EachCloud, proof_of_removal, without
from mt_nodes.relations.mutations.lidar.lost_returns import azimuth_rad, bearing_offset_rad, cloud_offset_rad, sector
from mt_nodes.relations.mutations.lidar.placement import empty_returns
from mt_nodes.relations.mutations.lidar.rays import ranges_m, returns, rows_of_share, smallest


class RowsLost(EachCloud):
    """Base: loses the returns at the ``rows`` of a draw: points vanish, or become empty in an organised cloud.

    A cloud may keep all its returns; a bundle that loses nothing has no follow-up.
    """

    @abstractmethod
    def prove_lost(self, bundle: Bundle, old: Cloud, draw: Draw) -> str | None:
        """Prove that the rows of a draw are those to be lost."""

    def volumes(self, bundle: Bundle, clouds: Mapping[str, Cloud], draws: Mapping[str, Draw]) -> tuple[Volume, ...]:
        """Return the volumes in which no obstacle is demanded."""
        return ()

    def draw(self, rng: np.random.Generator, bundle: Bundle, state: Any) -> Draw:
        """Draw for every cloud; at least one must lose something."""
        draw = super().draw(rng, bundle, state)
        if not any(len(value) for name, value in draw.items() if name.endswith("|rows")):
            raise NotApplicable(f"bundle {bundle.index} has no return that would be lost")
        return draw

    def change_cloud(self, bundle: Bundle, cloud: Cloud, draw: Draw) -> Cloud:
        """Drop the drawn rows."""
        return without(cloud, rows_of(draw))

    def prove_cloud(self, bundle: Bundle, old: Cloud, new: Cloud, draw: Draw) -> str | None:
        """Prove that exactly the drawn rows are lost, and that they are the right ones."""
        return proof_of_removal(old, new, rows_of(draw)) or self.prove_lost(bundle, old, draw)

    def describe_change(self, bundle: Bundle, clouds: Mapping[str, Cloud], draws: Mapping[str, Draw]) -> Effects:
        """Report the number of lost returns, and the affected volumes."""
        lost = float(sum(len(draw["rows"]) for draw in draws.values()))
        return Effects(occluded=self.volumes(bundle, clouds, draws), numbers={"points_removed": lost})


def rows_of(draw: Draw) -> Rows:
    """Return the rows (n,) of a draw, stored in a smaller type, in NumPy's index type."""
    return np.asarray(draw["rows"], dtype=np.int64)


def as_mask(cloud: Cloud, rows: Rows) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return (N,) whether each point of the cloud is among the rows."""
    mask = np.zeros(len(cloud), dtype=bool)
    mask[rows] = True
    return mask


@dataclass(frozen=True)
class PointsDropped(RowsLost):
    """Loses a share of the returns, all equally likely.

    ``round(share * n)`` of the n returns, at least one, independent of their places: as from lost packets, weak echoes
    or a filter in the driver. It is assumed that real drop-out of spinning LiDARs is some per cent, and depends on the
    surface. Of a sensor in dual-return mode, firings are lost, each with all its returns, which share a packet.

    Guaranteed: exactly the requested number of returns (or firings) is lost; the rest remains byte for byte, in order.
    """

    share: float = param(
        0.1, low=0.0001, high=0.99, neutral=0.0001, help="share of the returns of each cloud that are lost"
    )

    def draw_cloud(self, rng: np.random.Generator, bundle: Bundle, cloud: Cloud, state: Any) -> Draw:
        """Choose the firings to lose."""
        firings = return_pairs(cloud)
        rows = rows_of_share(rng, firings.heads(returns(cloud)), self.share)
        return {"rows": smallest(firings.whole(rows))}

    def prove_lost(self, bundle: Bundle, old: Cloud, draw: Draw) -> str | None:
        """Count them, and see that they were returns."""
        rows, empty, firings = rows_of(draw), empty_returns(old), return_pairs(old)
        # Every firing has one nearest return: they are counted by these, and drawn by their first rows.
        known, lost = (int(np.count_nonzero(firings.first & chosen)) for chosen in (~empty, as_mask(old, rows)))
        expected = max(1, round(self.share * known))
        if lost != expected or firings.broken(rows):
            return f"{lost} returns lost, expected {expected}; {firings.broken(rows)} firings are lost in part"
        return "an empty return was lost" if empty[rows].any() else None


#: At so many standard deviations one frame in a billion would be refused wrongly.
_SIGMAS = 6.0


@dataclass(frozen=True)
class FarPointsDropped(RowsLost):
    """Loses returns at random, with a probability that grows with range.

    A return at range r is lost with probability ``1 - 2**(-(r - from_m) / half_m)`` beyond ``from_m`` and never
    before it. That is the law of Bouguer and Lambert for the way out and back, ``exp(-2 a (r - from_m))`` with
    ``a = ln 2 / (2 half_m)``, read as the share of echoes that still pass the receiver's threshold.

    Guaranteed: no return nearer than ``from_m`` is lost, the number of lost returns fits the formula within six
    standard deviations, and the rest remains byte for byte, in order.
    """

    from_m: float = param(20.0, low=0.0, high=300.0, unit="m", neutral=300.0, help="nothing is lost up to this range")
    half_m: float = param(
        20.0, low=0.1, high=1000.0, unit="m", neutral=1000.0, help="of every so many metres more, half of them are"
    )

    def draw_cloud(self, rng: np.random.Generator, bundle: Bundle, cloud: Cloud, state: Any) -> Draw:
        """Draw for every return."""
        rows = returns(cloud)
        survival = self.survival(ranges_m(cloud, rows))
        return {"rows": smallest(rows[rng.random(len(rows)) >= survival])}

    def survival(self, range_m: Floats) -> Floats:
        """Return the probability (n,) that returns at these ranges are kept."""
        return np.asarray(np.exp2(np.minimum(self.from_m - range_m, 0.0) / self.half_m))

    def prove_lost(self, bundle: Bundle, old: Cloud, draw: Draw) -> str | None:
        """Check that only far returns are lost, and about as many as the formula says."""
        rows = rows_of(draw)
        lost_m = ranges_m(old, rows)
        if not (lost_m > self.from_m).all():
            return f"a return at {lost_m.min():.2f} m was lost, nothing up to {self.from_m:g} m may be"
        beyond = np.maximum(ranges_m(old, returns(old)) - self.from_m, 0.0)
        lost = -np.expm1(-np.log(2.0) / self.half_m * beyond)
        expected, spread = float(lost.sum()), float(np.sqrt((lost * (1.0 - lost)).sum()))
        if abs(len(rows) - expected) <= _SIGMAS * spread + 1.0:
            return None
        return f"{len(rows)} returns lost, the formula says {expected:.0f} ± {spread:.0f}"


_EDGE_RAD = 1e-5


@dataclass(frozen=True)
class SectorDropped(RowsLost):
    """Loses all returns in sectors at random azimuths, drawn anew for every cloud, like lost packets.

    A packet of a spinning LiDAR holds a few columns of the scan: at 10 Hz 24 firings of 0.2 degrees, 4.8 degrees in
    all, of a Velodyne VLP-16 (its manual, UDP data packets); one that is lost on the network is lost for good. What
    is in a sector cannot be demanded any more (``effects.occluded``).

    Guaranteed: no return within ``width_deg / 2`` of a drawn azimuth remains, and none outside is lost; the rest is
    unchanged byte for byte, in order.
    """

    sectors: int = param(3, low=1, high=360, neutral=1, help="sectors that are lost; they may overlap")
    width_deg: float = param(4.8, low=0.01, high=360.0, unit="deg", neutral=0.01, help="width of each")

    def draw_cloud(self, rng: np.random.Generator, bundle: Bundle, cloud: Cloud, state: Any) -> Draw:
        """Choose azimuths, and find the returns there."""
        centres = rng.uniform(-np.pi, np.pi, self.sectors)
        angle, inside = azimuth_rad(cloud), np.zeros(len(cloud), dtype=bool)
        for centre in centres.tolist():
            inside |= bearing_offset_rad(angle, centre) <= self._half_rad
        return {"azimuth_rad": centres, "rows": smallest(np.flatnonzero(inside & ~empty_returns(cloud)))}

    def volumes(self, bundle: Bundle, clouds: Mapping[str, Cloud], draws: Mapping[str, Draw]) -> tuple[Volume, ...]:
        """Return the sectors."""
        return tuple(
            volume
            for topic, draw in draws.items()
            for centre in draw["azimuth_rad"].tolist()
            for volume in sector(clouds[topic].frame_id, centre, 2.0 * self._half_rad)
        )

    def prove_lost(self, bundle: Bundle, old: Cloud, draw: Draw) -> str | None:
        """Measure each return's angle to the nearest drawn azimuth, from scalar products."""
        offset_rad = np.full(len(old), np.inf)
        for centre in draw["azimuth_rad"].tolist():
            np.fmin(offset_rad, cloud_offset_rad(old, centre), out=offset_rad)
        lost = as_mask(old, rows_of(draw))
        wrong = (lost != (offset_rad <= self._half_rad)) & (np.abs(offset_rad - self._half_rad) > _EDGE_RAD)
        wrong &= ~empty_returns(old) & np.isfinite(offset_rad)
        return f"{int(wrong.sum())} returns are on the wrong side of a sector's edge" if wrong.any() else None

    @property
    def _half_rad(self) -> float:
        return float(np.radians(self.width_deg / 2.0))


@dataclass(frozen=True)
class PointsDuplicated(EachCloud):
    """Repeats a share of the returns, byte for byte, each right after its original.

    Sensors in dual-return mode report a surface twice if strongest and last echo are the same (Velodyne VLP-16 manual),
    and so do drivers that assemble overlapping packets. A copy carries no new information. An organised cloud has one
    place per beam and no room for copies.

    Guaranteed: the requested number of returns have a copy; all old points remain, in order.
    """

    share: float = param(
        0.1, low=0.0001, high=1.0, neutral=0.0001, help="share of the returns of each cloud that are there twice"
    )

    def draw_cloud(self, rng: np.random.Generator, bundle: Bundle, cloud: Cloud, state: Any) -> Draw:
        """Choose the returns to repeat; a copy is a return more, of that firing."""
        if cloud.organised:
            raise NotApplicable(f"organised {cloud.topic} has one place a beam, {cloud.height} x {cloud.width}")
        return {"rows": rows_of_share(rng, returns(cloud), self.share)}

    def change_cloud(self, bundle: Bundle, cloud: Cloud, draw: Draw) -> Cloud:
        """Repeat the drawn rows."""
        times = np.ones(len(cloud), dtype=np.int64)
        times[draw["rows"]] = 2
        return cloud.with_raw(np.repeat(cloud.raw, times))

    def prove_cloud(self, bundle: Bundle, old: Cloud, new: Cloud, draw: Draw) -> str | None:
        """Remove the copies again and compare each with the return before it."""
        rows, expected = rows_of(draw), max(1, round(self.share * len(returns(old))))
        if len(np.unique(rows)) != expected or len(new) != len(old) + expected:
            return f"{len(new)} points, expected {len(old)} and {expected} copies"
        copies = rows + 1 + np.arange(expected)
        if np.delete(new.raw, copies).tobytes() != old.raw.tobytes():
            return "an old point was changed, moved or lost"
        return None if new.raw[copies].tobytes() == old.raw[rows].tobytes() else "a copy differs from its return"

    def describe_change(self, bundle: Bundle, clouds: Mapping[str, Cloud], draws: Mapping[str, Draw]) -> Effects:
        """Count the copies."""
        return Effects(numbers={"points_added": float(sum(len(draw["rows"]) for draw in draws.values()))})
