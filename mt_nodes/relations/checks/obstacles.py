# SPDX-License-Identifier: Apache-2.0
"""Shared code of checks of obstacles: zones, hysteresis, association, and descriptions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import shapely

from mt_nodes.base.arrays import Mask
from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import param
from mt_nodes.data.association import Association, canonical, footprints, moved
from mt_nodes.data.effects import Effects, Volume
from mt_nodes.data.messages import Bundle
from mt_nodes.data.outputs import Detections, Output
from mt_nodes.data.polar_cells import JUDGED_IN, counted_cells
from mt_nodes.data.regions import Region, RegionUnavailable, load_region
from mt_nodes.data.transforms import Matrix, UnknownTransform, move
from mt_nodes.data.verdict import Judgement, Outcome
from mt_nodes.relations.checks.scored_check import ScoredCheck

Rows = npt.NDArray[np.intp]
#: Shapely polygons seen from above.
Outlines = npt.NDArray[Any]
_NAMED = 3
#: Association is cubic in time and quadratic in memory: 2,000 with 2,000 take about a second.
MOST_OBSTACLES = 2000


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two outputs of one instant in the region's frame, both in canonical order, and which obstacles belong together.

    Attributes:
        source, followup: every obstacle; the source's where it is expected after the mutation.
        demanded: (M,) source obstacles that the follow-up must contain.
        partner: (M,) the row of the same obstacle in the follow-up, -1 if there is none.
        new: (K,) follow-up obstacles of the keep zone, at or above the low threshold, that are none of the source's.
        added: the volumes that the mutation added, as boxes. added_remain: (V,) those in the keep zone.
        removed, occluded: the outlines (V,) of the volumes that it removed or occluded, seen from above.
        counts: [source, follow-up] obstacles of the whole region at or above the high threshold, by class.
    """

    source: Detections
    followup: Detections
    demanded: Mask
    partner: Rows
    new: Mask
    added: Detections
    added_remain: Mask
    removed: Outlines
    occluded: Outlines
    counts: dict[str, list[int]]

    @property
    def matched(self) -> Mask:
        """(M,) source obstacles that have a partner."""
        return np.asarray(self.partner >= 0)

    @property
    def pairs(self) -> tuple[Detections, Detections]:
        """The demanded obstacles that have a partner, and those partners, row by row."""
        rows = self.demanded & self.matched
        return self.source.take(rows), self.followup.take(self.partner[rows])


