# SPDX-License-Identifier: Apache-2.0
"""Check that an added object is detected."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, TypeVar

import numpy as np
import shapely

from mt_nodes.base.arrays import Floats, Mask
from mt_nodes.base.params import param
from mt_nodes.data.association import bev_iou, footprints
from mt_nodes.data.output_traits import OutputTraits
from mt_nodes.data.outputs import Detections
from mt_nodes.data.verdict import OBJECTS, OBJECTS_BY, Judgement
from mt_nodes.relations.checks.base import at_least, nothing_to_judge
from mt_nodes.relations.checks.obstacle_checks import ObstaclesKept
from mt_nodes.relations.checks.obstacles import Comparison, describe, places, touching
from mt_nodes.relations.checks.scored_check import described_unreported, of_classes

_BY_RANGE = {"name": "range", "unit": "m", "bin": 10.0}


F = TypeVar("F", bound="ObjectFound")


@dataclass(frozen=True)
class ObjectFound(ObstaclesKept):
    """Each volume that the mutation added in the keep zone has a detection in the follow-up.

    A detection of its own within the gate of the object's class, or boxes that together cover enough of its footprint:
    an object merged with its neighbour counts as found. What the source detects already, and the mutation did not
    remove, does not count: neither its cover, nor a detection that is nearer to it than to the object. An object whose
    footprint the effects call occluded by at least ``occluded_share`` is not demanded. ``detail.objects`` lists
    [distance from the region frame's origin in m, found, class], for the report's recall by range.

    If nothing was added, as by control and sham, the source's own obstacles of the class that the mutation adds must be
    found again: this rate of misses is the baseline for the misses of added objects. A source without any leaves
    nothing to demand.
    """

    demands_of_itself: ClassVar[bool] = True

    occluded_share: float = param(0.5, low=0.01, high=1.0, help="share of a footprint that counts as hidden")
    classes: tuple[str, ...] = param(
        (), help="classes that the stack reports, others are not demanded; not given: as the stack file's classes say"
    )
    background_label: str = param("", help="class of what is added, which control and sham are about; empty: all")

    @property
    def what(self) -> str:
        """Name of what is demanded if nothing was added."""
        return self.background_label or super().what

    def demands(self, compared: Comparison) -> bool:
        """The source's detections matter only if nothing was added."""
        return len(compared.added) > 0 or super().demands(self._own_class(compared))

    def decide(self, compared: Comparison) -> Judgement:
        """Demand every visible added object."""
        if not len(compared.added):
            return super().decide(self._own_class(compared))
        reported = of_classes(compared.added.label, self.classes)
        if not reported.any():
            reason = described_unreported(compared.added.label, self.classes)
            return nothing_to_judge(reason, "objects")
        demanded = reported & compared.added_remain & ~self._hidden(compared)
        if not demanded.any():
            reason = f"all {len(compared.added)} objects added are occluded or outside the keep zone"
            return nothing_to_judge(reason, "objects")
        objects = compared.added.take(demanded)
        found = self._found(objects, compared)
        missing = int((~found).sum())
        range_m = np.linalg.norm(objects.center_m[:, :2], axis=1)
        rows = [
            [round(r, 3), f, label]
            for r, f, label in zip(range_m.tolist(), found.tolist(), objects.label.tolist(), strict=True)
        ]
        return at_least(
            len(objects) - missing,
            len(objects),
            "objects",
            f"not found: {describe(objects, ~found)}" if missing else f"found {describe(objects, found)}",
            lost=missing,
            detail={
                "counts": compared.counts,
                OBJECTS: rows,
                OBJECTS_BY: _BY_RANGE,
                "lost_at": places(objects, ~found),
            },
        )

    def of_stack(self: F, traits: OutputTraits) -> F:
        """Return the check with missing thresholds and classes taken from the stack file."""
        return replace(super().of_stack(traits), classes=self.classes or traits.classes)

    def _own_class(self, compared: Comparison) -> Comparison:
        if not self.background_label:
            return compared
        of_class = np.char.lower(compared.source.label) == self.background_label.lower()
        return replace(compared, demanded=compared.demanded & of_class)

    def _found(self, objects: Detections, compared: Comparison) -> Mask:
        """Return which added objects (V,) have a detection that was not there before."""
        source, followup = compared.source, compared.followup
        stays = (source.score >= self.thresholds.low) & ~touching(source, compared.removed)
        answers, before = self.answers(compared), source.take(stays)
        found = self._newly_covered(objects, followup.take(answers), before) >= self.coverage
        answers[compared.partner[stays & compared.matched]] = False
        others = followup.take(answers)
        found[self.associate.pair(objects, others.take(_nearer(others, objects, before)))[0]] = True
        return found

    def _newly_covered(self, objects: Detections, boxes_after: Detections, before: Detections) -> Floats:
        """Return which share of each footprint (V,) lies in boxes now and in none before, 0..1."""
        own, old = footprints(objects), shapely.union_all(footprints(before))
        shares = np.zeros(len(objects))
        for i, label in enumerate(objects.label.tolist()):
            boxes = boxes_after.take(boxes_after.label == label) if self.per_category else boxes_after
            new = shapely.difference(shapely.intersection(own[i], shapely.union_all(footprints(boxes))), old)
            shares[i] = shapely.area(new) / max(shapely.area(own[i]), 1e-9)
        return shares

    def _hidden(self, compared: Comparison) -> Mask:
        own = footprints(compared.added)
        hidden = shapely.area(shapely.intersection(own, shapely.union_all(compared.occluded)))
        area = shapely.area(own)
        share = np.divide(hidden, area, out=np.zeros(len(own)), where=area > 0.0)
        return np.asarray(share >= self.occluded_share)


def _nearer(boxes: Detections, objects: Detections, before: Detections) -> Mask:
    """Return which boxes (K,) overlap an object more than any earlier one, or are nearer to one without overlap."""
    (overlap, away), (overlap_before, away_before) = (_overlap_and_distance(boxes, o) for o in (objects, before))
    return np.asarray((overlap > overlap_before) | ((overlap == overlap_before) & (away <= away_before)))


def _overlap_and_distance(boxes: Detections, others: Detections) -> tuple[Floats, Floats]:
    """Return the largest intersection over union (K,) with others, and the distance to the nearest centre."""
    away = np.linalg.norm(boxes.center_m[:, None, :2] - others.center_m[None, :, :2], axis=2)
    return bev_iou(boxes, others).max(axis=1, initial=0.0), away.min(axis=1, initial=np.inf)
