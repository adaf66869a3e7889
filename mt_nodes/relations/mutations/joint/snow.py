# SPDX-License-Identifier: Apache-2.0
"""Snow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mt_nodes.base.params import param
from mt_nodes.relations.mutations.camera.each_image import View
from mt_nodes.relations.mutations.joint.every_sensor import surroundings
from mt_nodes.relations.mutations.joint.precipitation import Precipitation
from mt_nodes.relations.mutations.joint.scatterers import Spectrum

#: Density of a flake over that of water: a tenth, as of fresh snow (assumed).
_DENSITY = 0.1


@dataclass(frozen=True)
class Snow(Precipitation):
    """Lets it snow: returns weaken, the weakest vanish, and flakes near the sensor are seen instead of what is behind.

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

    Guaranteed: exactly the returns below the noise floor are gone or replaced, nothing leaves its beam or lies beyond
    the hard return but for range noise, intensities fall by the law and stay in scale, every other byte stays.
    """

    reach_m: float = param(
        6.0, low=2.0, high=20.0, unit="m", aspect="fixed", help="flakes beyond only weaken: few echoes are farther"
    )
    snow_mm_per_h: float = param(0.5, low=0.1, high=10.0, unit="mm/h", neutral=0.1, help="snowfall rate, as water")

    ground_cover: float = param(
        0.0, low=0.0, high=1.0, neutral=0.0, help="share of the ground that cameras see white; LiDARs see it as it was"
    )

    def cover(self, view: View) -> npt.NDArray[np.float64]:
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

    def fall_mps(self, diameter_mm: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """All alike."""
        return np.ones(len(diameter_mm))
