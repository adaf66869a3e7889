# SPDX-License-Identifier: Apache-2.0
"""The light that the cameras of a rig agree on: one scene, one sky, one air.

Cameras expose on their own. Where two of them see the same places, these tell the ratio of their exposures: the median
ratio of the light of a place in both pictures. Cameras that overlap, directly or through others, share a scene: what
weather takes from the pictures (the mean light, the light of the horizon, of sunny ground and of ground in shadow) is
measured over all of them at a common exposure, and is given to each at its own. A camera that overlaps with no other
has only its own picture.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from weakref import WeakKeyDictionary

import numpy as np

from mt_nodes.base.arrays import Ints, Singles
from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.messages import Bundle, Image
from mt_nodes.relations.mutations.camera.each_image import View
from mt_nodes.world.camera.diffuse_light import Shading, shading_of, sun_and_shadow
from mt_nodes.world.camera.relight import coarse_light, grey
from mt_nodes.world.camera.surroundings import Surroundings, surroundings_of

#: Every so manieth cell is looked for in other pictures; so many must be found, at ranges that agree to this share.
_EVERY, _FEWEST, _SAME = 3, 40, 0.05
#: Darker light is mostly noise, brighter light may be clipped.
_DARKEST, _BRIGHTEST = 0.01, 0.85


@dataclass(frozen=True, eq=False)
class Exposed:
    """A view of a rig's scene.

    ``light``: (h, w, 3) of its cells. ``around``: the cells. ``exposure``: light in its picture for light of the scene;
    the exposures of cameras that share a scene have a geometric mean of 1.
    """

    light: Singles
    around: Surroundings
    exposure: float


@dataclass(frozen=True)
class _Exposure:
    """Number of the scene that a camera sees, and its exposure."""

    scene: int
    exposure: float


def views_of_scene(view: View) -> tuple[float, tuple[Exposed, ...]]:
    """Return the exposure of a view's camera, and every view of its bundle that shares its scene, itself included.

    Raises NotApplicable: the camera is not calibrated, or no depth or transform is known.
    """
    own = _exposed(view)
    if len(view.bundle.images) < 2:
        return 1.0, (own,)
    known = _exposures(view.bundle)
    mine = known[view.image.topic]
    others = (i for i in view.bundle.images if i is not view.image and i.topic in known)
    beside = [
        replace(_exposed(View.of(view.bundle, image)), exposure=known[image.topic].exposure)
        for image in others
        if known[image.topic].scene == mine.scene
    ]
    return mine.exposure, (replace(own, exposure=mine.exposure), *beside)


def shading_in_rig(view: View) -> Shading:
    """Return the shading of a view: its mean light, and that of sunny and shady ground, those of the whole rig."""
    around = surroundings_of(view.bundle, view.image, view.camera())
    own = shading_of(view.picture, around)
    exposure, views = views_of_scene(view)
    if len(views) == 1:
        return own
    ground = np.concatenate([(v.light / np.float32(v.exposure))[::2, ::2][v.around.ground[::2, ::2]] for v in views])
    lit, dark, shadow_rgb = sun_and_shadow(ground)
    return replace(
        own, level=mean_light(views) * exposure, lit=lit * exposure, dark=dark * exposure, shadow_rgb=shadow_rgb
    )


def mean_light(views: tuple[Exposed, ...]) -> float:
    """Return the mean brightness of what is not sky in some views, at their common exposure."""
    some = [grey(v.light)[~v.around.sky] / v.exposure for v in views]
    return float(np.concatenate(some).mean()) if any(len(own) for own in some) else 1.0


def _exposed(view: View) -> Exposed:
    around = surroundings_of(view.bundle, view.image, view.camera())
    return Exposed(coarse_light(view.picture, around.shape, around.depth.step_px), around, 1.0)


_known: WeakKeyDictionary[Image, tuple[tuple[weakref.ref[Image], ...], dict[str, _Exposure]]] = WeakKeyDictionary()


def _exposures(bundle: Bundle) -> dict[str, _Exposure]:
    """Return the exposures of a bundle's cameras by topic; those without depth are left out; cached."""
    images, known = bundle.images, _known.get(bundle.images[0])
    if (
        known is None
        or len(known[0]) != len(images)
        or any(r() is not i for r, i in zip(known[0], images, strict=True))
    ):
        found = dict(_measured(bundle))
        known = _known[images[0]] = tuple(weakref.ref(image) for image in images), found
    return known[1]


def _measured(bundle: Bundle) -> Iterator[tuple[str, _Exposure]]:
    views = dict(_with_depth(bundle))
    topics = list(views)
    pairs = {
        (a, b): ratio
        for a, b in combinations(range(len(topics)), 2)
        if (ratio := exposure_ratio(views[topics[a]], views[topics[b]])) is not None
    }
    scene = _joined(len(topics), pairs)
    # Least squares: log e_a - log e_b is the logarithm of each ratio, and those of a scene have a mean of 0.
    rows = [np.eye(len(topics))[a] - np.eye(len(topics))[b] for a, b in pairs]
    means = [np.asarray(scene == number, float) for number in range(len(topics))]
    wanted = [*np.log(list(pairs.values())), *np.zeros(len(means))]
    log = np.linalg.lstsq(np.array(rows + means), np.array(wanted), rcond=None)[0]
    for topic, number, own in zip(topics, scene.tolist(), np.exp(log).tolist(), strict=True):
        yield topic, _Exposure(number, own)


def _with_depth(bundle: Bundle) -> Iterator[tuple[str, View]]:
    for image in bundle.images:
        try:
            view = View.of(bundle, image)
            _exposed(view)
        except NotApplicable:
            continue
        yield image.topic, view


def _joined(count: int, pairs: dict[tuple[int, int], float]) -> Ints:
    """Return the number (count,) of the scene of each camera."""
    scene = np.arange(count)
    for a, b in pairs:
        scene[scene == scene[b]] = scene[a]
    return scene


def exposure_ratio(one: View, other: View) -> float | None:
    """Return the light of places in the first picture over that in the second; None where they share too few.

    Raises NotApplicable: a camera is not calibrated, or no depth or transform is known.
    """
    near, far = _exposed(one), _exposed(other)
    some = np.s_[_EVERY // 2 :: _EVERY, _EVERY // 2 :: _EVERY]
    seen = near.around.depth.measured[some] & ~near.around.sky[some]
    places, light = near.around.points()[some][seen], grey(near.light[some][seen])
    pose = np.asarray(other.bundle.transforms.lookup(other.image.frame_id, "base_link"))
    in_camera = places @ pose[:3, :3].T + pose[:3, 3]
    pixels = other.camera().project(in_camera)
    with np.errstate(invalid="ignore"):
        cell = np.floor((pixels + 0.5) / far.around.depth.step_px)
        inside = ((cell >= 0) & (cell < far.around.shape[::-1])).all(axis=1)
    column, row = cell[inside].astype(np.int64).T
    away_m, there_m = np.linalg.norm(in_camera[inside], axis=1), far.around.depth.range_m[row, column]
    first, second = light[inside], grey(far.light[row, column])
    use = np.abs(away_m - there_m) < _SAME * away_m
    for own in (first, second):
        use &= (own > _DARKEST) & (own < _BRIGHTEST)
    if np.count_nonzero(use) < _FEWEST:
        return None
    return float(np.exp(np.median(np.log(first[use] / second[use]))))
