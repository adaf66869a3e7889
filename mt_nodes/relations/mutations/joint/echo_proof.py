# SPDX-License-Identifier: Apache-2.0
"""Proof for echoes of fog, dust and smoke: each beam's report against the chance that the air gives it.

Everything is integrated anew along some beams: the waveform by the midpoint rule over the pulse, the chance that no
sample exceeds an amplitude by the trapezoidal rule over range. The number drawn for a beam has to lie where its
amplitude does in that distribution (probability integral transform), and places have to be spread as their density is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from mt_nodes.base.arrays import Floats, Mask
from mt_nodes.relations.mutations.joint.attenuation import Receiver

_CELLS, _FARTHEST_M, _PULSE_PARTS = 80, 60.0, 24
#: Gains of lasers: log-logistic, of 2 dB.
_GAINS, _GAIN_SHAPE = 28, 0.25
_BLOCK = 64
#: What tables may round: density and amplitude as shares, free range in metres, chance.
_DENSITY, _AMPLITUDE, _FREE_M, _CHANCE = 0.02, 0.025, 0.3, 0.01
#: The place of the mean echo within its own density, from 0 to 1, may be off the middle by this, and by chance.
_MIDDLE, _SIGMAS = 0.06, 6.0
#: Noise beyond this many standard deviations does not lift an echo over the threshold.
_MOST_SIGMAS = 6.0
#: From here on the normal distribution function is 1 but for 3e-7: over all cells of range less than 1 % of _CHANCE.
_CERTAIN = 5.0
_HIGHEST_GAIN = float(np.exp(7.0 * _GAIN_SHAPE))


@dataclass(frozen=True)
class AirOnBeams:
    """What the air does on some beams.

    ``extinction_per_m``, ``backscatter_per_m_sr``: of air of density 1. ``width_m``: length of the pulse. ``density``:
    (n,) relative density of the air near the sensor. ``free_m``: (n,) range up to which an echo is one of the air.
    """

    receiver: Receiver
    extinction_per_m: float
    backscatter_per_m_sr: float
    width_m: float
    density: Floats
    free_m: Floats

    def of(self, which: Mask) -> AirOnBeams:
        """Return the air on some of the beams."""
        return replace(self, density=self.density[which], free_m=self.free_m[which])

    def chance(self, amplitude: Floats, denser: float = 1.0, farther_m: Floats | float = 0.0) -> Floats:
        """Return the probability (n,) that the highest sample of each beam exceeds an amplitude (n,)."""
        (range_m, cell), table = self._cells(), self._waveforms(denser)
        total = np.zeros(len(amplitude))
        for some in _blocks(len(amplitude)):
            high, mean = (amplitude[some] / self.receiver.noise)[:, None], self._mean(table, some) / self.receiver.noise
            before = cell * (range_m <= (self.free_m + farther_m)[some, None]) / (self.width_m / 2.0)
            looked_at, noise_below = before > 0.0, _log_ndtr(high)
            for gain, weight in _gains(_GAINS):
                excess = (noise_below - _log_ndtr(high - gain * mean, looked_at)) * before
                total[some] -= weight * np.expm1(-excess.sum(axis=1))
        return total

    def at(self, range_m: Floats, amplitude: Floats) -> tuple[Floats, Floats]:
        """Return the mean amplitude (n,) at ranges (n,), and the share of peaks of this amplitude that are nearer."""
        (grid_m, cell), table = self._cells(), self._waveforms(1.0)
        level, nearer = np.empty(len(range_m)), np.empty(len(range_m))
        for some in _blocks(len(range_m)):
            mean, alone = self._mean(table, some), (amplitude[some] / self.receiver.noise)[:, None]
            weight, before = np.zeros_like(mean), cell * (grid_m <= self.free_m[some, None])
            looked_at, noise_below = before > 0.0, _log_ndtr(alone)
            for gain, share in _gains(_GAINS // 2):
                z = alone - gain * mean / self.receiver.noise
                hazard = np.exp(-0.5 * z * z - _log_ndtr(z)) - np.exp(-0.5 * alone**2 - noise_below)
                excess = (noise_below - _log_ndtr(z, looked_at)) * before / (self.width_m / 2.0)
                weight += share * np.exp(-excess.sum(axis=1))[:, None] * np.maximum(hazard, 0.0) * before
            some_nearer = (weight * (grid_m <= range_m[some, None])).sum(axis=1)
            nearer[some] = some_nearer / np.maximum(weight.sum(axis=1), 1e-300)
            here = np.clip(np.searchsorted(grid_m + cell / 2.0, range_m[some]), 0, len(grid_m) - 1)
            level[some] = mean[np.arange(len(here)), here]
        return level, nearer

    @staticmethod
    def _cells() -> tuple[Floats, Floats]:
        """Return the middles (k,) and widths (k,) of cells of range: narrow near by."""
        edges = np.geomspace(1.0, _FARTHEST_M, _CELLS + 1)
        return (edges[1:] + edges[:-1]) / 2.0, np.diff(edges)

    def _waveforms(self, denser: float) -> Floats:
        """Return the mean amplitudes (17, k) in cells of range, for densities from the lowest to the highest."""
        from scipy import special  # for those who meet bad air

        range_m, _ = self._cells()
        offset = self.width_m * ((np.arange(_PULSE_PARTS) + 0.5) / _PULSE_PARTS - 0.5)
        pulse = np.square(np.cos(np.pi * offset / self.width_m)) * (self.width_m / _PULSE_PARTS)
        there = range_m[:, None] + offset
        shape = np.clip((there - 0.9) / 0.1, 0.0, 1.0) / np.square(np.maximum(there, self.receiver.focus_m or 0.05))
        receiver = self.receiver
        of_one = np.pi * receiver.max_range_m**2 / receiver.sensitivity * self.backscatter_per_m_sr
        of_one *= 1.0 + special.ndtri(receiver.detection_probability) / receiver.threshold_to_noise
        return np.stack(
            [
                of_one * k * ((np.exp(-2.0 * self.extinction_per_m * k * there) * shape) @ pulse)
                for k in (self._knots() * denser).tolist()
            ]
        )

    def _knots(self) -> Floats:
        return np.linspace(self.density.min(), self.density.max(), 17)

    def _mean(self, table: Floats, some: slice) -> Floats:
        """Return the waveforms (n, k) of some beams."""
        knots = self._knots()
        even = knots[-1] <= knots[0]
        at = np.zeros(len(self.density[some])) if even else np.interp(self.density[some], knots, np.arange(17.0))
        low = np.minimum(at.astype(int), 15)
        share = (at - low)[:, None]
        return np.asarray(table[low] * (1.0 - share) + table[low + 1] * share)


def _log_ndtr(z: Floats, which: Mask | bool = True) -> Floats:
    """Return the logarithm of the normal distribution function at some z, 0 at others."""
    from scipy import special  # for those who meet bad air

    found, some = np.zeros_like(z), which & (z < _CERTAIN)
    found[some] = special.log_ndtr(z[some])
    return found


@lru_cache(maxsize=2)
def _gains(count: int) -> list[tuple[float, float]]:
    """Return gains of lasers and how many have them: steps of the logistic distribution function."""
    edges = np.linspace(-7.0, 7.0, count + 1)
    share = np.diff(1.0 / (1.0 + np.exp(-edges)))
    gains = np.exp(_GAIN_SHAPE * (edges[1:] + edges[:-1]) / 2.0).tolist()
    return list(zip(gains, (share / share.sum()).tolist(), strict=True))


def _blocks(count: int) -> Iterator[slice]:
    for start in range(0, count, _BLOCK):
        yield slice(start, min(start + _BLOCK, count))


def proof_of_reports(air: AirOnBeams, number: Floats, amplitude: tuple[Floats, Floats], echoed: Mask) -> str | None:
    """Check which beams report the air.

    Args:
        number: (n,) drawn for each beam: share of such beams with a higher peak.
        amplitude: lowest and highest (n,) that a peak has by what is reported; of beams that do not report the air,
            the highest it may have had, twice.
        echoed: (n,) whether they do.
    """
    low, high = (np.maximum(a, 1.0) for a in amplitude)
    most = air.chance(low * (1.0 - _AMPLITUDE), 1.0 + _DENSITY) + _CHANCE
    least = air.chance(high * (1.0 + _AMPLITUDE), 1.0 - _DENSITY, -_FREE_M - 0.03 * air.free_m) - _CHANCE
    too_rare, too_common = echoed & (number > most), number < least
    if too_rare.any():
        return f"{int(too_rare.sum())} of {len(number)} beams looked at report air that is too thin for it"
    if too_common.any():
        return f"{int(too_common.sum())} of {len(number)} beams looked at do not report air that is thick enough"
    return None


def proof_of_echo_places(air: AirOnBeams, range_m: Floats, amplitude: tuple[Floats, Floats]) -> str | None:
    """Check that the air is bright enough where echoes (n,) are, and that they are spread as peaks of it are.

    ``amplitude``: lowest and highest (n,) of what is reported: whole numbers are coarse for echoes of the air.
    """
    if not len(range_m):
        return None
    if not (range_m <= air.free_m + _FREE_M).all():
        return "an echo of the air is not before what it hides"
    (mean, nearer), (_, higher) = (air.at(range_m, np.maximum(bound, 1.0)) for bound in amplitude)
    faint = _HIGHEST_GAIN * mean + _MOST_SIGMAS * air.receiver.noise < 1.0
    if faint.any():
        return f"{int(faint.sum())} of {len(mean)} echoes looked at are at ranges where the air is too faint"
    between = sorted((float(nearer.mean()), float(higher.mean())))
    off = max(between[0] - 0.5, 0.5 - between[1])
    allowed = _MIDDLE + _SIGMAS / np.sqrt(12.0 * len(nearer))
    return None if off <= allowed else f"echoes of the air are {off:.2f} off the middle of where they come from"
