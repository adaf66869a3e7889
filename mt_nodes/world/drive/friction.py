# SPDX-License-Identifier: Apache-2.0
"""How well a road holds tyres, by the weather.

The coefficients lie in the ranges that handbooks and manufacturers print for tyres: dry asphalt 0.70 to 0.80, concrete
up to 0.90, wet asphalt 0.45 to 0.55, packed snow 0.25 to 0.35 (table at bohnenkamp.by); new tyres are said to have more
on dry roads. That weather in between lies between them on a straight line is an assumption: it is monotonous, and
right at its ends.
"""

from __future__ import annotations

from mt_nodes.world.drive.scenario import Environment

DRY, WET, SNOW = 0.85, 0.55, 0.30
GRAVITY_MPS2 = 9.81


def friction(environment: Environment) -> float:
    """Return the coefficient of friction: dry to wet by wetness or rain, what is more, and from there to snow."""
    wet = DRY + (WET - DRY) * max(environment.wetness, environment.rain)
    return wet + (SNOW - wet) * environment.snow
