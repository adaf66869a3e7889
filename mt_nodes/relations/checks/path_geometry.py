# SPDX-License-Identifier: Apache-2.0
"""What checks of paths share: where a path is expected, places along it, and how far two lie apart."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import shapely

from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle
from mt_nodes.data.outputs import Path
from mt_nodes.data.transforms import move

Places = npt.NDArray[np.float64]
#: How the distance of two paths is measured.
DISTANCES = ("lateral", "hausdorff", "frechet")
_MOST_STEPS = 1000


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

    ``lateral`` is the largest distance of a place of the second from the first, lengthened straight on at both ends,
    along which one walks with the second and never back by more than a step: where along it the second begins and ends
    does not matter, which way it runs does. ``hausdorff`` and ``frechet`` (discrete: Eiter and Mannila, Technical
    Report CD-TR 94/64, TU Vienna, 1994) are those of the whole paths, both computed by GEOS.
    """
    if by == "lateral":
        return _in_order_m(_lengthened(expected, there), there)
    lines = shapely.linestrings(expected), shapely.linestrings(there)
    return float((shapely.hausdorff_distance if by == "hausdorff" else shapely.frechet_distance)(*lines))


def length_m(places: Places) -> float:
    """Return how long a path (K, 2) is."""
    return float(np.hypot(*np.diff(places, axis=0).T).sum())


def sets_out_alike(expected: Places, there: Places, steps: int) -> bool:
    """Tell whether the first so many steps of a path lead where another's lead that begin nearest to them."""
    nearest = int(np.argmin(np.hypot(*(expected - there[0]).T)))
    return float(_way(expected, nearest, steps) @ _way(there, 0, steps)) >= 0.0


def _way(places: Places, first: int, steps: int) -> Places:
    """Return (2,) what lies between a place and the one so many steps later; of the last steps that there are."""
    first = max(0, min(first, len(places) - 1 - steps))
    return np.asarray(places[min(first + steps, len(places) - 1)] - places[first])


def _in_order_m(line: Places, there: Places) -> float:
    """Return the least distance that keeps each place (N, 2) in turn near a line (K, 2) that is walked along."""
    begins, steps = line[:-1], np.diff(line, axis=0)
    squares = np.maximum((steps**2).sum(axis=1), 1e-18)
    # By step of the line: the largest distance so far, if the place before is near that step or an earlier one.
    least = np.zeros(len(begins))
    for place in there:
        share = np.clip(((place - begins) * steps).sum(axis=1) / squares, 0.0, 1.0)
        off = np.hypot(*(begins + share[:, None] * steps - place).T)
        least = np.maximum(np.minimum.accumulate(least), off)
    return float(least.min())


def _lengthened(places: Places, there: Places) -> Places:
    """Return a path (N, 2) with straight steps before its begin and after its end, as far as other places may be."""
    far_m = float(np.hypot(*(there[:, None] - places[[0, -1]]).T).max())
    step_m = max(float(np.hypot(*np.diff(places, axis=0).T).max()), far_m / _MOST_STEPS, 1e-9)
    off_m = np.arange(step_m, far_m + 2.0 * step_m, step_m)[:, None]
    # The last step may be a short one, but never of no length: then the path stands still.
    before, after = (
        end + off_m * way / max(float(np.hypot(*way)), 1e-9)
        for end, way in ((places[0], places[0] - places[1]), (places[-1], places[-1] - places[-2]))
    )
    return np.concatenate([before[::-1], places, after])
