# SPDX-License-Identifier: Apache-2.0
"""Base class of all checks of one stream: what it demands of an instant, given what it has seen before."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

from mt_nodes.data.messages import Bundle
from mt_nodes.data.outputs import ImageBoxes, Output


@dataclass(frozen=True, eq=False)
class WatchedInstant:
    """What a stack was given and what it answered.

    ``bundle``: sensor messages, transforms and, where it is known, the ego's motion. ``other_boxes``: boxes in the
    images of further cameras.
    """

    bundle: Bundle
    output: Output
    other_boxes: tuple[ImageBoxes, ...] = ()

    @property
    def stamp_ns(self) -> int:
        """Stamp of the leading sensor."""
        return self.bundle.stamp_ns

    @property
    def boxes(self) -> tuple[ImageBoxes, ...]:
        """Boxes in the images of all cameras, one entry an image."""
        return (*(() if self.output.boxes is None else (self.output.boxes,)), *self.other_boxes)


class Breach(NamedTuple):
    """Something that must not be.

    ``subject``: of whom, such as a track's id: breaches of one subject in a row are one event. ``range_m``: how far
    away, None for what is of no place. ``measured``, ``bound``: in ``unit``. ``since_ns``: stamp at which it began.
    """

    subject: str
    range_m: float | None
    measured: float
    bound: float
    unit: str
    reason: str
    since_ns: int


class StreamFinding(NamedTuple):
    """What came of one instant.

    ``ranges_m``: of everything that could have been in breach, its distance, None for what is of no place. Empty: there
    was nothing to watch, and ``why`` says for what reason.
    """

    ranges_m: tuple[float | None, ...]
    breaches: tuple[Breach, ...] = ()
    why: str = ""


def nothing_watched(why: str) -> StreamFinding:
    """Return that there was nothing to watch."""
    return StreamFinding((), (), why)


class StreamMemory(ABC):
    """What a check has seen so far, bounded in size; it is made anew after a gap in the stream."""

    @abstractmethod
    def look(self, instant: WatchedInstant) -> StreamFinding:
        """Take in the next instant, whose stamp is later than that of the one before."""


class StreamCheck(ABC):
    """A demand on one stream. Subclasses are frozen dataclasses whose fields are their parameters.

    Every demand is of a sound stack: no comparison tells what a stack does of itself. So each has a tolerance.
    """

    #: What the check needs: of each row at least one, of outputs of the stack, its sensors, and ``second camera``.
    needs: ClassVar[tuple[tuple[str, ...], ...]]
    #: One sentence for people: what must hold.
    because: ClassVar[str]

    @abstractmethod
    def begin(self) -> StreamMemory:
        """Return a memory without anything in it."""


@dataclass(eq=False)
class LastingDisagreements:
    """Disagreements that go on: those of one instant alone are noise at a threshold.

    ``for_ns``: so long must one go on. Two of instants in a row are one if ``same`` says so of their keys.
    """

    for_ns: int
    same: Callable[[Any, Any], bool]
    _open: list[tuple[Any, int, str]] = field(default_factory=list)
    _count: int = 0

    def update(self, stamp_ns: int, keys: Sequence[Any]) -> list[tuple[int, str, int]]:
        """Take the disagreements of an instant; return of those that last row, subject and first stamp."""
        rows, lasting = [], []
        free = list(self._open)
        for row, key in enumerate(keys):
            at = next((i for i, each in enumerate(free) if self.same(each[0], key)), None)
            if at is None:
                self._count += 1
                since_ns, subject = stamp_ns, f"#{self._count}"
            else:
                _, since_ns, subject = free.pop(at)
            rows.append((key, since_ns, subject))
            if stamp_ns - since_ns >= self.for_ns:
                lasting.append((row, subject, since_ns))
        self._open = rows
        return lasting
