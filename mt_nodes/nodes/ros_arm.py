# SPDX-License-Identifier: Apache-2.0
"""An arm over topics: one instance of the stack in a ROS domain of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from rclpy.node import Node

from mt_nodes.base.errors import StackError, UsageError
from mt_nodes.base.process_clock import process_time_s
from mt_nodes.base.processes import Process, wait_until
from mt_nodes.data.messages import NO_MESSAGES, Bundle
from mt_nodes.data.outputs import Diagnostics
from mt_nodes.engine.arm import UnansweredInput
from mt_nodes.engine.arrival import Arrivals
from mt_nodes.engine.judging import Answer, AnswerStatus
from mt_nodes.engine.pairing import Inbox, Ticket
from mt_nodes.engine.plan import ArmPlan
from mt_nodes.nodes import failed_calls
from mt_nodes.nodes.arm_inputs import ArmDomain, ArmInputs
from mt_nodes.nodes.bundle_publisher import DISCOVERY_S, BundlePublisher, ClockPublisher, NoClock
from mt_nodes.nodes.isolation import OWN_NODES, Isolation
from mt_nodes.nodes.output_listener import OutputListener, answer_of
from mt_nodes.nodes.participants import Meeting
from mt_nodes.nodes.reset_service import ResetService
from mt_nodes.nodes.spinning_context import SpinningContext, plain_node
from mt_nodes.nodes.stack_instance import StackInstance
from mt_nodes.stacks.stack import Stack
from mt_nodes.stacks.topic_sync import lacking

CLOCK_EVERY_S = 0.005
#: /clock runs on by up to one period while an answer is awaited; this is taken for it before it is known.
FIRST_PERIOD_NS = 100_000_000


class RosArm:
    """Publishes bundles to one instance of the stack and receives its answers.

    Args:
        plan: name and topic prefix of the arm.
        process: how the stack starts; None for an external one.
        once: what to do if the stack answers an input twice, where it must not: inputs in a row bear one stamp. Empty
            where it may.
        arrivals: finds answers to live input, whose time is not ours; None: an
            :class:`~mt_nodes.engine.pairing.Inbox` finds them, and /clock is published.
        given_up: whether nobody waits for the stack any more; then it is not waited until it is ready.
    """

    def __init__(
        self,
        plan: ArmPlan,
        domain: ArmDomain,
        stack: Stack,
        process: Process | None,
        inputs: ArmInputs,
        once: str = "",
        arrivals: Arrivals | None = None,
        given_up: Callable[[], bool] = lambda: False,
    ) -> None:
        process_time_s.start_watching()
        self._disturbed = process_time_s.disturbed
        self.name = plan.name
        self._plan, self._stack = plan, stack
        self._instance = StackInstance(plan.name, stack, process)
        self._exclusive, self._period_ns = domain.exclusive, FIRST_PERIOD_NS
        self._source_ns: int | None = None
        self._limit_ns = 0
        self._arrivals = arrivals
        self._inbox = arrivals or Inbox(stack.answers, stack.match, owes=stack.publishes_when_empty)
        self._once, self._given_up = once, given_up
        self._answer_ms: float | None = None
        self._ros = SpinningContext(domain.number)
        try:
            self._join(inputs)
        except BaseException:
            self._ros.close()
            raise

    def start(self) -> None:
        """Refuse strangers in the domain, then start the stack.

        Raises IsolationError: the domain holds nodes that are not the stack's.
        """
        if not self._exclusive:
            wait_until(lambda: bool(self._isolation.unexpected_nodes()), DISCOVERY_S)
            self._isolation.refuse_unexpected_nodes()
        self._launch()

    def restart(self) -> None:
        """Start the stack anew: end it, wait until its endpoints are gone, start it; have an external one forget.

        Raises StackError: it does not end, or is external and names no service, or that does not do it. UsageError:
        that service is of another type.
        """
        if self._instance.external:
            self._reset.ask()
        else:
            before = self._meeting.endpoints()
            self._instance.end()
            if not self._waited(lambda: self._meeting.disappeared(before)):
                raise StackError(f"stack '{self._stack.name}' ended but its endpoints stay in the {self.name} arm")
        self._inbox.clear()
        self._listener.forget()
        self._clock.reset()
        self._launch()

    def ready(self) -> None:
        """Wait until the stack subscribes and advertises, and knows that we do.

        Raises IsolationError: the stack file names its nodes, and the domain holds others. UsageError: the callable
        cannot be made, or a subscriber asks for another QoS. StackError: the stack died or did not get ready in time.
        """
        if not self._waited(self._is_ready):
            raise StackError(
                f"stack '{self._stack.name}' was not ready in the {self.name} arm (domain {self._ros.domain}) "
                f"after {self._stack.ready_timeout_s:g} s: {'; '.join(self._meeting.lacking())}; {self._instance.tail}"
            )
        self._waited(self._is_known)
        self.refuse_unexpected_nodes()

    def _waited(self, ready: Callable[[], bool]) -> bool:
        """Wait for the stack, unless nobody does any more."""
        return wait_until(lambda: ready() or self._given_up(), self._stack.ready_timeout_s)

    @property
    def monitor(self) -> Node:
        """A node of the arm, for queries of its domain."""
        return self._monitor

    @property
    def topics(self) -> dict[str, Any]:
        """Delay between arrival and publication of live input, by topic."""
        return self._publisher.added.as_plain()

    def refuse_unexpected_nodes(self) -> None:
        """Check the domain for nodes that the stack file does not name, and for second publishers of its topics.

        Raises IsolationError: there are some.
        """
        if self._stack.nodes:
            self._isolation.refuse_unexpected_nodes()
        self._isolation.refuse_second_publishers(self._played, self._listener.publisher_counts())

    def begin_episode(self) -> None:
        """Let time start anew, and forget the errors of the episode before."""
        self._source_ns = None
        self._clock.reset()
        self._listener.diagnostics()

    def final_diagnostics(self) -> Diagnostics | None:
        """Return the errors reported since the last answer, as far as they have arrived."""
        return self._listener.diagnostics()

    def pass_time(self, stamp_ns: int) -> None:
        """Step /clock on."""
        self._clock.follow(stamp_ns)

    def send(
        self,
        bundle: Bundle,
        changed: frozenset[str],
        source_ns: int | None = None,
        delay_ns: int = 0,
        late: Sequence[Bundle] = (),
    ) -> Ticket | UnansweredInput:
        """Step /clock to the bundle's instant and publish it; incomplete inputs of a callable are not sent."""
        self._reconnect()
        self._check()
        self._advance_clock(bundle.stamp_ns if source_ns is None else source_ns, delay_ns)
        if reason := lacking(self._stack, self._inputs, bundle.joined_with(late).messages):
            self._publisher.publish(self._without_inputs(bundle) if self._stack.callable else bundle, changed)
            return UnansweredInput(reason)
        live, stamp_ns = self._arrivals, bundle.stamp_ns
        ticket = live.expect(stamp_ns, bundle.episode) if live else self._inbox.expect(stamp_ns)
        self._publisher.publish(bundle, changed)
        return ticket

    def publish_only(
        self, bundle: Bundle, changed: frozenset[str] = frozenset(), source_ns: int | None = None, delay_ns: int = 0
    ) -> None:
        """Step /clock on and publish the bundle's messages; no answer is expected."""
        self._check()
        self._advance_clock(bundle.stamp_ns if source_ns is None else source_ns, delay_ns)
        self._publisher.publish(bundle, changed)

    def wait(self, ticket: Ticket | UnansweredInput, until_s: float | None = None) -> Answer | None:
        """Return the answer, or silence at the deadline; without ``until_s`` /clock steps on meanwhile."""
        if isinstance(ticket, UnansweredInput):
            return ticket.answer
        deadline = ticket.sent_s + self._stack.deadline_s  # all in process time: what we slept through does not count
        limit = deadline if until_s is None else min(deadline, until_s)
        while not self._inbox.wait(ticket, min(limit, process_time_s() + CLOCK_EVERY_S)):
            self._check()
            if process_time_s() >= limit:
                return self._silent(ticket) if limit >= deadline else None
            if until_s is None:
                self._clock.tick(self._limit_ns)
        last_s = max((arrived for _, arrived in ticket.parts.values()), default=ticket.sent_s)
        return self._answer(ticket, last_s) if last_s <= deadline else self._silent(ticket)

    def ask_to_end(self) -> None:
        """Tell the stack to end, without waiting; :meth:`stop` is to follow."""
        self._instance.ask_to_end()

    def stop(self) -> None:
        """End the stack's whole process group and leave the domain."""
        self._instance.end()
        self._ros.close()

    def status(self) -> dict[str, Any]:
        """Return the arm's part of the diagnostics: time of the last answer, stray outputs, isolation."""
        strays = {f"strays_{kind}": count for kind, count in vars(self._inbox.strays).items()}
        whose = "nobody else's" if self._exclusive else "fixed by the stack file"
        return {"answer_ms": self._answer_ms, **strays, "isolation": f"domain {self._ros.domain}, {whose}"}

    def _without_inputs(self, bundle: Bundle) -> Bundle:
        wires = tuple(wire for wire in bundle.wires if wire.topic not in self._inputs)
        return replace(bundle, wires=wires, **NO_MESSAGES)

    def _advance_clock(self, source_ns: int, delay_ns: int) -> None:
        """Step /clock to an instant of the recording plus a delay, never back."""
        if self._source_ns is not None and source_ns > self._source_ns:
            self._period_ns = source_ns - self._source_ns
        self._source_ns = source_ns
        self._limit_ns = self._clock.advance(source_ns + delay_ns) + self._period_ns

    def _join(self, inputs: ArmInputs) -> None:
        node = self._ros.add(plain_node, OWN_NODES[self.name])
        monitor = self._monitor = self._ros.add(plain_node, f"mt_monitor_{self.name}")
        named = {topic: row._replace(topic=self._plan.topic(row.topic)) for topic, row in inputs.topics.items()}
        self._reset = ResetService(monitor, self._stack, self._ros.domain)
        self._isolation = Isolation(monitor, self._ros.domain, self._plan, self._stack)
        stack, own_profiles = self._stack, {self._plan.topic(t): qos for t, qos in inputs.profiles.items()}
        self._publisher = BundlePublisher(node, named, inputs.required, own_profiles)
        clock = self._plan.topic("/clock")
        self._clock = NoClock() if self._arrivals else ClockPublisher(node, clock, self._stack.clock_step_s)
        stacks = {topic for names in self._stack.topics.values() for topic in names}
        self._inputs = {topic: row.topic for topic, row in inputs.topics.items() if row.topic in stacks}
        played = {self._plan.topic(topic) for topic in stacks} & {named[t].topic for t in inputs.required}
        self._played = sorted(played | (set() if self._arrivals else {clock}))
        self._listener = OutputListener(monitor, stack.outputs, self._plan.topic, self._inbox, **stack.reading)
        if isinstance(self._inbox, Inbox) and stack.callable:
            failed_calls.listen(monitor, self._plan.topic(failed_calls.TOPIC), self._inbox.fail)
        self._meeting = Meeting(monitor, self._publisher, self._listener, inputs.required)

    def _answer(self, ticket: Ticket, last_s: float) -> Answer:
        self._inbox.close(ticket)
        answer = answer_of(ticket, last_s, self._listener.diagnostics())
        self._answer_ms = answer.output.answer_ms
        return answer

    def _silent(self, ticket: Ticket) -> Answer:
        self._inbox.close(ticket)
        self._instance.refuse_stopped()
        if process_time_s.disturbed != ticket.disturbed:
            why = "this process stood still, or the wall clock was set, and the answer got lost"
            return Answer.nothing(AnswerStatus.SKIPPED, f"{self.name} arm: {why}")
        missing = [r.topic for a in self._stack.answers if a not in ticket.parts for r in self._stack.outputs[a].rows]
        late = "no answer" if not missing else f"no {', '.join(missing)}"
        return Answer.nothing(AnswerStatus.SILENT, f"{late} within {self._stack.deadline_s:g} s{self._unknown_stamp()}")

    def _unknown_stamp(self) -> str:
        """Return a hint at the usual reason for silence: outputs whose stamp is not their input's."""
        stamp = self._inbox.unknown_stamp_ns
        if stamp is None:
            return ""
        match = "arrival" if self._arrivals else "order"
        return f", but an output that bears stamp {stamp} ns of no input: copy the input's, or say match: {match}"

    def _launch(self) -> None:
        if not self._instance.external:
            self._meeting.begin()
            self._instance.start()

    def _is_ready(self) -> bool:
        self._instance.refuse_unmade()
        self._check()
        return not self._meeting.lacking()

    def _is_known(self) -> bool:
        self._check()
        return self._meeting.known()

    def _check(self) -> None:
        self._instance.check()
        if incompatible := [*self._publisher.incompatible, *self._clock.incompatible]:
            raise UsageError(f"incompatible QoS in the {self.name} arm: {incompatible[0]}")
        if failure := self._listener.failure or self._ros.failure:
            raise StackError(f"{self.name} arm: {failure}")
        if self._once and self._inbox.strays.repeated:
            raise StackError(
                f"stack '{self._stack.name}' ({self.name} arm) has answered one input more than once; it gets source "
                "and follow-ups in a row, so that the second answer may be taken for the next one's: let it answer "
                f"once, or {self._once}"
            )

    def _reconnect(self) -> None:
        """Wait for discovery after this process stood still or the clock was set: the stack may have lost us."""
        if self._disturbed != process_time_s.disturbed:
            self._disturbed = process_time_s.disturbed
            # By then this process knows whom it has lost itself, and discovers them again.
            wait_until(lambda: bool(self._meeting.lacking()), DISCOVERY_S)
            self._meeting.forget()
            self.ready()
