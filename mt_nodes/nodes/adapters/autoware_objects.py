# SPDX-License-Identifier: Apache-2.0
"""Objects of Autoware, which its six types of messages tell in the same way.

Facts, each from the Autoware Foundation's repositories: twist and acceleration are in the object's own frame
(autoware_universe, issue 6192, pull request 8980); the corners of a polygon are, too (``toPolygon2d``); a cylinder has
its diameter in ``dimensions.x`` (``Shape.msg``); pose and its covariance are in the frame of the header. Packages named
``autoware_auto_…`` are of Autoware before June 2024.
"""

from __future__ import annotations

import uuid
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.data.message_headers import set_header, stamp_of
from mt_nodes.data.outputs import Detections
from mt_nodes.nodes.message_classes import message_class
from mt_nodes.nodes.orientation import points, quaternions, set_pose, set_vector, turned, yaws
from mt_nodes.stacks.message_adapter import OutputPart, StampedAdapter
from mt_nodes.stacks.upright_boxes import boxes_around


class AutowareObjects(StampedAdapter):
    """Base of the adapters of Autoware's objects: :func:`read` and :func:`write` with the names that the type has."""

    role: ClassVar[str] = "detections"

    @property
    @abstractmethod
    def prefix(self) -> str:
        """What the names of the kinematics begin with."""

    def decode(self, message: Any) -> Detections:
        """Read every object as a box where it is now, with its track where the type has one."""
        return read(message, self.prefix)

    def encode(self, output: OutputPart) -> Any:
        """Write boxes, with tracks and no predictions; a velocity that is not known is 0, or flagged as not given."""
        assert isinstance(output, Detections)
        return write(output, self.type, self.prefix)


class AutowareDetectedObjects(AutowareObjects):
    """Objects seen in one instant, in the frame of the header (m, rad, m/s); each a box.

    Class of the highest probability; score, shapes and what is lost: :func:`.autoware_objects.read`. Velocities and
    covariances where they are flagged as given; detections have no track. An empty list with the input's stamp says
    that nothing was seen.
    """

    type: ClassVar[str] = "autoware_perception_msgs/msg/DetectedObjects"
    prefix = ""


class AutowareTrackedObjects(AutowareObjects):
    """Objects with the UUID of their track, in the frame of the header (m, rad, m/s); each a box.

    Class of the highest probability; score, shapes and what is lost: :func:`.autoware_objects.read`. The track is the
    UUID in 32 hexadecimal digits, none where all are 0. An empty list with the input's stamp says that nothing was
    seen.
    """

    type: ClassVar[str] = "autoware_perception_msgs/msg/TrackedObjects"
    prefix = ""


class AutowarePredictedObjects(AutowareObjects):
    """Tracked objects as they are now, in the frame of the header (m, rad, m/s); each a box.

    Class of the highest probability; score, shapes and what is lost: :func:`.autoware_objects.read`. The track is the
    UUID in 32 hexadecimal digits, none where all are 0. Where they will be (``predicted_paths``) is not read.
    An empty list with the input's stamp says that nothing was seen.
    """

    type: ClassVar[str] = "autoware_perception_msgs/msg/PredictedObjects"
    prefix = "initial_"


class AutowareAutoDetectedObjects(AutowareDetectedObjects):
    """The older package's form of ``autoware_perception_msgs/DetectedObjects``, with the same meaning.

    It has no classes beyond the pedestrian: what is published as another is unknown. An empty list with
    the input's stamp says that nothing was seen.
    """

    type: ClassVar[str] = "autoware_auto_perception_msgs/msg/DetectedObjects"


class AutowareAutoTrackedObjects(AutowareTrackedObjects):
    """The older package's form of ``autoware_perception_msgs/TrackedObjects``, with the same meaning.

    It has no classes beyond the pedestrian: what is published as another is unknown. An empty list with
    the input's stamp says that nothing was seen.
    """

    type: ClassVar[str] = "autoware_auto_perception_msgs/msg/TrackedObjects"


class AutowareAutoPredictedObjects(AutowarePredictedObjects):
    """The older package's form of ``autoware_perception_msgs/PredictedObjects``, with the same meaning.

    It has no classes beyond the pedestrian: what is published as another is unknown. An empty list with
    the input's stamp says that nothing was seen.
    """

    type: ClassVar[str] = "autoware_auto_perception_msgs/msg/PredictedObjects"


#: Names of the constants of ``ObjectClassification``, in small letters; the older package ends with the pedestrian.
LABELS = (
    *("unknown", "car", "truck", "bus", "trailer", "motorcycle", "bicycle", "pedestrian"),
    *("animal", "hazard", "over_drivable", "under_drivable"),
)
#: What others call them.
ALSO = {"cyclist": "bicycle", "person": "pedestrian"}
BOX, CYLINDER, POLYGON = 0, 1, 2


