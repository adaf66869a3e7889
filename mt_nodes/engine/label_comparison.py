# SPDX-License-Identifier: Apache-2.0
"""What the labels of a data set say of a pair: whether the follow-up's output is really wrong. It changes no verdict.

A violated pair blames objects: those that the follow-up lost, or gained. Each is looked up in the labels, which are
changed as the mutation changed the scene (:class:`~mt_nodes.data.effects.Effects`): they move with
``output_transform``, are not demanded in removed and occluded volumes, and what lies in added volumes is no false
detection. A lost object that is labelled, and whose label the follow-up does not find, is an error of the follow-up; so
is a gained one without a label, if the data set labels its class there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace

import numpy as np
import shapely

from mt_nodes.base.arrays import Floats, Mask
from mt_nodes.data.association import footprints
from mt_nodes.data.effects import Effects
from mt_nodes.data.ground_truth import LEAST_POINTS, GroundTruth, points_in
from mt_nodes.data.messages import Bundle
from mt_nodes.data.outputs import Detections, Output
from mt_nodes.data.regions import RegionUnavailable
from mt_nodes.data.transforms import UnknownTransform, move
from mt_nodes.data.verdict import Outcome, Verdict
from mt_nodes.relations.checks.base import Check
from mt_nodes.relations.checks.obstacle_checks import (
    ObstacleCountNotLess,
    ObstaclesEqual,
    ObstaclesKept,
    ObstaclesNotGained,
)
from mt_nodes.relations.checks.obstacles import Comparison, ObstacleCheck
from mt_nodes.relations.relation import Relation

#: What a violated pair comes to, and one that holds; and either, where the labels cannot tell.
FOLLOWUP_WRONG, FOLLOWUP_RIGHT = "followup_wrong", "followup_right"
BOTH_WRONG, NOT_BOTH_WRONG = "both_wrong", "not_both_wrong"
NOT_COMPARABLE = "not_comparable"
_UNLABELLED = "the data set does not label the lost or gained obstacles: their class, or their place"
#: Check -> errors that it can find: of objects that are missed, of objects that are none.
_ERRORS: Mapping[type[Check], tuple[str, ...]] = {
    ObstaclesKept: ("missed",),
    ObstacleCountNotLess: ("missed",),
    ObstaclesNotGained: ("false",),
    ObstaclesEqual: ("missed", "false"),
}


def with_truth(
    verdict: Verdict, judge: Relation, bundle: Bundle, outputs: tuple[Output, Output], effects: Effects
) -> Verdict:
    """Return a decided verdict with the mark ``truth``: ``case``, and ``reason`` where the labels cannot tell.

    ``judge``: the relation. ``bundle``: the source, with labels. ``outputs``: of the source and of the follow-up arm.
    """
    if not verdict.outcome.decided:
        return verdict
    case, reason = _case(verdict.outcome, judge, bundle, outputs, effects)
    mark = {"case": case, **({"reason": reason} if reason else {})}
    return replace(verdict, marks={**verdict.marks, "truth": mark})


def _case(
    outcome: Outcome, judge: Relation, bundle: Bundle, outputs: tuple[Output, Output], effects: Effects
) -> tuple[str, str]:
    """Return what the labels say, and why they say nothing."""
    if reason := _unfit(judge, outputs):
        return NOT_COMPARABLE, reason
    assert isinstance(judge.check, ObstacleCheck), "other checks are unfit"
    try:
        labelled = _Labelled.make(judge.check, bundle, outputs, effects)
    except (RegionUnavailable, UnknownTransform) as error:
        return NOT_COMPARABLE, str(error)
    errors = _ERRORS[type(judge.check)]
    return labelled.violated(errors) if outcome is Outcome.VIOLATED else labelled.holding(errors)


def _unfit(judge: Relation, outputs: tuple[Output, Output]) -> str:
    """Say why labels cannot be compared with a relation's outputs, nothing where they can."""
    check = judge.check
    if type(check) not in _ERRORS or not isinstance(check, ObstacleCheck):
        name = "no check" if check is None else f"check {type(check).__name__}"
        return f"{name} does not ask which obstacles are there"
    if check.per_category:
        return "the check compares classes, which stack and data set name differently"
    if judge.baseline:
        return "the source arm was given a change as well"
    if outputs[0].detections is None:
        return "the source arm said nothing"
    return ""


