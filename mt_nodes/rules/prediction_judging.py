# SPDX-License-Identifier: Apache-2.0
"""AutoMT's judging: predictions of several stacks for a case, relative to the spread between the stacks.

A case has several frames. For each stack m the median over the frames counts, of speed v and of steering a (positive to
the left), for the source s and the follow-up f. The bound B, one for speed and one for steering, is the spread of the
stacks' medians on the source. Each behaviour is judged by its own quantity, as in the paper's second research question
(arXiv 2510.19438):

============  ===================================
slow_down     v_s - v_f must be more than B_v
keep_current  |v_f - v_s| at most B_v, |a_f - a_s| at most B_a
turn_left     a_f - a_s must be more than B_a
turn_right    a_s - a_f must be more than B_a
============  ===================================

The paper says variance, whose unit differs from that of the bounded quantity; standard deviation is the default here,
and the paper's reading an option. The paper does not say which predictions give the spread: here those on the source.
``stop`` is judged as slow_down, as in the paper.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.base.errors import UsageError, suggest
from mt_nodes.data.verdict import Judgement, Outcome
from mt_nodes.relations.checks.base import at_most, nothing_to_judge

SPEED, STEERING = "m/s", "rad"
#: Standard deviation of a normal distribution per median absolute deviation.
_MAD_SCALE = 1.4826
#: Share of the control arm's changes that its own bound must cover, and the least number of changes.
_COVERED, LEAST_CONTROLS = 0.95, 20
#: "More than a bound" means by at least this.
_MORE = 1e-9


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predictions of stacks for the frames of one case.

    ``speed_mps``, ``steering_rad``: (M, T) of M stacks and T frames; NaN if missing.
    """

    speed_mps: Floats
    steering_rad: Floats

    def __post_init__(self) -> None:
        if self.speed_mps.shape != self.steering_rad.shape or self.speed_mps.ndim != 2:
            raise ValueError(f"got speeds {self.speed_mps.shape}, steering {self.steering_rad.shape}; expected (M, T)")

    @property
    def medians(self) -> tuple[Floats, Floats]:
        """Speed and steering (M,) of each stack, NaN if it has none in any frame."""
        return _median(self.speed_mps), _median(self.steering_rad)


@dataclass(frozen=True)
class Bounds:
    """Largest differences that need no reason; ``how`` gives their origin."""

    speed_mps: float
    steering_rad: float
    how: str


def _median(rows: Floats) -> Floats:
    known = np.isfinite(rows)
    filled = [
        np.median(row[known_row]) if known_row.any() else np.nan for row, known_row in zip(rows, known, strict=True)
    ]
    return np.array(filled, dtype=np.float64)


def _mad(values: Floats) -> float:
    return _MAD_SCALE * float(np.median(np.abs(values - np.median(values))))


SPREADS: dict[str, Callable[[Floats], float]] = {
    "std": lambda values: float(np.std(values)),
    "variance": lambda values: float(np.var(values)),
    "mad": _mad,
}
"""How far several numbers are apart: standard deviation, variance (the paper's), median absolute deviation."""


def spread_bounds(source: Predictions, kind: str = "std") -> Bounds:
    """Return bounds from the spread of stacks on the source, of those that predict the quantity.

    Raises UsageError: there is no such kind, or fewer than two stacks predict a quantity that some stack predicts.
    """
    if kind not in SPREADS:
        raise UsageError(f"bound '{kind}': there is none of this name{suggest(kind, SPREADS)}")
    spreads = []
    for medians, name in zip(source.medians, ("speed", "steering"), strict=True):
        known = medians[np.isfinite(medians)]
        if len(known) == 1:
            raise UsageError(f"bound '{kind}': one stack tells {name}, expected two or more; take the control arm's")
        spreads.append(SPREADS[kind](known) if len(known) else math.nan)
    return Bounds(spreads[0], spreads[1], f"{kind} of {len(source.speed_mps)} stacks on the source")


def control_bounds(changes: Floats) -> Bounds:
    """Return bounds for one stack from its changes without a reason: the control arm's.

    ``changes``: (N, 2) of speed and steering, follow-up minus source, one per case; the 95 % quantile of their absolute
    values counts, the next larger value if it lies between two.
    Raises UsageError: there are fewer than :data:`LEAST_CONTROLS`, too few for that quantile.
    """
    rows = np.abs(np.asarray(changes, dtype=np.float64).reshape(-1, 2))
    rows = rows[np.isfinite(rows).all(axis=1)]
    if len(rows) < LEAST_CONTROLS:
        raise UsageError(
            f"bound 'control': got {len(rows)} cases of the control arm, expected {LEAST_CONTROLS} or more"
        )
    speed, steering = np.quantile(rows, _COVERED, axis=0, method="higher").tolist()
    return Bounds(speed, steering, f"{100 * _COVERED:g} % of {len(rows)} cases of the control arm")


