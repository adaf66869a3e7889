# SPDX-License-Identifier: Apache-2.0
"""An arm gives inputs to one instance of the stack and hears its answers; here: without topics."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from mt_nodes.engine import Answer, Heard
from mt_nodes.errors import InfrastructureError, MtError
from mt_nodes.frames import Bundle, CameraInfo, Cloud, Image
from mt_nodes.joining import lacking
from mt_nodes.outputs import Control, Detections, Diagnostics, ImageBoxes, Output
from mt_nodes.stacks import Stack, load_callable
from mt_nodes.transforms import TransformTree, UnknownTransform, move

Sensor = Cloud | Image | CameraInfo
#: What a callable of several inputs calls those of a role.
BY_ROLE = {"lidar": "points", "camera": "image", "camera_info": "camera_info"}


@dataclass(frozen=True)
class Unasked:
    """The ticket of an input that no answer can be expected to, and why."""

    reason: str

    @property
    def answer(self) -> Answer:
        """What is heard of it."""
        return Answer.nothing(Heard.UNASKED, self.reason)


class Arm(Protocol):
    """One instance of the stack under test. A ticket is what :meth:`send` returns and :meth:`wait` takes."""

    name: str

    def start(self) -> None:
        """Start the stack; several arms start side by side."""

    def restart(self) -> None:
        """Make the stack forget all it has seen, by starting it anew."""

    def ready(self) -> None:
        """Wait until a stack that was started can answer."""

    def begin_episode(self) -> None:
        """Say that time starts anew."""

    def last_words(self) -> Diagnostics | None:
        """Return what was told of errors since the last answer; None where nobody tells any. Nothing is waited for."""

    def pass_time(self, stamp_ns: int) -> None:
        """Let the stack's time go on to an instant, at the pace ``realtime``."""

    def send(
        self,
        bundle: Bundle,
        changed: frozenset[str],
        source_ns: int | None = None,
        delay_ns: int = 0,
        late: Sequence[Bundle] = (),
    ) -> Any:
        """Give the stack a bundle; topics not in ``changed`` go out as recorded.

        The stack's time goes on to ``delay_ns`` after the instant of the recording, ``source_ns`` (the bundle's own
        stamp where it is not given); it never goes back. What is ``late`` of the same input comes with :meth:`pass_by`.
        To an input that lacks what the stack needs for an answer, none is expected: the ticket is :class:`Unasked`.
        """

    def pass_by(
        self,
        bundle: Bundle,
        changed: frozenset[str] = frozenset(),
        source_ns: int | None = None,
        delay_ns: int = 0,
    ) -> None:
        """Let the stack's time go on, as :meth:`send` does, and publish a bundle; no answer is expected."""

    def wait(self, ticket: Any, until_s: float | None = None) -> Answer | None:
        """Return the answer, or silence at its deadline; None when monotonic ``until_s`` comes before both.

        Without ``until_s`` the run waits for the stack, so the stack's time goes on meanwhile.
        """

    def stop(self) -> None:
        """End the stack and free what it held."""


@dataclass(frozen=True)
class CallableHost:
    """Feeds bundles to a Python callable; used in process and by the node that hosts callables.

    The callable takes points (N, 4) float32 ``x y z intensity`` (or an image (H, W, 3) uint8: red, green, blue,
    whatever its encoding) and, if it has a parameter ``stamp_ns``, the stamp, if it has ``now_ns``, the stack's time
    (None from an arm that does not tell it). It returns :class:`Detections`, :class:`Control`, :class:`ImageBoxes`,
    several of these as an :class:`Output`, or an array (M, 7…9) of ``x y z length width height yaw [score [class
    number]]``.

    A callable whose stack file has several inputs takes a mapping of one instant instead: ``points``, ``image`` and
    ``camera_info`` (:class:`CameraInfo`), as far as the file has them, each a tuple where it has several topics of one
    role, in its order.
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
        self, sensor: Sensor | Mapping[str, Sensor], transforms: TransformTree, now_ns: int | None = None
    ) -> Output:
        """Return what the callable says of one message (or of one instant, by topic of the stack), stamped.

        What has no frame is in that of the leading sensor.
        """
        lead = sensor[self.stack.leading_topic] if isinstance(sensor, Mapping) else sensor
        frame = self.stack.points_frame or lead.frame_id
        data = self._by_role(sensor, transforms) if isinstance(sensor, Mapping) else self._data(sensor, transforms)
        extra: dict[str, int | None] = {"stamp_ns": lead.stamp_ns} if self.takes_stamp else {}
        extra |= {"now_ns": now_ns} if self.takes_now else {}
        output = as_output(self.function(data, **extra), frame, lead.stamp_ns)
        lacking = [role for role in self.stack.answers if getattr(output, role) is None]
        if lacking and not output.silent:
            raise InfrastructureError(
                f"stack '{self.stack.name}': the callable said no {', '.join(lacking)}, which outputs in the stack "
                "file promise; return them, or name what it returns under outputs"
            )
        return output

    def _by_role(self, sensors: Mapping[str, Sensor], transforms: TransformTree) -> dict[str, Any]:
        """Return what a callable of several inputs is given: one value a role, a tuple where the role has several."""
        given: dict[str, Any] = {}
        for role, topics in self.stack.topics.items():
            values = tuple(self._data(sensors[topic], transforms) for topic in topics)
            given[BY_ROLE[role]] = values if len(values) > 1 else values[0]
        return given

    def _data(self, sensor: Sensor, transforms: TransformTree) -> Any:
        if isinstance(sensor, Cloud):
            return as_points(sensor, self.stack.points_frame or sensor.frame_id, transforms)
        if not isinstance(sensor, Image):
            return sensor
        from mt_nodes.camera.codecs import decode  # OpenCV is for stacks with cameras

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


def as_output(said: Any, frame: str, stamp_ns: int) -> Output:
    """Turn what a callable returned into an :class:`Output`.

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
    rows = np.asarray(said, dtype=np.float64)
    if rows.size == 0:
        return Output(detections=Detections.none(frame, stamp_ns))
    if rows.ndim != 2 or not 7 <= rows.shape[1] <= 9:
        raise InfrastructureError(
            f"the callable returned an array of shape {rows.shape}, expected (M, 7), (M, 8) or (M, 9): "
            "x y z length width height yaw [score [class number]]"
        )
    score = rows[:, 7] if rows.shape[1] > 7 else None
    label = [str(int(c)) for c in rows[:, 8]] if rows.shape[1] > 8 else None
    boxes = Detections.make(frame, stamp_ns, rows[:, :3], rows[:, 3:6], rows[:, 6], label, score)
    return Output(detections=boxes)


