# SPDX-License-Identifier: Apache-2.0
"""What checks of obstacles share: zones, hysteresis, association, and how they tell people."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import shapely

from mt_nodes.association import Association, canonical, covered, footprints, moved
from mt_nodes.checks.base import Check
from mt_nodes.effects import Effects, Volume
from mt_nodes.errors import UsageError
from mt_nodes.frames import Bundle
from mt_nodes.outputs import Detections, Output
from mt_nodes.params import param
from mt_nodes.regions import Region, RegionUnavailable, load_region
from mt_nodes.transforms import UnknownTransform, move
from mt_nodes.verdict import Judgement, Outcome

Mask = npt.NDArray[np.bool_]
_NAMED = 3
#: Pairing is cubic in time and square in memory: 2,000 with 2,000 take a second or so.
MOST_OBSTACLES = 2000


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two outputs of one instant in the region's frame, both in canonical order, and what became of whom.

    Attributes:
        source, followup: every obstacle; the source where it is expected after the mutation.
        demanded: (M,) source obstacles that the follow-up must show. matched: (M,) those with a partner there.
        new: (K,) follow-up obstacles of the keep zone, at or above the low threshold, that are none of the source's.
        counts: [source, follow-up] obstacles of the whole region at or above the high threshold, by class.
    """

    source: Detections
    followup: Detections
    demanded: Mask
    matched: Mask
    new: Mask
    counts: dict[str, list[int]]


@dataclass(frozen=True)
class ObstacleCheck(Check):
    """Base of checks that compare obstacles.

    Obstacles are demanded inside the keep zone, which lies ``keep_inset_m`` inside the region and within
    ``within_m`` of the ego, so that an obstacle that crosses an outline is nobody's violation.
    """

    region: Region = param("front_40m", convert=load_region, help="where obstacles matter")
    keep_inset_m: float = param(1.0, low=0.0, high=50.0, unit="m", help="the keep zone lies this far inside the region")
    within_m: float = param(float("inf"), low=0.0, unit="m", help="the keep zone ends at this distance from the ego")
    ego_frame_id: str = param("base_link", help="frame whose origin within_m is measured from")
    score_high: float = param(0.5, low=0.0, high=1.0, help="a source obstacle with this score is demanded")
    score_low: float = param(0.3, low=0.0, high=1.0, help="a follow-up obstacle with this score answers")
    association: str = param("centre", choices=("centre", "bev_iou"), help="when two obstacles are the same one")
    per_category: bool = param(False, help="judge each class by itself: an obstacle must keep its class")

    def __post_init__(self) -> None:
        object.__setattr__(self, "region", load_region(self.region))
        if self.score_low > self.score_high:
            raise UsageError(f"score_low {self.score_low:g} is above score_high {self.score_high:g}")
        if not self.region.topic and self.region.buffered(-self.keep_inset_m).is_empty:
            raise UsageError(f"keep_inset_m {self.keep_inset_m:g} m leaves nothing of region '{self.region.name}'")

    def judge(self, source: Output, followup: Output, effects: Effects, bundle: Bundle) -> Judgement:
        """Judge one pair; what cannot be compared is an ERROR, nothing demanded is NOT_APPLICABLE."""
        seen = (source.detections, followup.detections)
        for name, detections in zip(("source", "follow-up"), seen, strict=True):
            broken = "no detections" if detections is None else self._unusable(detections)
            if broken is not None:
                return Judgement(Outcome.ERROR, reason=f"the {name} output has {broken}")
        try:
            region = self.region.resolve(bundle)
            compared = self._compare(region, seen[0], seen[1], effects, bundle)  # type: ignore[arg-type]
        except RegionUnavailable as error:
            return Judgement(Outcome.NOT_APPLICABLE, reason=str(error))
        except UnknownTransform as error:
            return Judgement(Outcome.ERROR, reason=str(error))
        if not compared.demanded.any():
            reason = f"no obstacle with a score of {self.score_high:g} or more in the keep zone of '{region.name}'"
            return Judgement(
                Outcome.NOT_APPLICABLE, reason=reason, unit="obstacles", detail={"counts": compared.counts}
            )
        return self.decide(compared)

    @abstractmethod
    def decide(self, compared: Comparison) -> Judgement:
        """Judge outputs of which at least one obstacle is demanded."""

    @property
    def associate(self) -> Association:
        """How obstacles are paired."""
        return Association(self.association, same_class=self.per_category)

    def _unusable(self, detections: Detections) -> str | None:
        bad = int((~detections.finite).sum())
        if bad:
            return f"{bad} of {len(detections)} obstacles with numbers that are not finite"
        if (many := int((detections.score >= self.score_low).sum())) > MOST_OBSTACLES:
            return f"{many} obstacles with a score of {self.score_low:g} or more; at most {MOST_OBSTACLES} are compared"
        if negative := int((detections.size_m < 0.0).any(axis=1).sum()):
            return f"{negative} of {len(detections)} obstacles with a negative size"
        flat = int((detections.size_m[:, :2] <= 0.0).any(axis=1).sum())
        if self.association == "bev_iou" and flat:
            return f"{flat} of {len(detections)} obstacles without a size, which association bev_iou needs"
        return None

    def _compare(
        self, region: Region, source: Detections, followup: Detections, effects: Effects, bundle: Bundle
    ) -> Comparison:
        if effects.output_transform is not None:
            frame = effects.output_frame_id or source.frame_id
            source = moved(source, effects.output_transform @ bundle.transforms.lookup(frame, source.frame_id), frame)
        before, after = (canonical(_in_frame(d, region.frame_id, bundle)) for d in (source, followup))
        high = before.score >= self.score_high
        demanded = high & self._keep(region, before, bundle) & ~_excused(before, effects, bundle)
        matched, free = self._match(before, after, high)
        new = free & self._keep(region, after, bundle)
        return Comparison(before, after, demanded, matched, new, self._counts(region, before, after))

    def _match(self, before: Detections, after: Detections, high: Mask) -> tuple[Mask, Mask]:
        """Return which source obstacles have a partner (M,) and which follow-up ones are free (K,).

        Source obstacles below the high threshold choose last: they must not take the partner of a demanded one, but
        what they explain is not new.
        """
        matched, free = np.zeros(len(before), dtype=bool), after.score >= self.score_low
        for chooses in (high, ~high & (before.score >= self.score_low)):
            rows, left = np.flatnonzero(chooses), np.flatnonzero(free)
            paired, taken = self.associate.pair(before.take(rows), after.take(left))
            matched[rows[paired]], free[left[taken]] = True, False
        return matched, free

    def _keep(self, region: Region, detections: Detections, bundle: Bundle) -> Mask:
        inside = region.contains(detections.center_m)
        inside &= region.signed_distance(detections.center_m[:, :2]) <= -self.keep_inset_m
        if np.isfinite(self.within_m):
            ego = move(bundle.transforms.lookup(self.ego_frame_id, region.frame_id), detections.center_m)
            inside &= np.hypot(ego[:, 0], ego[:, 1]) <= self.within_m
        return inside

    def _counts(self, region: Region, before: Detections, after: Detections) -> dict[str, list[int]]:
        inside = [d.label[region.contains(d.center_m) & (d.score >= self.score_high)].tolist() for d in (before, after)]
        classes = sorted({*inside[0], *inside[1]})
        return {"all": [len(i) for i in inside], **{c: [i.count(c) for i in inside] for c in classes}}


