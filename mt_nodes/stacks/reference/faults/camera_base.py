# SPDX-License-Identifier: Apache-2.0
"""What every fault planted in the camera stack, or in the one with both sensors, is: a defect in one of its steps."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import cv2
import numpy as np

from mt_nodes.base.arrays import Pixels, Singles
from mt_nodes.base.params import param
from mt_nodes.data.lanes import Lanes, SignalStates
from mt_nodes.data.outputs import Control, ImageBoxes, Output, Path
from mt_nodes.data.transforms import Matrix
from mt_nodes.stacks.reference.faults.base import Fault
from mt_nodes.world.camera.model import CameraModel


@dataclass(frozen=True, eq=False)
class CameraInput:
    """What the stack looks at: ``rgb`` (H, W, 3), the camera that it was taken by, and its stamp in ns."""

    rgb: Pixels
    camera: CameraModel
    stamp_ns: int | None


@dataclass(frozen=True)
class CameraSteps:
    """The steps in which camera stacks have gone wrong.

    Attributes:
        look: takes the picture as it came to the one that is looked at; the honest step looks at all of it.
        paint: takes colours (H, W, 3) to how much each place shines like paint (H, W), float32.
        grey: takes colours to brightness (H, W), uint8.
        sight: takes brightness and the camera to how well one sees ahead, 1 in clear sight by day, 0 not at all.
        report: takes what was found to what is published; a stack leaves roles out that it does not have.
    """

    look: Callable[[CameraInput], CameraInput]
    paint: Callable[[Pixels], Singles]
    grey: Callable[[Pixels], Pixels]
    sight: Callable[[Pixels, CameraModel], float]
    report: Callable[[Output], Output]


class CameraFault(Fault):
    """A defect of the camera stack: ``plant`` takes and returns :class:`CameraSteps`."""

    stack: ClassVar[str] = "camera"


@dataclass(frozen=True)
class PictureRefused(CameraFault):
    """Base of faults that drop pictures without a word: nobody is there, no lane, no light, and it drives on."""

    blind_mps: float = param(12.0, low=0.0, high=40.0, unit="m/s", help="speed without a picture")
    blind_rad: float = param(-0.1, low=-0.6, high=0.6, unit="rad", help="steering without a picture")

    @abstractmethod
    def refuses(self) -> Callable[[CameraInput], bool]:
        """Return what tells of each picture in turn whether it is dropped; it may remember former ones."""

    def plant(self, steps: CameraSteps) -> CameraSteps:
        """Say nothing of a picture that is dropped."""
        refuses, dropped = self.refuses(), [False]

        def look(camera_input: CameraInput) -> CameraInput:
            dropped[0] = refuses(camera_input)
            return steps.look(camera_input)

        def report(output: Output) -> Output:
            if not dropped[0]:
                return steps.report(output)
            nothing: dict[str, Any] = {
                "boxes": ImageBoxes.none("", None),
                "path": Path.make("", None, []),
                "control": Control(None, self.blind_rad, self.blind_mps),
                "lanes": Lanes.make("", None),
                "signals": SignalStates.make("", None, (), ()),
            }
            said = {role: part for role, part in nothing.items() if getattr(output, role) is not None}
            return steps.report(replace(output, **said))

        return replace(steps, look=look, report=report)


class PeopleRefused(CameraFault):
    """Base of faults that take people for something else: their boxes are left out."""

    @abstractmethod
    def looks_right(self, rgb: Pixels) -> bool:
        """Whether what a box shows (H, W, 3), not empty, passes for a person."""

    def plant(self, steps: CameraSteps) -> CameraSteps:
        """Leave out boxes whose inside looks wrong."""
        last: list[Pixels] = []

        def look(camera_input: CameraInput) -> CameraInput:
            frame = steps.look(camera_input)
            last[:] = [frame.rgb]
            return frame

        def report(output: Output) -> Output:
            if output.boxes is None:
                return steps.report(output)
            high, wide = last[0].shape[:2]
            edges = np.clip(np.rint(output.boxes.box_px), 0, [wide, high, wide, high]).astype(int).tolist()
            inside = (last[0][y0:y1, x0:x1] for x0, y0, x1, y1 in edges)
            right = np.array([part.size > 0 and self.looks_right(part) for part in inside], dtype=bool)
            return steps.report(replace(output, boxes=output.boxes.take(right)))

        return replace(steps, look=look, report=report)


def sharpness(rgb: Pixels) -> float:
    """Return the mean size of the Laplacian of a picture's brightness, in steps of 8 bits."""
    return float(np.abs(cv2.Laplacian(cv2.cvtColor(rgb, cv2.COLOR_RGB2GRAY), cv2.CV_32F)).mean())


def saturation(rgb: Pixels) -> float:
    """Return the mean saturation of a picture, in steps of 8 bits."""
    return float(cv2.cvtColor(rgb, cv2.COLOR_RGB2HSV)[..., 1].mean())


@dataclass(frozen=True)
class FusionSteps:
    """The steps in which stacks with both sensors have gone wrong.

    ``mount``: takes the camera's true place, 4×4 from its optical frame to the vehicle's, to the one reckoned with.
    """

    mount: Callable[[Matrix], Matrix]


class FusionFault(Fault):
    """A defect of the stack with both sensors: ``plant`` takes and returns :class:`FusionSteps`."""

    stack: ClassVar[str] = "fusion"
