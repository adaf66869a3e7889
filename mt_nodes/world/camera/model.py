# SPDX-License-Identifier: Apache-2.0
"""Camera models: projection of points, and directions of pixels.

Frames are optical: x right, y down, z ahead. Models are those of ``sensor_msgs/CameraInfo``. Pinholes with distortion
are computed by OpenCV; fisheyes here, since OpenCV's stop at 90 degrees from the axis: θ_d = θ (1 + k1 θ² + k2 θ⁴ +
k3 θ⁶ + k4 θ⁸) for a ray at θ (J. Kannala, S. Brandt, "A generic camera model…", PAMI 28(8), 2006).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats
from mt_nodes.base.errors import UsageError
from mt_nodes.data.messages import CameraInfo

FISHEYE = ("equidistant", "fisheye")
_PINHOLE = ("plumb_bob", "rational_polynomial", "")
#: How far a size may differ from a scaled calibration's, in pixels: binning rounds.
_ROUNDING_PX = 2.0
#: OpenCV's default of five steps leaves a tenth of a pixel in the corners of a wide lens.
_TO_THE_END = (cv2.TERM_CRITERIA_MAX_ITER + cv2.TERM_CRITERIA_EPS, 50, 1e-9)
#: Widest angle from the axis at which a pinhole's distortion is computed.
_WIDEST_PINHOLE_RAD = np.radians(85.0)


@dataclass(frozen=True, eq=False)
class CameraModel:
    """A calibrated camera.

    Attributes:
        width, height: of the picture in pixels.
        k: (3, 3) intrinsics. d: (n,) distortion coefficients, empty for none.
        fisheye: whether they are those of the equidistant model.
    """

    width: int
    height: int
    k: Floats
    d: Floats
    fisheye: bool = False

    @classmethod
    def of(cls, info: CameraInfo, size: tuple[int, int], rectified: bool = False) -> CameraModel:
        """Return the model for pictures of a size (height, width), which may be the calibrated one scaled.

        Raises UsageError: not calibrated (k of zeros), an unknown distortion model, or sizes that do not match.

        Args:
            info: the calibration.
            size: of the picture.
            rectified: whether the picture was undistorted: then ``p`` holds, and no distortion is left.
        """
        k = info.p[:, :3] if rectified and info.p.any() else info.k
        if not np.isfinite(k).all() or k[0, 0] <= 0.0 or k[1, 1] <= 0.0:
            focal = f"focal lengths {k[0, 0]:g} and {k[1, 1]:g}"
            raise UsageError(f"{info.topic}: got {focal}, expected above 0; the camera is not calibrated")
        if info.distortion_model not in (*_PINHOLE, *FISHEYE):
            known = ", ".join(filter(None, (*_PINHOLE, *FISHEYE)))
            raise UsageError(f"{info.topic}: got distortion model '{info.distortion_model}', expected one of {known}")
        d = np.zeros(0) if rectified or not info.d.any() else info.d
        fisheye = info.distortion_model in FISHEYE and not rectified
        return _model(size[1], size[0], _scaled(k, info, size).tobytes(), d.tobytes(), fisheye)

    def project(self, points: npt.NDArray[Any]) -> Floats:
        """Return the pixels (N, 2), x and y, of points (N, 3) in metres; NaN where the camera sees none.

        Pixels outside the picture are included, as far as the model is valid.
        """
        xyz = np.asarray(points, dtype=np.float64).reshape(-1, 3)
        x, y, z = xyz.T
        with np.errstate(invalid="ignore", over="ignore"):  # nothing is larger than what is not finite
            visible = z > np.cos(self.widest_rad) * np.sqrt(x * x + y * y + z * z)
        if not (self.fisheye or len(self.d)):
            return self._straight(x, y, np.where(visible, z, np.nan))
        pixels = np.full((len(xyz), 2), np.nan)
        if visible.any():
            pixels[visible] = self._projected(xyz[visible])
        return pixels

    def directions(self, pixels: npt.NDArray[Any]) -> Floats:
        """Return the unit vectors (N, 3) of pixels (N, 2)."""
        uv = np.asarray(pixels, dtype=np.float64).reshape(-1, 1, 2)
        if self.fisheye:
            return self._fisheye_directions(uv.reshape(-1, 2))
        if len(self.d):
            flat = cv2.undistortPointsIter(uv, self.k, self.d, np.eye(3), np.eye(3), _TO_THE_END)
        else:
            flat = (uv - self.k[:2, 2]) / self.k[[0, 1], [0, 1]]
        rays = np.concatenate([flat.reshape(-1, 2), np.ones((len(uv), 1))], axis=1)
        return np.asarray(rays / np.linalg.norm(rays, axis=1, keepdims=True))

    def grid(self, step_px: int = 1) -> Floats:
        """Return the directions (h, w, 3) of the centres of cells of ``step_px`` by ``step_px`` pixels."""
        return _grid(self, step_px)

    @property
    def widest_rad(self) -> float:
        """Largest visible angle from the axis: a little more than the picture's widest corner."""
        return _widest_rad(self)

    def _straight(self, x: Floats, y: Floats, z: Floats) -> Floats:
        """Project without distortion."""
        pixels = np.empty((len(x), 2))
        for axis, across in enumerate((x, y)):
            np.add(across / z * self.k[axis, axis], self.k[axis, 2], out=pixels[:, axis])
        return pixels

    def _projected(self, xyz: Floats) -> Floats:
        if not self.fisheye:
            return np.asarray(cv2.projectPoints(xyz, np.zeros(3), np.zeros(3), self.k, self.d)[0]).reshape(-1, 2)
        aside = np.hypot(xyz[:, 0], xyz[:, 1])
        scale = self._stretched(np.arctan2(aside, xyz[:, 2])) / np.maximum(aside, 1e-12)
        return np.asarray(xyz[:, :2] * scale[:, None] * self.k[[0, 1], [0, 1]] + self.k[:2, 2])

    def _stretched(self, angle: Floats) -> Floats:
        """Return θ_d of angles θ (N,) from the axis."""
        return np.asarray(np.polynomial.polynomial.polyval(angle, _odd(self.d)))

    def _fisheye_directions(self, uv: Floats) -> Floats:
        """Return the unit vectors (N, 3) of pixels (N, 2); those beyond the model's widest angle get that angle."""
        flat = (uv - self.k[:2, 2]) / self.k[[0, 1], [0, 1]]
        radius = np.hypot(flat[:, 0], flat[:, 1])
        angles, stretched = _stretch_table(self)
        angle = np.interp(radius, stretched, angles)
        slopes = np.polynomial.polynomial.polyder(_odd(self.d))
        for _ in range(3):  # Newton, from within a table's step
            slope = np.maximum(np.polynomial.polynomial.polyval(angle, slopes), 1e-6)
            angle = np.clip(angle - (self._stretched(angle) - radius) / slope, 0.0, angles[-1])
        aside = np.sin(angle) / np.maximum(radius, 1e-12)
        return np.asarray(np.column_stack([flat * aside[:, None], np.cos(angle)]))


