# SPDX-License-Identifier: Apache-2.0
"""Traffic lights at which the vehicle stops."""

from __future__ import annotations

import numpy as np

from mt_nodes.data.lanes import SignalStates
from mt_nodes.stacks.reference.car_following import Lead
from mt_nodes.stacks.reference.way import LanePath

#: A light is for this way where its stop line crosses it: so near to it, in about its direction.
_OWN_LANE_M, _ASKEW_RAD = 1.5, 0.6
#: One stops so far before the line; who is past it by less may still stand there.
_BEFORE_M, _PAST_M = 0.7, 1.0
#: For yellow one stops where that takes no more than this, for red where it can be done at all. That a yellow light may
#: be passed by those who could only stop by hard braking is law in many places; the number is assumed.
_HARDEST_MPS2 = {"yellow": 3.0, "red": 7.0}


def stop_ahead(
    signals: SignalStates, way: LanePath, front_m: float, speed_mps: float, standstill_m: float
) -> Lead | None:
    """Return the nearest stop line to stop at, as a standing lead vehicle; None if the way is free.

    ``signals``: in the frame of the way. ``front_m``, ``speed_mps``: of the vehicle along the way. ``standstill_m``:
    what is kept behind somebody who stands; one goes nearer to a line.
    """
    station, left = way.place(signals.stop[:, :2])
    askew = np.angle(np.exp(1j * (signals.stop[:, 2] - way.heading_at(station))))
    ours = (np.abs(left) < _OWN_LANE_M) & (np.abs(askew) < _ASKEW_RAD) & (station > front_m - _PAST_M)
    gaps = []
    for row in np.flatnonzero(ours).tolist():
        gap = float(station[row]) - front_m
        needed = speed_mps**2 / (2.0 * max(gap, 0.1))
        if needed <= _HARDEST_MPS2.get(str(signals.colour[row]), -1.0):
            gaps.append(gap)
    return Lead(max(min(gaps) - _BEFORE_M + standstill_m, 0.0), speed_mps, -1) if gaps else None
