# SPDX-License-Identifier: Apache-2.0
"""Labels of the source, carried over to its follow-up as the mutation changed the scene: boxes in space or a picture.

Where an object is expected in the follow-up, and whether it may be demanded there, is what the relation's check knows
already (:meth:`ObstacleComparison.compare`, :meth:`BoxCheck.compare`): labels are its demands, nothing else. So nothing
that the mutation removed, hid or made doubtful becomes a label, and nothing outside the relation's keep zone. What is
left over is *ignored*: a training should take it neither for an object nor for background. Nor is that background of
which nobody has said what it is: what a stack missed in the source, and what lies outside the labelled area.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import shapely
from shapely import affinity

from mt_nodes.base.arrays import Mask
from mt_nodes.data.effects import Effects
from mt_nodes.data.ground_truth import LEAST_POINTS, points_in
from mt_nodes.data.images.codecs import decode
from mt_nodes.data.messages import Bundle, Image
from mt_nodes.data.outputs import Detections, ImageBoxes
from mt_nodes.data.projected_boxes import projected_boxes
from mt_nodes.data.regions import Region
from mt_nodes.data.transforms import Matrix, UnknownTransform, move
from mt_nodes.relations.checks.boxes import BoxCheck, BoxFound
from mt_nodes.relations.checks.object_found import ObjectFound
from mt_nodes.relations.checks.obstacles import ObstacleComparison, outlines_of

#: Where a label comes from: labels of the recording, what the stack said of the source, an object that was added.
LABELS, SOURCE_OUTPUT, ADDED_OBJECT = "labels", "source_output", "added_object"
#: Corners (x, y) of areas.
Outlines = Sequence[Sequence[tuple[float, float]]]


@dataclass(frozen=True, eq=False)
class CarriedLabels:
    """Labels of one follow-up.

    Attributes:
        objects: boxes in space, or in a picture; scores are those of the stack, where it said the box.
        origin: (M,) of each. ignored: boxes of what is neither to be found nor wrong.
        zone: outline, in the frame of the objects, within which these are all labels; None: the whole picture.
        throughout: whether what has no label there is background; not where a stack said the labels.
    """

    objects: Detections | ImageBoxes
    origin: tuple[str, ...]
    ignored: Detections | ImageBoxes
    zone: shapely.Geometry | None
    throughout: bool


def carried_boxes(
    check: ObstacleComparison,
    said: Detections,
    origin: str,
    source: Bundle,
    followup: Bundle,
    effects: Effects,
    areas_m: Outlines | None = None,
) -> CarriedLabels:
    """Return the labels of a cloud.

    An object must have five returns of the follow-up (:data:`LEAST_POINTS`): what cannot be seen is no label. Added
    objects are labels where the check demands that they are found; what else a mutation adds is ignored.

    Args:
        check: of the relation. said: objects of the source. origin: of these.
        source, followup: the two bundles. effects: of the mutation.
        areas_m: outlines, in the frame of the objects, of what is labelled; None: everything.

    Raises:
        RegionUnavailable: the source does not say where the region is. UnknownTransform: a frame does not lead there.
    """
    region = check.region.resolve(source)
    nothing = Detections.none(said.frame_id, None)
    compared = check.compare(region, said, nothing, effects, source)
    visible = _with_returns(compared.source, region.frame_id, followup)
    kept = compared.demanded & visible
    claimed = compared.added_remain & (isinstance(check, ObjectFound) and bool(len(compared.added)))
    claimed = claimed & _with_returns(compared.added, region.frame_id, followup)
    objects = _joined(compared.source.take(kept), compared.added.take(claimed))
    origins = (origin,) * int(kept.sum()) + (ADDED_OBJECT,) * int(claimed.sum())
    ignored = _joined(compared.source.take(~kept), compared.added.take(~claimed))
    carry = effects.carry(region.frame_id, source.transforms)
    zone = keep_zone(check, region, carry, source)
    if areas_m is not None:
        to_region = source.transforms.lookup(region.frame_id, said.frame_id)
        labelled = shapely.union_all([shapely.Polygon(outline) for outline in areas_m])
        zone = shapely.intersection(zone, _moved(labelled, to_region if carry is None else carry @ to_region))
    # What is shown in the place of a removed object, and behind it, was estimated.
    estimated = outlines_of((*effects.removed, *effects.revealed), region.frame_id, source)
    zone = shapely.difference(zone, shapely.union_all(estimated))
    return CarriedLabels(objects, origins, ignored, zone, origin == LABELS)


def carried_image_boxes(
    check: BoxCheck, said: ImageBoxes, origin: str, image: Image, effects: Effects
) -> CarriedLabels:
    """Return the labels of a picture.

    The check may be about one class alone: the others are labels, too, or a training would take them for background.
    ``check``: of the relation. ``said``: objects of the source. ``origin``: of these. ``image``: of the source.
    """
    every: Any = replace(check, label="", per_category=False)
    compared = every.compare(said, ImageBoxes.none(said.frame_id, None), effects, image)
    height_px = compared.added.box_px[:, 3] - compared.added.box_px[:, 1]
    claimed = np.zeros(len(compared.added), dtype=bool)
    if isinstance(check, BoxFound):
        claimed = (compared.visible >= check.least_visible) & (height_px >= check.least_height_px)
    kept = compared.demanded
    objects = _joined_boxes(compared.source.take(kept), compared.added.take(claimed))
    origins = (origin,) * int(kept.sum()) + (ADDED_OBJECT,) * int(claimed.sum())
    ignored = _joined_boxes(compared.source.take(~kept), compared.added.take(~claimed))
    return CarriedLabels(objects, origins, ignored, None, origin == LABELS)


def keep_zone(check: ObstacleComparison, region: Region, carry: Matrix | None, bundle: Bundle) -> shapely.Geometry:
    """Return the outline, in the region's frame, of where a check may demand centres: before and after the mutation.

    ``region``: of this instant. ``carry``: 4×4 that moves the expected output, None where it stays. What lies too near
    to the ego (``beyond_m``) depends on an obstacle's size, and is not left out here.
    """
    zone = region.buffered(-check.keep_inset_m)
    if np.isfinite(check.within_m):
        x, y = bundle.transforms.lookup(region.frame_id, check.ego_frame_id)[:2, 3].tolist()
        zone = shapely.intersection(zone, shapely.Point(x, y).buffer(check.within_m))
    if carry is None:
        return zone
    return shapely.intersection(zone, _moved(zone, carry))


def _moved(area: shapely.Geometry, matrix: Matrix) -> shapely.Geometry:
    return affinity.affine_transform(area, [*matrix[:2, :2].ravel().tolist(), *matrix[:2, 3].tolist()])


def _with_returns(boxes: Detections, frame_id: str, followup: Bundle) -> Mask:
    """Return which boxes have enough returns of all LiDARs together."""
    counts = np.zeros(len(boxes), dtype=np.int64)
    for cloud in followup.known_clouds:
        xyz = move(followup.transforms.lookup(frame_id, cloud.frame_id), cloud.xyz)
        counts += points_in(boxes, xyz[np.isfinite(xyz).all(axis=1)])
    return np.asarray(counts >= LEAST_POINTS)


def _joined(*parts: Detections) -> Detections:
    columns = ("center_m", "size_m", "yaw_rad")
    center_m, size_m, yaw_rad = (np.concatenate([getattr(part, name) for part in parts]) for name in columns)
    labels = [str(label) for part in parts for label in part.label]
    score = np.concatenate([part.score for part in parts])
    return Detections.make(parts[0].frame_id, None, center_m, size_m, yaw_rad, labels, score)


def _joined_boxes(*parts: ImageBoxes) -> ImageBoxes:
    box_px, score = (np.concatenate([getattr(part, name) for part in parts]) for name in ("box_px", "score"))
    labels = [str(label) for part in parts for label in part.label]
    return ImageBoxes.make(parts[0].frame_id, None, box_px, labels, score)


def labelled_image_boxes(bundle: Bundle) -> ImageBoxes | None:
    """Return what the only image of an instant shows of its labels; None where that is not known.

    Boxes are those around the projected corners, as nuScenes' own export of 2D boxes has them: looser than drawn ones.
    A camera needs a pinhole's intrinsics without distortion, and its place; an object five LiDAR returns, or it may be
    hidden.
    """
    infos = {info.frame_id: info for info in bundle.camera_infos}
    truth = bundle.truth
    if truth is None or len(bundle.images) != 1 or not bundle.known_clouds:
        return None
    image, cloud = bundle.images[0], bundle.known_clouds[0]
    info = infos.get(image.frame_id)
    if info is None or np.any(info.d):
        return None
    height, width = decode(image).size
    try:
        to_camera = bundle.transforms.lookup(image.frame_id, truth.objects.frame_id)
        to_labels = bundle.transforms.lookup(truth.objects.frame_id, cloud.frame_id)
    except UnknownTransform:
        return None
    boxes = projected_boxes(truth.objects, to_camera, info.k, (width, height))
    seen = np.isfinite(boxes).all(axis=1) & (points_in(truth.objects, move(to_labels, cloud.xyz)) >= LEAST_POINTS)
    return ImageBoxes.make(image.frame_id, None, boxes[seen], truth.objects.label[seen].tolist())
