# SPDX-License-Identifier: Apache-2.0
"""Lenses whose vignetting, focal length or distortion drifts: the pictures change, their calibration stays."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Singles
from mt_nodes.base.errors import NotApplicable, UsageError
from mt_nodes.base.params import param
from mt_nodes.data.images.codecs import Pixels
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.camera.each_image import EachImage, View
from mt_nodes.relations.mutations.camera.moving_view import in_picture, middles_px, places_px
from mt_nodes.relations.mutations.camera.picture_origin import differs_from_origin
from mt_nodes.relations.mutations.stream.calibration_drift import drifted_info
from mt_nodes.relations.mutations.stream.drift import DURATION, OVER, Drifting
from mt_nodes.world.camera.depth import cell_px
from mt_nodes.world.camera.light import light_of
from mt_nodes.world.camera.model import CameraModel, rectified

#: Stride of the grid on which the falloff is computed.
_COARSE_PX = 8
#: Exponent and offset of sRGB's transfer function: v + 0.055 is proportional to light^(1 / 2.4) but for the darkest.
_POWER, _OFFSET = 2.4, 0.055
#: Number of rings in which the light is measured, and what it may be off from the falloff.
_RINGS, _OFF = 6, 0.06
_PROBES = 48


@dataclass(frozen=True)
class VignettingDrifted(Drifting, EachImage):
    """Changes how much light the corners get, as an aperture that closes, a lens shade that moves, or a worn filter.

    The change in EV grows with the square of the distance from the centre: natural vignetting is cos⁴ θ, whose
    logarithm is that to second order in θ (M. Born, E. Wolf, "Principles of Optics", section 4.8). Light follows the
    sRGB transfer function (IEC 61966-2-1), whose power of 2.4 makes a factor of light one of v + 0.055.

    Guaranteed: in rings around the centre, light changes by the stated falloff, within 6 % where nothing is cut off.
    """

    corner_stops: float = param(
        -1.0, low=-5.0, high=3.0, unit="EV", neutral=0.0, help="change of the corners' light; below 0: darker"
    )
    over: str = param("constant", **OVER)
    duration_s: float = param(600.0, **DURATION)

    def __post_init__(self) -> None:
        if self.corner_stops == 0.0:
            raise UsageError("corner_stops: got 0, expected another: nothing would change")

    def draw_image(self, rng: np.random.Generator, view: View, state: Any) -> Draw:
        """Determine the change at this instant. Raises NotApplicable: the drift begins here."""
        stops = self.corner_stops * float(self.shares(view.bundle, state, 1)[0])
        if abs(stops) < 0.02:
            raise NotApplicable(f"{view.image.topic}: the drift begins here: the corners change by {stops:.3f} EV")
        return {"corner_stops": stops}

    def change_image(self, view: View, draw: Draw) -> Pixels:
        """Multiply v + 0.055 by the power of the light's factor."""
        pixels, stops = view.picture.pixels, draw["corner_stops"]
        factor = _factors(stops / _POWER, view.picture.size)
        new = _multiplied(pixels, factor)
        offset = np.abs(factor - np.float32(1.0)) * np.float32(_OFFSET * view.picture.full_scale)
        offsets = _wide(
            cv2.convertScaleAbs(offset) if pixels.dtype == np.uint8 else offset.astype(pixels.dtype), pixels
        )
        if stops < 0.0:
            return np.asarray(cv2.subtract(new, offsets, dst=new))
        # The darkest samples are proportional to light: black stays black.
        return np.asarray(cv2.min(cv2.add(new, offsets, dst=new), _multiplied(pixels, factor**_POWER), dst=new))

    def prove_image(self, old: View, new: View, draw: Draw) -> str | None:
        """Compare the light of rings."""
        height, width = old.picture.size
        y, x = np.indices((height, width))[:, ::4, ::4]
        middle = np.array([(width - 1) / 2.0, (height - 1) / 2.0])
        share = ((x - middle[0]) ** 2 + (y - middle[1]) ** 2) / (middle**2).sum()
        before, after = (light_of(view.picture.luma()[::4, ::4] / view.picture.full_scale) for view in (old, new))
        factor = 2.0 ** (draw["corner_stops"] * share)
        usable = (before > 0.03) & (before * factor > 0.02) & (np.maximum(before, before * factor) < 0.7)
        ring = np.minimum((np.sqrt(share) * _RINGS).astype(np.int64), _RINGS - 1)[usable]
        sums = [np.bincount(ring, light[usable], _RINGS) for light in (before * factor, after)]
        enough = np.bincount(ring, minlength=_RINGS) > 50
        off = np.abs(sums[1][enough] / sums[0][enough] - 1.0)
        return f"the light of a ring is off by {off.max():.1%} from the falloff" if (off > _OFF).any() else None


