# SPDX-License-Identifier: Apache-2.0
"""The ground of a map: carriageway with markings, pavements with kerbs, grass."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import shapely

from mt_nodes.base.arrays import Floats, Singles
from mt_nodes.world.drive.markings import markings, strip
from mt_nodes.world.drive.road_map import RoadMap
from mt_nodes.world.scene.meshes import Mesh, merged
from mt_nodes.world.scene.street import ASPHALT, KERB_M, PAVING

ROADWAY, PAVED, GREEN = 0, 1, 2
#: Reflectivity near 0.9 µm of grass, whose leaves are bright there, and of road paint; both assumed.
_GRASS, PAINT = 0.4, 0.6
#: Width of pavements; half size and height of the grass plain around the map.
_PAVED_M, _PLAIN_M, _PLAIN_Z_M = 5.0, 1500.0, -0.03
#: Pixel size of the markings' picture: coarser if a map would need more than so many pixels, or so many on one side.
_PIXEL_M, _MOST_PX, _LONGEST_PX, _LEVELS = 0.04, 6e7, 30_000, 7
_SHIFT = 6
#: Lists of places are folded into pictures of this width.
_FOLD = 4096


class Ground:
    """The ground of a map.

    ``mesh``: its triangles in ``map``. materials: (T,) of each: :data:`ROADWAY`, :data:`PAVED` or :data:`GREEN`.
    """

    def __init__(self, road: RoadMap) -> None:
        self._road = road
        lanes = [lane for lane in road.lanes.values() if lane.on_road]
        surface = surface_of(road)
        whole = shapely.Polygon(road.ground_m)
        raised = whole.difference(surface)
        paved = raised.intersection(surface.buffer(_PAVED_M))
        plain = whole.centroid.buffer(_PLAIN_M, quad_segs=2).difference(whole)
        parts = [
            (_level(whole.intersection(surface), 0.0, ASPHALT), ROADWAY),
            (_level(paved, KERB_M, PAVING), PAVED),
            (_level(raised.difference(paved), KERB_M, _GRASS), GREEN),
            (_level(plain, _PLAIN_Z_M, _GRASS), GREEN),
            (_walls(raised), PAVED),
        ]
        self.mesh = merged(mesh for mesh, _ in parts)
        self.materials = np.repeat([material for _, material in parts], [len(mesh.triangles) for mesh, _ in parts])
        ends = np.concatenate([lane.line_m for lane in lanes])
        self._corner, far = ends.min(axis=0) - 8.0, ends.max(axis=0) + 8.0
        wide, tall = (far - self._corner).tolist()
        self._pixel_m = max(_PIXEL_M, float(np.sqrt(wide * tall / _MOST_PX)), max(wide, tall) / _LONGEST_PX)
        self._size = np.ceil((far - self._corner) / self._pixel_m).astype(int) + 1

    def painted(self, x_m: Singles, y_m: Singles, wide_m: Singles | None = None) -> Singles:
        """Return the painted share (n,) of the ground at places (n,) of ``map``, averaged over widths (n,).

        From a pyramid of pictures: for each place the one whose pixels are about as wide; bilinear.
        """
        if wide_m is None:
            return self._interpolated(0, x_m, y_m)
        level = np.log2(np.maximum(wide_m / np.float32(self._pixel_m), np.float32(1.0)))
        number = np.minimum(np.rint(level), len(self._pyramid) - 1).astype(np.int8)
        shares = np.empty(len(x_m), np.float32)
        for one in range(len(self._pyramid)):
            rows = np.flatnonzero(number == one)
            if len(rows):
                shares[rows] = self._interpolated(one, x_m[rows], y_m[rows])
        return shares

    def _interpolated(self, level: int, x_m: Singles, y_m: Singles) -> Singles:
        per_m = np.float32(1.0 / (self._pixel_m * 2**level))
        column, row = (
            (at - np.float32(corner)) * per_m - np.float32(0.5)
            for at, corner in zip((x_m, y_m), self._corner, strict=True)
        )
        return interpolated(self._pyramid[level], column, row, cv2.BORDER_CONSTANT) * np.float32(1.0 / 255.0)

    @cached_property
    def _pyramid(self) -> list[npt.NDArray[np.uint8]]:
        """Return the paint, 0 to 255, rows to the north, each picture half as fine as the previous one."""
        pictures = [np.zeros((int(self._size[1]), int(self._size[0])), np.uint8)]
        for outline in markings(self._road):
            places = (outline - self._corner) / self._pixel_m - 0.5
            cv2.fillPoly(pictures[0], [np.rint(places * (1 << _SHIFT)).astype(np.int32)], 255, cv2.LINE_AA, _SHIFT)
        while len(pictures) < _LEVELS and min(pictures[-1].shape) > 8:
            rows, columns = (n // 2 for n in pictures[-1].shape)
            even = pictures[-1][: 2 * rows, : 2 * columns]
            pictures.append(np.asarray(cv2.resize(even, (columns, rows), interpolation=cv2.INTER_AREA)))
        return pictures


def surface_of(road: RoadMap) -> Any:
    """Return the carriageway, a prepared shapely geometry: the map's own, or else the area of its lanes."""
    lanes = [lane for lane in road.lanes.values() if lane.on_road]
    surface = road.carriageway if road.surface_m else shapely.union_all([strip(o, o.width_m / 2) for o in lanes])
    shapely.prepare(surface)
    return surface


