# SPDX-License-Identifier: Apache-2.0
"""Conventions of boxes: by the centre, by the centre of the bottom, or KITTI's in a camera frame."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mt_nodes.base.errors import InfrastructureError
from mt_nodes.data.outputs import Detections
from mt_nodes.data.transforms import TransformTree, UnknownTransform, move

#: Values of ``boxes`` in a stack file. ``kitti_camera``: x right, y down, z ahead, the centre of the bottom, and
#: rotation_y about the axis that points down, 0 along x; arrays have the order x y z length height width rotation_y,
#: that of OpenPCDet's ``boxes_camera`` and of mmdetection3d's camera boxes.
CENTRE, BOTTOM, KITTI = "centre", "bottom_centre", "kitti_camera"
CONVENTIONS = (CENTRE, BOTTOM, KITTI)
#: Order in which the columns of such an array are x y z length width height yaw.
KITTI_ORDER = (0, 1, 2, 3, 5, 4, 6)
#: How far a camera's axis y leads along the z of a frame in which it stands upright, or is tilted by 60 degrees.
_DOWNWARD = -0.5


def by_centres(boxes: Detections, convention: str, camera_frame: str, transforms: TransformTree) -> Detections:
    """Return boxes by their centres, in their ``frame_id``, z up.

    Raises InfrastructureError: there is no transform from that frame to the frame of the boxes, or its y does not point
    down there.
    ``boxes``: in one of :data:`CONVENTIONS`; for ``kitti_camera`` the yaw is rotation_y. ``camera_frame``: frame of
    ``kitti_camera`` boxes.
    """
    if convention == CENTRE or not len(boxes):
        return boxes
    height = boxes.size_m[:, 2]
    if convention == BOTTOM:
        return replace(boxes, center_m=boxes.center_m + height[:, None] * (0.0, 0.0, 0.5))
    try:
        matrix = transforms.lookup(boxes.frame_id, camera_frame)
    except UnknownTransform as error:
        raise InfrastructureError(
            f"boxes: kitti_camera: no transform from '{camera_frame}' (boxes_frame) to '{boxes.frame_id}': {error}"
        ) from error
    if matrix[2, 1] > _DOWNWARD:
        raise InfrastructureError(
            f"boxes: kitti_camera: y of '{camera_frame}' (boxes_frame) does not point down in '{boxes.frame_id}': "
            "expected an optical frame, and the boxes in a frame with z up: points_frame: base_link"
        )
    center = move(matrix, boxes.center_m - height[:, None] * (0.0, 0.5, 0.0))
    along = np.stack([np.cos(boxes.yaw_rad), np.zeros(len(boxes)), -np.sin(boxes.yaw_rad)], axis=1) @ matrix[:3, :3].T
    return replace(boxes, center_m=center, yaw_rad=np.arctan2(along[:, 1], along[:, 0]))
