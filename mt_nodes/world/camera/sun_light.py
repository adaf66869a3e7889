# SPDX-License-Identifier: Apache-2.0
"""Light of the sun: its disc and aureole by angle, its way through the air, and how a lens scatters it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mt_nodes.world.camera.light import Colour, colour_of_temperature

Floats = npt.NDArray[np.floating]
#: Angular radius of the disc and of the aureole around it, in radians (Buie et al., 2003).
DISC_RAD, AUREOLE_RAD = 4.65e-3, 43.6e-3
#: The glare equation holds from this angle on, in degrees.
_NEAREST_DEG = 0.1
#: Angle at which ``glare_light`` is the light of the veil.
REFERENCE_RAD = 0.1


def sunshape(angle_rad: npt.NDArray[np.float64], circumsolar: float) -> npt.NDArray[np.float64]:
    """Return the radiance at angles (n,) from the sun's centre, relative to the centre; 0 beyond the aureole.

    D. Buie, A. Monger, C. Dey, "Sunshape distributions for terrestrial solar simulations", Solar Energy 74, 2003:
    cos(0.326 θ) / cos(0.308 θ) in the disc, θ in mrad, and e^κ θ^γ around it, with κ = 0.9 ln(13.5 χ) χ^−0.3 and
    γ = 2.2 ln(0.52 χ) χ^0.43 − 0.1. χ, ``circumsolar``, is about the share of the light that comes from the aureole.
    """
    mrad = np.asarray(angle_rad) * 1e3
    kappa = 0.9 * np.log(13.5 * circumsolar) * circumsolar**-0.3
    gamma = 2.2 * np.log(0.52 * circumsolar) * circumsolar**0.43 - 0.1
    around = np.exp(kappa) * np.maximum(mrad, 1e3 * DISC_RAD) ** gamma
    inside = np.cos(0.326 * np.minimum(mrad, 4.65)) / np.cos(0.308 * np.minimum(mrad, 4.65))
    return np.where(mrad <= 1e3 * DISC_RAD, inside, np.where(mrad <= 1e3 * AUREOLE_RAD, around, 0.0))


def air_mass(elevation_rad: float) -> float:
    """Return the air on the way to the sun, relative to that straight up; below the horizon, that at the horizon.

    F. Kasten, A. Young, "Revised optical air mass tables and approximation formula", Applied Optics 28, 1989.
    """
    height_deg = max(float(np.degrees(elevation_rad)), 0.0)
    return float(1.0 / (np.sin(np.radians(height_deg)) + 0.50572 * (height_deg + 6.07995) ** -1.6364))


def glare_spread(angle_rad: Floats) -> Floats:
    """Return the veil (…) by the angle from a light, relative to that at 0.1 rad.

    The CIE general disability glare equation, 10 / θ³ + 5 / θ² with θ in degrees, 0.1 to 100, for a young eye without
    pigment (J. Vos, "On the cause of disability glare and its dependence on glare angle, age and ocular pigmentation",
    Clinical and Experimental Optometry 86(6), 2003; CIE 146:2002). That a lens with a windscreen before it scatters
    with the angle as an eye does is assumed: no glare spread function of cameras on vehicles was found.
    """
    return np.asarray(_veil(angle_rad) / _veil(np.array(REFERENCE_RAD, np.asarray(angle_rad).dtype)))


def sky_around_sun(angle_rad: Floats) -> Floats:
    """Return how much brighter than at a right angle to the sun a clear sky is (…), less 1.

    Indicatrix of the CIE standard clear sky, type 12 (ISO 15469:2004): 1 + 10 (e^(−3χ) − e^(−3π/2)) + 0.45 cos² χ.
    """
    return np.asarray(10.0 * (np.exp(-3.0 * angle_rad) - np.exp(-1.5 * np.pi)) + 0.45 * np.square(np.cos(angle_rad)))


def colour_of_sun(elevation_rad: float) -> Colour:
    """Return its red, green and blue, the strongest 1: 3,300 K at the horizon, 5,500 K from 30 degrees on (assumed)."""
    temperature_k = 3300.0 + 2200.0 * float(np.clip(np.sin(elevation_rad) / 0.5, 0.0, 1.0))
    sun, white = (np.array(colour_of_temperature(k)) for k in (temperature_k, 6504.0))
    red, green, blue = (sun / white / (sun / white).max()).tolist()
    return red, green, blue


def _veil(angle_rad: Floats) -> Floats:
    inverse = 1.0 / np.maximum(np.degrees(angle_rad), _NEAREST_DEG)
    return np.asarray((10.0 * inverse + 5.0) * inverse * inverse)
