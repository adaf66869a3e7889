# SPDX-License-Identifier: Apache-2.0
"""A few bytes for each pair of a run, however long it is."""

from __future__ import annotations

from mt_nodes.data.verdict import Pair

#: Bundles are numbered one by one, so that a block of so many fills up; a number far off costs one block.
_BLOCK = 256
_Key = tuple[int, str, str, int]


class PairTable:
    """Maps pairs to values of ``size`` bytes, which must not all be zero: that is what a pair without a value has.

    A dictionary of texts takes some 300 bytes a pair, which a run of a day would feel; this takes ``size``.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._blocks: dict[_Key, bytearray] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __contains__(self, pair: Pair) -> bool:
        return self.get(pair) is not None

    def get(self, pair: Pair) -> bytes | None:
        """Return the value of a pair, None when it has none."""
        key, at = self._place(pair)
        found = bytes(self._blocks[key][at : at + self._size]) if key in self._blocks else b""
        return found if any(found) else None

    def put(self, pair: Pair, value: bytes) -> None:
        """Keep the value of a pair. Raises ValueError: it has another size, or is all zeros."""
        if len(value) != self._size or not any(value):
            raise ValueError(f"got {value!r} for {pair}, expected {self._size} bytes that are not all zero")
        self._count += pair not in self
        key, at = self._place(pair)
        block = self._blocks.setdefault(key, bytearray())
        # Only as long as it must be: many short episodes would fill memory with blocks that are hardly used.
        block.extend(bytes(max(0, at - len(block))))
        block[at : at + self._size] = value

    def forget_before(self, episode: int, bundle: int) -> None:
        """Forget episodes before this one, and the blocks of this one that end before a bundle."""
        block = bundle // _BLOCK
        for key in [key for key in self._blocks if key[0] < episode or (key[0] == episode and 0 <= key[3] < block)]:
            del self._blocks[key]

    def _place(self, pair: Pair) -> tuple[_Key, int]:
        block, row = (-1, 0) if pair.bundle is None else divmod(pair.bundle, _BLOCK)
        return (pair.episode, pair.relation, pair.draw, block), row * self._size
