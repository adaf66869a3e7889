# SPDX-License-Identifier: Apache-2.0
"""The light of a picture in weather: what things send, what the road mirrors, what the air and particles add."""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.data.images.codecs import Pixels
from mt_nodes.relations.mutations.camera.each_image import View
from mt_nodes.relations.mutations.joint.every_sensor import surroundings
from mt_nodes.relations.mutations.joint.road_covers import grain_at, share_at
from mt_nodes.world.camera.diffuse_light import diffuse_gain, enlarged, light_in_singles, shading_of
from mt_nodes.world.camera.headlamps import bloom, lamps_in
from mt_nodes.world.camera.relight import coarse_light, light_in, relit
from mt_nodes.world.camera.surroundings import Surroundings

Singles = npt.NDArray[np.float32]
Floats = npt.NDArray[np.float64]
_WATER = 1.33
#: A film leaves a rough ground about half of its light: some of the scattered light is reflected back by the water's
#: surface (J. Lekner, M. Dorf, "Why some things are darker when wet", Applied Optics 27, 1988).
DARKENED = 0.5
#: Share of the wet road on which water stands, and what the rest mirrors, rough as it is, relative to that (assumed).
_PUDDLES, _ROUGH = 0.35, 0.5
#: Blur of mirror images on rough wet asphalt, along the picture's columns, in shares of its height (assumed).
_SMEAR = 0.09
#: Ripples move what puddles mirror by this share of it, up and down (assumed).
_RIPPLES = 0.22
#: Ground farther than this is not resolved.
_FAR_M = 80.0
#: Light of fallen snow relative to the sky's, and its grain; what is darker than this share of the sun's shadows lies under
#: something, and stays darker (assumed).
_SNOW, _GRAIN, _SHADED = 0.92, 0.05, 0.7
#: Box of cells in which things take light from the ground at their feet, and how much (assumed).
_FOOT_CELLS, _OCCLUDED = 11, 0.5
#: Tracks of wheels: their place aside, half their width, and the share of snow that is gone from them (assumed).
_TRACK_M, _TRACK_WIDE_M, _PRESSED = 0.8, 0.22, 0.6
#: Contrast of clouds, and how much brighter an overcast sky is above the horizon (CIE overcast sky: 3 times at the
#: zenith; within a picture less, assumed).
_CLOUDS, _ABOVE = -0.22, 0.08
#: Light of a lamp over what its pixels hold, clipped as they are (assumed).
_LAMP = 5.0
#: Box of cells by which the air before things next to the sky is continued into it.
_NEXT_CELLS = 9


