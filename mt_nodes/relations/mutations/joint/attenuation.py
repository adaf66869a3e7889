# SPDX-License-Identifier: Apache-2.0
"""LiDAR reception in bad air: amplitudes over the detection threshold, noise, and attenuation.

The received power of a return is proportional to ρ / R² (LiDAR equation for a target that fills the beam), and a
photodiode's current to the power. A target of 90 % is just detected at the sensor's full range, which defines the
threshold (V. Kilic et al., Lidar Light Scattering Augmentation, 2021, call it the noise floor); through air of
extinction α light travels out and back: e^(−2αR) (Bouguer, Lambert and Beer).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Singles
from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.messages import Cloud
from mt_nodes.relations.mutations.joint.chance import Quarters, gaussian, unit
from mt_nodes.relations.mutations.lidar.rays import At, returns

Powers = TypeVar("Powers", bound=npt.NDArray[Any])

REFERENCE_REFLECTIVITY = 0.9
#: Detection threshold over the noise's standard deviation: assumed, see :class:`Receiver`.
THRESHOLD_TO_NOISE = 5.0
#: Scale of the log-logistic error of amplitudes told by intensities: e^(±½ · 1.81) is one standard deviation, 3.9 dB.
AMPLITUDE_SHAPE = 0.5
#: Reflectivity at 905 nm that stands for intensities which the scale rounds to (nearly) nothing, as KITTI's to 0:
#: assumed. They say "dark", not "at the threshold".
DARKEST = 0.05
#: Ranges outside of these limits belong to no sensor: single precision and the air's own limits end there.
NEAREST_M, FARTHEST_M = 0.01, 1e4


@dataclass(frozen=True)
class Receiver:
    """A LiDAR's receiver: amplitudes over its detection threshold, which is 1, in Gaussian noise.

    An echo of mean amplitude S is detected where S + n exceeds the threshold, so with the probability
    Q((1 − S) · ``threshold_to_noise``), Q the tail of the normal distribution (S. O. Rice, "Mathematical Analysis of
    Random Noise", Bell System Technical Journal 23 and 24, 1944 and 1945; threshold detection as in every handbook of
    laser ranging). A target of the reflectivity ``sensitivity`` at ``max_range_m`` is detected with
    ``detection_probability``.

    That a range exists below which echoes get no stronger is geometry: at close range the spot is out of focus, and
    part of the collected light misses the detector, which can turn the law of 1 / R² into a nearly constant signal
    ("Geometrical compression of lidar return signals"). The range depends on the sensor's optics, which no data sheet
    gives: every value is an assumption. Results have the precision of the arguments.

    Attributes:
        max_range_m: a target of the reflectivity ``sensitivity`` is just detected there.
        focus_m: nearer echoes are out of focus; 0 if all echoes are farther away.
        threshold_to_noise: threshold over the standard deviation σ of the noise. With Rice's rate of false alarms,
            e^(−t²/2) / (2 √3 τ), 5 gives one in some 9,000 firings of 1 µs at a pulse of 10 ns; the data sheets of the
            OS1 and of Livox's HAP tell one in 10,000.
    """

    max_range_m: float
    focus_m: float = 0.0
    sensitivity: float = REFERENCE_REFLECTIVITY
    threshold_to_noise: float = THRESHOLD_TO_NOISE
    detection_probability: float = 0.5

    @property
    def noise(self) -> float:
        """Standard deviation σ of an amplitude, in thresholds."""
        return 1.0 / self.threshold_to_noise

    @property
    def nominal(self) -> float:
        """Mean amplitude of the target that ``max_range_m`` is told for: 1 if it is detected half of the time."""
        from scipy import special  # for those who meet bad air

        return 1.0 + float(special.ndtri(self.detection_probability)) * self.noise

    def signal(self, reflectivity: Powers, range_m: Powers) -> Powers:
        """Return the mean amplitude (n,) of targets in clear air, in thresholds."""
        ratio: Any = self.max_range_m / np.maximum(range_m, self.focus_m)
        power: Powers = reflectivity * ratio * ratio * (self.nominal / self.sensitivity)
        return power

    def detected(self, reflectivity: Singles, range_m: Singles, exceedance: Singles) -> Singles:
        """Return amplitudes (n,) of returns that were reported, all of 1 or more.

        An intensity tells the amplitude only roughly: it is S₀ times an error with a log-logistic distribution of
        3.9 dB (:data:`AMPLITUDE_SHAPE`, assumed; calibration of beams, incidence, rounding). That a return was reported
        says that its amplitude exceeds the threshold: the distribution is cut there, and what is left of it, a
        posterior, is drawn from: a = √((1 + (1 − u) S₀²) / u), u uniform in 0 to 1. Of returns far below the threshold
        by their intensity, a share of 1/a² exceeds a; of bright ones half exceed S₀.
        ``reflectivity``: (n,), as the intensity says. ``range_m``: (n,). ``exceedance``: (n,) numbers u, uniform in 0
        to 1: the share of such returns with a larger amplitude.
        """
        with np.errstate(over="ignore"):
            squares = np.square(self.signal(np.maximum(reflectivity, np.float32(DARKEST)), range_m))
        squares *= np.float32(1.0) - exceedance
        squares += np.float32(1.0)
        squares /= exceedance
        return np.asarray(np.sqrt(squares, out=squares))

    def weakened(
        self, reflectivity: Singles, range_m: Singles, passing: Singles, chance: Quarters
    ) -> tuple[Singles, Singles]:
        """Return the amplitudes (n,) of reported returns, and what they are when only a share of their light is left.

        The noise in an amplitude, normal, stays as it was: the same firing, with its target weakened.
        ``reflectivity``, ``range_m``: see :meth:`detected`. ``passing``: (n,) share of the light that is left.
        ``chance``: (n, 2 or more) quarters of random words: amplitude and noise.
        """
        clear = self.detected(reflectivity, range_m, unit(chance[:, 0]))
        noise = gaussian(chance[:, 1])
        noise *= np.float32(self.noise)
        return clear, noise + passing * (clear - noise)

    def reflectivity(self, signal: Powers, range_m: Powers) -> Powers:
        """Return the reflectivity (n,) of a target with this signal at this range in clear air."""
        found: Powers = signal / self.signal(np.ones_like(range_m), range_m)
        return found

    def threshold_reflectivity(self, range_m: Powers) -> Powers:
        """Return the reflectivity (n,) of the darkest detected target at ranges (n,)."""
        ratio: Any = np.maximum(range_m, self.focus_m) / self.max_range_m
        found: Powers = self.sensitivity / self.nominal * np.square(ratio)
        return found


def transmission(depth: npt.ArrayLike) -> Singles:
    """Return the share (n,) of light left after the way out and back through optical depths (n,)."""
    return np.asarray(np.exp(np.float32(-2.0) * np.asarray(depth, np.float32)))


def refuse_unreadable_intensities(cloud: Cloud, at: At) -> None:
    """Refuse intensities that cannot be read as reflectivities; a cloud without intensities is not refused.

    Raises NotApplicable: one of them is not a finite number, or their convention is in doubt.
    """
    for name in cloud.echo_names:
        kind = cloud.points.dtype[name].kind
        if kind == "f" and not np.isfinite(cloud.points[name][at]).all():
            raise NotApplicable(f"an intensity of {cloud.topic} is not a finite number")
    cloud.echoes.refuse_doubt()


def reflectivities(cloud: Cloud, at: At, range_m: Singles, unknown: float) -> Singles:
    """Return the reflectivity (n,) of returns at ranges (n,) in metres, at least :data:`DARKEST`.

    A cloud without intensities has ``unknown`` everywhere.
    """
    if not cloud.echoes.fields:
        return np.full(len(range_m), unknown, np.float32)
    values = cloud.echoes.reflectivity(cloud.points, at, range_m).astype(np.float32)
    return np.asarray(np.maximum(values, np.float32(DARKEST), out=values))


def single_ranges_m(cloud: Cloud, at: At) -> Singles:
    """Return the ranges (n,) of points in single precision."""
    squares = np.zeros(1)
    with np.errstate(over="ignore"):
        for name in "xyz":
            column = cloud.points[name][at].astype(np.float64)
            squares = squares + np.square(column, out=column)
        return np.sqrt(squares, out=squares).astype(np.float32)


def refuse_odd_ranges(cloud: Cloud, at: At) -> None:
    """Raise NotApplicable for a return at a range that no sensor measures."""
    range_m = single_ranges_m(cloud, at)
    near, far = float(range_m.min()), float(range_m.max())
    if not NEAREST_M <= near <= far <= FARTHEST_M:
        raise NotApplicable(
            f"returns of {cloud.topic} lie from {near:g} to {far:g} m, expected {NEAREST_M} to 10,000 m"
        )


def all_returns(cloud: Cloud) -> At:
    """Return the rows of a cloud's returns, a slice if every point is one."""
    rows = returns(cloud)
    return slice(None) if len(rows) == len(cloud) else rows


def noise_sigma_m(clear: Singles, weakened: Singles, at_threshold_m: float) -> Singles:
    """Return the standard deviation (n,) of the range noise that attenuation adds, of amplitudes of 1 and more.

    A range is as uncertain as ``at_threshold_m`` / √a at an amplitude a (V. Kilic et al., LISA, 2021).
    """
    gained = np.float32(1.0) / weakened - np.float32(1.0) / clear
    return np.asarray(np.float32(at_threshold_m) * np.sqrt(np.maximum(gained, 0.0, out=gained), out=gained))
