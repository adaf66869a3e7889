# SPDX-License-Identifier: Apache-2.0
"""Renders an object of the catalogue for a camera: covered pixels, range, light.

The outline is drawn from the projected triangles, at four times the resolution, so that edges are smooth; colours come
from one ray per pixel. The camera's frame is optical: x right, y down, z ahead.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.base.open3d_late import open3d, tensor
from mt_nodes.data.transforms import Matrix, move
from mt_nodes.world.camera.model import CameraModel
from mt_nodes.world.scene.appearance import Paint, Surface, paint_of
from mt_nodes.world.scene.lamps import OFF
from mt_nodes.world.scene.meshes import Mesh
from mt_nodes.world.scene.objects import mesh_of

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Window = tuple[slice, slice]

#: Light from the sun, from the sky above and from the ground below, relative to the light on level ground.
_SUN, _ABOVE, _BELOW = 0.75, 0.45, 0.15
#: Assumed direction to the sun: to the left of the camera, slightly behind it, at 50 degrees; in right, up, back.
_TO_SUN = np.array([-0.6, 0.77, 0.22]) / np.linalg.norm([-0.6, 0.77, 0.22])
#: Above so many pixels, rays are cast for every second or third one on each axis; the outline stays fine.
_MANY_PX, _FINE, _SMALL_PX = (30_000, 200_000), 4, 30_000
_EDGE_M = 1.0  # longer edges are split, so that a lens may bend them
_SMOOTH_COS = 0.5  # triangles that meet at a sharper angle keep their edge
_RAY_STEP_PX = 8


class Figure:
    """An object for cameras: its triangles, their smooth normals, its paint, and a scene for ray casting."""

    def __init__(self, mesh: Mesh, paint: Paint) -> None:
        self.paint = paint
        self._mesh = mesh
        self._reflectivity = mesh.reflectivity.astype(np.float32)
        self._normals = smooth_normals(mesh)
        self._scene = open3d().t.geometry.RaycastingScene(nthreads=1)
        self._scene.add_triangles(tensor(mesh.vertices_m.astype(np.float32)), tensor(mesh.triangles))
        low, high = mesh.vertices_m.min(axis=0), mesh.vertices_m.max(axis=0)
        self.center_m, self.top_m = (low + high) / 2.0, float(high[2])
        feet = mesh.vertices_m[mesh.vertices_m[:, 2] < 0.35]
        self.feet_m = np.array([feet[:, :2].min(axis=0), feet[:, :2].max(axis=0)])

    def corners_m(self, bent: bool) -> Floats:
        """Return the corners (T, 3, 3) of the triangles; long ones are split if the lens bends straight lines."""
        return self._bendable if bent else self._mesh.vertices_m[self._mesh.triangles]

    @cached_property
    def _bendable(self) -> Floats:
        return _split(self._mesh.vertices_m[self._mesh.triangles])

    def cast(self, rays: Singles) -> tuple[Singles, Singles, Singles, Singles]:
        """Cast rays (N, 6) in the object's frame.

        Returns:
            range (N,), infinite without a hit; for hits (n,): place (n, 3), normal (n, 3), reflectivity.
        """
        answer = self._scene.cast_rays(tensor(rays), nthreads=1)
        range_m = answer["t_hit"].numpy()
        hit = np.flatnonzero(np.isfinite(range_m))
        triangle, along = answer["primitive_ids"].numpy()[hit], rays[hit, 3:]
        flat = answer["primitive_normals"].numpy()[hit]
        normal = self._smooth(triangle, answer["primitive_uvs"].numpy()[hit], flat, along)
        return range_m, rays[hit, :3] + along * range_m[hit, None], normal, self._reflectivity[triangle]

    def _smooth(self, triangle: npt.NDArray[np.uint32], uv: Singles, flat: Singles, along: Singles) -> Singles:
        """Return interpolated unit normals (n, 3) between the triangles' corners, on the visible side."""
        flat *= np.where(np.einsum("ij,ij->i", flat, along) > 0.0, np.float32(-1.0), np.float32(1.0))[:, None]
        a, b, c = np.moveaxis(self._normals[triangle], 1, 0)
        u, v = uv.T[:, :, None]
        normal = a + u * (b - a) + v * (c - a)
        normal /= np.maximum(np.sqrt(np.einsum("ij,ij->i", normal, normal)), 1e-6)[:, None]
        away = np.einsum("ij,ij->i", normal, flat) < 0.0
        normal[away] = flat[away]
        return np.asarray(normal)


