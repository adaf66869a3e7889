# SPDX-License-Identifier: Apache-2.0
"""Dusk and night: less light, in other colours, with sensor noise."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np

from mt_nodes.base.arrays import Singles
from mt_nodes.base.errors import NotApplicable
from mt_nodes.base.params import param
from mt_nodes.data.images.codecs import Pixels
from mt_nodes.data.messages import Bundle
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.camera.each_image import EachImage, View
from mt_nodes.relations.mutations.camera.rig_light import shading_in_rig
from mt_nodes.relations.mutations.camera.sensor_noise import SensorNoise
from mt_nodes.world.camera import measures
from mt_nodes.world.camera.diffuse_light import FADED, WIDE_BOUNDS, Shading, diffuse_gain, diffuse_light
from mt_nodes.world.camera.headlamps import WARM, bloom, lamps_in, low_beams
from mt_nodes.world.camera.light import colour_of_temperature
from mt_nodes.world.camera.local_relight import relit_locally
from mt_nodes.world.camera.relight import coarse_light, grey, relit
from mt_nodes.world.camera.surroundings import Surroundings, surroundings_of


class LowLight(EachImage):
    """Base: changes the light of each cell, and adds the noise of the few electrons that are left."""

    @abstractmethod
    def darkened(self, view: View, draw: Draw) -> Pixels:
        """Return the pixels in less light, without the noise."""

    @abstractmethod
    def noise(self) -> SensorNoise:
        """Return the noise of a sensor exposed for this light."""

    def begin(self, rng: np.random.Generator, bundle: Bundle) -> Any:
        """Choose the noise's field."""
        return self.noise().begin(rng, bundle)

    def draw_image(self, rng: np.random.Generator, view: View, state: Any) -> Draw:
        """Draw the noise."""
        return self.noise().draw_image(rng, view, state)

    def change_image(self, view: View, draw: Draw) -> Pixels:
        """Apply the light, then the noise."""
        dark = self.darkened(view, draw)
        return self.noise().change_image(View(view.bundle, view.image, view.picture.with_pixels(dark)), draw)

    def prove_image(self, old: View, new: View, draw: Draw) -> str | None:
        """Check that the brightness falls."""
        before, after = measures.brightness(old.picture), measures.brightness(new.picture)
        return None if after < before else f"the mean brightness went from {before:.3f} to {after:.3f}, it was to fall"


_CELL_PX = 8
#: Light of the sky after sunset at the horizon, red, green and blue, and the elevation at which it has gone; by which
#: share of the stops the sky gets dark later than the ground (all assumed).
_AFTERGLOW, _AFTERGLOW_RAD, _SKY_LATER = (1.0, 0.78, 0.62), 0.35, 0.3


