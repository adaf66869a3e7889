# SPDX-License-Identifier: Apache-2.0
"""Hosts a stack that is a Python callable: converts its inputs and its return values."""

from __future__ import annotations

import inspect
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from mt_nodes.base.arrays import Singles
from mt_nodes.base.errors import InfrastructureError
from mt_nodes.data.lanes import Lanes, SignalStates
from mt_nodes.data.messages import Cloud, Image, Message, WorldMessage
from mt_nodes.data.outputs import ROLES, Control, Detections, ImageBoxes, Output
from mt_nodes.data.perception import FreeSpace, PredictedObjects
from mt_nodes.data.radar import Radar
from mt_nodes.data.stack_topics import WORLD_TYPES
from mt_nodes.data.transforms import TransformTree, move
from mt_nodes.stacks.answer_tables import EXPECTED, is_table, plain_array, read_table
from mt_nodes.stacks.box_conventions import CENTRE, KITTI, KITTI_ORDER, by_centres
from mt_nodes.stacks.callables import load_callable, refuse_signature
from mt_nodes.stacks.stack import Stack

#: Keys of the inputs of a callable, by role.
BY_ROLE = {"lidar": "points", "camera": "image", **{role: role for role in ("camera_info", "radar", *WORLD_TYPES)}}

#: The fields of a command that a callable may say by name.
COMMAND = tuple(column.name for column in fields(Control) if column.name != "stamp_ns")
#: What a callable may return alone -> its role.
_ROLE_OF: dict[type, str] = {
    Detections: "detections",
    Control: "control",
    ImageBoxes: "boxes",
    PredictedObjects: "predictions",
    SignalStates: "signals",
    Lanes: "lanes",
    FreeSpace: "free_space",
}


