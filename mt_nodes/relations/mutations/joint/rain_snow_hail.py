# SPDX-License-Identifier: Apache-2.0
"""Rain, snow and hail, as every sensor sees them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mt_nodes.base.arrays import Floats, Rows, Singles
from mt_nodes.base.errors import NotApplicable, UsageError
from mt_nodes.base.params import param
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.data.radar import Radar
from mt_nodes.data.transforms import EGO_FRAME
from mt_nodes.relations.mutations.base import Draw, Followup
from mt_nodes.relations.mutations.camera.each_image import View
from mt_nodes.relations.mutations.joint.air_in_pictures import proof_of_wetness
from mt_nodes.relations.mutations.joint.beam_parts import CloudPart
from mt_nodes.relations.mutations.joint.every_sensor import surroundings
from mt_nodes.relations.mutations.joint.level_ground import plane_of
from mt_nodes.relations.mutations.joint.precipitation import Precipitation
from mt_nodes.relations.mutations.joint.scatterers import Spectrum
from mt_nodes.relations.mutations.joint.weather_light import WeatherLight, settled_snow
from mt_nodes.relations.mutations.joint.wet_ground import ROAD_M, depths_by_angles, depths_of_film
from mt_nodes.relations.mutations.lidar.each_cloud import of_cloud
from mt_nodes.relations.mutations.radar.weaker_echoes import missed, proof_of_weakening, rain_db_per_km, weakened

#: Refractive index of water at 905 nm.
_WATER = 1.33


@dataclass(frozen=True)
class Rain(Precipitation):
    """Lets it rain: returns weaken, the weakest vanish, and drops near the sensor hide what is behind them.

    Drops: N(D) = 8000 e^(−4.1 R^−0.21 D) m⁻³ mm⁻¹ (J. S. Marshall, W. Palmer, J. Meteorol. 5, 1948), falling at
    9.65 − 10.3 e^(−0.6 D) m/s (D. Atlas et al., 1973). Extinction: 1e-6 (π/4) ∫ D² Q N dD with Q = 2, echo of a drop
    ρ min((D/d)², 1) e^(−2αr) / r² with ρ = |(n − 1)/(n + 1)|², noise floor: V. Kilic et al., LISA, 2021. With
    ``range_noise`` 0.02 ranges get the noise of C. Goodin et al., "Predicting the Influence of Rain on LIDAR in
    ADAS", Electronics 8(1), 2019: σ = 0.02 r (1 − e^−R)². Drops are those of a segment and are carried along by fall,
    wind and the ego's speed. Clouds without intensities: one reflectivity for all is assumed.

    Pictures: the sun's light and shadows go (:mod:`mt_nodes.world.camera.diffuse_light`), clouds hide the sky, the veil
    has the extinction above, the road is dark and mirrors by Fresnel's law, and near drops leave streaks (K. Garg, S.
    Nayar, IJCV 75, 2007), wider and fainter out of focus. Puddles, clouds and the exposure are assumptions.

    LiDARs see the same film: returns within 0.15 m of the plane of the cloud's ground weaken by it, too, as under
    ``wet_ground`` (M. Hahner et al., CVPR 2022). Clouds that show no ground, or whose mount is unknown, show none of it
    (``clouds_without_road`` in the effects).

    Guaranteed: exactly the returns below the noise floor are lost or replaced; every return stays on its beam and,
    except for range noise, no farther than the hard return; intensities follow the law, on the ground with Fresnel's
    in angles, and stay in scale; no other byte changes; in pictures, light follows the law by range, and the wet ground
    darkens by its film. A radar's echoes lose
    the attenuation of ITU-R P.838-3 at 77 GHz, and the number missed fits the detection of fluctuating targets.
    """

    sensors = ("lidar", "camera", "radar")

    focus_m: float = param(
        2.0, low=0.5, high=50.0, unit="m", aspect="fixed", help="nearer echoes are out of focus: not stronger (assumed)"
    )
    rain_mm_per_h: float = param(10.0, low=0.1, high=200.0, unit="mm/h", neutral=0.1, help="rainfall rate")
    range_noise: float = param(
        0.0, low=0.0, high=0.1, neutral=0.0, help="Goodin's coefficient of range noise, 0.02 in the paper"
    )
    road_film: float = param(
        0.8, low=0.0, high=1.0, neutral=0.0, help="share of the road's texture under water, for cameras and LiDARs"
    )

    def draw_radar(self, rng: np.random.Generator, bundle: Bundle, radar: Radar, state: Any) -> Draw:
        """Draw which detections the rain hides: its attenuation there and back, ITU-R P.838-3.

        Rain's own echo stays below a radar's threshold (assumed).
        """
        return {"rows": missed(rng, radar, self._radar_loss_db(radar.polar[0]))}

    def change_radar(self, bundle: Bundle, radar: Radar, draw: Draw) -> Radar:
        """Weaken the detections, and drop those missed."""
        return weakened(radar, self._radar_loss_db(radar.polar[0]), draw["rows"])

    def prove_radar(self, bundle: Bundle, old: Radar, new: Radar, draw: Draw) -> str | None:
        """Compare row by row, and count."""
        return proof_of_weakening(old, new, self._radar_loss_db(np.linalg.norm(old.xyz, axis=1)), draw["rows"])

    def describe_radars(self, bundle: Bundle, changed: dict[str, Radar], draws: dict[str, Draw]) -> Effects:
        """Report how many detections are missed."""
        return Effects(numbers={"detections_lost": float(sum(len(draws[topic]["rows"]) for topic in changed))})

    def _radar_loss_db(self, range_m: Floats) -> Floats:
        return 2e-3 * range_m * rain_db_per_km(self.rain_mm_per_h)

    def draw_ground(self, bundle: Bundle, cloud: Cloud) -> Draw:
        """Find the road under the film, under ``plane`` (4,): unit normal in the cloud's frame, height over it."""
        try:
            return {"plane": plane_of(bundle, cloud, EGO_FRAME, ROAD_M)} if self.wets else {}
        except (NotApplicable, UsageError):
            return {}

    def optical_depths(self, cloud: Cloud, part: CloudPart, draw: Draw) -> Singles:
        """Return α × range, and of the road what its film takes, as if it were air."""
        depth = super().optical_depths(cloud, part, draw)
        if "plane" in draw:
            road, film = depths_of_film(cloud, part, draw["plane"], self.road_film, self.unknown_reflectivity)
            depth[road] += film
        return depth

    def proof_depths(self, cloud: Cloud, rows: Rows, draw: Draw) -> Floats:
        """Integrate over diameters, and on the road take the film's loss from the angles of Fresnel's laws."""
        depth = super().proof_depths(cloud, rows, draw)
        if "plane" in draw:
            depth += depths_by_angles(cloud, rows, draw["plane"], self.road_film, self.unknown_reflectivity)
        return depth

    def prove_cloud(self, bundle: Bundle, old: Cloud, new: Cloud, draw: Draw) -> str | None:
        """Check the returns; a road that the cloud shows is wet."""
        if "plane" not in draw and self.draw_ground(bundle, old):
            return "the cloud shows the road, and it was left dry"
        return super().prove_cloud(bundle, old, new, draw)

    def apply_to_clouds(self, bundle: Bundle, draw: Draw) -> Followup:
        """Change every cloud, and report those in which no road is wet."""
        followup = super().apply_to_clouds(bundle, draw)
        missing = sum("plane" not in of_cloud(draw, cloud) for cloud in bundle.clouds) if self.wets else 0
        return replace(followup, effects=followup.effects.merged(Effects(numbers={"clouds_without_road": missing})))

    @property
    def spectrum(self) -> Spectrum:
        """Marshall and Palmer's law; no drop is larger than 6 mm: they break."""
        return Spectrum(8000.0, 4.1 * self.rain_mm_per_h**-0.21, 6.0)

    @property
    def strength(self) -> float:
        """Fresnel reflection of water at normal incidence."""
        return ((_WATER - 1.0) / (_WATER + 1.0)) ** 2

    @property
    def shine(self) -> float:
        """A drop shows nearly all of the scene before it, sky included: 94 % of its light (K. Garg, S. Nayar)."""
        return 0.94

    @property
    def direct(self) -> float:
        """Drizzle falls from thin clouds, rain from thick ones (assumed)."""
        return float(np.exp(-self.rain_mm_per_h / _DRIZZLE_MM_PER_H))

    @property
    def air_brightness(self) -> float:
        """Below a rain cloud it is darker than below others (assumed)."""
        return 0.75

    @property
    def wets(self) -> bool:
        """Rain wets the road."""
        return self.road_film > 0.0

    def change_ground(self, light: WeatherLight, draw: Draw) -> None:
        """Wet the road; its puddles ripple."""
        if self.wets:
            key = int(draw["seen_key"]) ^ light.view.image.stamp_ns
            light.wet_road(self.road_film, draw["air_light"], min(1.0, self.rain_mm_per_h / 10.0), key)

    def prove_image(self, old: View, new: View, draw: Draw) -> str | None:
        """Check the veil by range, and that the ground is wet."""
        broken = super().prove_image(old, new, draw)
        if broken is not None or not self.wets:
            return broken
        passing = np.exp(-self.extinction_per_m * surroundings(old).range_m)
        return proof_of_wetness(old, new, passing, draw["air_light"], self.direct, self.road_film)

    @property
    def further_noise(self) -> float:
        """Goodin's noise, as a share of range."""
        return float(self.range_noise * np.expm1(-self.rain_mm_per_h) ** 2)

    def fall_mps(self, diameter_mm: Floats) -> Floats:
        """Atlas's fit; the smallest drops float."""
        return np.maximum(9.65 - 10.3 * np.exp(-0.6 * diameter_mm), 0.0)


