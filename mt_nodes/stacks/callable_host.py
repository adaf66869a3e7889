# SPDX-License-Identifier: Apache-2.0
"""Hosts a stack that is a Python callable: what it is given, and what is made of what it returns."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mt_nodes.base.errors import InfrastructureError
from mt_nodes.data.messages import Cloud, Image, Message, WorldMessage
from mt_nodes.data.outputs import Control, Detections, ImageBoxes, Output
from mt_nodes.data.stack_topics import TOLD_TYPES
from mt_nodes.data.transforms import TransformTree, move
from mt_nodes.stacks.answer_tables import EXPECTED, is_table, plain_array, read_table
from mt_nodes.stacks.box_conventions import CENTRE, KITTI, KITTI_ORDER, by_centres
from mt_nodes.stacks.callables import load_callable
from mt_nodes.stacks.stack import Stack

#: What a callable of several inputs calls those of a role.
BY_ROLE = {"lidar": "points", "camera": "image", "camera_info": "camera_info", **{role: role for role in TOLD_TYPES}}

#: The fields of a command that a callable may say by name.
COMMAND = tuple(column.name for column in fields(Control) if column.name != "stamp_ns")


@dataclass(frozen=True)
class CallableHost:
    """Feeds bundles to a Python callable; used in process and by the node that hosts callables.

    The callable takes points (N, 4) float32 ``x y z intensity`` (or an image (H, W, 3) uint8: red, green, blue,
    whatever its encoding) and, if it has a parameter ``stamp_ns``, the stamp, if it has ``now_ns``, the stack's time
    (None from an arm that does not tell it). It returns :class:`Detections`, :class:`Control`, :class:`ImageBoxes`,
    several of these as an :class:`Output`, an array (M, 7…9) of ``x y z length width height yaw [score [class
    number]]``, or a table with names: see :mod:`mt_nodes.stacks.answer_tables`.

    A callable whose stack file has several inputs takes a mapping of one instant instead: ``points``, ``image`` and
    ``camera_info`` (:class:`CameraInfo`), as far as the file has them, each a tuple where it has several topics of one
    role, in its order. What a world tells comes under its role: ``objects`` (:class:`Detections`), ``odometry``
    (:class:`~mt_nodes.data.messages.Odometry`), ``route`` (:class:`~mt_nodes.data.outputs.Path`), ``signals``
    (:class:`~mt_nodes.data.messages.SignalStates`) and ``lanes`` (:class:`~mt_nodes.data.lanes.Lanes`).
    """

    function: Callable[..., Any]
    stack: Stack
    takes_stamp: bool
    takes_now: bool = False

    @classmethod
    def make(cls, stack: Stack) -> CallableHost:
        """Import and construct the stack's callable."""
        function = load_callable(stack)
        try:
            names = inspect.signature(function).parameters
        except (TypeError, ValueError):
            names = {}  # type: ignore[assignment]
        return cls(function, stack, "stamp_ns" in names, "now_ns" in names)

    def __call__(
        self, sensor: Message | Mapping[str, Message], transforms: TransformTree, now_ns: int | None = None
    ) -> Output:
        """Return what the callable says of one message (or of one instant, by topic of the stack), stamped.

        What has no frame is in that of the leading sensor.
        """
        lead = sensor[self.stack.leading_topic] if isinstance(sensor, Mapping) else sensor
        frame = self.stack.points_frame or lead.frame_id
        data = self._by_role(sensor, transforms) if isinstance(sensor, Mapping) else self._data(sensor, transforms)
        extra: dict[str, int | None] = {"stamp_ns": lead.stamp_ns} if self.takes_stamp else {}
        extra |= {"now_ns": now_ns} if self.takes_now else {}
        answer = self.function(data, **extra)
        if self.stack.answers == ("control",):
            answer = as_command(answer)
        self._refuse_boxes(answer)
        said = self._promised(as_output(answer, frame, lead.stamp_ns, self.stack.boxes))
        if said.detections is not None:
            by_centres_of = (self.stack.boxes, self.stack.boxes_frame, transforms)
            said = replace(said, detections=by_centres(said.detections, *by_centres_of))
        output = said.renamed(self.stack.classes)
        lacking = [role for role in self.stack.answers if getattr(output, role) is None]
        if lacking and not output.silent:
            raise InfrastructureError(
                f"stack '{self.stack.name}': the callable said no {', '.join(lacking)}, which outputs in the stack "
                "file promise; return them, or name what it returns under outputs"
            )
        return output

    def _refuse_boxes(self, answer: Any) -> None:
        """Refuse rows of numbers, which are read as boxes, of a stack that says none."""
        boxes, known = {"detections", "boxes"}, (Output, Control, Detections, ImageBoxes)
        if answer is None or isinstance(answer, known) or boxes & set(self.stack.outputs):
            return
        raise InfrastructureError(
            f"the callable returned {type(answer).__name__} {answer!r:.200}, expected an Output of "
            f"mt_nodes.data.outputs, as outputs of the stack file promise {', '.join(self.stack.outputs)}"
        )

    def _promised(self, said: Output) -> Output:
        """Return nothing seen as nothing of what the stack file promises: an empty list is of no kind."""
        promised, seen, boxes = self.stack.outputs, said.detections, said.boxes
        if (
            boxes is None
            and seen is not None
            and not len(seen)
            and "detections" not in promised
            and "boxes" in promised
        ):
            return replace(said, detections=None, boxes=ImageBoxes.none(seen.frame_id, seen.stamp_ns))
        if (
            seen is None
            and boxes is not None
            and not len(boxes)
            and "boxes" not in promised
            and "detections" in promised
        ):
            return replace(said, boxes=None, detections=Detections.none(boxes.frame_id, boxes.stamp_ns))
        return said

    def _by_role(self, sensors: Mapping[str, Message], transforms: TransformTree) -> dict[str, Any]:
        """Return what a callable of several inputs is given: one value a role, a tuple where the role has several."""
        given: dict[str, Any] = {}
        for role, topics in self.stack.topics.items():
            values = tuple(self._data(sensors[topic], transforms) for topic in topics)
            given[BY_ROLE[role]] = values if len(values) > 1 else values[0]
        return given

    def _data(self, sensor: Message, transforms: TransformTree) -> Any:
        if isinstance(sensor, Cloud):
            return as_points(sensor, self.stack.points_frame or sensor.frame_id, transforms)
        if isinstance(sensor, WorldMessage):
            return sensor.stamped
        if not isinstance(sensor, Image):
            return sensor
        from mt_nodes.data.images.codecs import decode  # OpenCV is for stacks with cameras

        return decode(sensor).rgb8()


