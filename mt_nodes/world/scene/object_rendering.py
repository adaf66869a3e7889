# SPDX-License-Identifier: Apache-2.0
"""Renders an object of the catalogue for a camera: covered pixels, range, light.

Rays are cast through the centre of every pixel, and through a finer grid of each pixel at an edge, or of all pixels of
a small object, so that edges and thin parts are smooth. The camera's frame is optical: x right, y down, z ahead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Singles
from mt_nodes.data.transforms import Matrix, move
from mt_nodes.world.camera.model import CameraModel
from mt_nodes.world.scene.figures import Figure, Places
from mt_nodes.world.scene.object_light import OVERCAST, ObjectLight

Flags = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.int64]
Window = tuple[slice, slice]

#: Up to so many pixels of a window, all of the object are cast on the finer grid, of at most so many rays on an axis.
_SMALL_PX, _FINEST, _RAYS, _EDGE_RAYS = 9_000, 4, 30_000, 3
#: Above so many pixels of a window, rays are cast for every second, or third, one on each axis first.
_LARGE_PX, _MANY_PX = 30_000, (70_000, 250_000)
_RAY_STEP_PX = 8


@dataclass(frozen=True, eq=False)
class Rendering:
    """What a picture shows of an object.

    Attributes:
        window: rows and columns of the picture that contain it.
        cover: (h, w) share of each pixel of the window that the unoccluded object covers; through two panes of glass
            the scene behind shows, and they cover less.
        range_m: (h, w) along the ray to the object; beside it, that of its nearest place.
        direction: (h, w, 3) of the rays.
        light: (h, w, 3) red, green, blue that its surfaces scatter, relative to white level ground.
        mirrored: (h, w, 3) light of the surroundings that they reflect, in shares of full scale.
        glow: (h, w, 3) emitted light, in shares of full scale; None for none.
        inside: share of the object that lies within the picture.
        box_px: (x0, y0, x1, y1) around the part within the picture.
        added_detail: share of the host camera's blur and noise that its colours do not have yet.
    """

    window: Window
    cover: Singles
    range_m: Singles
    direction: Singles
    light: Singles
    mirrored: Singles
    glow: Singles | None
    inside: float
    box_px: tuple[float, float, float, float]
    added_detail: float = 1.0


def render(figure: Figure, pose: Matrix, camera: CameraModel, light: ObjectLight = OVERCAST) -> Rendering | None:
    """Return an object's rendering for a camera; None if it is not in its picture.

    ``pose``: (4, 4) object to camera.
    """
    place = _place_of(figure, pose, camera)
    if place is None:
        return None
    window, inside, _ = place
    direction = directions(camera, window)
    view = _Eye(figure, pose, float(camera.k[0, 0]), light)
    layers, cover, range_m = _sampled(view, direction)
    if not (shown := cover > 0.0).any():
        return None
    # The edge of the mesh may lie a fraction of a pixel within the projected vertices' box.
    rows, columns = np.flatnonzero(shown.any(axis=1)), np.flatnonzero(shown.any(axis=0))
    left, top = window[1].start - 0.5, window[0].start - 0.5
    box = (left + columns[0], top + rows[0], left + columns[-1] + 1.0, top + rows[-1] + 1.0)
    glow = layers[..., 6:] if layers[..., 6:].any() else None
    return Rendering(
        window, cover, range_m, direction, layers[..., :3], layers[..., 3:6], glow, inside, box, view.added_detail
    )


@dataclass(frozen=True, eq=False)
class _Eye:
    """Casts rays of a camera to a figure, and lights what they meet."""

    figure: Figure
    pose: Matrix
    focal_px: float
    light: ObjectLight

    @property
    def pixel_m(self) -> float:
        """Width of a pixel at the object."""
        return float(np.linalg.norm(self.pose[:3, :3] @ self.figure.center_m + self.pose[:3, 3])) / self.focal_px

    @property
    def added_detail(self) -> float:
        """Share of the camera's blur and noise that the figure's colours lack."""
        return self.figure.added_detail(self.pixel_m)

    def look(self, direction: Singles, finer: int) -> tuple[Flags, Singles, Singles, Singles]:
        """Return which rays (n, 3) hit, the cover, the range, and the layers (n, 9) of each: light, mirrored, glow."""
        rays = into(self.pose, direction)
        range_m, places = self.figure.cast(rays, self.pixel_m / finer)
        layers = np.zeros((len(direction), 9), np.float32)
        cover = np.zeros(len(direction), np.float32)
        cover[places.rays] = 1.0 if places.cover is None else places.cover
        layers[places.rays, :3], layers[places.rays, 3:6] = self.light.shade(
            self.figure, places, rays[places.rays, 3:], self.pose
        )
        self._panes(places, rays[places.rays, 3:], layers, cover)
        if places.glow is not None:
            layers[places.rays, 6:] = places.glow
        return np.isfinite(range_m), cover, range_m, layers

    def _panes(self, places: Places, along: Singles, layers: Singles, cover: Singles) -> None:
        """Show what is behind glass, in place of the glass's own colour."""
        at, albedo, free = self.figure.behind_glass(places, along)
        if len(at):
            rays = places.rays[at]
            layers[rays, :3] = albedo * 0.35 + np.float32(0.004)
            cover[rays] = 1.0 - self.light.two_panes * free


