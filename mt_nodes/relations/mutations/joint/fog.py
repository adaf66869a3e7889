# SPDX-License-Identifier: Apache-2.0
"""Fog."""

from __future__ import annotations

from dataclasses import dataclass

from mt_nodes.base.params import param
from mt_nodes.relations.mutations.joint.hazy_air import LN_20, HazyAir
from mt_nodes.world.camera.light import Colour


@dataclass(frozen=True)
class Fog(HazyAir):
    """Fills the air with fog of a visibility: returns weaken and vanish, thick fog echoes itself.

    α = ln 20 / visibility (meteorological optical range, WMO) and β = 0.046 / visibility (M. Hahner et al., "Fog
    Simulation on Real LiDAR Point Clouds", ICCV 2021), alike at 905 nm: droplets are larger than the wavelength.
    Returns weaken by e^(−2αr); below the noise floor (V. Kilic et al., LISA, 2021) they are lost, and replaced by the
    peak of the fog's own echo on the same beam where that is stronger. Clouds without intensities: one
    reflectivity for all is assumed.

    Guaranteed: exactly the returns below the noise floor are gone or replaced, nothing leaves its beam or lies beyond
    the hard return but for range noise, intensities fall by the law and stay in scale, every other byte stays.
    """

    visibility_m: float = param(
        200.0, low=10.0, high=2000.0, unit="m", neutral=2000.0, help="meteorological optical range"
    )

    @property
    def extinction_per_m(self) -> float:
        """ln 20 over visibility."""
        return LN_20 / self.visibility_m

    @property
    def backscatter_per_m_sr(self) -> float:
        """0.046 over visibility."""
        return 0.046 / self.visibility_m

    @property
    def tint(self) -> Colour:
        """Droplets scatter all colours alike."""
        return (1.0, 1.0, 1.0)
