# SPDX-License-Identifier: Apache-2.0
"""Base of fog, dust and smoke: air that attenuates and scatters everywhere, denser in some places."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np

from mt_nodes.base.arrays import Floats, Rows, Singles
from mt_nodes.base.params import param
from mt_nodes.data.images.codecs import Pixels
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.camera.each_image import View
from mt_nodes.relations.mutations.joint.air_in_pictures import air_light, around_lidar, polar, proof_of_veil
from mt_nodes.relations.mutations.joint.attenuation import all_returns
from mt_nodes.relations.mutations.joint.beam_parts import Amplitudes, CloudPart, firing_of, part_of_empty
from mt_nodes.relations.mutations.joint.chance import Quarters, quarters, shares_at
from mt_nodes.relations.mutations.joint.density import Patches
from mt_nodes.relations.mutations.joint.echo_law import EchoLaw, echo_law
from mt_nodes.relations.mutations.joint.echo_proof import AirOnBeams, proof_of_echo_places, proof_of_reports
from mt_nodes.relations.mutations.joint.empty_beams import EmptyBeams
from mt_nodes.relations.mutations.joint.empty_proof import SeenEchoes
from mt_nodes.relations.mutations.joint.every_sensor import surroundings
from mt_nodes.relations.mutations.joint.joint_weather import JointWeather
from mt_nodes.relations.mutations.joint.proof import amplitude_of, weakened_amplitude
from mt_nodes.relations.mutations.joint.soft_return import LIGHT_M_PER_NS
from mt_nodes.relations.mutations.joint.weather_light import WeatherLight
from mt_nodes.relations.mutations.lidar.rays import columns
from mt_nodes.world.camera.light import Colour

#: Contrast threshold of the meteorological optical range: 5 % (WMO), so that MOR = ln 20 / α.
LN_20 = float(np.log(20.0))
#: Patches farther away than this are alike by the law of large numbers.
_PATCHES_TO_M = 150.0
#: Density of the air counts up to here for its echo, which comes from nearer than that: patches are larger.
NEAR_M = 5.0
#: Thickness of a layer of fog, dust or smoke, and elevation of the sun over it (assumed).
_LAYER_M, _SUN_RAD = 60.0, np.radians(30.0)
#: Parts of a beam that the proof integrates over.
_PARTS = 64
_PARTS_OF_PICTURES = 24


@dataclass(frozen=True)
class HazyAir(JointWeather):
    """Air with an extinction α × density, where the density is a lattice that drifts (:class:`Patches`)."""

    radar_reason = (
        "fog, dust and smoke weaken a wave of 77 GHz by less than 0.5 dB over 100 m and back (dense fog of 0.5 g/m³: "
        "2 dB/km, ITU-R P.840), which no detection is lost by"
    )

    patchiness: float = param(0.3, low=0.0, high=0.9, aspect="fixed", help="density varies between 1 ± this")
    patch_m: float = param(15.0, low=5.0, high=200.0, unit="m", aspect="fixed", help="size of a patch")
    pulse_ns: float = param(
        10.0,
        low=1.0,
        high=50.0,
        unit="ns",
        aspect="fixed",
        help="half-power width of the laser's pulse (Hahner et al.: 20, then 10)",
    )

    @property
    @abstractmethod
    def backscatter_per_m_sr(self) -> float:
        """Backscatter coefficient β of the air, 1/(m sr)."""

    def begin(self, rng: np.random.Generator, bundle: Bundle) -> int:
        """Choose the lattice of a segment: its key."""
        return int(rng.integers(2**62))

    def draw_air(self, rng: np.random.Generator, bundle: Bundle, cloud: Cloud, state: Any, noise_key: int = 0) -> Draw:
        """Draw the lattice and its drift."""
        key = int(rng.integers(2**62)) if state is None else state
        drift = self.drift(bundle, cloud)
        moved = {"moved_x_m": float(drift.moved_m[0]), "moved_y_m": float(drift.moved_m[1])}
        return {"air_key": key, **moved, **drift.draw()}

    @property
    def patches_to_m(self) -> float:
        """Range up to which patches count; farther away the density is the mean up to there."""
        return min(self.max_range_m, _PATCHES_TO_M)

    def patches(self, draw: Draw) -> Patches:
        """Return the density of the air for a draw."""
        moved_m = draw["moved_x_m"], draw["moved_y_m"]
        return Patches(draw["air_key"], self.patchiness, self.patch_m, moved_m, draw.get("turned_rad", 0.0))

    @property
    def law(self) -> EchoLaw:
        """Distribution of the air's highest peak."""
        return echo_law(self.extinction_per_m, self.backscatter_per_m_sr, self.pulse_ns, self.receiver, self.patchiness)

    @property
    def likely_echoes(self) -> bool:
        """Whether the densest air echoes above the threshold, at the luckiest noise."""
        return self.law.likely

    def optical_depths(self, cloud: Cloud, part: CloudPart, draw: Draw) -> Singles:
        """Return α × mean density × range."""
        depth = part.range_m * np.float32(self.extinction_per_m)
        return depth if self.patchiness == 0.0 else depth * self._mean_density(part, draw)

    def echoes(self, cloud: Cloud, part: CloudPart, draw: Draw, found: Amplitudes) -> tuple[Singles, Singles]:
        """Draw the highest peak of the air before each return, and where it is, if it exceeds that return."""
        echo_m, echo = (np.zeros(len(part.range_m), np.float32) for _ in range(2))
        if self.likely_echoes:
            rows, at_m, peak = self._peaks(part, draw, found.chance, found.least)
            echo_m[rows], echo[rows] = at_m, peak
        return echo_m, echo

    def empty_echoes(self, beams: EmptyBeams, draw: Draw) -> tuple[Rows, Singles, Singles]:
        """Draw the same of beams with nothing behind."""
        if not len(beams):
            return np.empty(0, np.int64), np.empty(0, np.float32), np.empty(0, np.float32)
        chance = quarters(draw["noise_key"] + 1, len(beams))
        return self._peaks(part_of_empty(beams), draw, chance, np.ones(1, np.float32))

    def _peaks(self, part: CloudPart, draw: Draw, chance: Quarters, least: Singles) -> tuple[Rows, Singles, Singles]:
        """Return beams (k,), ascending, with a peak of the air above ``least`` (n,) or (1,), its place and height."""
        law, density = self.law, np.ones(1, np.float32)
        may = law.candidates(chance[:, 2], least)
        target_m = part.range_m[may]
        if self.patchiness:
            over_ground = part.level[may] * np.minimum(target_m, np.float32(NEAR_M))
            density = self.patches(draw).mean_to(part.bearing_rad[may], over_ground, self.patches_to_m)
        found, peak, free_m = law.peaks(density, target_m, chance[may, 2])
        rows = may[found]
        higher = np.flatnonzero(peak > np.broadcast_to(least, part.range_m.shape)[rows])
        rows, peak = rows[higher], peak[higher]
        density = density[found[higher]] if self.patchiness else density
        return rows, law.places_m(density, free_m[higher], peak, chance[rows, 3]), peak

    def proof_depths(self, cloud: Cloud, rows: Rows, draw: Draw) -> Floats:
        """Integrate the density along each beam by the midpoint rule."""
        x, y, z = columns(cloud, rows)
        over_ground, range_m = np.hypot(x, y), np.sqrt(x * x + y * y + z * z)
        reached = np.minimum(1.0, np.ceil(self.patches_to_m) / np.maximum(over_ground, 1e-9))
        patches, total = self.patches(draw), np.zeros(len(rows))
        for part in range(_PARTS if self.patchiness else 0):
            share = reached * (part + 0.5) / _PARTS
            total += patches.at(x * share, y * share)
        mean = total / _PARTS if self.patchiness else 1.0
        return np.asarray(self.extinction_per_m * range_m * mean)

    def proof_of_air(self, old: Cloud, seen: SeenEchoes, draw: Draw) -> str | None:
        """Check the reports of some beams against the chance of them, integrated anew."""
        air, echoed, key = self._air_on(seen, draw), seen.echoed, draw["noise_key"]
        firing = firing_of(old, all_returns(old), np.where(seen.empty, 0, seen.index))
        number = np.where(seen.empty, shares_at(key + 1, seen.index)[:, 2], shares_at(key, firing)[:, 2])
        low, high = (np.ones(len(echoed)) for _ in range(2))
        low[echoed], high[echoed] = (
            amplitude_of(self.receiver, rho, seen.range_m) for rho in (seen.darkest, seen.brightest)
        )
        hidden = ~echoed & ~seen.empty
        low[hidden] = high[hidden] = weakened_amplitude(self, old, seen.index[hidden], draw)
        broken = proof_of_reports(air, number, (low, high), echoed)
        return broken or proof_of_echo_places(air.of(echoed), seen.range_m, (low[echoed], high[echoed]))

    def _air_on(self, seen: SeenEchoes, draw: Draw) -> AirOnBeams:
        x, y, z = seen.xyz.T
        over_ground, target_m = np.hypot(x, y) / np.sqrt(x * x + y * y + z * z), seen.target_m
        density, patches = np.ones(len(x)), self.patches(draw)
        if self.patchiness:
            bearing, to_m = np.arctan2(y, x), over_ground * np.minimum(target_m, NEAR_M)
            shares = (np.arange(_PARTS_OF_PICTURES) + 0.5) / _PARTS_OF_PICTURES
            along = [patches.at(np.cos(bearing) * to_m * s, np.sin(bearing) * to_m * s) for s in shares]
            density = np.mean(along, axis=0)
        width_m = LIGHT_M_PER_NS * self.pulse_ns
        free_m = np.minimum(target_m, 1e4) - width_m / 2.0
        return AirOnBeams(
            self.receiver, self.extinction_per_m, self.backscatter_per_m_sr, width_m, density, free_m
        )  # fmt: skip

    @property
    @abstractmethod
    def tint(self) -> Colour:
        """Red, green and blue of the light that the air scatters, relative to each other."""

    @property
    def brightness(self) -> float:
        """Brightness of thick air relative to the sky."""
        return 1.0

    @property
    def visible_extinction_per_m(self) -> float:
        """Mean extinction coefficient of the air for light that is seen, 1/m."""
        return self.extinction_per_m

    def draw_image(self, rng: np.random.Generator, view: View, state: Any) -> Draw:
        """Draw the air, centred at the first LiDAR, and the light that it scatters."""
        air = self.draw_air(rng, view.bundle, around_lidar(view), state)
        return {**air, "air_light": air_light(view, self.tint, self.brightness)}

    def change_image(self, view: View, draw: Draw) -> Pixels:
        """Change the light of the day, draw the veil over what each cell shows, and the glow of lamps in it."""
        range_m = surroundings(view).depth.range_m
        passing = np.exp(np.float32(-self.visible_extinction_per_m) * range_m * self._density(view, draw))
        light = WeatherLight(view, self.direct)
        light.veil(passing, draw["air_light"])
        light.lamps_in_air(passing)
        return light.pixels()

    @property
    def direct(self) -> float:
        """Share of the sun's own light that comes through the layer: e^(−α h / sin γ).

        Thickness h of the layer and elevation γ of the sun are assumed: 60 m, 30 degrees.
        """
        return float(np.exp(-self.visible_extinction_per_m * _LAYER_M / np.sin(_SUN_RAD)))

    def prove_image(self, old: View, new: View, draw: Draw) -> str | None:
        """Integrate the density along each cell's ray by the midpoint rule, and compare with the veil."""
        # Air is smooth: one cell of 4 x 4 gives the mean density for all sixteen.
        range_m, (bearing_rad, over_ground_m) = surroundings(old).range_m, polar(old, 4)
        reached = np.minimum(over_ground_m, np.ceil(self.patches_to_m))
        ahead, left = np.cos(bearing_rad) * reached, np.sin(bearing_rad) * reached
        shares = (np.arange(_PARTS_OF_PICTURES) + 0.5) / _PARTS_OF_PICTURES
        patches = self.patches(draw)
        sparse = np.mean([patches.at(ahead * share, left * share) for share in shares], axis=0)
        mean = np.repeat(np.repeat(sparse, 4, axis=0), 4, axis=1)[: range_m.shape[0], : range_m.shape[1]]
        return proof_of_veil(
            old, new, np.exp(-self.visible_extinction_per_m * range_m * mean), draw["air_light"], self.direct
        )

    def _density(self, view: View, draw: Draw) -> Singles:
        """Return the mean density of the air before each cell (h, w), by every second of them: it is smooth."""
        shape = surroundings(view).shape
        if not self.patchiness:
            return np.ones(shape, np.float32)
        bearing, reach = (a.astype(np.float32) for a in polar(view, 2))
        mean = self.patches(draw).mean_to(bearing.reshape(-1), reach.reshape(-1), self.patches_to_m)
        return np.asarray(cv2.resize(mean.reshape(bearing.shape), shape[::-1], interpolation=cv2.INTER_NEAREST))

    def _mean_density(self, part: CloudPart, draw: Draw) -> Singles:
        return self.patches(draw).mean_to(part.bearing_rad, part.level * part.range_m, self.patches_to_m)
