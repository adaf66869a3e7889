# SPDX-License-Identifier: Apache-2.0
"""Labelled boxes in space as boxes in the picture of an instant."""

from __future__ import annotations

import numpy as np

from mt_nodes.data.ground_truth import LEAST_POINTS, points_in
from mt_nodes.data.images.codecs import decode
from mt_nodes.data.messages import Bundle
from mt_nodes.data.outputs import ImageBoxes
from mt_nodes.data.projected_boxes import projected_boxes
from mt_nodes.data.transforms import UnknownTransform, move


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
