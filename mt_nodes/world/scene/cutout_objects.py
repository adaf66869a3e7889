# SPDX-License-Identifier: Apache-2.0
"""Recorded objects, cut out of labelled pictures, as objects for cameras and LiDARs.

A cut-out is a relief: its front is the surface that the LiDAR measured of it, its outline that of its mask. Behind the
front it is as deep as its kind, but nowhere wider than its outline from any direction within :data:`MOST_ASIDE_RAD` of
the one it was recorded from. So rays and lines of sight meet one and the same solid, of which cameras see nothing but
what was recorded.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Singles
from mt_nodes.base.open3d_late import tensor
from mt_nodes.data.transforms import Matrix, inverse, move
from mt_nodes.world.modelling.shading import DetailedMesh
from mt_nodes.world.scene.appearance import SurfaceColours
from mt_nodes.world.scene.figures import Figure, Places
from mt_nodes.world.scene.materials import finish_of
from mt_nodes.world.scene.meshes import Mesh
from mt_nodes.world.scene.objects import KINDS, mesh_of
from mt_nodes.world.scene.sight import RaycastBody

Flags = npt.NDArray[np.bool_]

#: Farthest aside of the recorded direction from which an object is shown (assumed: a flat board gives itself away by
#: its outline from some 15 degrees on).
MOST_ASIDE_RAD = float(np.radians(12.0))
#: Nodes of the relief along the longer side of a mask, and the thinnest it gets, in metres.
_NODES, _THIN_M = 110, 0.02
#: Opacity from which a pixel is the object's for a LiDAR, and for cameras, which see softer edges.
SOLID, _SEEN = 0.5, 0.03
#: Share of the light of sky and ground on an upright surface (cosine law: it faces half of both).
HALF = 0.5
#: That of the pictures in which objects are drawn.
_GAMMA = np.float32(2.2)
#: Steps between the sizes of a picture that are kept.
_SIZES = 1.25


@dataclass(frozen=True, eq=False)
class Cutout:
    """An object of a recorded picture.

    Attributes:
        name: of its files. kind: of :data:`~mt_nodes.world.scene.objects.KINDS`. digest: of its pixels and numbers.
        rgba: (h, w, 4) samples of red, green and blue, and opacity. depth_m: (h, w) along the optical axis.
        focal_px: (2,) and center_px: (2,) of the pinhole camera of these pixels.
        to_object: (4, 4) that camera to the object's frame: on the ground, x ahead, z up.
        white: light of white upright surfaces that face the camera there, in shares of full scale.
        to_sun: (3,) towards the sun in the object's frame, None if the picture did not tell.
        faces: whether its heading is not known, and taken to be towards the camera.
    """

    name: str
    kind: str
    digest: str
    rgba: npt.NDArray[np.uint8]
    depth_m: Singles
    focal_px: Floats
    center_px: Floats
    to_object: Matrix
    white: float
    to_sun: Floats | None = None
    faces: bool = False

    @property
    def eye_m(self) -> Floats:
        """Place (3,) of the camera in the object's frame."""
        return np.asarray(self.to_object[:3, 3])

    @property
    def side_rad(self) -> float:
        """Direction from the object to the camera: 0 before it, positive to its left."""
        return float(np.arctan2(self.eye_m[1], self.eye_m[0]))

    @property
    def down_rad(self) -> float:
        """Angle by which the camera looks down on its foot."""
        return float(np.arctan2(self.eye_m[2], np.hypot(*self.eye_m[:2])))

    @property
    def pixel_m(self) -> float:
        """Width of a pixel at the object."""
        return float(np.linalg.norm(self.eye_m) / self.focal_px[0])

    def pixels(self, xyz_m: npt.NDArray[np.floating]) -> Floats:
        """Return where (n, 2) its picture shows places (n, 3) of the object's frame."""
        seen = move(inverse(self.to_object), np.asarray(xyz_m, np.float64))
        return np.asarray(seen[:, :2] / np.maximum(seen[:, 2:], 1e-3) * self.focal_px + self.center_px)

    def opacity(self, xyz_m: npt.NDArray[np.floating], reach_px: int = 0) -> Singles:
        """Return its opacity (n,) at places (n, 3) of the object's frame, the highest within some pixels."""
        alpha = self.rgba[..., 3]
        if reach_px:
            alpha = cv2.dilate(alpha, np.ones((2 * reach_px + 1,) * 2, np.uint8))
        x, y = np.rint(self.pixels(xyz_m)).astype(np.int64).T
        inside = (x >= 0) & (y >= 0) & (x < alpha.shape[1]) & (y < alpha.shape[0])
        found = np.zeros(len(x), np.float32)
        found[inside] = alpha[y[inside], x[inside]] / np.float32(255.0)
        return found

    def places(self, pixels: Floats, depth_m: npt.NDArray[np.floating]) -> Floats:
        """Return the places (n, 3) in the object's frame of pixels (n, 2) at depths (n,)."""
        rays = np.column_stack([(pixels - self.center_px) / self.focal_px, np.ones(len(pixels))])
        return move(self.to_object, rays * np.asarray(depth_m, np.float64)[:, None])

    @cached_property
    def body(self) -> RaycastBody:
        """It for rays, in the material of its kind."""
        return RaycastBody(self.relief(SOLID), finish_of(KINDS[self.kind].label))

    @cached_property
    def figure(self) -> Figure:
        """It for cameras."""
        return CutoutFigure(self)

    def relief(self, least: float) -> Mesh:
        """Return its surface, where it is at least so opaque."""
        height, width = self.rgba.shape[:2]
        step = max(1.0, max(height, width) / _NODES)
        x, y = (np.arange(0.0, n - 0.5, step) for n in (width, height))
        cells = _cells(self.rgba[..., 3], x, y, step, least)
        at = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
        columns, rows = (a.reshape(len(y), len(x)).astype(np.float32) for a in at.T)
        depth = cv2.remap(self.depth_m, columns, rows, cv2.INTER_LINEAR)
        front = self.places(at, depth.ravel())
        away = -self.eye_m * (1.0, 1.0, 0.0)
        thick = _thickness(cells, step * self.pixel_m, self._deep_m(front, away))
        back = front + thick.reshape(-1, 1) * away / np.linalg.norm(away)
        return _shell(front, back, cells, KINDS[self.kind].reflectivity)

    def _deep_m(self, front: Floats, away: Floats) -> float:
        """Return how deep the mesh of its kind is along the line of sight."""
        length, width, _ = np.ptp(mesh_of(self.kind).vertices_m, axis=0)
        unit = away[:2] / np.linalg.norm(away[:2])
        return float(max(abs(unit[0]) * length, abs(unit[1]) * width)) if not self.faces else float(min(length, width))


