# SPDX-License-Identifier: Apache-2.0
"""``ros2 run mt_nodes monitor``: judges the outputs of two arms while they run.

An output is paired with the input of its stamp, of the same lap of a looped bag, that went out before it arrived and
within the deadline. Control is judged by the same check. Silence of the follow-up arm is a violation only where control
before and after it was answered: else the machine may have lost the answer.
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from std_msgs.msg import String

from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import param
from mt_nodes.base.process_clock import process_time_s
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle
from mt_nodes.data.outputs import Output
from mt_nodes.data.transforms import TransformTree, load_transforms
from mt_nodes.data.verdict import Outcome, Pair, Verdict
from mt_nodes.engine import judging
from mt_nodes.engine.arrival import AHEAD_S, Arrivals, AwaitedAnswer
from mt_nodes.engine.judging import Answer, Engine, Offer
from mt_nodes.engine.silent_followups import NOT_COUNTED, PairAnswers, SilentFollowups
from mt_nodes.nodes import qos
from mt_nodes.nodes.frame_taps import FrameTaps
from mt_nodes.nodes.managed_node import ManagedNode, ManagedParameters
from mt_nodes.nodes.node_main import run_node
from mt_nodes.nodes.output_listener import OutputListener
from mt_nodes.nodes.spinning_context import SpinningContext, plain_node
from mt_nodes.relations.checks.sequence import SequenceCheck
from mt_nodes.relations.relation import CONTROL, Relation, load_relation, of_stack, refuse_baseline
from mt_nodes.stacks.stack import Stack, load_stack


@dataclass(frozen=True)
class MonitorParameters(ManagedParameters):
    """What the node is told."""

    relation: str = param("noise_outside_roi_1000", help="what is judged; name or .yaml file")
    stack: str = param("reference_detector", help="whose outputs are heard; name or .yaml file")
    source_domain: int = param(-1, low=-1, high=232, help="ROS domain of the source arm; -1: this one")
    followup_domain: int = param(-1, low=-1, high=232, help="ROS domain of the follow-up arm; -1: this one")
    source_prefix: str = param("", help="put before the source arm's topics")
    followup_prefix: str = param("", help="put before the follow-up arm's topics")
    transforms: str = param("", help="YAML file of transforms, where live /tf does not give them")


class StampedArrivals(Arrivals):
    """The outputs of one arm, fed by somebody else; without a stamp, nothing tells here what they answer."""

    def __init__(self, stack: Stack) -> None:
        super().__init__(stack.answers, stack.match, 0.0, AHEAD_S, stack.deadline_s)

    def put(self, role: str, stamp_ns: int | None, payload: Any) -> None:
        """Take an output in, unless it has no stamp."""
        if stamp_ns is not None:
            super().put(role, stamp_ns, payload)


@dataclass(eq=False)
class Waiting:
    """One line of the ledger, and what both arms are to answer."""

    line: dict[str, Any]
    tickets: tuple[AwaitedAnswer, AwaitedAnswer]

    @property
    def control(self) -> bool:
        """Whether the follow-up is the source."""
        return bool(self.line["relation"] == CONTROL)


class Monitor(ManagedNode):
    """Hears the ledger and both arms; publishes /mt/verdicts when both have answered or the deadline has passed."""

    def __init__(self) -> None:
        super().__init__("monitor")
        self._given = self.parameters(MonitorParameters)
        self.begin()

    def open(self) -> None:
        """Listen to the ledger and to both arms."""
        given = self._given
        self._stack = load_stack(given.stack)
        self._relation: Relation = of_stack(load_relation(given.relation), self._stack.traits)
        refuse_baseline(self._relation, "monitor")
        if self._relation.check is None:
            raise UsageError(f"monitor: relation '{self._relation.id}' has no check of its own")
        if isinstance(self._relation.check, SequenceCheck):
            raise UsageError(
                f"monitor: relation '{self._relation.id}' judges whole episodes, and this node knows no end of them; "
                "use `mt replay` or `mt live`"
            )
        if self._stack.match != "stamp":
            raise UsageError(
                f"monitor: stack '{self._stack.name}' says match: {self._stack.match}, and this node pairs by stamp; "
                "use `mt live`"
            )
        self._control = load_relation(CONTROL)
        fixed = load_transforms(Path(given.transforms)) if given.transforms else TransformTree()
        self._frames = FrameTaps(self, fixed, motion=False)
        self._contexts: list[SpinningContext] = []
        self._arms = (
            self._listen("source", given.source_domain, given.source_prefix),
            self._listen("followup", given.followup_domain, given.followup_prefix),
        )
        self._pending: deque[Waiting] = deque()
        self._silent: SilentFollowups[Waiting] = SilentFollowups()
        self._verdicts = self.create_publisher(String, "mt/verdicts", qos.JOURNAL)
        self.create_subscription(String, "mt/ledger", self._offered, qos.JOURNAL)
        # The wall's time: deadlines pass when /clock stands still, at the end of a bag.
        self.create_timer(0.02, self._judge_due, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def close(self) -> None:
        """Leave the arms' domains, too."""
        for context in self._contexts:
            context.close()

    def _listen(self, arm: str, domain: int, prefix: str) -> StampedArrivals:
        node: Node = self
        if domain != -1:
            self._contexts.append(SpinningContext(domain))
            node = self._contexts[-1].add(plain_node, f"mt_monitor_{arm}")
        arrivals = StampedArrivals(self._stack)
        listener = OutputListener(
            node, self._stack.outputs, lambda topic: prefix + topic, arrivals, **self._stack.reading
        )
        self.create_timer(1.0, listener.publisher_counts, clock=Clock(clock_type=ClockType.STEADY_TIME))
        return arrivals

    def _offered(self, message: String) -> None:
        line = json.loads(message.data)
        # The ledger of a replay in this domain has no came_ns: its pairs are judged by the replay itself.
        if not self.active or "came_ns" not in line or line["judged_for"] != self._relation.id:
            return
        (source, followup), came_ns, stamp_ns = self._arms, line["came_ns"], line["stamp_ns"]
        lap, came_s = Pair.parse(line["pair"]).episode, process_time_s() - max(0, time.time_ns() - came_ns) / 1e9
        awaited = source.expect(stamp_ns, lap, came_s)
        if "outcome" in line:
            offer, bundle = self._offer(line), self._bundle(line)
            self._tell(Engine(False).without_followup(offer, bundle, Outcome(line["outcome"]), line["reason"]))
            return
        sent_s = came_s + (line["sent_ns"] - came_ns) / 1e9
        self._pending.append(Waiting(line, (awaited, followup.expect(line["followup_ns"], lap, sent_s))))

    def _judge_due(self) -> None:
        now_s = process_time_s()
        while self._pending and not self._awaits(self._pending[0]):
            pair = self._pending.popleft()
            silence_may_count = self._stack.publishes_when_empty
            self._judge(self._silent.take(self._answers_of(pair), now_s) if silence_may_count else [(pair, False)])
        self._judge(self._silent.expire(now_s))

    def _awaits(self, pair: Waiting) -> bool:
        return any(arm.lacks(ticket) for arm, ticket in zip(self._arms, pair.tickets, strict=True))

    def _answers_of(self, pair: Waiting) -> PairAnswers[Waiting]:
        source, followup = (arm.complete(ticket) for arm, ticket in zip(self._arms, pair.tickets, strict=True))
        for arm, ticket in zip(self._arms, pair.tickets, strict=True):
            arm.close(ticket)  # what one lap of a bag was judged by is no answer of the next
        # What the next lap cut short was not silent until its deadline.
        cut = pair.tickets[1].until_s < pair.tickets[1].sent_s + self._stack.deadline_s
        return PairAnswers(pair, pair.control, source, followup or (cut and not pair.control))

    def _judge(self, pairs: Sequence[tuple[Waiting, bool]]) -> None:
        """Judge pairs, each with whether silence of the follow-up arm counts."""
        for pair, counts in pairs:
            why = f"no answer within {self._stack.deadline_s:g} s"
            source = self._answer(pair.tickets[0], why)
            followup = self._answer(pair.tickets[1], why if counts else f"{why}; {NOT_COUNTED}")
            offer, bundle, effects = self._offer(pair.line), self._bundle(pair.line), pair.line["effects"]
            self._tell(Engine(counts).judge(offer, bundle, (source, followup), Effects.from_plain(effects)))

    def _answer(self, ticket: AwaitedAnswer, why_silent: str) -> Answer:
        if not set(self._stack.answers) <= set(ticket.parts):
            return Answer.nothing(judging.AnswerStatus.SILENT, why_silent)
        return Answer(
            judging.AnswerStatus.ANSWERED,
            Output(**{role: received.part for role, (received, _) in ticket.parts.items()}),
        )

    def _offer(self, line: dict[str, Any]) -> Offer:
        return Offer(self._control if line["relation"] == CONTROL else self._relation, (self._relation,))

    def _bundle(self, line: dict[str, Any]) -> Bundle:
        pair = Pair.parse(line["pair"])
        stamp_ns = line["stamp_ns"]
        return Bundle(pair.episode, pair.bundle or 0, stamp_ns, transforms=self._frames.at(stamp_ns))

    def _tell(self, verdicts: Sequence[Verdict]) -> None:
        for verdict in verdicts:
            self._verdicts.publish(String(data=json.dumps(verdict.as_plain())))


def main(args: list[str] | None = None) -> None:
    """Judge until stopped."""
    run_node(Monitor, args, name="monitor")


if __name__ == "__main__":
    main()
