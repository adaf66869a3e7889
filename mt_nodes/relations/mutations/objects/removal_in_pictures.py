# SPDX-License-Identifier: Apache-2.0
"""Removes an object of the scene from pictures: its silhouette and shadow are filled, and the fill is measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from mt_nodes.base.arrays import Floats, Ints
from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.images.codecs import Picture, Pixels
from mt_nodes.data.messages import Bundle, Image
from mt_nodes.data.transforms import Matrix, inverse, move
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.camera.each_image import View
from mt_nodes.relations.mutations.objects.in_pictures import camera_from
from mt_nodes.relations.mutations.objects.in_scene import ego_from
from mt_nodes.relations.mutations.untouched import UNTOUCHED
from mt_nodes.world.camera.behind import scene_of
from mt_nodes.world.camera.depth import depth_of
from mt_nodes.world.camera.earlier_view import EarlierView
from mt_nodes.world.camera.fill import Fill
from mt_nodes.world.camera.fill_quality import FillQuality, fill_measured
from mt_nodes.world.camera.silhouette import Silhouette, in_sight, silhouette_of
from mt_nodes.world.camera.standing_object import CameraGround, Flags, StandingObject, Window
from mt_nodes.world.scene.nearest_object import Search, standing_points
from mt_nodes.world.scene.returns import box_around, places, within_box

#: Bundles that are looked back on, at 10 Hz a second; those whose clouds tell what is behind, too.
EARLIER = 10
_VIEWS, _CLOUDS = (1, 2, 3, 4, 6, 8, 10), (1, 3, 6, 10)
#: Other objects up to here are told apart from background: nearest and farthest x, farthest to a side, largest length,
#: fewest returns.
_OTHERS = Search((2.0, 80.0), 25.0, 4, (0.0, 8.0))
#: What is behind is at least this much farther than the object's farthest return, and so much above the ground: nearer
#: returns of earlier instants may be of the object itself, as it was then.
_BEHIND_M, _ABOVE_M = 4.0, 0.25
#: An object whose visible part has fewer pixels is not seen.
_LEAST_PX = 12


@dataclass(frozen=True, eq=False)
class StandingBody:
    """An object of the cloud in the ego's frame: outline (k, 2), ground (5,) as from ``ObjectRemoved.things``."""

    outline_m: Floats
    plane: Floats

    def ground_m(self, xy: Floats) -> Floats:
        """Return the height (n,) of the ground at places (n, 2)."""
        return np.asarray(self.plane[0] + (xy - self.plane[3:]) @ self.plane[1:3])

    @property
    def up(self) -> Floats:
        """Upward normal (3,) of the ground."""
        normal = np.array([-self.plane[1], -self.plane[2], 1.0])
        return np.asarray(normal / np.linalg.norm(normal))


@dataclass(frozen=True, eq=False)
class PictureRemoval:
    """A picture without an object.

    ``thing``: the object before the camera. ``silhouette``: what the picture shows of it. ``filled``: (h, w[, c]) the
    window without it, in the picture's own samples. ``quality``: of the fill.
    """

    thing: StandingObject
    silhouette: Silhouette
    filled: Pixels
    quality: FillQuality

    @property
    def window(self) -> Window:
        """Rows and columns of the picture that the arrays cover."""
        return self.silhouette.window

    def pixels(self, picture: Picture) -> Pixels:
        """Return the pixels of the whole picture without the object."""
        pixels = picture.pixels.copy()
        pixels[self.window][self.silhouette.hole] = self.filled[self.silhouette.hole]
        return pixels


_known: WeakKeyDictionary[Image, dict[bytes, PictureRemoval | str | None]] = WeakKeyDictionary()


def removal_of(view: View, body: StandingBody, returns: list[Floats], ego_frame_id: str) -> PictureRemoval | None:
    """Return a picture without an object; None if it does not show the object. Cached per image.

    ``returns``: (n, 3) for each known cloud of the bundle, the object's returns in the cloud's frame.
    Raises NotApplicable: the fill is not clean enough, by a measured bound; or too little is known of the camera.
    """
    known = _known.setdefault(view.image, {})
    key = body.outline_m.tobytes() + body.plane.tobytes()
    if key not in known:
        known[key] = _removal(view, body, returns, ego_frame_id)
    result = known[key]
    if isinstance(result, str):
        raise NotApplicable(f"{view.image.topic}: the object cannot be removed from the picture: {result}")
    return result


@dataclass(frozen=True, eq=False)
class PictureFill:
    """A filled hole of a picture, whether it is clean or not."""

    thing: StandingObject
    silhouette: Silhouette
    filled: Fill
    quality: FillQuality