@dataclass(frozen=True)
class ObstacleComparison(ScoredCheck):
    """Base of checks that compare obstacles, whatever else they judge of them.

    Obstacles are demanded inside the keep zone, which lies ``keep_inset_m`` inside the region and within ``within_m``
    of the ego, so that an obstacle that crosses an outline violates nothing. Every part of an obstacle must be
    ``beyond_m`` away. If the mutation moves the scene, an
    obstacle must be in the keep zone before and after: a stack that covers only a region does not detect the rest, and
    cuts off what crosses its outline.
    """

    scored: ClassVar[str] = "detections"

    region: Region = param("front_40m", convert=load_region, help="where obstacles matter")
    keep_inset_m: float = param(1.0, low=0.0, high=50.0, unit="m", help="the keep zone lies this far inside the region")
    within_m: float = param(float("inf"), low=0.0, unit="m", help="the keep zone ends at this distance from the ego")
    beyond_m: float = param(
        0.0, low=0.0, unit="m", help="obstacles that reach nearer to the ego than this are not in the keep zone"
    )
    ego_frame_id: str = param("base_link", help="frame whose origin within_m and beyond_m are measured from")
    association: str = param("centre", choices=("centre", "bev_iou"), help="when two obstacles are the same one")
    per_category: bool = param(False, help="judge each class by itself: an obstacle must keep its class")

    def __post_init__(self) -> None:
        object.__setattr__(self, "region", load_region(self.region))
        super().__post_init__()
        if self.beyond_m >= self.within_m:
            raise UsageError(f"beyond_m {self.beyond_m:g} is not below within_m {self.within_m:g}")
        if self.region.fixed and self.region.buffered(-self.keep_inset_m).is_empty:
            raise UsageError(f"keep_inset_m {self.keep_inset_m:g} m leaves nothing of region '{self.region.name}'")

    def judge_obstacles(
        self,
        outputs: tuple[Detections | None, Detections | None],
        effects: Effects,
        bundle: Bundle,
        decide: Callable[[Comparison], Judgement],
    ) -> Judgement:
        """Compare the obstacles of source and follow-up, of whatever role they are, and have them judged."""
        for name, detections in zip(("source", "follow-up"), outputs, strict=True):
            broken = "no detections" if detections is None else self._unusable(detections)
            if broken is not None:
                return Judgement(Outcome.ERROR, reason=f"the {name} output has {broken}")
        try:
            region = self.region.resolve(bundle)
            compared = self.compare(region, outputs[0], outputs[1], effects, bundle)  # type: ignore[arg-type]
        except RegionUnavailable as error:
            return Judgement(Outcome.NOT_APPLICABLE, reason=str(error))
        except UnknownTransform as error:
            return Judgement(Outcome.ERROR, reason=str(error))
        if not self.demands(compared):
            reason = (
                f"no {self.what} with a score of {self.thresholds.high:g} or more in the keep zone of '{region.name}'"
            )
            return Judgement(
                Outcome.NOT_APPLICABLE, reason=reason, unit="obstacles", detail={"counts": compared.counts}
            )
        return _placed(decide(compared), compared)

    def demands(self, compared: Comparison) -> bool:
        """Whether there is anything to judge; by default, any demanded obstacle."""
        return bool(compared.demanded.any())

    @property
    def what(self) -> str:
        """Name of what is demanded, for people."""
        return "obstacle"

    @property
    def associate(self) -> Association:
        """Association method."""
        return Association(self.association, same_class=self.per_category)

    def _unusable(self, detections: Detections) -> str | None:
        bad = int((~detections.finite).sum())
        if bad:
            return f"{bad} of {len(detections)} obstacles with numbers that are not finite"
        low = self.thresholds.low
        if (many := int((detections.score >= low).sum())) > MOST_OBSTACLES:
            return f"{many} obstacles with a score of {low:g} or more; at most {MOST_OBSTACLES} are compared"
        if negative := int((detections.size_m < 0.0).any(axis=1).sum()):
            return f"{negative} of {len(detections)} obstacles with a negative size"
        flat = int((detections.size_m[:, :2] <= 0.0).any(axis=1).sum())
        if self.association == "bev_iou" and flat:
            return f"{flat} of {len(detections)} obstacles without a size, which association bev_iou needs"
        return None

    def compare(
        self, region: Region, source: Detections, followup: Detections, effects: Effects, bundle: Bundle
    ) -> Comparison:
        """Return two outputs side by side.

        ``region``: of this instant.
        Raises UnknownTransform: an output is in a frame that does not lead to the region's.
        """
        frame_id = region.frame_id
        before, after = (_in_frame(d, frame_id, bundle) for d in (source, followup))
        carry = effects.carry(frame_id, bundle.transforms)
        if carry is not None:
            before = moved(before, carry, frame_id)
        before, after = canonical(before), canonical(after)
        added = in_boxes(effects.added, frame_id, bundle)
        removed, occluded = (outlines_of(v, frame_id, bundle) for v in (effects.removed, effects.occluded))
        high = before.score >= self.thresholds.high
        revealed = outlines_of(effects.revealed, frame_id, bundle)
        excused = touching(before, np.concatenate([removed, occluded, revealed]))
        demanded = high & self._keep_both(region, before, carry, bundle) & ~excused
        partner, free = self._match(before, after, high)
        new = free & self._keep_both(region, after, carry, bundle) & ~touching(after, footprints(added))
        added_remain, counts = self._keep(region, added, bundle), self._counts(region, before, after)
        return Comparison(before, after, demanded, partner, new, added, added_remain, removed, occluded, counts)

    def _match(self, before: Detections, after: Detections, high: Mask) -> tuple[Rows, Mask]:
        """Return each source obstacle's partner (M,), -1 for none, and which follow-up obstacles are free (K,).

        Source obstacles below the high threshold choose last: they must not take the partner of a demanded one, but the
        obstacles that they match are not new.
        """
        partner, free = np.full(len(before), -1), after.score >= self.thresholds.low
        for chooses in (high, ~high & (before.score >= self.thresholds.low)):
            rows, left = np.flatnonzero(chooses), np.flatnonzero(free)
            paired, taken = self.associate.pair(before.take(rows), after.take(left))
            partner[rows[paired]], free[left[taken]] = left[taken], False
        return partner, free

    def _keep_both(self, region: Region, detections: Detections, carry: Matrix | None, bundle: Bundle) -> Mask:
        """Return which obstacles lie in the keep zone now, and did before the scene was moved."""
        inside = self._keep(region, detections, bundle)
        if carry is not None:
            back: Matrix = np.asarray(np.linalg.inv(carry), dtype=np.float64)
            inside &= self._keep(region, moved(detections, back, region.frame_id), bundle)
        return inside

    def _keep(self, region: Region, detections: Detections, bundle: Bundle) -> Mask:
        inside = region.contains(detections.center_m)
        inside &= region.signed_distance(detections.center_m[:, :2]) <= -self.keep_inset_m
        if np.isfinite(self.within_m):
            ego = move(bundle.transforms.lookup(self.ego_frame_id, region.frame_id), detections.center_m)
            inside &= np.hypot(ego[:, 0], ego[:, 1]) <= self.within_m
        if self.beyond_m > 0.0:
            ego = bundle.transforms.lookup(region.frame_id, self.ego_frame_id)[:2, 3]
            inside &= shapely.distance(footprints(detections), shapely.Point(ego)) >= self.beyond_m
        return inside

    def _counts(self, region: Region, before: Detections, after: Detections) -> dict[str, list[int]]:
        inside = [
            d.label[region.contains(d.center_m) & (d.score >= self.thresholds.high)].tolist() for d in (before, after)
        ]
        classes = sorted({*inside[0], *inside[1]})
        return {"all": [len(i) for i in inside], **{c: [i.count(c) for i in inside] for c in classes}}