def as_points(cloud: Cloud, frame: str, transforms: TransformTree) -> npt.NDArray[np.float32]:
    """Return a cloud as (N, 4) float32 x, y, z, intensity in the frame given (intensity 0 where there is none)."""
    points = np.empty((len(cloud), 4), dtype=np.float32)
    # Column by column: NumPy takes ten times as long over rows of three.
    for i, name in enumerate("xyz"):
        points[:, i] = cloud.points[name]
    if frame != cloud.frame_id:
        matrix = transforms.lookup(frame, cloud.frame_id)
        if np.array_equal(matrix[:3, :3], np.eye(3)):
            with np.errstate(invalid="ignore", over="ignore"):  # points that are not finite stay so
                for i in range(3):
                    points[:, i] += matrix[i, 3].astype(np.float32)
        else:
            points[:, :3] = move(matrix, points[:, :3])
    field = cloud.intensity_field
    points[:, 3] = cloud.points[field] if field else 0.0
    return points


def as_command(said: Any) -> Control | Output | None:
    """Return what a callable that only commands returned: as it is, or made of a mapping of fields of a command.

    Raises:
        InfrastructureError: it is nothing that can be understood.
    """
    if said is None or isinstance(said, (Control, Output)):
        return said
    try:
        if isinstance(said, Mapping) and said and set(said) <= set(COMMAND):
            return Control(None, **{name: float(value) for name, value in said.items()})
    except (TypeError, ValueError):
        pass
    text = repr(said)
    raise InfrastructureError(
        f"the callable returned {type(said).__name__} {text if len(text) <= 200 else f'{text[:200]}…'}, expected "
        "Control(None, speed_mps=…, steering_rad=…) of mt_nodes.data.outputs, or a dict of some of "
        f"{', '.join(COMMAND)}"
    )


def as_output(said: Any, frame: str, stamp_ns: int, boxes: str = CENTRE) -> Output:
    """Turn what a callable returned into an :class:`Output`; ``boxes`` is its convention, see :mod:`box_conventions`.

    Raises:
        InfrastructureError: it is nothing that can be understood.
    """
    if isinstance(said, Detections):
        said = Output(detections=said)
    elif isinstance(said, Control):
        said = Output(control=said)
    elif isinstance(said, ImageBoxes):
        said = Output(boxes=said)
    elif said is None:
        said = Output()
    if isinstance(said, Output):
        return _stamped(said, frame, stamp_ns)
    said = plain_array(said)
    if is_table(said):
        return read_table(said, frame, stamp_ns, boxes)
    try:
        rows = np.asarray(said, dtype=np.float64)
    except (TypeError, ValueError) as error:
        text = repr(said) if len(repr(said)) <= 200 else f"{repr(said)[:200]}…"
        raise InfrastructureError(
            f"the callable returned {type(said).__name__} {text}, which is no array of numbers; {EXPECTED}"
        ) from error
    if rows.size == 0 and not rows.shape[0]:
        return Output(detections=Detections.none(frame, stamp_ns))
    if rows.ndim != 2 or not 7 <= rows.shape[1] <= 9:
        raise InfrastructureError(
            f"the callable returned an array of shape {rows.shape}, expected (M, 7), (M, 8) or (M, 9): "
            "x y z length width height yaw [score [class number]]"
        )
    if boxes == KITTI:
        rows = rows[:, [*KITTI_ORDER, *range(7, rows.shape[1])]]
    score = rows[:, 7] if rows.shape[1] > 7 else None
    if rows.shape[1] > 8 and not np.isfinite(rows[:, 8]).all():
        raise InfrastructureError(
            f"the callable returned the class number {rows[:, 8].min():g}, expected a whole number"
        )
    label = [str(int(c)) for c in rows[:, 8]] if rows.shape[1] > 8 else None
    return Output(detections=Detections.make(frame, stamp_ns, rows[:, :3], rows[:, 3:6], rows[:, 6], label, score))


def _stamped(said: Output, frame: str, stamp_ns: int) -> Output:
    """A callable says what it sees; which instant that is, its host knows."""
    placed = {
        role: replace(part, stamp_ns=stamp_ns, frame_id=part.frame_id or frame)
        for role in ("detections", "path", "boxes")
        if (part := getattr(said, role)) is not None
    }
    control = None if said.control is None else replace(said.control, stamp_ns=stamp_ns)
    return replace(said, control=control, **placed)
