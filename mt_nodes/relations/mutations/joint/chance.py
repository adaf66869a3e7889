# SPDX-License-Identifier: Apache-2.0
"""Counter-based random numbers: pure functions of a key and an index, for the noise of every point."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Ints, Singles

Words = npt.NDArray[np.uint64]
Quarters = npt.NDArray[np.uint16]
#: Values of a quarter of a word; a probability below half of one over this never comes up.
QUARTER_VALUES = 1 << 16


def words(key: int, count: int, first: int = 0) -> Words:
    """Return random 64-bit words (count,) for the counters from ``first`` on under a key (finaliser of SplitMix64)."""
    return words_at(key, np.arange(first, first + count, dtype=np.uint64))


def words_at(key: int, counters: Words) -> Words:
    """Return the random words (n,) of some counters (n,), which are overwritten."""
    mixed = counters
    mixed *= np.uint64(0x9E3779B97F4A7C15)
    mixed += np.uint64(key)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed ^= mixed >> np.uint64(shift)
        mixed *= np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    return mixed


def quarters(key: int, count: int, first: int = 0) -> Quarters:
    """Return four independent numbers (count, 4), uniform in 0 to 65,535, for each counter from ``first`` on."""
    return words(key, count, first).view(np.uint16).reshape(count, 4)


def quarters_at(key: int, counters: Ints) -> Quarters:
    """Return the four numbers (n, 4) of some counters (n,)."""
    return words_at(key, counters.astype(np.uint64)).view(np.uint16).reshape(len(counters), 4)


def shares_at(key: int, counters: Ints) -> Floats:
    """Return the four numbers (n, 4) of some counters (n,) in double precision, within 0 to 1: what proofs compute."""
    return (quarters_at(key, counters).astype(np.float64) + 0.5) / QUARTER_VALUES


def unit(quarter: Quarters) -> Singles:
    """Return numbers (n,) within 0 to 1, both excluded, from quarters of words (n,)."""
    share = quarter.astype(np.float32)
    share += np.float32(0.5)
    share *= np.float32(1.0 / QUARTER_VALUES)
    return share


def gaussian(quarter: Quarters) -> Singles:
    """Return normal numbers (n,) of mean 0 and variance 1, within ±4.32, from quarters of words (n,)."""
    return np.asarray(_quantiles().take(quarter))


@lru_cache(maxsize=1)
def _quantiles() -> Singles:
    from scipy import special  # for those who meet bad air

    return np.asarray(special.ndtri((np.arange(QUARTER_VALUES) + 0.5) / QUARTER_VALUES), np.float32)