def describe(obstacles: Detections, rows: Mask) -> str:
    """Name obstacles by class and place: ``pedestrian at (23.1, -2.0) m``, the rest by number."""
    chosen = obstacles.take(rows)
    texts = [
        f"{label} at ({x:.1f}, {y:.1f}) m"
        for label, (x, y, _) in zip(chosen.label[:_NAMED].tolist(), chosen.center_m[:_NAMED].tolist(), strict=True)
    ]
    more = len(chosen) - len(texts)
    return ", ".join(texts) + (f" and {more} more" if more else "")


def places(obstacles: Detections, rows: Mask) -> list[list[Any]]:
    """Return [x, y, class] of obstacles, rounded to millimetres."""
    chosen = obstacles.take(rows)
    xy = np.round(chosen.center_m[:, :2], 3).tolist()
    return [[x, y, label] for (x, y), label in zip(xy, chosen.label.tolist(), strict=True)]


def alone(rows: Mask, obstacles: Detections, others: Detections, least: float, same_class: bool) -> Mask:
    """Keep of the selected rows (M,) those that the others cover to less than ``least``: not split, not merged."""
    kept = rows.copy()
    kept[rows] = covered(obstacles.take(rows), others, same_class) < least
    return kept


def _in_frame(detections: Detections, frame_id: str, bundle: Bundle) -> Detections:
    if detections.frame_id == frame_id:
        return detections
    return moved(detections, bundle.transforms.lookup(frame_id, detections.frame_id), frame_id)


def _excused(obstacles: Detections, effects: Effects, bundle: Bundle) -> Mask:
    """Tell which obstacles (M,) touch a volume that the mutation removed or occluded, seen from above."""
    excused = np.zeros(len(obstacles), dtype=bool)
    for volume in (*effects.removed, *effects.occluded):
        box = footprints(_in_frame(_as_detections(volume), obstacles.frame_id, bundle))[0]
        excused |= shapely.intersects(footprints(obstacles), box)
    return excused


def _as_detections(volume: Volume) -> Detections:
    return Detections.make(volume.frame_id, None, [volume.center_m], [volume.size_m], [volume.yaw_rad])
