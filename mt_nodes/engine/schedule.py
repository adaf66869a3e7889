# SPDX-License-Identifier: Apache-2.0
"""What a run offers on which bundles: everything on each, unless cases are planned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mt_nodes.data.messages import Bundle, Episode
from mt_nodes.data.verdict import Pair
from mt_nodes.engine.case_plan import PlannedCase
from mt_nodes.engine.judging import Offer, offers
from mt_nodes.relations.relation import Relation, Suite

#: Episode, relation and draw; control and sham, which are about the frames of all cases, are None.
_Key = tuple[int, str | None, int]
_Frames = dict[int, tuple[PlannedCase, ...]]


class Schedule:
    """Says of every offer and bundle whether the run is about them; see :data:`EVERYTHING`.

    With cases a relation is offered on the frames of its own, with its draw; control and sham are on all frames of all
    cases. What lies between cases is played only where a stack remembers it, and judged by nobody.
    ``cases``: with ids of relations in place of names of files; none: everything is offered on every bundle.
    """

    #: Pairs that are chosen while the run goes on, beside what is offered on every bundle.
    chosen = 0

    def __init__(self, cases: Sequence[PlannedCase] = ()) -> None:
        self._all = not cases
        self._drawn = tuple(dict.fromkeys((case.relation, case.draw) for case in cases if case.relation))
        self._frames: dict[_Key, _Frames] = {}
        for case in cases:
            for key in ((case.bag, case.relation, case.draw), (case.bag, None, 0)):
                frames = self._frames.setdefault(key, {})
                frames.update({frame: (*frames.get(frame, ()), case) for frame in case.frames})
        self._last = {key: max(frames) for key, frames in self._frames.items()}

    def offers(self, suite: Suite, draws: int = 1, only: Pair | None = None) -> tuple[Offer, ...]:
        """Return what is offered at all; ``only`` leaves nothing but the one that owes this pair."""
        if self._all or only is not None:
            return offers(suite, draws, only)
        background = [offer for offer in offers(suite) if offer.relation.role != "relation"]
        known = {relation.id: relation for relation in suite.relations}
        return (*background, *(Offer(known[name], (known[name],), draw) for name, draw in self._drawn))

    def about(self, offers: Sequence[Offer], episode: Episode) -> Sequence[Offer]:
        """Return those of some offers that have anything in an episode."""
        if self._all:
            return offers
        number = next((bundle.episode for bundle in episode()), -1)
        return [offer for offer in offers if _key(offer, number) in self._frames]

    def wants(self, offer: Offer, bundle: Bundle) -> bool:
        """Tell whether a follow-up of a bundle is offered."""
        return self._all or bool(self._cases(offer, bundle))

    def until_end(self, offer: Offer, episode: Episode) -> Iterator[Bundle]:
        """Yield the bundles of an episode up to the last that an offer is about."""
        for bundle in episode():
            yield bundle
            if not self._all and bundle.index >= self._last.get(_key(offer, bundle.episode), -1):
                return

    def count(self, offer: Offer, episode: int, bundles: int) -> int:
        """Return on how many of the bundles of an episode an offer is made."""
        return bundles if self._all else len(self._frames.get(_key(offer, episode), ()))

    def first(self, offer: Offer, bundle: Bundle) -> int | None:
        """Return the first bundle of the stretch that a bundle is of; None: that is the episode.

        What persists over a case begins with it. Of control and sham, which change nothing, it is the episode.
        """
        cases = self._cases(offer, bundle) if offer.relation.role == "relation" else ()
        return cases[0].first if cases else None

    def names(self, offer: Offer, bundle: Bundle) -> tuple[str, ...]:
        """Return the names of the cases that a bundle is of, as far as an offer is about them."""
        return tuple(dict.fromkeys(case.name for case in self._cases(offer, bundle)))

    def facts(self, offer: Offer, judge: Relation, bundle: Bundle) -> Mapping[str, Any]:
        """Return what is known of the scene for a relation that judges: that of its own case, if there is one."""
        cases = self._cases(offer, bundle)
        own = [case for case in cases if case.relation == judge.id]
        return next((case.facts for case in (*own, *cases)), {})

    def _cases(self, offer: Offer, bundle: Bundle) -> tuple[PlannedCase, ...]:
        return self._frames.get(_key(offer, bundle.episode), {}).get(bundle.index, ())


def _key(offer: Offer, episode: int) -> _Key:
    background = offer.relation.role != "relation"
    return (episode, None, 0) if background else (episode, offer.relation.id, offer.draw)


#: Every relation on every bundle, of which nothing is known beforehand.
EVERYTHING = Schedule()
