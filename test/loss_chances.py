# SPDX-License-Identifier: Apache-2.0
"""How likely a receiver is to lose a weakened return, by integration over its noise: written again for tests."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

#: Noise of 2,000 firings in thresholds, evenly in probability: the threshold is five standard deviations high.
_NOISE = np.array([NormalDist().inv_cdf((i + 0.5) / 2000.0) for i in range(2000)]) / 5.0


def chance_of_loss(nominal: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Return the chance (n,) that reported returns are lost.

    Amplitudes are log-logistic with the shape 2 about what the intensity says (n,), in thresholds, and above 1, as the
    return was reported. With a share (n,) of the light left, a return is lost whose amplitude a, of which n is noise,
    is below 1 after n + share (a - n).
    """
    found = np.empty(len(nominal))
    for i, (about, left) in enumerate(zip(nominal.tolist(), share.tolist(), strict=True)):
        needed = np.maximum((1.0 - (1.0 - left) * _NOISE) / left, 1.0)
        found[i] = np.mean(1.0 - (1.0 + about**-2) / (1.0 + (needed / about) ** 2))
    return found


def unlikely(lost: np.ndarray, chance: np.ndarray) -> bool:
    """Return whether so many losses (n,) are more than five standard deviations off their chances (n,)."""
    off = abs(np.count_nonzero(lost) - chance.sum())
    return bool(off > 5.0 * np.sqrt(np.maximum(chance * (1.0 - chance), 0.0).sum()) + 1.0)
