# SPDX-License-Identifier: Apache-2.0
"""Physical meaning of a scenario's weather values, 0 to 1.

Fog has a visibility from 1,000 m (above, it is no fog: Met Office, fact sheet 3) down to 30 m, linear in its logarithm;
rain goes up to 50 mm/h, beyond which the Met Office calls showers violent. Assumed are 30 m, snow up to 5 mm/h of water
and a wet road's film of up to 1 mm.
"""

from __future__ import annotations

FOG_M = (1000.0, 30.0)
RAIN_MM_PER_H, SNOW_MM_PER_H, WATER_MM = 50.0, 5.0, 1.0
