# SPDX-License-Identifier: Apache-2.0
"""Smoke."""

from __future__ import annotations

from dataclasses import dataclass

from mt_nodes.base.params import param
from mt_nodes.relations.mutations.joint.hazy_air import LN_20, HazyAir
from mt_nodes.world.camera.light import Colour

#: Wavelengths of what is seen and of LiDARs, in nanometres.
_SEEN_NM, _LIDAR_NM = 550.0, 905.0


@dataclass(frozen=True)
class Smoke(HazyAir):
    """Fills the air with smoke of a visibility: cameras see less of what is behind it than LiDARs do.

    α = ln 20 / visibility for what is seen. Smoke's particles are smaller than the wavelength: α falls with it as
    (550 / 905)^a for a LiDAR, and β = α / S. Backscatter of forest-fire smoke fell with exponents of 0.9 to 1.1 between
    532 and 1064 nm, at lidar ratios of 50 to 75 sr ("Optical characteristics of forest-fire smoke observed with
    two-wavelength Mie-scattering lidars and a high-spectral-resolution lidar over Japan", 2008); extinction is assumed
    to fall alike. How dark thick smoke is, is an assumption. The rest is as of fog.

    Guaranteed: exactly the returns below the noise floor are gone or replaced, nothing leaves its beam or lies beyond
    the hard return but for range noise, intensities fall by the law and stay in scale, every other byte stays; in
    pictures contrast falls over range by the law.
    """

    patchiness: float = param(
        0.6, low=0.0, high=0.9, aspect="fixed", help="density varies between 1 ± this: smoke comes in swathes"
    )
    visibility_m: float = param(
        60.0, low=10.0, high=2000.0, unit="m", neutral=2000.0, help="meteorological optical range"
    )
    exponent: float = param(1.0, low=0.0, high=2.5, aspect="fixed", help="Ångström exponent of the extinction")
    lidar_ratio_sr: float = param(
        60.0, low=30.0, high=100.0, unit="sr", aspect="fixed", help="extinction over backscatter"
    )
    darkness: float = param(
        0.6, low=0.0, high=0.95, aspect="fixed", help="share of the sky's light that thick smoke keeps (assumed)"
    )

    @property
    def seen_extinction_per_m(self) -> float:
        """ln 20 over visibility."""
        return LN_20 / self.visibility_m

    @property
    def extinction_per_m(self) -> float:
        """That of the LiDAR's longer wavelength."""
        return float(self.seen_extinction_per_m * (_SEEN_NM / _LIDAR_NM) ** self.exponent)

    @property
    def backscatter_per_m_sr(self) -> float:
        """Extinction over the lidar ratio."""
        return self.extinction_per_m / self.lidar_ratio_sr

    @property
    def tint(self) -> Colour:
        """Grey, a little brown."""
        return (1.0, 0.96, 0.9)

    @property
    def brightness(self) -> float:
        """What it does not keep."""
        return 1.0 - self.darkness