def read(message: Any, prefix: str = "") -> Detections:
    """Return the objects of a message, centres and velocities in the frame of its header.

    The class is that of the highest probability. The score is the probability that the object exists or, where a stack
    leaves that at 0, the probability of its class. Velocities and covariances that are flagged as not given are NaN, as
    are covariances of zeros alone. A polygon becomes the smallest box around it. Accelerations, predicted paths and the
    other classes are not read.

    Args:
        message: DetectedObjects, TrackedObjects or PredictedObjects of either package.
        prefix: what the names of the kinematics begin with.
    """
    rows = message.objects
    poses = [getattr(row.kinematics, f"{prefix}pose_with_covariance") for row in rows]
    twists = [getattr(row.kinematics, f"{prefix}twist_with_covariance") for row in rows]
    turns = quaternions(pose.pose.orientation for pose in poses)
    center, size, yaw = _boxes([row.shape for row in rows], points(pose.pose.position for pose in poses), turns)
    velocity = turned(turns, points(twist.twist.linear for twist in twists))
    velocity[~np.array([getattr(row.kinematics, "has_twist", True) for row in rows], dtype=bool)] = np.nan
    covariance = np.array([pose.covariance for pose in poses], dtype=np.float64).reshape(-1, 6, 6)
    known = np.array([getattr(row.kinematics, "has_position_covariance", True) for row in rows], dtype=bool)
    covariance[~(known & covariance.any(axis=(1, 2)))] = np.nan
    best = [max(row.classification, key=lambda c: c.probability, default=None) for row in rows]
    return Detections.make(
        message.header.frame_id,
        stamp_of(message),
        center,
        size,
        yaw,
        [_label(choice.label) if choice else "unknown" for choice in best],
        [_score(row.existence_probability, choice) for row, choice in zip(rows, best, strict=True)],
        [_track(row) for row in rows],
        velocity,
        covariance,
    )


def write(output: Detections, type_name: str, prefix: str = "") -> Any:
    """Return the message of a type that says the same.

    Classes that the type has no name for become unknown. A track's id that is no UUID is lost; the UUID made of it
    (RFC 4122, version 5) is the same for the same id.
    Raises UsageError: the package is not installed.
    """
    package, _, name = type_name.split("/")
    message = message_class(type_name)()
    set_header(message.header, output.frame_id, output.stamp_ns)
    for i in range(len(output)):
        row = message_class(f"{package}/msg/{name.removesuffix('s')}")()
        row.existence_probability = float(output.score[i])
        row.classification = [_classification(package, str(output.label[i]), float(output.score[i]))]
        row.shape.type = BOX
        set_vector(row.shape.dimensions, output.size_m[i])
        _set_kinematics(row.kinematics, output, i, prefix)
        if hasattr(row, "object_id"):
            row.object_id.uuid = np.frombuffer(_uuid(str(output.track_id[i])), np.uint8)
        message.objects.append(row)
    return message


def _boxes(shapes: Sequence[Any], center: Floats, turns: Floats) -> tuple[Floats, Floats, Floats]:
    """Return centre, size and yaw of shapes at poses."""
    center, size, yaw = center.copy(), points(shape.dimensions for shape in shapes), yaws(turns)
    round_ = np.array([shape.type == CYLINDER for shape in shapes], dtype=bool)
    size[round_, 1] = size[round_, 0]
    drawn = [i for i, shape in enumerate(shapes) if shape.type == POLYGON and shape.footprint.points]
    outlines = [points(shapes[i].footprint.points) for i in drawn]
    size[drawn] *= [np.nan, np.nan, 1.0]  # until a box is known
    whole = [k for k, outline in enumerate(outlines) if np.isfinite(outline).all()]
    if whole:
        rows, corners = np.array(drawn)[whole], [outlines[k] for k in whole]
        group = np.repeat(np.arange(len(whole)), [len(outline) for outline in corners])
        middle, extent, angle = boxes_around(np.concatenate(corners), group)
        center[rows] += turned(turns[rows], middle * [1.0, 1.0, 0.0])
        size[rows, :2] = extent[:, :2]
        yaw[rows] = np.arctan2(np.sin(yaw[rows] + angle), np.cos(yaw[rows] + angle))
    return center, size, yaw


def _label(number: int) -> str:
    return LABELS[number] if number < len(LABELS) else "unknown"


def _score(existence: float, choice: Any) -> float:
    return float(existence or (choice.probability if choice else 0.0))


def _track(row: Any) -> str:
    name = bytes(bytearray(row.object_id.uuid)) if hasattr(row, "object_id") else b""
    return name.hex() if any(name) else ""


def _uuid(track: str) -> bytes:
    """Return a UUID: the one that is written in hexadecimal digits, one made of another text, none of no text."""
    if not track:
        return bytes(16)
    try:
        return uuid.UUID(hex=track).bytes
    except ValueError:
        return uuid.uuid5(uuid.NAMESPACE_OID, track).bytes


def _classification(package: str, label: str, probability: float) -> Any:
    classification = message_class(f"{package}/msg/ObjectClassification")(probability=probability)
    name = label.lower()
    classification.label = int(getattr(classification, ALSO.get(name, name).upper(), 0))
    return classification


def _set_kinematics(kinematics: Any, output: Detections, i: int, prefix: str) -> None:
    pose = getattr(kinematics, f"{prefix}pose_with_covariance")
    set_pose(pose.pose, output.center_m[i], output.yaw_rad[i])
    covariance, velocity = output.covariance[i], output.velocity_mps[i]
    if np.isfinite(covariance).all():
        pose.covariance = covariance.ravel()
    if np.isfinite(velocity).all():
        back = quaternions([pose.pose.orientation]) * [-1.0, -1.0, -1.0, 1.0]
        set_vector(getattr(kinematics, f"{prefix}twist_with_covariance").twist.linear, turned(back, velocity[None])[0])
    if hasattr(kinematics, "has_twist"):
        kinematics.has_twist = bool(np.isfinite(velocity).all())
        kinematics.has_position_covariance = bool(np.isfinite(covariance).all())
    if hasattr(kinematics, "orientation_availability"):
        kinematics.orientation_availability = kinematics.AVAILABLE
