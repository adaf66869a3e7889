# SPDX-License-Identifier: Apache-2.0
"""What is offered before all else, or alone: some pairs, and what a stack that remembers must be given before them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from mt_nodes.data.messages import Bundle, Episode
from mt_nodes.data.verdict import Pair
from mt_nodes.engine.judging import Offer, offers
from mt_nodes.engine.plan import ReplayRequest
from mt_nodes.engine.schedule import Schedule
from mt_nodes.relations.relation import Suite


class FirstPairs(Schedule):
    """Offers some pairs of a run and no others; they come out as they would in the whole run.

    ``pairs``: of relations, not of control or sham. ``remembers``: whether the stack does: it is given every follow-up
    of the episode before. ``background``: whether control and sham are offered on the bundles of the pairs, too.
    """

    def __init__(self, pairs: Collection[Pair], remembers: bool, *, background: bool = False) -> None:
        super().__init__()
        self._remembers, self._background = remembers, background
        self._bundles_by_offer: dict[tuple[int, str, int], set[int | None]] = {}
        for pair in pairs:
            self._bundles_by_offer.setdefault((pair.episode, pair.relation, int(pair.draw)), set()).add(pair.bundle)

    @classmethod
    def of(cls, request: ReplayRequest, *, remembers: bool) -> FirstPairs:
        """Return what a request has judged first; alone, where it wants no others."""
        return cls([Pair.parse(name) for name in request.first_pairs], remembers, background=request.only_first)

    def offers(self, suite: Suite, draws: int = 1, only: Pair | None = None) -> tuple[Offer, ...]:
        """Return what any of the pairs is of."""
        episodes = {episode for episode, *_ in self._bundles_by_offer}
        return tuple(offer for offer in offers(suite, draws) if any(self._bundles(offer, e) for e in episodes))

    def about(self, offers: Sequence[Offer], episode: Episode) -> Sequence[Offer]:
        """Return those of some offers that have a pair in an episode."""
        number = next((bundle.episode for bundle in episode()), -1)
        return [offer for offer in offers if self._bundles(offer, number)]

    def wants(self, offer: Offer, bundle: Bundle) -> bool:
        """Tell whether a follow-up of a bundle is offered."""
        bundles = self._bundles(offer, bundle.episode)
        return None in bundles or bundle.index in bundles or (self._remembers and bundle.index < _last(bundles))

    def until_end(self, offer: Offer, episode: Episode) -> Iterator[Bundle]:
        """Yield the bundles of an episode up to the last that any of the pairs is of."""
        for bundle in episode():
            bundles = {
                n for (number, *_), some in self._bundles_by_offer.items() if number == bundle.episode for n in some
            }
            if not bundles:
                return
            yield bundle
            if None not in bundles and bundle.index >= _last(bundles):
                return

    def count(self, offer: Offer, episode: int, bundles: int) -> int:
        """Return on how many of the bundles of an episode an offer is made."""
        numbers = self._bundles(offer, episode)
        if None in numbers:
            return bundles
        return min(bundles, _last(numbers) + 1 if self._remembers else len(numbers))

    def _bundles(self, offer: Offer, episode: int) -> set[int | None]:
        if offer.relation.role == "relation":
            return self._bundles_by_offer.get((episode, offer.relation.id, offer.draw), set())
        keys = (key for key in self._bundles_by_offer if self._background and (key[0], key[2]) == (episode, offer.draw))
        return {bundle for key in keys for bundle in self._bundles_by_offer[key]}


def _last(numbers: Collection[int | None]) -> int:
    return max((number for number in numbers if number is not None), default=-1)