class WeatherLight:
    """Gain and offset of the light of each pixel, at the resolution of a picture's shading.

    Built up in the order in which light travels: from things and the road through the air to the lens.
    """

    def __init__(self, view: View, direct: float = 1.0) -> None:
        """Begin with what things send in diffuse light.

        Args:
            view: of the picture.
            direct: share of the sun's own light that gets through the weather, 0 to 1.
        """
        self.view, self.around = view, surroundings(view)
        self.shading = shading_of(view.picture, self.around)
        self.shape = self.shading.luma.shape
        self.gain = np.ones((*self.shape, 3), np.float32) if direct > 0.99 else diffuse_gain(self.shading, direct)
        self.offset = np.zeros((*self.shape, 3), np.float32)

    def wet_road(self, film: float, air: Singles | None = None, ripples: float = 0.0, key: int = 0) -> None:
        """Darken the ground under a film of water, and add what it mirrors, by Fresnel's law.

        Args:
            film: share of the ground that water covers. air: (3,) light of the sky in the weather; None: the picture's own.
            ripples: 0 to 1, how much drops stir puddles. key: of the ripples, other ones in every frame.
        """
        cells = self._cells_light(air)
        x, y = ground_places(self.around)
        x, y = enlarged(x, self.shape), enlarged(y, self.shape)
        puddle = share_at(x, y, _PUDDLES * film)
        wet = np.float32(film) * self.shading.ground
        mirror = wet * (puddle + np.float32(_ROUGH) * (np.float32(1.0) - puddle))
        mirror *= enlarged(fresnel(-self.around.rays[..., 2]).astype(np.float32), self.shape)
        if ripples:
            rng = np.random.default_rng(key)
            off = rng.random(2) * 32.0
            rings = grain_at(np.float32(1.7) * x + np.float32(off[0]), np.float32(1.7) * y + np.float32(off[1]))
            mirror *= np.maximum(np.float32(1.0) + np.float32(ripples * _RIPPLES) * rings, np.float32(0.0))
        left = (np.float32(1.0) - wet * np.float32(1.0 - DARKENED)) * (np.float32(1.0) - mirror)
        self.gain *= left[..., None]
        self.offset *= left[..., None]
        self.offset += mirror[..., None] * enlarged(reflected(cells, self.around.ground), self.shape)

    def cover_ground(self, share: Singles, light: Singles) -> None:
        """Cover a share (h, w) of each pixel with something of a light (3,) or (h, w, 3)."""
        left = (np.float32(1.0) - share)[..., None]
        self.gain *= left
        self.offset *= left
        self.offset += share[..., None] * light

    def veil(self, passing: Floats, air: Singles) -> None:
        """Lead the light through air of which a share ``passing`` (h, w) of each cell's light arrives.

        I e^(-τ) + A (1 - e^(-τ)) in linear light (H. Koschmieder, "Theorie der horizontalen Sichtweite", 1924). The sky
        is cut out by pixels, for its cells are coarse.
        """
        left = enlarged(beside_sky(passing.astype(np.float32), self.around.sky), self.shape)
        earth = left * (np.float32(1.0) - self.shading.sky)
        self.gain *= (left * (np.float32(1.0) - self.shading.sky_part))[..., None]
        self.offset *= earth[..., None]
        self.offset += (np.float32(1.0) - earth)[..., None] * air

    def clouds(self, key: int) -> None:
        """Vary the light of the overcast sky, after the veil, by thicker and thinner clouds of a key."""
        if not self.shading.sky_light:
            return
        up = np.maximum(self.around.rays[..., 2], 0.08)
        rng = np.random.default_rng(key)
        x, y = ((self.around.rays[..., axis] / up * 3.0 + rng.random() * 32.0).astype(np.float32) for axis in (0, 1))
        cells = cv2.blur(share_at(x, y, 0.5), (5, 5))
        low = np.clip(self.around.rays[..., 2] / 0.2, 0.0, 1.0).astype(np.float32)
        tone = np.float32(1.0) + low * (np.float32(_CLOUDS) * (cells - np.float32(0.5)) + np.float32(_ABOVE))
        self.offset *= (np.float32(1.0) + self.shading.sky * (enlarged(tone, self.shape) - np.float32(1.0)))[..., None]

    def particles(self, cover: Singles, light: Singles) -> None:
        """Put particles of a light (3,) before it, which cover a share (h, w) of each pixel."""
        self.cover_ground(cover, light)

    def lamps_in_air(self, passing: Floats) -> None:
        """Add the glow of lamps: light that the air scatters out of their way to the lens, and some of it into it.

        Single scattering of the share 1 - e^(-τ), seen as a bloom around the lamp; its width is assumed.
        """
        rgb = self.view.picture.rgb8()
        if rgb.shape[:2] != self.shape:
            rgb = np.asarray(cv2.resize(rgb, self.shape[::-1], interpolation=cv2.INTER_AREA))
        sure = lamps_in(rgb)
        if sure.any():
            scattered = np.float32(_LAMP) * sure * (np.float32(1.0) - enlarged(passing.astype(np.float32), self.shape))
            self.offset += bloom(light_in(rgb) * scattered[..., None])

    def pixels(self) -> Pixels:
        """Return the new pixels."""
        return relit(self.view.picture, self.gain, self.offset, self.shading.step_px)

    def _cells_light(self, air: Singles | None) -> Singles:
        """Return the light (h, w, 3) of cells in the weather, the sky's replaced by the air's."""
        step = self.around.depth.step_px
        light = coarse_light(self.view.picture, self.around.shape, step)
        gain = cv2.resize(self.gain, self.around.shape[::-1], interpolation=cv2.INTER_AREA)
        return light * gain if air is None else np.where(self.around.sky[..., None], air, light * gain)