def _sampled(view: _Eye, direction: Singles) -> tuple[Singles, Singles, Singles]:
    """Return layers (h, w, 9), cover and range (h, w) of all pixels of a window with directions (h, w, 3)."""
    size = direction.shape[:2]
    count = size[0] * size[1]
    step = 1 + sum(count > many for many in _MANY_PX)
    coarse = np.ascontiguousarray(direction[::step, ::step])
    hit, cover, range_m, layers = view.look(coarse.reshape(-1, 3), 1)
    shape = coarse.shape[:2]
    hit, cover, range_m = hit.reshape(shape), cover.reshape(shape), range_m.reshape(shape)
    layers, seen = layers.reshape(*shape, -1), hit.astype(np.uint8)
    if count <= _SMALL_PX:
        fine = cv2.dilate(seen, np.ones((3, 3), np.uint8)) > 0
        finer = int(np.clip(np.sqrt(_RAYS / max(1, int(np.count_nonzero(fine)))), 2, _FINEST))
        return _refined(view, direction, fine, finer, (layers, cover, range_m))
    if step > 1:  # between a ray that hits and one that does not
        fine = np.abs(enlarged(hit.astype(np.float32), size, step) - np.float32(0.5)) < 0.499
    else:
        kernel = cv2.getStructuringElement(cv2.MORPH_CROSS, (3, 3))
        fine = cv2.dilate(seen, kernel) != cv2.erode(seen, kernel)
    layers, range_m = _spread(np.concatenate([layers, range_m[..., None]], axis=-1), hit)
    found = enlarged(layers, size, step), enlarged(cover, size, step), enlarged(range_m, size, step)
    return _refined(view, direction, fine, _EDGE_RAYS if count <= _LARGE_PX else 2, found)


def _refined(
    view: _Eye, direction: Singles, fine: Flags, finer: int, found: tuple[Singles, Singles, Singles]
) -> tuple[Singles, Singles, Singles]:
    """Cast ``finer`` x ``finer`` rays for each pixel of a mask (h, w), and average what they meet."""
    layers, cover, range_m = found
    rows, columns = np.nonzero(fine)
    if not len(rows):
        return found
    right, down = (_slope(direction, rows, columns, axis) for axis in (1, 0))
    offsets = (np.arange(finer, dtype=np.float32) + 0.5) / finer - 0.5
    x, y = (o.ravel() for o in np.meshgrid(offsets, offsets))
    at = direction[rows, columns][:, None]
    rays = at + x[:, None] * right[:, None] + y[:, None] * down[:, None]
    hit, part, away, some = view.look(rays.reshape(-1, 3).astype(np.float32), finer)
    hits = hit.reshape(-1, finer * finer)
    number = np.maximum(hits.sum(axis=1), 1)
    share = part.reshape(hits.shape)
    # Colours are weighted by what each ray covers; a pane shows its reflection at any cover.
    weight = np.where(hits, np.maximum(share, 1e-3), 0.0)
    weight /= np.maximum(weight.sum(axis=1, keepdims=True), 1e-6)
    mean = np.einsum("nk,nkc->nc", weight, some.reshape(*hits.shape, -1))
    away = np.where(hits, away.reshape(hits.shape), 0.0).sum(axis=1) / number
    seen = hits.any(axis=1)
    cover[rows, columns] = share.mean(axis=1)
    layers[rows[seen], columns[seen]] = mean[seen]
    range_m[rows[seen], columns[seen]] = away[seen]
    known = np.isfinite(range_m) & (cover > 0.0)
    if not known.any():
        return found
    layers, range_m = _spread(np.concatenate([layers, range_m[..., None]], axis=-1), known)
    return layers, cover, range_m


def _slope(direction: Singles, rows: Indices, columns: Indices, axis: int) -> Singles:
    """Return how directions (h, w, 3) change from a pixel (n,) to the next one along an axis (n, 3)."""
    last = direction.shape[axis] - 1
    at = [rows, columns]
    low, high = (at.copy() for _ in range(2))
    low[axis], high[axis] = np.maximum(at[axis] - 1, 0), np.minimum(at[axis] + 1, last)
    width = np.maximum(high[axis] - low[axis], 1)[:, None]
    return np.asarray((direction[high[0], high[1]] - direction[low[0], low[1]]) / width, np.float32)


