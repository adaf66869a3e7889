# SPDX-License-Identifier: Apache-2.0
"""``ros2 run mt_nodes mutator``: derives a follow-up of every instant of live sensors and publishes it elsewhere.

Every n-th instant is control: the source is its own follow-up. Stamps that go back begin another lap of a bag.
The input is tapped best effort, so that this node can never hold its publisher back: the newest message of a topic, a
few of each of several topics, of which none may be missing.
"""

from __future__ import annotations

import gc
import math
import signal
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile
from rclpy.signals import SignalHandlerOptions
from rclpy.timer import Timer

from mt_nodes.base.errors import MtError, NotApplicable, PluginError, UsageError
from mt_nodes.base.params import param
from mt_nodes.data.cdr.wire import wires_of_bundle
from mt_nodes.data.messages import Bundle, Wire
from mt_nodes.data.transforms import TransformTree, load_transforms
from mt_nodes.data.verdict import Outcome
from mt_nodes.nodes import qos
from mt_nodes.nodes.frame_taps import FrameTaps
from mt_nodes.nodes.ledger_topic import LedgerTopic, OfferedInstant
from mt_nodes.nodes.live_inputs import InstantReader, LiveInputs
from mt_nodes.nodes.managed_node import ManagedNode, ManagedParameters
from mt_nodes.nodes.message_classes import message_class
from mt_nodes.nodes.node_main import quick_executor, run_node
from mt_nodes.nodes.spinning_context import SpinningContext, plain_node
from mt_nodes.relations.pipeline import MutationPipeline
from mt_nodes.relations.relation import CONTROL, load_relation, refuse_baseline
from mt_nodes.runs.live.live_episodes import Episodes

#: How often the graph is asked for a publisher of the input, until there is one.
LOOK_EVERY_S = 0.1


@dataclass(frozen=True)
class MutatorParameters(ManagedParameters):
    """What the node is told."""

    LIVE: ClassVar[frozenset[str]] = frozenset({"control_every", "prove"})

    relation: str = param("noise_outside_roi_1000", help="whose mutations are applied; name or .yaml file")
    input_topic: str = param(
        "/sensing/lidar/points",
        help="live topic of clouds or images; several, camera infos too, with commas, the leading one first",
    )
    output_topic: str = param("/mt/followup/sensing/lidar/points", help="where follow-ups go, one for each input_topic")
    sync_s: float = param(0.02, low=0.0, high=1.0, unit="s", help="how far apart the messages of one instant may be")
    output_domain: int = param(-1, low=-1, high=232, help="ROS domain of the follow-ups; -1: this one")
    depth: int = param(5, low=1, high=1000, help="history depth of the follow-ups (a remote depth cannot be seen)")
    prove: str = param(
        "after",
        choices=("after", "before"),
        help="after: send, then prove, a broken pair is INVALID; before: nothing unproven is sent, a little later",
    )
    control_every: int = param(
        5, low=0, high=1000, help="every n-th instant is control: the source is its own follow-up; 0: none is"
    )
    seed: int = param(0, low=0, high=2**31 - 1, help="what every draw depends on")
    transforms: str = param("", help="YAML file of transforms, where live /tf does not give them")

    def __post_init__(self) -> None:
        if self.control_every == 1:
            raise UsageError("control_every: got 1, which leaves nothing to test; expected 0, or 2 and more")


