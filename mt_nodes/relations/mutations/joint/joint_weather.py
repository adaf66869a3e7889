# SPDX-License-Identifier: Apache-2.0
"""Weather that LiDARs and cameras see together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import cv2
import numpy as np

from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.effects import DoubtfulDepth, Effects
from mt_nodes.data.messages import Bundle
from mt_nodes.relations.mutations.base import Draw, Followup
from mt_nodes.relations.mutations.camera.each_image import View
from mt_nodes.relations.mutations.joint.every_sensor import EverySensor, surroundings
from mt_nodes.relations.mutations.joint.weather import Weather
from mt_nodes.world.camera.depth import DepthMap

#: The share of light that arrives must be known to so much, in all but so much of a picture (assumed).
_KNOWN, _DOUBTFUL = 0.2, 1.0 / 3.0


@dataclass(frozen=True)
class JointWeather(EverySensor, Weather):
    """Weather (see :class:`Weather`) in LiDAR clouds and camera images."""

    for_frames_between = True

    @property
    def visible_extinction_per_m(self) -> float:
        """Mean extinction coefficient of the air for light that is seen, 1/m."""
        return self.extinction_per_m

    def apply_to_clouds(self, bundle: Bundle, draw: Draw) -> Followup:
        """Change every cloud as its weather does."""
        return Weather.apply(self, bundle, draw)

    def draw_images(self, rng: np.random.Generator, bundle: Bundle, state: Any) -> Draw:
        """Draw for every image.

        Raises NotApplicable: as for each image; or how much light arrives is not known in more than a third of one,
        since the clouds do not tell its depth.
        """
        draws = super().draw_images(rng, bundle, state)
        for image in bundle.images:
            share = float(self._doubtful(View.of(bundle, image)).cells.mean())
            if share > _DOUBTFUL:
                got = f"the clouds do not tell how far away {share:.0%} of it is well enough"
                raise NotApplicable(f"{image.topic}: {got}; expected {_DOUBTFUL:.0%} at most")
        return draws

    def describe_images(self, views: Mapping[str, View], draws: Mapping[str, Draw]) -> Effects:
        """Return where the light that arrives is not known, since the depth is not."""
        doubtful = {topic: self._doubtful(view) for topic, view in views.items()}
        return Effects(doubtful_depth={topic: own for topic, own in doubtful.items() if own.cells.any()})

    def _doubtful(self, view: View) -> DoubtfulDepth:
        depth, extinction = surroundings(view).depth, self.visible_extinction_per_m
        known = _doubtful_cells.setdefault(depth, {})
        if extinction not in known:
            nearest, farthest = (cv2.exp(bound_m * np.float32(-extinction)) for bound_m in depth.bounds_m)
            known[extinction] = DoubtfulDepth(depth.step_px, cv2.subtract(nearest, farthest) > _KNOWN)
        return known[extinction]


#: By the extinction for which it holds: asked for when a change is drawn, and when its effects are described.
_doubtful_cells: WeakKeyDictionary[DepthMap, dict[float, DoubtfulDepth]] = WeakKeyDictionary()
