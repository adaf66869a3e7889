# SPDX-License-Identifier: Apache-2.0
"""The light of a picture in weather: what things send, what the road mirrors, what the air and particles add."""

from __future__ import annotations

import cv2
import numpy as np

from mt_nodes.base.arrays import Floats, Ints, Mask, Singles
from mt_nodes.data.images.codecs import Pixels
from mt_nodes.relations.mutations.camera.each_image import View
from mt_nodes.relations.mutations.camera.rig_light import shading_in_rig
from mt_nodes.relations.mutations.joint.every_sensor import surroundings
from mt_nodes.relations.mutations.joint.road_covers import TILE_M, grain_at, share_at
from mt_nodes.world.camera.diffuse_light import diffuse_light, light_shares, of_ends
from mt_nodes.world.camera.headlamps import bloom, lamps_in
from mt_nodes.world.camera.local_relight import relit_locally
from mt_nodes.world.camera.surroundings import Surroundings

_WATER = 1.33
#: A film leaves a rough ground about half of its light: some of the scattered light is reflected back by the water's
#: surface (J. Lekner, M. Dorf, "Why some things are darker when wet", Applied Optics 27, 1988).
DARKENED = 0.5
#: Share of the wet road on which water stands, and what the rest mirrors, rough as it is, relative to that (assumed).
_PUDDLES, _ROUGH = 0.35, 0.75
#: Blur of mirror images on rough wet asphalt, along the picture's columns, in shares of its height (assumed).
_SMEAR = 0.09
#: The same far below the foot: box of so many columns, and so many times the rows.
_FAR_SMEAR = (9, 3)
#: Ripples move what puddles mirror by this share of it, up and down (assumed).
_RIPPLES = 0.22
#: Ground farther than this is not resolved.
_FAR_M = 80.0
#: Light of fallen snow relative to the sky's, and its grain; what is darker than this share of the sun's shadows lies
#: under something, and stays darker (assumed).
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
#: Every second cell: enough for what is smooth.
_HALF = np.s_[1::2, 1::2]
#: Neighbouring cells whose transmitted or covered shares differ by less than this show no edge.
_LEAST_STEP = 0.04
#: Box of cells by which the air before things next to the sky is continued into it.
_NEXT_CELLS = 9


