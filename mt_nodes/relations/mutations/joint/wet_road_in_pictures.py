# SPDX-License-Identifier: Apache-2.0
"""A wet road as cameras see it: darker, and a mirror at grazing angles."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.data.images.codecs import Pixels
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.camera.each_image import UNTOUCHED, View
from mt_nodes.relations.mutations.joint.every_sensor import EverySensor, surroundings
from mt_nodes.world.camera import measures
from mt_nodes.world.camera.measures import Mask
from mt_nodes.world.camera.relight import coarse_light, relit

Singles = npt.NDArray[np.float32]
Floats = npt.NDArray[np.float64]
_WATER = 1.33
#: A film leaves a rough ground about half of its light: what it scatters back is in part turned back again by the
#: water's surface (J. Lekner, M. Dorf, "Why some things are darker when wet", Applied Optics 27, 1988).
_DARKENED = 0.5
#: Less ground than this in sight shows nothing.
_LEAST_SHARE = 0.01


class WetRoadInPictures(EverySensor):
    """Darkens the ground in sight and shows in it, blurred, what stands above it.

    Ground cells mirror the picture about the foot of what stands beyond them, weighted by Fresnel's reflectance at
    n = 1.33; objects' own picture is taken, not what the road would see from below (as flat as the picture allows).
    """

    @property
    @abstractmethod
    def film(self) -> float:
        """Share of the ground that a film of water covers."""

    def draw_image(self, rng: np.random.Generator, view: View, state: Any) -> Draw:
        """There is nothing to choose; a picture without ground stays.

        Raises:
            NotApplicable: how far away what it shows is, or where the camera is, is not known.
        """
        return {UNTOUCHED: True} if surroundings(view).ground.mean() < _LEAST_SHARE else {}

    def affected(self, view: View, draw: Draw) -> Mask:
        """Ground, and half a cell around it."""
        around = surroundings(view)
        cells = cv2.dilate(around.ground.astype(np.uint8), np.ones((3, 3), np.uint8))
        return np.ascontiguousarray(around.depth.in_picture(cells, view.picture.size, smooth=False))

    def change_image(self, view: View, draw: Draw) -> Pixels:
        """Darken the ground, and add what it mirrors."""
        around = surroundings(view)
        ground = around.ground
        light = coarse_light(view.picture, ground.shape, around.depth.step_px)
        seen = cv2.blur(mirrored(light, ground), (3, 9))
        share = np.where(ground, self.film, 0.0)
        wet = (share * fresnel(-around.rays[..., 2])).astype(np.float32)
        gain = (1.0 - share * (1.0 - _DARKENED)).astype(np.float32) * (np.float32(1.0) - wet)
        return relit(view.picture, gain, wet[..., None] * seen, around.depth.step_px)

    def prove_image(self, old: View, new: View, draw: Draw) -> str | None:
        """Look at the ground right before the vehicle: it is darker; and at all of it: it changed."""
        around = surroundings(old)
        near = around.ground & (around.rays[..., 2] < -0.35)
        full = np.ascontiguousarray(around.depth.in_picture(near.astype(np.uint8), old.picture.size, smooth=False))
        if not full.any():
            return None
        before, after = measures.brightness(old.picture, full), measures.brightness(new.picture, full)
        if after < before or before < 0.02:
            return None
        return f"the ground right ahead went from a brightness of {before:.3f} to {after:.3f}, it was to darken"


def fresnel(cosine: Floats, index: float = _WATER) -> Floats:
    """Return which share of unpolarised light a smooth surface, by default water, reflects at cosines of incidence."""
    c = np.clip(cosine, 1e-3, 1.0)
    t = np.sqrt(1.0 - (1.0 - c * c) / index**2)
    across, along = (c - index * t) / (c + index * t), (index * c - t) / (index * c + t)
    return np.asarray(0.5 * (across**2 + along**2))


def mirrored(light: Singles, ground: npt.NDArray[np.bool_]) -> Singles:
    """Return the light (h, w, 3) that each cell would have in a mirror set up at the next thing above it."""
    row = np.arange(len(ground))[:, None]
    foot = np.maximum.accumulate(np.where(ground, -1, row), axis=0)
    above = np.clip(2 * foot - row + 1, 0, len(ground) - 1)
    return np.take_along_axis(light, above[..., None], axis=0)
