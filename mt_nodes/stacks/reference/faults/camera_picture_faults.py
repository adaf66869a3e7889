# SPDX-License-Identifier: Apache-2.0
"""Faults of the camera stack in the picture that it looks at, or refuses to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import cv2
import numpy as np

from mt_nodes.base.arrays import Pixels, Singles
from mt_nodes.base.params import param
from mt_nodes.data.transforms import Matrix, pose_matrix
from mt_nodes.stacks.reference.assumed_camera import assumed_camera
from mt_nodes.stacks.reference.faults.camera_base import (
    CameraFault,
    CameraInput,
    CameraSteps,
    FusionFault,
    FusionSteps,
    PictureRefused,
    saturation,
    sharpness,
)


@dataclass(frozen=True)
class BonnetMasked(CameraFault):
    """The lower part of each picture is blanked, where the bonnet was in the vehicle it was developed for.

    People nearby stand in that part, and without legs they are not detected.
    """

    share: float = param(0.35, low=0.0, high=0.5, help="of the picture's height")

    def plant(self, steps: CameraSteps) -> CameraSteps:
        """Blank it where people are looked for; the lane's lines are looked for elsewhere, with no mask."""

        def grey(rgb: Pixels) -> Pixels:
            masked = steps.grey(rgb).copy()
            masked[round(len(masked) * (1.0 - self.share)) :] = 0
            return masked

        return replace(steps, grey=grey)


@dataclass(frozen=True)
class CameraMountTurned(FusionFault):
    """The camera is assumed to look slightly to the side, as if its yaw had been entered with the wrong sign.

    A cluster is then matched with the person it seems to be next to, and the person's box moves to where nobody is.
    """

    yaw_deg: float = param(2.5, low=-45.0, high=45.0, unit="deg", help="by how much, positive to the left")

    def plant(self, steps: FusionSteps) -> FusionSteps:
        """Turn the camera about the upright axis."""
        half = np.radians(self.yaw_deg) / 2.0
        turn = pose_matrix((0.0, 0.0, 0.0), (0.0, 0.0, float(np.sin(half)), float(np.cos(half))))

        def mount(true: Matrix) -> Matrix:
            turned = steps.mount(true).copy()
            turned[:3, :3] = turn[:3, :3] @ turned[:3, :3]
            return turned

        return replace(steps, mount=mount)


@dataclass(frozen=True)
class ColoursSwapped(CameraFault):
    """The channels are read in the wrong order, so red and blue are swapped.

    White stays white, so by day nobody notices. In warm light paint is bright in red and green, but lines are searched
    in blue and green.
    """

    def plant(self, steps: CameraSteps) -> CameraSteps:
        """Turn the order of the channels around."""

        def look(camera_input: CameraInput) -> CameraInput:
            frame = steps.look(camera_input)
            return replace(frame, rgb=np.ascontiguousarray(frame.rgb[..., ::-1]))

        return replace(steps, look=look)


@dataclass(frozen=True)
class LeftColumnsLost(CameraFault):
    """The picture is cropped on the left, and the middle of the rest is taken for straight ahead.

    The lane is estimated a few centimetres too far to the left, whichever way it bends; in a mirror image that is the
    wrong side.
    """

    share: float = param(0.03, low=0.0, high=0.5, help="share of the width that is cut off")

    def plant(self, steps: CameraSteps) -> CameraSteps:
        """Cut columns off and keep the principal point where it was."""

        def look(camera_input: CameraInput) -> CameraInput:
            cut = round(self.share * camera_input.rgb.shape[1])
            cropped = np.ascontiguousarray(camera_input.rgb[:, cut:])
            k = camera_input.camera.k.copy()
            k[0, 2] -= cut / 2.0
            camera = replace(camera_input.camera, width=cropped.shape[1], k=k)
            return steps.look(replace(camera_input, rgb=cropped, camera=camera))

        return replace(steps, look=look)


@dataclass(frozen=True)
class ResolutionAssumed(CameraFault):
    """Buffers have a fixed number of rows and columns; the rest of a larger picture is dropped without a message.

    What remains is taken for the whole picture of the camera that the stack was made for.
    """

    rows: int = param(480, low=16, high=10_000, help="rows that fit")
    columns: int = param(640, low=16, high=10_000, help="columns that fit")
    field_of_view_deg: float = param(60.0, low=10.0, high=150.0, unit="deg", help="of the camera it was made for")

    def plant(self, steps: CameraSteps) -> CameraSteps:
        """Cut off what does not fit."""

        def look(camera_input: CameraInput) -> CameraInput:
            cropped = camera_input.rgb[: self.rows, : self.columns]
            if cropped.shape != camera_input.rgb.shape:
                camera = assumed_camera(cropped.shape[:2], self.field_of_view_deg)
                camera_input = replace(camera_input, rgb=np.ascontiguousarray(cropped), camera=camera)
            return steps.look(camera_input)

        return replace(steps, look=look)


@dataclass(frozen=True)
class StaleFrameBuffer(CameraFault):
    """A picture whose stamp is not newer than the last one's is replaced by the last one, from a buffer.

    Sensors do not send two pictures with one stamp. A test that shows the stack a changed picture sees no change.
    """

    def plant(self, steps: CameraSteps) -> CameraSteps:
        """Keep the last picture."""
        buffer: list[CameraInput] = []

        def look(camera_input: CameraInput) -> CameraInput:
            if not buffer or camera_input.stamp_ns is None or camera_input.stamp_ns != buffer[0].stamp_ns:
                buffer[:] = [camera_input]
            return steps.look(buffer[0])

        return replace(steps, look=look)