def _stamped(said: Output, frame: str, stamp_ns: int) -> Output:
    """A callable says what it sees; which instant that is, its host knows."""
    placed = {
        role: replace(part, stamp_ns=stamp_ns, frame_id=part.frame_id or frame)
        for role in ("detections", "path", "boxes")
        if (part := getattr(said, role)) is not None
    }
    control = None if said.control is None else replace(said.control, stamp_ns=stamp_ns)
    return replace(said, control=control, **placed)


class CallableArm:
    """An arm in this very process: no topics, no clock but the instants of what is sent; the call is the answer."""

    _now_ns = 0

    def __init__(self, name: str, stack: Stack, topics: Mapping[str, str] | frozenset[str]) -> None:
        """Make the callable.

        Args:
            name: of the arm.
            stack: what is called.
            topics: topic of a bag -> topic of the stack that it is given as; a set are all the leading one.
        """
        self.name = name
        self._stack = stack
        self._inputs = topics if isinstance(topics, Mapping) else dict.fromkeys(topics, stack.leading_topic)
        self._host = CallableHost.make(stack)

    def start(self) -> None:
        """Nothing to do: the callable was made."""

    def ready(self) -> None:
        """Nothing to wait for."""

    def begin_episode(self) -> None:
        """Say that time starts anew."""
        self._now_ns = 0

    def last_words(self) -> None:
        """Nothing: a callable tells all with its answers."""

    def pass_time(self, stamp_ns: int) -> None:
        """Nothing to do: a callable has no clock."""

    def stop(self) -> None:
        """Nothing to free."""

    def restart(self) -> None:
        """Make the callable anew."""
        self._host = CallableHost.make(self._stack)

    def send(
        self,
        bundle: Bundle,
        changed: frozenset[str],
        source_ns: int | None = None,
        delay_ns: int = 0,
        late: Sequence[Bundle] = (),
    ) -> Bundle | Unasked:
        """Keep the bundle, and when it comes: the call happens in :meth:`wait`."""
        self._now_ns = max(self._now_ns, (bundle.stamp_ns if source_ns is None else source_ns) + delay_ns)
        whole = bundle.joined_with(late)
        reason = lacking(self._stack, self._inputs, whole.messages)
        return whole if reason is None else Unasked(reason)

    def pass_by(
        self,
        bundle: Bundle,
        changed: frozenset[str] = frozenset(),
        source_ns: int | None = None,
        delay_ns: int = 0,
    ) -> None:
        """Let time go on: a callable sees whole inputs only."""
        self._now_ns = max(self._now_ns, (bundle.stamp_ns if source_ns is None else source_ns) + delay_ns)

    def wait(self, ticket: Bundle | Unasked, until_s: float | None = None) -> Answer:
        """Call, and time the call.

        Raises:
            InfrastructureError: the callable raised; that is the death of an in-process stack.
            UsageError: no transform leads to the frame it asks for.
        """
        if isinstance(ticket, Unasked):
            return ticket.answer
        sensors = {self._inputs[m.topic]: m for m in ticket.messages if m.topic in self._inputs}
        lead = sensors[self._stack.leading_topic]
        began = time.monotonic()
        try:
            output = self._host(sensors if self._stack.joins else lead, ticket.transforms, self._now_ns)
        except UnknownTransform as error:
            where = f"{lead.topic} of bundle {ticket.index} at {ticket.stamp_ns} ns"
            raise UnknownTransform(f"{where}: {error}") from error
        except MtError:
            raise
        except (Exception, SystemExit) as error:  # a stack's exit is the stack's, not ours
            raise InfrastructureError(f"stack '{self._stack.name}' raised {type(error).__name__}: {error}") from error
        if output.silent:
            return Answer.nothing(Heard.SILENT, "the callable returned None")
        return Answer(Heard.ANSWERED, replace(output, answer_ms=1e3 * (time.monotonic() - began)))
