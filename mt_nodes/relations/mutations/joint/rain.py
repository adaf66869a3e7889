# SPDX-License-Identifier: Apache-2.0
"""Rain."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mt_nodes.base.params import param
from mt_nodes.relations.mutations.joint.precipitation import Precipitation
from mt_nodes.relations.mutations.joint.scatterers import Spectrum

#: Refractive index of water at 905 nm.
_WATER = 1.33


@dataclass(frozen=True)
class Rain(Precipitation):
    """Lets it rain: returns weaken, the weakest vanish, and drops near the sensor are seen instead of what is behind.

    Drops: N(D) = 8000 e^(−4.1 R^−0.21 D) m⁻³ mm⁻¹ (J. S. Marshall, W. Palmer, J. Meteorol. 5, 1948), falling at
    9.65 − 10.3 e^(−0.6 D) m/s (D. Atlas et al., 1973). Extinction: 1e-6 (π/4) ∫ D² Q N dD with Q = 2, echo of a drop
    ρ min((D/d)², 1) e^(−2αr) / r² with ρ = |(n − 1)/(n + 1)|², noise floor: V. Kilic et al., LISA, 2021. With
    ``range_noise`` 0.02 ranges get the noise of C. Goodin et al., "Predicting the Influence of Rain on LIDAR in
    ADAS", Electronics 8(1), 2019: σ = 0.02 r (1 − e^−R)². Drops are those of a segment and are carried along by fall,
    wind and the ego's speed. Clouds without intensities: one reflectivity for all is assumed.

    Guaranteed: exactly the returns below the noise floor are gone or replaced, nothing leaves its beam or lies beyond
    the hard return but for range noise, intensities fall by the law and stay in scale, every other byte stays.
    """

    focus_m: float = param(
        2.0, low=0.5, high=50.0, unit="m", aspect="fixed", help="nearer echoes are out of focus: not stronger (assumed)"
    )
    rain_mm_per_h: float = param(10.0, low=0.1, high=200.0, unit="mm/h", neutral=0.1, help="rainfall rate")
    range_noise: float = param(
        0.0, low=0.0, high=0.1, neutral=0.0, help="Goodin's coefficient of range noise, 0.02 in the paper"
    )

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
        """A drop shows nearly the whole of the world before it, sky and all: 94 % of its light (K. Garg, S. Nayar)."""
        return 0.94

    @property
    def further_noise(self) -> float:
        """Goodin's noise, as a share of range."""
        return float(self.range_noise * np.expm1(-self.rain_mm_per_h) ** 2)

    def fall_mps(self, diameter_mm: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Atlas's fit; the least drops hang in the air."""
        return np.maximum(9.65 - 10.3 * np.exp(-0.6 * diameter_mm), 0.0)
