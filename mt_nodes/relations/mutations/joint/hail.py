# SPDX-License-Identifier: Apache-2.0
"""Hail."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mt_nodes.base.params import param
from mt_nodes.relations.mutations.joint.precipitation import Precipitation
from mt_nodes.relations.mutations.joint.scatterers import Spectrum

#: Hail is 5 to 50 mm across (A. Heymsfield et al., J. Atmos. Sci. 75(11), 2018, after the AMS Glossary of Meteorology).
_LEAST_MM, _MOST_MM = 5.0, 50.0
#: A stone of 1 cm falls so fast; speed goes with the square root of the diameter.
_OF_1_CM_MPS = 13.9


@dataclass(frozen=True)
class Hail(Precipitation):
    """Lets it hail: lumps of ice, fewer than drops and larger, near the sensor are seen instead of what is behind.

    Stones fall at 13.9 √(D / 1 cm) m/s (Munich Re, 1984, as quoted by the Physics Factbook's "Speed of a Falling
    Hailstone"; speeds that go with the square root were measured by R. Matson, A. Huggins, "The Direct Measurement of
    the Sizes, Shapes and Kinematics of Falling Hailstones", J. Atmos. Sci. 37, 1980). That their number falls
    exponentially with size, by how much (``fold_mm``) and how many there are is assumed, of the order of a shower of
    small hail; smaller ice than hail comes with it by the same law. Their reflectivity of 0.6 is assumed, as of milky
    ice. All else is as of rain: V. Kilic et al., LISA, 2021. Stones are those of a segment and are carried along by
    fall, wind and the ego's speed. What has fallen lies on the ground unseen.

    Guaranteed: exactly the returns below the noise floor are gone or replaced, nothing leaves its beam or lies beyond
    the hard return but for range noise, intensities fall by the law and stay in scale, every other byte stays.
    """

    stones_per_m3: float = param(
        2.0, low=0.01, high=20.0, unit="1/m3", neutral=0.01, help="stones of 5 mm and more in the air"
    )
    fold_mm: float = param(
        3.0, low=1.0, high=15.0, unit="mm", aspect="fixed", help="stones are e times fewer when larger by this"
    )

    @property
    def spectrum(self) -> Spectrum:
        """An exponential law that has the stones of 5 mm and more that are asked for."""
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

    def fall_mps(self, diameter_mm: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """By the square root of the diameter."""
        return np.asarray(_OF_1_CM_MPS * np.sqrt(diameter_mm / 10.0))
