# SPDX-License-Identifier: Apache-2.0
"""Persistent particles in the air: seeded once, moved together, detected where a beam meets one.

Only particles that can ever be detected are stored: those of a diameter are detected up to some range, and fill a
periodic box of twice that side around the sensor. A box moves as one, so that places depend on time alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Rows, Singles
from mt_nodes.relations.mutations.joint.attenuation import Receiver
from mt_nodes.relations.mutations.joint.echo_law import KNOTS_M, EchoLaw, amplitude_knots, of_rates

#: Places are integers that wrap around at the box: 2**16 per side, a resolution below half a millimetre.
_TURN = 1 << 16
#: The sensor reports nothing nearer.
NEAREST_M = 1.0


@dataclass(frozen=True)
class Spectrum:
    """Particles by diameter: ``intercept_per_m3_mm`` e^(−``slope_per_mm`` D) in m⁻³ mm⁻¹, D in mm, up to ``most_mm``.

    ``swell`` is a particle's diameter in the air over the D of the law (melted diameters for snow).
    """

    intercept_per_m3_mm: float
    slope_per_mm: float
    most_mm: float
    swell: float = 1.0

    def per_m3(self, low_mm: npt.ArrayLike, high_mm: npt.ArrayLike) -> Floats:
        """Return how many particles of D from low to high there are in a cubic metre."""
        low, high = (np.exp(-self.slope_per_mm * np.asarray(d, np.float64)) for d in (low_mm, high_mm))
        return np.asarray(self.intercept_per_m3_mm / self.slope_per_mm * (low - high))

    def diameters_mm(self, unit: Floats, low_mm: float, high_mm: float) -> Floats:
        """Return D (n,) between the limits from numbers (n,) uniform in 0 to 1: the inverse of the distribution."""
        low, high = np.exp(-self.slope_per_mm * low_mm), np.exp(-self.slope_per_mm * high_mm)
        return np.asarray(-np.log(low - unit * (low - high)) / self.slope_per_mm)


@dataclass(frozen=True)
class Detection:
    """Detection of one particle by a beam: the filled share of its cross-section is a target of ``strength``.

    That is ρ min((D/d)², 1) / R² with the beam's diameter d = ``aperture_m`` + ``divergence_rad`` R (V. Kilic et al.,
    LISA, 2021, with a beam that does not begin as a point).
    """

    receiver: Receiver
    strength: float
    aperture_m: float
    divergence_rad: float
    reach_m: float

    def beam_m(self, range_m: Singles) -> Singles:
        """Return the beam's diameter (n,)."""
        return np.asarray(self.aperture_m + range_m * np.float32(self.divergence_rad), dtype=np.float32)

    def signal(self, diameter_m: Singles, range_m: Singles) -> Singles:
        """Return the power (n,) over the noise floor of particles in clear air."""
        filled = np.minimum(np.square(diameter_m / self.beam_m(range_m)), np.float32(1.0))
        return self.receiver.signal(filled * np.float32(self.strength), range_m)

    def detection_range_m(self, diameter_m: npt.ArrayLike) -> Floats:
        """Return the range (n,) up to which particles are detected, to 1 cm; 0 if they never are."""
        range_m = np.arange(NEAREST_M, self.reach_m, 0.01).astype(np.float32)
        filled = self.receiver.signal(np.full_like(range_m, self.strength), range_m)
        faintest = (self.beam_m(range_m) / np.sqrt(filled)).astype(np.float64)
        index = np.searchsorted(np.maximum.accumulate(faintest), np.asarray(diameter_m, np.float64), side="right")
        return np.where(index > 0, NEAREST_M + 0.01 * index, 0.0)


@dataclass(frozen=True, eq=False)
class ParticleBox:
    """Particles of similar size in a periodic cube.

    ``places``: (3, n) initial places, in 2**16ths of ``side_m``; ascending in z. ``diameter_m``: (n,) in the air.
    """

    side_m: float
    fall_mps: float
    places: npt.NDArray[np.uint16]
    diameter_m: Singles

    def at(self, moved_m: Floats, low_z_m: float, high_z_m: float) -> tuple[Singles, Singles]:
        """Return places (3, k) and diameters (k,) of particles between two heights, all moved by (3,) metres."""
        grain_m = self.side_m / _TURN
        offset = np.rint(moved_m / grain_m) % _TURN
        half = _TURN // 2
        low, high = (int(np.clip(np.floor(z / grain_m), -half, half - 1)) for z in (low_z_m, high_z_m))
        places, sizes = [], []
        for part in self._slab(int(low - offset[2]) % _TURN, high - low):
            places.append((self.places[:, part] + offset.astype(np.uint16)[:, None]).view(np.int16))
            sizes.append(self.diameter_m[part])
        return np.concatenate(places, axis=1) * np.float32(grain_m), np.concatenate(sizes)

    def _slab(self, first: int, height: int) -> Iterator[slice]:
        z, last = self.places[2], first + height
        start, stop = (int(k) for k in np.searchsorted(z, [first, min(last, _TURN - 1) + 1]))
        yield slice(start, stop)
        if last >= _TURN:
            yield slice(0, int(np.searchsorted(z, last - _TURN + 1)))