def settled_snow(light: WeatherLight, amount: float) -> tuple[Singles, Singles]:
    """Return the share (h, w) of each pixel of the ground under snow, and its brightness relative to the sky's.

    Patches as of covered roads; shade under vehicles stays, what stands there takes light, and wheels of earlier
    vehicles in the ego's lane have pressed two tracks.
    """
    x, y = (enlarged(m, light.shape) for m in ground_places(light.around))
    share = share_at(x, y, amount) * light.shading.ground
    shade = np.clip(
        light_in_singles(light.shading.base) / np.float32(max(_SHADED * light.shading.dark, 1e-3)), 0.1, 1.0
    )
    things = cv2.blur((~light.around.ground & ~light.around.sky).astype(np.float32), (_FOOT_CELLS, _FOOT_CELLS))
    near = np.float32(1.0) - np.float32(_OCCLUDED) * np.minimum(np.float32(2.0) * enlarged(things, light.shape), 1.0)
    off = np.abs(np.abs(y) - np.float32(_TRACK_M)) * np.float32(1.0 / _TRACK_WIDE_M)
    tracks = np.exp(-np.square(np.square(off))) * np.float32(_PRESSED)
    share *= np.float32(1.0) - tracks
    tone = np.float32(1.0) + np.float32(_GRAIN) * grain_at(np.float32(1.5) * x, np.float32(1.5) * y)
    tone *= np.float32(_SNOW) * np.sqrt(shade) * near * (np.float32(1.0) - np.float32(0.3) * tracks)
    return share, tone


def beside_sky(passing: Singles, sky: npt.NDArray[np.bool_]) -> Singles:
    """Return shares (h, w) of cells with those of the sky replaced by those of things next to it, 0 far from any."""
    if not sky.any():
        return passing
    size = (_NEXT_CELLS, _NEXT_CELLS)
    things = (~sky).astype(np.float32)
    near, weight = cv2.blur(passing * things, size), cv2.blur(things, size)
    return np.where(sky, near / np.maximum(weight, np.float32(1e-3)), passing)


def fresnel(cosine: Floats, index: float = _WATER) -> Floats:
    """Return the share of unpolarised light that a smooth surface (by default water) reflects, by cosine."""
    c = np.clip(cosine, 1e-3, 1.0)
    t = np.sqrt(1.0 - (1.0 - c * c) / index**2)
    across, along = (c - index * t) / (c + index * t), (index * c - t) / (index * c + t)
    return np.asarray(0.5 * (across**2 + along**2))


def reflected(light: Singles, ground: npt.NDArray[np.bool_]) -> Singles:
    """Return the light (h, w, 3) that a rough wet road mirrors: smeared along columns, as roughness does."""
    return np.asarray(cv2.blur(mirrored(light, ground), (3, max(3, round(_SMEAR * len(light))) | 1)))


def mirrored(light: Singles, ground: npt.NDArray[np.bool_]) -> Singles:
    """Return the light (h, w, 3) of each cell in a mirror at the foot of the next object above it."""
    row = np.arange(len(ground))[:, None]
    foot = np.maximum.accumulate(np.where(ground, -1, row), axis=0)
    above = np.clip(2 * foot - row + 1, 0, len(ground) - 1)
    return np.take_along_axis(light, above[..., None], axis=0)


def ground_places(around: Surroundings) -> tuple[Singles, Singles]:
    """Return x, y (h, w) of the level ground that cells show."""
    down = np.maximum(-around.rays[..., 2], 1e-6)
    range_m = np.minimum(max(float(around.camera_m[2]), 0.1) / down, _FAR_M)
    x, y = (around.camera_m[axis] + around.rays[..., axis] * range_m for axis in (0, 1))
    return x.astype(np.float32), y.astype(np.float32)
