# SPDX-License-Identifier: Apache-2.0
"""How far two samples differ: Vargha and Delaney's effect size, with the test of Mann and Whitney."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

#: From which distance of A12 from 0.5 on an effect is called large, medium or small: Vargha and Delaney (2000).
MAGNITUDES = ((0.21, "large"), (0.14, "medium"), (0.06, "small"))


@dataclass(frozen=True)
class EffectSize:
    """How far one sample lies above another.

    ``a12``: probability that a value of the one is larger than one of the other, ties counting half: 0.5 is no effect.
    ``p``: two-sided, of the Mann-Whitney U test; 1 if all values are equal.
    """

    a12: float
    p: float

    @property
    def magnitude(self) -> str:
        """The effect in a word."""
        away = abs(self.a12 - 0.5)
        return next((word for least, word in MAGNITUDES if away >= least - 1e-12), "negligible")


def effect_size(one: Sequence[float], other: Sequence[float]) -> EffectSize:
    """Return how far one sample lies above another.

    A12 is Vargha and Delaney, *A critique and improvement of the CL common language effect size statistics of McGraw
    and Wong*, Journal of Educational and Behavioral Statistics 25(2), 2000; the test is scipy's, exact without ties.
    Raises ValueError: a sample is empty.
    """
    if not one or not other:
        raise ValueError(f"got samples of {len(one)} and {len(other)}, expected at least one value each")
    from scipy.stats import mannwhitneyu

    a12 = sum((x > y) + 0.5 * (x == y) for x in one for y in other) / (len(one) * len(other))
    if len({*one, *other}) == 1:
        return EffectSize(0.5, 1.0)
    return EffectSize(a12, float(mannwhitneyu(one, other, alternative="two-sided").pvalue))
