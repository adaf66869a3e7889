# SPDX-License-Identifier: Apache-2.0
"""How much of the sun is visible past what stands before it: one number for every sensor of a bundle.

The sun's disc and aureole are integrated over directions, each of which is clear or not: in a picture, by the sky that
its cells show; elsewhere, by the LiDAR's nearest beams, those without a return into the sky included. Above a LiDAR's
topmost beams, what they hit continues upwards as far as a house (assumed).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from weakref import WeakKeyDictionary

import cv2
import numpy as np
from scipy.spatial import cKDTree

from mt_nodes.base.arrays import Floats, Ints
from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.data.transforms import UnknownTransform
from mt_nodes.relations.mutations.camera.each_image import View
from mt_nodes.relations.mutations.joint.every_sensor import surroundings
from mt_nodes.world.camera.sun_light import AUREOLE_RAD, DISC_RAD, sunshape
from mt_nodes.world.scene.beams import beams_of
from mt_nodes.world.scene.silent_rays import silent_rays

#: Edges of the rings of directions, in radians, and directions in each.
_RINGS = (0.0, 1.6e-3, 3.2e-3, DISC_RAD, 7e-3, 11e-3, 17e-3, 27e-3, AUREOLE_RAD)
_AROUND = 12
#: Beams in this window of azimuth count, in radians; a return this near to a direction blocks it if beams are unknown.
_WINDOW_RAD, _APART_RAD = 0.09, 0.01
#: Beams this far below the topmost one are at the sensor's upper limit.
_TOP_RAD = np.radians(1.0)
#: Height over the road of what the topmost beams hit, and of the soft end of it, in metres (assumed: two storeys).
_HOUSE_M, _SOFT_M, _FAR_M = 8.0, 3.0, 1e5
#: Beams that decide on a direction, and how near to it they are the same, in square radians.
_NEIGHBOURS, _SAME_SQUARE = 4, 1e-7

_known: WeakKeyDictionary[Bundle, tuple[tuple[bytes, str, float], float]] = WeakKeyDictionary()


def visible_share(bundle: Bundle, sun: Floats, frame_id: str, circumsolar: float) -> float:
    """Return the share of the sun's light, 0 to 1, that reaches the vehicle past what stands before it.

    The last result of a bundle is cached: every sensor needs the same.
    Raises NotApplicable: of a camera the calibration, the pose or the depth is unknown.
    ``sun``: (3,) unit vector towards it in ``frame_id``. ``frame_id``: frame that the transforms join to the sensors'.
    ``circumsolar``: see :func:`~mt_nodes.world.camera.sun_light.sunshape`.
    """
    key = (np.asarray(sun).tobytes(), frame_id, circumsolar)
    known = _known.get(bundle)
    if known is None or known[0] != key:
        directions, weight = sun_directions(np.asarray(sun, np.float64), circumsolar)
        known = _known[bundle] = key, float(weight @ clear_shares(bundle, directions, frame_id))
    return known[1]


def in_a_picture(bundle: Bundle, sun: Floats, frame_id: str) -> bool:
    """Return whether a direction (3,) of a frame lies within a picture of the bundle.

    Raises NotApplicable: the calibration or the pose of a camera is unknown.
    """
    for image in bundle.images:
        camera = View.of(bundle, image).camera()
        x, y = camera.project(_turn(bundle, image.frame_id, frame_id) @ np.asarray(sun))[0].tolist()
        if 0.0 <= x < camera.width and 0.0 <= y < camera.height:
            return True
    return False


def sun_directions(sun: Floats, circumsolar: float) -> tuple[Floats, Floats]:
    """Return directions (n, 3) of the sun's disc and aureole, and the share (n,) of its light from each."""
    edges = np.array(_RINGS)
    middle = np.sqrt((np.square(edges[1:]) + np.square(edges[:-1])) / 2.0)
    power = sunshape(middle, circumsolar) * (np.square(edges[1:]) - np.square(edges[:-1]))
    turn = 2.0 * np.pi * (np.arange(_AROUND)[None] + 0.5 * (np.arange(len(middle)) % 2)[:, None]) / _AROUND
    aside = np.cross(sun, [0.0, 0.0, 1.0] if abs(sun[2]) < 0.9 else [1.0, 0.0, 0.0])
    aside /= np.linalg.norm(aside)
    up = np.cross(aside, sun)
    off = np.cos(turn)[..., None] * aside + np.sin(turn)[..., None] * up
    rays = np.cos(middle)[:, None, None] * sun + np.sin(middle)[:, None, None] * off
    return rays.reshape(-1, 3), np.repeat(power / power.sum() / _AROUND, _AROUND)


def clear_shares(bundle: Bundle, directions: Floats, frame_id: str) -> Floats:
    """Return for directions (n, 3) of a frame, near to each other, the clear share (n,): 1 where no sensor looks."""
    clear = np.full(len(directions), np.nan)
    for shares in chain(_of_pictures(bundle, directions, frame_id), _of_clouds(bundle, directions, frame_id)):
        clear = np.where(np.isnan(clear), shares, clear)
        if not np.isnan(clear).any():
            break
    return np.where(np.isnan(clear), 1.0, clear)


