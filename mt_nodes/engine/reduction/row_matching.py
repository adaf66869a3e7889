# SPDX-License-Identifier: Apache-2.0
"""How one sequence of rows became another: which rows were changed, removed, added."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Mask, Rows

Bytes = npt.NDArray[Any]
"""(N,) opaque items of some bytes each."""
_NONE = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class RowEdit:
    """The difference between ``before`` and ``after``, in atoms that can be left out one by one.

    Atoms are numbered: changed rows, then added ones, both in the order of ``after``, then removed ones.
    ``before``, ``after``: how many rows there are. ``partner``: (after,) the row of ``before`` that a row of ``after``
    is, changed or not; -1 of an added one. ``changed``, ``added``: rows of ``after``. ``removed``: rows of ``before``.
    """

    before: int
    after: int
    partner: Rows
    changed: Rows
    added: Rows
    removed: Rows

    @property
    def atoms(self) -> int:
        """How many atoms there are."""
        return len(self.changed) + len(self.added) + len(self.removed)

    @classmethod
    def aligned(cls, before: Bytes, after: Bytes) -> RowEdit:
        """Compare row by row; both have as many."""
        rows = np.arange(len(after))
        return cls(len(before), len(after), rows, np.flatnonzero(before != after), _NONE, _NONE)

    @classmethod
    def matched(cls, before: Bytes, after: Bytes, place: tuple[Bytes, Bytes] | None = None) -> RowEdit:
        """Find the rows of ``after`` in ``before``: first those that are alike, then those of the same ``place``.

        Of several that are alike the first is the first.
        """
        partner = np.full(len(after), -1, dtype=np.int64)
        old, new = _pairs(before, after)
        partner[new] = old
        changed = _NONE
        if place is not None:
            left, free = np.flatnonzero(partner < 0), np.setdiff1d(np.arange(len(before)), old)
            at, changed = _pairs(place[0][free], place[1][left])
            changed = left[changed]
            partner[changed] = free[at]
        removed = np.setdiff1d(np.arange(len(before)), partner[partner >= 0])
        return cls(len(before), len(after), partner, np.sort(changed), np.flatnonzero(partner < 0), removed)

    def rows(self, mask: Mask) -> Rows:
        """Return what remains of ``after`` when only some atoms are kept, as rows of ``before`` then ``after``.

        Rows of ``after`` keep their order; a removed one that comes back stands behind the one it stood behind.
        ``mask``: (atoms,) which.
        """
        changed, added, removed = np.split(mask, np.cumsum([len(self.changed), len(self.added)]))
        taken = self.before + np.arange(self.after)
        back = self.changed[~changed]
        taken[back] = self.partner[back]
        stays = np.ones(self.after, dtype=bool)
        stays[self.added[~added]] = False
        restored = self.removed[~removed]
        order = np.argsort(np.concatenate([np.arange(self.after)[stays], self._behind(restored)]), kind="stable")
        return np.asarray(np.concatenate([taken[stays], restored])[order])

    def _behind(self, rows: Rows) -> Floats:
        """Return where rows of ``before`` belong in ``after``: half a row behind their last neighbour that is there."""
        known = np.flatnonzero(self.partner >= 0)
        known = known[np.argsort(self.partner[known], kind="stable")]
        last = np.searchsorted(self.partner[known], rows) - 1
        return np.where(last >= 0, known[last] + 0.5, -0.5) if len(known) else np.full(len(rows), -0.5)


def _pairs(before: Bytes, after: Bytes) -> tuple[Rows, Rows]:
    """Return rows of both that are alike, each used once, the n-th with the n-th."""
    _, group = np.unique(np.concatenate([before, after]), return_inverse=True)
    was, now = (_numbered(part) for part in np.split(group.reshape(-1), [len(before)]))
    _, old, new = np.intersect1d(was, now, assume_unique=True, return_indices=True)
    return old, new


def _numbered(group: Rows) -> Rows:
    """Return group and how-many-th of it as one number a row; both are below 2³¹."""
    order = np.argsort(group, kind="stable")
    in_order = group[order].astype(np.int64)
    numbered = np.empty(len(group), dtype=np.int64)
    numbered[order] = in_order * 2**31 + np.arange(len(group)) - np.searchsorted(in_order, in_order, side="left")
    return numbered
