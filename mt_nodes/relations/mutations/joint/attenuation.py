# SPDX-License-Identifier: Apache-2.0
"""What a LiDAR still receives through bad air: signals over its noise floor, and what weakens them.

The received power of a return goes with ρ / R² (LiDAR equation for a target that fills the beam). A target of 90 % is
just seen at the sensor's full range, which is the noise floor (V. Kilic et al., Lidar Light Scattering Augmentation,
2021), and through air of extinction α the light goes out and back: e^(−2αR) (Bouguer, Lambert and Beer).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.messages import Cloud
from mt_nodes.relations.mutations.lidar.intensity_scale import full_scale
from mt_nodes.relations.mutations.lidar.placement import finite_range
from mt_nodes.relations.mutations.lidar.rays import At, returns

Singles = npt.NDArray[np.float32]
Powers = TypeVar("Powers", bound=npt.NDArray[Any])

REFERENCE_REFLECTIVITY = 0.9
#: No surface is darker at 905 nm: assumed, and that intensities below it are the scale's rounding (KITTI rounds to 0).
DARKEST = 0.05
#: A return that was reported had at least 3 dB over the floor, whatever its intensity says (assumed).
LEAST_SIGNAL = 2.0
#: Ranges outside are no sensor's: single precision and the air's own limits end there.
NEAREST_M, FARTHEST_M = 0.01, 1e4
#: Range noise of an echo at the noise floor, LISA: σ = 0.09 m / √(2 SNR).
RANGE_NOISE_M = 0.09


@dataclass(frozen=True)
class Receiver:
    """A LiDAR's receiver: where its noise floor is, and from where on an echo gets no stronger by being nearer.

    That there is such a range is geometry: near by the spot is out of focus, and what the lens gathers more falls
    beside the detector, which can turn the law of 1 / R² into a nearly constant signal ("Geometrical compression of
    lidar return signals"). Where it is depends on the sensor's optics, which no data sheet
    tells: every value is an assumption. What it computes keeps the precision of its arguments.

    Attributes:
        max_range_m: a target of the reflectivity ``sensitivity`` is just seen there.
        focus_m: nearer echoes are out of focus; 0 where only echoes from farther away are asked for.
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
        """Return the signal (n,) that reported returns had; none is taken for darker than :data:`DARKEST`."""
        with np.errstate(over="ignore"):
            power: Powers = self.signal(np.maximum(reflectivity, DARKEST), range_m)
        np.maximum(power, LEAST_SIGNAL, out=power)
        return power

    def reflectivity(self, signal: Powers, range_m: Powers) -> Powers:
        """Return the reflectivity (n,) of a target that gives this signal at this range in clear air."""
        found: Powers = signal / self.signal(np.ones_like(range_m), range_m)
        return found

    def just_seen(self, range_m: Powers) -> Powers:
        """Return the reflectivity (n,) of the darkest target that is seen at ranges (n,)."""
        ratio: Any = np.maximum(range_m, self.focus_m) / self.max_range_m
        found: Powers = self.sensitivity * np.square(ratio)
        return found


def transmission(depth: npt.ArrayLike) -> Singles:
    """Return the share (n,) of the light that is left after going out and back through optical depths (n,)."""
    return np.asarray(np.exp(np.float32(-2.0) * np.asarray(depth, np.float32)))


def intensity_scale(cloud: Cloud, at: At) -> float | None:
    """Return the full scale of the intensities of a cloud's returns, None for a cloud without.

    Raises:
        NotApplicable: an intensity is not a finite number, or they fit no known scale.
    """
    name = cloud.intensity_field
    if name is None:
        return None
    values = cloud.points[name][at]
    found = finite_range(values)
    if found is None or not np.isfinite(values).all():
        raise NotApplicable(f"an intensity of {cloud.topic} is not a finite number")
    return full_scale(*found, cloud.points.dtype[name], cloud.topic)


def reflectivities(cloud: Cloud, at: At, scale: float | None, unknown: float) -> Singles:
    """Return the reflectivity (n,) of returns: intensity over full scale, at least :data:`DARKEST`.

    A cloud without intensities (no scale) has ``unknown`` everywhere.
    """
    if scale is None:
        return np.full(len(cloud.points["x"][at]), unknown, np.float32)
    values = cloud.points[cloud.intensity_field][at].astype(np.float32)
    values /= np.float32(scale)
    return np.maximum(values, np.float32(DARKEST), out=values)


def single_ranges_m(cloud: Cloud, at: At) -> Singles:
    """Return the ranges (n,) of points in single precision."""
    squares = np.zeros(1)
    with np.errstate(over="ignore"):
        for name in "xyz":
            column = cloud.points[name][at].astype(np.float64)
            squares = squares + np.square(column, out=column)
        return np.sqrt(squares, out=squares).astype(np.float32)


def refuse_odd_ranges(cloud: Cloud, at: At) -> None:
    """Raise NotApplicable where a return is where no sensor's is."""
    range_m = single_ranges_m(cloud, at)
    near, far = float(range_m.min()), float(range_m.max())
    if not NEAREST_M <= near <= far <= FARTHEST_M:
        raise NotApplicable(
            f"returns of {cloud.topic} lie from {near:g} to {far:g} m, expected {NEAREST_M} to 10,000 m"
        )


def all_returns(cloud: Cloud) -> At:
    """Return the rows of a cloud's returns, a slice when every point is one."""
    rows = returns(cloud)
    return slice(None) if len(rows) == len(cloud) else rows


def noise_sigma_m(clear: Singles, weakened: Singles) -> Singles:
    """Return the standard deviation (n,) of the range noise that returns gain by weakening (signals ≥ 1)."""
    gained = np.float32(0.5) / weakened - np.float32(0.5) / clear
    return np.asarray(np.float32(RANGE_NOISE_M) * np.sqrt(np.maximum(gained, 0.0, out=gained), out=gained))