@dataclass(frozen=True)
class CallableHost:
    """Feeds bundles to a Python callable; used in process and by the node that hosts callables.

    The callable takes points (N, 4) float32 ``x y z intensity`` (or an image (H, W, 3) uint8: red, green, blue,
    whatever its encoding; or a radar's detections (N, 6) float32, see :func:`as_radar`) and, if it has a parameter
    ``stamp_ns``, the stamp, if it has ``now_ns``, the stack's time (None from an arm without one). It returns
    :class:`Detections`, :class:`Control`, :class:`ImageBoxes`, :class:`Lanes`, :class:`SignalStates`,
    :class:`FreeSpace`, :class:`PredictedObjects`, several of these as an :class:`Output`, an array
    (M, 7…9) of ``x y z length width height yaw [score [class number]]``, or a table with names: see
    :mod:`mt_nodes.stacks.answer_tables`.

    A callable whose stack file has several inputs takes a mapping of one instant instead: ``points``, ``image``,
    ``radar`` and ``camera_info`` (:class:`CameraInfo`), as far as the file has them, each a tuple where it has several
    topics of one role, in its order. World inputs come under their role: ``objects`` (:class:`Detections`),
    ``odometry`` (:class:`~mt_nodes.data.messages.Odometry`), ``route`` (:class:`~mt_nodes.data.outputs.Path`),
    ``signals`` (:class:`~mt_nodes.data.lanes.SignalStates`) and ``lanes`` (:class:`~mt_nodes.data.lanes.Lanes`).
    """

    function: Callable[..., Any]
    stack: Stack
    takes_stamp: bool
    takes_now: bool = False

    @classmethod
    def make(cls, stack: Stack) -> CallableHost:
        """Import and construct the stack's callable."""
        with refuse_fork(stack.name):
            function = load_callable(stack)
        try:
            signature = inspect.signature(function)
        except (TypeError, ValueError):  # of some functions in C
            return cls(function, stack, False)
        named = [name for name in ("stamp_ns", "now_ns") if name in signature.parameters]
        refuse_signature(stack, signature, named)
        return cls(function, stack, "stamp_ns" in named, "now_ns" in named)

    def __call__(
        self, sensor: Message | Mapping[str, Message], transforms: TransformTree, now_ns: int | None = None
    ) -> Output:
        """Return the output of the callable for one message (or for one instant, by topic of the stack), stamped.

        An output without a frame is in the frame of the leading sensor.
        """
        lead = sensor[self.stack.leading_topic] if isinstance(sensor, Mapping) else sensor
        frame = self.stack.points_frame or lead.frame_id
        data = self._by_role(sensor, transforms) if isinstance(sensor, Mapping) else self._data(sensor, transforms)
        extra: dict[str, int | None] = {"stamp_ns": lead.stamp_ns} if self.takes_stamp else {}
        extra |= {"now_ns": now_ns} if self.takes_now else {}
        with refuse_fork(self.stack.name):
            answer = self.function(data, **extra)
        self._refuse_none(answer)
        if self.stack.answers == ("control",):
            answer = as_command(answer)
        self._refuse_boxes(answer)
        output = self._promised(as_output(answer, frame, lead.stamp_ns, self.stack.boxes))
        if output.boxes is not None and output.boxes.frame_id == self.stack.points_frame:
            output = replace(output, boxes=replace(output.boxes, frame_id=_picture_frame(sensor, frame)))
        if output.detections is not None:
            convention = (self.stack.boxes, self.stack.boxes_frame, transforms)
            output = replace(output, detections=by_centres(output.detections, *convention))
        output = output.renamed(self.stack.classes)
        lacking = [role for role in self.stack.answers if getattr(output, role) is None]
        if lacking and not output.silent:
            raise InfrastructureError(
                f"stack '{self.stack.name}': the callable returned no {', '.join(lacking)}, which the stack file has "
                "under outputs; return them, or correct outputs"
            )
        return output

    def _refuse_none(self, answer: Any) -> None:
        """Refuse None, which is nearly always a forgotten return; an empty :class:`Output` is silence on purpose."""
        if answer is None and self.stack.publishes_when_empty:
            commands = self.stack.answers == ("control",)
            what = "return a Control at every call" if commands else "return [] where it detects nothing"
            raise InfrastructureError(
                f"stack '{self.stack.name}': the callable {self.stack.callable} returned None; is a return statement "
                f"missing? {what}, or, if None means that it has no answer, write publishes_when_empty: false into the "
                "stack file"
            )

    def _refuse_boxes(self, answer: Any) -> None:
        """Refuse rows of numbers, which are read as boxes, of a stack that says none."""
        boxes, known = {"detections", "boxes"}, (Output, *_ROLE_OF)
        if answer is None or isinstance(answer, known) or boxes & set(self.stack.outputs):
            return
        raise InfrastructureError(
            f"the callable returned {type(answer).__name__} {answer!r:.200}, expected an Output of "
            f"mt_nodes.data.outputs, as outputs of the stack file promise {', '.join(self.stack.outputs)}"
        )

    def _promised(self, output: Output) -> Output:
        """Return nothing seen as nothing of what the stack file promises: an empty list is of no kind."""
        promised, detections, boxes = self.stack.outputs, output.detections, output.boxes
        if (
            boxes is None
            and detections is not None
            and not len(detections)
            and "detections" not in promised
            and "boxes" in promised
        ):
            return replace(output, detections=None, boxes=ImageBoxes.none(detections.frame_id, detections.stamp_ns))
        if (
            detections is None
            and boxes is not None
            and not len(boxes)
            and "boxes" not in promised
            and "detections" in promised
        ):
            return replace(output, boxes=None, detections=Detections.none(boxes.frame_id, boxes.stamp_ns))
        return output

    def _by_role(self, sensors: Mapping[str, Message], transforms: TransformTree) -> dict[str, Any]:
        """Return the inputs of a callable with several: one value per role, a tuple for several topics of a role."""
        given: dict[str, Any] = {}
        for role, topics in self.stack.topics.items():
            values = tuple(self._data(sensors[topic], transforms) for topic in topics)
            given[BY_ROLE[role]] = values if len(values) > 1 else values[0]
        return given

    def _data(self, sensor: Message, transforms: TransformTree) -> Any:
        if isinstance(sensor, Radar):
            return as_radar(sensor, self.stack.points_frame or sensor.frame_id, transforms)
        if isinstance(sensor, Cloud):
            return as_points(sensor, self.stack.points_frame or sensor.frame_id, transforms)
        if isinstance(sensor, WorldMessage):
            return sensor.stamped
        if not isinstance(sensor, Image):
            return sensor
        from mt_nodes.data.images.codecs import decode  # imports OpenCV

        return decode(sensor).rgb8()


def _picture_frame(sensor: Message | Mapping[str, Message], frame: str) -> str:
    """Return the frame of the picture that boxes in one are in, which is never that of points."""
    messages = sensor.values() if isinstance(sensor, Mapping) else (sensor,)
    return next((message.frame_id for message in messages if isinstance(message, Image)), frame)


