# SPDX-License-Identifier: Apache-2.0
"""Which of several arms to pull next so as to see most that nobody has seen before.

The index is that of Good-UCB: Bubeck, Ernst and Garivier, "Optimal Discovery with Probabilistic Expert Advice", Journal
of Machine Learning Research 14 (2013), 601-623. For arms of which no two find the same items, and an ``exploration``
large enough, what it finds in t pulls of K arms falls short of the best strategy by O(sqrt(K t log t)) in expectation.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import numpy as np

#: Chosen on other drives than those that it was measured on; the paper's proof asks for more, its experiments for less.
EXPLORATION = 0.1


class Discovery:
    """What the pulls of some arms have found, and what each arm may still find.

    ``arms``: their number. ``exploration``: weight of the bonus of arms that were pulled seldom.
    """

    def __init__(self, arms: int, exploration: float = EXPLORATION) -> None:
        self._exploration = exploration
        self._pulls = np.zeros(arms, dtype=np.int64)
        self._once = np.zeros(arms)
        #: Item -> its arm and weight while it was seen once, None when it was seen again.
        self._seen: dict[Hashable, tuple[int, float] | None] = {}

    def take(self, arm: int, items: Mapping[Hashable, float]) -> None:
        """Take in a pull of an arm: the items that it found, each with its weight."""
        self._pulls[arm] += 1
        for item, weight in items.items():
            if item not in self._seen:
                self._seen[item] = arm, weight
                self._once[arm] += weight
            elif (before := self._seen[item]) is not None:
                self._once[before[0]] -= before[1]
                self._seen[item] = None

    def unseen(self) -> np.ndarray:
        """Return the weight of new items to expect of the next pull of each arm (K,), of one never pulled infinity.

        Good and Turing's estimate: what was seen once by this arm and by no other, over its pulls.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self._pulls > 0, self._once / self._pulls, np.inf)

    def choose(self, arms: Sequence[int]) -> int:
        """Return which of some arms to pull next: the one with the greatest index, of equals the first."""
        pulls = np.maximum(self._pulls, 1)
        bonus = np.sqrt(np.log(4.0 * max(1, int(self._pulls.sum()))) / pulls)
        index = self.unseen() + self._exploration * bonus
        return arms[int(np.argmax(index[list(arms)]))]