def _place_of(figure: Figure, pose: Matrix, camera: CameraModel) -> tuple[Window, float, Floats] | None:
    """Return the window around an object, the share of it inside the picture, and its box; None if outside."""
    pixels = camera.project(move(pose, figure.mesh.vertices_m if len(camera.d) else figure.hull_m))
    pixels = pixels[np.isfinite(pixels).all(axis=1)]
    if not len(pixels):
        return None
    low, high = pixels.min(axis=0), pixels.max(axis=0)
    last = np.array([camera.width - 1.0, camera.height - 1.0])
    box = np.concatenate([np.maximum(low, -0.5), np.minimum(high, last + 0.5)])
    if box[0] >= box[2] or box[1] >= box[3]:
        return None
    left, top = max(0, int(box[0]) - 2), max(0, int(box[1]) - 2)
    right, bottom = min(camera.width, int(box[2]) + 4), min(camera.height, int(box[3]) + 4)
    whole = bool((low >= -0.5).all() and (high <= last + 0.5).all())
    inside = 1.0 if whole else _share_inside(figure, pose, camera, last)
    return (slice(top, bottom), slice(left, right)), inside, box


def directions(camera: CameraModel, window: Window) -> Singles:
    """Return the unit vectors (h, w, 3) of the pixels of a window.

    They are computed for every eighth pixel of the window, and interpolated in between.
    """
    (top, bottom), (left, right) = ((s.start, s.stop) for s in window)
    x = np.arange(left, right + _RAY_STEP_PX, _RAY_STEP_PX, dtype=np.float64)
    y = np.arange(top, bottom + _RAY_STEP_PX, _RAY_STEP_PX, dtype=np.float64)
    nodes = camera.directions(np.stack(np.meshgrid(x, y), axis=-1)).reshape(len(y), len(x), 3).astype(np.float32)
    matrix = np.array([[1.0 / _RAY_STEP_PX, 0.0, 0.0], [0.0, 1.0 / _RAY_STEP_PX, 0.0]])
    size = right - left, bottom - top
    return np.asarray(cv2.warpAffine(nodes, matrix, size, flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP))


def into(pose: Matrix, direction: npt.NDArray[Any]) -> Singles:
    """Return rays (N, 6) from the camera, in the object's frame."""
    back = np.linalg.inv(pose)
    rays = np.empty((len(direction), 6), np.float32)
    rays[:, :3] = back[:3, 3]
    rays[:, 3:] = direction @ back[:3, :3].T.astype(np.float32)
    return rays


def enlarged(layer: Singles, size: tuple[int, ...], step: int) -> Singles:
    """Return a layer (r, c, …) of every ``step``-th pixel for every pixel of a window."""
    if step == 1:
        return layer
    back = 1.0 / step
    matrix = np.array([[back, 0.0, 0.0], [0.0, back, 0.0]])
    parts = [layer] if layer.ndim == 2 else [layer[..., i : i + 3] for i in range(0, layer.shape[-1], 3)]
    how = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    large = [
        cv2.warpAffine(np.ascontiguousarray(p), matrix, size[::-1], flags=how, borderMode=cv2.BORDER_REPLICATE)
        for p in parts
    ]
    return np.asarray(large[0] if layer.ndim == 2 else np.concatenate(large, axis=-1))


def _spread(values: Singles, known: Flags) -> tuple[Singles, Singles]:
    """Return values (r, c, k) with those of the nearest known pixel where none is known: all but the last, and that."""
    if not known.all() and known.any():
        _, label = cv2.distanceTransformWithLabels(
            1 - known.astype(np.uint8), cv2.DIST_L2, 3, labelType=cv2.DIST_LABEL_PIXEL
        )
        at = np.flatnonzero(known)
        number = np.zeros(int(label.max()) + 1, np.int64)
        number[label.ravel()[at]] = at
        rows = np.flatnonzero(~known.ravel())
        flat = values.reshape(-1, values.shape[-1])
        flat[rows] = flat[number[label.ravel()[rows]]]
    return values[..., :-1], np.ascontiguousarray(values[..., -1])


def _share_inside(figure: Figure, pose: Matrix, camera: CameraModel, last: Floats) -> float:
    """Return the share of the object's outline that lies in the picture."""
    grid = np.linspace(0.0, 1.0, 40)
    center = move(pose, figure.center_m[None])[0]
    radius = float(np.linalg.norm(figure.high_m - figure.low_m)) / 2.0
    along = center / max(float(np.linalg.norm(center)), 1e-6)
    across = np.cross(along, [0.0, 1.0, 0.0])
    across /= max(float(np.linalg.norm(across)), 1e-6)
    down = np.cross(along, across)
    u, v = (2.0 * g - 1.0 for g in np.meshgrid(grid, grid))
    targets = center + radius * (u[..., None] * across + v[..., None] * down)
    way = targets.reshape(-1, 3)
    way /= np.linalg.norm(way, axis=1, keepdims=True)
    range_m, _ = figure.cast(into(pose, way.astype(np.float32)), 1.0)
    seen = np.isfinite(range_m)
    pixels = camera.project(way[seen])
    with np.errstate(invalid="ignore"):
        inside = ((pixels >= -0.5) & (pixels <= last + 0.5)).all(axis=1)
    return float(inside.mean()) if seen.any() else 0.0