def heights_m(surface: Any, places_m: Floats) -> Floats:
    """Return the height (n,) of the ground at places (n, 2): that of the road, or of the pavement."""
    return np.where(shapely.contains_xy(surface, places_m[:, 0], places_m[:, 1]), 0.0, KERB_M)


def interpolated(picture: npt.NDArray[Any], column: Singles, row: Singles, border: int) -> Singles:
    """Return the values (n,) of a picture at places (n,), bilinear; ``border`` is OpenCV's border mode."""
    count = len(column)
    if not count:
        return np.empty(0, np.float32)
    # OpenCV interpolates in pictures, not in lists.
    places = np.zeros((2, -(-count // _FOLD) * _FOLD), np.float32)
    places[0, :count], places[1, :count] = column, row
    x, y = places.reshape(2, -1, _FOLD)
    found = cv2.remap(picture, x, y, cv2.INTER_LINEAR, borderMode=border, borderValue=0)
    return np.asarray(found.reshape(-1)[:count], np.float32)


def _level(region: Any, z_m: float, reflectivity: float) -> Mesh:
    """Return the triangles of a region at one height, facing up."""
    found = shapely.get_parts(shapely.constrained_delaunay_triangles(region))
    corners = np.array([shapely.get_coordinates(triangle)[:3] for triangle in shapely.orient_polygons(found)])
    corners = corners.reshape(-1, 3, 2)
    vertices = np.concatenate([corners, np.full((*corners.shape[:2], 1), z_m)], axis=2).reshape(-1, 3)
    return _mesh(vertices, reflectivity)


def _walls(raised: Any) -> Mesh:
    """Return the faces between the road and raised areas, facing the road."""
    quads = [
        quad for ring in _rings(shapely.orient_polygons(raised)) for a, b in pairwise(ring) for quad in _wall(a, b)
    ]
    return _mesh(np.array(quads, dtype=np.float64).reshape(-1, 3), PAVING)


def _rings(region: Any) -> Iterator[Floats]:
    for polygon in shapely.get_parts(region):
        for ring in (polygon.exterior, *polygon.interiors):
            yield np.asarray(ring.coords)


def _wall(a: Floats, b: Floats) -> Iterator[tuple[float, float, float]]:
    """Yield the corners of two triangles that stand over a line."""
    low_a, low_b, top_a, top_b = (*a, _PLAIN_Z_M), (*b, _PLAIN_Z_M), (*a, KERB_M), (*b, KERB_M)
    yield from (low_a, low_b, top_b, low_a, top_b, top_a)


def _mesh(vertices: Floats, reflectivity: float) -> Mesh:
    """Return a mesh of triangles that share no vertices."""
    triangles = np.arange(len(vertices), dtype=np.uint32).reshape(-1, 3)
    return Mesh(vertices, triangles, np.full(len(triangles), reflectivity))
