# SPDX-License-Identifier: Apache-2.0
"""The ego's camera: one ray per pixel, sun, shadows and sky, headlamps at night, fog.

Light is linear until a picture is developed, in shares of full scale. The camera is that of
:mod:`mt_nodes.world.scene.camera_rendering`.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, lru_cache

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Rows, Singles
from mt_nodes.data.transforms import Matrix
from mt_nodes.world.camera.depth import DepthMap, cell_px
from mt_nodes.world.camera.headlamps import headlamps
from mt_nodes.world.camera.surroundings import Surroundings
from mt_nodes.world.drive.lighting import Light
from mt_nodes.world.drive.ray_colours import facing, ground_colours, painted, smooth_normals
from mt_nodes.world.drive.ray_hits import BandHits, WorldImage
from mt_nodes.world.drive.scenery import GROUND, HOUSES, Scenery
from mt_nodes.world.drive.solids import Solids
from mt_nodes.world.scene.appearance import Paint
from mt_nodes.world.scene.camera_rendering import CameraSensor

_EXPOSURE, _GAMMA = 0.85, 2.2
#: Bands of rows that are rendered in parallel; a fixed number, so that pictures do not depend on the machine.
_BANDS = 4
#: Size of the noise bank relative to a picture.
_BANK = 1.3


@dataclass(frozen=True, eq=False)
class Camera:
    """A camera in a world.

    Attributes:
        extinction_per_m: of the air, for light on its way to the camera.
        white: share of the ground covered by snow. wet: wetness of the road, 0 to 1.
    """

    scenery: Scenery
    sensor: CameraSensor
    light: Light
    extinction_per_m: float = 0.0
    white: float = 0.0
    wet: float = 0.0

    def render(self, moving: Solids, ego: Matrix, lights: Mapping[int, Paint]) -> tuple[Singles, Singles]:
        """Return the light (H, W, 3), red, green, blue, and the range (H, W) of each pixel.

        Args:
            ego: (4, 4) ``base_link`` to the scenery's own frame.
            lights: current paints of traffic lights, by number of the body in the scenery.
        """
        shot = WorldImage.of(self.scenery, moving, self.sensor, ego, self.light.to_sun)
        size = 2 * -(-self.sensor.height // (2 * _BANDS))
        bands = [slice(i * size, (i + 1) * size) for i in range(_BANDS)]
        with ThreadPoolExecutor(_BANDS) as pool:
            parts = [*pool.map(lambda band: self._render_band(shot, lights, band), bands)]
        shape = self.sensor.height, self.sensor.width
        light, range_m = (np.concatenate(part) for part in zip(*parts, strict=True))
        return light.reshape(*shape, 3), range_m.reshape(shape)

    def surroundings_of(self, range_m: Singles) -> Surroundings:
        """Return the depth of a picture with ranges (H, W), in cells as coarse as for a recorded one."""
        step = cell_px(self.sensor.width)
        range_m, rays = (array[step // 2 :: step, step // 2 :: step] for array in (range_m, self.sensor.rays))
        return Surroundings(DepthMap.known(range_m, step), rays.astype(np.float64), self.sensor.mount[:3, 3])

    def _render_band(self, shot: WorldImage, lights: Mapping[int, Paint], band: slice) -> tuple[Singles, Singles]:
        """Return light (n, 3) and range (n,) of the pixels of a band of rows."""
        look = BandHits.of(shot, band)
        light = np.empty((len(look.range_m), 3), np.float32)
        sky = np.flatnonzero(np.isinf(look.range_m))
        light[sky] = self.light.sky(look.directions[:, 2].take(sky))
        of = self.scenery.solids.of.take(look.triangle.take(look.standing_rows))
        ground, houses, things = (look.standing_rows[w] for w in (of == GROUND, of == HOUSES, of > HOUSES))
        light[ground] = self._ground(look, ground)
        light[houses] = self._houses(look, houses)
        light[things] = self._things(look, things, lights)
        light[look.moving_rows] = self._moving(look, look.moving_rows)
        if self.extinction_per_m:
            passing = np.exp(np.float32(-self.extinction_per_m) * look.range_m)[:, None]
            light = self.light.horizon + passing * (light - self.light.horizon)
        return light, look.range_m

    def _ground(self, look: BandHits, rows: Rows) -> Singles:
        """Return the light (n, 3) of the ground."""
        triangle, places = look.triangle.take(rows), look.places(rows)
        x, y = (places[:, i] + np.float32(self.scenery.shift_m[i]) for i in range(2))
        range_m = look.range_m.take(rows)
        albedo = ground_colours(self.scenery.ground, triangle, x, y, range_m, self._pixel_rad, self.white, self.wet)
        return albedo * self._on_triangles(look, rows, places, triangle)

    def _houses(self, look: BandHits, rows: Rows) -> Singles:
        """Return the light (n, 3) of houses."""
        triangle, places = look.triangle.take(rows), look.places(rows)
        first = len(self.scenery.ground.mesh.triangles)
        shift = np.append(self.scenery.shift_m, 0.0).astype(np.float32)
        albedo, glow = self.scenery.houses.colours(triangle - first, places + shift)
        light = albedo * self._on_triangles(look, rows, places, triangle)
        return light + np.float32(self.light.darkness / _EXPOSURE) * glow

    def _on_triangles(self, look: BandHits, rows: Rows, places: Singles, triangle: Rows) -> Singles:
        """Return the light (n, 3) at places of uniformly lit triangles."""
        ambient, sunny = self._by_triangle
        return self._lit(look, rows, places, ambient.take(triangle, axis=0), sunny.take(triangle, axis=0))

    def _things(self, look: BandHits, rows: Rows, lights: Mapping[int, Paint]) -> Singles:
        """Return the light (n, 3) of standing objects."""
        triangle, places = look.triangle.take(rows), look.places(rows)
        normal = facing(self.scenery.solids.flat.take(triangle, axis=0), look.directions.take(rows, axis=0))
        hits = triangle, places, look.range_m.take(rows)
        albedo, glow = painted(self.scenery.solids, *hits, self._pixel_rad, lights)
        light = self._lit(look, rows, places, self._ambient(normal), self._sunny(normal))
        return albedo * light + glow / np.float32(_EXPOSURE)

    def _moving(self, look: BandHits, rows: Rows) -> Singles:
        """Return the light (n, 3) of moving objects."""
        hits, places = look.moving, look.places(rows)
        normal = smooth_normals(look.shot.moving, hits, look.directions.take(rows, axis=0))
        albedo, glow = painted(look.shot.moving, hits.triangle, places, hits.range_m, self._pixel_rad, {})
        light = self._lit(look, rows, places, self._ambient(normal), self._sunny(normal))
        return albedo * light + glow / np.float32(_EXPOSURE)

    def _lit(self, look: BandHits, rows: Rows, places: Singles, light: Singles, sunny: Singles) -> Singles:
        """Add to the light (n, 3) at places that of the sun, unless in shadow, and of headlamps."""
        if self.light.shines:
            turned = np.flatnonzero(sunny[:, 0] > 0.0)
            dark = look.shaded(rows.take(turned), places.take(turned, axis=0))
            sunny[turned[dark]] = 0.0
            light += sunny
        if self.light.headlamps:
            forward, left, upward = look.own_directions(rows)
            light += self.light.from_headlamps(headlamps(forward, left, upward, look.range_m.take(rows)))
        return light

    @cached_property
    def _by_triangle(self) -> tuple[Singles, Singles]:
        """Light from sky and ground, and from the sun, on each triangle of ground and houses (T, 3)."""
        normal = self.scenery.solids.flat[self.scenery.solids.of <= HOUSES]
        return self._ambient(normal), self._sunny(normal)

    def _ambient(self, normal: Singles) -> Singles:
        above = (0.5 + 0.5 * normal[:, 2])[:, None]
        return np.asarray(above * self.light.above + (1.0 - above) * self.light.below, np.float32)

    def _sunny(self, normal: Singles) -> Singles:
        return np.asarray(np.maximum(normal @ self.light.to_sun, 0.0)[:, None] * self.light.sun, np.float32)

    @property
    def _pixel_rad(self) -> float:
        return 1.0 / self.sensor.focal_px


def developed(light: Singles, noise: float, rng: np.random.Generator) -> npt.NDArray[np.uint8]:
    """Return the picture (H, W, 3) of light, blue first: lens blur of half a pixel, gamma, noise, 8 bits.

    The noise of a picture is a random piece of a fixed bank of normal numbers: a tenth of the time.
    """
    soft = cv2.GaussianBlur(light, (3, 3), 0.5)
    np.clip(soft, 0.0, 1.0 / _EXPOSURE, out=soft)
    steps = cv2.pow(cv2.cvtColor(soft, cv2.COLOR_RGB2BGR) * np.float32(_EXPOSURE), 1.0 / _GAMMA)
    bank = _bank(steps.size)
    begin = int(rng.integers(len(bank) - steps.size + 1))
    grain = bank[begin : begin + steps.size].reshape(steps.shape)
    return np.asarray(cv2.convertScaleAbs(np.maximum(cv2.addWeighted(steps, 255.0, grain, noise, 0.0), 0.0)))


@lru_cache(maxsize=2)
def _bank(size: int) -> Singles:
    rng = np.random.Generator(np.random.PCG64(1))
    return rng.standard_normal(int(_BANK * size), dtype=np.float32)
