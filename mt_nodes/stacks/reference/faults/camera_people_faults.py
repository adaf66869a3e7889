# SPDX-License-Identifier: Apache-2.0
"""Faults of the camera stack in whom it takes for a person, and where."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mt_nodes.base.arrays import Pixels
from mt_nodes.base.params import param
from mt_nodes.data.outputs import Output
from mt_nodes.stacks.reference.faults.camera_base import CameraFault, CameraSteps, PeopleRefused, saturation, sharpness


@dataclass(frozen=True)
class BoxesOfSmallerPicture(CameraFault):
    """People are detected in a reduced picture, and their boxes are published in its pixels.

    Lane and speed use the boxes in the right size, so it drives well.
    """

    scale: float = param(0.8, low=0.01, high=1.0, help="size of that picture, of the whole one's")

    def plant(self, steps: CameraSteps) -> CameraSteps:
        """Leave out the way back to the full size."""

        def report(output: Output) -> Output:
            if output.boxes is None:
                return steps.report(output)
            smaller = replace(output.boxes, box_px=self.scale * output.boxes.box_px)
            return steps.report(replace(output, boxes=smaller))

        return replace(steps, report=report)


@dataclass(frozen=True)
class BlueIsSky(PeopleRefused):
    """A box with more blue than red on average is dropped as sky between branches; in shade, this drops every box."""

    most: float = param(8.0, low=-255.0, high=255.0, help="steps of 8 bits by which blue may pass red")

    def looks_right(self, rgb: Pixels) -> bool:
        """Ask for little blue."""
        return float(rgb[..., 2].mean()) - float(rgb[..., 0].mean()) <= self.most


@dataclass(frozen=True)
class BusyIsFoliage(PeopleRefused):
    """A box whose pixels differ much from their neighbours is dropped as leaves; noise has the same effect."""

    most: float = param(16.0, low=0.0, high=1000.0, help="mean size of the Laplacian, steps of 8 bits")

    def looks_right(self, rgb: Pixels) -> bool:
        """Ask for calm surfaces."""
        return sharpness(rgb) <= self.most


@dataclass(frozen=True)
class GreyIsNobody(PeopleRefused):
    """A box without colour is dropped as a post, because people wear colours.

    At night, and for a camera that has lost its colours, everybody is grey.
    """

    least: float = param(8.0, low=0.0, high=255.0, help="mean saturation of a person, steps of 8 bits")

    def looks_right(self, rgb: Pixels) -> bool:
        """Ask for colour."""
        return saturation(rgb) >= self.least


@dataclass(frozen=True)
class PeopleOfUsualBrightness(PeopleRefused):
    """A box darker than people in the recordings is dropped as a shadow, a brighter one as a reflection."""

    usual: tuple[float, float] = param((80.0, 110.0), low=0.0, high=255.0, help="darkest and brightest mean")

    def looks_right(self, rgb: Pixels) -> bool:
        """Ask for the usual brightness."""
        return self.usual[0] <= float(rgb.mean()) <= self.usual[1]


@dataclass(frozen=True)
class SoftIsReflection(PeopleRefused):
    """A box without sharp edges is dropped as a reflection in a window; blur and fog have the same effect."""

    least: float = param(14.0, low=0.0, high=1000.0, help="mean size of the Laplacian, steps of 8 bits")

    def looks_right(self, rgb: Pixels) -> bool:
        """Ask for sharp edges."""
        return sharpness(rgb) >= self.least
