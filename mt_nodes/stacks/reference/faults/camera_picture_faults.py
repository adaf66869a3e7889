# SPDX-License-Identifier: Apache-2.0
"""Faults of the camera stack in the picture that it looks at, or refuses to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import cv2
import numpy as np
import numpy.typing as npt

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
    Pixels,
    saturation,
    sharpness,
)


@dataclass(frozen=True)
class BonnetMasked(CameraFault):
    """The lower part of each picture is blanked, where the bonnet was in the vehicle that it was made for.

    Whoever is near stands in it, and people without legs are none.
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
    """The camera is reckoned to look a little to the side, as with a yaw that was entered with the wrong sign.

    A cluster is still taken for the person beside whom it seems to be, and the person's box goes where nobody is.
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
    """The channels are taken in the wrong order, so that red is taken for blue.

    White stays white, and by day nobody notices. In warm light paint shines in red and green as before, and the lines
    are looked for in blue and green.
    """

    def plant(self, steps: CameraSteps) -> CameraSteps:
        """Turn the order of the channels around."""

        def look(camera_input: CameraInput) -> CameraInput:
            frame = steps.look(camera_input)
            return replace(frame, rgb=np.ascontiguousarray(frame.rgb[..., ::-1]))

        return replace(steps, look=look)


@dataclass(frozen=True)
class LeftColumnsLost(CameraFault):
    """The picture is cropped on its left, and the middle of what is left is taken for straight ahead.

    The lane lies to the left of where it is by a few centimetres, whichever way it bends: in a mirror, to the wrong
    side of it.
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
    """Buffers have room for so many rows and columns; of a larger picture the rest is left out without a word.

    What is left is taken for the whole picture of the camera that the stack was made for.
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
    """A picture whose stamp is not newer than the last one's is taken for the same one, and the buffer is looked at.

    Sensors do not send two pictures under one stamp. Whoever shows the stack a changed one sees that nothing changes.
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
    """Pixels that are wholly black are dead, and of a sensor with a few of them no picture is looked at.

    Sensors are sold with some, and rectification leaves black seams.
    """

    most: int = param(100, low=0, high=10_000_000, help="black pixels of a picture that is looked at")

    def refuses(self) -> Callable[[CameraInput], bool]:
        """Count what is black."""
        return lambda camera_input: int((camera_input.rgb.max(axis=2) == 0).sum()) > self.most


@dataclass(frozen=True)
class CompressedPictureDropped(PictureRefused):
    """A picture that shows edges of blocks is taken for one of an archive, played back by somebody, and is dropped.

    On a link that is a little slower every picture shows them.
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


#: Size of the small picture that is compared, in pixels.
_SMALL = (64, 48)


@dataclass(frozen=True)
class RepeatedStampDamaged(PictureRefused):
    """A picture under the stamp of the last one must be the same; if not, it was damaged on its way, and is dropped.

    Small pictures are compared, so that noise does not count. Of a picture that was dropped the stack says that nobody
    is there and no lane, and drives on to the right. Whoever shows it a changed picture finds that nothing is seen.
    """

    least: float = param(0.4, low=0.1, high=255.0, help="steps by which some part of the small picture must differ")

    def refuses(self) -> Callable[[CameraInput], bool]:
        """Compare with the first picture under a stamp."""
        first: list[tuple[int | None, npt.NDArray[np.float32]]] = []

        def differs(camera_input: CameraInput) -> bool:
            small = np.asarray(cv2.resize(camera_input.rgb.astype(np.float32), _SMALL, interpolation=cv2.INTER_AREA))
            repeated = bool(first) and camera_input.stamp_ns is not None and camera_input.stamp_ns == first[0][0]
            if not repeated:
                first[:] = [(camera_input.stamp_ns, small)]
            return repeated and float(cv2.absdiff(small, first[0][1]).max()) > self.least

        return differs


@dataclass(frozen=True)
class UnsharpPictureDropped(PictureRefused):
    """A picture that is less sharp than a number written down is dropped: a little out of focus, or moved."""

    least: float = param(8.0, low=0.0, high=1000.0, help="mean size of the Laplacian, steps of 8 bits")

    def refuses(self) -> Callable[[CameraInput], bool]:
        """Ask for sharpness."""
        return lambda camera_input: sharpness(camera_input.rgb) < self.least


@dataclass(frozen=True)
class UnusualPictureDropped(PictureRefused):
    """A picture that is darker or more colourful on the whole than those it was made with is dropped."""

    least_mean: float = param(130.0, low=0.0, high=255.0, help="mean of the darkest of them, steps of 8 bits")
    most_saturation: float = param(38.0, low=0.0, high=255.0, help="mean saturation of the most colourful one")

    def refuses(self) -> Callable[[CameraInput], bool]:
        """Ask for what is usual."""
        return lambda camera_input: (
            float(camera_input.rgb.mean()) < self.least_mean or saturation(camera_input.rgb) > self.most_saturation
        )
