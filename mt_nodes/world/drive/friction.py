# SPDX-License-Identifier: Apache-2.0
"""Friction of the road by weather.

The coefficients lie in the ranges of handbooks and manufacturers for tyres: dry asphalt 0.70 to 0.80, concrete up to
0.90, wet asphalt 0.45 to 0.55, packed snow 0.25 to 0.35 (table at bohnenkamp.by); new tyres reportedly have more on dry
roads. Linear interpolation for weather in between is an assumption: it is monotonic, and right at its ends.
"""

from __future__ import annotations

from mt_nodes.world.drive.scenario import Environment

DRY, WET, SNOW = 0.85, 0.55, 0.30
GRAVITY_MPS2 = 9.81


def friction(environment: Environment) -> float:
    """Return the coefficient of friction: dry to wet by the larger of wetness and rain, and from there to snow."""
    wet = DRY + (WET - DRY) * max(environment.wetness, environment.rain)
    return wet + (SNOW - wet) * environment.snow
