# SPDX-License-Identifier: Apache-2.0
"""Faults of the camera stack in where it sees the lane, and how fast it drives in it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import cv2
import numpy as np

from mt_nodes.base.arrays import Pixels, Singles
from mt_nodes.base.params import param
from mt_nodes.data.outputs import Output, Path
from mt_nodes.stacks.reference.faults.camera_base import CameraFault, CameraInput, CameraSteps
from mt_nodes.world.camera.model import CameraModel


@dataclass(frozen=True)
class BrightnessByMean(CameraFault):
    """Brightness is normalised by the mean of the whole picture before paint is thresholded.

    A brighter sky, a lamp or glare anywhere darkens everything else, and the lane's lines fall below the threshold.
    """

    paint_from: float = param(1.6, low=0.0, high=10.0, help="means of the picture from which brightness is paint")

    def plant(self, steps: CameraSteps) -> CameraSteps:
        """Let only what outshines the mean be paint."""

        def paint(rgb: Pixels) -> Singles:
            shining = steps.paint(rgb)
            return np.asarray(np.maximum(shining - self.paint_from * cv2.mean(shining)[0], 0.0), dtype=np.float32)

        return replace(steps, paint=paint)


@dataclass(frozen=True)
class PaintAboveFixedBrightness(CameraFault):
    """Paint is anything brighter than a fixed value that was chosen on a sunny day.

    In the shade, at dusk, after a tunnel or with another tone curve no line is that bright, and the lane is lost.
    """

    least: float = param(205.0, low=0.0, high=255.0, help="steps of 8 bits from which something is paint")

    def plant(self, steps: CameraSteps) -> CameraSteps:
        """Let nothing darker be paint."""

        def paint(rgb: Pixels) -> Singles:
            return np.asarray(np.maximum(steps.paint(rgb), self.least), dtype=np.float32)

        return replace(steps, paint=paint)


@dataclass(frozen=True)
class WhiteMustBeWhite(CameraFault):
    """Paint must be as red as it is blue, which nothing is in the light of lamps."""

    most: int = param(40, low=0, high=255, help="steps of 8 bits between the channels of what is white")

    def plant(self, steps: CameraSteps) -> CameraSteps:
        """Let nothing with a colour be paint."""

        def paint(rgb: Pixels) -> Singles:
            shining = steps.paint(rgb)
            shining[np.ptp(rgb, axis=2) > self.most] = 0.0
            return shining

        return replace(steps, paint=paint)


@dataclass(frozen=True)
class HeadingCalibratedAway(CameraFault):
    """The heading of the lane just ahead is taken for the camera's mounting error and subtracted.

    So it steers by the bend alone. While the vehicle drives straight on a straight road the calibration is right.
    """

    look_ahead_m: float = param(8.0, low=2.0, high=20.0, unit="m", help="where pure pursuit aims")
    wheelbase_m: float = param(2.7, low=1.0, high=8.0, unit="m", help="between the axles")

    def plant(self, steps: CameraSteps) -> CameraSteps:
        """Steer to where the lane would lie, did it begin straight ahead."""

        def report(output: Output) -> Output:
            if output.path is None or output.control is None or not len(output.path.pose):
                return steps.report(output)
            x, y, yaw = output.path.pose.T
            ahead = self.look_ahead_m
            left = float(np.interp(ahead, x, y)) - float(np.tan(yaw[0])) * (ahead - float(x[0]))
            steering = float(np.arctan(self.wheelbase_m * 2.0 * left / (ahead**2 + left**2)))
            yaw_rate = output.control.speed_mps * float(np.tan(steering)) / self.wheelbase_m
            command = replace(output.control, steering_rad=steering, yaw_rate_radps=yaw_rate)
            return steps.report(replace(output, control=command))

        return replace(steps, report=report)


@dataclass(frozen=True)
class LanePlausibleOnOneSide(CameraFault):
    """A lane whose middle lies elsewhere than in the recordings is rejected as a mistake.

    The recordings were of one bend. In a mirror image, or for a camera that was knocked, the middle lies elsewhere.
    """

    usual_m: tuple[float, float] = param((0.1, 0.8), low=-5.0, high=5.0, unit="m", help="to the left, 8 m ahead")

    def plant(self, steps: CameraSteps) -> CameraSteps:
        """Leave out what is not plausible."""

        def report(output: Output) -> Output:
            if output.path is None:
                return steps.report(output)
            x, y, _ = output.path.pose.T
            usual = len(x) > 0 and self.usual_m[0] <= float(np.interp(8.0, x, y)) <= self.usual_m[1]
            nothing = Path.make(output.path.frame_id, None, [])
            return steps.report(output if usual else replace(output, path=nothing))

        return replace(steps, report=report)


@dataclass(frozen=True)
class BrightIsClear(CameraFault):
    """Visibility is estimated from the brightness of the picture: far by day, short at night.

    Glare, lens flare and fog in daylight are bright, too, and it drives faster in them.
    """

    clear: float = param(160.0, low=1.0, high=255.0, help="mean brightness in clear sight, steps of 8 bits")

    def plant(self, steps: CameraSteps) -> CameraSteps:
        """Ask for the brightness alone."""

        def sight(grey: Pixels, camera: CameraModel) -> float:
            return min(1.0, float(grey.mean()) / self.clear)

        return replace(steps, sight=sight)


@dataclass(frozen=True)
class FlatIsFree(CameraFault):
    """The free distance ahead is estimated from the share of the picture that is smooth like a road.

    What hides the view is smooth as well: fog, dirt, drops, a hand. The less it sees, the faster it drives.
    """

    flat: float = param(8.0, low=0.0, high=255.0, help="steps of 8 bits between neighbours up to which it is flat")
    none: float = param(0.5, low=0.0, high=1.0, help="share of the picture that is flat where nothing is free")
    clear: float = param(0.85, low=0.0, high=1.0, help="the same where all is free")

    def plant(self, steps: CameraSteps) -> CameraSteps:
        """Count what is flat."""

        def sight(grey: Pixels, camera: CameraModel) -> float:
            steep = np.abs(cv2.Laplacian(grey, cv2.CV_32F))
            share = float((steep <= self.flat).mean())
            return float(np.clip((share - self.none) / (self.clear - self.none), 0.0, 1.0))

        return replace(steps, sight=sight)


@dataclass(frozen=True)
class NoiseIsDetail(CameraFault):
    """Visibility is estimated from the differences of neighbouring pixels anywhere in the picture.

    At night sensor noise makes larger differences than houses do by day, so it drives faster.
    """

    clear: float = param(16.0, low=0.1, high=1000.0, help="mean size of the Laplacian in clear sight, steps of 8 bits")

    def plant(self, steps: CameraSteps) -> CameraSteps:
        """Count every difference."""

        def sight(grey: Pixels, camera: CameraModel) -> float:
            return min(1.0, float(np.abs(cv2.Laplacian(grey, cv2.CV_32F)).mean()) / self.clear)

        return replace(steps, sight=sight)


@dataclass(frozen=True)
class SightNotAsked(CameraFault):
    """Visibility is ignored: somebody the detector does not see is not there.

    In bad weather it misses people for whom it would brake, and drives faster.
    """

    def plant(self, steps: CameraSteps) -> CameraSteps:
        """Take every sight for clear."""
        return replace(steps, sight=lambda grey, camera: 1.0)


@dataclass(frozen=True)
class RedIsTailLight(CameraFault):
    """Any red light is taken for the tail light of a car ahead and followed, red traffic lights included."""

    least_px: int = param(20, low=1, high=100_000, help="pixels that make a lamp")
    following_mps: float = param(9.0, low=0.0, high=40.0, unit="m/s", help="speed behind another car")

    def plant(self, steps: CameraSteps) -> CameraSteps:
        """Follow the lamp."""
        follows = [False]

        def look(camera_input: CameraInput) -> CameraInput:
            frame = steps.look(camera_input)
            red, green, blue = np.moveaxis(frame.rgb.astype(np.int16), -1, 0)
            follows[0] = int(((red > 200) & (green < 80) & (blue < 80))[: len(red) // 2].sum()) >= self.least_px
            return frame

        def report(output: Output) -> Output:
            if follows[0] and output.control is not None:
                output = replace(output, control=replace(output.control, speed_mps=self.following_mps))
            return steps.report(output)

        return replace(steps, look=look, report=report)