def _of_pictures(bundle: Bundle, directions: Floats, frame_id: str) -> Iterator[Floats]:
    """Yield of each picture the share of sky (n,) in the directions, NaN outside of it."""
    for image in bundle.images:
        view = View.of(bundle, image)
        camera, around = view.camera(), surroundings(view)
        pixels = camera.project(directions @ _turn(bundle, image.frame_id, frame_id).T)
        last = np.array([camera.width, camera.height]) - 0.5
        with np.errstate(invalid="ignore"):
            inside = np.asarray(((pixels >= -0.5) & (pixels < last)).all(axis=1))
        cells = ((np.where(inside[:, None], pixels, 0.0) + 0.5) / around.depth.step_px - 0.5).astype(np.float32)
        sky = around.sky.astype(np.float32)
        share = cv2.remap(sky, cells[None, :, 0], cells[None, :, 1], cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
        yield np.where(inside, share[0].astype(np.float64), np.nan)


def _of_clouds(bundle: Bundle, directions: Floats, frame_id: str) -> Iterator[Floats]:
    """Yield of each cloud the clear share (n,) of the directions, NaN where it has no beams around."""
    for cloud in bundle.known_clouds:
        yield _of_cloud(bundle, cloud, directions @ _turn(bundle, cloud.frame_id, frame_id).T)


def _of_cloud(bundle: Bundle, cloud: Cloud, directions: Floats) -> Floats:
    middle = directions.mean(axis=0)
    bearing = float(np.arctan2(middle[1], middle[0]))
    beams, reach_m, complete = _beams_about(cloud, bearing)
    if not len(beams):
        return np.full(len(directions), np.nan)
    wanted = _angles(directions, bearing)
    near, weight, apart = _nearest(beams, wanted)
    clear = (weight * np.isinf(reach_m[near])).sum(axis=1)
    if not complete:
        clear[apart > _APART_RAD] = 1.0
    above = wanted[:, 1] > beams[:, 1].max()
    if above.any():
        clear[above] = _over_the_top(beams, reach_m, wanted[above], _height_m(bundle, cloud))
    return np.asarray(clear)


def _over_the_top(beams: Floats, reach_m: Floats, wanted: Floats, height_m: float) -> Floats:
    """Return the clear share (n,) of directions above all beams: of the topmost beams below them, how far up they end.

    ``beams``: (m, 2) angles. ``reach_m``: (m,) ranges, infinite without a return. ``wanted``: (n, 2) angles of the
    directions. ``height_m``: of the sensor over the road.
    """
    highest = beams[:, 1] > beams[:, 1].max() - _TOP_RAD
    flat = np.array([1.0, 0.0])
    near, weight, _ = _nearest(beams[highest] * flat, wanted * flat)
    level_m = (np.minimum(reach_m[highest], _FAR_M) * np.cos(beams[highest, 1]))[near]
    end_m = height_m + level_m * np.tan(wanted[:, 1:])
    return np.asarray((weight * np.clip(0.5 + (end_m - _HOUSE_M) / _SOFT_M, 0.0, 1.0)).sum(axis=1))


def _beams_about(cloud: Cloud, bearing: float) -> tuple[Floats, Floats, bool]:
    """Return angles (m, 2) of beams around a bearing, aside and up, ranges (m,) infinite without a return.

    The last value tells whether beams without a return are known.
    """
    x, y, z = (np.asarray(cloud.points[name], np.float32) for name in "xyz")
    cosine, sine = np.float32(np.cos(bearing)), np.float32(np.sin(bearing))
    with np.errstate(invalid="ignore", over="ignore"):
        along, aside = x * cosine + y * sine, y * cosine - x * sine
        rows = np.flatnonzero((along > 0.0) & (np.abs(aside) < along * np.float32(np.tan(_WINDOW_RAD))))
    hits = np.column_stack([axis[rows].astype(np.float64) for axis in (x, y, z)])
    silent = silent_rays(cloud, bearing, _WINDOW_RAD)
    ranges = np.concatenate([np.linalg.norm(hits, axis=1), np.full(len(silent.rows), np.inf)])
    try:
        beams_of(cloud)
        complete = True
    except NotApplicable:
        complete = False
    return _angles(np.concatenate([hits, silent.direction]), bearing), ranges, complete


def _angles(directions: Floats, bearing: float) -> Floats:
    """Return angles (n, 2) of directions (n, 3): aside of a bearing and up."""
    aside = np.arctan2(directions[:, 1], directions[:, 0]) - bearing
    up = np.arctan2(directions[:, 2], np.hypot(directions[:, 0], directions[:, 1]))
    return np.column_stack([aside - 2.0 * np.pi * np.rint(aside / (2.0 * np.pi)), up])


def _nearest(places: Floats, wanted: Floats) -> tuple[Ints, Floats, Floats]:
    """Return the nearest of places (m, 2) to wanted ones (n, 2): index and weight (n, k), and distance (n,).

    Weights go with the inverse of the squared distance, and add up to 1.
    """
    tree = cKDTree(places)
    away, index = tree.query(wanted, min(_NEIGHBOURS, len(places)))
    away, index = (np.asarray(a).reshape(len(wanted), -1) for a in (away, index))
    weight = 1.0 / (np.square(away) + _SAME_SQUARE)
    return index, weight / weight.sum(axis=1, keepdims=True), away[:, 0]


def _turn(bundle: Bundle, to_frame: str, frame_id: str) -> Floats:
    try:
        return np.asarray(bundle.transforms.lookup(to_frame, frame_id)[:3, :3], np.float64)
    except UnknownTransform as error:
        raise NotApplicable(f"where the sun stands is not known: {error}") from error


def _height_m(bundle: Bundle, cloud: Cloud) -> float:
    """Return how high a LiDAR is over the road; at the height of its own frame if nobody knows."""
    try:
        return float(bundle.transforms.lookup("base_link", cloud.frame_id)[2, 3])
    except UnknownTransform:
        return 0.0
