# SPDX-License-Identifier: Apache-2.0
"""Whether repeats of one thing are larger than repeats of another by more than chance."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

#: More labellings than those of 8 and 8 repeats are not listed.
MOST_REPEATS = 8


def permutation_p(followup: Sequence[float], control: Sequence[float]) -> float:
    """Return the p of an exact one-sided permutation test of the mean, ``followup`` larger than ``control``.

    Both lists have the same length K of at most :data:`MOST_REPEATS`. If the labels mean nothing, each choice of K of
    the 2 K values is as likely as the one made; p is the share with a mean as large (E. J. G. Pitman, Significance
    tests which may be applied to samples from any populations, 1937). Ties count against it. The least p is
    1 / C(2 K, K).
    """
    repeats = len(followup)
    assert repeats == len(control) <= MOST_REPEATS, "both are repeated equally often"
    values = np.array([*followup, *control], dtype=np.float64)
    chosen = np.array(list(itertools.combinations(range(2 * repeats), repeats)))
    sums = values[chosen].sum(axis=1)
    slack = 1e-9 * max(1.0, float(np.abs(values).sum()))
    return float((sums >= sums[0] - slack).mean())


def least_repeats(tests: int, alpha: float) -> int | None:
    """Return how many repeats can reject one of so many tests at all, with Bonferroni's correction; None: too many."""
    return next((k for k in range(2, MOST_REPEATS + 1) if tests / math.comb(2 * k, k) <= alpha), None)
