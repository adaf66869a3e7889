# SPDX-License-Identifier: Apache-2.0
"""What is left of a pair's input when it was made small, kept so that it can be made again: window and atoms."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from mt_nodes.base.arrays import Mask
from mt_nodes.base.errors import InfrastructureError
from mt_nodes.data.messages import Bundle
from mt_nodes.data.verdict import Pair
from mt_nodes.engine.plan import ReplayRequest
from mt_nodes.engine.reduction.difference import Difference
from mt_nodes.relations.mutations.base import Followup
from mt_nodes.relations.pipeline import DerivedFollowup

FILE = "reduction.npz"


@dataclass(frozen=True, eq=False)
class Reduction:
    """Window and follow-up of a pair.

    ``first``, ``end``: first bundle that a stack which remembers is given, and the one behind the last. ``mask``: (N,)
    which atoms of the difference between both inputs the follow-up keeps; None: it is whole.
    """

    first: int
    end: int
    mask: Mask | None = None

    @property
    def whole(self) -> bool:
        """Whether the follow-up is that of the relation."""
        return self.mask is None or bool(self.mask.all())

    def of(self, derived: DerivedFollowup, difference: Difference | None) -> DerivedFollowup:
        """Return a follow-up with nothing but the atoms that are kept; its effects stay those of the mutation.

        ``derived``: the whole follow-up. ``difference``: of it, see :func:`difference_of`.
        Raises InfrastructureError: it differs in another number of atoms than when it was made small.
        """
        if self.mask is None:
            return derived
        if difference is None or len(difference.kinds) != len(self.mask):
            atoms = 0 if difference is None else len(difference.kinds)
            raise InfrastructureError(
                f"the follow-up differs from the source by {atoms} atoms, {len(self.mask)} when it was made small; "
                "it needs the same bag, versions and CPU type"
            )
        reduced = Followup(((0, difference.reduced(self.mask)),), derived.followup.effects)
        return replace(derived, followup=reduced)

    def save(self, path: Path) -> None:
        """Write it."""
        mask = np.empty(0, dtype=bool) if self.mask is None else self.mask
        np.savez(path, span=np.array([self.first, self.end]), kept=mask, whole=np.array(self.mask is None))

    @classmethod
    def of_request(cls, request: ReplayRequest) -> Reduction | None:
        """Return what a request says is left of the input of its one pair, None where that is whole."""
        return cls.load(Path(request.shrunk)) if request.shrunk else None

    @classmethod
    def load(cls, path: Path) -> Reduction:
        """Read what :meth:`save` wrote. Raises InfrastructureError: it is missing or damaged."""
        try:
            with np.load(path, allow_pickle=False) as data:
                first, end = data["span"].tolist()
                return cls(first, end, None if data["whole"] else data["kept"].astype(bool))
        except (OSError, ValueError, KeyError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
            raise InfrastructureError(f"{path}: cannot read what `mt shrink` left of the input: {error}") from error


def reducing(request: ReplayRequest) -> Callable[[DerivedFollowup, Bundle], DerivedFollowup]:
    """Return what makes the follow-up of the one pair of a request small, and leaves every other as it is.

    It is given the follow-up and the bundle of the bag.
    """
    left, only = Reduction.of_request(request), Pair.parse(request.only) if request.only else None

    def reduced(derived: DerivedFollowup, source: Bundle) -> DerivedFollowup:
        if left is None or only is None or source.index != only.bundle:
            return derived
        return left.of(derived, difference_of(derived, source))

    return reduced


def difference_of(derived: DerivedFollowup, source: Bundle) -> Difference | None:
    """Return what tells a follow-up from what the source arm is given; None of one that is no one bundle in its place.

    ``source``: bundle of the bag.
    """
    sent: Sequence[tuple[int, Bundle]] = derived.followup.bundles
    if len(sent) != 1 or sent[0][0] != 0:
        return None
    given = source if derived.baseline is None else derived.baseline.followup.first
    return Difference.between(given, sent[0][1])
