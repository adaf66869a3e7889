# SPDX-License-Identifier: Apache-2.0
"""Checks of tracks and of the predicted paths of obstacles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np

from mt_nodes.base.arrays import Floats, Mask
from mt_nodes.base.params import param
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle
from mt_nodes.data.outputs import Detections, Output
from mt_nodes.data.perception import PredictedObjects, PredictedPath
from mt_nodes.data.transforms import Matrix, UnknownTransform, move
from mt_nodes.data.verdict import Judgement, Outcome
from mt_nodes.relations.checks.base import at_least, at_most
from mt_nodes.relations.checks.obstacles import Comparison, ObstacleCheck, ObstacleComparison, describe, places

#: Paths of one obstacle, in one frame.
Ways = Sequence[PredictedPath]


@dataclass(frozen=True)
class TracksKept(ObstacleCheck):
    """Each demanded track of the source is in the follow-up, with its id and, within a bound, its velocity.

    Reads ``tracks``; of a stack whose ``detections`` have ids, ``obstacles_kept``, ``track_identity_stable`` and
    ``velocity_stable`` say the same one by one. A track without partner is lost. Ids are compared where both arms give
    one and ``identity`` is set, which demands that numbering depends on what is tracked alone: leave it out for stacks
    with random ids. Velocities are compared over ground; where the source gives one and the follow-up none, it is lost.
    The margin is the share of its bound that the worst velocity leaves.
    """

    needs: ClassVar[tuple[str, ...]] = ("tracks",)
    scored: ClassVar[str] = "tracks"

    by_at_most_mps: float = param(1.0, low=0.01, high=50.0, unit="m/s", help="most that a velocity may change")
    identity: bool = param(True, help="a track must keep its id")

    def judge(self, source: Output, followup: Output, effects: Effects, bundle: Bundle) -> Judgement:
        """Judge one pair of tracks."""
        return self.judge_obstacles((source.tracks, followup.tracks), effects, bundle, self.decide)

    @property
    def what(self) -> str:
        """Name of what is demanded, for people."""
        return "track"

    def decide(self, compared: Comparison) -> Judgement:
        """Judge tracks, ids and velocities, the worst first."""
        lost = compared.demanded & ~compared.matched
        before, after = compared.pairs
        detail: dict[str, object] = {"counts": compared.counts, "lost_at": places(compared.source, lost)}
        if lost.any():
            reason = f"lost {describe(compared.source, lost)}"
            return Judgement(
                Outcome.VIOLATED, None, self.by_at_most_mps, None, "m/s", reason, int(lost.sum()), detail=detail
            )
        switched = (before.track_id != "") & (before.track_id != after.track_id)
        if self.identity and switched.any():
            ids = zip(before.track_id[switched].tolist(), after.track_id[switched].tolist(), strict=True)
            text = ", ".join(f"{a} is {b or '(none)'}" for a, b in list(ids)[:3])
            detail["changed_at"] = places(after, switched)
            reason = f"{describe(before, switched)}: id {text}"
            return Judgement(Outcome.VIOLATED, None, self.by_at_most_mps, None, "m/s", reason, detail=detail)
        return self._velocities(before, after, detail)

    def _velocities(self, before: Detections, after: Detections, detail: dict[str, object]) -> Judgement:
        off = np.hypot(*(after.velocity_mps - before.velocity_mps)[:, :2].T)
        known = np.isfinite(before.velocity_mps[:, :2]).all(axis=1)
        gone = known & ~np.isfinite(off)
        if gone.any():
            reason = f"{describe(before, gone)} has no velocity any more"
            return Judgement(Outcome.VIOLATED, None, self.by_at_most_mps, None, "m/s", reason, detail=detail)
        count = f"{len(before)} tracks kept"
        if not known.any():
            return at_least(
                len(before), len(before), "tracks", f"{count}; the stack gives no velocities", detail=detail
            )
        row = int(np.where(known, off, -1.0).argmax())
        text = f"velocity of {describe(before, np.arange(len(before)) == row)} changed by {off[row]:.2f} m/s"
        detail["changed_at"] = places(after, np.arange(len(off)) == row)
        return at_most(float(off[row]), self.by_at_most_mps, "m/s", f"{text}; {count}", detail=detail)


@dataclass(frozen=True)
class PredictedPathsClose(ObstacleComparison):
    """The predicted path of each demanded obstacle is displaced by at most ``tolerance_m``.

    ``ade`` is the mean and ``fde`` the last displacement over ``horizon_s``, at the times of the source's path (S.
    Pellegrini et al., "You'll Never Walk Alone", ICCV 2009; A. Alahi et al., "Social LSTM", CVPR 2016). The source's
    likeliest path is compared with the follow-up's likeliest or, by ``modes: nearest``, with the closest of those with
    at least ``least_probability`` (as minADE of Argoverse, M.-F. Chang et al., CVPR 2019). An obstacle that has no
    partner, no path any more, or one that ends before the source's, has lost its prediction. A movement of the scene
    carries paths with it. Obstacles whose source has no path of two places are not demanded.
    """

    needs: ClassVar[tuple[str, ...]] = ("predictions",)
    scored: ClassVar[str] = "predictions"

    tolerance_m: float = param(1.0, low=0.001, high=100.0, unit="m", help="largest displacement")
    by: str = param("fde", choices=("ade", "fde"), help="mean displacement, or the last one")
    horizon_s: float = param(3.0, low=0.1, high=30.0, unit="s", help="how far ahead paths are compared")
    modes: str = param("likeliest", choices=("likeliest", "nearest"), help="which of the follow-up's paths is compared")
    least_probability: float = param(0.1, low=0.0, high=1.0, help="of a path that nearest may choose")

    def judge(self, source: Output, followup: Output, effects: Effects, bundle: Bundle) -> Judgement:
        """Judge one pair of predictions."""
        before, after = source.predictions, followup.predictions
        assert before is not None and after is not None
        # Obstacles are sorted before they are compared: their rows stand in place of their ids.
        numbered = _numbered(before), _numbered(after)
        decide = partial(self._displacements, paths=(before, after), effects=effects, bundle=bundle)
        try:
            return self.judge_obstacles(numbered, effects, bundle, decide)
        except UnknownTransform as error:
            return Judgement(Outcome.ERROR, reason=str(error), unit="m")

    @property
    def what(self) -> str:
        """Name of what is demanded, for people."""
        return "obstacle"

    def _displacements(
        self, compared: Comparison, paths: tuple[PredictedObjects, PredictedObjects], effects: Effects, bundle: Bundle
    ) -> Judgement:
        frame_id = compared.source.frame_id
        carry = effects.carry(frame_id, bundle.transforms)
        ways = [_ways(part, frame_id, bundle) for part in paths]
        rows = np.flatnonzero(compared.demanded)
        own = {int(i): _likeliest(self._within_horizon(ways[0][int(compared.source.track_id[i])]), carry) for i in rows}
        demanded = [i for i, path in own.items() if path is not None]
        if not demanded:
            return Judgement(Outcome.NOT_APPLICABLE, reason="the source predicts no path", unit="m")
        off = {}
        for i in demanded:
            partner, path = int(compared.partner[i]), own[i]
            other = ways[1][int(compared.followup.track_id[partner])] if partner >= 0 else ()
            assert path is not None
            off[i] = self._off_m(path, other)
        return self._judgement(compared, off)

    def _judgement(self, compared: Comparison, off: dict[int, float | None]) -> Judgement:
        lost = _mask(len(compared.source), [i for i, value in off.items() if value is None])
        detail = {"counts": compared.counts, "lost_at": places(compared.source, lost)}
        if lost.any():
            reason = f"no path to compare any more of {describe(compared.source, lost)}"
            return Judgement(
                Outcome.VIOLATED, None, self.tolerance_m, None, "m", reason, int(lost.sum()), detail=detail
            )
        known = {i: value for i, value in off.items() if value is not None}
        worst = max(known, key=lambda i: known[i])
        who = describe(compared.source, _mask(len(compared.source), [worst]))
        reason = f"{self.by.upper()} of {who} is {known[worst]:.2f} m; {len(known)} paths compared"
        return at_most(known[worst], self.tolerance_m, "m", reason, detail=detail)

    def _within_horizon(self, ways: Ways) -> Ways:
        """Return the paths with at least two places up to the horizon: others have no displacement to measure."""
        return [path for path in ways if len(path.time_s) > 1 and path.time_s[1] <= self.horizon_s + 1e-6]

    def _off_m(self, path: PredictedPath, others: Ways) -> float | None:
        """Return the displacement between a path and the one that it is compared with; None without such a path."""
        if self.modes == "likeliest":
            others = [best] if (best := _likeliest(others, None)) is not None else []
        else:
            others = [other for other in others if other.probability >= self.least_probability]
        apart = [value for other in others if (value := self._apart_m(path, other)) is not None]
        return min(apart, default=None)

    def _apart_m(self, path: PredictedPath, other: PredictedPath) -> float | None:
        """Return the displacement at the times of a path; None where the other one ends before."""
        rows = path.time_s <= self.horizon_s + 1e-6
        times = path.time_s[rows]
        if len(other.time_s) < 2 or other.time_s[-1] < times[-1] - 1e-6 or other.time_s[0] > times[0] + 1e-6:
            return None
        at = np.column_stack([np.interp(times, other.time_s, column) for column in other.place_m.T])
        off = np.hypot(*(at - path.place_m[rows]).T)
        return float(off.mean() if self.by == "ade" else off[-1])


def _mask(count: int, rows: Sequence[int]) -> Mask:
    mask = np.zeros(count, dtype=bool)
    mask[list(rows)] = True
    return mask


def _numbered(predictions: PredictedObjects) -> Detections:
    names = np.array([str(i) for i in range(len(predictions))], dtype=np.str_)
    return replace(predictions.objects, track_id=names)


def _ways(predictions: PredictedObjects, frame_id: str, bundle: Bundle) -> list[Ways]:
    """Return the paths of each obstacle in a frame."""
    matrix = bundle.transforms.lookup(frame_id, predictions.frame_id)
    return [[path._replace(place_m=_flat(matrix, path.place_m)) for path in rows] for rows in predictions.paths]


def _flat(matrix: Matrix, xy: Floats) -> Floats:
    return np.asarray(move(matrix, np.column_stack([xy, np.zeros(len(xy))]))[:, :2])


def _likeliest(ways: Ways, carry: Matrix | None) -> PredictedPath | None:
    """Return the path of the highest probability, the first of several, moved with the scene; None without one."""
    best = max((path for path in ways if len(path.time_s) > 1), key=lambda path: path.probability, default=None)
    if best is None or carry is None:
        return best
    return best._replace(place_m=_flat(carry, best.place_m))