#: Rain by which the sun's own light falls by a factor of e.
_DRIZZLE_MM_PER_H = 0.5
#: Snowfall by which the sun's own light falls by a factor of e.
_FLURRY_MM_PER_H = 0.1
#: Density of a flake over that of water: a tenth, as of fresh snow (assumed).
_DENSITY = 0.1


@dataclass(frozen=True)
class Snow(Precipitation):
    """Lets it snow: returns weaken, the weakest vanish, and flakes near the sensor hide what is behind them.

    Flakes: N(D) = 2500 R^−0.94 e^(−2.29 R^−0.45 D) m⁻³ mm⁻¹ of melted diameters D (R. S. Sekhon, R. C. Srivastava,
    "Snow Size Spectra and Radar Reflectivity", J. Atmos. Sci. 27, 1970), 2.15 times as large in the air, falling at
    1 m/s (mean of Papers in Meteorology and Geophysics 31(2), 1980), reflectivity 0.9 (M. Hahner et al., "LiDAR
    Snowfall Simulation for Robust 3D Object Detection", CVPR 2022). Extinction, echo of a particle and noise floor are
    as of rain: V. Kilic et al., LISA, 2021. Flakes are those of a segment and are carried along by fall, wind and the
    ego's speed. Clouds without intensities: one reflectivity for all is assumed. Density of a flake, focus and width
    of a beam are assumptions.

    By the law there are 1092 R^−0.49 e^(−2.29 R^−0.45 D) flakes larger than D in a cubic metre: heavier snow has larger
    flakes, but fewer of those that are larger than any D below 0.48 mm R^0.45. The sensor sees some of these near by,
    so that heavier snow takes more returns, but not all of those that lighter snow takes: whatever flakes the two
    share, the law leaves some of the small ones out.

    Pictures: as in rain, with flakes that are soft out of focus; ``ground_cover`` lies in patches with soft edges,
    pressed in two tracks of wheels, and not on what stands on the ground.

    Guaranteed: exactly the returns below the noise floor are lost or replaced; every return stays on its beam and,
    except for range noise, no farther than the hard return; intensities follow the law and stay in scale; no other byte
    changes.
    """

    radar_reason = "dry snow weakens a wave of 77 GHz by less than 1 dB over 100 m and back (assumed)"

    reach_m: float = param(
        2.5, low=2.0, high=20.0, unit="m", aspect="fixed", help="flakes beyond are not kept one by one, but met by law"
    )
    snow_mm_per_h: float = param(0.5, low=0.1, high=10.0, unit="mm/h", neutral=0.1, help="snowfall rate, as water")

    ground_cover: float = param(
        0.0, low=0.0, high=1.0, neutral=0.0, help="share of the ground that cameras see white; LiDARs see it as it was"
    )

    @property
    def direct(self) -> float:
        """Little snow falls from thin clouds, more from thick ones (assumed)."""
        return float(np.exp(-self.snow_mm_per_h / _FLURRY_MM_PER_H))

    def change_ground(self, light: WeatherLight, draw: Draw) -> None:
        """Cover the ground, with soft edges and a grain; wheels have pressed two tracks into it."""
        if self.ground_cover > 0.0:
            share, tone = settled_snow(light, self.ground_cover)
            light.cover_ground(share, tone * draw["air_light"][:, None, None])

    def white(self, view: View) -> Floats:
        """Cover the ground."""
        return np.asarray(np.where(surroundings(view).ground, self.ground_cover, 0.0))

    @property
    def spectrum(self) -> Spectrum:
        """Sekhon and Srivastava's law, up to 5 mm of water."""
        rate = self.snow_mm_per_h
        return Spectrum(2500.0 * rate**-0.94, 2.29 * rate**-0.45, 5.0, _DENSITY ** (-1.0 / 3.0))

    @property
    def strength(self) -> float:
        """Snow is white."""
        return 0.9

    @property
    def shine(self) -> float:
        """Lit from all sides, a flake is as bright as the horizon."""
        return 1.0

    def fall_mps(self, diameter_mm: Floats) -> Floats:
        """The same for all."""
        return np.ones(len(diameter_mm))