class Mutator(ManagedNode):
    """Publishes the follow-up, and on /mt/ledger what it was made of, for the monitor."""

    def __init__(self) -> None:
        super().__init__("mutator")
        self._given = self.parameters(MutatorParameters)
        self._outputs = followups_by_input(self._given)
        self._count = 0
        self.begin()

    def open(self) -> None:
        """Tap the inputs; make what mutates them, and the way into the other domain."""
        given = self._given
        self._relation = load_relation(given.relation)
        refuse_baseline(self._relation, "mutator")
        offered = (self._relation, load_relation(CONTROL))
        self._pipelines = {r.id: MutationPipeline(r.mutate, given.seed, r.id, requires=r.requires) for r in offered}
        self._laps = Episodes(math.inf)
        fixed = load_transforms(Path(given.transforms)) if given.transforms else TransformTree()
        self._frames = FrameTaps(self, fixed)
        self._far = SpinningContext(given.output_domain) if given.output_domain != -1 else None
        self._out: Node = self if self._far is None else self._far.add(plain_node, "mt_mutator")
        self._followups: dict[str, Publisher] = {}
        #: What is still to go out, in order, and when; the timer is set on the first of it.
        self._later: deque[tuple[int, Bundle, frozenset[str]]] = deque()
        self._timer: Timer | None = None
        self._looking = self.create_timer(LOOK_EVERY_S, self._look, clock=Clock(clock_type=ClockType.STEADY_TIME))
        self._reader = InstantReader(self._frames.at, self._frames.track)
        self._ledger = LedgerTopic(self, self._relation.id)
        profile = qos.SENSOR_TAP if len(self._outputs) > 1 else qos.LIVE_TAP
        self._inputs = LiveInputs(self, tuple(self._outputs), round(given.sync_s * 1e9), self._received, profile)

    def close(self) -> None:
        """Tell of everything that was sent, and leave the other domain, too."""
        try:
            self._ledger.close()
        finally:
            if self._far is not None:
                self._far.close()

    def finish(self) -> None:
        """Take no further cloud."""
        self.finished = True

    def _received(self, wires: Sequence[Wire]) -> None:
        if not self.active:
            return
        try:
            self._mutate(wires)
        except MtError as error:
            # Raised from here, the executor would print where; what to do is in the text.
            self.failure, self.finished = error, True

    def _mutate(self, wires: Sequence[Wire]) -> None:
        # Serialized in and out: what rclpy would copy on the way costs more than the mutation itself.
        self._count += 1
        place = self._laps.place(wires[0].stamp_ns, time.monotonic())
        lap, index, relation = place.episode, place.index, self._turn(place.episode, place.index)
        try:
            bundle = self._reader.read(index, wires, lap)
        except MtError as error:
            unread = Bundle(lap, index, wires[0].stamp_ns, wires=tuple(wires))
            offered = OfferedInstant.now(relation, unread, wires[0].came_s)
            self._ledger.report_unjudged(offered, Outcome.ERROR, f"cannot be read: {error}")
            return
        # A stack gets what is between two instants with the second of them, before it.
        loose = self._inputs.passed_over
        bundle = replace(bundle, wires=(*loose, *wires), loose=loose)
        self._pipelines[self._relation.id].meet(bundle)
        self._answer(OfferedInstant.now(relation, bundle, wires[0].came_s), wires[0].topic)
        self._ledger.then(self._pipelines[self._turn(lap, index + 1)].foresee, lap, index + 1, bundle)

    def _turn(self, lap: int, index: int) -> str:
        """Return the relation whose follow-up an instant gets: in each lap of a bag other frames are control."""
        every = self._given.control_every
        return CONTROL if every and not (index + lap) % every else self._relation.id

    def _answer(self, offered: OfferedInstant, leading: str) -> None:
        """Send the follow-up of a bundle, if it has one, and have it told what became of it."""
        bundle, pipeline = offered.bundle, self._pipelines[offered.relation]
        publisher = self._publisher(leading)
        if not publisher.get_subscription_count():
            # An answer that cannot come must not be missed: what nobody hears is no follow-up.
            reason = f"nobody subscribes to {self._outputs[leading]}"
            self._ledger.report_unjudged(offered, Outcome.SKIPPED, reason)
            return
        try:
            derived, proof = pipeline.derive_unproven(bundle)
            if self._given.prove == "before":
                if broken := proof():
                    self._ledger.report_unjudged(offered, Outcome.INVALID, broken)
                    return
                proof = _proven
        except NotApplicable as why:
            self._ledger.report_unjudged(offered, Outcome.NOT_APPLICABLE, str(why))
            return
        except PluginError as error:
            self._ledger.report_unjudged(offered, Outcome.ERROR, str(error))
            return
        now_ns = self.get_clock().now().nanoseconds
        # A topic is a queue: what was delayed before goes out before.
        first_ns = max(now_ns, self._later[-1][0] if self._later else now_ns)
        parts = derived.followup.bundles
        due_ns = [max(now_ns + delay_ns, first_ns) for delay_ns, _ in parts]
        self._later.extend(
            (due, sent, sent.changed_topics(bundle)) for due, (_, sent) in zip(due_ns, parts, strict=True)
        )
        sent_ns = time.time_ns() + (due_ns[0] - now_ns if due_ns else 0)
        self._send_due(now_ns)
        self._ledger.sent(offered, derived, proof, publisher, sent_ns)

    def _send_due(self, now_ns: int) -> None:
        """Publish what is due, in order, and set the timer on what is next: a topic is a queue."""
        if self._timer is not None:
            self._timer.destroy()
            self._timer = None
        while self._later and self._later[0][0] <= now_ns:
            for wire in wires_of_bundle(*self._later.popleft()[1:]):
                self._publisher(wire.topic).publish(wire.cdr)
        if self._later:
            left_s = (self._later[0][0] - now_ns) / 1e9
            self._timer = self.create_timer(left_s, lambda: self._send_due(self.get_clock().now().nanoseconds))

    def _look(self) -> None:
        """Make the publishers as soon as there are inputs, so that subscribers find them before the first follow-up."""
        if self._inputs.look():
            self._looking.cancel()
        for each in self._inputs.inputs:
            if each.offered is not None:
                self._publisher(each.topic)

    def _publisher(self, topic: str = "") -> Publisher:
        """Make the publisher of an input's follow-ups (the leading one's) as its own publisher offers them."""
        topic = topic or next(iter(self._outputs))
        if topic not in self._followups:
            [found] = [each for each in self._inputs.inputs if each.topic == topic]
            offered = found.offered or qos.REPLAY
            profile = QoSProfile(
                depth=self._given.depth, reliability=offered.reliability, durability=offered.durability
            )
            kind = message_class(found.type)
            self._followups[topic] = self._out.create_publisher(kind, self._outputs[topic], profile)
        return self._followups[topic]


