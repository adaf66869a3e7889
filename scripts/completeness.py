# SPDX-License-Identifier: Apache-2.0
"""How complete an object is in a cloud: its returns, of all rays that a sensor sends towards it.

Measured alike for recorded and for added objects, from the object's returns alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import shapely

from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.messages import Cloud
from mt_nodes.world.scene.beams import Beams, beams_of
from mt_nodes.world.scene.returns import places

Rows = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

#: Least returns that tell a silhouette, least step between successive returns (nearer ones are echoes of one ray), and
#: how far beside the silhouette the sensor's azimuth step is measured.
_FEWEST, _LEAST_STEP_RAD, _ASIDE_RAD = 10, 1e-5, 0.05


@dataclass(frozen=True)
class Completeness:
    """Returns of an object, and rays that the sensor sends towards its silhouette."""

    returns: int
    rays: float

    @property
    def share(self) -> float:
        """Share of the rays that came back from the object."""
        return self.returns / self.rays


def completeness(cloud: Cloud, rows: Rows) -> Completeness:
    """Compare the returns of an object (n,), rows of a cloud, with the rays towards its silhouette.

    The silhouette is the convex hull of the returns by azimuth and elevation. On each ring that crosses it the sensor
    sends one ray per azimuth step, which is the median step of the ring's returns around there.

    Raises:
        NotApplicable: fewer than ten returns; or the cloud has no rings.
    """
    if len(rows) < _FEWEST:
        raise NotApplicable(f"got {len(rows)} returns of the object, expected at least {_FEWEST}")
    beams = beams_of(cloud)
    bearing = float(np.angle(np.exp(1j * beams.azimuth_rad[rows].astype(np.float64)).sum()))
    azimuth, elevation = beams.azimuth_from(bearing, rows).astype(np.float64), _elevations(cloud, rows)
    hull = shapely.MultiPoint(np.column_stack([azimuth, elevation])).convex_hull
    near, _ = beams.within(bearing, float(np.abs(azimuth).max()) + _ASIDE_RAD)
    near = near[beams.along_rings(bearing, near)]
    step = _step_rad(beams, bearing, near)
    chords = _chords_rad(beams.ring[near], _elevations(cloud, near), hull)
    # The hull goes through returns: a chord of k steps has k + 1 rays.
    return Completeness(len(rows), float((chords / step + 1.0).sum()))


def _elevations(cloud: Cloud, rows: Rows) -> Floats:
    x, y, z = places(cloud, rows).T
    return np.asarray(np.arctan2(z, np.hypot(x, y)))


def _step_rad(beams: Beams, bearing: float, rows: Rows) -> float:
    """Return the median azimuth step between successive returns (n,), ordered along their rings."""
    step = np.diff(beams.azimuth_from(bearing, rows).astype(np.float64))
    step = step[(np.diff(beams.ring[rows]) == 0) & (step > _LEAST_STEP_RAD)]
    if not len(step):
        raise NotApplicable("no ring has two returns around the object")
    return float(np.median(step))


def _chords_rad(ring: npt.NDArray[np.int16], elevation: Floats, hull: shapely.Geometry) -> Floats:
    """Return the widths (k,) of a silhouette along the rings that cross it."""
    _, begins = np.unique(ring, return_index=True)
    height = np.array([np.median(part) for part in np.split(elevation, begins[1:])])
    lines = shapely.linestrings([[(-np.pi, at), (np.pi, at)] for at in height.tolist()])
    chord = shapely.length(shapely.intersection(lines, hull))
    return np.asarray(chord[chord > 0.0])
