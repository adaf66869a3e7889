# SPDX-License-Identifier: Apache-2.0
"""Leaves that a strong wind blows across the road."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Singles
from mt_nodes.base.errors import NoEffect
from mt_nodes.base.params import param
from mt_nodes.data.images.codecs import Pixels
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.camera.each_image import View
from mt_nodes.relations.mutations.joint.particles_in_pictures import with_streaks
from mt_nodes.relations.mutations.joint.precipitation import Precipitation
from mt_nodes.relations.mutations.joint.scatterers import Spectrum
from mt_nodes.world.camera.light import light_of
from mt_nodes.world.camera.measures import Mask

Cells = npt.NDArray[np.bool_]

#: Leaf fragments are e times fewer when larger by the first size, and none is larger than the second.
_FOLD_MM, _MOST_MM = 15.0, 90.0
#: Tolerance of the mean light for rounding of samples and the loss of a JPEG.
_SLACK = 0.03
_BROWN = (0.27, 0.16, 0.055)


@dataclass(frozen=True)
class BlownLeaves(Precipitation):
    """Adds leaves and leaf fragments that a strong wind blows across the road.

    The wind itself is nothing that a sensor shows, nor is what it does to the vehicle; trees, wires and masts, which
    it moves, too, stay as they are. The default, 15 m/s from the right, is a near gale, 7 on Beaufort's scale (28 to 33
    knots; National Weather Service): whole trees move, and loose paper is raised long before. How many leaves fly, how
    large they are (an exponential law, so that they can be met by beams as flakes are) and that they sink by 1 m/s is
    assumed. Their reflectivity to LiDARs of 0.45 is assumed: leaves are bright in the near infrared (E. Knipling,
    "Physical and Physiological Basis for the Reflectance of Visible and Near-Infrared Radiation from Vegetation",
    1970), and remain so as they dry. All else is as of snow: leaves are those of a segment and go on with the time.

    Pictures get no veil: the air stays clear.

    Guaranteed: exactly the returns below the noise floor are lost or replaced; every return stays on its beam and,
    except for range noise, no farther than the hard return; intensities follow the law and stay in scale; no other byte
    changes; in pictures, exactly the pixels that show a leaf change, towards the colour of leaves.
    """

    radar_reason = "a leaf's cross-section is far below the threshold of a radar (assumed)"

    shutter_ms: float = param(
        3.0, low=0.05, high=100.0, unit="ms", aspect="fixed", help="exposure of the cameras: length of streaks"
    )
    leaves_per_m3: float = param(
        0.6, low=0.005, high=2.0, unit="1/m3", neutral=0.005, help="leaves and scraps in the air"
    )
    wind_y_mps: float = param(
        15.0, low=-50.0, high=50.0, unit="m/s", aspect="fixed", help="wind to the left of the ego"
    )

    @property
    def spectrum(self) -> Spectrum:
        """An exponential law with the requested leaves."""
        return Spectrum(self.leaves_per_m3 / _FOLD_MM, 1.0 / _FOLD_MM, _MOST_MM)

    @property
    def strength(self) -> float:
        """Leaves are bright in the near infrared."""
        return 0.45

    @property
    def shine(self) -> float:
        """Brown, by the mean of its colours."""
        return float(np.mean(_BROWN))

    def fall_mps(self, diameter_mm: Floats) -> Floats:
        """The same for all."""
        return np.ones(len(diameter_mm))

    def draw_image(self, rng: np.random.Generator, view: View, state: Any) -> Draw:
        """Draw the leaves. Raises NoEffect: none flies in sight."""
        draw = super().draw_image(rng, view, state)
        if not self._layer(view, draw).any():
            raise NoEffect(f"{view.image.topic}: no leaf flies in its sight at this instant")
        return draw

    def affected(self, view: View, draw: Draw) -> Mask:
        """The leaves."""
        return self._layer(view, draw)

    def change_image(self, view: View, draw: Draw) -> Pixels:
        """Draw the leaves in their own colour, in the light of the sky."""
        return with_streaks(view, view.picture.pixels, self._layer(view, draw), _colour(draw))

    def prove_image(self, old: View, new: View, draw: Draw) -> str | None:
        """Check the light of the leaves: it moves towards their colour, by the share that they cover."""
        layer = self._layer(old, draw)
        if not layer.any():
            return None
        share = layer.astype(np.float64) / 255.0
        own = (
            _colour(draw).astype(np.float64) if old.picture.order != "mono" else np.full(3, float(_colour(draw).mean()))
        )
        before, after = (_mean_light(view, layer != 0) for view in (old, new))
        expected = _mean_light(old, layer != 0, 1.0 - share) + float(share[layer != 0].mean()) * own
        slack = _SLACK + 0.1 * np.abs(expected - before)
        return None if (np.abs(after - expected) <= slack).all() else "leaves have not the colour of leaves"


def _colour(draw: Draw) -> Singles:
    """Return the light (3,) that leaves send, red, green, blue."""
    return np.asarray(draw["air_light"] * np.array(_BROWN, np.float32))


def _mean_light(view: View, where: Cells, weight: Floats | None = None) -> Floats:
    """Return the mean light (3,), red, green, blue, of some pixels, each times its weight (H, W)."""
    rgb = view.picture.rgb8()[where].astype(np.float64) / 255.0
    light = light_of(rgb)
    return np.asarray((light if weight is None else light * weight[where][:, None]).mean(axis=0))