#: Hail is 5 to 50 mm across (A. Heymsfield et al., J. Atmos. Sci. 75(11), 2018, after the AMS Glossary of Meteorology).
_LEAST_MM, _MOST_MM = 5.0, 50.0
#: Fall speed of a stone of 1 cm; speed is proportional to the square root of the diameter.
_OF_1_CM_MPS = 13.9


@dataclass(frozen=True)
class Hail(Precipitation):
    """Lets it hail: lumps of ice near the sensor, fewer and larger than drops, hide what is behind them.

    Stones fall at 13.9 √(D / 1 cm) m/s (Munich Re, 1984, as quoted by the Physics Factbook's "Speed of a Falling
    Hailstone"; speeds that go with the square root were measured by R. Matson, A. Huggins, "The Direct Measurement of
    the Sizes, Shapes and Kinematics of Falling Hailstones", J. Atmos. Sci. 37, 1980). That their number falls
    exponentially with size, by how much (``fold_mm``) and how many there are is assumed, of the order of a shower of
    small hail; smaller ice than hail comes with it by the same law. Their reflectivity of 0.6 is assumed, as of milky
    ice. All else is as of rain: V. Kilic et al., LISA, 2021. Stones are those of a segment and are carried along by
    fall, wind and the ego's speed. What has fallen lies on the ground unseen.

    Guaranteed: exactly the returns below the noise floor are lost or replaced; every return stays on its beam and,
    except for range noise, no farther than the hard return; intensities follow the law and stay in scale; no other byte
    changes.
    """

    stones_per_m3: float = param(
        2.0, low=0.01, high=20.0, unit="1/m3", neutral=0.01, help="stones of 5 mm and more in the air"
    )
    fold_mm: float = param(
        3.0, low=1.0, high=15.0, unit="mm", aspect="fixed", help="stones are e times fewer when larger by this"
    )

    @property
    def spectrum(self) -> Spectrum:
        """An exponential law with the requested number of stones of 5 mm and more."""
        slope = 1.0 / self.fold_mm
        return Spectrum(self.stones_per_m3 * slope * float(np.exp(_LEAST_MM * slope)), slope, _MOST_MM)

    @property
    def strength(self) -> float:
        """Milky ice."""
        return 0.6

    @property
    def shine(self) -> float:
        """White, and lit from above more than from the side that is seen."""
        return 0.9

    def fall_mps(self, diameter_mm: Floats) -> Floats:
        """By the square root of the diameter."""
        return np.asarray(_OF_1_CM_MPS * np.sqrt(diameter_mm / 10.0))
