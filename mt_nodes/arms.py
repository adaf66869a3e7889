# SPDX-License-Identifier: Apache-2.0
"""An arm gives inputs to one instance of the stack and hears its answers; here: without topics."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from mt_nodes.engine import Answer, Heard
from mt_nodes.errors import InfrastructureError, MtError
from mt_nodes.frames import Bundle, Cloud, Image
from mt_nodes.outputs import Control, Detections, Output
from mt_nodes.stacks import Stack, load_callable
from mt_nodes.transforms import TransformTree, UnknownTransform, move


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

    def pass_time(self, stamp_ns: int) -> None:
        """Let the stack's time go on to an instant, at the pace ``realtime``."""

    def send(self, bundle: Bundle, changed: frozenset[str], source_ns: int | None = None, delay_ns: int = 0) -> Any:
        """Give the stack a bundle; topics not in ``changed`` go out as recorded.

        The stack's time goes on to ``delay_ns`` after the instant of the recording, ``source_ns`` (the bundle's own
        stamp where it is not given); it never goes back.
        """

    def pass_by(self, bundle: Bundle) -> None:
        """Let the stack's time go on to a bundle's instant and publish its ``wires``; no answer is expected."""

    def wait(self, ticket: Any, until_s: float | None = None) -> Answer | None:
        """Return the answer, or silence at its deadline; None when monotonic ``until_s`` comes before both.

        Without ``until_s`` the run waits for the stack, so the stack's time goes on meanwhile.
        """

    def stop(self) -> None:
        """End the stack and free what it held."""


@dataclass(frozen=True)
class CallableHost:
    """Feeds bundles to a Python callable; used in process and by the node that hosts callables.

    The callable takes points (N, 4) float32 ``x y z intensity`` (or an image (H, W, 3)) and, if it has a parameter
    ``stamp_ns``, the stamp. It returns :class:`Detections`, :class:`Control`, or an array (M, 7…9) of
    ``x y z length width height yaw [score [class number]]``.
    """

    function: Callable[..., Any]
    stack: Stack
    takes_stamp: bool

    @classmethod
    def make(cls, stack: Stack) -> CallableHost:
        """Import and construct the stack's callable."""
        function = load_callable(stack)
        try:
            names = inspect.signature(function).parameters
        except (TypeError, ValueError):
            names = {}  # type: ignore[assignment]
        return cls(function, stack, "stamp_ns" in names)

    def __call__(self, sensor: Cloud | Image, transforms: TransformTree) -> Output:
        """Return what the callable says of one message, stamped and in its frame."""
        frame = self.stack.points_frame or sensor.frame_id
        data = as_points(sensor, frame, transforms) if isinstance(sensor, Cloud) else sensor.pixels
        extra = {"stamp_ns": sensor.stamp_ns} if self.takes_stamp else {}
        output = as_output(self.function(data, **extra), frame, sensor.stamp_ns)
        lacking = [role for role in self.stack.answers if getattr(output, role) is None]
        if lacking and not output.silent:
            raise InfrastructureError(
                f"stack '{self.stack.name}': the callable said no {', '.join(lacking)}, which outputs in the stack "
                "file promise; return them, or name what it returns under outputs"
            )
        return output


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
    seen, control = said.detections, said.control
    return replace(
        said,
        detections=None if seen is None else replace(seen, stamp_ns=stamp_ns, frame_id=seen.frame_id or frame),
        control=None if control is None else replace(control, stamp_ns=stamp_ns),
    )


class CallableArm:
    """An arm in this very process: no topics, no clock; the call is the answer."""

    def __init__(self, name: str, stack: Stack, topics: frozenset[str]) -> None:
        """Make the callable; ``topics`` are those of the leading sensor, whichever bag it comes from."""
        self.name = name
        self._stack = stack
        self._topics = topics
        self._host = CallableHost.make(stack)

    def start(self) -> None:
        """Nothing to do: the callable was made."""

    def ready(self) -> None:
        """Nothing to wait for."""

    def begin_episode(self) -> None:
        """Nothing to do: a callable has no clock."""

    def pass_time(self, stamp_ns: int) -> None:
        """Nothing to do: a callable has no clock."""

    def stop(self) -> None:
        """Nothing to free."""

    def restart(self) -> None:
        """Make the callable anew."""
        self._host = CallableHost.make(self._stack)

    def send(self, bundle: Bundle, changed: frozenset[str], source_ns: int | None = None, delay_ns: int = 0) -> Bundle:
        """Keep the bundle: the call happens in :meth:`wait`."""
        return bundle

    def pass_by(self, bundle: Bundle) -> None:
        """Nothing to do: a callable sees the leading sensor only."""

    def wait(self, ticket: Bundle, until_s: float | None = None) -> Answer:
        """Call, and time the call.

        Raises:
            InfrastructureError: the callable raised; that is the death of an in-process stack.
            UsageError: no transform leads to the frame it asks for.
        """
        sensor = next(m for m in ticket.messages if m.topic in self._topics)
        began = time.monotonic()
        try:
            output = self._host(sensor, ticket.transforms)  # type: ignore[arg-type]
        except UnknownTransform as error:
            where = f"{sensor.topic} of bundle {ticket.index} at {ticket.stamp_ns} ns"
            raise UnknownTransform(f"{where}: {error}") from error
        except MtError:
            raise
        except (Exception, SystemExit) as error:  # a stack's exit is the stack's, not ours
            raise InfrastructureError(f"stack '{self._stack.name}' raised {type(error).__name__}: {error}") from error
        if output.silent:
            return Answer.nothing(Heard.SILENT, "the callable returned None")
        return Answer(Heard.ANSWERED, replace(output, answer_ms=1e3 * (time.monotonic() - began)))
