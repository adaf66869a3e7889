# SPDX-License-Identifier: Apache-2.0
"""Dust."""

from __future__ import annotations

from dataclasses import dataclass

from mt_nodes.base.params import param
from mt_nodes.relations.mutations.joint.hazy_air import LN_20, HazyAir
from mt_nodes.world.camera.light import Colour


@dataclass(frozen=True)
class Dust(HazyAir):
    """Fills the air with mineral dust of a visibility: returns weaken and vanish, thick dust echoes itself.

    α = ln 20 / visibility, the same at 905 nm as in the visible: coarse dust has an Ångström exponent below 0.4; and
    β = α / S with a lidar ratio S of 35 to 70 sr (S.-K. Shin et al., "On the spectral depolarisation and lidar ratio of
    mineral dust", ACP 18, 2018). One g/m³ is about α = 0.5 to 2 /m (A. Shimizu et al., SOLA 7A, 2011: 0.5 to 2 g/m²).
    The rest is as of fog: weakening by e^(−2αr), noise floor of LISA (V. Kilic et al., 2021), soft return of M. Hahner
    et al. (ICCV 2021), one assumed reflectivity for clouds without intensities.

    Guaranteed: exactly the returns below the noise floor are gone or replaced, nothing leaves its beam or lies beyond
    the hard return but for range noise, intensities fall by the law and stay in scale, every other byte stays.
    """

    patchiness: float = param(
        0.6, low=0.0, high=0.9, aspect="fixed", help="density varies between 1 ± this: dust comes in swathes"
    )
    visibility_m: float = param(
        200.0, low=10.0, high=2000.0, unit="m", neutral=2000.0, help="meteorological optical range"
    )
    lidar_ratio_sr: float = param(
        50.0, low=35.0, high=70.0, unit="sr", aspect="fixed", help="extinction over backscatter"
    )

    @property
    def extinction_per_m(self) -> float:
        """ln 20 over visibility."""
        return LN_20 / self.visibility_m

    @property
    def backscatter_per_m_sr(self) -> float:
        """Extinction over the lidar ratio."""
        return self.extinction_per_m / self.lidar_ratio_sr

    @property
    def tint(self) -> Colour:
        """That of sand, an assumption: dust has the colour of its ground."""
        return (1.0, 0.8, 0.55)