def boxes(
    rng: np.random.Generator, spectrum: Spectrum, detection: Detection, fall_mps: Floats, classes: int
) -> tuple[ParticleBox, ...]:
    """Seed the particles that a sensor can ever detect, in ``classes`` size classes with fall speeds ``fall_mps``.

    With the same generator, a heavier shower of the same law has the same particles and more.
    """
    from scipy import special  # for those who meet bad air

    result = []
    edges = class_edges_mm(spectrum, detection, classes)
    for low_mm, high_mm, speed_mps in zip(edges[:-1], edges[1:], fall_mps, strict=True):
        own = np.random.Generator(np.random.PCG64(rng.integers(2**63)))
        side_m = 2.0 * float(detection.detection_range_m(high_mm * spectrum.swell * 1e-3))
        count = int(np.ceil(special.pdtrik(own.random(), spectrum.per_m3(low_mm, high_mm) * side_m**3)))
        if not side_m or count <= 0:
            continue
        unit, places = _particles(own, count)
        order = np.argsort(places[2], kind="stable")
        diameter = spectrum.diameters_mm(unit, low_mm, high_mm)[order] * (spectrum.swell * 1e-3)
        result.append(ParticleBox(side_m, float(speed_mps), places[:, order], diameter.astype(np.float32)))
    return tuple(result)


@lru_cache(maxsize=16)
def far_law(spectrum: Spectrum, detection: Detection, extinction_per_m: float) -> EchoLaw:
    """Return the law of the strongest echo of a particle beyond ``reach_m``, where they are not kept one by one.

    A beam of diameter d meets π/4 d² n particles per metre of those that are large enough to echo above an amplitude,
    n in a cubic metre (Poisson's law): the same as one by one, except that two beams do not meet one particle.
    """
    range_m = KNOTS_M
    beam_m, light = (
        detection.beam_m(range_m.astype(np.float32)).astype(np.float64),
        np.exp(-2.0 * extinction_per_m * range_m),
    )
    whole = detection.receiver.signal(np.full_like(range_m, detection.strength), range_m) * light
    highest = max(1.01, float(whole[range_m >= detection.reach_m].max(initial=0.0)))
    heights, placed = amplitude_knots(highest)
    rates = [
        _rate(spectrum, m[:, None], whole, beam_m) * (range_m >= detection.reach_m)
        for m in (heights, placed, placed * 1.01)
    ]
    place = np.maximum(rates[1] - rates[2], 0.0)
    return of_rates(np.array([1.0, 2.0]), np.stack([rates[0]] * 2), np.stack([place] * 2), highest)


def _rate(spectrum: Spectrum, amplitude: Floats, whole: Floats, beam_m: Floats) -> Floats:
    """Return how many particles that echo above an amplitude (M, 1) beams (K,) meet per metre: (M, K)."""
    least_mm = beam_m * np.sqrt(amplitude / whole) / spectrum.swell * 1e3
    # A beam that is filled echoes no more strongly.
    least_mm = np.where(amplitude > whole, spectrum.most_mm, np.minimum(least_mm, spectrum.most_mm))
    return np.asarray(np.pi / 4.0 * np.square(beam_m) * spectrum.per_m3(least_mm, spectrum.most_mm))


def class_edges_mm(spectrum: Spectrum, detection: Detection, classes: int) -> Floats:
    """Return the diameters D (classes + 1,) at class limits, from the smallest detectable one; all equal for none."""
    trial_mm = np.geomspace(0.01, spectrum.most_mm, 2000)
    detected = detection.detection_range_m(trial_mm * spectrum.swell * 1e-3) > 0.0
    least_mm = float(trial_mm[detected].min()) if detected.any() else spectrum.most_mm
    return np.geomspace(least_mm, spectrum.most_mm, classes + 1)


def _particles(own: np.random.Generator, count: int) -> tuple[Floats, npt.NDArray[np.uint16]]:
    """Return numbers (n,) uniform in 0 to 1 and places (3, n); fewer of them are the first of more."""
    raw = own.integers(0, 2**63, (count, 2), dtype=np.int64)
    places = np.stack([(raw[:, 0] >> shift).astype(np.uint16) for shift in (0, 16, 32)])
    return raw[:, 1] / 2.0**63, places


@lru_cache(maxsize=4)
def seeded(key: int, spectrum: Spectrum, detection: Detection, falls_mps: tuple[float, ...]) -> tuple[ParticleBox, ...]:
    """Return the particles of a key, once for all clouds of a segment."""
    return boxes(np.random.default_rng(key), spectrum, detection, np.array(falls_mps), len(falls_mps))


def strongest(beam: Rows, range_m: Singles, signal: Singles) -> tuple[Rows, Singles, Singles]:
    """Return beams (m,), unique and ascending, with range and signal of the strongest echo of each."""
    order = np.lexsort((-signal, beam))
    first = order[np.flatnonzero(np.diff(beam[order], prepend=-1))]
    return beam[first], range_m[first], signal[first]
