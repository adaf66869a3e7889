# SPDX-License-Identifier: Apache-2.0
"""Returns ring by ring, as they were scanned: shared by mutations of density."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mt_nodes.frames import Cloud
from mt_nodes.mutations.lidar.rays import returns
from mt_nodes.scene.beams import beams_of


def in_rings(cloud: Cloud) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.bool_]]:
    """Return the rows (n,) of returns, ring by ring as they were scanned, and where a ring begins.

    Raises:
        NotApplicable: the cloud has no return, or its rings cannot be told.
    """
    rows = returns(cloud).astype(np.int32)
    # Small numbers are sorted by radix, in one pass.
    place = (beams_of(cloud).place[rows] + 1).astype(np.uint16)
    order = np.argsort(place, kind="stable")
    return rows[order], np.append(True, np.diff(place[order]) != 0)