@contextmanager
def refuse_fork(stack: str) -> Iterator[None]:
    """End this process if the block forks and returns in the child: both would answer, and fork again at the next call.

    The child kills its parent, so that whoever waits for an answer notices, and ends itself.
    """
    own = os.getpid()
    yield
    if os.getpid() != own:
        print(
            f"stack '{stack}': its callable forked and returned in the child, too; end such a child by os._exit, or "
            "use multiprocessing or subprocess",
            file=sys.stderr,
            flush=True,
        )
        if os.getppid() == own:
            os.kill(own, signal.SIGKILL)
        os._exit(1)


def as_points(cloud: Cloud, frame: str, transforms: TransformTree) -> Singles:
    """Return a cloud as (N, 4) float32 x, y, z, intensity in the frame given (intensity 0 if it has none)."""
    points = np.empty((len(cloud), 4), dtype=np.float32)
    # Column by column: NumPy takes ten times as long over rows of three.
    for i, name in enumerate("xyz"):
        points[:, i] = cloud.points[name]
    if frame != cloud.frame_id:
        matrix = transforms.lookup(frame, cloud.frame_id)
        if np.array_equal(matrix[:3, :3], np.eye(3)):
            with np.errstate(invalid="ignore", over="ignore"):  # NaN and infinite points stay
                for i in range(3):
                    points[:, i] += matrix[i, 3].astype(np.float32)
        else:
            points[:, :3] = move(matrix, points[:, :3])
    field = cloud.intensity_field
    points[:, 3] = cloud.points[field] if field else 0.0
    return points


def as_radar(radar: Radar, frame: str, transforms: TransformTree) -> Singles:
    """Return a radar's detections (N, 6) float32 in the frame given.

    The columns are x, y, z in metres, range rate in m/s (positive: away from the sensor), strength in dB, and the
    azimuth in radians, about z of that frame, of the ray from the sensor, along which the range rate is measured.
    """
    matrix, xyz = transforms.lookup(frame, radar.frame_id), radar.xyz
    ray = xyz @ matrix[:3, :3].T
    columns = (ray + matrix[:3, 3], radar.doppler_mps, radar.strength_db, np.arctan2(ray[:, 1], ray[:, 0]))
    return np.column_stack(columns).astype(np.float32)


def as_command(value: Any) -> Control | Output | None:
    """Return the answer of a callable that only commands; a mapping of fields of a command becomes one.

    Raises InfrastructureError: it cannot be read.
    """
    if value is None or isinstance(value, (Control, Output)):
        return value
    try:
        if isinstance(value, Mapping) and value and set(value) <= set(COMMAND):
            return Control(None, **{name: float(number) for name, number in value.items()})
    except (TypeError, ValueError):
        pass
    text = repr(value)
    raise InfrastructureError(
        f"the callable returned {type(value).__name__} {text if len(text) <= 200 else f'{text[:200]}…'}, expected "
        "Control(None, speed_mps=…, steering_rad=…) of mt_nodes.data.outputs, or a dict of some of "
        f"{', '.join(COMMAND)}"
    )


def as_output(value: Any, frame: str, stamp_ns: int, boxes: str = CENTRE) -> Output:
    """Turn a return value into an :class:`Output`; ``boxes`` is its convention, see :mod:`box_conventions`.

    Raises InfrastructureError: it cannot be read.
    """
    if value is None:
        value = Output()
    elif role := next((role for kind, role in _ROLE_OF.items() if isinstance(value, kind)), ""):
        value = Output(**{role: value})
    if isinstance(value, Output):
        return _stamped(value, frame, stamp_ns)
    value = plain_array(value)
    if is_table(value):
        return read_table(value, frame, stamp_ns, boxes)
    try:
        if np.iscomplexobj(value):  # NumPy would drop the imaginary part
            raise TypeError("complex numbers")
        rows = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        text = repr(value) if len(repr(value)) <= 200 else f"{repr(value)[:200]}…"
        raise InfrastructureError(
            f"the callable returned {type(value).__name__} {text}, which is no array of numbers; {EXPECTED}"
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


def _stamped(output: Output, frame: str, stamp_ns: int) -> Output:
    """Return an output with the stamp of its input, and a frame where it has none."""
    placed = {
        role: replace(part, stamp_ns=stamp_ns, frame_id=part.frame_id or frame)
        for role in ROLES
        if role != "control" and (part := getattr(output, role)) is not None
    }
    if isinstance(predictions := placed.get("predictions"), PredictedObjects):
        objects = replace(predictions.objects, stamp_ns=stamp_ns, frame_id=predictions.objects.frame_id or frame)
        placed["predictions"] = replace(predictions, objects=objects)
    control = None if output.control is None else replace(output.control, stamp_ns=stamp_ns)
    return replace(output, control=control, **placed)
