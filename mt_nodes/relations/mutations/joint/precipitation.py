# SPDX-License-Identifier: Apache-2.0
"""Precipitation: extinction by all particles, echoes of those that a beam meets."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from mt_nodes.base.arrays import Floats, Rows, Singles
from mt_nodes.base.params import param
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.joint.attenuation import all_returns, transmission
from mt_nodes.relations.mutations.joint.beam_grid import BeamGrid
from mt_nodes.relations.mutations.joint.beam_parts import Amplitudes, CloudPart, parts
from mt_nodes.relations.mutations.joint.chance import Quarters, quarters
from mt_nodes.relations.mutations.joint.echo_law import EchoLaw
from mt_nodes.relations.mutations.joint.empty_beams import EmptyBeams, empty_beams
from mt_nodes.relations.mutations.joint.empty_proof import SeenEchoes
from mt_nodes.relations.mutations.joint.precipitation_in_pictures import PrecipitationInPictures
from mt_nodes.relations.mutations.joint.proof import amplitude_of
from mt_nodes.relations.mutations.joint.reception import with_sensor
from mt_nodes.relations.mutations.joint.scatterers import (
    NEAREST_M,
    Detection,
    ParticleBox,
    class_edges_mm,
    far_law,
    seeded,
    strongest,
)
from mt_nodes.relations.mutations.lidar.rays import At, ranges_m, smallest

#: Size classes: particles of a class fall at the same speed.
CLASSES = 12
#: Large particles take twice their cross-section out of a beam (extinction paradox: geometric limit of Mie's theory).
_EXTINCTION_EFFICIENCY = 2.0


@dataclass(frozen=True, eq=False)
class Falling:
    """The particles of a segment: those that its LiDAR may meet, their key, and the key of those that cameras see."""

    boxes: tuple[ParticleBox, ...]
    key: int
    seen_key: int


@dataclass(frozen=True)
class Precipitation(PrecipitationInPictures):
    """Falling particles with an exponential spectrum of sizes.

    Beams are round cones. The default divergence is that of the sensor's family, else the larger one of a Velodyne
    VLS-128: 3.0 mrad along its scan, half of that across it (its manual, table F-1). ``aperture_mm`` is assumed, of
    the order of a LiDAR's windows and lenses; an OS1's beam is 10 mm wide where it leaves the sensor (its data sheet).
    A wider beam puts less of its power on one particle.
    """

    divergence_mrad: float = param(
        3.0,
        low=0.1,
        high=20.0,
        unit="mrad",
        aspect="fixed",
        help="how fast a beam widens (VLS-128: 3.0, and 1.5 across the scan)",
    )
    aperture_mm: float = param(
        10.0,
        low=1.0,
        high=50.0,
        unit="mm",
        aspect="fixed",
        help="width of a beam at the sensor (assumed: no data sheet tells it)",
    )
    reach_m: float = param(
        10.0,
        low=2.0,
        high=20.0,
        unit="m",
        aspect="fixed",
        help="particles beyond are not kept one by one, but met by law",
    )

    @property
    @abstractmethod
    def strength(self) -> float:
        """Reflectivity of a beam filled with one particle."""

    @property
    def detection(self) -> Detection:
        """How a beam sees a particle."""
        aperture_m, divergence = self.aperture_mm * 1e-3, self.divergence_mrad * 1e-3
        return Detection(self.receiver, self.strength, aperture_m, divergence, self.reach_m)

    @property
    def extinction_per_m(self) -> float:
        """∫ (π/4) D² Q N(D) dD = π Q N0 swell² / (2 Λ³), with Q = 2."""
        law = self.spectrum
        area_mm2_per_m3 = np.pi * _EXTINCTION_EFFICIENCY * law.intercept_per_m3_mm * law.swell**2 / 2.0
        return float(area_mm2_per_m3 / law.slope_per_mm**3 * 1e-6)

    def begin(self, rng: np.random.Generator, bundle: Bundle) -> Falling:
        """Seed the particles of a segment, those that the first LiDAR may meet."""
        key, seen_key = int(rng.integers(2**62)), int(rng.integers(2**62))
        sensors = {self.sensor_of(cloud) for cloud in bundle.clouds} if bundle is not None else set()
        own = with_sensor(self, min(sensors)) if len(sensors) == 1 else self
        return Falling(own.particles(key), key, seen_key)

    def particles(self, key: int) -> tuple[ParticleBox, ...]:
        """Return the particles of a key that this sensor may meet one by one."""
        edges = class_edges_mm(self.spectrum, self.detection, CLASSES)
        falls = self.fall_mps(np.sqrt(edges[1:] * edges[:-1]))
        return seeded(key, self.spectrum, self.detection, tuple(falls.tolist()))

    def draw_air(self, rng: np.random.Generator, bundle: Bundle, cloud: Cloud, state: Any, noise_key: int) -> Draw:
        """Find the particles that beams meet at this instant: for each beam the strongest that exceeds its return."""
        particles = self.particles((self.begin(rng, bundle) if state is None else state).key)
        at, beams, ground = all_returns(cloud), empty_beams(cloud), self.draw_ground(bundle, cloud)
        range_m, unit, least = self._beams(cloud, at, beams, {"noise_key": noise_key, **ground})
        grid = BeamGrid.of(unit, least)
        nothing = (np.empty(0, np.int64), np.empty(0, np.float32), np.empty(0, np.float32))
        found = [self._hits(grid, range_m, least, *self._in_sight(box, bundle, cloud, grid)) for box in particles]
        found.append(nothing)
        hit, echo_m, echo = strongest(*map(np.concatenate, zip(*found, strict=True)))
        split = int(np.searchsorted(hit, len(range_m) - len(beams)))
        rows = hit[:split] if isinstance(at, slice) else at[hit[:split]]
        return {
            "rows": smallest(rows),
            "echo_m": echo_m[:split],
            "echo": echo[:split],
            "empty": smallest(hit[split:] - (len(range_m) - len(beams))),
            "empty_m": echo_m[split:],
            "empty_echo": echo[split:],
            **self.drift(bundle, cloud).source(),
            **ground,
        }

    def draw_ground(self, bundle: Bundle, cloud: Cloud) -> Draw:
        """Find the ground, where it changes."""
        return {}

    def _beams(self, cloud: Cloud, at: At, beams: EmptyBeams, known: Draw) -> tuple[Singles, Singles, Singles]:
        """Return range (n,), direction (3, n) and least amplitude of an echo (n,) of all beams, the empty ones last."""
        count = len(cloud) if isinstance(at, slice) else len(at)
        range_m, least = (np.full(count + len(beams), alone, np.float32) for alone in (np.inf, 1.0))
        unit = np.empty((3, len(range_m)), np.float32)
        unit[:, count:] = beams.unit
        for part in parts(cloud, at):
            here = slice(part.first, part.first + len(part.range_m))
            found = self.amplitudes(cloud, part, known)
            range_m[here] = part.range_m
            least[here] = found.least
            for i, column in enumerate(part.xyz):
                np.divide(column, part.range_m, out=unit[i, here])
        return range_m, unit, least

    def optical_depths(self, cloud: Cloud, part: CloudPart, draw: Draw) -> Singles:
        """Return α × range."""
        return part.range_m * np.float32(self.extinction_per_m)

    def proof_depths(self, cloud: Cloud, rows: Rows, draw: Draw) -> Floats:
        """Integrate the cross-sections over diameters instead of using the closed form."""
        law = self.spectrum
        diameter_mm = np.linspace(0.0, 40.0 / law.slope_per_mm, 4001)
        shadow_mm2 = _EXTINCTION_EFFICIENCY * np.pi / 4.0 * np.square(law.swell * diameter_mm)
        integrand = shadow_mm2 * law.intercept_per_m3_mm * np.exp(-law.slope_per_mm * diameter_mm)
        area_mm2_per_m3 = 0.5 * ((integrand[1:] + integrand[:-1]) * np.diff(diameter_mm)).sum()
        return np.asarray(area_mm2_per_m3 * 1e-6 * ranges_m(cloud, rows))

    @property
    def law(self) -> EchoLaw:
        """Distribution of the strongest echo from beyond ``reach_m``."""
        return far_law(self.spectrum, self.detection, self.extinction_per_m)

    def echoes(self, cloud: Cloud, part: CloudPart, draw: Draw, found: Amplitudes) -> tuple[Singles, Singles]:
        """Assign the drawn echoes to their returns; stronger ones may come from farther away."""
        rows = np.arange(len(cloud))[part.at] if isinstance(part.at, slice) else part.at
        first, last = np.searchsorted(draw["rows"], [rows[0], rows[-1] + 1])
        place = np.searchsorted(rows, draw["rows"][first:last])
        echo_m, echo = (np.zeros(len(rows), np.float32) for _ in range(2))
        echo_m[place], echo[place] = draw["echo_m"][first:last], draw["echo"][first:last]
        self._add_far(part.range_m, found.chance, found.least, echo_m, echo)
        return echo_m, echo

    def empty_echoes(self, beams: EmptyBeams, draw: Draw) -> tuple[Rows, Singles, Singles]:
        """Return the drawn echoes on empty beams, and those from farther away."""
        echo_m, echo, near = np.zeros(len(beams), np.float32), np.zeros(len(beams), np.float32), draw["empty"]
        echo_m[near], echo[near] = draw["empty_m"], draw["empty_echo"]
        behind = np.full(len(beams), np.inf, np.float32)
        self._add_far(behind, quarters(draw["noise_key"] + 1, len(beams)), np.ones_like(echo), echo_m, echo)
        hit = np.flatnonzero(echo)
        return hit, echo_m[hit], echo[hit]

    def _add_far(self, target_m: Singles, chance: Quarters, least: Singles, echo_m: Singles, echo: Singles) -> None:
        """Draw echoes (n,) from beyond ``reach_m``, and write those that exceed what there is."""
        law, same = self.law, np.ones(1, np.float32)
        if not law.likely:
            return
        may = law.candidates(chance[:, 2], least)
        found, peak, free_m = law.peaks(same, target_m[may], chance[may, 2])
        rows = may[found]
        higher = peak > np.maximum(least[rows], echo[rows])
        rows, peak = rows[higher], peak[higher]
        echo_m[rows], echo[rows] = law.places_m(same, free_m[higher], peak, chance[rows, 3]), peak

    def proof_of_air(self, old: Cloud, seen: SeenEchoes, draw: Draw) -> str | None:
        """Check that the largest particle there is echoes as strongly as each echo, where that is."""
        low = amplitude_of(self.receiver, seen.darkest, seen.range_m)
        beam_m = self.aperture_mm * 1e-3 + seen.range_m * (self.divergence_mrad * 1e-3)
        largest_m = self.spectrum.most_mm * self.spectrum.swell * 1e-3
        filled = np.minimum(largest_m / beam_m, 1.0) ** 2 * self.strength
        most = amplitude_of(self.receiver, filled, seen.range_m)
        if (np.maximum(low, 1.0) > 1.01 * most).any():
            return "an echo is stronger than that of the largest particle there"
        return None

    def _in_sight(self, box: ParticleBox, bundle: Bundle, cloud: Cloud, grid: BeamGrid) -> tuple[Singles, Singles]:
        """Return places (3, k) and diameters (k,) of a box's particles that a beam may meet and detect."""
        far_m, beyond = box.side_m / 2.0, (self.aperture_mm / NEAREST_M + self.divergence_mrad) * 0.5e-3
        low, high = grid.lowest - beyond, grid.highest + beyond
        moved_m = self.drift(bundle, cloud, box.fall_mps).along_m
        place, size = box.at(moved_m, min(low * far_m, 0.0), max(high * far_m, 0.0))
        away_m = np.sqrt(np.einsum("ij,ij->j", place, place))
        visible = (away_m >= NEAREST_M) & (away_m < far_m)
        visible &= (place[2] >= np.float32(low) * away_m) & (place[2] <= np.float32(high) * away_m)
        visible &= self.detection.signal(size, away_m) >= 1.0
        rows = np.flatnonzero(visible)
        return place.take(rows, axis=1), size.take(rows)

    def _hits(
        self, grid: BeamGrid, range_m: Singles, least: Singles, place: Singles, diameter: Singles
    ) -> tuple[Rows, Singles, Singles]:
        """Return returns (m,) whose beams meet a particle with a stronger echo, its range and signal."""
        away_m = np.sqrt(np.einsum("ij,ij->j", place, place))
        signal = self.detection.signal(diameter, away_m) * transmission(away_m * np.float32(self.extinction_per_m))
        bearing, height = np.arctan2(place[1], place[0]), place[2] / away_m
        bright = np.flatnonzero(signal > grid.weakest_near(bearing, height))
        half_m = self.detection.beam_m(away_m) / np.float32(2.0)
        owner, beam = grid.near(bearing[bright], height[bright], (half_m / away_m)[bright])
        which = bright[owner]
        better = (signal[which] > least[beam]) & (away_m[which] < range_m[beam])
        which, beam = which[better], beam[better]
        # Distance of a particle from the beam's axis, by the cross product: a scalar product would lose it in rounding.
        (a, b, c), (x, y, z) = grid.unit[:, beam], place[:, which]
        off2 = np.square(b * z - c * y) + np.square(c * x - a * z) + np.square(a * y - b * x)
        hit = (a * x + b * y + c * z > 0.0) & (off2 <= np.square(half_m[which]))
        which, beam = which[hit], beam[hit]
        return beam.astype(np.int64), away_m[which], signal[which]