@dataclass(frozen=True)
class ObstacleCheck(ObstacleComparison):
    """Base of checks that judge obstacles by their comparison alone."""

    def judge(self, source: Output, followup: Output, effects: Effects, bundle: Bundle) -> Judgement:
        """Judge one pair: ERROR if it cannot be compared, NOT_APPLICABLE if nothing is demanded."""
        return self.judge_obstacles((source.detections, followup.detections), effects, bundle, self.decide)

    @abstractmethod
    def decide(self, compared: Comparison) -> Judgement:
        """Judge two outputs with something to judge."""


def _placed(judgement: Judgement, compared: Comparison) -> Judgement:
    """Return the demanded or added obstacles by range and bearing cell and by class."""
    if not judgement.outcome.decided:
        return judgement
    added, demanded = compared.added.take(compared.added_remain), compared.source.take(compared.demanded)
    xy = np.concatenate([demanded.center_m[:, :2], added.center_m[:, :2]])
    cells = counted_cells(xy, np.concatenate([demanded.label, added.label]))
    return replace(judgement, detail={**judgement.detail, JUDGED_IN: cells})


def describe(obstacles: Detections, rows: Mask) -> str:
    """Describe obstacles by class and position: ``pedestrian at (23.1, -2.0) m``; beyond a few, by number."""
    chosen = obstacles.take(rows)
    texts = [
        f"{label} at ({_tenths(x)}, {_tenths(y)}) m"
        for label, (x, y, _) in zip(chosen.label[:_NAMED].tolist(), chosen.center_m[:_NAMED].tolist(), strict=True)
    ]
    more = len(chosen) - len(texts)
    return ", ".join(texts) + (f" and {more} more" if more else "")


def _tenths(value: float) -> str:
    # Adding zero turns a negative zero into zero.
    return f"{round(value, 1) + 0.0:.1f}"


def places(obstacles: Detections, rows: Mask) -> list[list[Any]]:
    """Return [x, y, class] of obstacles, rounded to millimetres."""
    chosen = obstacles.take(rows)
    xy = np.round(chosen.center_m[:, :2], 3).tolist()
    return [[x, y, label] for (x, y), label in zip(xy, chosen.label.tolist(), strict=True)]


def _in_frame(detections: Detections, frame_id: str, bundle: Bundle) -> Detections:
    if detections.frame_id == frame_id:
        return detections
    return moved(detections, bundle.transforms.lookup(frame_id, detections.frame_id), frame_id)


def touching(obstacles: Detections, outlines: Outlines) -> Mask:
    """Return which obstacles (M,) touch any of the outlines (V,), seen from above."""
    if not len(outlines) or not len(obstacles):
        return np.zeros(len(obstacles), dtype=bool)
    return np.asarray(shapely.intersects(footprints(obstacles)[:, None], outlines[None, :]).any(axis=1))


def in_boxes(volumes: Sequence[Volume], frame_id: str, bundle: Bundle) -> Detections:
    """Return volumes (V,) as boxes in a frame."""
    boxes = [_in_frame(_as_detections(volume), frame_id, bundle) for volume in volumes]
    return Detections.make(
        frame_id,
        None,
        [b.center_m[0] for b in boxes],
        [b.size_m[0] for b in boxes],
        [b.yaw_rad[0] for b in boxes],
        [str(b.label[0]) for b in boxes],
    )


def outlines_of(volumes: Sequence[Volume], frame_id: str, bundle: Bundle) -> Outlines:
    """Return volumes (V,) seen from above, in a frame: their outline if they have one, else their box."""
    outlines: Outlines = footprints(in_boxes(volumes, frame_id, bundle))
    for i, volume in enumerate(volumes):
        if volume.outline_m:
            corners = np.array([(x, y, volume.center_m[2]) for x, y in volume.outline_m])
            moved = move(bundle.transforms.lookup(frame_id, volume.frame_id), corners)
            outlines[i] = shapely.Polygon(moved[:, :2])
    return outlines


def _as_detections(volume: Volume) -> Detections:
    return Detections.make(volume.frame_id, None, [volume.center_m], [volume.size_m], [volume.yaw_rad], [volume.label])
