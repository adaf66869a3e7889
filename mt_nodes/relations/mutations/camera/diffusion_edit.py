# SPDX-License-Identifier: Apache-2.0
"""What mutations have in common that have a diffusion model edit pictures."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mt_nodes.base.errors import NotApplicable
from mt_nodes.base.params import param
from mt_nodes.data.images.codecs import Picture, Pixels
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.camera.each_image import EachImage, View
from mt_nodes.world.camera import measures
from mt_nodes.world.camera.diffusion import EditCache, EditRequest, edit
from mt_nodes.world.camera.measures import Mask


@dataclass(frozen=True)
class Edited(EachImage):
    """Asks a model for each picture once, and takes the kept edit from then on: same picture and words, same edit."""

    steps: int = param(30, low=1, high=200, aspect="fixed", help="steps of denoising")
    seed: int = param(0, low=0, high=2**31 - 1, aspect="fixed", help="of the model's own noise")
    size_px: int = param(
        1024, low=64, high=4096, unit="pixels", aspect="fixed", help="longer side of what the model is given"
    )
    device: str = param("auto", help="auto (a GPU if there is one), cpu, cuda, cuda:1 …")
    cache: str = param("", help="directory of finished edits; empty: the user's cache directory")
    when_missing: str = param(
        "make", choices=("make", "refuse"), help="make: edit now, in minutes; refuse: leave the frame out, as in a loop"
    )
    random: ClassVar[bool] = False
    extra: ClassVar[str] = "diffusion"

    @abstractmethod
    def request(self) -> EditRequest:
        """Return what is asked of the model."""

    def draw_image(self, rng: np.random.Generator, view: View, state: Any) -> Draw:
        """There is nothing to choose: the seed is a parameter, so that an edit made offline is the one of the loop.

        Raises:
            NotApplicable: samples of 16 bits or no colours; no kept edit where none is to be made.
        """
        if view.picture.pixels.dtype != np.uint8 or view.picture.order == "mono":
            raise NotApplicable(f"{view.image.topic}: {view.image.encoding} is not 8 bits of red, green and blue each")
        if self.when_missing == "refuse" and EditCache.at(self.cache).get(self._key(view)) is None:
            directory = EditCache.at(self.cache).directory
            raise NotApplicable(f"{view.image.topic}: no edit of this picture in {directory}; make it with `mt mutate`")
        return {}

    def change_image(self, view: View, draw: Draw) -> Pixels:
        """Take the kept edit, or make and keep it; outside of what may change, the picture stays."""
        cache, key = EditCache.at(self.cache), self._key(view)
        made = cache.get(key)
        if made is None:
            made = edit(self.request(), view.picture.rgb8(), self.affected(view, draw))
            cache.put(key, made)
        pixels = made if view.picture.order == "rgb" else made[..., ::-1]
        where = self.affected(view, draw)
        if where is None:
            return np.ascontiguousarray(pixels)
        return np.where(where[..., None] != 0, pixels, view.picture.pixels)

    def prove_image(self, old: View, new: View, draw: Draw) -> str | None:
        """Look for the edit where it should be; what it shows, no measure of ours can tell."""
        where: Mask | None = self.affected(old, draw)
        apart = measures.mean_difference(old.picture, new.picture, where)
        return None if apart >= 0.01 else f"samples differ by {apart:.4f} of full scale on average, expected 0.01"

    def _key(self, view: View) -> str:
        picture: Picture = view.picture
        return self.request().key(picture.rgb8(), self.affected(view, {}))
