# SPDX-License-Identifier: Apache-2.0
"""Checks of free space: what is occupied stays so, and what is free stays so. Unknown cells are neither."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Mask
from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import param
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle
from mt_nodes.data.outputs import Output
from mt_nodes.data.perception import FreeSpace
from mt_nodes.data.regions import Region, RegionUnavailable, load_region
from mt_nodes.data.transforms import UnknownTransform, move
from mt_nodes.data.verdict import Judgement, Outcome
from mt_nodes.relations.checks.base import Check, at_most, nothing_to_judge

Places = npt.NDArray[np.float64]


@dataclass(frozen=True)
class FreeSpaceCheck(Check):
    """Base of checks that compare occupancy grids inside a region, cell by cell at the centres of the source's cells.

    A cell is occupied from ``occupied_percent`` on and free up to ``free_percent``; between these, and where the grid
    says so or ends, it is unknown.
    """

    needs: ClassVar[tuple[str, ...]] = ("free_space",)

    region: Region = param("front_40m", convert=load_region, help="where cells count")
    occupied_percent: float = param(65.0, low=1.0, high=100.0, help="occupied from here on; map_server of nav2: 65")
    free_percent: float = param(25.0, low=0.0, high=99.0, help="free up to here; map_server of nav2: 25")
    at_most_m2: float = param(0.5, low=0.0, high=10_000.0, unit="m²", help="area that may differ")

    def __post_init__(self) -> None:
        object.__setattr__(self, "region", load_region(self.region))
        if self.free_percent >= self.occupied_percent:
            raise UsageError(
                f"free_percent {self.free_percent:g} is not below occupied_percent {self.occupied_percent:g}"
            )

    def judge(self, source: Output, followup: Output, effects: Effects, bundle: Bundle) -> Judgement:
        """Compare the two grids."""
        assert source.free_space is not None and followup.free_space is not None
        try:
            region = self.region.resolve(bundle)
            return self._compare(region, source.free_space, followup.free_space, effects, bundle)
        except RegionUnavailable as error:
            return Judgement(Outcome.NOT_APPLICABLE, reason=str(error))
        except UnknownTransform as error:
            return Judgement(Outcome.ERROR, reason=str(error))

    def _compare(
        self, region: Region, before: FreeSpace, after: FreeSpace, effects: Effects, bundle: Bundle
    ) -> Judgement:
        demanded = self.demanded(before)
        places = before.centers_m(demanded)
        carry = effects.carry(before.frame_id, bundle.transforms)
        inside = _inside(region, places, before.frame_id, bundle)
        if carry is not None:
            places = _flat(carry, places)
            inside &= _inside(region, places, before.frame_id, bundle)
        places = places[inside & ~_within_volumes(places, before.frame_id, effects, bundle)]
        if not len(places):
            return nothing_to_judge(f"no {self.what} cell in '{region.name}'", "m²")
        shown = _in_frame(region.frame_id, places, before.frame_id, bundle)
        places = _in_frame(after.frame_id, places, before.frame_id, bundle)
        return self.decide(places, after, shown, before.resolution_m**2)

    @property
    @abstractmethod
    def what(self) -> str:
        """State of the demanded cells, for people."""

    @abstractmethod
    def demanded(self, before: FreeSpace) -> Mask:
        """Return which cells (H, W) of the source are demanded."""

    @abstractmethod
    def decide(self, places: Places, after: FreeSpace, shown: Places, cell_m2: float) -> Judgement:
        """Judge the follow-up's cells at the places (N, 2), N ≥ 1, of the demanded ones.

        ``shown``: the same in the frame of the region, for people.
        """


@dataclass(frozen=True)
class OccupiedCellsKept(FreeSpaceCheck):
    """At most ``at_most_m2`` of what the source's grid has as occupied is free in the follow-up's.

    A cell counts as occupied still if an occupied one lies within ``tolerance_m``. Where the follow-up knows less than
    ``least_known`` of these cells, nothing is decided: ``free_cells_kept`` tells of a grid that has gone blank.
    """

    tolerance_m: float = param(0.3, low=0.0, high=5.0, unit="m", help="distance at which an occupied cell answers")
    least_known: float = param(
        0.5, low=0.01, high=1.0, help="share of the cells of which the follow-up knows something"
    )

    @property
    def what(self) -> str:
        """State of the demanded cells, for people."""
        return "occupied"

    def demanded(self, before: FreeSpace) -> Mask:
        """Return the occupied cells (H, W)."""
        return np.asarray(before.cells >= self.occupied_percent)

    def decide(self, places: Places, after: FreeSpace, shown: Places, cell_m2: float) -> Judgement:
        """Count what has become free."""
        values = after.values_at(places)
        near = self._near_occupied(places, after)
        freed = (values >= 0) & (values <= self.free_percent) & ~near
        known = freed | near | (values > self.free_percent)
        if known.mean() < self.least_known:
            reason = (
                f"the follow-up knows {known.sum()} of {len(places)} occupied cells, expected {self.least_known:.0%}"
            )
            return nothing_to_judge(reason, "m²")
        area_m2 = float(freed.sum() * cell_m2)
        reason = f"{area_m2:.2f} of {len(places) * cell_m2:.2f} m² occupied are free{_where(shown[freed])}"
        return at_most(
            area_m2,
            self.at_most_m2,
            "m²",
            reason,
            lost=int(freed.sum()),
            detail={"lost_at": _few(shown[freed], self.what)},
        )

    def _near_occupied(self, places: Places, after: FreeSpace) -> Mask:
        from scipy.spatial import KDTree

        occupied = after.centers_m(np.asarray(after.cells >= self.occupied_percent))
        if not len(occupied):
            return np.zeros(len(places), dtype=bool)
        # Half a diagonal: the place lies somewhere within its own cell.
        reach_m = max(self.tolerance_m, after.resolution_m / np.sqrt(2.0)) + 1e-6
        return np.asarray(np.isfinite(KDTree(occupied).query(places, distance_upper_bound=reach_m)[0]))


@dataclass(frozen=True)
class FreeCellsKept(FreeSpaceCheck):
    """At most ``at_most_m2`` of what the source's grid has as free is occupied or unknown in the follow-up's.

    ``unknown_counts: false`` takes only what has become occupied for a loss: of what is hidden nothing need be known.
    Where then nothing is known in the follow-up at all, nothing is decided.
    """

    unknown_counts: bool = param(True, help="a free cell that has become unknown is lost, too")

    @property
    def what(self) -> str:
        """State of the demanded cells, for people."""
        return "free"

    def demanded(self, before: FreeSpace) -> Mask:
        """Return the free cells (H, W)."""
        return np.asarray((before.cells >= 0) & (before.cells <= self.free_percent))

    def decide(self, places: Places, after: FreeSpace, shown: Places, cell_m2: float) -> Judgement:
        """Count what is not free any more."""
        values = after.values_at(places)
        blocked = values >= self.occupied_percent
        unknown = ~blocked & ~((values >= 0) & (values <= self.free_percent))
        if not self.unknown_counts and unknown.all():
            return nothing_to_judge(f"the follow-up knows none of {len(places)} free cells", "m²")
        lost = blocked | unknown if self.unknown_counts else blocked
        area_m2 = float(lost.sum() * cell_m2)
        kinds = f"{blocked.sum() * cell_m2:.2f} m² occupied, {unknown.sum() * cell_m2:.2f} m² unknown"
        reason = f"of {len(places) * cell_m2:.2f} m² free, now {kinds}{_where(shown[lost])}"
        return at_most(
            area_m2,
            self.at_most_m2,
            "m²",
            reason,
            lost=int(lost.sum()),
            detail={"lost_at": _few(shown[lost], self.what)},
        )


def _flat(matrix: Floats, places: Places) -> Places:
    return np.asarray(move(matrix, np.column_stack([places, np.zeros(len(places))]))[:, :2])


def _in_frame(target: str, places: Places, frame_id: str, bundle: Bundle) -> Places:
    return places if target == frame_id else _flat(bundle.transforms.lookup(target, frame_id), places)


def _inside(region: Region, places: Places, frame_id: str, bundle: Bundle) -> Mask:
    return region.contains(_in_frame(region.frame_id, places, frame_id, bundle))


def _within_volumes(places: Places, frame_id: str, effects: Effects, bundle: Bundle) -> Mask:
    """Return which places (N,) lie where the mutation changed what is there: nothing is demanded of them."""
    import shapely

    from mt_nodes.relations.checks.obstacles import outlines_of

    volumes = (*effects.added, *effects.removed, *effects.occluded, *effects.revealed)
    if not volumes or not len(places):
        return np.zeros(len(places), dtype=bool)
    area = shapely.union_all(outlines_of(volumes, frame_id, bundle))
    return np.asarray(shapely.contains_xy(area, places[:, 0], places[:, 1]))


def _few(places: Places, what: str) -> list[list[float | str]]:
    return [[x, y, what] for x, y in np.round(places[:20], 3).tolist()]


def _where(places: Places) -> str:
    if not len(places):
        return ""
    x, y = np.round(places[np.hypot(*places.T).argmin()], 1) + 0.0
    return f", the nearest at ({x:.1f}, {y:.1f}) m"
