# SPDX-License-Identifier: Apache-2.0
"""Renders a camera's picture of the street: one ray per pixel, a sun with shadows, a sky, slight noise."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Ints, Mask, Singles
from mt_nodes.base.open3d_late import open3d, tensor
from mt_nodes.data.messages import CameraInfo
from mt_nodes.data.transforms import Matrix, pose_matrix
from mt_nodes.world.camera.model import CameraModel
from mt_nodes.world.scene import paint
from mt_nodes.world.scene.meshes import Mesh
from mt_nodes.world.scene.street import GROUND, HOUSE, Piece

#: Direction to the sun, behind the ego and to its left, at 50 degrees of elevation.
SUN = np.array([-0.5, 0.4, 0.77]) / np.linalg.norm([-0.5, 0.4, 0.77])
#: Radiance of the sun, of the sky overhead and of light from below, relative to full scale.
_SUNSHINE, _SKYLIGHT, _FROM_BELOW, _EXPOSURE = 2.0, (0.62, 0.7, 0.85), 0.22, 0.85
_ZENITH, _HORIZON = (0.25, 0.42, 0.75), (0.8, 0.84, 0.88)
_GAMMA = 2.2
#: Rotation of the axes x ahead, y left, z up into the optical ones x right, y down, z ahead.
OPTICAL_XYZW = (-0.5, 0.5, -0.5, 0.5)


@dataclass(frozen=True)
class CameraSensor:
    """A colour camera; by default one without distortion that looks straight ahead.

    Attributes:
        width, height: of the picture in pixels. field_of_view_deg: horizontal.
        forward_m, height_m, left_m: position before, above and to the left of ``base_link``.
        noise: standard deviation of the read noise in steps of 8 bits.
        yaw_deg: where it looks, positive to the left.
        model, distortion: distortion model of CameraInfo, ``plumb_bob`` or ``equidistant``, and its coefficients.
        name: its optical frame, and the part of its topics that stands for it.
    """

    width: int = 640
    height: int = 480
    field_of_view_deg: float = 60.0
    forward_m: float = 0.3
    height_m: float = 1.5
    noise: float = 1.0
    left_m: float = 0.0
    yaw_deg: float = 0.0
    model: str = "plumb_bob"
    distortion: tuple[float, ...] = (0.0, 0.0, 0.0, 0.0, 0.0)
    name: str = "camera"

    @property
    def focal_px(self) -> float:
        """Focal length in pixels; that of a fisheye is per radian."""
        half_rad = np.radians(self.field_of_view_deg) / 2.0
        return float(self.width / 2.0 / (half_rad if self.model == "equidistant" else np.tan(half_rad)))

    @property
    def mount(self) -> Matrix:
        """4×4 matrix from the optical frame to ``base_link``."""
        half = np.radians(self.yaw_deg) / 2.0
        turn = pose_matrix((0.0, 0.0, 0.0), (0.0, 0.0, float(np.sin(half)), float(np.cos(half))))
        mount = turn @ pose_matrix((0.0, 0.0, 0.0), OPTICAL_XYZW)
        mount[:3, 3] = self.forward_m, self.left_m, self.height_m
        return mount

    @property
    def topics(self) -> tuple[str, str]:
        """Topics of its images and of its CameraInfo."""
        return f"/sensing/{self.name}/image", f"/sensing/{self.name}/camera_info"

    def info(self, topic: str, stamp_ns: int, frame_id: str) -> CameraInfo:
        """Return its calibration; the principal point is the centre of the picture."""
        x, y, f = (self.width - 1) / 2.0, (self.height - 1) / 2.0, self.focal_px
        k = np.array([[f, 0.0, x], [0.0, f, y], [0.0, 0.0, 1.0]])
        p = np.column_stack([k, np.zeros(3)])
        d = np.array(self.distortion)
        return CameraInfo(topic, stamp_ns, frame_id, self.width, self.height, self.model, d, k, np.eye(3), p)

    @cached_property
    def rays(self) -> Singles:
        """Directions (H, W, 3) of the pixels in ``base_link``."""
        model = CameraModel.of(self.info("", 0, ""), (self.height, self.width))
        return np.ascontiguousarray(model.grid() @ self.mount[:3, :3].T, dtype=np.float32)


def photograph(
    pieces: list[Piece], mesh: Mesh, ego_m: float, sensor: CameraSensor, rng: np.random.Generator
) -> npt.NDArray[np.uint8]:
    """Return a picture (H, W, 3), blue, green, red in 8 bits.

    ``pieces``: the objects along the straight street. ``mesh``: the same as one mesh, in its actual shape. ``ego_m``: x
    of the ego in the frame of ``mesh``; it stands at y = 0 and looks along x.
    """
    hits = _Hits.of(mesh, ego_m, sensor)
    colours = np.concatenate([paint.albedo(piece) for piece in pieces])[hits.triangle]
    _painted(colours, pieces, hits, sensor)
    light = np.empty((sensor.height * sensor.width, 3), dtype=np.float32)
    rays = sensor.rays.reshape(-1, 3)
    light[~hits.any] = _sky(rays[~hits.any, 2])
    light[hits.any] = colours * _light(hits)
    return _developed(light.reshape(sensor.height, sensor.width, 3), sensor.noise, rng)


@dataclass(frozen=True, eq=False)
class _Hits:
    """End points of rays: ``any`` (H·W,) whether there is one; for those (N,) triangle, range, normal, place, sun.

    ``flat`` (N, 3) is the place along the straight street in which the triangles were made.
    """

    any: Mask
    triangle: Ints
    range_m: Singles
    normal: Singles
    weights: Singles
    lit: Mask

    @classmethod
    def of(cls, mesh: Mesh, ego_m: float, sensor: CameraSensor) -> _Hits:
        scene = open3d().t.geometry.RaycastingScene()
        eye = np.array([ego_m + sensor.forward_m, sensor.left_m, sensor.height_m])
        scene.add_triangles(tensor((mesh.vertices_m - eye).astype(np.float32)), tensor(mesh.triangles))
        rays = np.zeros((sensor.height * sensor.width, 6), dtype=np.float32)
        rays[:, 3:] = sensor.rays.reshape(-1, 3)
        answer = scene.cast_rays(tensor(rays))
        range_m = answer["t_hit"].numpy()
        hit = np.isfinite(range_m)
        directions, range_m = rays[hit, 3:], range_m[hit]
        normal = answer["primitive_normals"].numpy()[hit]
        normal *= -np.sign(np.einsum("ij,ij->i", normal, directions))[:, None]
        facing = normal @ SUN.astype(np.float32) > 0.0
        to_sun = np.empty((int(facing.sum()), 6), dtype=np.float32)
        to_sun[:, :3] = directions[facing] * range_m[facing, None] + 0.02 * normal[facing]
        to_sun[:, 3:] = SUN
        lit = facing
        lit[facing] = ~scene.test_occlusions(tensor(to_sun)).numpy()
        triangle = answer["primitive_ids"].numpy()[hit].astype(np.int64)
        return cls(hit, triangle, range_m, normal, answer["primitive_uvs"].numpy()[hit], lit)


def _painted(colours: Singles, pieces: list[Piece], hits: _Hits, sensor: CameraSensor) -> None:
    """Paint details finer than a triangle on ground and houses, in place."""
    counts = [len(piece.mesh.triangles) for piece in pieces]
    corners = np.concatenate([piece.mesh.vertices_m[piece.mesh.triangles] for piece in pieces]).astype(np.float32)
    for kind in (GROUND, HOUSE):
        of_kind = np.repeat([piece.kind == kind for piece in pieces], counts)
        rows = np.flatnonzero(of_kind[hits.triangle])
        a, b, c = np.moveaxis(corners[hits.triangle[rows]], 1, 0)
        u, v = hits.weights[rows].T[..., None]
        s, d, z = (a + u * (b - a) + v * (c - a)).T
        painted = colours[rows]
        if kind == GROUND:
            range_m = hits.range_m[rows]
            paint.painted_ground(painted, s, d, range_m, range_m / np.float32(sensor.focal_px))
        else:
            paint.panes(painted, s, d, z)
        colours[rows] = painted


def _light(hits: _Hits) -> Singles:
    """Return the light on each place (N, 3): Lambert's law for the sun, more sky from above than from below."""
    above = (0.5 + 0.5 * hits.normal[:, 2])[:, None]
    light = above * np.array(_SKYLIGHT, dtype=np.float32) + (1.0 - above) * np.float32(_FROM_BELOW)
    sun = np.where(hits.lit, hits.normal @ SUN.astype(np.float32), np.float32(0.0))
    return np.asarray(light + (_SUNSHINE * sun)[:, None], dtype=np.float32)


def _sky(up: Singles) -> Singles:
    share = np.sqrt(np.clip(up, 0.0, 1.0))[:, None]
    return np.asarray((1.0 - share) * np.array(_HORIZON) + share * np.array(_ZENITH), dtype=np.float32)


def _developed(light: Singles, noise: float, rng: np.random.Generator) -> npt.NDArray[np.uint8]:
    """Return the picture of linear light, blue first: lens blur of half a pixel, gamma, noise, 8 bits."""
    light = np.asarray(cv2.GaussianBlur(light, (3, 3), 0.5))
    steps = (_curve()[np.clip(light * (_EXPOSURE * 4095.0), 0.0, 4095.0).astype(np.uint16)])[..., ::-1]
    noisy = steps + noise * rng.standard_normal(light.shape, dtype=np.float32)
    return np.asarray(np.clip(np.rint(noisy), 0.0, 255.0), dtype=np.uint8)


def _curve() -> Singles:
    return (255.0 * (np.arange(4096) / 4095.0) ** (1.0 / _GAMMA)).astype(np.float32)
