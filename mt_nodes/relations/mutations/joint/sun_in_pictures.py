# SPDX-License-Identifier: Apache-2.0
"""The sun in a camera's field of view: its disc, its bloom, and the veil of its stray light."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.images.codecs import Pixels
from mt_nodes.data.transforms import UnknownTransform
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.camera.each_image import UNTOUCHED, View
from mt_nodes.relations.mutations.joint.every_sensor import EverySensor, surroundings
from mt_nodes.world.camera import measures
from mt_nodes.world.camera.relight import relit
from mt_nodes.world.camera.surroundings import Surroundings

Floats = npt.NDArray[np.float64]
#: Angle from the sun beyond which stray light adds less than a step of 8 bits.
_REACH = 3.3
#: Apparent radius of the sun with the saturated ring around it, in radians: its own is 0.0047.
_DISC_RAD = 0.012
#: Light of the wide halo, relative to the glare's, and how much wider it is.
_HALO, _HALO_WIDER = 0.15, 4.0


class SunInPictures(EverySensor):
    """Adds light to pictures by the angle from the sun, which also washes out their colours."""

    radar_reason = "a radar at 77 GHz receives no light of the sun"

    #: Light of the glare at the sun, in full scale; standard deviation of its stray light; frame the sun stands in.
    glare_light: float
    half_angle_rad: float
    frame_id: str

    def draw_image(self, rng: np.random.Generator, view: View, state: Any) -> Draw:
        """Transform the sun into ``base_link``, under ``sun`` (3,); a picture out of its reach, or in shadow, stays.

        Raises:
            NotApplicable: the camera's pose or the depth is unknown.
        """
        around = surroundings(view)
        sun = self._sun(view, state)
        angle = self._angle(around, sun)
        nearest = np.unravel_index(int(angle.argmin()), angle.shape)
        hidden = angle[nearest] < 0.02 and not around.sky[nearest]
        if hidden or angle.min() > _REACH * self.half_angle_rad:
            return {UNTOUCHED: True}
        return {"sun": sun}

    def change_image(self, view: View, draw: Draw) -> Pixels:
        """Add the glare, the halo, and the disc unless something hides it."""
        around = surroundings(view)
        angle = self._angle(around, draw["sun"])
        glare = self.glare_light * np.exp(-0.5 * np.square(angle / self.half_angle_rad))
        glare += _HALO * self.glare_light * np.exp(-angle / (_HALO_WIDER * self.half_angle_rad))
        glare += np.where(around.sky & (angle < _DISC_RAD), 4.0, 0.0)
        warm = np.array([1.0, 0.97, 0.9], np.float32)
        gain = np.ones(angle.shape, np.float32)
        return relit(view.picture, gain, glare.astype(np.float32)[..., None] * warm, around.depth.step_px)

    def prove_image(self, old: View, new: View, draw: Draw) -> str | None:
        """Check that the picture is brighter and flatter near the sun, and nowhere darker."""
        around = surroundings(old)
        near = self._angle(around, draw["sun"]) < self.half_angle_rad
        where = np.ascontiguousarray(around.depth.in_picture(near.astype(np.uint8), old.picture.size, smooth=False))
        if not where.any():
            rise = measures.brightness(new.picture) - measures.brightness(old.picture)
            return None if rise > 0.0 else f"the mean brightness rose by {rise:+.4f}, expected above 0"
        before, after = measures.brightness(old.picture, where), measures.brightness(new.picture, where)
        if after > before or before > 0.97:
            return None
        return f"near the sun the brightness went from {before:.3f} to {after:.3f}, it was to rise"

    def _sun(self, view: View, state: Any) -> Floats:
        try:
            return np.asarray(view.bundle.transforms.lookup("base_link", self.frame_id)[:3, :3] @ state)
        except UnknownTransform as error:
            raise NotApplicable(f"{view.image.topic}: where the sun stands is not known: {error}") from error

    def _angle(self, around: Surroundings, sun: Floats) -> Floats:
        return np.arccos(np.clip(around.rays @ np.asarray(sun, np.float64), -1.0, 1.0))
