# SPDX-License-Identifier: Apache-2.0
"""Objects before sensors in dual-return mode: one surface gives one echo a firing, whatever came back before."""

from __future__ import annotations

import numpy as np

from mt_nodes.data.firings import return_pairs
from mt_nodes.data.messages import Cloud
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.lidar.rays import smallest


def one_echo_a_firing(cloud: Cloud, draw: Draw) -> Draw:
    """Return a draw in which an object that hides several returns of a firing answers that firing once.

    All hits of a firing have the fate of its first one. If that is detected, the others are lost; a sensor that reports
    a single echo twice (Velodyne's, where strongest and last are one: VLP-16 user manual, 6.2.2) repeats it instead.
    ``draw``: ``rows``, rising, with ``range_m`` and perhaps ``intensity``, and ``lost``.
    """
    firings = return_pairs(cloud)
    if not firings.dual:
        return draw
    rows, lost = (draw[name].astype(np.int64) for name in ("rows", "lost"))
    hit = np.sort(np.concatenate([rows, lost]))
    _, first, inverse = np.unique(firings.head[hit], return_index=True, return_inverse=True)
    leader = hit[first][inverse]
    at = np.searchsorted(rows, leader)
    detected = np.isin(leader, rows)
    stays = detected & (firings.repeats | (hit == leader))
    source = at[stays]
    fields: Draw = {name: draw[name][source] for name in ("range_m", "intensity") if name in draw}
    return {**draw, "rows": smallest(hit[stays]), "lost": smallest(hit[~stays]), **fields}
