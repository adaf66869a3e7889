# SPDX-License-Identifier: Apache-2.0
"""Cheap facts of an instant that checks of one stream share: tracks by the ego, returns in a box, cameras."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Mask
from mt_nodes.base.errors import UsageError
from mt_nodes.data.association import moved
from mt_nodes.data.messages import Bundle, CameraInfo
from mt_nodes.data.outputs import Detections, ImageBoxes, Output
from mt_nodes.data.transforms import EGO_FRAME, Matrix, UnknownTransform, move
from mt_nodes.relations.stream_checks.base import WatchedInstant

#: Returns so near to the ground are not counted as an object's.
_ABOVE_GROUND_M, _AROUND_M = 0.25, 0.2
_CORNERS = np.array(list(product((-0.5, 0.5), repeat=3)))


def in_ego_frame(detections: Detections, bundle: Bundle) -> Detections | str:
    """Return finite obstacles in ``base_link``, or why that is impossible."""
    found = detections.take(detections.finite)
    if found.frame_id == EGO_FRAME:
        return found
    try:
        return moved(found, bundle.transforms.lookup(EGO_FRAME, found.frame_id), EGO_FRAME)
    except UnknownTransform as error:
        return str(error)


def tracks_of(instant: WatchedInstant) -> Detections | str:
    """Return the obstacles that have an id, in ``base_link``, or why there are none to be had."""
    output: Output = instant.output
    found = output.tracks if output.tracks is not None else output.detections
    if found is None:
        return "the stack publishes neither tracks nor detections"
    if len(found) and not (found.track_id != "").any():
        return "the detections have no ids"
    return in_ego_frame(found.take(found.track_id != ""), instant.bundle)


def returns_in(
    bundle: Bundle, center_m: Floats, size_m: Floats, yaw_rad: float, others: Detections | None = None
) -> int | None:
    """Count the LiDAR returns in a box of ``base_link``, without the ground; None where no cloud can tell.

    ``others``: boxes in ``base_link`` whose returns do not count, because they are known to be theirs.
    """
    count = None
    for cloud in bundle.known_clouds:
        try:
            to_cloud = bundle.transforms.lookup(cloud.frame_id, EGO_FRAME)
        except UnknownTransform:
            continue
        standing = _near(np.asarray(cloud.xyz), to_cloud, center_m, 0.5 * float(np.linalg.norm(size_m)))
        inside = _in_box(standing, center_m, size_m, yaw_rad)
        for box in () if others is None else zip(others.center_m, others.size_m, others.yaw_rad.tolist(), strict=True):
            inside &= ~_in_box(standing, *box)
        count = (count or 0) + int(inside.sum())
    return count


def _near(xyz: npt.NDArray[np.floating], to_cloud: Matrix, center_m: Floats, half_m: float) -> Floats:
    """Return the points (N, 3) around a place, in ``base_link``: one pass over the cloud; boxes compare these few."""
    center, reach = move(to_cloud, center_m[None])[0], half_m + _AROUND_M
    near = xyz[(np.abs(xyz[:, 0] - center[0]) <= reach) & (np.abs(xyz[:, 1] - center[1]) <= reach)].astype(np.float64)
    return move(np.asarray(np.linalg.inv(to_cloud)), near)


def _in_box(points_m: Floats, center_m: Floats, size_m: Floats, yaw_rad: float) -> Mask:
    """Return which points (N, 3) lie in a box, or a little around it, above the ground."""
    local, c, s = points_m - center_m, np.cos(yaw_rad), np.sin(yaw_rad)
    along, across = local[:, 0] * c + local[:, 1] * s, local[:, 1] * c - local[:, 0] * s
    half = 0.5 * size_m + _AROUND_M
    low = min(-0.5 * size_m[2] + _ABOVE_GROUND_M, 0.0)
    level = (local[:, 2] >= low) & (local[:, 2] <= half[2])
    return np.asarray((np.abs(along) <= half[0]) & (np.abs(across) <= half[1]) & level)


class CalibratedCamera:
    """A camera of a bundle: model, and where it is.

    Raises UsageError: it is not calibrated, or no transform leads to it.

    ``to_optical``: (4, 4) from ``base_link`` to its optical frame.
    """

    def __init__(self, info: CameraInfo, bundle: Bundle, topic: str = "") -> None:
        from mt_nodes.world.camera.model import CameraModel, rectified  # OpenCV is for those who ask

        self.model = CameraModel.of(info, (info.height, info.width), rectified(topic))
        self.to_optical = bundle.transforms.lookup(info.frame_id, EGO_FRAME)

    def around(self, corners_m: Floats) -> Floats:
        """Return the boxes (M, 4) in px around corners (M, K, 3) in ``base_link``; NaN if not wholly before it."""
        pixels = self.model.project(move(self.to_optical, corners_m.reshape(-1, 3)))
        each = pixels.reshape(len(corners_m), -1, 2)
        return np.concatenate([each.min(axis=1), each.max(axis=1)], axis=1)

    def outlines(self, found: Detections) -> Floats:
        """Return the boxes (M, 4) in px around obstacles of ``base_link``; NaN if not wholly before the camera."""
        c, s, zero = np.cos(found.yaw_rad), np.sin(found.yaw_rad), np.zeros(len(found))
        turn = np.array([[c, s, zero], [-s, c, zero], [zero, zero, zero + 1.0]]).transpose(2, 0, 1)
        corners = (_CORNERS * found.size_m[:, None]) @ turn + found.center_m[:, None]
        return self.around(corners)

    def at_depths(self, boxes: ImageBoxes, depths_m: Floats) -> Floats:
        """Return where the corners of boxes are if they are so deep: (M, D, 4, 3) in ``base_link``."""
        x0, y0, x1, y1 = boxes.box_px.T
        pixels = np.stack([np.stack([x0, y0, x1, y1], 1)[:, [0, 2, 2, 0]], np.stack([y0, y0, y1, y1], 1)], axis=-1)
        rays = self.model.directions(pixels.reshape(-1, 2)).reshape(len(boxes), 4, 3)
        flat = rays / np.maximum(rays[..., 2:], 1e-6)
        places = flat[:, None] * depths_m[None, :, None, None]
        return move(np.asarray(np.linalg.inv(self.to_optical)), places.reshape(-1, 3)).reshape(places.shape)

    def inside(self, outlines_px: Floats, margin_px: float) -> Mask:
        """Return which boxes (…, 4) lie wholly in the picture, so far from its edge."""
        low, high = outlines_px[..., :2], outlines_px[..., 2:]
        edge = np.array([self.model.width - 1.0, self.model.height - 1.0]) - margin_px
        with np.errstate(invalid="ignore"):
            return np.asarray(((low >= margin_px) & (high <= edge)).all(axis=-1))


def hidden_share(outlines: Floats, range_m: Floats) -> Floats:
    """Return which share of each outline (M, 4) in px is behind one nearer outline, of all the one that hides most."""
    known = np.nan_to_num(outlines)
    both_low = np.maximum(known[:, None, :2], known[None, :, :2])
    both_high = np.minimum(known[:, None, 2:], known[None, :, 2:])
    own = np.maximum((known[:, 2:] - known[:, :2]).prod(axis=1), 1e-9)
    share = np.clip(both_high - both_low, 0.0, None).prod(axis=2) / own[:, None]
    return np.asarray(np.where(range_m[None, :] < range_m[:, None], share, 0.0).max(axis=1, initial=0.0))


def camera_of(boxes: ImageBoxes, bundle: Bundle) -> CalibratedCamera | str:
    """Return the camera in whose image boxes are, or why it is not known."""
    infos: Iterable[CameraInfo] = bundle.camera_infos
    found = [info for info in infos if info.frame_id == boxes.frame_id]
    if not found and len(bundle.camera_infos) == 1 and not boxes.frame_id:
        found = list(bundle.camera_infos)
    if not found:
        return f"no CameraInfo of frame '{boxes.frame_id}'"
    images = [image.topic for image in bundle.images if image.frame_id == found[0].frame_id]
    try:
        return CalibratedCamera(found[0], bundle, images[0] if images else "")
    except UsageError as error:
        return str(error)
