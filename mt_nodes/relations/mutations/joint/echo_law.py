# SPDX-License-Identifier: Apache-2.0
"""Detection of the air's own echo: the distribution of its strongest peak, and of where that is.

The waveform of the air plus the receiver's noise is sampled; a peak is detected where a sample exceeds the threshold,
and a sensor reports the highest. Noise is independent between samples one pulse apart, ℓ = c τ / 2, as behind a filter
matched to the pulse. So the highest sample before a target at R exceeds m with the probability

    1 − exp(−∫ λ(m, r) dr),   λ(m, r) = (ln Φ(m/σ) − ln Φ((m − S(r))/σ)) / ℓ,

Φ the normal distribution, S(r) the mean waveform; the first term takes false alarms out: without air there is no echo.
A sample of height m is at r with a density that goes with −∂λ/∂m. From laser to laser, S is g times the mean: gain and
focus differ (the lasers of an HDL-64E are focused at 10.5 to 24 m in a published calibration, velodyne_default_calib of
MRPT, which alone makes a factor of 5). g is log-logistic with a standard deviation of 2 dB (assumed).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Rows, Singles
from mt_nodes.relations.mutations.joint.attenuation import Receiver
from mt_nodes.relations.mutations.joint.chance import QUARTER_VALUES, Quarters, unit
from mt_nodes.relations.mutations.joint.soft_return import FARTHEST_M, OVERLAP_M, STEP_M, soft_return

#: Densities of the air, amplitudes, and quantiles of the tables.
_DENSITIES, _AMPLITUDES, _PLACED, _QUANTILES = 7, 60, 20, 48
#: Scale of the log-logistic gains: a standard deviation of 0.25 · 1.81 nepers of amplitude, 2 dB.
GAIN_SHAPE = 0.25
_GAINS, _SMEARS = 13, 6
#: The farthest peaks are not told apart: this share of them.
_LAST_SHARE = 1e-5
#: Range (K,) of the tables' knots: dense near by.
KNOTS_M = np.concatenate([np.arange(1.0, 6.0, 0.1), np.arange(6.0, 16.0, 0.25), np.arange(16.0, FARTHEST_M + 0.5)])
_STEPS = round(FARTHEST_M / STEP_M)


@dataclass(frozen=True, eq=False)
class EchoLaw:
    """Tables of the air's highest peak, by density of the air (D), range free before the target (K) and chance.

    Attributes:
        densities: (D,) relative to the mean, ascending, evenly spaced.
        width_m: length of the pulse: an echo nearer to the target than half of it merges with that.
        detected: (D, K) probability that a peak exceeds the threshold.
        amplitude: (D, K, Q + 1) peak that is exceeded with sin²(π q / 2 Q) of that probability.
        share: (D, M, K) cumulative density of the place of a peak, for some amplitudes; place: (D, M, Q + 1) quantiles,
            of 1 − (1 − q / Q)².
        highest: largest amplitude of the tables.
    """

    densities: Floats
    width_m: float
    detected: Singles
    amplitude: Singles
    share: Singles
    place: Singles
    highest: float

    @property
    def likely(self) -> bool:
        """Whether any beam may get an echo at all: its least chance is half of one in 65,536."""
        return bool(self.detected.max() > 0.5 / QUARTER_VALUES)

    def candidates(self, chance: Quarters, least: Singles) -> Rows:
        """Return the beams (k,) of (n,) on which a peak may exceed an amplitude (n,) or (1,), by their chance (n,)."""
        limit = int(np.ceil(float(self.detected.max()) * QUARTER_VALUES))
        weak = np.broadcast_to(least < np.float32(self.highest), chance.shape)
        return np.flatnonzero(weak if limit >= QUARTER_VALUES else weak & (chance < np.uint16(limit)))

    def peaks(self, density: Singles, target_m: Singles, chance: Quarters) -> tuple[Rows, Singles, Singles]:
        """Return the beams (k,) of (n,) with a detected echo of the air, its amplitude and the free range there.

        ``density``: (n,) or (1,) of the air, relative to its mean. ``target_m``: (n,) range of what is behind, infinite
        for nothing. ``chance``: (n,) quarters of random words, the smaller the stronger the echo.
        """
        knot, exceedance = self._knots(target_m), unit(chance)
        step, share = (np.broadcast_to(a, knot.shape) for a in self._density(density))
        low, high = self.detected[step, knot], self.detected[step + 1, knot]
        low = low + share * (high - low)
        found = np.flatnonzero(exceedance < low)
        at = np.arcsin(np.sqrt(exceedance[found] / low[found])) * np.float32(_QUANTILES * 2.0 / np.pi)
        lower = np.minimum(at.astype(np.int32), _QUANTILES - 1)
        at -= lower
        step, knot, share = step[found], knot[found], share[found]
        peak = np.zeros(len(found), np.float32)
        for more, weight in ((0, np.float32(1.0) - share), (1, share)):
            first, second = (self.amplitude[step + more, knot, lower + next_] for next_ in (0, 1))
            peak += weight * (first + at * (second - first))
        return found, peak, KNOTS_M[knot].astype(np.float32)

    def places_m(self, density: Singles, free_m: Singles, peak: Singles, chance: Quarters) -> Singles:
        """Return the ranges (k,) of peaks (k,), each before the range ``free_m`` (k,)."""
        step = np.rint(np.add(*self._density(density))).astype(np.int32)
        power = np.sqrt(np.log(np.maximum(peak, 1.0)) * np.float32(1.0 / np.log(self.highest)))
        # Rounded up: not to where only weaker ones come from.
        level = np.minimum(np.ceil(power * np.float32(_PLACED - 1)).astype(np.int32), _PLACED - 1)
        knot = np.searchsorted(KNOTS_M, free_m).astype(np.int32)
        below = np.float32(1.0) - unit(chance) * self.share[step, level, knot]
        at = (np.float32(1.0) - np.sqrt(below)) * np.float32(_QUANTILES)
        lower = np.minimum(at.astype(np.int32), _QUANTILES - 1)
        first, second = self.place[step, level, lower], self.place[step, level, lower + 1]
        return np.asarray(np.clip(first + (at - lower) * (second - first), OVERLAP_M[1], free_m))

    def _density(self, density: Singles) -> tuple[npt.NDArray[np.int32], Singles]:
        low, high = self.densities[0], self.densities[-1]
        last = len(self.densities) - 1
        at = np.clip((density - np.float32(low)) * np.float32(last / (high - low)), 0.0, float(last))
        step = np.minimum(at.astype(np.int32), last - 1)
        return step, np.asarray(at - step, np.float32)

    def _knots(self, target_m: Singles) -> npt.NDArray[np.int32]:
        free = (target_m - np.float32(self.width_m / 2.0)) * np.float32(1.0 / STEP_M)
        return np.asarray(_knot_of_step().take(np.clip(free, 0.0, _STEPS).astype(np.int32)))


@lru_cache(maxsize=1)
def _knot_of_step() -> npt.NDArray[np.int32]:
    """Index of the last knot up to each step of range; 0, before which there is no echo, for what is nearer."""
    steps_m = STEP_M * np.arange(_STEPS + 1)
    return np.maximum(np.searchsorted(KNOTS_M, steps_m + 1e-6, side="right") - 1, 0).astype(np.int32)


@lru_cache(maxsize=16)
def echo_law(
    extinction_per_m: float, backscatter: float, pulse_ns: float, receiver: Receiver, contrast: float
) -> EchoLaw:
    """Return the law for air of an extinction (1/m) and backscatter (1/(m sr)) times 1 ± ``contrast``."""
    densities = 1.0 + max(contrast, 1e-3) * np.linspace(-1.0, 1.0, _DENSITIES)
    soft = [soft_return(extinction_per_m * d, backscatter * d, pulse_ns, receiver) for d in densities.tolist()]
    mean = np.stack([np.interp(KNOTS_M, STEP_M * np.arange(len(s.waveform)), s.waveform) for s in soft])
    width_m, sigma = soft[0].width_m, receiver.noise
    gains, weights = gains_of(_GAINS)
    highest = max(1.0, float(mean.max() * gains[-1])) + 5.0 * sigma
    (heights, placed), apart_m, step = amplitude_knots(highest), width_m / 2.0, np.log(highest) / (_AMPLITUDES - 1)
    # Amplitudes below 1, too: those that a somewhat larger gain lifts above it.
    below = int(np.ceil(0.5 * np.log(gains[1] / gains[0]) / step)) + 1
    lower = np.concatenate([np.exp(-step * np.arange(below, 0, -1)), heights])
    exceeded, place = np.zeros((len(mean), len(heights), len(KNOTS_M))), 0.0
    for gain, weight in zip(gains.tolist(), weights.tolist(), strict=True):
        all_of_it = -np.expm1(-_over_range(_excess(lower, gain * mean, sigma) / apart_m))
        exceeded += weight * _smeared(all_of_it, below, float(np.log(gains[1] / gains[0])) / step)
        none_higher = np.exp(-_over_range(_excess(placed, gain * mean, sigma) / apart_m)[:, :, -1:])
        place = place + weight * none_higher * _density_of_place(placed, gain * mean, sigma)
    return law_of(densities, width_m, exceeded, np.asarray(place), highest)


def _smeared(exceeded: Floats, below: int, width: float) -> Floats:
    """Return probabilities (D, H, K) averaged over gains from one to the next, ``width`` amplitude knots apart.

    An echo that is stronger by some percent exceeds what the weaker one does, but stronger by as much.
    """
    total, last = np.zeros_like(exceeded[:, below:]), exceeded.shape[1] - 1
    for part in range(_SMEARS):
        shift = ((part + 0.5) / _SMEARS - 0.5) * width
        at = np.clip(np.arange(below, last + 1) - shift, 0.0, last)
        low = np.minimum(at.astype(int), last - 1)
        share = (at - low)[:, None]
        total += exceeded[:, low] * (1.0 - share) + exceeded[:, low + 1] * share
    return total / _SMEARS


def gains_of(count: int) -> tuple[Floats, Floats]:
    """Return gains (n,), ascending, and their weights (n,): evenly spaced in logarithm, cut at one in a thousand."""
    nepers = np.linspace(-7.0, 7.0, count)
    weight = np.exp(-nepers) / np.square(1.0 + np.exp(-nepers))
    return np.exp(GAIN_SHAPE * nepers), weight / weight.sum()


def _over_range(rate: Floats) -> Floats:
    """Integrate rates (…, K) over range, from the nearest knot on."""
    from scipy import integrate  # for those who meet bad air

    return np.asarray(integrate.cumulative_trapezoid(rate, KNOTS_M, axis=-1, initial=0.0))


def amplitude_knots(highest: float) -> tuple[Floats, Floats]:
    """Return the amplitudes, from 1 to the highest, of the tables of detection (H,) and of places (M,)."""
    dense_near_1 = np.exp(np.log(highest) * np.square(np.linspace(0.0, 1.0, _PLACED)))
    return np.geomspace(1.0, highest, _AMPLITUDES), dense_near_1


def law_of(densities: Floats, width_m: float, exceeded: Floats, place: Floats, highest: float) -> EchoLaw:
    """Return the law of peaks with known probabilities.

    Args:
        densities: (D,) of the air.
        width_m: see :class:`EchoLaw`.
        exceeded: (D, H, K) probability of a peak above each amplitude up to each knot of range.
        place: (D, M, K) density of the places of peaks of an amplitude there, but for a factor.
        highest: amplitude, which the tables end at.
    """
    detected, share = np.ascontiguousarray(exceeded[:, 0]), _over_range(place)
    share /= np.maximum(share[:, :, -1:], 1e-300)
    quantiles = _quantiles(exceeded, detected, amplitude_knots(highest)[0])
    return EchoLaw(
        densities, width_m, detected.astype(np.float32), quantiles, share.astype(np.float32), _places(share), highest
    )


def of_rates(densities: Floats, rates: Floats, place: Floats, highest: float) -> EchoLaw:
    """Return the law of peaks that come by chance at rates (D, H, K) per metre, points without a length."""
    return law_of(densities, 0.0, -np.expm1(-_over_range(rates)), place, highest)


def _excess(heights: Floats, mean: Floats, sigma: float) -> Floats:
    """Return ln Φ(m/σ) − ln Φ((m − S)/σ), shape (D, H, K)."""
    from scipy import special  # for those who meet bad air

    alone = special.log_ndtr(heights / sigma)[None, :, None]
    return np.asarray(alone - special.log_ndtr((heights[None, :, None] - mean[:, None, :]) / sigma))


def _density_of_place(heights: Floats, mean: Floats, sigma: float) -> Floats:
    """Return φ/Φ at (m − S)/σ less that at m/σ, shape (D, M, K): −∂λ/∂m but for a factor."""
    from scipy import special  # for those who meet bad air

    z = (heights[None, :, None] - mean[:, None, :]) / sigma
    alone = (heights / sigma)[None, :, None]
    hazard, of_noise = (np.exp(-0.5 * x * x - special.log_ndtr(x)) for x in (z, alone))
    return np.asarray(np.maximum(hazard - of_noise, 0.0))


def _quantiles(exceeded: Floats, detected: Floats, heights: Floats) -> Singles:
    wanted = np.square(np.sin(0.5 * np.pi * np.arange(_QUANTILES + 1) / _QUANTILES))
    table = np.ones((*detected.shape, _QUANTILES + 1), np.float32)
    for i, k in zip(*np.nonzero(detected > 1e-7), strict=True):
        share = exceeded[i, :, k] / detected[i, k]
        table[i, k] = np.interp(wanted, share[::-1], heights[::-1])
    return table


def _places(share: Floats) -> Singles:
    wanted = np.minimum(1.0 - np.square(1.0 - np.arange(_QUANTILES + 1) / _QUANTILES), 1.0 - _LAST_SHARE)
    table = np.full((*share.shape[:2], _QUANTILES + 1), KNOTS_M[0], np.float32)
    for i, j in np.ndindex(share.shape[:2]):
        rising = np.append(0.0, np.flatnonzero(np.diff(share[i, j]) > 0.0) + 1).astype(np.int64)
        table[i, j] = np.interp(wanted, share[i, j, rising], KNOTS_M[rising])
    return table
