# SPDX-License-Identifier: Apache-2.0
"""LiDAR reception in bad air: signals over the noise floor, and their attenuation.

The received power of a return is proportional to ρ / R² (LiDAR equation for a target that fills the beam). A target of
90 % is just detected at the sensor's full range, which defines the noise floor (V. Kilic et al., Lidar Light Scattering
Augmentation, 2021); through air of extinction α light travels out and back: e^(−2αR) (Bouguer, Lambert and Beer).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.messages import Cloud
from mt_nodes.relations.mutations.lidar.rays import At, returns

Singles = npt.NDArray[np.float32]
Powers = TypeVar("Powers", bound=npt.NDArray[Any])

REFERENCE_REFLECTIVITY = 0.9
#: Least reflectivity of surfaces at 905 nm: assumed; intensities below it are rounding of the scale (KITTI rounds to
#: 0).
DARKEST = 0.05
#: A reported return has at least 3 dB over the floor, whatever its intensity says (assumed).
LEAST_SIGNAL = 2.0
#: Ranges outside of these limits belong to no sensor: single precision and the air's own limits end there.
NEAREST_M, FARTHEST_M = 0.01, 1e4
#: Range noise of an echo at the noise floor, LISA: σ = 0.09 m / √(2 SNR).
RANGE_NOISE_M = 0.09


@dataclass(frozen=True)
class Receiver:
    """A LiDAR's receiver: its noise floor, and the range below which echoes get no stronger.

    That such a range exists is geometry: at close range the spot is out of focus, and part of the collected light
    misses the detector, which can turn the law of 1 / R² into a nearly constant signal ("Geometrical compression of
    lidar return signals"). The range depends on the sensor's optics, which no data sheet gives: every value is an
    assumption. Results have the precision of the arguments.

    Attributes:
        max_range_m: a target of the reflectivity ``sensitivity`` is just detected there.
        focus_m: nearer echoes are out of focus; 0 if all echoes are farther away.
    """

    max_range_m: float
    focus_m: float = 0.0
    sensitivity: float = REFERENCE_REFLECTIVITY

    def signal(self, reflectivity: Powers, range_m: Powers) -> Powers:
        """Return the power (n,) over the noise floor of targets in clear air: 1 is just seen."""
        ratio: Any = self.max_range_m / np.maximum(range_m, self.focus_m)
        power: Powers = reflectivity * ratio * ratio / self.sensitivity
        return power

    def received(self, reflectivity: Powers, range_m: Powers) -> Powers:
        """Return the signal (n,) of reported returns; none counts as darker than :data:`DARKEST`."""
        with np.errstate(over="ignore"):
            power: Powers = self.signal(np.maximum(reflectivity, DARKEST), range_m)
        np.maximum(power, LEAST_SIGNAL, out=power)
        return power

    def reflectivity(self, signal: Powers, range_m: Powers) -> Powers:
        """Return the reflectivity (n,) of a target with this signal at this range in clear air."""
        found: Powers = signal / self.signal(np.ones_like(range_m), range_m)
        return found

    def threshold_reflectivity(self, range_m: Powers) -> Powers:
        """Return the reflectivity (n,) of the darkest detected target at ranges (n,)."""
        ratio: Any = np.maximum(range_m, self.focus_m) / self.max_range_m
        found: Powers = self.sensitivity * np.square(ratio)
        return found


def transmission(depth: npt.ArrayLike) -> Singles:
    """Return the share (n,) of light left after the way out and back through optical depths (n,)."""
    return np.asarray(np.exp(np.float32(-2.0) * np.asarray(depth, np.float32)))


def refuse_unreadable_intensities(cloud: Cloud, at: At) -> None:
    """Refuse intensities that cannot be read as reflectivities; a cloud without intensities is not refused.

    Raises:
        NotApplicable: one of them is not a finite number, or their convention is in doubt.
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


def noise_sigma_m(clear: Singles, weakened: Singles) -> Singles:
    """Return the standard deviation (n,) of the range noise added by attenuation (signals ≥ 1)."""
    gained = np.float32(0.5) / weakened - np.float32(0.5) / clear
    return np.asarray(np.float32(RANGE_NOISE_M) * np.sqrt(np.maximum(gained, 0.0, out=gained), out=gained))
