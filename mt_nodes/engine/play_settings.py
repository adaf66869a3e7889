# SPDX-License-Identifier: Apache-2.0
"""What is played of recordings, and what a loop over them must know of the stack."""

from __future__ import annotations

from dataclasses import dataclass, field

from mt_nodes.data.verdict import Pair
from mt_nodes.engine.followups import FollowupMaker, FollowupSource, MeteredFollowups
from mt_nodes.engine.judging import Offer
from mt_nodes.engine.processor_time import ProcessorTime
from mt_nodes.engine.schedule import EVERYTHING, Schedule
from mt_nodes.relations.relation import Suite


@dataclass(frozen=True, eq=False)
class PlaySettings:
    """What :class:`~mt_nodes.engine.lockstep.Lockstep` and :class:`~mt_nodes.engine.realtime.Realtime` play.

    Attributes:
        suite, seed: what is offered, and what every draw depends on.
        stateless, publishes_when_empty: of the stack, see :class:`~mt_nodes.stacks.stack.Stack`.
        mode: ``twin``, ``alternate`` or ``two_pass``.
        rate: speed of the realtime pace.
        draws: follow-ups that each relation makes of each bundle.
        only: the one pair that is played, None: all.
        schedule: what is offered on which bundles.
        source_of_followups: makes the follow-ups, None: they are drawn by the seed.
        cpu: takes in what making and judging the follow-ups takes.
    """

    suite: Suite
    seed: int
    stateless: bool
    publishes_when_empty: bool
    mode: str = "twin"
    rate: float = 1.0
    draws: int = 1
    only: Pair | None = None
    schedule: Schedule = EVERYTHING
    source_of_followups: FollowupSource | None = None
    cpu: ProcessorTime = field(default_factory=ProcessorTime)

    @property
    def offers(self) -> tuple[Offer, ...]:
        """What is offered at all."""
        return self.schedule.offers(self.suite, self.draws, self.only)

    def followups(self) -> FollowupSource:
        """Return what makes the follow-ups of one run."""
        source = self.source_of_followups or FollowupMaker(self.suite, self.seed, self.schedule)
        return MeteredFollowups(source, self.cpu)
