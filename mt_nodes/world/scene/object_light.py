# SPDX-License-Identifier: Apache-2.0
"""The light on an added object: sun, sky, ground, and what its smooth surfaces mirror of the picture."""

from __future__ import annotations

from dataclasses import dataclass, replace

import cv2
import numpy as np

from mt_nodes.base.arrays import Floats, Ints, Singles
from mt_nodes.data.transforms import Matrix
from mt_nodes.world.scene.figures import Figure, Places
from mt_nodes.world.scene.materials import PANE

#: Mean albedo of the ground that lights an object from below (assumed; asphalt to paving).
_GROUND = 0.18
#: Share of sky, and of ground, that an upright surface faces.
_UPRIGHT = 0.5
#: Light from behind the camera relative to what it sees (assumed).
_BEHIND = 0.6


@dataclass(frozen=True, eq=False)
class Surroundings:
    """A small picture (h, w, 3) of light in shares of full scale, by azimuth from the axis and by elevation."""

    light: Singles
    half_rad: float
    low_rad: float
    high_rad: float

    def towards(self, direction: Singles) -> Singles:
        """Return the light (n, 3) from directions (n, 3) of the camera's frame.

        What the picture does not show is assumed to look like what it shows: the azimuth is folded into it.
        """
        x, y, z = direction.T
        fold = np.arctan2(x, z) / np.float32(self.half_rad)
        inside = np.abs(np.mod(fold - 1.0, 4.0) - 2.0) - 1.0
        up = np.arctan2(-y, np.hypot(x, z))
        rows, columns = self.light.shape[:2]
        row = np.clip((self.high_rad - up) / (self.high_rad - self.low_rad), 0.0, 1.0) * (rows - 1)
        column = (inside * 0.5 + 0.5) * (columns - 1)
        at = np.stack([column, row], axis=-1).astype(np.float32)[:, None]
        # cv2.remap takes at most 32,767 rows.
        pieces = (at[i : i + 30_000] for i in range(0, len(at), 30_000))
        parts = [cv2.remap(self.light, piece, None, cv2.INTER_LINEAR)[:, 0] for piece in pieces]
        found = np.concatenate(parts) if parts else np.zeros((0, 3), np.float32)
        return np.asarray(found * np.where(z > 0.0, 1.0, np.float32(_BEHIND))[:, None], np.float32)


@dataclass(frozen=True, eq=False)
class ObjectLight:
    """Light on an object, relative to that on level ground.

    ``to_sun``: (3,) unit, in the object's frame; None for an overcast sky. ``sun``: share of the light on level ground
    that comes from the sun. ``around``: what smooth surfaces mirror.
    """

    to_sun: Floats | None = None
    sun: float = 0.0
    around: Surroundings | None = None

    @property
    def two_panes(self) -> float:
        """Share of visible light that passes two panes."""
        return float(PANE.visible_transmission**2)

    def on_upright(self, facing: Floats) -> float:
        """Return the light on an upright surface with a level normal (3,) in the object's frame, in the open."""
        light = (1.0 - self.sun) * _UPRIGHT + _GROUND * _UPRIGHT
        if self.to_sun is not None:
            light += self.sun * max(0.0, float(facing @ self.to_sun)) / max(float(self.to_sun[2]), 0.1)
        return light

    def shade(self, figure: Figure, places: Places, along: Singles, pose: Matrix) -> tuple[Singles, Singles]:
        """Return the scattered light (n, 3), relative to white level ground, and the mirrored light (n, 3).

        Lambert's law for sun, sky and ground; a smooth coat reflects by Schlick's formula (see :mod:`.materials`), and
        what it reflects does not reach the colour below.
        """
        level = (1.0 - self.sun) * places.sky + _GROUND * places.ground
        if self.to_sun is not None and self.sun > 0.0:
            facing = np.maximum(places.normal @ self.to_sun.astype(np.float32), 0.0) / np.float32(
                max(self.to_sun[2], 0.1)
            )
            at = np.flatnonzero(facing > 0.0)
            facing[at] *= figure.lit(_some(places, at), self.to_sun)
            level = level + np.float32(self.sun) * facing
        mirrored = np.zeros((len(level), 3), np.float32)
        scattered = places.albedo * level[:, None]
        smooth = np.flatnonzero(places.mirror > 1e-3)
        if len(smooth) and self.around is not None:
            normal, f0 = places.normal[smooth], places.mirror[smooth]
            cosine = np.clip(-np.einsum("ij,ij->i", normal, along[smooth]), 0.0, 1.0)
            reflectance = f0 + (1.0 - f0) * (1.0 - cosine) ** 5
            away = along[smooth] + 2.0 * cosine[:, None] * normal
            seen = self.around.towards((away @ pose[:3, :3].T.astype(np.float32)).astype(np.float32))
            # What is hidden from the sky by the object itself is dark there, too.
            openness = np.clip((places.sky + places.ground)[smooth] * 1.2, 0.0, 1.0)
            mirrored[smooth] = seen * (reflectance * openness)[:, None]
            scattered[smooth] *= (1.0 - reflectance)[:, None]
        return scattered.astype(np.float32), mirrored


OVERCAST = ObjectLight()


def _some(places: Places, at: Ints) -> Places:
    return replace(places, xyz_m=places.xyz_m[at], normal=places.normal[at])
