# SPDX-License-Identifier: Apache-2.0
"""Counter-based random numbers: pure functions of a key and an index, for the noise of every point."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]


def words(key: int, count: int, first: int = 0) -> Words:
    """Return random 64-bit words (count,) for the counters from ``first`` on under a key (finaliser of SplitMix64)."""
    mixed = np.arange(first, first + count, dtype=np.uint64)
    mixed *= np.uint64(0x9E3779B97F4A7C15)
    mixed += np.uint64(key)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed ^= mixed >> np.uint64(shift)
        mixed *= np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    return mixed


def normals(key: int, count: int, first: int = 0) -> npt.NDArray[np.float32]:
    """Return nearly normal numbers (count,) of mean 0 and variance 1, within ±3.47: sums of four uniform ones."""
    quarters = words(key, count, first).view(np.uint16).reshape(count, 4)
    total = quarters[:, 0].astype(np.float32)
    for i in range(1, 4):
        total += quarters[:, i]
    total -= np.float32(2 * 65535)
    total *= np.float32(np.sqrt(3.0) / 65536.0)
    return total