def _odd(d: Floats) -> Floats:
    """Return the coefficients of θ_d as a polynomial of θ."""
    odd = np.zeros(10)
    odd[1:10:2] = [1.0, *np.resize(np.concatenate([d, np.zeros(4)]), 4)]
    return odd


@lru_cache(maxsize=16)
def _stretch_table(model: CameraModel) -> tuple[Floats, Floats]:
    """Return angles θ (n,) up to the widest at which θ_d still grows, at most π, and their θ_d (n,)."""
    angles = np.linspace(0.0, np.pi, 721)
    stretched = model._stretched(angles)
    grows = np.diff(stretched) > 0.0
    last = len(grows) if grows.all() else int(np.argmin(grows))
    return angles[: last + 1], stretched[: last + 1]


def rectified(topic: str) -> bool:
    """Return whether an image topic's pictures are undistorted, by the names of ``image_proc``."""
    return "rect" in topic.rpartition("/")[2]


def _scaled(k: Floats, info: CameraInfo, size: tuple[int, int]) -> Floats:
    """Return intrinsics for pictures of the calibrated size, or of that size scaled equally on both axes."""
    height, width = size
    if (info.height, info.width) in ((height, width), (0, 0)):
        return k
    scale = width / info.width if info.width else 0.0
    if not scale or abs(info.height * scale - height) > _ROUNDING_PX:
        got = f"{width} x {height} pixels"
        raise UsageError(f"{info.topic}: the picture has {got}, the calibration is of {info.width} x {info.height}")
    # Pixel centres have integer coordinates: the corner of the picture is at -0.5.
    scaled = k * scale
    scaled[:2, 2] += (scale - 1.0) / 2.0
    scaled[2] = k[2]
    return np.asarray(scaled)


@lru_cache(maxsize=16)
def _model(width: int, height: int, k: bytes, d: bytes, fisheye: bool) -> CameraModel:
    """Return the same object for the same numbers, so that its derived values are computed once."""
    return CameraModel(width, height, np.frombuffer(k).reshape(3, 3), np.frombuffer(d), fisheye)


@lru_cache(maxsize=16)
def _grid(model: CameraModel, step_px: int) -> Floats:
    x = np.arange(0, model.width, step_px) + (step_px - 1) / 2.0
    y = np.arange(0, model.height, step_px) + (step_px - 1) / 2.0
    pixels = np.stack(np.meshgrid(x, y), axis=-1)
    grid = model.directions(pixels).reshape(len(y), len(x), 3)
    grid.flags.writeable = False
    return grid


@lru_cache(maxsize=16)
def _widest_rad(model: CameraModel) -> float:
    right, bottom = model.width - 0.5, model.height - 0.5
    x, y = np.linspace(-0.5, right, 33), np.linspace(-0.5, bottom, 33)
    edge = [np.column_stack([x, np.full(33, v)]) for v in (-0.5, bottom)]
    edge += [np.column_stack([np.full(33, v), y]) for v in (-0.5, right)]
    widest = float(np.arccos(np.clip(model.directions(np.concatenate(edge))[:, 2], -1.0, 1.0)).max())
    return min(1.05 * widest + 0.01, float(_stretch_table(model)[0][-1]) if model.fisheye else _WIDEST_PINHOLE_RAD)
