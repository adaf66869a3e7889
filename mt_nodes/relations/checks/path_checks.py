# SPDX-License-Identifier: Apache-2.0
"""Checks of the planned path, and their geometry."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import shapely

from mt_nodes.base.params import param
from mt_nodes.base.wording import lateral_text
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle
from mt_nodes.data.outputs import Output, Path
from mt_nodes.data.transforms import UnknownTransform, move
from mt_nodes.data.verdict import Judgement, Outcome
from mt_nodes.relations.checks.base import Check, at_most, nothing_to_judge

Places = npt.NDArray[np.float64]
#: Distance measures between two paths.
DISTANCES = ("lateral", "hausdorff", "frechet")
_MOST_STEPS = 1000


def expected_places(path: Path, effects: Effects, bundle: Bundle) -> Places:
    """Return the expected positions (K, 2) of the source's path after the mutation, x and y in the path's own frame.

    A mirror swaps its sides: about the plane that mirrors the scene or, if only images are mirrored, about the straight
    line ahead. Other movements of the scene do not move it: paths begin at the vehicle.
    Raises UnknownTransform: no transform leads from the path's frame to that of the mutation.
    """
    places = np.asarray(path.pose[:, :2])
    if not effects.mirrored:
        return places
    carry = effects.carry(path.frame_id, bundle.transforms)
    if carry is None:
        return np.asarray(places * (1.0, -1.0))
    return np.asarray(move(carry, np.column_stack([places, np.zeros(len(places))]))[:, :2])


def resampled(places: Places, horizon_m: float, step_m: float) -> Places:
    """Return positions (N, 2) every ``step_m`` along a path (K, 2), up to ``horizon_m``, including its end; N ≥ 2.

    A path of one position stays there.
    """
    along = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(places, axis=0).T))])
    end = min(horizon_m, float(along[-1]))
    at = np.append(np.arange(0.0, end, step_m), [end] if end > 0.0 else [0.0, 0.0])
    return np.column_stack([np.interp(at, along, column) for column in places.T])


def apart_m(expected: Places, path: Places, measure: str) -> float:
    """Return the distance of two evenly sampled paths, by one of :data:`DISTANCES`.

    ``lateral`` is the largest distance of a position of the second path from the first, which is extended straight at
    both ends and traversed together with the second, never back by more than a step: start and end points do not
    matter, the direction does. ``hausdorff`` and ``frechet`` (discrete: Eiter and Mannila, Technical Report CD-TR
    94/64, TU Vienna, 1994) are those of the whole paths, both computed by GEOS.
    """
    if measure == "lateral":
        return _in_order_m(_lengthened(expected, path), path)
    lines = shapely.linestrings(expected), shapely.linestrings(path)
    return float((shapely.hausdorff_distance if measure == "hausdorff" else shapely.frechet_distance)(*lines))


def length_m(places: Places) -> float:
    """Return the length of a path (K, 2)."""
    return float(np.hypot(*np.diff(places, axis=0).T).sum())


def starts_in_same_direction(expected: Places, path: Places, steps: int) -> bool:
    """Return whether the first steps of a path have the direction of the nearest steps of another."""
    nearest = int(np.argmin(np.hypot(*(expected - path[0]).T)))
    return float(_way(expected, nearest, steps) @ _way(path, 0, steps)) >= 0.0


def _way(places: Places, first: int, steps: int) -> Places:
    """Return (2,) the displacement over so many steps from a position, or over the last ones of the path."""
    first = max(0, min(first, len(places) - 1 - steps))
    return np.asarray(places[min(first + steps, len(places) - 1)] - places[first])


def _in_order_m(line: Places, path: Places) -> float:
    """Return the least distance that keeps each position (N, 2) in turn near a line (K, 2) traversed in order."""
    begins, steps = line[:-1], np.diff(line, axis=0)
    squares = np.maximum((steps**2).sum(axis=1), 1e-18)
    # By step of the line: the largest distance so far, if the previous position is near that step or an earlier one.
    least = np.zeros(len(begins))
    for place in path:
        share = np.clip(((place - begins) * steps).sum(axis=1) / squares, 0.0, 1.0)
        off = np.hypot(*(begins + share[:, None] * steps - place).T)
        least = np.maximum(np.minimum.accumulate(least), off)
    return float(least.min())


def _lengthened(places: Places, path: Places) -> Places:
    """Return a path (N, 2), extended straight before its start and after its end to reach the other positions."""
    far_m = float(np.hypot(*(path[:, None] - places[[0, -1]]).T).max())
    step_m = max(float(np.hypot(*np.diff(places, axis=0).T).max()), far_m / _MOST_STEPS, 1e-9)
    off_m = np.arange(step_m, far_m + 2.0 * step_m, step_m)[:, None]
    # The last step may be short, but has no length 0 unless the path stands still.
    before, after = (
        end + off_m * way / max(float(np.hypot(*way)), 1e-9)
        for end, way in ((places[0], places[0] - places[1]), (places[-1], places[-1] - places[-2]))
    )
    return np.concatenate([before[::-1], places, after])


#: Length of the initial part of a path that gives its direction.
_SETS_OUT_M = 2.0


@dataclass(frozen=True)
class PathDeviation(Check):
    """The follow-up's path deviates from the source's by at most ``tolerance_m``, over the first ``horizon_m``.

    Both paths are cut at the horizon and sampled every ``step_m`` along their length. ``lateral`` ignores their
    lengths: stopping earlier on the same path is no deviation, as long as the path has at least one step. ``hausdorff``
    and ``frechet`` count it, the latter also the order of positions. In a mirror the expected path is mirrored. A
    missing path is a violation, and so is one that starts in another direction. A source whose path stays in place
    leaves ``lateral`` nothing to compare.
    """

    needs: ClassVar[tuple[str, ...]] = ("path",)

    by: str = param("lateral", choices=DISTANCES, help="how the distance of two paths is measured")
    tolerance_m: float = param(0.5, low=0.001, high=50.0, unit="m", help="largest distance")
    horizon_m: float = param(30.0, low=1.0, high=300.0, unit="m", help="length of path that is compared")
    step_m: float = param(0.5, low=0.1, high=10.0, unit="m", help="between the places that are compared")

    def judge(self, source: Output, followup: Output, effects: Effects, bundle: Bundle) -> Judgement:
        """Compare the two paths."""
        assert source.path is not None and followup.path is not None
        before, after = source.path, followup.path
        if len(before.pose) < 2:
            return nothing_to_judge("the source tells no path", "m")
        if not len(after.pose):
            return Judgement(Outcome.VIOLATED, unit="m", lost=1, reason="no path is told any more, as the source did")
        if before.frame_id != after.frame_id:
            reason = f"the source's path is in {before.frame_id}, the follow-up's in {after.frame_id}"
            return Judgement(Outcome.ERROR, reason=reason, unit="m")
        try:
            expected = expected_places(before, effects, bundle)
        except UnknownTransform as error:
            return Judgement(Outcome.ERROR, reason=str(error), unit="m")
        return self._compare(expected, after.pose[:, :2])

    def _compare(self, expected: Places, after: Places) -> Judgement:
        """Compare two paths (K, 2) of one frame."""
        source_goes, goes = (length_m(places) >= self.step_m for places in (expected, after))
        if self.by == "lateral" and not source_goes:
            return nothing_to_judge(f"the source's path is shorter than {self.step_m:g} m", "m")
        if self.by == "lateral" and not goes:
            reason = f"the path is {length_m(after):.2f} m long, shorter than {self.step_m:g} m: it stays where it is"
            return Judgement(Outcome.VIOLATED, unit="m", lost=1, reason=reason)
        before, path = (resampled(places, self.horizon_m, self.step_m) for places in (expected, after))
        if source_goes and goes and not starts_in_same_direction(before, path, ceil(_SETS_OUT_M / self.step_m)):
            return Judgement(Outcome.VIOLATED, unit="m", reason="the path sets out the other way")
        off = apart_m(before, path, self.by)
        return at_most(off, self.tolerance_m, "m", f"the paths lie {off:.3f} m apart ({self.by})")


@dataclass(frozen=True)
class LaneOffsetStable(Check):
    """The path's lateral position ``look_ahead_m`` ahead stays within ``tolerance_m``.

    Ahead and left refer to the path's own frame, whose origin is taken as the vehicle's. In a mirror the expected path
    is mirrored. A follow-up path that is missing, or ends before the look-ahead, is a violation; if the source's path
    ends earlier there is nothing to compare.
    """

    needs: ClassVar[tuple[str, ...]] = ("path",)

    look_ahead_m: float = param(8.0, low=0.0, high=200.0, unit="m", help="how far ahead it is looked at")
    tolerance_m: float = param(0.2, low=0.001, high=10.0, unit="m", help="how far it may move to the side")

    def judge(self, source: Output, followup: Output, effects: Effects, bundle: Bundle) -> Judgement:
        """Compare the two paths at the look-ahead."""
        assert source.path is not None and followup.path is not None
        try:
            before = self._left_m(expected_places(source.path, effects, bundle))
        except UnknownTransform as error:
            return Judgement(Outcome.ERROR, reason=str(error), unit="m")
        after = self._left_m(followup.path.pose[:, :2])
        if before is None:
            reason = f"the source's path does not reach {self.look_ahead_m:g} m ahead"
            return nothing_to_judge(reason, "m")
        if after is None:
            reason = f"the follow-up's path does not reach {self.look_ahead_m:g} m ahead any more"
            return Judgement(Outcome.VIOLATED, bound=self.tolerance_m, unit="m", reason=reason, lost=1)
        reason = (
            f"{self.look_ahead_m:g} m ahead the path is {lateral_text(after, 3)}, expected {lateral_text(before, 3)}"
        )
        return at_most(abs(after - before), self.tolerance_m, "m", reason)

    def _left_m(self, places: Places) -> float | None:
        """Return the lateral position (to the left) of a path (K, 2) at the look-ahead, None if it ends earlier."""
        x, y = places.T
        ahead = np.flatnonzero((x[:-1] <= self.look_ahead_m) & (x[1:] >= self.look_ahead_m))
        if not len(ahead):
            return None
        i = int(ahead[0])
        share = (self.look_ahead_m - x[i]) / max(float(x[i + 1] - x[i]), 1e-9)
        return float(y[i] + share * (y[i + 1] - y[i]))
