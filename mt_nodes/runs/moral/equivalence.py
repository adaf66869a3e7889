# SPDX-License-Identifier: Apache-2.0
"""Whether two sorts of scenario are driven alike: equal, unequal or undecided.

Three arms of as many runs each: A, the scenario; A', the scenario again, its initial conditions drawn anew (the control
arm); B, the scenario with one thing changed. Run i of B has the conditions of run i of A where they are *paired*.

equal      B is no farther from A than A' is, but for a margin: the upper bound of the mean of d(A_i, B_i) less
           d(A_i, A'_i) is at most ``factor`` times the 95 % quantile of d(A, A'). To find no difference is not enough.
unequal    a permutation test tells B from A', and the lower bound of that mean is above 0.
undecided  neither, or A and A' can be told apart: then something else than chance differs between the arms.

The factor is to be settled before the runs. Bounds are Student's, one-sided: Schuirmann's two one-sided tests (J.
Pharmacokinet. Biopharm. 15, 1987), of which a distance, which cannot be too small, needs one. They take means of n
triples as nearly normal: an assumption, since distances are skewed; the permutation test has none.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats
from mt_nodes.base.stats.intervals import ALPHA

FACTOR = 1.5
QUANTILE = 0.95
#: Level of the test of A against A': a false alarm there costs an answer, so it is rarer than one in the answers.
GUARD = 0.01
#: As many arrangements at most are tried one by one; where there are more, as many are drawn.
_MOST = 16384


def energy_p(distances: Floats, first: int, *, seed: int = 0) -> float:
    """Return the p-value of the permutation test that two samples are of one distribution.

    The statistic is that of energy, 2 mean d(A, B) - mean d(A, A) - mean d(B, B) (Székely and Rizzo, Testing for equal
    distributions in high dimension, InterStat 5, 2004). Exact where there are at most 16384 arrangements, else with as
    many drawn ones, itself counted. No two arms of n runs can get below 2 / C(2 n, n).
    ``distances``: (N, N) symmetric. ``first``: the first so many rows are the first sample.
    Raises ValueError: a distance is not finite, or a sample is empty.
    """
    count = len(distances)
    if not 0 < first < count:
        raise ValueError(f"got samples of {first} and {count - first}, expected one or more each")
    if distances.shape != (count, count) or not np.isfinite(distances).all():
        raise ValueError(f"got distances {distances.shape}, some perhaps endless; expected N x N finite numbers")
    weights = _relabelled(count, first, seed)
    energy = -np.einsum("pi,pi->p", weights @ distances, weights)
    rounding = 1e-9 * float(np.abs(distances).max())
    return float((energy >= energy[0] - rounding).mean())


def _relabelled(count: int, first: int, seed: int) -> Floats:
    """Return (P, count) weights of both samples for each choice of a first sample, as it is first."""
    weights = np.full(count, 1.0 / (count - first))
    weights[:first] = -1.0 / first
    if (ways := math.comb(count, first)) > _MOST:
        drawn = np.random.default_rng(seed).permuted(np.tile(weights, (_MOST, 1)), axis=1)
        drawn[0] = weights
        return np.asarray(drawn)
    chosen = np.array(list(itertools.combinations(range(count), first)))
    every = np.full((ways, count), weights[-1])
    np.put_along_axis(every, chosen, weights[0], axis=1)
    return every


@dataclass(frozen=True)
class Likeness:
    """How alike two arms are driven, as p-values that may be corrected for the number of questions.

    Attributes:
        equal: against "B is farther from A than A' is by more than the margin". unequal: against "A and B are driven
            alike, or B is no farther from A than A' is". control_p: of A against A'.
        excess, low, high: mean of d(A_i, B_i) - d(A_i, A'_i) and its one-sided bounds at the usual level, in the unit
            of the distances. margin: what ``high`` must not exceed for "equal".
    """

    equal: float
    unequal: float
    control_p: float
    excess: float
    low: float
    high: float
    margin: float

    @property
    def guarded(self) -> bool:
        """Whether the control arm differs from the first: then more than chance differs, and nothing is to be said."""
        return self.control_p <= GUARD


def likeness(distances: Floats, *, factor: float = FACTOR, within: float = math.inf, seed: int = 0) -> Likeness:
    """Return p-values of "equal" and of "unequal", for runs i of B that have the conditions of runs i of A.

    Arms are told apart by the permutation test of B against A', whose conditions are independent of each other: n
    paired runs have 2^n arrangements only, whose p-values no correction for several cases would survive (8 runs: 0.008
    against 0.00016). "Unequal" needs that and Student's test of the mean, so its p-value is the larger of both.
    Raises ValueError: the rows are not three arms of two or more runs, or a distance is not finite.

    Args:
        distances: (3 n, 3 n) of all runs: the n of A, the n of A', the n of B. n is 2 at least.
        within: the margin is this at most, and B_i is "equal" to A_i only if it is no farther away than that, on the
            mean. Without it one run of A that is quite another makes a margin within which anything is equal.
    """
    first, control_runs, other = _arms(distances)
    control, apart = np.concatenate([first, control_runs]), np.concatenate([control_runs, other])
    runs, margin = len(first), min(within, _margin(distances[np.ix_(first, control_runs)], factor))
    pairs = distances[first, other]
    excesses = pairs - distances[first, control_runs]
    separation_p = energy_p(distances[np.ix_(apart, apart)], runs, seed=seed)
    excess, low, high = _mean_bounds(excesses, ALPHA)
    return Likeness(
        equal=max(_student_p(margin - excesses), _student_p(within - pairs) if math.isfinite(within) else 0.0),
        unequal=max(separation_p, _student_p(excesses)),
        control_p=energy_p(distances[np.ix_(control, control)], runs, seed=seed),
        excess=excess,
        low=low,
        high=high,
        margin=margin,
    )


def _arms(distances: Floats) -> npt.NDArray[np.intp]:
    """Return (3, n) the rows of each arm. Raises ValueError: the rows are not three arms of two or more runs."""
    runs, odd = divmod(len(distances), 3)
    if runs < 2 or odd:
        raise ValueError(f"got distances of {len(distances)} runs, expected three arms of as many, two or more each")
    return np.arange(3 * runs).reshape(3, runs)


def _margin(control: Floats, factor: float) -> float:
    return factor * float(np.quantile(control, QUANTILE))


def _student_p(values: Floats) -> float:
    """Return the one-sided p-value against "their mean is 0 at most"; of values that are all alike, 0 or 1."""
    from scipy import stats

    mean, spread = float(values.mean()), float(values.std(ddof=1)) / math.sqrt(len(values))
    if spread <= 1e-12 * (1.0 + abs(mean)):
        return 0.0 if mean > 0.0 else 1.0
    return float(stats.t.sf(mean / spread, len(values) - 1))


def _mean_bounds(values: Floats, alpha: float) -> tuple[float, float, float]:
    """Return a mean and its bounds, each one-sided at a level."""
    from scipy import stats  # heavy, and needed at the end of a run only

    mean = float(values.mean())
    half = float(stats.t.ppf(1.0 - alpha, len(values) - 1)) * float(values.std(ddof=1)) / math.sqrt(len(values))
    return mean, mean - half, mean + half