def _cells(alpha: npt.NDArray[np.uint8], x: Floats, y: Floats, step: float, least: float) -> Flags:
    """Return which cells (r, c) between nodes are the object's."""
    middle = np.meshgrid(x[:-1] + step / 2.0, y[:-1] + step / 2.0)
    soft = cv2.blur(alpha, (max(1, round(step)),) * 2).astype(np.float32)
    columns, rows = (m.astype(np.float32) for m in middle)
    mean = cv2.remap(soft, columns, rows, cv2.INTER_LINEAR)
    return np.asarray(mean >= 255.0 * least)


def _thickness(cells: Flags, cell_m: float, deep_m: float) -> Floats:
    """Return the thickness (r + 1, c + 1) at the nodes: by the distance from the outline along the row."""
    padded = np.pad(cells, 1).astype(np.int64)
    left, right = padded.copy(), padded.copy()
    for column in range(1, padded.shape[1]):
        left[:, column] *= left[:, column - 1] + 1
        right[:, -column - 1] *= right[:, -column] + 1
    within = np.minimum(left, right)
    node = np.minimum.reduce([within[:-1, :-1], within[1:, :-1], within[:-1, 1:], within[1:, 1:]])
    # A node on the upper or lower rim is as thick as the row beside it: only its sides taper.
    rows = np.maximum(np.minimum(within[:-1, :-1], within[:-1, 1:]), np.minimum(within[1:, :-1], within[1:, 1:]))
    node = np.where((padded[:-1, :-1] + padded[:-1, 1:] == 0) | (padded[1:, :-1] + padded[1:, 1:] == 0), rows, node)
    return np.asarray(np.clip(node * cell_m / np.tan(MOST_ASIDE_RAD), _THIN_M, deep_m))