class WeatherLight:
    """Light of the dark and the bright end of each cell, (3, 2, h, w), red, green, blue first.

    Changed in the order in which light travels: from things and the road through the air to the lens.
    """

    def __init__(self, view: View, direct: float = 1.0, ego_pose: Floats | None = None) -> None:
        """Begin with what things send in diffuse light.

        ``direct``: share of the sun's own light that gets through the weather, 0 to 1. ``ego_pose``: (3,) x, y and
        heading of the ego on the ground, in m and rad, at which patterns of the road rest; None: they go along with it.
        """
        self.ego_pose = np.zeros(3) if ego_pose is None else ego_pose
        self.view, self.around = view, surroundings(view)
        self.shading = shading_in_rig(view)
        self.light = diffuse_light(self.shading, direct)

    def wet_road(self, film: float, air: Singles | None = None, ripples: float = 0.0, key: int = 0) -> None:
        """Darken the ground under a film of water, and add what it mirrors, by Fresnel's law.

        Args:
            film: share of the ground that water covers.
            air: (3,) light of the sky in the weather; None: the picture's own.
            ripples: 0 to 1, how much drops stir puddles. key: of the ripples, other ones in every frame.
        """
        planes, ground = self.light[:, :, 1::2, 1::2].mean(axis=1), self.around.ground[_HALF]
        things = np.asarray(cv2.merge(list(planes)))
        if air is not None:
            things[self.around.sky[_HALF]] = air
        mirror = np.float32(film) * self.shading.ground * self._enlarged(self._mirroring(film, ripples, key))
        self.light *= np.float32(1.0) - np.float32(film * (1.0 - DARKENED)) * self.shading.ground
        self.light *= np.float32(1.0) - mirror
        for channel, own in enumerate(cv2.split(self._enlarged(reflected(things, ground)))):
            self.light[channel] += mirror * own

    def _mirroring(self, film: float, ripples: float, key: int) -> Singles:
        """Return how much of the light every second cell (h, w) of wet ground mirrors: more where puddles stand."""
        x, y = self.on_road(*ground_places(self.around, _HALF))
        mirror = np.float32(_ROUGH) + np.float32(1.0 - _ROUGH) * share_at(x, y, _PUDDLES * film)
        mirror *= fresnel(-self.around.rays[..., 2][_HALF]).astype(np.float32)
        if ripples:
            off = (np.random.default_rng(key).random(2) * 32.0).astype(np.float32)
            rings = grain_at(np.float32(1.7) * x + off[0], np.float32(1.7) * y + off[1])
            mirror *= np.maximum(np.float32(1.0) + np.float32(ripples * _RIPPLES) * rings, np.float32(0.0))
        return mirror

    def _enlarged(self, cells: Singles) -> Singles:
        return np.asarray(cv2.resize(cells, self.around.shape[::-1]))

    def on_road(self, x: Singles, y: Singles) -> tuple[Singles, Singles]:
        """Return places (h, w) of the ego's frame in one that rests on the road, within a period of its patterns."""
        ahead, left, heading = self.ego_pose.tolist()
        cosine, sine = np.float32(np.cos(heading)), np.float32(np.sin(heading))
        first, second = np.float32(ahead % TILE_M), np.float32(left % TILE_M)
        return first + cosine * x - sine * y, second + sine * x + cosine * y

    def cover_ground(self, share: Singles, light: Singles) -> None:
        """Cover a share (h, w) of each cell with something of a light (3,) or (3, h, w)."""
        share = of_ends(self.shading, share, _LEAST_STEP)
        self.light *= np.float32(1.0) - share
        for channel, own in enumerate(light):
            self.light[channel] += share * own

    def veil(self, passing: Floats | Singles, air: Singles) -> None:
        """Lead the light through air of which a share ``passing`` (h, w) of each cell's light arrives.

        I e^(-τ) + A (1 - e^(-τ)) in linear light (H. Koschmieder, "Theorie der horizontalen Sichtweite", 1924). What is
        as bright as the sky beside it is sky.
        """
        left = of_ends(self.shading, beside_sky(passing.astype(np.float32), self.around.sky), _LEAST_STEP)
        left *= np.float32(1.0) - self.shading.sky
        rest = np.float32(1.0) - left
        self.light *= left
        for channel, own in enumerate(air):
            self.light[channel] += rest * own

    def clouds(self, key: int) -> None:
        """Vary the light of the overcast sky, after the veil, by thicker and thinner clouds of a key."""
        if not self.shading.sky_light:
            return
        tone = cloud_tone(self.around.rays[_HALF].astype(np.float32), key, 3)
        self.light *= np.float32(1.0) + self.shading.sky * self._enlarged(tone)

    def lamps_in_air(self, passing: Floats | Singles) -> None:
        """Add the glow of lamps: light that the air scatters out of their way to the lens, and some of it into it.

        Single scattering of the share 1 - e^(-τ), seen as a bloom around the lamp; its width is assumed.
        """
        lamps = lamps_in(self.view.picture, self.around.depth.step_px)
        if lamps.any():
            glow = bloom(np.float32(_LAMP) * lamps * (np.float32(1.0) - passing.astype(np.float32))[..., None])
            self.light += np.moveaxis(glow, -1, 0)[:, None]

    def pixels(self) -> Pixels:
        """Return the new pixels."""
        return relit_locally(self.view.picture, self.shading.samples, self.light, self.around.depth.step_px)


