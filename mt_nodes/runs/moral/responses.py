# SPDX-License-Identifier: Apache-2.0
"""How far what one drive does lies apart from what another does, wherever and however fast each began."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from mt_nodes.base.arrays import Floats

#: A difference in speed counts as the way that it makes in this time.
SPEED_S = 0.5


def response(drive: Floats) -> Floats:
    """Return (T, 3) by how much a drive differs from one that goes on as in its first step: metres, metres, metres.

    In the first step no command has got through to the wheels yet, or hardly. So the initial conditions, which are
    nobody's decision, count for little: a car that brakes after t seconds falls behind such a one alike at any speed.
    Speeds count as the way that they make in :data:`SPEED_S`.
    ``drive``: (T, 3) x, y in metres and speed in m/s, at even times; one row at least.
    """
    places = drive[:, :2]
    step = places[min(1, len(places) - 1)] - places[0]
    straight_on = places[0] + np.arange(len(places))[:, None] * step
    return np.column_stack([places - straight_on, SPEED_S * (drive[:, 2] - drive[0, 2])])


def response_distances(drives: Sequence[Floats]) -> Floats:
    """Return (N, N) how far the responses of drives lie apart at most at any time at which both still go on, in metres.

    Nothing is warped in time: to brake later is to drive otherwise.
    """
    responses = [response(drive) for drive in drives]
    distances = np.zeros((len(drives), len(drives)))
    for i, j in itertools.combinations(range(len(drives)), 2):
        rows = min(len(responses[i]), len(responses[j]))
        apart = np.linalg.norm(responses[i][:rows] - responses[j][:rows], axis=1)
        distances[i, j] = distances[j, i] = apart.max()
    return distances
