# SPDX-License-Identifier: Apache-2.0
"""What is behind an object in a picture: ground up to a line, and what stands beyond it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np

from mt_nodes.base.arrays import Floats, Singles
from mt_nodes.data.images.codecs import Picture
from mt_nodes.world.camera.depth import DepthMap
from mt_nodes.world.camera.earlier_view import EarlierView, PictureBackground, recall
from mt_nodes.world.camera.fill import Fill, Surfaces, fill
from mt_nodes.world.camera.silhouette import Silhouette, dilate_mask, upsample
from mt_nodes.world.camera.standing_object import Flags, StandingObject, Window

#: Ground is measured at this share of the plane's distance or farther, up to so many metres: it is no plane beyond.
_LIKE_PLANE, _FARTHEST_M = 0.8, 90.0
#: Within a cell, the plane may be this much farther than its middle.
_LIKE_GROUND = 1.1
#: Another object counts as one beside, and not as background, if it is no more than this farther away.
_BEYOND_M = 5.0
#: How far around a return of another object the picture shows that object.
_AROUND_M = 0.2
#: Width of a hole's border in pixels, and the range of the sky.
_BORDER_PX, _SKY_M = 6, 1e4
#: Blur of an object's outline.
_EDGE_PX = 2


@dataclass(frozen=True, eq=False)
class Scene:
    """A window of a picture around an object.

    Attributes:
        thing: the object. window: rows and columns of the picture.
        pixels: (h, w, c) as shares of full scale.
        usable: (h, w) pixels that show ground or background: not the object, nor others, nor what hides it.
        directions: (r, c, 3) of cells of ``step_px`` pixels. plane_m: (r, c) range of the plane under the object.
        beyond_m: (r, c) range of the nearest surface that is no ground, infinite for the sky, NaN where unknown.
        behind_m: (n, 3) returns beyond the object of other instants, in the camera's frame.
        views: earlier pictures, the newest first.
    """

    thing: StandingObject
    window: Window
    pixels: Singles
    usable: Flags
    directions: Singles
    plane_m: Singles
    beyond_m: Singles
    step_px: int
    behind_m: Floats
    views: tuple[EarlierView, ...] = ()


def scene_of(
    thing: StandingObject,
    picture: Picture,
    depth: DepthMap,
    silhouette: Silhouette,
    others_m: Floats,
    behind_m: Floats,
    views: tuple[EarlierView, ...] = (),
) -> Scene:
    """Return what can fill the hole that an object leaves.

    Args:
        others_m: (n, 3) returns of other objects at this instant, in the camera's frame.
        behind_m: (n, 3) returns of earlier instants, in the camera's present frame. views: earlier pictures.
    """
    window, step = silhouette.window, depth.step_px
    pixels = np.asarray(picture.pixels[window].astype(np.float32) / picture.full_scale, np.float32)
    apart = dilate_mask(silhouette.hole | silhouette.hidden, _EDGE_PX) | _shown(thing, others_m, silhouette)
    rows, columns = (np.arange(s.start // step, -(-s.stop // step)) for s in window)
    directions = thing.camera.grid(step)[rows[:, None], columns].astype(np.float32)
    range_m = depth.range_m[rows[:, None], columns]
    plane_m = thing.ground.ranges(directions).astype(np.float32)
    on_plane = (plane_m < _FARTHEST_M) & (np.minimum(range_m, _SKY_M) > _LIKE_PLANE * plane_m)
    beyond = np.where(on_plane, np.float32(np.nan), range_m)
    pixels = pixels if pixels.ndim == 3 else pixels[..., None]
    return Scene(thing, window, pixels, ~apart, directions, plane_m, beyond, step, behind_m, views)


def _cells(scene: Scene, mask: Flags) -> Flags:
    """Return which cells (r, c) hold a pixel of a mask (h, w)."""
    rows, columns = scene.window
    padded = np.zeros(tuple(n * scene.step_px for n in scene.plane_m.shape), bool)
    top, left = rows.start % scene.step_px, columns.start % scene.step_px
    padded[top : top + mask.shape[0], left : left + mask.shape[1]] = mask
    return np.asarray(padded.reshape(scene.plane_m.shape[0], scene.step_px, -1, scene.step_px).any(axis=(1, 3)))


def background_of(scene: Scene, hole: Flags) -> tuple[Singles, Flags]:
    """Return the range (r, c) of what the cells show without an object in a hole (h, w), and which show the plane.

    Behind the hole is the farthest surface that other instants measured there, else that of the nearest cell beside;
    the plane where that is nearer.
    """
    wall = scene.beyond_m.copy()
    inside = _cells(scene, hole) | ~_cells(scene, scene.usable & ~hole)
    wall[inside] = np.nan
    measured = _farthest(scene)
    wall = np.where(inside & (measured > 0), measured, wall)
    known = ~np.isnan(wall)
    if not known.any():
        wall = np.full_like(wall, _SKY_M)
    else:
        _, label = cv2.distanceTransformWithLabels(
            (~known).astype(np.uint8), cv2.DIST_L2, 5, labelType=cv2.DIST_LABEL_PIXEL
        )
        by_label = np.zeros(int(label.max()) + 1, np.float32)
        by_label[label[known]] = wall[known]
        wall = by_label[label]
    wall = np.minimum(wall, np.float32(_SKY_M))
    ground = (scene.plane_m < _FARTHEST_M) & (scene.plane_m < wall)
    return np.where(ground, scene.plane_m, wall), ground


def _farthest(scene: Scene) -> Singles:
    """Return the range (r, c) of the farthest return of other instants beyond the object, above ground; 0 for none."""
    cells = np.zeros(scene.plane_m.shape, np.float32)
    if not len(scene.behind_m):
        return cells
    pixels = scene.thing.camera.project(scene.behind_m) - (
        scene.window[1].start // scene.step_px * scene.step_px,
        scene.window[0].start // scene.step_px * scene.step_px,
    )
    with np.errstate(invalid="ignore"):
        column, row = np.floor((pixels + 0.5) / scene.step_px).T
        inside = (row >= 0) & (column >= 0) & (row < len(cells)) & (column < scene.plane_m.shape[1])
    at = row[inside].astype(int), column[inside].astype(int)
    np.maximum.at(cells, at, np.linalg.norm(scene.behind_m[inside], axis=1).astype(np.float32))
    return np.asarray(cv2.morphologyEx(cells, cv2.MORPH_CLOSE, np.ones((3, 3), np.uint8)))


def fill_hole(scene: Scene, hole: Flags, recallable: Flags | None = None) -> tuple[Fill, Flags]:
    """Fill a hole (h, w): from earlier pictures first, the rest from pixels beside it.

    Args:
        recallable: (h, w) what may come from earlier pictures; None: all.

    Returns:
        The window, and what (h, w) came from earlier pictures.
    """
    range_m, ground_cells = background_of(scene, hole)
    ground = upsample(ground_cells.astype(np.uint8), scene.step_px, scene.window) != 0
    pixels = scene.pixels.copy()
    recalled = np.zeros_like(hole)
    if scene.views:
        wanted = hole if recallable is None else hole & recallable
        recalled = recall(pixels, scene.views, _background(scene, wanted, hole, range_m))
    usable, far = (scene.usable & ~hole) | recalled, upsample(range_m, scene.step_px, scene.window)
    surfaces = Surfaces(pixels, usable, ground, far, scene.thing.camera, scene.thing.ground, scene.window)
    rest = fill(surfaces, hole & ~recalled)
    return Fill(rest.pixels, rest.given | recalled), recalled


def _background(scene: Scene, wanted: Flags, hole: Flags, range_m: Singles) -> PictureBackground:
    """Return the points that the pixels of a hole show, and those of its border."""
    kernel = np.ones((2 * _BORDER_PX + 1,) * 2, np.uint8)
    border = (cv2.dilate(hole.astype(np.uint8), kernel) != 0) & scene.usable & ~hole
    nearness = upsample(1.0 / range_m, scene.step_px, scene.window)
    corner = np.array([scene.window[1].start, scene.window[0].start])
    found: list[Any] = []
    for mask in (wanted, border):
        at = np.argwhere(mask)
        away = scene.thing.camera.directions(at[:, ::-1] + corner)
        plane, far = scene.thing.ground.ranges(away), 1.0 / nearness[tuple(at.T)]
        ground = (plane < _FARTHEST_M) & (plane < far * _LIKE_GROUND)
        found += [at, away * np.where(ground, plane, far)[:, None], ground]
    return PictureBackground(*found)


def _shown(thing: StandingObject, others_m: Floats, silhouette: Silhouette) -> Flags:
    """Return the pixels (h, w) that show other objects which are not far behind."""
    rows, columns = silhouette.window
    mask = np.zeros(silhouette.body.shape, np.uint8)
    range_m = np.linalg.norm(others_m, axis=1)
    near = range_m < thing.range_m + _BEYOND_M
    pixels = thing.camera.project(others_m[near]) - (columns.start, rows.start)
    reach = np.clip(_AROUND_M * thing.camera.k[0, 0] / np.maximum(range_m[near], 0.1), 1.0, 20.0)
    with np.errstate(invalid="ignore"):
        inside = np.asarray(((pixels > -20) & (pixels < np.array(mask.shape[::-1]) + 20)).all(axis=1))
    for size in np.unique(np.ceil(reach[inside] / 2.0) * 2.0).astype(int).tolist():
        own = inside.copy()
        own[inside] = np.ceil(reach[inside] / 2.0) * 2.0 == size
        dots = np.zeros((len(mask) + 40, silhouette.body.shape[1] + 40), np.uint8)
        x, y = np.rint(pixels[own] + 20).astype(int).T
        dots[np.clip(y, 0, dots.shape[0] - 1), np.clip(x, 0, dots.shape[1] - 1)] = 1
        mask |= cv2.dilate(dots, np.ones((2 * size + 1,) * 2, np.uint8))[20:-20, 20:-20]
    return np.asarray(mask != 0)
