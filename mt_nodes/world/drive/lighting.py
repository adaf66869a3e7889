# SPDX-License-Identifier: Apache-2.0
"""Light of sun, sky and headlamps by time of day and clouds, for a camera exposed for daylight.

The sun stands as at an equinox (declination δ = 0) at the latitude φ = 45°: with the hour angle H, the sine of its
height is sin φ sin δ + cos φ cos δ cos H, and it rises in the east at six ("Solar elevation angle", Wikipedia). Its
light comes through 1 / sin(height) atmospheres. How bright and of which colour sky, dusk, night and headlamps are is
assumed, as of the mutation ``night``, whose beam the headlamps have.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mt_nodes.base.arrays import Floats, Singles
from mt_nodes.world.camera.headlamps import WARM
from mt_nodes.world.drive.scenario import Environment

_LATITUDE_RAD = np.pi / 4.0
#: Elevations of the sun, in degrees, between which day turns into night: by so many stops, with increasing blue.
_DAY_DEG, _NIGHT_DEG, _STOPS = 6.0, -10.0, 6.0
_NIGHT_TINT, _NIGHT_SKY = (0.55, 0.75, 1.25), 1.0 / 6.0
#: Optical depths of one atmosphere for red, green and blue; the sun's light at noon; least sine of its elevation.
_DEPTH, _SUNSHINE, _LEAST_SINE = (0.05, 0.1, 0.2), 2.0, 0.06
_SKYLIGHT, _OVERCAST_LIGHT, _FROM_BELOW = (0.62, 0.7, 0.85), (1.25, 1.27, 1.3), 0.22
_ZENITH, _HORIZON = (0.25, 0.42, 0.75), (0.8, 0.84, 0.88)
_GREY_ZENITH, _GREY_HORIZON = (0.62, 0.64, 0.67), (0.72, 0.73, 0.74)
#: Headlamps are on below this share of daylight, or in fog at least this dense.
_DARK, _THICK = 0.3, 0.3
#: Daylight on the ground, the reference of headlamps.
_DAY = 2.1


@dataclass(frozen=True, eq=False)
class Light:
    """The light of one scenario; colours are red, green, blue, in shares of what full scale shows.

    Attributes:
        to_sun: (3,) unit vector in ``map``. sun: (3,) its light on surfaces that face it, zeros if it is hidden or has
            set.
        above, below: (3,) light from the sky on level ground, and from below.
        zenith, horizon: (3,) appearance of the sky. headlamps: of the ego, 0 for off, 1 for on.
        darkness: 0 by day, 1 by night.
    """

    to_sun: Singles
    sun: Singles
    above: Singles
    below: Singles
    zenith: Singles
    horizon: Singles
    headlamps: float
    darkness: float

    @property
    def shines(self) -> bool:
        """Whether objects cast shadows."""
        return bool(self.sun.max() > 0.01)

    def sky(self, up: Singles) -> Singles:
        """Return the appearance (n, 3) of the sky along rays with vertical components ``up`` (n,)."""
        share = np.sqrt(np.clip(up, 0.0, 1.0))[:, None]
        return np.asarray(self.horizon + share * (self.zenith - self.horizon), dtype=np.float32)

    def from_headlamps(self, lamps: Singles) -> Singles:
        """Return the light of headlamps (n, 3) whose brightness is ``lamps`` (n,) times daylight."""
        return np.asarray((np.float32(_DAY) * lamps)[:, None] * WARM)


def light_of(environment: Environment) -> Light:
    """Return the light at a time of day and weather."""
    to_sun = _to_sun(environment.hour)
    height_deg = float(np.degrees(np.arcsin(np.clip(to_sun[2], -1.0, 1.0))))
    darkness = float(np.clip((_DAY_DEG - height_deg) / (_DAY_DEG - _NIGHT_DEG), 0.0, 1.0))
    covered = max(environment.cloudiness, environment.rain**0.5, environment.snow**0.5, environment.fog**0.5)
    depth = np.array(_DEPTH) * (1.0 / max(float(to_sun[2]), _LEAST_SINE) - 1.0 / np.cos(_LATITUDE_RAD))
    sun = _SUNSHINE * np.exp(-depth) * np.clip(height_deg / 2.0, 0.0, 1.0) * (1.0 - covered)
    left = 2.0 ** (-_STOPS * darkness) * np.power(_NIGHT_TINT, darkness)
    sky = left * _NIGHT_SKY**darkness

    def mixed(clear: tuple[float, ...], grey: tuple[float, ...], scale: Floats) -> Singles:
        return np.asarray(((1.0 - covered) * np.array(clear) + covered * np.array(grey)) * scale, np.float32)

    return Light(
        to_sun.astype(np.float32),
        sun.astype(np.float32),
        mixed(_SKYLIGHT, _OVERCAST_LIGHT, left),
        np.asarray(_FROM_BELOW * left, np.float32),
        mixed(_ZENITH, _GREY_ZENITH, sky),
        mixed(_HORIZON, _GREY_HORIZON, sky),
        float(2.0 ** (-_STOPS * darkness) < _DARK or environment.fog > _THICK),
        darkness,
    )


def _to_sun(hour: float) -> Floats:
    """Return the unit vector to the sun: east, north, up."""
    angle = (hour - 12.0) * np.pi / 12.0
    return np.array([-np.sin(angle), -np.sin(_LATITUDE_RAD) * np.cos(angle), np.cos(_LATITUDE_RAD) * np.cos(angle)])
