# SPDX-License-Identifier: Apache-2.0
"""Cuts labelled objects out of recorded pictures, with the depth that the LiDAR measured of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Singles
from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.messages import Bundle
from mt_nodes.data.transforms import EGO_FRAME, Matrix, inverse, move
from mt_nodes.relations.mutations.camera.each_image import View
from mt_nodes.relations.mutations.objects.ground_shadow import ground_around, sun_over, white_level
from mt_nodes.relations.mutations.objects.in_pictures import camera_from
from mt_nodes.relations.mutations.objects.in_scene import ego_from
from mt_nodes.runs.models.cutout_labels import LabelledObject, PictureLabels
from mt_nodes.runs.models.labelled_boxes import objects_of_boxes
from mt_nodes.world.camera.cutout import sampled
from mt_nodes.world.camera.depth import depth_of
from mt_nodes.world.camera.model import CameraModel
from mt_nodes.world.camera.sun_direction import SKY_SHARE
from mt_nodes.world.scene.cutout_library import write
from mt_nodes.world.scene.cutout_objects import SOLID, Cutout
from mt_nodes.world.scene.object_light import ObjectLight
from mt_nodes.world.scene.objects import KINDS, mesh_of

Flags = npt.NDArray[np.bool_]

#: Smallest height of a mask in pixels, and fewest returns within it.
_LEAST_PX, _LEAST_RETURNS = 40, 12
#: Largest share of a mask's rim that something nearer hides; it is nearer by this, and this far above the ground.
_MOST_HIDDEN, _BEFORE_M, _ABOVE_M = 0.08, 0.7, 0.3
#: Narrower gaps in a relief (panes, what is seen below a body) and ridges (returns of what stands before it) are
#: closed, and steps are smoothed, in metres.
_GAP_M, _RIDGE_M, _SMOOTH_M = 0.9, 0.4, 0.12
#: Softness of a cut-out's edge in pixels (the camera's blur, assumed), and width of the rim whose colours are mixed
#: with the background's.
_EDGE_PX, _RIM_PX = 0.7, 2
#: Lowest part of an object that is taken for its foot, and how far that may be off the road, in metres and as a share
#: of the range (a slope of 3 %).
_FOOT, _OFF_ROAD_M, _SLOPE = 0.12, 0.5, 0.03
#: Brightness of the ground around that counts as its light: shadows of the object itself lie on it, too.
_LIT = 0.8
#: Kinds that look alike enough from every side to be put there without a known heading.
_ANY_SIDE = frozenset({"pedestrian", "animal", "unknown"})


@dataclass
class CutoutTally:
    """What became of labelled objects: cut-outs by kind, refusals by reason, and frames with labels."""

    made: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    frames: int = 0


def make_cutouts(
    bundles: Iterator[Bundle], labels: PictureLabels | None, out: Path, kinds: frozenset[str]
) -> CutoutTally:
    """Write cut-outs of labelled objects; ``labels``: None for the boxes of the data set. ``kinds``: empty for all."""
    tally = CutoutTally()
    for bundle in bundles:
        found = 0
        for view in (View.of(bundle, image) for image in bundle.images):
            size = view.picture.size
            objects = (
                objects_of_boxes(view, tally.refused)
                if labels is None
                else labels.of(bundle.index, view.image.stamp_ns, size)
            )
            found += len(objects)
            for thing in objects:
                if not kinds or thing.kind in kinds:
                    _make(view, thing, out, tally)
        tally.frames += found > 0
    return tally


def _make(view: View, thing: LabelledObject, out: Path, tally: CutoutTally) -> None:
    try:
        cutout = cut_out(view, thing, f"{thing.kind}_{tally.made[thing.kind] + 1:04d}")
    except NotApplicable as reason:
        tally.refused[str(reason)] += 1
        return
    digest = sha256(np.ascontiguousarray(view.picture.pixels).data).hexdigest()
    write(cutout, out, {"topic": view.image.topic, "stamp_ns": view.image.stamp_ns, "sha256": digest})
    tally.made[thing.kind] += 1


def cut_out(view: View, thing: LabelledObject, name: str) -> Cutout:
    """Return a labelled object as a cut-out. Raises NotApplicable: it is not whole, or too little is known of it."""
    _refuse_parts(view, thing)
    camera, to_ego = view.camera(), inverse(camera_from(view, EGO_FRAME))
    focal, center, at = _pinhole(camera, thing.mask)
    size = at.shape[:2]
    mask = sampled(thing.mask.astype(np.float32), at) > SOLID
    pixels, depth_m = _own_returns(view, camera, thing)
    _refuse_hidden(view, camera, thing.mask, float(np.quantile(depth_m, 0.1)))
    seen = camera.directions(pixels)
    upright = seen[:, :2] / seen[:, 2:] * focal + center
    relief = _relief(size, upright, depth_m, float(focal[0]))
    rgba = _soft(sampled(view.picture.rgb8(), at), mask)
    to_object, faces = _object_frame(view, thing, (focal, center, relief, mask), to_ego)
    plain = Cutout(name, thing.kind, "", rgba, relief, focal, center, to_object, 1.0, None, faces)
    return _lit(view, camera, plain, to_ego)


def _refuse_parts(view: View, thing: LabelledObject) -> None:
    mask = thing.mask
    if not thing.whole:
        raise NotApplicable("labelled as occluded")
    if mask[[0, -1]].any() or mask[:, [0, -1]].any():
        raise NotApplicable("cut off by the picture's border")
    height = int(np.count_nonzero(mask.any(axis=1)))
    if height < _LEAST_PX:
        raise NotApplicable(f"smaller than {_LEAST_PX} pixels")
    if thing.view_deg is None and KINDS[thing.kind].label not in _ANY_SIDE:
        raise NotApplicable("heading unknown: the label has no view_deg")


def _pinhole(camera: CameraModel, mask: Flags) -> tuple[Floats, Floats, Floats]:
    """Return focal length (2,) and centre (2,) of a pinhole camera that shows a mask, and its pixels (h, w, 2) here."""
    rows, columns = np.nonzero(mask)
    rays = camera.directions(np.column_stack([columns, rows]).astype(np.float64))
    if (rays[:, 2] < 0.2).any():
        raise NotApplicable("too far aside of the camera's axis")
    focal = np.array([camera.k[0, 0], camera.k[1, 1]])
    plane = rays[:, :2] / rays[:, 2:] * focal + (camera.k[0, 2], camera.k[1, 2])
    low, high = np.floor(plane.min(axis=0)) - 4.0, np.ceil(plane.max(axis=0)) + 4.0
    x, y = np.meshgrid(np.arange(low[0], high[0] + 1.0), np.arange(low[1], high[1] + 1.0))
    center = np.array([camera.k[0, 2], camera.k[1, 2]])
    grid = (np.stack([x, y], axis=-1) - center) / focal
    at = camera.project(np.concatenate([grid, np.ones((*x.shape, 1))], axis=-1).reshape(-1, 3)).reshape(*x.shape, 2)
    return focal, center - low, np.where(np.abs(at - np.rint(at)) < 1e-3, np.rint(at), at)


def _own_returns(view: View, camera: CameraModel, thing: LabelledObject) -> tuple[Floats, Floats]:
    """Return pixels (n, 2) and depths (n,) of the returns within a mask, without those of what is seen through it."""
    to_camera = camera_from(view, EGO_FRAME)
    if not view.bundle.known_clouds:
        raise NotApplicable("no cloud: its distance is not known")
    xyz = np.concatenate(
        [
            move(to_camera @ ego_from(view.bundle, c.frame_id, EGO_FRAME, c.topic), c.xyz.astype(np.float64))
            for c in view.bundle.known_clouds
        ]
    )
    xyz = xyz[np.isfinite(xyz).all(axis=1) & (xyz[:, 2] > 0.5)]
    pixels = camera.project(xyz)
    with np.errstate(invalid="ignore"):
        inside = ((pixels >= 0) & (pixels < np.array(thing.mask.shape[::-1]) - 0.5)).all(axis=1)
    pixels, depth = pixels[inside], xyz[inside, 2]
    core = cv2.erode(thing.mask.astype(np.uint8), np.ones((3, 3), np.uint8)) != 0
    x, y = np.rint(pixels).astype(int).T
    own = core[y, x]
    pixels, depth = pixels[own], depth[own]
    if len(depth) >= _LEAST_RETURNS:
        length, width, _ = np.ptp(mesh_of(thing.kind).vertices_m, axis=0)
        first = float(np.quantile(depth, 0.1))
        own = (depth > first - 1.0) & (depth < first + float(np.hypot(length, width)))
        pixels, depth = pixels[own], depth[own]
    if len(depth) < _LEAST_RETURNS:
        raise NotApplicable(f"fewer than {_LEAST_RETURNS} returns")
    return pixels, depth


def _refuse_hidden(view: View, camera: CameraModel, mask: Flags, depth_m: float) -> None:
    """Refuse what something before it hides: along its rim, the picture shows something nearer, above the ground."""
    depth = depth_of(view.bundle, view.image, camera)
    wide = cv2.dilate(mask.astype(np.uint8), np.ones((9, 9), np.uint8)) != 0
    rim = wide & (cv2.dilate(mask.astype(np.uint8), np.ones((3, 3), np.uint8)) == 0)
    rows, columns = np.nonzero(rim)
    rays = camera.directions(np.column_stack([columns, rows]).astype(np.float64))
    range_m = depth.range_m[rows // depth.step_px, columns // depth.step_px].astype(np.float64)
    near = range_m * rays[:, 2] < depth_m - _BEFORE_M
    up = move(inverse(camera_from(view, EGO_FRAME)), rays * np.where(near, range_m, 0.0)[:, None])[:, 2]
    if np.count_nonzero(near & (up > _ABOVE_M)) > _MOST_HIDDEN * len(rows):
        raise NotApplicable("something before it hides a part of it")


def _relief(size: tuple[int, ...], pixels: Floats, depth_m: Floats, focal_px: float) -> Singles:
    """Return depths (h, w) between returns: of the nearest one, without narrow gaps and ridges, and smooth."""
    from scipy.interpolate import NearestNDInterpolator

    rows, columns = (np.arange(n, dtype=np.float64) for n in size)
    grid = np.stack(np.meshgrid(columns, rows), axis=-1)
    # Beams are farther apart from each other than returns of one beam.
    found = NearestNDInterpolator(pixels * (1.0, 0.5), depth_m)(grid * (1.0, 0.5)).astype(np.float32)
    metre_px = focal_px / float(np.median(depth_m))
    for how, width_m in ((cv2.MORPH_OPEN, _GAP_M), (cv2.MORPH_CLOSE, _RIDGE_M)):
        kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (max(3, round(width_m * metre_px) | 1),) * 2)
        found = cv2.morphologyEx(found, how, kernel, borderType=cv2.BORDER_REPLICATE)
    return np.asarray(cv2.GaussianBlur(found, (0, 0), max(1.0, _SMOOTH_M * metre_px)), np.float32)


def _soft(rgb: npt.NDArray[np.uint8], mask: Flags) -> npt.NDArray[np.uint8]:
    """Return colours with opacity (h, w, 4): a soft edge, whose colours are those within."""
    cross = cv2.getStructuringElement(cv2.MORPH_CROSS, (3, 3))
    inner = cv2.erode(mask.astype(np.uint8), cross)
    alpha = cv2.GaussianBlur(inner.astype(np.float32), (0, 0), _EDGE_PX)
    own = cv2.erode(inner, cross, iterations=_RIM_PX - 1)
    own = own if own.any() else inner
    _, label = cv2.distanceTransformWithLabels(1 - own, cv2.DIST_L2, 5, labelType=cv2.DIST_LABEL_PIXEL)
    at = np.flatnonzero(own)
    number = np.zeros(int(label.max()) + 1, np.int64)
    number[label.ravel()[at]] = at
    colours = rgb.reshape(-1, 3)[number[label.ravel()]].reshape(rgb.shape)
    colours = np.where((own != 0)[..., None], rgb, colours)
    return np.concatenate([colours, np.rint(255.0 * alpha).astype(np.uint8)[..., None]], axis=-1)


def _object_frame(
    view: View, thing: LabelledObject, picture: tuple[Floats, Floats, Singles, Flags], to_ego: Matrix
) -> tuple[Matrix, bool]:
    """Return the camera's pose (4, 4) in the object's frame, and whether its heading is not known.

    Raises NotApplicable: its foot is not on the road.
    """
    focal, center, relief, mask = picture
    rows, columns = np.nonzero(mask)
    depth = relief[rows, columns].astype(np.float64)
    rays = np.column_stack([(np.column_stack([columns, rows]) - center) / focal, np.ones(len(rows))])
    xyz = move(to_ego, rays * depth[:, None])
    low = float(np.quantile(xyz[:, 2], 0.002))
    eye = to_ego[:3, 3]
    middle = np.median(xyz, axis=0)
    away = float(np.hypot(*(middle - eye)[:2]))
    if abs(low) > _OFF_ROAD_M + _SLOPE * away:
        raise NotApplicable(f"its foot is {low:+.1f} m off the road")
    length, width, _ = np.ptp(mesh_of(thing.kind).vertices_m, axis=0)
    towards = float(np.arctan2(eye[1] - middle[1], eye[0] - middle[0]))
    side = 0.0 if thing.view_deg is None else float(np.radians(thing.view_deg))
    heading = towards - side
    deep = min(length, width) if thing.view_deg is None else abs(np.cos(side)) * length + abs(np.sin(side)) * width
    ray = np.array([np.cos(towards), np.sin(towards)])
    nearest = float(np.quantile((xyz[:, :2] - middle[:2]) @ ray, 0.95))
    origin = middle[:2] + ray * (nearest - deep / 2.0)
    c, s = np.cos(heading), np.sin(heading)
    pose = np.array([[c, -s, 0.0, origin[0]], [s, c, 0.0, origin[1]], [0.0, 0.0, 1.0, low], [0.0, 0.0, 0.0, 1.0]])
    return inverse(pose) @ to_ego, thing.view_deg is None


def _lit(view: View, camera: CameraModel, plain: Cutout, to_ego: Matrix) -> Cutout:
    """Return a cut-out with the light that it was recorded in."""
    turn = (plain.to_object @ inverse(to_ego))[:3, :3]
    vertices = plain.body.vertices_m
    feet = vertices[vertices[:, 2] < max(0.3, _FOOT * float(vertices[:, 2].max()))][:, :2]
    pose = inverse(plain.to_object)
    ground = ground_around(view.picture, camera, np.array([feet.min(axis=0), feet.max(axis=0)]), pose, _LIT)
    sun = sun_over(view.bundle, EGO_FRAME)
    away_m = float(np.linalg.norm(plain.eye_m))
    least = 0.0 if sun is None else SKY_SHARE * float(sun.lit_at(away_m))
    share = 0.0 if sun is None else float(sun.share(ground.mean(), away_m, SKY_SHARE))
    to_sun = None if sun is None else turn @ sun.to_sun
    facing = plain.eye_m * (1.0, 1.0, 0.0)
    light = ObjectLight(to_sun, share).on_upright(facing / np.linalg.norm(facing))
    white = float(white_level(view.picture, ground, least).mean()) * light
    return replace(plain, white=max(white, 1e-3), to_sun=to_sun)
