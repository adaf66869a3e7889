# SPDX-License-Identifier: Apache-2.0
"""Fog, dust and smoke: air that reduces visibility for every sensor."""

from __future__ import annotations

from dataclasses import dataclass

from mt_nodes.base.params import param
from mt_nodes.relations.mutations.joint.hazy_air import LN_20, HazyAir
from mt_nodes.world.camera.light import Colour


@dataclass(frozen=True)
class Fog(HazyAir):
    """Fills the air with fog of a given visibility: returns weaken or vanish, and thick fog adds false ones.

    α = ln 20 / visibility (meteorological optical range, WMO) and β = 0.046 / visibility (M. Hahner et al., "Fog
    Simulation on Real LiDAR Point Clouds", ICCV 2021), alike at 905 nm: droplets are larger than the wavelength.
    Returns weaken by e^(−2αr); below the noise floor (V. Kilic et al., LISA, 2021) they are lost, and replaced by the
    peak of the fog's own echo on the same beam where that is stronger. Clouds without intensities: one
    reflectivity for all is assumed.

    Pictures: H. Koschmieder's law with this α over the light that the sun's part e^(−α h / sin γ) leaves (h = 60 m, γ =
    30 degrees, assumed), so that shadows fade; the air has the light of the picture's own horizon, and lamps glow.

    Guaranteed: exactly the returns below the noise floor are lost or replaced; every return stays on its beam and,
    except for range noise, no farther than the hard return; intensities follow the law and stay in scale; no other byte
    changes.
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


@dataclass(frozen=True)
class Dust(HazyAir):
    """Fills the air with mineral dust of a given visibility: returns weaken or vanish, and thick dust adds false ones.

    α = ln 20 / visibility, the same at 905 nm as in the visible: coarse dust has an Ångström exponent below 0.4; and
    β = α / S with a lidar ratio S of 35 to 70 sr (S.-K. Shin et al., "On the spectral depolarisation and lidar ratio of
    mineral dust", ACP 18, 2018). One g/m³ is about α = 0.5 to 2 /m (A. Shimizu et al., SOLA 7A, 2011: 0.5 to 2 g/m²).
    The rest is as of fog: weakening by e^(−2αr), noise floor of LISA (V. Kilic et al., 2021), soft return of M. Hahner
    et al. (ICCV 2021), one assumed reflectivity for clouds without intensities.

    Guaranteed: exactly the returns below the noise floor are lost or replaced; every return stays on its beam and,
    except for range noise, no farther than the hard return; intensities follow the law and stay in scale; no other byte
    changes.
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


#: Wavelength of visible light, in nanometres.
_SEEN_NM = 550.0


@dataclass(frozen=True)
class Smoke(HazyAir):
    """Fills the air with smoke of a given visibility, which affects cameras more than LiDARs.

    α = ln 20 / visibility for what is seen. Smoke's particles are smaller than the wavelength: α falls with it as
    (550 nm / λ)^a for a LiDAR's wavelength λ, and β = α / S. Backscatter of forest-fire smoke fell with exponents of
    0.9 to 1.1 between 532 and 1064 nm, at lidar ratios of 50 to 75 sr ("Optical characteristics of forest-fire smoke
    observed with two-wavelength Mie-scattering lidars and a high-spectral-resolution lidar over Japan", 2008);
    extinction is assumed to fall alike. How dark thick smoke is, is an assumption. The rest is as of fog.

    Guaranteed: exactly the returns below the noise floor are lost or replaced; every return stays on its beam and,
    except for range noise, no farther than the hard return; intensities follow the law and stay in scale; no other byte
    changes; in pictures, contrast falls with range by the law.
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
    def visible_extinction_per_m(self) -> float:
        """ln 20 over visibility."""
        return LN_20 / self.visibility_m

    @property
    def extinction_per_m(self) -> float:
        """That of the LiDAR's longer wavelength."""
        return float(self.visible_extinction_per_m * (_SEEN_NM / self.model.wavelength_nm) ** self.exponent)

    @property
    def backscatter_per_m_sr(self) -> float:
        """Extinction over the lidar ratio."""
        return self.extinction_per_m / self.lidar_ratio_sr

    @property
    def tint(self) -> Colour:
        """Grey, slightly brown."""
        return (1.0, 0.96, 0.9)

    @property
    def brightness(self) -> float:
        """The light that it does not absorb."""
        return 1.0 - self.darkness
