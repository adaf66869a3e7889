# SPDX-License-Identifier: Apache-2.0
"""Checks of an obstacle that both arms detect: its box, class, velocity, confidence and track."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import param
from mt_nodes.data.outputs import Detections
from mt_nodes.data.verdict import Judgement, Outcome
from mt_nodes.relations.checks.base import at_least, at_most, nothing_to_judge
from mt_nodes.relations.checks.obstacles import Comparison, ObstacleCheck, describe, places


@dataclass(frozen=True)
class BoxStable(ObstacleCheck):
    """Position, yaw and size of each demanded obstacle with a partner stay within bounds.

    If the mutation moves the scene, the box is compared with its expected position, yaw and size: equivariance.
    Position is over ground; size is the worst of length, width and height. The yaw of a box about as wide as long means
    nothing and is not compared; opposite headings are equal unless ``headed``. The margin is given as the share of its
    bound that the worst deviation takes.
    """

    position_m: float = param(0.5, low=0.001, high=10.0, unit="m", help="farthest that a centre may move")
    yaw_rad: float = param(0.2, low=0.001, high=np.pi, unit="rad", help="most that a box may turn")
    size_m: float = param(0.5, low=0.001, high=10.0, unit="m", help="most that a side may change")
    headed: bool = param(False, help="yaw tells front from back")
    least_elongation: float = param(1.5, low=1.0, high=10.0, help="length over width from which yaw is compared")

    def decide(self, compared: Comparison) -> Judgement:
        """Find the worst deviation relative to its bound."""
        before, after = compared.pairs
        if not len(before):
            return nothing_to_judge("no demanded obstacle has a partner", "of its bound")
        off = self._off(before, after)
        shares = np.column_stack([off[name] / bound for name, (bound, _) in self._bounds.items()])
        row, column = np.unravel_index(int(shares.argmax()), shares.shape)
        share, name = float(shares[row, column]), list(off)[column]
        bound, unit = self._bounds[name]
        worst = f"{name} of {describe(before, np.arange(len(before)) == row)} is off by {off[name][row]:.3g} {unit}"
        return Judgement(
            Outcome.VIOLATED if share > 1.0 else Outcome.HOLDS,
            measured=share,
            bound=1.0,
            margin=1.0 - share,
            unit="of its bound",
            reason=f"{worst}, the bound is {bound:g} {unit}",
            detail={
                "counts": compared.counts,
                "worst": {f"{n}_{self._bounds[n][1]}": round(float(v.max()), 4) for n, v in off.items()},
            },
        )

    @property
    def _bounds(self) -> dict[str, tuple[float, str]]:
        return {"position": (self.position_m, "m"), "yaw": (self.yaw_rad, "rad"), "size": (self.size_m, "m")}

    def _off(self, before: Detections, after: Detections) -> dict[str, Floats]:
        """Return the deviations (K,) by name."""
        period = 2.0 * np.pi if self.headed else np.pi
        turned = np.abs(np.mod(after.yaw_rad - before.yaw_rad + period / 2.0, period) - period / 2.0)
        longer = [b.size_m[:, 0] >= self.least_elongation * b.size_m[:, 1] for b in (before, after)]
        return {
            "position": np.hypot(*(after.center_m - before.center_m)[:, :2].T),
            "yaw": np.where(longer[0] & longer[1], turned, 0.0),
            "size": np.abs(after.size_m - before.size_m).max(axis=1),
        }


@dataclass(frozen=True)
class ClassStable(ObstacleCheck):
    """Each demanded obstacle with a partner keeps its class.

    A lost obstacle has no class: ``obstacles_kept`` judges that.
    """

    unknown_agrees: bool = param(False, help="'unknown' agrees with every class")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.per_category:
            raise UsageError("per_category pairs obstacles of one class only: no change of class could be seen")

    def decide(self, compared: Comparison) -> Judgement:
        """Compare the classes of partners."""
        before, after = compared.pairs
        if not len(before):
            return nothing_to_judge("no demanded obstacle has a partner", "obstacles")
        changed = before.label != after.label
        if self.unknown_agrees:
            changed &= (before.label != "unknown") & (after.label != "unknown")
        wrong = int(np.count_nonzero(changed))
        became = f", now {', '.join(after.label[changed][:3].tolist())}"
        return at_most(
            wrong,
            0,
            "obstacles",
            describe(before, changed) + became if wrong else f"all {len(before)} keep their class",
            detail={"counts": compared.counts, "changed_at": places(after, changed)},
        )


@dataclass(frozen=True)
class VelocityStable(ObstacleCheck):
    """The velocity of each demanded obstacle with a partner stays within a bound.

    Velocities are compared over ground, as the stack gives them: a radar's are the radial part. Where one arm gives
    none, there is nothing to compare; a lost obstacle has none: ``obstacles_kept`` judges that.
    """

    by_at_most_mps: float = param(1.0, low=0.01, high=50.0, unit="m/s", help="most that a velocity may change")

    def decide(self, compared: Comparison) -> Judgement:
        """Compare the velocities of partners."""
        before, after = compared.pairs
        off = np.hypot(*(after.velocity_mps - before.velocity_mps)[:, :2].T) if len(before) else np.empty(0)
        known = np.isfinite(off)
        if not known.any():
            reason = "the stack gives no velocities" if len(before) else "no demanded obstacle has a partner"
            return nothing_to_judge(reason, "m/s")
        row = int(np.where(known, off, -1.0).argmax())
        measured, margin = float(off[row]), self.by_at_most_mps - float(off[row])
        text = f"velocity of {describe(before, np.arange(len(before)) == row)} changed by {measured:.2f} m/s"
        return Judgement(
            Outcome.VIOLATED if margin < 0.0 else Outcome.HOLDS,
            measured=measured,
            bound=self.by_at_most_mps,
            margin=margin,
            unit="m/s",
            reason=f"{text}, the bound is {self.by_at_most_mps:g} m/s",
            detail={"counts": compared.counts, "changed_at": places(after, np.arange(len(off)) == row)},
        )


@dataclass(frozen=True)
class ConfidenceNotRaised(ObstacleCheck):
    """The scores of the demanded obstacles with partners do not rise, on average or individually.

    Only obstacles that both arms detect are compared, so that losing uncertain ones does not raise the average.
    """

    by_at_most: float = param(0.05, low=0.0, high=1.0, help="rise of the score that is still none")
    of: str = param("mean", choices=("mean", "each"), help="the average of all rises, or the largest")

    def decide(self, compared: Comparison) -> Judgement:
        """Compare the scores of partners."""
        before, after = compared.pairs
        if not len(before):
            return nothing_to_judge("no demanded obstacle has a partner", "score")
        if (before.score == 1.0).all() and (after.score == 1.0).all():
            return nothing_to_judge("every score is 1: the stack gives none", "score")
        rise = after.score - before.score
        measured = float(rise.mean() if self.of == "mean" else rise.max())
        whose = "" if self.of == "mean" else f" of {describe(before, np.arange(len(rise)) == rise.argmax())}"
        margin = self.by_at_most - measured
        return Judgement(
            Outcome.VIOLATED if margin < 0.0 else Outcome.HOLDS,
            measured=measured,
            bound=self.by_at_most,
            margin=margin,
            unit="score",
            reason=f"the {self.of if not whose else 'score'}{whose} of {len(rise)} obstacles rose by {measured:+.3f}",
            detail={"counts": compared.counts, "mean": [round(float(d.score.mean()), 4) for d in (before, after)]},
        )


@dataclass(frozen=True)
class TrackIdentityStable(ObstacleCheck):
    """Each demanded obstacle that has a partner has the same track id as in the source.

    Both arms have processed the same frames of the episode, so an id that switches, moves to another obstacle or is new
    in one arm only differs from the other's. It demands that track numbering depends on the detections and nothing
    else. It does not see a switch that both arms make alike: a check gets one instant, not the frames before.
    """

    def decide(self, compared: Comparison) -> Judgement:
        """Compare the ids of partners."""
        before, after = compared.pairs
        if not len(before) or not (before.track_id != "").any():
            reason = "no demanded obstacle has a partner" if not len(before) else "the stack gives no track ids"
            return nothing_to_judge(reason, "tracks")
        changed = (before.track_id != "") & (before.track_id != after.track_id)
        wrong, bound = int(np.count_nonzero(changed)), int(np.count_nonzero(before.track_id != ""))
        ids = [
            f"{a or '(none)'} for {b}" for a, b in zip(after.track_id[changed], before.track_id[changed], strict=True)
        ]
        return at_least(
            bound - wrong,
            bound,
            "tracks",
            f"{describe(before, changed)}: id {', '.join(ids[:3])}" if wrong else f"all {bound} keep their id",
            detail={"counts": compared.counts, "changed_at": places(after, changed)},
        )