@lru_cache
def figure_of(kind: str, lamps: str = OFF, paint: str = "") -> Figure:
    """Return an object of the catalogue, cached; ``lamps`` selects the lit ones, ``paint`` another colour."""
    return Figure(mesh_of(kind), paint_of(kind, lamps, paint))


@dataclass(frozen=True, eq=False)
class Rendering:
    """What a picture shows of an object.

    Attributes:
        window: rows and columns of the picture that contain it.
        cover: (h, w) share of each pixel of the window that the unoccluded object covers.
        step_px: stride of the following arrays in pixels of the window.
        range_m: (r, c) along the ray to the object; beside it, that of its nearest place.
        direction: (r, c, 3) of the rays.
        light: (r, c, 3) red, green, blue from it, relative to white level ground.
        glow: (r, c, 3) emitted light, in shares of full scale; None for none.
        inside: share of the object that lies within the picture.
        box_px: (x0, y0, x1, y1) around the part within the picture.
    """

    window: Window
    cover: Singles
    step_px: int
    range_m: Singles
    direction: Singles
    light: Singles
    glow: Singles | None
    inside: float
    box_px: tuple[float, float, float, float]

    def enlarged(self, layer: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return a layer (r, c, …) for every pixel of the window."""
        if self.step_px == 1:
            return layer
        back = 1.0 / self.step_px
        matrix = np.array([[back, 0.0, 0.0], [0.0, back, 0.0]])
        how, size = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP, self.cover.shape[::-1]
        return np.asarray(cv2.warpAffine(layer, matrix, size, flags=how, borderMode=cv2.BORDER_REPLICATE))


def render(figure: Figure, pose: Matrix, camera: CameraModel) -> Rendering | None:
    """Return an object's rendering for a camera; None if it is not in its picture.

    Args:
        pose: (4, 4) object to camera.
    """
    outline = outline_of(figure, pose, camera)
    if outline is None:
        return None
    window, cover, inside, box = outline
    step = 1 + sum(int(np.count_nonzero(cover)) > many for many in _MANY_PX)
    direction = directions(camera, window, step)
    if not (covered := cover[::step, ::step] > 0.0).any():
        return None
    range_m, light, glow = _rendered(figure, pose, camera, direction, covered)
    return Rendering(window, cover, step, range_m, direction, light, glow, inside, box)


def outline_of(
    figure: Figure, pose: Matrix, camera: CameraModel
) -> tuple[Window, Singles, float, tuple[float, float, float, float]] | None:
    """Return the window, the cover (h, w), the share inside the picture, and the box around; None if outside."""
    corners_m = figure.corners_m(len(camera.d) > 0)
    corners = camera.project(move(pose, corners_m.reshape(-1, 3))).reshape(-1, 3, 2)
    corners = corners[np.isfinite(corners).all(axis=(1, 2))]
    if not len(corners):
        return None
    low, high = corners.min(axis=(0, 1)), corners.max(axis=(0, 1))
    last = np.array([camera.width - 1.0, camera.height - 1.0])
    x0, y0, x1, y1 = np.concatenate([np.maximum(low, -0.5), np.minimum(high, last + 0.5)]).tolist()
    if x0 >= x1 or y0 >= y1:
        return None
    left, top = max(0, int(x0) - 2), max(0, int(y0) - 2)
    right, bottom = min(camera.width, int(x1) + 4), min(camera.height, int(y1) + 4)
    fine = _FINE if (right - left) * (bottom - top) < _SMALL_PX else 2
    cover = _filled(corners - (left, top), (bottom - top, right - left), fine)
    whole = bool((low >= -0.5).all() and (high <= last + 0.5).all())
    inside = 1.0 if whole else _share_inside(corners, low, high, last)
    return (slice(top, bottom), slice(left, right)), cover, inside, (x0, y0, x1, y1)


def directions(camera: CameraModel, window: Window, step_px: int = 1) -> Singles:
    """Return the unit vectors (r, c, 3) of every ``step_px``-th pixel of a window.

    They are computed for every eighth pixel of the window, and interpolated in between.
    """
    (top, bottom), (left, right) = ((s.start, s.stop) for s in window)
    x = np.arange(left, right + _RAY_STEP_PX, _RAY_STEP_PX, dtype=np.float64)
    y = np.arange(top, bottom + _RAY_STEP_PX, _RAY_STEP_PX, dtype=np.float64)
    nodes = camera.directions(np.stack(np.meshgrid(x, y), axis=-1)).reshape(len(y), len(x), 3).astype(np.float32)
    matrix = np.array([[step_px / _RAY_STEP_PX, 0.0, 0.0], [0.0, step_px / _RAY_STEP_PX, 0.0]])
    size = -(-(right - left) // step_px), -(-(bottom - top) // step_px)
    return np.asarray(cv2.warpAffine(nodes, matrix, size, flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP))


def into(pose: Matrix, direction: npt.NDArray[Any]) -> Singles:
    """Return rays (N, 6) from the camera, in the object's frame."""
    back = np.linalg.inv(pose)
    rays = np.empty((len(direction), 6), np.float32)
    rays[:, :3] = back[:3, 3]
    rays[:, 3:] = direction @ back[:3, :3].T.astype(np.float32)
    return rays


def _rendered(
    figure: Figure, pose: Matrix, camera: CameraModel, direction: Singles, covered: npt.NDArray[np.bool_]
) -> tuple[Singles, Singles, Singles | None]:
    """Return range, light and glow (r, c, …) of covered pixels; a pixel that a ray just misses gets its neighbour's."""
    at = np.flatnonzero(covered)
    range_m, place, normal, reflectivity = figure.cast(into(pose, direction.reshape(-1, 3)[at]))
    pixel_m = float(np.linalg.norm(pose[:3, :3] @ figure.center_m + pose[:3, 3])) / float(camera.k[0, 0])
    colours = figure.paint(Surface(place, reflectivity, pixel_m))
    hit = np.isfinite(range_m)
    layers = [range_m[hit][:, None], colours.albedo * _shade(normal, pose)[:, None]]
    if colours.glow is not None:
        layers.append(colours.glow)
    known = np.zeros(covered.shape, np.uint8)
    known.flat[at[hit]] = 1
    spread = _spread(np.concatenate(layers, axis=1), at[hit], known)
    return spread[..., 0], spread[..., 1:4], spread[..., 4:] if len(layers) > 2 else None


def _shade(normal: Singles, pose: Matrix) -> Singles:
    """Return the light on surfaces (n,) relative to level ground: Lambert's law for sun, sky and ground."""
    turn = pose[:3, :3]
    up = turn[:, 2]
    right = np.cross(up, [0.0, 0.0, 1.0])
    right /= max(float(np.linalg.norm(right)), 1e-6)
    to_sun = turn.T @ np.column_stack([right, up, np.cross(right, up)]) @ _TO_SUN
    above = 0.5 + 0.5 * normal[:, 2]
    light = _ABOVE * above + _BELOW * (1.0 - above) + _SUN * np.maximum(normal @ to_sun.astype(np.float32), 0.0)
    return np.asarray(light / (_ABOVE + _SUN * _TO_SUN[1]), np.float32)


def _spread(values: Singles, hit: npt.NDArray[np.int64], known: npt.NDArray[np.uint8]) -> Singles:
    """Return values (n, k) of the known pixels for every pixel (r, c, k): those of the nearest one."""
    if not len(hit):
        return np.zeros((*known.shape, values.shape[1]), np.float32)
    _, label = cv2.distanceTransformWithLabels(1 - known, cv2.DIST_L2, 3, labelType=cv2.DIST_LABEL_PIXEL)
    number = np.zeros(int(label.max()) + 1, np.int64)
    number[label.ravel()[hit]] = np.arange(len(hit))
    return np.asarray(values[number[label]], np.float32)


def _filled(corners: Floats, size: tuple[int, int], fine: int) -> Singles:
    """Return the share of each pixel (h, w) covered by triangles (T, 3, 2) in pixels."""
    mask = np.zeros((size[0] * fine, size[1] * fine), np.uint8)
    # The corner of the picture is at -0.5, at the finer resolution, too.
    scaled = np.rint(((corners + 0.5) * fine - 0.5) * 16.0).astype(np.int32)
    for triangle in scaled:
        cv2.fillConvexPoly(mask, triangle, 255, cv2.LINE_8, 4)
    small = cv2.resize(mask, (size[1], size[0]), interpolation=cv2.INTER_AREA)
    return np.asarray(small, np.float32) / np.float32(255.0)


def _share_inside(corners: Floats, low: Floats, high: Floats, last: Floats) -> float:
    """Return the share of the area of triangles, with overlaps counted, that lies in the picture."""
    scale = 200.0 / float((high - low).max())
    width, height = ((high - low) * scale).astype(int) + 2
    whole = _filled((corners - low) * scale, (int(height), int(width)), 1) > 0.5
    y, x = np.nonzero(whole)
    places = np.column_stack([x, y]) / scale + low
    return float(((places >= -0.5) & (places <= last + 0.5)).all(axis=1).mean()) if len(places) else 0.0


def _split(corners: Floats) -> Floats:
    """Return triangles (T, 3, 3) whose edges are short enough for a bending lens; long edges are halved."""
    while True:
        edge_m = np.linalg.norm(np.roll(corners, -1, axis=1) - corners, axis=2)
        long = edge_m.max(axis=1) > _EDGE_M
        if not long.any():
            return corners
        first = edge_m[long].argmax(axis=1)[:, None] + np.arange(3)
        a, b, c = np.moveaxis(np.take_along_axis(corners[long], (first % 3)[:, :, None], axis=1), 1, 0)
        middle = (a + b) / 2.0
        corners = np.concatenate([corners[~long], np.stack([a, middle, c], 1), np.stack([middle, b, c], 1)])


def smooth_normals(mesh: Mesh) -> Singles:
    """Return a normal for each corner of each triangle (T, 3, 3), averaged over nearly coplanar neighbours."""
    a, b, c = np.moveaxis(mesh.vertices_m[mesh.triangles], 1, 0)
    facing = np.cross(b - a, c - a)
    unit = facing / np.maximum(np.linalg.norm(facing, axis=1, keepdims=True), 1e-12)
    corner, other = _meeting(mesh.triangles.ravel().astype(np.int64))
    triangle, other_triangle = corner // 3, other // 3
    even = np.einsum("ij,ij->i", unit[triangle], unit[other_triangle]) > _SMOOTH_COS
    sums = [np.bincount(corner, even * facing[other_triangle, axis], minlength=3 * len(unit)) for axis in range(3)]
    normals = np.stack(sums, axis=1).reshape(-1, 3, 3)
    return np.asarray(normals / np.maximum(np.linalg.norm(normals, axis=2, keepdims=True), 1e-12), np.float32)


def _meeting(vertex: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return all pairs (p,), (p,) of corners (n,) that share a vertex, including each with itself."""
    order = np.argsort(vertex, kind="stable")
    _, start, count = np.unique(vertex[order], return_index=True, return_counts=True)
    many = np.repeat(count, count)  # how many meet each corner, in that order
    first = np.repeat(np.repeat(start, count), many)
    within = np.arange(len(first)) - np.repeat(np.cumsum(many) - many, many)
    return np.repeat(order, many), order[first + within]
