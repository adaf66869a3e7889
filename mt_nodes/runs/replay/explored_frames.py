# SPDX-License-Identifier: Apache-2.0
"""The frames of a run that chooses its pairs, and what a request for such a run must be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mt_nodes.base.errors import UsageError
from mt_nodes.base.seeds import generator
from mt_nodes.data.messages import Bundle
from mt_nodes.data.verdict import Pair
from mt_nodes.engine.compatibility import incompatibility
from mt_nodes.engine.judging import Offer, offers
from mt_nodes.engine.plan import EXPLORE_BY, MOST_DRAWS, ReplayRequest
from mt_nodes.engine.schedule import Schedule
from mt_nodes.relations.checks.sequence import SequenceCheck
from mt_nodes.relations.relation import Relation, Suite
from mt_nodes.stacks.stack import Stack

#: All frames are kept in memory, and control and sham are judged on each: a quarter as many as pairs, within these.
LEAST_FRAMES, MOST_FRAMES = 20, 100


class ExploredFrames(Schedule):
    """Offers control and sham on the frames of a run that chooses its pairs, which are played one by one.

    ``frames``: numbers of the bundles of each episode. ``chosen``: how many pairs are to be chosen.
    """

    def __init__(self, frames: Mapping[int, frozenset[int]], chosen: int) -> None:
        super().__init__()
        self.frames, self.chosen = frames, chosen

    @classmethod
    def of(
        cls, request: ReplayRequest, stack: Stack, relations: Sequence[Relation], bundles: Mapping[int, int]
    ) -> ExploredFrames:
        """Draw the frames by the seed of a request, from so many ``bundles`` of each episode.

        No more pairs are chosen than there are different ones.
        Raises UsageError: the request cannot be played so, or there is no bundle.
        """
        _check(request, stack, relations)
        everything = [(episode, index) for episode, count in bundles.items() for index in range(count)]
        if not everything:
            raise UsageError(f"--explore: got no bundle in {', '.join(request.bags)}")
        pairs = request.explore or 0
        count = min(len(everything), max(LEAST_FRAMES, min(MOST_FRAMES, pairs // 4)))
        drawn = generator(request.seed, "explore", 0, None, "frames").choice(len(everything), count, replace=False)
        frames = [everything[i] for i in sorted(drawn.tolist())]
        different = len(frames) * sum(map(draws_of, relations))
        by_episode = {e: frozenset(index for episode, index in frames if episode == e) for e in bundles}
        return cls(by_episode, min(pairs, different))

    def offers(self, suite: Suite, draws: int = 1, only: Pair | None = None) -> tuple[Offer, ...]:
        """Return control and sham; to judge one pair again, what owes it."""
        return offers(suite, only=only) if only else tuple(o for o in offers(suite) if o.relation.role != "relation")

    def wants(self, offer: Offer, bundle: Bundle) -> bool:
        """Tell whether a bundle is among the frames."""
        return bundle.index in self.frames.get(bundle.episode, ())

    def count(self, offer: Offer, episode: int, bundles: int) -> int:
        """Return how many frames an episode has."""
        return len(self.frames.get(episode, ()))


def draws_of(relation: Relation) -> int:
    """Return how many different follow-ups a relation makes of a frame: one where it draws nothing at random."""
    return MOST_DRAWS if any(m.random for m in (*relation.mutate, *relation.baseline)) else 1


def replay_misfit(request: ReplayRequest, stack: Stack, relation: Relation) -> str | None:
    """Say why a relation cannot be judged in a replay, None if it can."""
    misfit = incompatibility(relation, stack, over_topics=request.transport == "ros")
    return misfit or (_explore_misfit(relation, stack) if request.explore and not request.only else None)


def _explore_misfit(relation: Relation, stack: Stack) -> str | None:
    """Say why single pairs of a relation cannot be chosen, None if they can."""
    if isinstance(relation.check, SequenceCheck):
        return f"relation '{relation.id}' judges whole drives; --explore plays single frames"
    if "camera" in stack.topics and any(mutation.draw_history for mutation in relation.mutate):
        return f"relation '{relation.id}' draws by all pictures before a frame; --explore plays single frames"
    return None


def _check(request: ReplayRequest, stack: Stack, relations: Sequence[Relation]) -> None:
    """Refuse a request for an exploration that cannot be made. Raises UsageError: saying what to type instead."""
    if request.explore_by not in EXPLORE_BY:
        raise UsageError(f"--explore-by: got '{request.explore_by}', expected {' or '.join(EXPLORE_BY)}")
    usual = ReplayRequest(bags=())
    for name in ("cases", "draws", "pace", "first_pairs"):
        if getattr(request, name) != getattr(usual, name):
            option = name.replace("_", "-")
            raise UsageError(f"--explore: got --{option} {getattr(request, name)}, too; leave it out: pairs are chosen")
    if request.mode == "two_pass" or not stack.stateless:
        raise UsageError(
            f"--explore: plays single frames in any order; stack '{stack.name}' must be stateless, and --mode twin or "
            "alternate; `mt search` and `mt campaign` take stacks that remember"
        )
    for misfit in (_explore_misfit(relation, stack) for relation in relations):
        if misfit:
            raise UsageError(misfit)
