# SPDX-License-Identifier: Apache-2.0
"""A process that makes follow-ups for the suite: one after the other, through shared memory, until nobody asks."""

from __future__ import annotations

import pickle
import signal
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mt_nodes.base import plugins
from mt_nodes.base.environment import keep_freed_memory
from mt_nodes.base.errors import MtError
from mt_nodes.data.bundle_transport import result_pickler, source_unpickler
from mt_nodes.data.messages import Bundle
from mt_nodes.data.verdict import Outcome
from mt_nodes.engine.followups import FollowupMaker, FollowupPlan
from mt_nodes.engine.judging import Offer
from mt_nodes.relations.pipeline import Begun, DerivedFollowup
from mt_nodes.relations.relation import Suite
from mt_nodes.stacks.shared_channel import SharedChannel


@dataclass(frozen=True)
class WorkerSetup:
    """What a process is told first: ``content`` is a pickled :data:`Content`, whose classes may be of plugins."""

    plugins: tuple[Path, ...]
    content: bytes

    @classmethod
    def of(cls, suite: Suite, seed: int, offers: Sequence[Offer]) -> WorkerSetup:
        """Return what makes the follow-ups of a suite's offers."""
        return cls(plugins.directories(), pickle.dumps((suite, seed, tuple(offers))))

    def load(self) -> tuple[Suite, int, tuple[Offer, ...]]:
        """Return suite, seed and offers, with the classes of plugins loaded."""
        plugins.add_directories(self.plugins)
        return pickle.loads(self.content)  # type: ignore[no-any-return]


@dataclass(frozen=True, eq=False)
class FollowupRequest:
    """One follow-up to make. ``offer``: its number. ``wanted``: otherwise it is made to warm up, and forgotten."""

    offer: int
    bundle: Bundle
    begun: Begun
    wanted: bool = True


@dataclass(frozen=True, eq=False)
class FollowupReply:
    """What :class:`FollowupPlan` says, without the offer. ``used``: topics whose intensities were looked at."""

    derived: DerivedFollowup | None
    outcome: Outcome | None
    reason: str
    made_ms: float
    used: frozenset[str]

    def plan(self, offer: Offer, source: Bundle) -> FollowupPlan:
        """Return the plan of an offer for a bundle, as if it had been made here."""
        for cloud in source.clouds:
            cloud.reading.used |= cloud.topic in self.used
        return FollowupPlan(offer, self.derived, self.outcome, self.reason, self.made_ms)


def main(end: int, incoming: int, outgoing: int) -> None:
    """Serve the descriptors of a socket and of shared memory to read from and to write to."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the suite's: it ends us
    keep_freed_memory()
    channel = SharedChannel(socket.socket(fileno=end), outgoing, incoming)
    suite, seed, offers = channel.receive().load()
    maker = FollowupMaker(suite, seed)
    channel.send(None)  # ready
    while True:
        try:
            request: FollowupRequest = channel.receive(source_unpickler)
        except EOFError:
            return
        reply: Any = _reply(maker, offers[request.offer], request)
        channel.send(reply if request.wanted else None, result_pickler(request.bundle))


def _reply(maker: FollowupMaker, offer: Offer, request: FollowupRequest) -> FollowupReply:
    bundle = request.bundle
    try:
        plan = maker.of_another(offer, bundle, request.begun)
    except MtError as error:
        plan = FollowupPlan(offer, None, Outcome.ERROR, f"cannot be made: {error}")
    used = frozenset(cloud.topic for cloud in bundle.clouds if cloud.reading.used)
    return FollowupReply(plan.derived, plan.outcome, plan.reason, plan.made_ms, used)
