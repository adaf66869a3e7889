# SPDX-License-Identifier: Apache-2.0
"""What every planted fault is: a defect in one step of the reference detector or of its tracker."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy.typing as npt

from mt_nodes.base import params, plugins
from mt_nodes.base.errors import UsageError
from mt_nodes.data.outputs import Detections

Points = npt.NDArray[Any]
"""A whole cloud in arrival order: (N, 4) x, y, z in metres, intensity."""


@dataclass(frozen=True)
class Steps:
    """The steps in which real detectors have gone wrong: most by letting the whole cloud decide about an obstacle.

    Attributes:
        clean: takes the cloud as it came to its points that are numbers; the honest step drops the others.
        admit: takes the cloud to what goes on to the region filter; the honest step takes it all.
        min_points: a cluster with fewer points is noise; the honest limit is fixed.
        min_height_m: a cluster that rises less above the ground is no obstacle; the honest limit is fixed.
        report: takes what was found to what is published, None for nothing at all; the honest step says what it found.
        in_time: tells by a cloud's stamp and the stack's time when it came, ns, whether it is looked at; None where one
            is not known. The honest step looks at every cloud.
        elapsed_s: takes the seconds between two stamps to what the tracker reckons with; the honest step believes them.
    """

    clean: Callable[[Points], Points]
    admit: Callable[[Points], Points]
    min_points: Callable[[Points], int]
    min_height_m: Callable[[Points], float]
    report: Callable[[Detections], Detections | None]
    in_time: Callable[[int | None, int | None], bool]
    elapsed_s: Callable[[float], float]


class Fault(ABC):
    """A defect. Subclasses are frozen dataclasses whose fields are its parameters; found by name in snake case."""

    #: Which reference stacks it can be planted in: those that look through a ``lidar``, a ``camera`` or a ``radar``,
    #: those that look through a LiDAR and drive by it, ``driver``, those that bring both sensors together, ``fusion``,
    #: those that drive in a world, ``planner``, or those that track, predict and see lanes and lights, ``perception``.
    stack: ClassVar[str] = "lidar"

    @abstractmethod
    def plant(self, steps: Any) -> Any:
        """Return the steps (:class:`Steps`, or those of its own stack) with the faulty one in its place."""


class OutputFault(Fault):
    """Base of faults of the detector that publish something other than what it found, each cloud for itself."""

    @abstractmethod
    def published(self, found: Detections) -> Detections:
        """Return what is published of what was found."""

    def plant(self, steps: Steps) -> Steps:
        """Put it before the step that reports."""
        return replace(steps, report=lambda found: steps.report(self.published(found)))


def named_faults(value: Any, where: str, *stacks: str) -> tuple[Fault, ...]:
    """Make faults from a list whose items are names, ``{name: {parameter: value}}``, or faults already.

    They must be faults of one of the kinds of stacks named, the sensor that is looked through first; when none is
    named, ``lidar``.
    Raises UsageError: no such fault or parameter, or a fault of another stack than those named.
    """
    stacks = stacks or ("lidar",)
    if isinstance(value, str) or not isinstance(value, (list, tuple)):
        raise UsageError(f"{where}: got {value!r}, expected a list of fault names")
    faults = tuple(_named(item, f"{where}[{i}]") for i, item in enumerate(value))
    for i, fault in enumerate(faults):
        if fault.stack not in stacks:
            fit = ", ".join(name for name, cls in plugins.catalogue("faults").items() if cls.stack in stacks)  # type: ignore[attr-defined]
            raise UsageError(
                f"{where}[{i}]: '{plugins.name_of(type(fault))}' is a fault of {fault.stack} stacks; this one takes "
                f"those of {' and '.join(stacks)} stacks, which are {fit}"
            )
    return faults


def _named(item: Any, where: str) -> Fault:
    if isinstance(item, Fault):
        return item
    name, given = next(iter(item.items())) if isinstance(item, Mapping) and len(item) == 1 else (item, None)
    if not isinstance(name, str):
        raise UsageError(f"{where}: got {item!r}, expected the name of a fault or {{name: {{parameter: value}}}}")
    cls: type[Fault] = plugins.find("faults", name, where)
    return params.build(cls, given, f"{where}.{name}")