@dataclass(frozen=True, eq=False)
class _Labelled:
    """Source, follow-up and labels, each compared with each; rows are told by ``track_id``, their number.

    ``source``, ``followup``: labels compared with each output. ``pair``: the two outputs. ``back``: 4×4 that takes what
    the mutation moved to its old place. ``visible``: labels that a detector can be asked for.
    """

    probe: ObstaclesEqual
    truth: GroundTruth
    bundle: Bundle
    source: Comparison
    followup: Comparison
    pair: Comparison
    back: Floats
    visible: set[str]

    @classmethod
    def make(cls, check: ObstacleCheck, bundle: Bundle, outputs: tuple[Output, Output], effects: Effects) -> _Labelled:
        probe = ObstaclesEqual(**{field.name: getattr(check, field.name) for field in fields(ObstacleCheck)})
        if isinstance(check, ObstaclesKept):
            probe = replace(probe, coverage=check.coverage)
        truth = bundle.truth
        detected = outputs[0].detections
        assert truth is not None and detected is not None, "others are unfit"
        # A silent follow-up is judged as if it detected nothing.
        answered = outputs[1].detections
        answered = Detections.none(detected.frame_id, None) if answered is None else answered
        source, followup, objects = (_numbered(rows) for rows in (detected, answered, truth.objects))
        region = check.region.resolve(bundle)
        carry = effects.carry(region.frame_id, bundle.transforms)
        return cls(
            probe,
            truth,
            bundle,
            probe.compare(region, objects, source, Effects(), bundle),
            probe.compare(region, objects, followup, effects, bundle),
            probe.compare(region, source, followup, effects, bundle),
            np.eye(4) if carry is None else np.asarray(np.linalg.inv(carry), dtype=np.float64),
            _ids(objects, _visible(truth, bundle)),
        )

    def violated(self, errors: Iterable[str]) -> tuple[str, str]:
        """Judge the objects that a violated pair blames."""
        wrong, unknown, blamed = 0, 0, 0
        labels = self.followup.source
        if "missed" in errors:
            lost = self.pair.source.take(self._lost)
            near = _touches(lost, labels)
            missed = ~self._found(self.followup)
            wrong += int((near & missed[None, :]).any(axis=1).sum())
            unknown += int((~near.any(axis=1) & ~self._labelled(lost)).sum())
            blamed += len(lost)
        if "false" in errors:
            gained = self.pair.followup.take(self.probe.gained(self.pair))
            alone = ~_touches(gained, labels).any(axis=1)
            labelled = self._labelled(gained)
            wrong += int((alone & labelled).sum())
            unknown += int((alone & ~labelled).sum())
            blamed += len(gained)
        if wrong:
            return FOLLOWUP_WRONG, ""
        if unknown or not blamed:
            return NOT_COMPARABLE, _UNLABELLED
        return FOLLOWUP_RIGHT, ""

    def holding(self, errors: Iterable[str]) -> tuple[str, str]:
        """Look for errors that both outputs share, of the kinds that the check can find."""
        missed = _ids(self.source.source, self.probe.lost(self.source))
        missed &= _ids(self.followup.source, self.probe.lost(self.followup)) & self.visible
        false = self._false(self.source) & self._shared if "false" in errors else set()
        demanded = _ids(self.source.source, self.source.demanded) & self.visible
        if ("missed" in errors and missed) or false:
            return BOTH_WRONG, ""
        if "missed" in errors and not demanded and not ("false" in errors and len(self.source.followup)):
            return NOT_COMPARABLE, "no labelled object lies in the keep zone"
        return NOT_BOTH_WRONG, ""

    @property
    def _lost(self) -> Mask:
        """(M,) obstacles of the source that the verdict calls lost."""
        return self.probe.lost(self.pair)

    def _found(self, compared: Comparison) -> Mask:
        """(L,) labels that an output has, with a partner of their own or covered by its boxes."""
        return np.asarray(np.where(compared.demanded, ~self.probe.lost(compared), compared.matched))

    def _false(self, compared: Comparison) -> set[str]:
        """Return the obstacles of the source output that are no labelled object, though their class is labelled."""
        gained = self.probe.gained(compared)
        rows = compared.followup
        return _ids(rows, gained & self._labelled(rows, np.eye(4)))

    @property
    def _shared(self) -> set[str]:
        """Obstacles of the source that the follow-up has as well, where it is no labelled object either."""
        false = _ids(self.followup.followup, self.probe.gained(self.followup))
        followup = self.pair.followup.track_id
        partners = zip(self.pair.source.track_id, self.pair.partner, strict=True)
        return {str(row) for row, partner in partners if partner >= 0 and str(followup[partner]) in false}

    def _labelled(self, rows: Detections, back: Floats | None = None) -> Mask:
        """Return which obstacles (M,) would have a label if they were there: by class, and by place."""
        known = np.isin(rows.label, sorted(self.truth.classes))
        if self.truth.areas_m is None or not len(rows):
            return np.asarray(known)
        to_labels = self.bundle.transforms.lookup(self.truth.objects.frame_id, rows.frame_id)
        places = move(to_labels @ (self.back if back is None else back), rows.center_m)[:, :2]
        area = shapely.union_all([shapely.Polygon(outline) for outline in self.truth.areas_m])
        return np.asarray(known & shapely.contains_xy(area, places))


def _visible(truth: GroundTruth, bundle: Bundle) -> Mask:
    """Return which labelled objects (L,) have enough points of the leading LiDAR for a detector to find them."""
    points = truth.points.copy()
    unknown = points < 0
    if unknown.any() and bundle.known_clouds:
        cloud = bundle.known_clouds[0]
        to_labels = bundle.transforms.lookup(truth.objects.frame_id, cloud.frame_id)
        points[unknown] = points_in(truth.objects.take(unknown), move(to_labels, cloud.xyz))
    return np.asarray((points >= LEAST_POINTS) | (points < 0))


def _numbered(rows: Detections) -> Detections:
    return replace(rows, track_id=np.arange(len(rows)).astype(np.str_))


def _ids(rows: Detections, chosen: Mask) -> set[str]:
    return set(rows.track_id[chosen].tolist())


def _touches(obstacles: Detections, labels: Detections) -> Mask:
    """Return (M, L) which obstacles and labels overlap, seen from above; a box without size counts as its centre."""
    if not len(obstacles) or not len(labels):
        return np.zeros((len(obstacles), len(labels)), dtype=bool)
    centers = shapely.points(obstacles.center_m[:, :2])
    shapes = np.where(shapely.area(footprints(obstacles)) > 0.0, footprints(obstacles), centers)
    return np.asarray(shapely.intersects(shapes[:, None], footprints(labels)[None, :]))
