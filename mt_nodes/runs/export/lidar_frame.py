# SPDX-License-Identifier: Apache-2.0
"""A follow-up's clouds as one, upright in the place of the LiDAR, with labels and, where it fits, a picture."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import shapely
from shapely import affinity

from mt_nodes.base.arrays import Floats, Singles
from mt_nodes.data.association import moved
from mt_nodes.data.cloud import Cloud
from mt_nodes.data.images.codecs import decode
from mt_nodes.data.messages import Bundle, CameraInfo, Image
from mt_nodes.data.outputs import Detections
from mt_nodes.data.transforms import EGO_FRAME, Matrix, UnknownTransform, inverse, move
from mt_nodes.runs.export.followup_export import ExportedFrame, LeftOut

#: Name of the frame that points and boxes are in: axes of ``base_link`` (x ahead, y left, z up), origin of the LiDAR.
FRAME = "lidar_upright"
#: Rotations that differ by less are the same: then coordinates stay bit for bit.
_SAME = 1e-9


@dataclass(frozen=True, eq=False)
class PinholePicture:
    """A picture without distortion: intrinsics ``k`` (3, 3), 4×4 from :data:`FRAME` to the camera's frame."""

    image: Image
    k: Floats
    to_camera: Matrix
    size_px: tuple[int, int]


@dataclass(frozen=True, eq=False)
class LidarFrame:
    """What is written of a frame with clouds.

    Attributes:
        points: (N, 5) float32: x, y, z in :data:`FRAME`, reflectance of 0..1, ring (0 where unknown).
        objects, ignored: boxes in that frame. zone: outline of what is labelled.
        mount_m: x, y, z of the frame's origin in ``base_link``.
        picture: that of camera 2; None where there is none, or it does not show what the clouds show.
    """

    points: Singles
    objects: Detections
    ignored: Detections
    zone: shapely.Geometry
    mount_m: Floats
    picture: PinholePicture | None

    @classmethod
    def of(cls, frame: ExportedFrame) -> LidarFrame:
        """Bring a follow-up's clouds together.

        Raises LeftOut: where a LiDAR is, or what its intensities mean, is not known.
        """
        bundle, labels = frame.bundle, frame.labels
        assert isinstance(labels.objects, Detections) and isinstance(labels.ignored, Detections)
        try:
            mount = bundle.transforms.lookup(EGO_FRAME, bundle.clouds[0].frame_id)
            to_ego = bundle.transforms.lookup(EGO_FRAME, labels.objects.frame_id)
            points = [_points(cloud, bundle, mount[:3, 3]) for cloud in bundle.clouds]
        except UnknownTransform as error:
            raise LeftOut(str(error)) from error
        upright = np.eye(4)
        upright[:3, 3] = -mount[:3, 3]
        to_frame = np.asarray(upright @ to_ego)
        turn, shift = to_frame[:2, :2].ravel().tolist(), to_frame[:2, 3].tolist()
        return cls(
            np.concatenate(points),
            moved(labels.objects, to_frame, FRAME),
            moved(labels.ignored, to_frame, FRAME),
            affinity.affine_transform(labels.zone, [*turn, *shift]),
            mount[:3, 3],
            _picture(frame, inverse(upright)),
        )


def _points(cloud: Cloud, bundle: Bundle, origin_m: Floats) -> Singles:
    matrix = bundle.transforms.lookup(EGO_FRAME, cloud.frame_id).copy()
    matrix[:3, 3] -= origin_m
    same = np.abs(matrix - np.eye(4)).max() < _SAME
    xyz = cloud.xyz if same else move(matrix, cloud.xyz)
    reflectance = _reflectance(cloud)
    ring = cloud.points["ring"] if cloud.single("ring") else np.zeros(len(cloud))
    rows = np.column_stack([xyz, reflectance, ring]).astype(np.float32)
    return rows[np.isfinite(rows).all(axis=1)]


def _reflectance(cloud: Cloud) -> Floats:
    """Return how strong each echo is (N,), 0..1 of its field's full scale; 0 for a LiDAR that does not say."""
    if cloud.intensity_field is None:
        return np.zeros(len(cloud))
    fields = cloud.echoes.fields
    if not fields:
        raise LeftOut(f"{cloud.topic}: what its intensities mean is not known: {cloud.echoes.doubt}")
    return np.clip(cloud.points[fields[0].name].astype(np.float64) / fields[0].full_scale, 0.0, 1.0)


def _picture(frame: ExportedFrame, to_ego: Matrix) -> PinholePicture | None:
    """Return the first picture of a camera whose place is known, unless objects were changed in clouds alone."""
    bundle = frame.bundle
    infos: dict[str, CameraInfo] = {info.frame_id: info for info in bundle.camera_infos}
    for image in bundle.images:
        info = infos.get(image.frame_id)
        shows_it = image.topic in frame.changed or not frame.effects.change_truth
        if info is None or np.any(info.d) or not shows_it:
            continue
        try:
            to_camera = bundle.transforms.lookup(image.frame_id, EGO_FRAME) @ to_ego
        except UnknownTransform:
            continue
        height, width = decode(image).size
        return PinholePicture(image, info.k, np.asarray(to_camera), (width, height))
    return None
