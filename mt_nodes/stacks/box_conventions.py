# SPDX-License-Identifier: Apache-2.0
"""Boxes as people's models say them: by their bottom, or in a camera's frame as KITTI has them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mt_nodes.base.errors import InfrastructureError
from mt_nodes.data.outputs import Detections
from mt_nodes.data.transforms import TransformTree, UnknownTransform, move

#: What ``boxes`` of a stack file may say. ``kitti_camera``: x right, y down, z ahead, the middle of the bottom, and
#: rotation_y about the axis that leads down, 0 along x; arrays have the order x y z length height width rotation_y,
#: that of OpenPCDet's ``boxes_camera`` and of mmdetection3d's camera boxes.
CENTRE, BOTTOM, KITTI = "centre", "bottom_centre", "kitti_camera"
CONVENTIONS = (CENTRE, BOTTOM, KITTI)
#: The place of length, width, height among the columns of such an array.
KITTI_ORDER = (0, 1, 2, 3, 5, 4, 6)
#: How far a camera's axis y leads along the z of a frame in which it stands upright, or is tilted by 60 degrees.
_DOWNWARD = -0.5


def by_centres(said: Detections, convention: str, camera_frame: str, transforms: TransformTree) -> Detections:
    """Return boxes by their centres, in the frame that they are said to be in, z up.

    Args:
        said: boxes as :data:`CONVENTIONS` has them; of ``kitti_camera`` the yaw is rotation_y.
        camera_frame: in which those of ``kitti_camera`` are.

    Raises:
        InfrastructureError: no transform leads from there to the frame of the boxes, or y does not lead down in it.
    """
    if convention == CENTRE or not len(said):
        return said
    height = said.size_m[:, 2]
    if convention == BOTTOM:
        return replace(said, center_m=said.center_m + height[:, None] * (0.0, 0.0, 0.5))
    try:
        matrix = transforms.lookup(said.frame_id, camera_frame)
    except UnknownTransform as error:
        raise InfrastructureError(
            f"boxes: kitti_camera: no transform from '{camera_frame}' (boxes_frame) to '{said.frame_id}': {error}"
        ) from error
    if matrix[2, 1] > _DOWNWARD:
        raise InfrastructureError(
            f"boxes: kitti_camera: y of '{camera_frame}' (boxes_frame) does not lead down in '{said.frame_id}': "
            "expected an optical frame, and the boxes in a frame with z up: points_frame: base_link"
        )
    center = move(matrix, said.center_m - height[:, None] * (0.0, 0.5, 0.0))
    along = np.stack([np.cos(said.yaw_rad), np.zeros(len(said)), -np.sin(said.yaw_rad)], axis=1) @ matrix[:3, :3].T
    return replace(said, center_m=center, yaw_rad=np.arctan2(along[:, 1], along[:, 0]))