def followups_by_input(given: MutatorParameters) -> dict[str, str]:
    """Return the topic of the follow-ups by input topic.

    Raises UsageError: there are not as many, or one is its own input.
    """
    inputs, outputs = ([word.strip() for word in text.split(",")] for text in (given.input_topic, given.output_topic))
    if len(inputs) != len(outputs) or len(set(inputs)) < len(inputs) or len(set(outputs)) < len(outputs):
        raise UsageError(
            f"mutator: got input_topic {given.input_topic} and output_topic {given.output_topic}, expected one output "
            "for each input, all different"
        )
    if given.output_domain == -1 and set(inputs) & set(outputs):
        raise UsageError("mutator: output_topic is input_topic; set another topic or output_domain")
    return dict(zip(inputs, outputs, strict=True))


def _proven() -> None:
    """Tell that nothing is broken of what was proved before it was sent."""


def main(args: list[str] | None = None) -> None:
    """Mutate until stopped."""
    run_node(_until_a_signal, args, quick_executor, SignalHandlerOptions.NO, "mutator")


def _until_a_signal() -> Mutator:
    """Make the node, which a signal ends only when it has told of everything it sent: rclpy's would take its topics."""
    node = Mutator()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: node.finish())
    # What there is by now stays: to look through it for garbage, again and again, would hold up a cloud.
    gc.freeze()
    return node


if __name__ == "__main__":
    main()
