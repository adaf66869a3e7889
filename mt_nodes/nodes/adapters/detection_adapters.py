# SPDX-License-Identifier: Apache-2.0
"""Obstacles and boxes in an image as ``vision_msgs``, ``derived_object_msgs``, ``geometry_msgs``, ``sensor_msgs``."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from geometry_msgs.msg import Pose, PoseArray

from mt_nodes.base.params import param
from mt_nodes.data.cdr.codec import cloud_from_msg
from mt_nodes.data.message_headers import set_header, stamp_of
from mt_nodes.data.outputs import Detections, ImageBoxes
from mt_nodes.nodes.message_classes import message_class
from mt_nodes.nodes.orientation import points, quaternions, set_pose, set_vector, yaws
from mt_nodes.stacks.message_adapter import OutputPart, StampedAdapter
from mt_nodes.stacks.upright_boxes import boxes_around


def best(detection: Any) -> Any | None:
    """Return the hypothesis with the highest score, the first of several; None where there is none."""
    return max(detection.results, key=lambda result: result.hypothesis.score, default=None)


def frame_of(message: Any, rows: Iterable[Any]) -> str:
    """Return the frame of an array: its header's, or where that is empty the one of its rows' headers.

    Raises ValueError: the rows are in several frames.
    """
    frames = [message.header.frame_id, *(row.header.frame_id for row in rows)]
    names = sorted({frame for frame in frames if frame})
    if len(names) > 1:
        raise ValueError(f"the rows are in several frames: {', '.join(names)}")
    return names[0] if names else ""


class Detection2dArrayBoxes(StampedAdapter):
    """Boxes of detections, in pixels, in the image of the header's frame; all detections must be in one frame.

    Class and score are those of the hypothesis with the highest score (unknown, 1 without any). A turned box is read as
    the upright one around it. ``id``, poses and the lesser hypotheses are not read. An empty array with the image's
    stamp says that nothing was seen.
    """

    type: ClassVar[str] = "vision_msgs/msg/Detection2DArray"
    role: ClassVar[str] = "boxes"

    def decode(self, message: Any) -> ImageBoxes:
        """Read the box of every detection."""
        rows = message.detections
        sides = [
            (b.center.position.x, b.center.position.y, b.center.theta, b.size_x, b.size_y)
            for b in (row.bbox for row in rows)
        ]
        x, y, turn, width, height = np.array(sides, dtype=np.float64).reshape(-1, 5).T
        with np.errstate(invalid="ignore"):  # what is not finite is nobody's to judge
            cos, sin = np.abs(np.cos(turn)), np.abs(np.sin(turn))
            across, down = (width * cos + height * sin) / 2, (width * sin + height * cos) / 2
            edges = np.column_stack([x - across, y - down, x + across, y + down])
        chosen = [best(row) for row in rows]
        return ImageBoxes.make(
            frame_of(message, rows),
            stamp_of(message),
            edges,
            [(c and c.hypothesis.class_id) or "unknown" for c in chosen],
            [1.0 if c is None else c.hypothesis.score for c in chosen],
        )

    def encode(self, output: OutputPart) -> Any:
        """Write one upright detection with one hypothesis a box."""
        assert isinstance(output, ImageBoxes)
        message = message_class(self.type)()
        set_header(message.header, output.frame_id, output.stamp_ns)
        for (x0, y0, x1, y1), label, score in zip(
            output.box_px.tolist(), output.label, output.score.tolist(), strict=True
        ):
            row = message_class("vision_msgs/msg/Detection2D")(header=message.header)
            chosen = message_class("vision_msgs/msg/ObjectHypothesisWithPose")()
            chosen.hypothesis.class_id, chosen.hypothesis.score = str(label), score
            row.bbox.center.position.x, row.bbox.center.position.y = (x0 + x1) / 2, (y0 + y1) / 2
            row.bbox.size_x, row.bbox.size_y = x1 - x0, y1 - y0
            row.results = [chosen]
            message.detections.append(row)
        return message


class Detection3dArrayObstacles(StampedAdapter):
    """Boxes of detections, in metres, in the frame of the header; all detections must be in one frame.

    Class and score are those of the hypothesis with the highest score (unknown, 1 without any), the covariance that of
    its pose where it is not all zero. ``id`` is the track. Roll and pitch of the box, the poses of the hypotheses and
    the lesser hypotheses are not read; the type has no velocities. An empty array with the input's stamp says that
    nothing was seen.
    """

    type: ClassVar[str] = "vision_msgs/msg/Detection3DArray"
    role: ClassVar[str] = "detections"

    def decode(self, message: Any) -> Detections:
        """Read the box of every detection."""
        rows = message.detections
        chosen = [best(row) for row in rows]
        covariance = np.array([np.zeros(36) if c is None else c.pose.covariance for c in chosen], dtype=np.float64)
        covariance = covariance.reshape(-1, 6, 6)
        covariance[~covariance.any(axis=(1, 2))] = np.nan
        return Detections.make(
            frame_of(message, rows),
            stamp_of(message),
            points(row.bbox.center.position for row in rows),
            points(row.bbox.size for row in rows),
            yaws(quaternions(row.bbox.center.orientation for row in rows)),
            [(c and c.hypothesis.class_id) or "unknown" for c in chosen],
            [1.0 if c is None else c.hypothesis.score for c in chosen],
            [row.id for row in rows],
            covariance=covariance,
        )

    def encode(self, output: OutputPart) -> Any:
        """Write one detection with one hypothesis an obstacle; velocities are lost."""
        assert isinstance(output, Detections)
        message = message_class(self.type)()
        set_header(message.header, output.frame_id, output.stamp_ns)
        for i in range(len(output)):
            row = message_class("vision_msgs/msg/Detection3D")(header=message.header, id=str(output.track_id[i]))
            chosen = message_class("vision_msgs/msg/ObjectHypothesisWithPose")()
            chosen.hypothesis.class_id, chosen.hypothesis.score = str(output.label[i]), float(output.score[i])
            for pose in (row.bbox.center, chosen.pose.pose):
                set_pose(pose, output.center_m[i], output.yaw_rad[i])
            set_vector(row.bbox.size, output.size_m[i])
            if np.isfinite(output.covariance[i]).all():
                chosen.pose.covariance = output.covariance[i].ravel()
            row.results = [chosen]
            message.detections.append(row)
        return message


#: Names of the constants ``CLASSIFICATION_…``; the sizes of what is unknown are lost.
LABELS = (
    *("unknown", "unknown", "unknown", "unknown", "pedestrian", "bicycle"),
    *("car", "truck", "motorcycle", "other_vehicle", "barrier", "sign"),
)
NUMBERS = {"unknown": 0, "cyclist": 5} | {name: i for i, name in enumerate(LABELS) if name != "unknown"}
#: ``shape_msgs/SolidPrimitive``: type, and of a cylinder height, then radius.
BOX, SPHERE, CYLINDER, CONE = 1, 2, 3, 4
MOST_CERTAIN = 255


class ObjectArrayObstacles(StampedAdapter):
    """Objects in the frame of the header, in metres; all must be in one frame.

    A sphere, cylinder or cone is the box around it. The score is ``classification_certainty`` of 255 where the object
    is classified, else 1. ``id`` is the track, except a 0 of an object that is merely detected. The velocity is in the
    frame of the header, as CARLA's bridge gives it (``Actor.get_current_ros_twist``); as the bridge calls everything
    merely detected, only a twist of zeros of such an object counts as not given. The bridge puts vehicles' poses on the
    ground, half a box below its middle (``Vehicle.get_marker_pose``), which is left so: what is compared is the ground
    plan. Polygons, accelerations and the age of a class are not read. An empty array with the input's stamp says that
    nothing was seen.
    """

    type: ClassVar[str] = "derived_object_msgs/msg/ObjectArray"
    role: ClassVar[str] = "detections"

    def decode(self, message: Any) -> Detections:
        """Read every object as a box."""
        rows = message.objects
        velocity = points(row.twist.linear for row in rows)
        unset = np.array([row.detection_level == 0 for row in rows], dtype=bool) & ~velocity.any(axis=1)
        velocity[unset] = np.nan
        return Detections.make(
            frame_of(message, rows),
            stamp_of(message),
            points(row.pose.position for row in rows),
            [_size(row.shape) for row in rows],
            yaws(quaternions(row.pose.orientation for row in rows)),
            [LABELS[row.classification] if row.classification < len(LABELS) else "unknown" for row in rows],
            [row.classification_certainty / MOST_CERTAIN if row.object_classified else 1.0 for row in rows],
            [str(row.id) if row.id or row.detection_level else "" for row in rows],
            velocity,
        )

    def encode(self, output: OutputPart) -> Any:
        """Write boxes; other classes become unknown, unknown velocities 0, tracks that are no numbers their CRC-32."""
        assert isinstance(output, Detections)
        message = message_class(self.type)()
        set_header(message.header, output.frame_id, output.stamp_ns)
        for i in range(len(output)):
            row = message_class("derived_object_msgs/msg/Object")(header=message.header, id=_number(output.track_id[i]))
            row.classification = NUMBERS.get(str(output.label[i]).lower(), 0)
            row.object_classified, row.detection_level = True, int(output.track_id[i] != "")
            row.classification_certainty = round(MOST_CERTAIN * min(1.0, max(0.0, float(output.score[i]))))
            row.shape.type, row.shape.dimensions = BOX, output.size_m[i].tolist()
            set_pose(row.pose, output.center_m[i], output.yaw_rad[i])
            set_vector(row.twist.linear, np.nan_to_num(output.velocity_mps[i]))
            message.objects.append(row)
        return message


def _size(shape: Any) -> tuple[float, float, float]:
    """Length, width and height; NaN where the shape has other dimensions than it should, 0 where it has none."""
    given = list(shape.dimensions)
    if not given:
        return 0.0, 0.0, 0.0
    if shape.type == BOX and len(given) == 3:
        return given[0], given[1], given[2]
    if shape.type == SPHERE and len(given) == 1:
        return 2 * given[0], 2 * given[0], 2 * given[0]
    if shape.type in (CYLINDER, CONE) and len(given) == 2:
        return 2 * given[1], 2 * given[1], given[0]
    return np.nan, np.nan, np.nan


def _number(track: str) -> int:
    return int(track) if track.isdecimal() and int(track) < 1 << 32 else zlib.crc32(str(track).encode())


class PoseArrayObstacles(StampedAdapter):
    """One pose an obstacle, in metres, in the frame of the header: no sizes, classes and scores, roll and pitch unread.

    An empty array with the input's stamp says that nothing was seen.
    """

    type: ClassVar[str] = "geometry_msgs/msg/PoseArray"
    role: ClassVar[str] = "detections"

    def decode(self, message: Any) -> Detections:
        """Read every pose as an obstacle of unknown class and no size."""
        return Detections.make(
            message.header.frame_id,
            stamp_of(message),
            points(pose.position for pose in message.poses),
            yaw_rad=yaws(quaternions(pose.orientation for pose in message.poses)),
        )

    def encode(self, output: OutputPart) -> PoseArray:
        """Write the centre and yaw of each obstacle."""
        assert isinstance(output, Detections)
        message = PoseArray()
        set_header(message.header, output.frame_id, output.stamp_ns)
        for center, yaw in zip(output.center_m, output.yaw_rad, strict=True):
            pose = Pose()
            set_pose(pose, center, yaw)
            message.poses.append(pose)
        return message


@dataclass(frozen=True)
class PointCloudClusters(StampedAdapter):
    """Each cluster is the smallest upright box around its points, in metres, in the frame of the header.

    Clusters have neither class, score nor track: their numbers change from cloud to cloud. Points that are not finite,
    or of no cluster, count for nothing. A cloud without points of clusters, with the input's stamp, says that nothing
    was seen. Read only: of a box the points are not known.
    """

    field: str = param("cluster_id", help="field that holds the number of a point's cluster, such as label, intensity")
    none: int = param(-1, help="number of points that are of no cluster")

    type: ClassVar[str] = "sensor_msgs/msg/PointCloud2"
    role: ClassVar[str] = "detections"

    def decode(self, message: Any) -> Detections:
        """Read a box a cluster.

        Raises ValueError: the cloud has no such field, or one of several elements. UsageError: the cloud is damaged.
        """
        cloud = cloud_from_msg("clusters", message)
        names = cloud.points.dtype.names or ()
        if self.field not in names or cloud.points.dtype[self.field].shape:
            raise ValueError(
                f"got a cloud with fields {', '.join(names)}, expected {self.field} with one number a point; name the "
                "field of the clusters: outputs: {detections: {…, params: {field: …}}}"
            )
        number = cloud.points[self.field].astype(np.float64)
        places = np.column_stack([cloud.points[axis].astype(np.float64) for axis in "xyz"])
        inside = np.isfinite(places).all(axis=1) & np.isfinite(number) & (number != self.none)
        number, places = number[inside], places[inside]
        order = np.argsort(number, kind="stable")
        group = np.cumsum(np.diff(number[order], prepend=number[order[:1]]) != 0.0)
        center, size, yaw = boxes_around(places[order], group)
        return Detections.make(cloud.frame_id, cloud.stamp_ns, center, size, yaw)