def _shell(front: Floats, back: Floats, cells: Flags, reflectivity: float) -> Mesh:
    """Return the closed surface between two sheets of nodes."""
    rows, columns = np.nonzero(cells)
    wide = cells.shape[1] + 1
    corner = np.stack([rows * wide + columns, rows * wide + columns + 1, (rows + 1) * wide + columns + 1,
                       (rows + 1) * wide + columns], axis=1)  # fmt: skip
    sheet = corner[:, [0, 1, 2, 0, 2, 3]].reshape(-1, 3)
    edges = np.concatenate([corner[:, [i, (i + 1) % 4]] for i in range(4)])
    own, count = np.unique(np.sort(edges, axis=1), axis=0, return_counts=True)
    a, b = own[count == 1].T
    far = len(front)
    walls = np.concatenate([np.stack([a, b, b + far], axis=1), np.stack([a, b + far, a + far], axis=1)])
    triangles = np.concatenate([sheet, sheet + far, walls])
    used, renumbered = np.unique(triangles, return_inverse=True)
    vertices = np.concatenate([front, back])[used]
    return Mesh(vertices, renumbered.reshape(-1, 3).astype(np.uint32), np.full(len(triangles), reflectivity))


class CutoutFigure(Figure):
    """A cut-out for cameras: lit as an upright surface that faces the one it was recorded by."""

    balanced = True

    def __init__(self, cutout: Cutout) -> None:
        mesh = cutout.relief(_SEEN)
        # A detailed mesh is not divided further; its colours are those of the picture.
        super().__init__(DetailedMesh(mesh.vertices_m, mesh.triangles, mesh.reflectivity), _no_paint)
        self.cutout = cutout
        facing = cutout.eye_m * (1.0, 1.0, 0.0)
        self._normal = (facing / np.linalg.norm(facing)).astype(np.float32)
        self._texture = lru_cache(maxsize=12)(self._smaller)

    def cast(self, rays: Singles, pixel_m: float) -> tuple[Singles, Places]:
        """Cast rays (N, 6); colours are those that the picture shows there, by as many of its pixels as one spans."""
        range_m = self._scene.cast_rays(tensor(rays), nthreads=1)["t_hit"].numpy()
        hit = np.flatnonzero(np.isfinite(range_m))
        xyz = rays[hit, :3] + rays[hit, 3:] * range_m[hit, None]
        size = max(0, round(float(np.log(max(pixel_m / self.cutout.pixel_m, 1.0)) / np.log(_SIZES))))
        colours = self._sampled(xyz, size)
        none, half = np.zeros(len(hit), np.float32), np.full(len(hit), HALF, np.float32)
        normal = np.tile(self._normal, (len(hit), 1))
        albedo = (colours[:, :3] / np.maximum(colours[:, 3:], np.float32(1e-3))).astype(np.float32)
        places = Places(hit, range_m[hit], xyz, normal, albedo, none, half, half, None, none > 0.0, colours[:, 3])
        return range_m, places

    def lit(self, places: Places, to_sun: Floats) -> Flags:
        """Return all places (n,): what it hides from the sun itself is in its picture."""
        return np.ones(len(places.xyz_m), bool)

    def added_detail(self, pixel_m: float) -> float:
        """Return the share of the host camera's blur and noise that its picture does not have yet."""
        smaller = pixel_m / self.cutout.pixel_m
        return float(np.sqrt(max(0.0, 1.0 - 1.0 / max(smaller, 1.0) ** 2)))

    def _smaller(self, size: int) -> Singles:
        """Return its light times opacity, and that (h, w, 4), at a size of so many steps."""
        whole = self.cutout.rgba.astype(np.float32) / np.float32(255.0)
        light = whole[..., :3] ** _GAMMA / np.float32(self.cutout.white) * whole[..., 3:]
        layers = np.ascontiguousarray(np.concatenate([light, whole[..., 3:]], axis=-1))
        if not size:
            return layers
        height, width = (max(1, round(n / _SIZES**size)) for n in layers.shape[:2])
        return np.asarray(cv2.resize(layers, (width, height), interpolation=cv2.INTER_AREA))

    def _sampled(self, xyz: Singles, size: int) -> Singles:
        layers = self._texture(size)
        if not len(xyz):
            return np.zeros((0, 4), np.float32)
        shrunk = np.array(layers.shape[1::-1]) / self.cutout.rgba.shape[1::-1]
        at = ((self.cutout.pixels(xyz) + 0.5) * shrunk - 0.5).astype(np.float32)[:, None]
        pieces = (at[i : i + 30_000] for i in range(0, len(at), 30_000))  # cv2.remap takes at most 32,767 rows
        return np.concatenate([cv2.remap(layers, piece, None, cv2.INTER_LINEAR)[:, 0] for piece in pieces])


def _no_paint(surface: object) -> SurfaceColours:
    raise AssertionError("a cut-out has its own colours")
