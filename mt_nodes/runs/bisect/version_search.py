# SPDX-License-Identifier: Apache-2.0
"""Searches the first bad version among versions of which some cannot be tested, by as few tests as it can."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum

from mt_nodes.base.errors import UsageError


class VersionState(str, Enum):
    """What a test says of a version; ``SKIP``: it cannot be tested, or its test decides nothing."""

    GOOD = "good"
    BAD = "bad"
    SKIP = "skip"


class VersionGraph:
    """Versions between a good one, which is not among them, and a bad one, which is the last.

    ``parents``: of each version, those among the versions; parents come before their children. A list of values is a
    graph in which each has the one before as its parent.
    """

    def __init__(self, parents: Mapping[str, Sequence[str]]) -> None:
        """Take in the versions. Raises UsageError: there is none."""
        if not parents:
            raise UsageError("there is no version between good and bad; expected good to be older than bad")
        self.versions = tuple(parents)
        self._place = {version: place for place, version in enumerate(self.versions)}
        self._ancestors: list[int] = []
        for place, of in enumerate(parents.values()):
            mask = 1 << place
            for parent in of:
                mask |= self._ancestors[self._place[parent]]
            self._ancestors.append(mask)

    @classmethod
    def in_a_row(cls, versions: Sequence[str]) -> VersionGraph:
        """Return the graph of versions that follow each other."""
        return cls({version: versions[max(0, place - 1) : place] for place, version in enumerate(versions)})

    def place(self, version: str) -> int:
        """Return the place of a version in the order in which parents come before children."""
        return self._place[version]

    def up_to(self, version: str) -> int:
        """Return the set of a version and all its ancestors, a bit for each place."""
        return self._ancestors[self._place[version]]


class VersionSearch:
    """Halves the versions that may be the first bad one, as ``git bisect`` does.

    It takes for granted that whatever descends from a bad version is bad. Then the first bad version is always among
    ``candidates``.
    """

    def __init__(self, graph: VersionGraph) -> None:
        self._graph = graph
        self._candidates = graph.up_to(graph.versions[-1])
        self._skipped: set[str] = set()
        #: The good version that was found last, empty while there is none but the one that the search began with.
        self.last_good = ""

    @property
    def candidates(self) -> tuple[str, ...]:
        """Versions that may be the first bad one, in order; one if it is found."""
        return tuple(self._of(self._candidates))

    @property
    def steps_to_come(self) -> int:
        """About how many tests are still needed if every version can be tested: the logarithm to base 2."""
        return (self._candidates.bit_count() - 1).bit_length()

    def mark(self, version: str, state: VersionState) -> None:
        """Take in what a test said of a version that :meth:`next` returned."""
        if state is VersionState.SKIP:
            self._skipped.add(version)
        elif state is VersionState.BAD:
            self._candidates &= self._graph.up_to(version)
        else:
            self._candidates &= ~self._graph.up_to(version)
            self.last_good = version

    def next(self) -> str | None:
        """Return the version to test; None where the first bad one is found, or no more can be tested.

        It is the one that leaves fewest candidates whatever its test says. Beside versions that cannot be tested others
        often cannot be tested either, so one that lies further from them is preferred, up to a loss of half.
        """
        count = self._candidates.bit_count()
        skipped = [self._graph.place(version) for version in self._skipped & {*self._of(self._candidates)}]
        ranks = {place: rank for rank, place in enumerate(_places(self._candidates))}
        away = sorted(ranks[place] for place in skipped)
        best: tuple[int, str] | None = None
        for version in self._of(self._candidates):
            below = (self._graph.up_to(version) & self._candidates).bit_count()
            if below == count or version in self._skipped:
                continue
            gain = min(below, count - below)
            near = min((abs(ranks[self._graph.place(version)] - rank) for rank in away), default=count)
            score = min(gain, 2 * near)
            if best is None or score > best[0]:
                best = score, version
        return None if best is None else best[1]

    def _of(self, mask: int) -> Iterator[str]:
        return (self._graph.versions[place] for place in _places(mask))


def _places(mask: int) -> Iterator[int]:
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest
