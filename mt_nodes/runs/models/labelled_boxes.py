# SPDX-License-Identifier: Apache-2.0
"""Labelled boxes of a data set as objects of a picture: their LiDAR returns grow to silhouettes by colour."""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.detections import Detections
from mt_nodes.data.transforms import EGO_FRAME, move
from mt_nodes.relations.mutations.camera.each_image import View
from mt_nodes.relations.mutations.objects.in_pictures import camera_from
from mt_nodes.relations.mutations.objects.in_scene import ego_from
from mt_nodes.relations.mutations.objects.object_removed import ground_around, standing_within
from mt_nodes.relations.mutations.objects.removal_in_pictures import StandingBody, standing_object
from mt_nodes.runs.models.cutout_labels import LabelledObject, kind_of
from mt_nodes.world.camera.depth import depth_of
from mt_nodes.world.camera.silhouette import silhouette_of

Floats = npt.NDArray[np.float64]
#: Labels enclose an object tightly; its returns scatter around by range noise. Silhouettes are grown by so many pixels.
_AROUND_M, _GROWN_PX = 0.1, 3.0


def objects_of_boxes(view: View) -> list[LabelledObject]:
    """Return what a picture shows of the labelled boxes of its instant; none where there are no labels."""
    truth = view.bundle.truth
    if truth is None or not view.bundle.known_clouds:
        return []
    to_ego = view.bundle.transforms.lookup(EGO_FRAME, truth.objects.frame_id)
    found = []
    for row in range(len(truth.objects)):
        kind = kind_of(str(truth.objects.label[row]))
        if kind is None:
            continue
        try:
            mask, side = _mask_of(view, truth.objects, row, to_ego)
        except NotApplicable:
            continue  # it stands on no ground that was measured: nothing is cut out
        if mask is not None:
            found.append(LabelledObject(kind, mask, side))
    return found


def _mask_of(view: View, boxes: Detections, row: int, to_ego: Floats) -> tuple[npt.NDArray[np.bool_] | None, float]:
    """Return the mask (H, W) of a box, None if the picture does not show it, and from where it is seen, in degrees."""
    center = move(to_ego, boxes.center_m[row : row + 1])[0]
    yaw = float(boxes.yaw_rad[row]) + float(np.arctan2(to_ego[1, 0], to_ego[0, 0]))
    half = boxes.size_m[row, :2] / 2.0 + _AROUND_M
    ahead, left = np.array([np.cos(yaw), np.sin(yaw)]), np.array([-np.sin(yaw), np.cos(yaw)])
    corners = [center[:2] + a * half[0] * ahead + b * half[1] * left for a, b in ((1, 1), (-1, 1), (-1, -1), (1, -1))]
    outline = np.array(corners)
    ego = [ego_from(view.bundle, c.frame_id, EGO_FRAME, c.topic) for c in view.bundle.known_clouds]
    plane = ground_around(view.bundle.known_clouds[0], ego[0], outline)
    returns = [
        c.xyz[standing_within(c, matrix, outline, plane)].astype(np.float64)
        for c, matrix in zip(view.bundle.known_clouds, ego, strict=True)
    ]
    eye = np.linalg.inv(camera_from(view, EGO_FRAME))[:2, 3] - center[:2]
    side = float(np.degrees(np.arctan2(eye @ left, eye @ ahead)))
    if not sum(map(len, returns)):
        return None, side
    thing = standing_object(view, StandingBody(outline, plane), returns, EGO_FRAME)
    silhouette = silhouette_of(thing, view.picture, depth_of(view.bundle, view.image, thing.camera))
    if silhouette is None:
        return None, side
    mask = np.zeros(view.picture.size, np.uint8)
    mask[silhouette.window] = silhouette.body
    grown = max(1, round(_GROWN_PX * view.picture.size[1] / 1280.0))
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * grown + 1,) * 2)
    return cv2.erode(mask, kernel) != 0, side
