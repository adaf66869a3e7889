# SPDX-License-Identifier: Apache-2.0
"""What a standby holds of one topic: the messages that the relay before it has not sent yet."""

from __future__ import annotations

from collections import deque
from collections.abc import Set

#: A relay that has sent none of so many is no relay any more.
MOST = 100


class Backlog:
    """Messages in the order in which they came, told apart by the instant at which they were published, ns."""

    def __init__(self) -> None:
        self._held: deque[tuple[int, bytes, float]] = deque(maxlen=MOST)

    def __len__(self) -> int:
        return len(self._held)

    def add(self, published_ns: int, data: bytes, claimed: Set[int], came_s: float = 0.0) -> None:
        """Hold one more; what the other relay has claimed meanwhile, and what came before that, is let go."""
        self._held.append((published_ns, data, came_s))
        self._let_go(claimed)

    def oldest_s(self, claimed: Set[int]) -> float | None:
        """Return when the first came that the other relay has not claimed, monotonic; None where it is not behind."""
        self._let_go(claimed)
        return self._held[0][2] if self._held else None

    def unsent(self, claimed: Set[int]) -> list[tuple[int, bytes]]:
        """Return, and no longer hold, what the other relay has left, in its order."""
        self._let_go(claimed)
        left = [(when_ns, data) for when_ns, data, _ in self._held]
        self._held.clear()
        return left

    def _let_go(self, claimed: Set[int]) -> None:
        last = max((at for at, (when, *_) in enumerate(self._held) if when in claimed), default=-1)
        for _ in range(last + 1):
            self._held.popleft()