def cloud_tone(rays: Singles, key: int, blur_cells: int = 1) -> Singles:
    """Return how much brighter (h, w) the overcast sky is along rays (h, w, 3) than air: clouds of a key, by height."""
    up = np.maximum(rays[..., 2], np.float32(0.08)) * np.float32(1.0 / 3.0)
    off = (np.random.default_rng(key).random(2) * 32.0).astype(np.float32)
    thick = cv2.blur(share_at(rays[..., 0] / up + off[0], rays[..., 1] / up + off[1], 0.5), (blur_cells, blur_cells))
    low = np.clip(rays[..., 2] * np.float32(5.0), 0.0, 1.0)
    return np.asarray(low * (np.float32(_CLOUDS) * (thick - np.float32(0.5)) + np.float32(_ABOVE)))


def settled_snow(light: WeatherLight, amount: float) -> tuple[Singles, Singles]:
    """Return the share (h, w) of each cell of the ground under snow, and its brightness relative to the sky's.

    Patches as of covered roads; shade under vehicles stays, what stands there takes light, and wheels of earlier
    vehicles in the ego's lane have pressed two tracks.
    """
    x, y = ground_places(light.around)
    road = light.on_road(x, y)
    share = share_at(*road, amount) * light.shading.ground
    dark = np.float32(max(_SHADED * light.shading.dark, 1e-3))
    shade = np.clip(light_shares(light.shading.base[0]) / dark, 0.1, 1.0)
    things = cv2.blur((~light.around.ground & ~light.around.sky).astype(np.float32), (_FOOT_CELLS, _FOOT_CELLS))
    near = np.float32(1.0) - np.float32(_OCCLUDED) * np.minimum(np.float32(2.0) * things, 1.0)
    off = np.abs(np.abs(y) - np.float32(_TRACK_M)) * np.float32(1.0 / _TRACK_WIDE_M)
    tracks = np.exp(-np.square(np.square(off))) * np.float32(_PRESSED)
    share *= np.float32(1.0) - tracks
    tone = np.float32(1.0) + np.float32(_GRAIN) * grain_at(*road)
    tone *= np.float32(_SNOW) * np.sqrt(shade) * near * (np.float32(1.0) - np.float32(0.3) * tracks)
    return share, tone


def beside_sky(passing: Singles, sky: Mask) -> Singles:
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


def reflected(light: Singles, ground: Mask) -> Singles:
    """Return the light (h, w, 3) that a rough wet road mirrors.

    Roughness smears it along columns, and the farther from the foot of what is mirrored, the more.
    """
    below = _below_foot(ground)
    image = mirrored(light, ground)
    tall = max(3, round(_SMEAR * len(light))) | 1
    near = cv2.blur(image, (3, tall))
    far = cv2.blur(near, (_FAR_SMEAR[0], _FAR_SMEAR[1] * tall | 1))
    off = np.minimum(below * np.float32(0.5 / tall), np.float32(1.0))[..., None]
    return np.asarray(near + off * (far - near))


def mirrored(light: Singles, ground: Mask) -> Singles:
    """Return the light (h, w, 3) of each cell in a mirror at the foot of the next object above it."""
    above = np.clip(np.arange(len(ground))[:, None] - 2 * _below_foot(ground) + 1, 0, len(ground) - 1)
    return np.asarray(light[above, np.arange(ground.shape[1])])


def _below_foot(ground: Mask) -> Ints:
    """Return how many rows (h, w) each cell of the ground is below the foot of the next object above it."""
    row = np.arange(len(ground))[:, None]
    return np.asarray(row - np.maximum.accumulate(np.where(ground, -1, row), axis=0))


def ground_places(around: Surroundings, cells: tuple[slice, slice] = np.s_[:, :]) -> tuple[Singles, Singles]:
    """Return x, y (h, w) of the level ground that some cells show."""
    rays = around.rays[cells]
    down = np.maximum(-rays[..., 2], 1e-6)
    range_m = np.minimum(max(float(around.camera_m[2]), 0.1) / down, _FAR_M)
    x, y = (around.camera_m[axis] + rays[..., axis] * range_m for axis in (0, 1))
    return x.astype(np.float32), y.astype(np.float32)