@dataclass(frozen=True)
class Dusk(LowLight):
    """Shows the scene after sunset, by the light of the sky alone: darker, bluer and slightly noisy.

    Light is multiplied by 2^(−``stops``) and by the colour of a black body of ``temperature_k`` relative to 6,504 K.
    Where clouds tell what is ground and what is sky, shadows of the day fade, lamps bloom, and the sky glows at the
    horizon, brighter than the ground; else shadows stay, as the draw says. Camera only: a LiDAR brings its own light.

    Guaranteed: the mean brightness falls.
    """

    stops: float = param(
        2.5, low=0.5, high=6.0, unit="EV", neutral=0.5, help="powers of two by which there is less light"
    )
    temperature_k: float = param(
        9000.0, low=3000.0, high=20000.0, unit="K", neutral=6500.0, help="colour of the sky's light"
    )
    full_well_e: float = param(
        4000.0, low=50.0, high=100000.0, unit="electrons", neutral=100000.0, help="electrons at white: the noise"
    )

    def noise(self) -> SensorNoise:
        """Return the noise of a sensor at some gain."""
        return SensorNoise(self.full_well_e, 4.0)

    def draw_image(self, rng: np.random.Generator, view: View, state: Any) -> Draw:
        """Draw the noise, and note whether shadows fade."""
        try:
            surroundings_of(view.bundle, view.image, view.camera())
        except NotApplicable:
            return {**super().draw_image(rng, view, state), "shadows_fade": False}
        return {**super().draw_image(rng, view, state), "shadows_fade": True}

    def darkened(self, view: View, draw: Draw) -> Pixels:
        """Multiply the light of things, that of the sky by less."""
        lamp, white = (np.array(colour_of_temperature(k)) for k in (self.temperature_k, 6504.0))
        gain = (2.0**-self.stops * lamp / white).astype(np.float32)
        if not draw["shadows_fade"]:
            return self._as_lit(view, gain)
        around = surroundings_of(view.bundle, view.image, view.camera())
        shading, step = shading_in_rig(view), around.depth.step_px
        light = diffuse_light(shading, left=FADED, bounds=WIDE_BOUNDS) * gain[:, None, None, None]
        up = np.clip(around.rays[..., 2] * np.float32(1.0 / _AFTERGLOW_RAD), 0.0, 1.0).astype(np.float32)
        glow = (
            np.array(_AFTERGLOW, np.float32)[:, None, None] * (np.float32(1.0) - up)
            + gain[:, None, None] * up / gain[1]
        )
        glow *= np.float32(shading.sky_light * 2.0 ** (_SKY_LATER * self.stops - self.stops))
        light += shading.sky * (glow[:, None] - light)
        lamps = lamps_in(view.picture, step)
        light += np.moveaxis(bloom(np.float32(2.0) * lamps), -1, 0)[:, None]
        return relit_locally(view.picture, shading.samples, light, step)

    def _as_lit(self, view: View, gain: Singles) -> Pixels:
        """Multiply all light by the same (3,)."""
        everywhere = np.ascontiguousarray(np.broadcast_to(gain, (*_cells(view), 3)))
        return relit(view.picture, everywhere, np.zeros_like(everywhere), _CELL_PX)


