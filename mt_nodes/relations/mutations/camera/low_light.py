# SPDX-License-Identifier: Apache-2.0
"""What pictures taken with little light have in common: less light of another colour, and the sensor's noise."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from mt_nodes.data.images.codecs import Pixels
from mt_nodes.data.messages import Bundle
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.camera.each_image import EachImage, View
from mt_nodes.relations.mutations.camera.sensor_noise import SensorNoise
from mt_nodes.world.camera import measures
from mt_nodes.world.camera.relight import relit

Singles = npt.NDArray[np.float32]


class LowLight(EachImage):
    """Gives each cell another light, and adds the noise of the few electrons that are left."""

    @abstractmethod
    def light(self, view: View) -> tuple[Singles, Singles, int]:
        """Return gain and offset (h, w, 3) of the light of cells, and how many pixels wide a cell is."""

    @abstractmethod
    def noise(self) -> SensorNoise:
        """Return the noise of a sensor that is exposed for this light."""

    def begin(self, rng: np.random.Generator, bundle: Bundle) -> Any:
        """Choose the noise's field."""
        return self.noise().begin(rng, bundle)

    def draw_image(self, rng: np.random.Generator, view: View, state: Any) -> Draw:
        """Draw the noise."""
        return self.noise().draw_image(rng, view, state)

    def change_image(self, view: View, draw: Draw) -> Pixels:
        """Give it the light, then the noise."""
        gain, offset, cell_px = self.light(view)
        dark = relit(view.picture, gain, offset, cell_px)
        return self.noise().change_image(View(view.bundle, view.image, view.picture.with_pixels(dark)), draw)

    def prove_image(self, old: View, new: View, draw: Draw) -> str | None:
        """Look for less brightness."""
        before, after = measures.brightness(old.picture), measures.brightness(new.picture)
        return None if after < before else f"the mean brightness went from {before:.3f} to {after:.3f}, it was to fall"