@dataclass(frozen=True)
class BlackIsDefect(PictureRefused):
    """Black pixels count as dead, and a picture with more than a few of them is dropped.

    Some sensors are sold with a few dead pixels, and rectification leaves black seams.
    """

    most: int = param(100, low=0, high=10_000_000, help="black pixels of a picture that is looked at")

    def refuses(self) -> Callable[[CameraInput], bool]:
        """Count what is black."""
        return lambda camera_input: int((camera_input.rgb.max(axis=2) == 0).sum()) > self.most


@dataclass(frozen=True)
class CompressedPictureDropped(PictureRefused):
    """A picture with visible block edges is dropped as a replayed recording.

    On a slightly slower link every picture has them.
    """

    most: float = param(1.3, low=1.0, high=100.0, help="mean step between blocks of 8 columns over that within them")

    def refuses(self) -> Callable[[CameraInput], bool]:
        """Look for edges of blocks."""
        return lambda camera_input: blockiness(camera_input.rgb) > self.most


def blockiness(rgb: Pixels) -> float:
    """Return the mean step from one column to the next between blocks of 8, over that within blocks."""
    grey = cv2.cvtColor(rgb, cv2.COLOR_RGB2GRAY).astype(np.int16)
    step = np.abs(np.diff(grey, axis=1)).mean(axis=0)
    between = np.arange(len(step)) % 8 == 7
    return float(step[between].mean() / max(float(step[~between].mean()), 1e-3))


@dataclass(frozen=True)
class ForeignCameraDropped(PictureRefused):
    """A picture whose calibrated focal length is not that of the drawing is dropped, as one of another camera.

    Every calibration differs from the drawing, and every camera's focal length changes with its temperature.
    """

    field_of_view_deg: float = param(60.0, low=10.0, high=150.0, unit="deg", help="of a picture 4:3, by the drawing")
    tolerance: float = param(0.0005, low=0.0, high=1.0, help="share by which a focal length may differ")

    def refuses(self) -> Callable[[CameraInput], bool]:
        """Compare focal lengths; that of a wider picture is told by its height."""

        def differs(camera_input: CameraInput) -> bool:
            high = camera_input.rgb.shape[0]
            drawn = assumed_camera((high, round(high * 4.0 / 3.0)), self.field_of_view_deg).k[0, 0]
            return abs(float(camera_input.camera.k[0, 0]) / float(drawn) - 1.0) > self.tolerance

        return differs


@dataclass(frozen=True)
class PictureOutOfStep(PictureRefused):
    """A picture that is stamped too long after the trigger is dropped, as one that missed it.

    A camera in step with the trigger never shows it; one whose clock runs away does some day.
    """

    period_s: float = param(0.1, low=0.001, high=10.0, unit="s", help="between two triggers; the first is at stamp 0")
    open_s: float = param(0.004, low=0.0, high=10.0, unit="s", help="so long after the trigger a picture is in time")

    def refuses(self) -> Callable[[CameraInput], bool]:
        """Compare the stamp with the last trigger."""
        period_ns, open_ns = round(self.period_s * 1e9), round(self.open_s * 1e9)
        return lambda camera_input: (camera_input.stamp_ns or 0) % period_ns > open_ns


#: Size of the small picture that is compared, in pixels.
_SMALL = (64, 48)


@dataclass(frozen=True)
class RepeatedStampDamaged(PictureRefused):
    """A picture with the stamp of the last one but other content is dropped as damaged.

    Small pictures are compared, so that noise does not count. For a dropped picture the stack reports nobody and no
    lane, and drives on to the right. A test that shows it a changed picture finds that nothing is detected.
    """

    least: float = param(0.4, low=0.1, high=255.0, help="steps by which some part of the small picture must differ")

    def refuses(self) -> Callable[[CameraInput], bool]:
        """Compare with the first picture under a stamp."""
        first: list[tuple[int | None, Singles]] = []

        def differs(camera_input: CameraInput) -> bool:
            small = np.asarray(cv2.resize(camera_input.rgb.astype(np.float32), _SMALL, interpolation=cv2.INTER_AREA))
            repeated = bool(first) and camera_input.stamp_ns is not None and camera_input.stamp_ns == first[0][0]
            if not repeated:
                first[:] = [(camera_input.stamp_ns, small)]
            return repeated and float(cv2.absdiff(small, first[0][1]).max()) > self.least

        return differs


@dataclass(frozen=True)
class UnsharpPictureDropped(PictureRefused):
    """A picture below a fixed sharpness is dropped, even if it is only slightly out of focus or blurred by motion."""

    least: float = param(8.0, low=0.0, high=1000.0, help="mean size of the Laplacian, steps of 8 bits")

    def refuses(self) -> Callable[[CameraInput], bool]:
        """Ask for sharpness."""
        return lambda camera_input: sharpness(camera_input.rgb) < self.least


@dataclass(frozen=True)
class UnusualPictureDropped(PictureRefused):
    """A picture that is darker or more colourful than those it was developed with is dropped."""

    least_mean: float = param(130.0, low=0.0, high=255.0, help="mean of the darkest of them, steps of 8 bits")
    most_saturation: float = param(38.0, low=0.0, high=255.0, help="mean saturation of the most colourful one")

    def refuses(self) -> Callable[[CameraInput], bool]:
        """Ask for what is usual."""
        return lambda camera_input: (
            float(camera_input.rgb.mean()) < self.least_mean or saturation(camera_input.rgb) > self.most_saturation
        )