def fill_of(view: View, body: StandingBody, returns: list[Floats], ego_frame_id: str) -> PictureFill | str | None:
    """Return the fill of the hole that an object leaves in a picture.

    Returns:
        None if the picture shows none of its returns; a reason if it shows too little to tell its silhouette.
    """
    thing = standing_object(view, body, returns, ego_frame_id)
    if not thing.in_picture.any():
        return None
    depth = depth_of(view.bundle, view.image, thing.camera)
    silhouette = silhouette_of(thing, view.picture, depth)
    if silhouette is None or np.count_nonzero(silhouette.body) < _LEAST_PX:
        count = in_sight(thing, depth)
        return f"{count} of its returns are in sight, too few to tell its silhouette" if count else None
    views, behind = _earlier(view, thing, silhouette, ego_frame_id)
    others = _others(view, body, ego_frame_id)
    scene = scene_of(thing, view.picture, depth, silhouette, others, behind, views)
    return PictureFill(thing, silhouette, *fill_measured(scene, silhouette))


def _removal(view: View, body: StandingBody, returns: list[Floats], ego_frame_id: str) -> PictureRemoval | str | None:
    """Return a picture without an object, None if it does not show it, or why it cannot be."""
    fill = fill_of(view, body, returns, ego_frame_id)
    if fill is None or isinstance(fill, str):
        return fill
    if refusal := fill.quality.refusal():
        return refusal
    picture, window = view.picture, fill.silhouette.window
    samples = np.rint(np.clip(fill.filled.pixels, 0.0, 1.0) * picture.full_scale).astype(picture.pixels.dtype)
    return PictureRemoval(fill.thing, fill.silhouette, samples.reshape(picture.pixels[window].shape), fill.quality)


def standing_object(view: View, body: StandingBody, returns: list[Floats], ego_frame_id: str) -> StandingObject:
    """Return an object in the frame of a view's camera; ``returns`` as for :func:`removal_of`."""
    camera, to_camera = view.camera(), camera_from(view, ego_frame_id)
    outline = move(to_camera, np.column_stack([body.outline_m, body.ground_m(body.outline_m)]))
    up = to_camera[:3, :3] @ body.up
    ground = CameraGround(up, -float(outline[0] @ up))
    own = [
        move(to_camera @ ego_from(view.bundle, cloud.frame_id, ego_frame_id, cloud.topic), xyz)
        for cloud, xyz in zip(view.bundle.known_clouds, returns, strict=True)
    ]
    points = np.concatenate(own)
    return StandingObject(camera, points, outline, float(ground.heights(points).max()), ground)


def _others(view: View, body: StandingBody, ego_frame_id: str) -> Floats:
    """Return the returns (n, 3) of other objects in the camera's frame."""
    cloud = view.bundle.known_clouds[0]
    to_ego = ego_from(view.bundle, cloud.frame_id, ego_frame_id, cloud.topic)
    (near, far), aside = _OTHERS.ahead_m, _OTHERS.aside_m
    _, xyz = within_box(cloud, *box_around(to_ego, np.array([near, -aside, -3.0]), np.array([far, aside, 6.0])))
    points = standing_points(move(to_ego, xyz), _OTHERS)
    points[:, 2] += body.ground_m(points[:, :2])
    return move(camera_from(view, ego_frame_id), points)


def _earlier(
    view: View, thing: StandingObject, silhouette: Silhouette, ego_frame_id: str
) -> tuple[tuple[EarlierView, ...], Floats]:
    """Return earlier pictures of the camera, the newest first, and what their clouds measured behind the object."""
    views: list[EarlierView] = []
    points: list[Floats] = [np.zeros((0, 3))]
    ego_to_camera = camera_from(view, ego_frame_id)
    for former in reversed(view.bundle.earlier):
        ago = view.bundle.index - former.index
        step = _step(former, view.bundle)
        image = next((i for i in former.images if i.topic == view.image.topic), None)
        if ago not in _VIEWS or step is None or image is None or not former.known_clouds:
            continue
        from_now = ego_to_camera @ step @ inverse(ego_to_camera)
        earlier = _view_of(former, image, thing, from_now)
        if earlier is None:
            continue
        views.append(earlier)
        if ago in _CLOUDS:
            points.append(_behind(former, image, thing, silhouette, from_now))
    behind = np.concatenate(points)
    for earlier in views:
        behind = behind[~earlier.seen_through(behind)]
    return tuple(views), behind


