# SPDX-License-Identifier: Apache-2.0
"""Labelled boxes of a data set as objects of a picture: their LiDAR returns grow to silhouettes by colour."""

from __future__ import annotations

from collections import Counter

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Ints
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

Flags = npt.NDArray[np.bool_]
#: Labels enclose an object tightly; its returns scatter around by range noise. Lower returns may be the road's.
_AROUND_M, _LOW_M = 0.1, 0.15
#: Width of the border in which colours decide, in shares of the shorter side (assumed), and rounds of GrabCut.
_BAND, _ROUNDS = 0.15, 5


def objects_of_boxes(view: View, refused: Counter[str]) -> list[LabelledObject]:
    """Return what a picture shows of the labelled boxes of its instant, and count why others are left out."""
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
        except NotApplicable as reason:
            refused[str(reason)] += 1
            continue
        if mask is None:
            refused["the picture shows nothing of its box"] += 1
        else:
            found.append(LabelledObject(kind, mask, side))
    return found


def _mask_of(view: View, boxes: Detections, row: int, to_ego: Floats) -> tuple[Flags | None, float]:
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
    mask = np.zeros(view.picture.size, bool)
    mask[silhouette.window] = silhouette.body
    measured = thing.pixels[thing.in_picture & (thing.ground.heights(thing.returns_m) > _LOW_M)]
    return tight_mask(view.picture.rgb8(), mask, np.rint(measured).astype(int)), side


def tight_mask(rgb: npt.NDArray[np.uint8], wide: Flags, measured: Ints) -> Flags:
    """Return the mask (H, W) of an object within a generous one: what is removed may be too much, what is shown not.

    Near the border of the generous mask, colours decide (GrabCut, as for silhouettes, but pixel by pixel); what returns
    at pixels ``measured`` (n, 2) show is the object's.
    """
    rows, columns = np.flatnonzero(wide.any(axis=1)), np.flatnonzero(wide.any(axis=0))
    around = max(8, len(rows) // 4, len(columns) // 4)
    window = (
        slice(max(0, rows[0] - around), rows[-1] + around),
        slice(max(0, columns[0] - around), columns[-1] + around),
    )
    own = wide[window].astype(np.uint8)
    inside_px = cv2.distanceTransform(cv2.copyMakeBorder(own, 1, 1, 1, 1, cv2.BORDER_REPLICATE), cv2.DIST_L2, 5)[
        1:-1, 1:-1
    ]
    deep_px = max(3.0, _BAND * min(len(rows), len(columns)))
    labels = np.where(own == 0, cv2.GC_BGD, np.where(inside_px > deep_px, cv2.GC_FGD, cv2.GC_PR_BGD)).astype(np.uint8)
    labels[(own != 0) & (inside_px > deep_px / 2.0) & (inside_px <= deep_px)] = cv2.GC_PR_FGD
    x, y = (measured - (window[1].start, window[0].start)).T
    within = (x >= 0) & (y >= 0) & (x < own.shape[1]) & (y < own.shape[0])
    labels[y[within], x[within]] = np.where(own[y[within], x[within]] != 0, cv2.GC_FGD, cv2.GC_BGD)
    cv2.setRNGSeed(0)
    models = np.zeros((1, 65)), np.zeros((1, 65))
    cv2.grabCut(np.ascontiguousarray(rgb[window]), labels, None, *models, _ROUNDS, cv2.GC_INIT_WITH_MASK)
    tight = np.zeros_like(wide)
    tight[window] = (labels == cv2.GC_FGD) | (labels == cv2.GC_PR_FGD)
    return tight
