# SPDX-License-Identifier: Apache-2.0
"""What became of every bundle that a node alone mutated: ``/mt/ledger``, written beside the thread that sends."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.publisher import Publisher
from std_msgs.msg import String

from mt_nodes.base.background import Background
from mt_nodes.base.errors import PluginError
from mt_nodes.data.messages import Bundle
from mt_nodes.data.verdict import SCHEMA, Outcome, Pair
from mt_nodes.engine.message_digests import sha256_of_followup
from mt_nodes.nodes import qos
from mt_nodes.relations.pipeline import DerivedFollowup

#: A reliable subscriber tells within some 5 ms that it got a message; who does not is not waited for longer.
TAKEN_S = 0.02
#: What a node that ends waits for, lest its last lines end with it.
FLUSH_S = 2.0

Proof = Callable[[], str | None]


@dataclass(frozen=True)
class OfferedInstant:
    """One instant that a mutator offers: the relation whose follow-up it gets, and when it came, system time in ns."""

    relation: str
    bundle: Bundle
    came_ns: int

    @classmethod
    def now(cls, relation: str, bundle: Bundle, came_s: float | None) -> OfferedInstant:
        """Return what is offered of a bundle; ``came_s``: when its leading message came, monotonic."""
        waited_s = 0.0 if came_s is None else time.monotonic() - came_s
        return cls(relation, bundle, time.time_ns() - round(1e9 * waited_s))


class LedgerTopic:
    """One line a bundle, in their order. Proof, hash and line are a thread's work, and a few bundles' late at most.

    A node that sent a follow-up can take the next cloud at once, and whoever listens gets it first: proving begins
    when it was acknowledged, since both would ask for the same processor.
    ``node``: whose topic it is. ``judged_for``: the relation that control is offered for, too; every line names it.
    """

    def __init__(self, node: Node, judged_for: str) -> None:
        self._node, self._judged_for = node, judged_for
        self._lines = node.create_publisher(String, "mt/ledger", qos.JOURNAL)
        self._background = Background()

    def sent(
        self, offered: OfferedInstant, derived: DerivedFollowup, proof: Proof, through: Publisher, sent_ns: int
    ) -> None:
        """Prove what goes out at a system time, and tell of it, or why it is INVALID."""
        self._background.do(self._prove, offered, derived, proof, through, sent_ns)

    def report_unjudged(self, offered: OfferedInstant, outcome: Outcome, reason: str) -> None:
        """Tell of a pair that is not to be judged, so that it is accounted for all the same."""
        self._background.do(self._publish_unjudged, offered, outcome, reason)

    def then(self, work: Callable[..., None], *args: Any) -> None:
        """Do something when all that was given before is told."""
        self._background.do(work, *args)

    def close(self) -> None:
        """Return when everything is told and heard; raise what went wrong."""
        try:
            self._background.wait()
            self._lines.wait_for_all_acked(Duration(seconds=FLUSH_S))
        finally:
            self._background.close()

    def _prove(
        self, offered: OfferedInstant, derived: DerivedFollowup, proof: Proof, through: Publisher, sent_ns: int
    ) -> None:
        through.wait_for_all_acked(Duration(seconds=TAKEN_S))
        try:
            broken = proof()
        except PluginError as error:
            self._publish_unjudged(offered, Outcome.ERROR, str(error))
            return
        if broken:
            self._publish_unjudged(offered, Outcome.INVALID, broken)
        elif not derived.followup.bundles:
            self._tell(offered, outcome=Outcome.SKIPPED.value, reason="the follow-up sends nothing")
        else:
            delay_ns, first = derived.followup.bundles[0]
            answers = {"followup_ns": first.stamp_ns, "delay_ns": delay_ns, "sent_ns": sent_ns}
            about = {"effects": derived.effects.as_plain(), "sha256": sha256_of_followup(derived.followup)}
            self._tell(offered, **answers, **about)

    def _publish_unjudged(self, offered: OfferedInstant, outcome: Outcome, reason: str) -> None:
        log = self._node.get_logger()
        text = f"bundle {offered.bundle.index} is {outcome.value}: {reason}"
        if outcome in (Outcome.INVALID, Outcome.ERROR):
            log.error(text)
        else:
            log.warning(text, throttle_duration_sec=5.0)
        self._tell(offered, outcome=outcome.value, reason=reason)

    def _tell(self, offered: OfferedInstant, **what: Any) -> None:
        bundle = offered.bundle
        line = {
            "schema": SCHEMA,
            "type": "followup",
            "pair": str(Pair(bundle.episode, bundle.index, offered.relation)),
            "relation": offered.relation,
            "judged_for": self._judged_for,
            "stamp_ns": bundle.stamp_ns,
            "came_ns": offered.came_ns,
        }
        self._lines.publish(String(data=json.dumps(line | what)))
