# SPDX-License-Identifier: Apache-2.0
"""What checks of paths share: where a path is expected, places along it, and how far two lie apart."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import shapely

from mt_nodes.effects import Effects
from mt_nodes.frames import Bundle
from mt_nodes.outputs import Path
from mt_nodes.transforms import move

Places = npt.NDArray[np.float64]
#: How the distance of two paths is measured.
DISTANCES = ("lateral", "hausdorff", "frechet")


def expected_places(path: Path, effects: Effects, bundle: Bundle) -> Places:
    """Return where the source's path (K, 2) is expected after the mutation, x and y in the path's own frame.

    In a mirror it goes to the other side: of the plane that the scene is mirrored in, or, where images alone are, of
    the straight line ahead. A scene that is carried elsewhere in another way takes no path with it: paths begin at
    the vehicle.

    Raises:
        UnknownTransform: no transform leads from the path's frame to that of the mutation.
    """
    places = np.asarray(path.pose[:, :2])
    if not effects.mirrored:
        return places
    carry = effects.carry(path.frame_id, bundle.transforms)
    if carry is None:
        return np.asarray(places * (1.0, -1.0))
    return np.asarray(move(carry, np.column_stack([places, np.zeros(len(places))]))[:, :2])


def resampled(places: Places, horizon_m: float, step_m: float) -> Places:
    """Return places (N, 2) every ``step_m`` along a path (K, 2), up to ``horizon_m`` and with its end; N is 2 or more.

    A path of one place stays there.
    """
    along = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(places, axis=0).T))])
    end = min(horizon_m, float(along[-1]))
    at = np.append(np.arange(0.0, end, step_m), [end] if end > 0.0 else [0.0, 0.0])
    return np.column_stack([np.interp(at, along, column) for column in places.T])


def apart_m(expected: Places, there: Places, by: str) -> float:
    """Return how far two paths of evenly spaced places lie apart, by one of :data:`DISTANCES`.

    ``lateral`` is the largest distance of a place of the second from the first, lengthened straight on at both ends:
    where along it the second begins and ends does not matter. ``hausdorff`` and ``frechet`` (discrete: Eiter and
    Mannila, Technical Report CD-TR 94/64, TU Vienna, 1994) are those of the whole paths, both computed by GEOS.
    """
    if by == "lateral":
        return float(shapely.distance(shapely.points(there), shapely.linestrings(_lengthened(expected))).max())
    lines = shapely.linestrings(expected), shapely.linestrings(there)
    return float((shapely.hausdorff_distance if by == "hausdorff" else shapely.frechet_distance)(*lines))


def _lengthened(places: Places, by_m: float = 1000.0) -> Places:
    """Return a path (N, 2) with a straight piece before its begin and after its end."""
    begin, end = places[0] - places[1], places[-1] - places[-2]
    # The last step may be a short one, but never of no length: then the path stands still.
    ends = [p + by_m * d / max(float(np.hypot(*d)), 1e-9) for p, d in ((places[0], begin), (places[-1], end))]
    return np.concatenate([[ends[0]], places, [ends[1]]])
