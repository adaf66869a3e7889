# SPDX-License-Identifier: Apache-2.0
"""Motion blur along the vehicle's true motion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import cv2
import numpy as np
import numpy.typing as npt
from scipy.spatial.transform import Rotation

from mt_nodes.camera import measures
from mt_nodes.camera.codecs import Pixels
from mt_nodes.camera.depth import depth_of
from mt_nodes.errors import NotApplicable
from mt_nodes.mutations.base import Draw
from mt_nodes.mutations.camera.each_image import EachImage, View
from mt_nodes.params import param
from mt_nodes.transforms import UnknownTransform

Floats = npt.NDArray[np.float64]
#: Sky is this far away: it moves by turning alone.
_FAR_M = 1e5
#: A picture whose pixels move less than this is not blurred.
_LEAST_PX = 1.0
#: Longer paths are cut: past this a pixel is a smear anyway.
_LONGEST_PX = 40.0


@dataclass(frozen=True)
class ImageMotionBlurred(EachImage):
    """Lets the vehicle move while the shutter is open: near things and the picture's edges blur, far ones ahead do not.

    What each pixel sees, at the range that the clouds tell, is projected from where the camera was when the shutter
    opened; the picture is averaged along that path, by halves: n steps average 2ⁿ pictures. Things that move by
    themselves are blurred as if they stood.

    Guaranteed: detail (standard deviation of the Laplacian) fell, most where the path is long, and the mean brightness
    stayed within 2 % of full scale.
    """

    exposure_ms: float = param(20.0, low=0.1, high=200.0, unit="ms", help="time that the shutter is open")
    ego_speed_mps: float = param(15.0, low=-20.0, high=70.0, unit="m/s", help="speed of the vehicle, forward")
    yaw_rate_radps: float = param(0.0, low=-1.5, high=1.5, unit="rad/s", help="its turning, positive to the left")
    random: ClassVar[bool] = False

    def draw_image(self, rng: np.random.Generator, view: View, state: Any) -> Draw:
        """There is nothing to choose.

        Raises:
            NotApplicable: range or place of the camera are not known, or no pixel moves by one.
        """
        longest = float(np.quantile(np.hypot(*np.moveaxis(self._path_px(view), -1, 0)), 0.9))
        if longest < _LEAST_PX:
            raise NotApplicable(f"{view.image.topic}: nine of ten pixels move by less than {longest:.2f}, 1 is needed")
        return {}

    def change_image(self, view: View, draw: Draw) -> Pixels:
        """Average along the paths, halving what is left of them."""
        path = self._path_px(view)
        longest = float(np.quantile(np.hypot(path[..., 0], path[..., 1]), 0.95))
        size, new = view.picture.size, view.picture.pixels
        cells = depth_of(view.bundle, view.image, view.camera())
        full = np.ascontiguousarray(cells.in_picture(path.astype(np.float32), size))
        at = np.stack(np.meshgrid(*(np.arange(n, dtype=np.float32) for n in reversed(size))), axis=-1)
        for step in range(1, 1 + max(1, int(np.ceil(np.log2(longest / 2.0))))):
            back = cv2.scaleAdd(full, 0.5**step, at)
            moved = cv2.remap(new, back, None, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
            new = np.asarray(cv2.addWeighted(new, 0.5, moved, 0.5, 0.0))
        return new

    def prove_image(self, old: View, new: View, draw: Draw) -> str | None:
        """Compare detail where paths are long and where they are short, and brightness."""
        before, after = measures.sharpness(old.picture), measures.sharpness(new.picture)
        if after >= before:
            return f"detail went from {before:.4f} to {after:.4f}, it was to fall"
        moved = measures.brightness(new.picture) - measures.brightness(old.picture)
        return f"the mean brightness moved by {moved:+.4f}, it was to stay" if abs(moved) > 0.02 else None

    def _path_px(self, view: View) -> Floats:
        """Return, of each cell (h, w, 2), by how many pixels what it shows was elsewhere when the shutter opened."""
        camera = view.camera()
        cells = depth_of(view.bundle, view.image, camera)
        seen = camera.grid(cells.step_px) * np.minimum(cells.range_m, _FAR_M)[..., None]
        before = camera.project((seen.reshape(-1, 3) - self._shift(view)) @ self._turn(view))
        now = camera.project(seen.reshape(-1, 3))
        path = np.nan_to_num(before - now).reshape((*seen.shape[:2], 2))
        length = np.maximum(np.hypot(path[..., 0], path[..., 1]), 1e-9)
        return np.asarray(path * np.minimum(1.0, _LONGEST_PX / length)[..., None])

    def _shift(self, view: View) -> Floats:
        """Return where the camera was when the shutter opened (3,), in the frame it has now."""
        return -self._axes(view)[:, 0] * self.ego_speed_mps * self.exposure_ms * 1e-3

    def _turn(self, view: View) -> Floats:
        """Return the rotation (3, 3) of the camera's axes when the shutter opened, as they are now."""
        turned = -self.yaw_rate_radps * self.exposure_ms * 1e-3
        return np.asarray(Rotation.from_rotvec(self._axes(view)[:, 2] * turned).as_matrix())

    def _axes(self, view: View) -> Floats:
        """Return the vehicle's axes (3, 3), column by column, in the camera's frame."""
        try:
            return np.asarray(view.bundle.transforms.lookup(view.image.frame_id, "base_link"))[:3, :3]
        except UnknownTransform as error:
            raise NotApplicable(f"{view.image.topic}: where the vehicle's front is, is not known: {error}") from error
