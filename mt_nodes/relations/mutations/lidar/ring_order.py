# SPDX-License-Identifier: Apache-2.0
"""Returns line by line, in scan order: shared by mutations of density."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from mt_nodes.data.messages import Cloud
from mt_nodes.relations.mutations.lidar.rays import at_rows, returns
from mt_nodes.world.scene.beams import Beams
from mt_nodes.world.scene.scan_lines import BANDS, scan_lines_of

_InRings = tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]
_found: WeakKeyDictionary[Cloud, _InRings] = WeakKeyDictionary()


def in_rings(cloud: Cloud) -> _InRings:
    """Return the rows (n,) of returns, line by line in scan order, and which of these begin a line (lines,).

    Lines are rings, or bands of elevation where a scan has none; a band is in the order of azimuth. Cached per cloud,
    like its beams: apply needs what draw computed.
    Raises NotApplicable: the cloud has no return.
    """
    if cloud not in _found:
        _found[cloud] = _in_rings(cloud)
    return _found[cloud]


def _in_rings(cloud: Cloud) -> _InRings:
    at = at_rows(cloud, returns(cloud))
    # Small integers are sorted by radix, in one pass; −1, for no ring, comes last as the largest.
    lines = scan_lines_of(cloud)
    place = lines.place[at].view(np.uint16)
    order = Beams.order(place, lines.azimuth_rad[at]) if lines.source == BANDS else np.argsort(place, kind="stable")
    place = place.take(order)
    begins = np.flatnonzero(np.append(True, place[1:] != place[:-1]))
    rows = order if isinstance(at, slice) else at.take(order)
    return rows.astype(np.int32), begins.astype(np.int32)
