# SPDX-License-Identifier: Apache-2.0
"""Lens flare from a bright light in the picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Singles
from mt_nodes.base.errors import NotApplicable
from mt_nodes.base.params import param
from mt_nodes.data.images.codecs import Pixels
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.camera.each_image import EachImage, View
from mt_nodes.world.camera import measures

#: Scale of the map of added light relative to the picture; flare has no edges.
_COARSE = 8
#: A light is at least this many pixels wide and high.
_CELL = 8
#: Ghosts: position on the line from the light through the picture's centre (0 the light, 1 the centre, 2 opposite),
#: radius as a share of the picture's width, and red, green and blue. An invented lens: no two lenses are alike.
_GHOSTS = (
    (0.55, 0.030, (0.9, 0.65, 0.45)),
    (1.25, 0.018, (0.55, 0.9, 0.65)),
    (1.50, 0.045, (0.6, 0.7, 1.0)),
    (1.85, 0.075, (0.75, 0.6, 0.85)),
)


@dataclass(frozen=True)
class LensFlare(EachImage):
    """Adds the veiling glare and the ghosts that the picture's brightest spot would cause in a lens.

    The veil falls with the distance from the light; the ghosts, reflections between the lens's surfaces, lie on the
    line through the picture's centre. Their places, sizes and colours are invented: every lens has its own.

    Guaranteed: the picture gets brighter on average, and no block of 8 x 8 pixels gets darker by 2 % of full scale.
    """

    strength: float = param(
        0.35, low=0.02, high=1.0, neutral=0.02, help="brightness of the veil at the light, of full scale"
    )
    veil_radius: float = param(
        0.2, low=0.02, high=1.0, neutral=0.02, help="distance at which the veil is a third, in picture widths"
    )
    least_light: float = param(
        0.7, low=0.2, high=1.0, aspect="fixed", help="brightness that a spot needs to raise a flare"
    )
    random: ClassVar[bool] = False

    def draw_image(self, rng: np.random.Generator, view: View, state: Any) -> Draw:
        """Find the light: the centre of the brightest spot, in pixels.

        Raises NotApplicable: nothing is bright enough.
        """
        height, width = view.picture.size
        small = (-(-width // _CELL), -(-height // _CELL))
        _, brightest, _, place = cv2.minMaxLoc(cv2.resize(view.picture.luma(), small, interpolation=cv2.INTER_AREA))
        if brightest < self.least_light * view.picture.full_scale:
            found = brightest / view.picture.full_scale
            raise NotApplicable(
                f"{view.image.topic}: its brightest spot has {found:.2f}, {self.least_light:g} is needed"
            )
        return {"light_px": (np.array(place, np.float32) + np.float32(0.5)) * np.float32(_CELL)}

    def change_image(self, view: View, draw: Draw) -> Pixels:
        """Add the light."""
        height, width = view.picture.size
        coarse = np.rint(self._added(view, draw) * view.picture.full_scale).astype(view.picture.pixels.dtype)
        return np.asarray(cv2.add(view.picture.pixels, cv2.resize(coarse, (width, height))))

    def prove_image(self, old: View, new: View, draw: Draw) -> str | None:
        """Compare brightnesses, of all and of parts."""
        rise = measures.brightness(new.picture) - measures.brightness(old.picture)
        if not rise > 0.0:
            return f"the mean brightness rose by {rise:.4f}, expected above 0"
        before, after = (_small(view) for view in (old, new))
        darker = float(cv2.subtract(before, after).max()) / old.picture.full_scale
        return f"a part of the picture is darker by {darker:.3f}" if darker > 0.02 else None

    def _added(self, view: View, draw: Draw) -> Singles:
        """Return the added light (h, w[, 3]), in shares of full scale, at coarse resolution."""
        height, width = view.picture.size
        y, x = (np.arange(0.5, n / _COARSE) * _COARSE / width for n in (height, width))
        light = np.asarray(draw["light_px"], np.float32) / np.float32(width)
        middle = np.array([0.5, height / width / 2.0], np.float32)
        veil = np.exp(-_distance(x, y, light) / np.float32(self.veil_radius / 1.1))
        total = np.repeat(veil[..., None], 3, axis=2)
        _add_ghosts(total, x, y, light, middle)
        total *= np.float32(self.strength)
        if view.picture.order == "mono":
            return np.asarray(total.mean(axis=2))
        return total if view.picture.order == "rgb" else total[..., ::-1]


def ghosts(light_px: Floats, width_px: int, height_px: int, shape: tuple[int, int], step_px: int) -> Singles:
    """Return the ghosts (h, w, 3), red, green, blue, of a light within or beside a picture, by cell."""
    y, x = ((np.arange(n) + 0.5) * step_px / width_px for n in shape)
    total = np.zeros((*shape, 3), np.float32)
    light = np.asarray(light_px, np.float32) / np.float32(width_px)
    _add_ghosts(total, x, y, light, np.array([0.5, height_px / width_px / 2.0], np.float32))
    return total


def _add_ghosts(total: Singles, x: npt.NDArray[Any], y: npt.NDArray[Any], light: Singles, middle: Singles) -> None:
    """Add the ghosts of a light at a place to light (h, w, 3), where they reach; in shares of the picture's width."""
    for along, radius, colour in _GHOSTS:
        place = light + (middle - light) * np.float32(along)
        ends = (np.searchsorted(side, at + 1.2 * radius * _SIDES) for side, at in zip((x, y), place, strict=True))
        columns, rows = (slice(*end.tolist()) for end in ends)
        away = _distance(x[columns], y[rows], place)
        disc = np.clip((np.float32(radius) - away) / np.float32(0.4 * radius) + np.float32(0.5), 0.0, 1.0)
        disc *= np.float32(0.55) + np.float32(0.45) * np.minimum(np.square(away / np.float32(radius)), 1.0)
        total[rows, columns] += disc[..., None] * np.array(colour, np.float32) * np.float32(0.25)


_SIDES = np.array([-1.0, 1.0])


def _distance(x: npt.NDArray[Any], y: npt.NDArray[Any], place: npt.NDArray[Any]) -> Singles:
    """Return the distance (h, w) from a place (2,) at the crossings of columns x and rows y."""
    across, down = (np.square((side - at).astype(np.float32)) for side, at in ((x, place[0]), (y, place[1])))
    return np.asarray(np.sqrt(across[None, :] + down[:, None]))


def _small(view: View) -> Pixels:
    luma = view.picture.luma()
    return np.asarray(cv2.resize(luma, (-(-luma.shape[1] // 8), -(-luma.shape[0] // 8)), interpolation=cv2.INTER_AREA))
