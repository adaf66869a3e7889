# SPDX-License-Identifier: Apache-2.0
"""The plume of spray behind a vehicle as cameras see it: a veil of drops, by depth."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any
from weakref import WeakKeyDictionary

import cv2
import numpy as np
import numpy.typing as npt
from scipy import ndimage

from mt_nodes.base.arrays import Floats, Singles
from mt_nodes.base.errors import NoEffect
from mt_nodes.data.images.codecs import Pixels
from mt_nodes.data.messages import Bundle
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.camera.each_image import View
from mt_nodes.relations.mutations.joint.air_in_pictures import air_light, proof_of_mean, veiled
from mt_nodes.relations.mutations.joint.every_sensor import EverySensor, surroundings
from mt_nodes.relations.mutations.joint.plume import Plume, places, within
from mt_nodes.world.camera.depth_completion import part_of
from mt_nodes.world.camera.guided_upsampling import tile_cells
from mt_nodes.world.camera.measures import Mask
from mt_nodes.world.camera.surroundings import Surroundings

#: Points on a line of sight at which the plume is added up, and in the proof.
_PLACES, _STEPS = 12, 36
#: Standard deviation of the blur of patches, in cells (assumed).
_BLUR_CELLS = 2.5
#: A veil that takes less light than this everywhere is not noticed.
_LEAST_VEIL = 0.02
#: Light of thick spray relative to that of the horizon: drops are lit by the sky above, not from all sides (assumed).
_BRIGHTNESS = 0.85

_known: WeakKeyDictionary[Bundle, tuple[tuple[Any, ...], Draw]] = WeakKeyDictionary()
_known_passing: WeakKeyDictionary[Surroundings, tuple[Plume, Floats, npt.NDArray[np.bool_]]] = WeakKeyDictionary()


class SprayInPictures(EverySensor):
    """Draws the plume before what lies behind it: Koschmieder's law with the optical depth of the LiDAR's plume."""

    ego_frame_id: str

    def plume_draw(self, bundle: Bundle, state: Any) -> Draw:
        """Return the plume of a bundle, the same for all of its sensors: the last one is cached.

        ``state``: of the episode; its first two values tell it from others.
        Raises NotApplicable: there is no vehicle ahead.
        """
        key = (self, *state[:2])
        known = _known.get(bundle)
        if known is None or known[0] != key:
            known = _known[bundle] = key, self.find_plume(bundle, state)
        return dict(known[1])

    @abstractmethod
    def find_plume(self, bundle: Bundle, state: Any) -> Draw:
        """Return what :meth:`plume_draw` does."""

    @abstractmethod
    def plume(self, draw: Draw) -> Plume:
        """Return the plume of a draw, in the ego's frame."""

    def draw_image(self, rng: np.random.Generator, view: View, state: Any) -> Draw:
        """Take the plume that the LiDAR meets, and the light that its drops scatter.

        Raises NotApplicable: there is no vehicle ahead, or depth or the camera's pose is unknown. NoEffect: the plume
        is out of sight, or hidden.
        """
        draw = self.plume_draw(view.bundle, state)
        taken = float(1.0 - self._known_passing(view, draw)[0].min())
        if taken < _LEAST_VEIL:
            raise NoEffect(
                f"{view.image.topic}: the plume takes {taken:.1%} of the light of what is behind it at most, expected "
                f"{_LEAST_VEIL:.0%}: it is out of the picture, hidden, or too thin"
            )
        return {**draw, "air_light": air_light(view, (1.0, 1.0, 1.0), _BRIGHTNESS)}

    def change_image(self, view: View, draw: Draw) -> Pixels:
        """Draw the veil, on the rows of the picture where it is."""
        step, (passing, meets) = surroundings(view).depth.step_px, self._known_passing(view, draw)
        side = tile_cells(step)
        near = part_of(meets, 2 * side)
        assert near is not None, "the draw saw it"
        cells = slice(near[0].start // side * side, near[0].stop)  # so that edges are found in the same tiles
        rows = slice(cells.start * step, cells.stop * step)
        part = view.picture.with_pixels(view.picture.pixels[rows])
        new = view.picture.pixels.copy()
        cv2.copyTo(veiled(part, passing[cells], draw["air_light"], step), self.affected(view, draw)[rows], new[rows])
        return new

    def affected(self, view: View, draw: Draw) -> Mask:
        """Return where lines of sight meet the plume, and half a cell around."""
        cells = cv2.dilate(self._known_passing(view, draw)[1].astype(np.uint8), np.ones((3, 3), np.uint8))
        return np.ascontiguousarray(surroundings(view).depth.in_picture(cells, view.picture.size, smooth=False))

    def prove_image(self, old: View, new: View, draw: Draw) -> str | None:
        """Compare the mean light by transmission, with the plume added up at other places and in double precision."""
        around, plume = surroundings(old), self.plume(draw)
        enter, leave = self._way(old, plume)
        step_m = np.maximum(leave - enter, 0.0) / _STEPS
        mean, patchy = np.zeros(around.shape), np.zeros(around.shape)
        meets = step_m > 0.0
        for number in range(_STEPS):
            at_m = enter[meets] + step_m[meets] * (number + 0.5)
            here = places(around.camera_m, around.rays[meets].T, at_m)
            thick = plume.mean_per_m(*here) * step_m[meets]
            mean[meets] += thick
            patchy[meets] += thick * plume.patchiness(*here)
        ratio = np.divide(patchy, mean, out=np.zeros(around.shape), where=meets)
        weight = ndimage.gaussian_filter(meets.astype(np.float64), _BLUR_CELLS)
        ratio = ndimage.gaussian_filter(ratio, _BLUR_CELLS) / np.maximum(weight, 1e-9)
        return proof_of_mean(old, new, np.exp(-mean * ratio), draw["air_light"], np.zeros(around.shape))

    def _known_passing(self, view: View, draw: Draw) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """Return what :meth:`_passing` does; the last one of a view is kept."""
        around, plume = surroundings(view), self.plume(draw)
        known = _known_passing.get(around)
        if known is None or known[0] != plume:
            known = _known_passing[around] = plume, *self._passing(view, plume)
        return known[1:]

    def _passing(self, view: View, plume: Plume) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """Return the share (h, w) of each cell's light that comes through the plume, and which meet it."""
        around = surroundings(view)
        enter, leave = self._way(view, plume)
        meets = leave > enter
        passing = np.ones(around.shape)
        if not meets.any():
            return passing, meets
        way = plume.along(around.camera_m, np.ascontiguousarray(around.rays[meets].T, np.float32))
        step_m = ((leave - enter)[meets] / _PLACES).astype(np.float32)
        at_m = enter[meets].astype(np.float32) + np.float32(0.5) * step_m
        mean, patchy = np.zeros_like(at_m), np.zeros_like(at_m)
        for _ in range(_PLACES):
            thick = way.mean_per_m(at_m) * step_m
            mean += thick
            patchy += thick * way.patchiness(at_m)
            at_m += step_m
        passing[meets] = np.exp(-mean * _smooth(np.asarray(patchy / mean, np.float32), meets))
        return passing, meets

    def _way(self, view: View, plume: Plume) -> tuple[Floats, Floats]:
        """Return where the line of sight of each cell enters and leaves (h, w) the plume, before what it shows."""
        around = surroundings(view)
        enter, leave = within(around.camera_m, around.rays.reshape(-1, 3).T, plume.box_m)
        enter, leave = enter.reshape(around.shape), leave.reshape(around.shape)
        return np.asarray(enter, np.float64), np.minimum(leave, around.range_m, dtype=np.float64)


def _smooth(ratio: Singles, where: npt.NDArray[np.bool_]) -> Singles:
    """Return values (n,) of some cells (h, w), blurred among them: patches have no edges, and move in an exposure."""
    cells = np.zeros((2, *where.shape), np.float32)
    cells[0][where], cells[1][where] = ratio, 1.0
    blurred, weight = (cv2.GaussianBlur(one, (0, 0), _BLUR_CELLS, borderType=cv2.BORDER_REFLECT) for one in cells)
    return np.asarray(blurred[where] / weight[where], np.float32)


def place_of(bundle: Bundle) -> Floats | None:
    """Return where the ego is in a fixed frame (3,), None where nobody knows."""
    pose = None if bundle.motion is None else bundle.motion.pose
    return None if pose is None else np.asarray(pose[:3, 3])
