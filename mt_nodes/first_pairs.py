# SPDX-License-Identifier: Apache-2.0
"""What is offered before all else: some pairs, and what a stack that remembers must be given before them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from mt_nodes.engine import Offer, offers
from mt_nodes.frames import Bundle, Episode
from mt_nodes.relations import Suite
from mt_nodes.schedule import Schedule
from mt_nodes.verdict import Pair


class FirstPairs(Schedule):
    """Offers some pairs of a run and no others; they come out as they would in the whole run.

    Args:
        pairs: of relations, not of control or sham.
        remembers: whether the stack does: it is given every follow-up of the episode before.
    """

    def __init__(self, pairs: Collection[Pair], remembers: bool) -> None:
        super().__init__()
        self._remembers = remembers
        self._wanted: dict[tuple[int, str, int], set[int | None]] = {}
        for pair in pairs:
            self._wanted.setdefault((pair.episode, pair.relation, int(pair.draw)), set()).add(pair.bundle)

    def offers(self, suite: Suite, draws: int = 1, only: Pair | None = None) -> tuple[Offer, ...]:
        """Return what any of the pairs is of."""
        wanted = {(relation, draw) for _, relation, draw in self._wanted}
        return tuple(offer for offer in offers(suite, draws) if (offer.relation.id, offer.draw) in wanted)

    def about(self, offers: Sequence[Offer], episode: Episode) -> Sequence[Offer]:
        """Return those of some offers that have a pair in an episode."""
        number = next((bundle.episode for bundle in episode()), -1)
        return [offer for offer in offers if self._bundles(offer, number)]

    def wants(self, offer: Offer, bundle: Bundle) -> bool:
        """Tell whether a follow-up of a bundle is offered."""
        wanted = self._bundles(offer, bundle.episode)
        return None in wanted or bundle.index in wanted or (self._remembers and bundle.index < _last(wanted))

    def until_end(self, offer: Offer, episode: Episode) -> Iterator[Bundle]:
        """Yield the bundles of an episode up to the last that any of the pairs is of."""
        for bundle in episode():
            wanted = {n for (number, *_), some in self._wanted.items() if number == bundle.episode for n in some}
            if not wanted:
                return
            yield bundle
            if None not in wanted and bundle.index >= _last(wanted):
                return

    def _bundles(self, offer: Offer, episode: int) -> set[int | None]:
        return self._wanted.get((episode, offer.relation.id, offer.draw), set())


def _last(wanted: Collection[int | None]) -> int:
    return max((number for number in wanted if number is not None), default=-1)