def _step(former: Bundle, now: Bundle) -> Matrix | None:
    """Return the 4×4 from the ego's present frame to its former one; None where the motion is unknown."""
    a, b = former.motion, now.motion
    if a is None or b is None or a.pose is None or b.pose is None or a.since != b.since:
        return None
    return np.asarray(inverse(a.pose) @ b.pose)


def _view_of(former: Bundle, image: Image, thing: StandingObject, from_now: Matrix) -> EarlierView | None:
    try:
        then = View.of(former, image)
        camera = then.camera()
        depth = depth_of(former, image, camera)
    except NotApplicable:
        return None
    up = from_now[:3, :3] @ thing.ground.up
    ground = CameraGround(up, thing.ground.camera_m - float(up @ from_now[:3, 3]))
    return EarlierView(then.picture, camera, depth, from_now, ground)


def _behind(former: Bundle, image: Image, thing: StandingObject, silhouette: Silhouette, from_now: Matrix) -> Floats:
    """Return the returns (n, 3) of an earlier bundle behind the object, in the camera's present frame."""
    found = []
    for cloud in former.known_clouds:
        to_now = inverse(from_now) @ former.transforms.lookup(image.frame_id, cloud.frame_id)
        xyz = move(to_now, cloud.xyz.astype(np.float64))
        with np.errstate(invalid="ignore"):
            ahead = xyz[xyz[:, 2] > 1.0]
        range_m = np.linalg.norm(ahead, axis=1)
        beyond = ahead[(range_m > thing.farthest_m + _BEHIND_M) & (thing.ground.heights(ahead) > _ABOVE_M)]
        rows, columns = silhouette.window
        with np.errstate(invalid="ignore"):
            x, y = thing.camera.project(beyond).T
            inside = (x >= columns.start) & (x < columns.stop) & (y >= rows.start) & (y < rows.stop)
        found.append(beyond[inside])
    return np.concatenate(found)


def changed_pixels(picture: Picture, pixels: Pixels, removal: PictureRemoval | None) -> Draw:
    """Return the part of a draw that holds the changed pixels of a picture, and the quality of its fill."""
    changed = (pixels != picture.pixels).reshape(*picture.size, -1).any(axis=2)
    if removal is not None:
        changed[removal.window] |= removal.silhouette.hole
    rows, columns = np.flatnonzero(changed.any(axis=1)), np.flatnonzero(changed.any(axis=0))
    window = slice(int(rows[0]), int(rows[-1]) + 1), slice(int(columns[0]), int(columns[-1]) + 1)
    draw: Draw = {
        "window": np.array([window[0].start, window[0].stop, window[1].start, window[1].stop]),
        "changed": np.packbits(changed[window]),
        "pixels": pixels[window][changed[window]],
    }
    if removal is None:
        return draw
    quality = removal.quality
    return draw | {
        "fill_error": quality.light,
        "fill_given": quality.given,
        "fill_recalled": quality.recalled,
        "fill_seam": quality.seam,
    }


def drawn_pixels(draw: Draw) -> tuple[Window, Flags]:
    """Return the window of a draw, and which of its pixels (h, w) change."""
    top, bottom, left, right = (int(edge) for edge in draw["window"])
    height, width = bottom - top, right - left
    changed = np.unpackbits(draw["changed"], count=height * width).reshape(height, width).astype(bool)
    return (slice(top, bottom), slice(left, right)), changed


def with_changed_pixels(picture: Picture, draw: Draw) -> Pixels:
    """Return the pixels of a picture with those of a draw."""
    window, changed = drawn_pixels(draw)
    pixels = picture.pixels.copy()
    pixels[window][changed] = draw["pixels"]
    return pixels


def returns_of(bundle: Bundle, rows: list[Ints]) -> list[Floats]:
    """Return the coordinates (n, 3) of rows of each known cloud."""
    return [places(cloud, own) for cloud, own in zip(bundle.known_clouds, rows, strict=True)]


def numbers_of(draws: Mapping[str, Draw]) -> dict[str, float]:
    """Return what is recorded of the fills of a bundle's pictures: the worst of each measure, and how many changed."""
    filled = [draw for draw in draws.values() if "fill_error" in draw]
    untouched = sum(UNTOUCHED in draw for draw in draws.values())
    numbers = {"pictures_changed": float(len(draws) - untouched), "pictures_out_of_sight": float(untouched)}
    if filled:
        numbers |= {
            "fill_error": max(float(draw["fill_error"]) for draw in filled),
            "fill_given": min(float(draw["fill_given"]) for draw in filled),
            "fill_seam": max(float(draw["fill_seam"]) for draw in filled),
            "fill_from_earlier": min(float(draw["fill_recalled"]) for draw in filled),
        }
    return numbers