def judge(behaviour: str, source: Predictions, followup: Predictions, bounds: Bounds) -> list[Judgement]:
    """Return the judgement of each stack for one case, in order.

    A stack with a quantity for the source and not for the follow-up violates; one with none for the source, or too slow
    to slow down by more than the bound, leaves nothing to judge.
    Raises UsageError: there is no such behaviour. ValueError: the two have different stacks.
    """
    if behaviour not in _JUDGES:
        raise UsageError(f"behaviour '{behaviour}': nothing judges it{suggest(behaviour, _JUDGES)}")
    (speed, steering), (new_speed, new_steering) = source.medians, followup.medians
    rows = zip(speed.tolist(), new_speed.tolist(), steering.tolist(), new_steering.tolist(), strict=True)
    return [_JUDGES[behaviour](bounds, *row) for row in rows]


def _slower(bounds: Bounds, speed: float, new_speed: float, steering: float, new_steering: float) -> Judgement:
    if speed <= bounds.speed_mps:
        return nothing_to_judge(f"drives {speed:.2f} m/s, no more than the bound {bounds.speed_mps:.2f} m/s", SPEED)
    return _more_than("speed", speed, new_speed, -1.0, bounds.speed_mps, SPEED)


def _turns(
    side: float, bounds: Bounds, speed: float, new_speed: float, steering: float, new_steering: float
) -> Judgement:
    return _more_than("steering", steering, new_steering, side, bounds.steering_rad, STEERING)


def _starts(bounds: Bounds, speed: float, new_speed: float, steering: float, new_steering: float) -> Judgement:
    if speed > bounds.speed_mps:
        return nothing_to_judge(f"drives {speed:.2f} m/s, more than the bound {bounds.speed_mps:.2f} m/s", SPEED)
    return _more_than("speed", speed, new_speed, 1.0, bounds.speed_mps, SPEED)


def _keeps(bounds: Bounds, speed: float, new_speed: float, steering: float, new_steering: float) -> Judgement:
    return _first_violated(
        _stays("speed", speed, new_speed, bounds.speed_mps, SPEED),
        _stays("steering", steering, new_steering, bounds.steering_rad, STEERING),
    )


def _stays_behind(bounds: Bounds, speed: float, new_speed: float, steering: float, new_steering: float) -> Judgement:
    fastest = max(speed, new_speed) if math.isfinite(new_speed) else new_speed
    return _first_violated(
        _stays("speed", speed, fastest, bounds.speed_mps, SPEED),
        _stays("steering", steering, new_steering, bounds.steering_rad, STEERING),
    )


def _first_violated(*parts: Judgement) -> Judgement:
    decided = [part for part in parts if part.outcome.decided]
    violated = [part for part in decided if part.outcome is Outcome.VIOLATED]
    return (violated or decided or parts)[0]


def _more_than(name: str, before: float, after: float, sign: float, bound: float, unit: str) -> Judgement:
    """Judge that a quantity changes by more than a bound in one direction."""
    if (nothing := _missing(name, before, after, unit)) is not None:
        return nothing
    change = sign * (after - before)
    margin = change - bound
    way = {
        ("speed", 1.0): "rises",
        ("speed", -1.0): "falls",
        ("steering", 1.0): "goes to the left",
        ("steering", -1.0): "goes to the right",
    }
    reason = (
        f"{name} was {before:.3f}, is {after:.3f} {unit}: {way[name, sign]} by {change:.3f}, asked: over {bound:.3f}"
    )
    if margin >= _MORE:
        return Judgement(Outcome.HOLDS, change, bound, margin, unit=unit, reason=reason)
    return Judgement(Outcome.VIOLATED, change, bound, min(margin, -_MORE), unit=unit, reason=reason)


def _stays(name: str, before: float, after: float, bound: float, unit: str) -> Judgement:
    if (nothing := _missing(name, before, after, unit)) is not None:
        return nothing
    return at_most(abs(after - before), bound, unit, f"{name} was {before:.3f}, is {after:.3f} {unit}")


def _missing(name: str, before: float, after: float, unit: str) -> Judgement | None:
    if not math.isfinite(before):
        return nothing_to_judge(f"no {name} is told for the source", unit)
    if not math.isfinite(after):
        return Judgement(Outcome.VIOLATED, reason=f"no {name} is told any more", unit=unit, lost=1)
    return None


_JUDGES: Mapping[str, Callable[[Bounds, float, float, float, float], Judgement]] = {
    "slow_down": _slower,
    "stop": _slower,
    "give_way": _slower,
    "keep_distance": _slower,
    "keep_current": _keeps,
    "stay_behind": _stays_behind,
    "start_moving": _starts,
    "turn_left": partial(_turns, 1.0),
    "turn_right": partial(_turns, -1.0),
}