def _cells(view: View) -> tuple[int, int]:
    height, width = (-(-side // _CELL_PX) for side in view.picture.size)
    return height, width


#: Colour of the sky's glow over a town, and of what it lights (assumed), and its light by elevation: at the horizon,
#: high up, and the angle in rad by which it falls.
_GLOW = np.array([1.0, 0.86, 0.78], np.float32)
_AMBIENT = np.array([0.86, 0.95, 1.2], np.float32)
_HORIZON, _ZENITH, _FALLS_RAD = 0.028, 0.007, 0.18
#: Light of a lamp over that of its pixels by day, for the bloom, and share of its own light that it keeps.
_LAMP, _KEPT = 6.0, 1.3
#: Markings reflect headlamps back, by up to this factor (assumed): ground brighter than its surroundings.
_RETRO = 1.8
#: Share of the day's contrast that is left on the ground, and elsewhere: reflectances differ.
_LEFT, _BOUNDS = (0.1, 0.6), (0.02, 7.0)
#: Light of what is seen by day at usual exposure, and by how much a darker picture is raised to it at most.
_LEVEL, _RAISED = 0.16, 2.5
#: How much more light a camera gathers by night than by day (assumed).
_EXPOSED = 2.6
#: The proof looks at the road from here ahead of ``base_link`` up to this range, if it shows so many cells: headlamps
#: give it this light at least, four times what is left of the day in a night of 5 stops.
_LIT_FROM_M, _LIT_TO_M, _CELLS, _ROAD_LIGHT = 5.0, 15.0, 60, 0.05
#: Reflections of the sun are brighter than any surface in diffuse light, this light at most.
_WHITEST = 0.35


@dataclass(frozen=True)
class Night(LowLight):
    """Removes the day: a dim sky's glow, the ego's low beams, lamps with their bloom and noise remain.

    The light of the day is divided out, with the sun's shadows (:mod:`mt_nodes.world.camera.diffuse_light`); what it
    fell on is lit by 2^(−``stops``) of it and by low beams with a cut-off, whose light falls with the square of the
    range from the clouds (:func:`mt_nodes.world.camera.headlamps.low_beams`). Small red and amber lights count as
    lamps, keep their light and bloom; lamps that are off by day stay dark. The sky glows at the horizon. Shapes,
    colours and strengths of lamps and sky are assumptions. Camera only: a LiDAR brings its own light.

    Guaranteed: the mean brightness falls, the sky is dark, and headlamps light the road right ahead.
    """

    stops: float = param(
        6.0, low=1.0, high=10.0, unit="EV", neutral=1.0, help="powers of two by which there is less light"
    )
    headlights: float = param(
        1.0, low=0.0, high=5.0, aspect="fixed", help="strength of the ego's headlights; 0: switched off"
    )
    full_well_e: float = param(
        800.0, low=50.0, high=100000.0, unit="electrons", neutral=100000.0, help="electrons at white: the noise"
    )

    def noise(self) -> SensorNoise:
        """Return that of a sensor at high gain."""
        return SensorNoise(self.full_well_e, 3.0)

    def darkened(self, view: View, draw: Draw) -> Pixels:
        """Light what the day is taken from by the sky and headlamps, and add the sky's own light and that of lamps."""
        around = surroundings_of(view.bundle, view.image, view.camera())
        shading, step = shading_in_rig(view), around.depth.step_px
        light = self._reflected(shading) * self._falling(shading, around)
        light += shading.sky * (self._glow(around)[:, None] - light)
        lamps = lamps_in(view.picture, step)
        if lamps.any():
            own = cv2.dilate(lamps, np.ones((3, 3), np.uint8)) * np.float32(_KEPT)
            np.maximum(light[:, 1], np.moveaxis(own, -1, 0), out=light[:, 1])
            light += np.moveaxis(bloom(np.float32(_LAMP) * lamps), -1, 0)[:, None]
        return relit_locally(view.picture, shading.samples, light, step, negative=True)

    def prove_image(self, old: View, new: View, draw: Draw) -> str | None:
        """Check that the brightness falls, that the sky is dark, and that headlamps light the road."""
        around = surroundings_of(old.bundle, old.image, old.camera())
        light = grey(coarse_light(new.picture, around.shape, around.depth.step_px))
        before = grey(coarse_light(old.picture, around.shape, around.depth.step_px))
        high = cv2.erode((around.sky & (around.rays[..., 2] > 0.05)).astype(np.uint8), np.ones((5, 5), np.uint8)) != 0
        sky = high & (before > 0.5)
        if np.count_nonzero(sky) >= _CELLS and light[sky].mean() > 0.1 + _HORIZON * 2.0 ** (6.0 - self.stops):
            return f"the sky has {light[sky].mean():.3f} of light: it was to be dark"
        ahead_m, aside_m, _ = np.moveaxis(around.points(), -1, 0)
        road = around.ground & (ahead_m > _LIT_FROM_M) & (np.abs(aside_m) < 2.0) & (around.range_m < _LIT_TO_M)
        lit = self.headlights >= 0.5 and self.stops >= 5.0 and np.count_nonzero(road) >= _CELLS
        if lit and before[road].mean() > 0.05 and light[road].mean() < _ROAD_LIGHT:
            return f"the road ahead has {light[road].mean():.3f} of light, by headlamps {_ROAD_LIGHT:g} or more"
        return super().prove_image(old, new, draw)

    def _reflected(self, shading: Shading) -> Singles:
        """Return the light (3, 2, h, w) of the ends of cells in an even light of day; reflections of the sun cut."""
        even = shading.light * diffuse_gain(shading, left=_LEFT, bounds=_BOUNDS)
        even *= np.float32(min(_LEVEL / max(shading.level, 1e-3), _RAISED))
        even *= np.minimum(_WHITEST / np.maximum(even[1], np.float32(1e-3)), 1.0)
        return even

    def _falling(self, shading: Shading, around: Surroundings) -> Singles:
        """Return the light (3, 2, h, w) that falls on things, relative to the day's; more on what reflects it back."""
        beams = low_beams(around.points(), self.headlights)
        marking = np.clip((shading.samples[1] / shading.base - 1.25) * np.float32(3.0), 0.0, 1.0)
        back = np.float32(1.0) + np.float32(_RETRO - 1.0) * shading.ground * marking
        ambient = np.float32(_EXPOSED * 2.0**-self.stops) * _AMBIENT
        return np.asarray(ambient[:, None, None, None] + beams * back * WARM[:, None, None, None])

    def _glow(self, around: Surroundings) -> Singles:
        """Return the light (3, h, w) of the sky at night."""
        up = np.maximum(around.rays[..., 2], 0.0).astype(np.float32)
        light = _ZENITH + (_HORIZON - _ZENITH) * np.exp(-up / np.float32(_FALLS_RAD))
        return np.asarray(np.float32(2.0 ** (6.0 - self.stops)) * light * _GLOW[:, None, None], np.float32)