@lru_cache(maxsize=4)
def _factors(stops: float, size: tuple[int, int]) -> Singles:
    """Return the factor (H, W) of so many stops in the corners."""
    height, width = size
    x, y = (np.arange(-(-n // _COARSE_PX)) * _COARSE_PX + (_COARSE_PX - 1) / 2.0 for n in (width, height))
    x, y = x - (width - 1) / 2.0, y - (height - 1) / 2.0
    share = (x[None] ** 2 + y[:, None] ** 2) / (((width - 1) / 2.0) ** 2 + ((height - 1) / 2.0) ** 2)
    return in_picture(np.exp2(stops * share).astype(np.float32), _COARSE_PX, size)


def _multiplied(pixels: Pixels, factor: Singles) -> Pixels:
    depth = cv2.CV_8U if pixels.dtype == np.uint8 else cv2.CV_16U
    return np.asarray(cv2.multiply(pixels, _wide(factor, pixels), dtype=depth))


def _wide(values: npt.NDArray[Any], pixels: Pixels) -> npt.NDArray[Any]:
    """Return values (H, W) for each channel of pixels."""
    return values if pixels.ndim == 2 else np.asarray(cv2.merge([values] * 3))


@dataclass(frozen=True)
class LensDrifted(Drifting, EachImage):
    """Shows the picture of a lens that is no longer the calibrated one; CameraInfo stays.

    fx' = (1 + focal) fx and fy likewise, cx' = cx + right · W, cy' = cy + down · H, k1' = k1 + distortion: every
    direction moves from where the old lens shows it to where the new one does. ``intrinsics_drifted`` is the same error
    in the calibration, with the pictures unchanged; sources of its size are there. Fisheye lenses drift likewise, in
    the coefficients of their model.

    Guaranteed: every calibrated direction has the brightness that it had, at the place that the new lens gives it,
    within half of what a shift by one pixel changes.
    """

    focal: float = param(0.002, low=-0.2, high=0.2, neutral=0.0, help="change of the focal lengths, as a share")
    right: float = param(0.0, low=-0.2, high=0.2, neutral=0.0, help="shift of the principal point, share of the width")
    down: float = param(0.0, low=-0.2, high=0.2, neutral=0.0, help="the same downward, share of the height")
    distortion: float = param(-0.02, low=-0.5, high=0.5, neutral=0.0, help="added to the first radial coefficient")
    over: str = param("constant", **OVER)
    duration_s: float = param(600.0, **DURATION)

    def __post_init__(self) -> None:
        if not self._full.any():
            raise UsageError("got no change of focal length, principal point or distortion, expected one of them")

    def draw_image(self, rng: np.random.Generator, view: View, state: Any) -> Draw:
        """Determine the error at this instant: (4,) focal, right, down, distortion.

        Raises NotApplicable: the lens is not calibrated, or has no coefficient to change; the drift begins here.
        """
        view.camera()
        assert view.info is not None, "its camera is known"
        if self.distortion and (rectified(view.image.topic) or not len(view.info.d)):
            raise NotApplicable(f"{view.image.topic} is rectified, or has no coefficient of distortion to change")
        error = self._full * self.shares(view.bundle, state, 4)
        if not error.any():
            raise NotApplicable(f"{view.image.topic}: the drift begins here: the error is still 0")
        return {"error": error}

    def change_image(self, view: View, draw: Draw) -> Pixels:
        """Fetch each pixel from where the old lens shows its direction."""
        places, shares = _maps(view.camera(), self._new_camera(view, draw))
        pixels = view.picture.pixels
        return np.asarray(cv2.remap(pixels, places, shares, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT_101))

    def prove_image(self, old: View, new: View, draw: Draw) -> str | None:
        """Project directions of old pixels by the new lens."""
        height, width = old.picture.size
        x, y = np.linspace(2.0, width - 3.0, _PROBES), np.linspace(2.0, height - 3.0, _PROBES)
        old_px = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
        new_px = self._new_camera(old, draw).project(old.camera().directions(old_px))
        found = np.isfinite(new_px).all(axis=1)
        return differs_from_origin(old, new, new_px[found], old_px[found])

    @property
    def _full(self) -> Floats:
        return np.array([self.focal, self.right, self.down, self.distortion])

    @staticmethod
    def _new_camera(view: View, draw: Draw) -> CameraModel:
        assert view.info is not None, "draw found it"
        return CameraModel.of(drifted_info(view.info, draw["error"]), view.picture.size, rectified(view.image.topic))


@lru_cache(maxsize=4)
def _maps(old: CameraModel, new: CameraModel) -> tuple[Pixels, Pixels]:
    """Return where the old lens shows each pixel of the new one: OpenCV's maps of whole pixels and of their parts."""
    size, step_px = (new.height, new.width), cell_px(new.width)
    directions = new.grid(step_px)
    back = old.project(directions.reshape(-1, 3)).reshape((*directions.shape[:2], 2)) - middles_px(step_px, size)
    places = cv2.add(places_px(size), in_picture(np.nan_to_num(back).astype(np.float32), step_px, size))
    whole, parts = cv2.convertMaps(places, None, cv2.CV_16SC2)
    return whole, parts
