# SPDX-License-Identifier: Apache-2.0
"""An arm over topics: one instance of the stack in a ROS domain of its own."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping

from mt_nodes.engine import Answer, Heard
from mt_nodes.errors import InfrastructureError, IsolationError, UsageError
from mt_nodes.frames import Bundle
from mt_nodes.nodes.listening import OutputListener
from mt_nodes.nodes.publishing import BundlePublisher, ClockPublisher
from mt_nodes.nodes.spinning import SpinningContext, plain_node
from mt_nodes.outputs import Output
from mt_nodes.pairing import Inbox, Ticket
from mt_nodes.plan import ArmPlan
from mt_nodes.processes import Child, Process, wait_until
from mt_nodes.stacks import Stack

#: Longest time that a node in our domain stayed unseen (measured: 1,055 ms).
DISCOVERY_S = 1.2
CLOCK_EVERY_S = 0.005
#: /clock runs on by up to one period while an answer is awaited; this is taken for it before it is known.
FIRST_PERIOD_NS = 100_000_000
OWN_NODES = {"source": "mt_replayer", "followup": "mt_mutator"}


class RosArm:
    """Publishes bundles to one instance of the stack and hears its answers.

    Args:
        plan: name and topic prefix of the arm.
        domain: ROS domain it runs in. leased: whether nobody else can be there.
        process: how the stack starts; None for an external one.
        topics: topic of the bag -> (topic of the stack, type).
        required: topics of the bag that the stack must subscribe to.
    """

    def __init__(
        self,
        plan: ArmPlan,
        domain: int,
        leased: bool,
        stack: Stack,
        process: Process | None,
        topics: Mapping[str, tuple[str, str]],
        required: frozenset[str],
    ) -> None:
        self.name = plan.name
        self._plan, self._stack, self._process = plan, stack, process
        self._leased, self._period_ns = leased, FIRST_PERIOD_NS
        self._inbox = Inbox(stack.answers, stack.match)
        self._child: Child | None = None
        self._required = required
        self._ros = SpinningContext(domain)
        node = self._ros.add(plain_node, OWN_NODES[plan.name])
        self._monitor = self._ros.add(plain_node, f"mt_monitor_{plan.name}")
        named = {topic: (plan.topic(name), type_name) for topic, (name, type_name) in topics.items()}
        self._publisher = BundlePublisher(node, named, required)
        self._clock = ClockPublisher(node, plan.topic("/clock"), stack.clock_step_s)
        self._listener = OutputListener(self._monitor, stack.outputs, plan.topic, self._inbox)

    def start(self) -> None:
        """Refuse strangers in the domain, then start the stack.

        Raises:
            IsolationError: the domain holds nodes that are not the stack's.
        """
        if not (self._stack.external or self._leased):
            wait_until(lambda: bool(self._strangers()), DISCOVERY_S)
            self._refuse(self._strangers())
        self._launch()

    def restart(self) -> None:
        """End the stack, wait until its endpoints are gone, start it again."""
        if self._process is None:
            raise UsageError(f"stack '{self._stack.name}' is external and cannot be restarted")
        self._end_stack()
        if not wait_until(self._gone, self._stack.ready_timeout_s):
            raise InfrastructureError(f"stack '{self._stack.name}' ended but its endpoints stay in the {self.name} arm")
        self._inbox.clear()
        self._clock.reset()
        self._launch()

    def ready(self) -> None:
        """Wait until the stack subscribes and advertises.

        Raises:
            IsolationError: the stack file names its nodes, and the domain holds others.
            InfrastructureError: the stack died or did not get ready in time.
        """
        if not wait_until(self._is_ready, self._stack.ready_timeout_s):
            tail = self._child.tail() if self._child else "start it, or mend its topics and domain in the stack file"
            raise InfrastructureError(
                f"stack '{self._stack.name}' was not ready in the {self.name} arm (domain {self._ros.domain}) "
                f"after {self._stack.ready_timeout_s:g} s: {'; '.join(self._lacking())}; {tail}"
            )
        if self._stack.nodes:
            wait_until(lambda: not self._strangers(), DISCOVERY_S)
            self._refuse(self._strangers())

    def begin_episode(self) -> None:
        """Time starts anew."""
        self._clock.reset()

    def send(self, bundle: Bundle, changed: frozenset[str]) -> Ticket:
        """Step /clock to the bundle's instant and publish it."""
        self._check()
        now_ns = self._clock.bundle_ns
        if now_ns is not None and bundle.stamp_ns > now_ns:
            self._period_ns = bundle.stamp_ns - now_ns
        self._clock.advance(bundle.stamp_ns)
        ticket = self._inbox.expect(bundle.stamp_ns)
        self._publisher.publish(bundle, changed)
        return ticket

    def wait(self, ticket: Ticket, until_s: float | None = None) -> Answer | None:
        """Return the answer, or silence at the deadline; /clock steps on meanwhile."""
        deadline = ticket.sent_s + self._stack.deadline_s
        limit = min(deadline, math.inf if until_s is None else until_s)
        while not self._inbox.wait(ticket, min(limit, time.monotonic() + CLOCK_EVERY_S)):
            self._check()
            if time.monotonic() >= limit:
                return self._silent(ticket) if limit >= deadline else None
            self._clock.tick(ticket.stamp_ns + self._period_ns)
        self._inbox.close(ticket)
        return self._answer(ticket)

    def stop(self) -> None:
        """End the stack's whole process group and leave the domain."""
        self._end_stack()
        self._ros.close()

    @property
    def strays(self) -> dict[str, int]:
        """Outputs that answered nothing outstanding."""
        return vars(self._inbox.strays)

    def _answer(self, ticket: Ticket) -> Answer:
        parts = {role: heard for role, (heard, _) in ticket.parts.items()}
        last_s = max(arrived for _, arrived in ticket.parts.values())
        said = {role: heard.said for role, heard in parts.items()}
        output = Output(**said, answer_ms=1e3 * (last_s - ticket.sent_s))
        return Answer(Heard.ANSWERED, output, wires=tuple(heard.wire for heard in parts.values()))

    def _silent(self, ticket: Ticket) -> Answer:
        self._inbox.close(ticket)
        missing = [self._stack.outputs[r].topic for r in self._stack.answers if r not in ticket.parts]
        return Answer.nothing(Heard.SILENT, f"no {', '.join(missing)} within {self._stack.deadline_s:g} s")

    def _launch(self) -> None:
        if self._process is not None:
            self._child = Child(self._process)

    def _is_ready(self) -> bool:
        self._check()
        return not self._lacking()

    def _lacking(self) -> list[str]:
        quiet = [f"nobody publishes {t}" for t, heard in self._listener.heard_from().items() if not heard]
        deaf = [f"nobody subscribes to {t}" for t in sorted(self._required) if not self._publisher.heard(t)]
        return quiet + deaf

    def _gone(self) -> bool:
        return not any(self._listener.heard_from().values()) and not any(map(self._publisher.heard, self._required))

    def _check(self) -> None:
        if self._child is not None:
            self._child.check()
        if self._publisher.incompatible:
            raise UsageError(f"incompatible QoS in the {self.name} arm: {self._publisher.incompatible[0]}")
        if self._listener.failure:
            raise InfrastructureError(f"{self.name} arm: {self._listener.failure}")

    def _end_stack(self) -> None:
        if self._child is not None:
            self._child.stop(self._stack.stop_timeout_s)
            self._child = None

    def _strangers(self) -> list[str]:
        names = self._monitor.get_node_names_and_namespaces()
        full = {f"{namespace.rstrip('/')}/{name}" for name, namespace in names}
        ours = {f"/{n}" for arm in OWN_NODES for n in (OWN_NODES[arm], f"mt_monitor_{arm}")}
        return sorted(full - ours - set(self._stack.nodes) - set(self._stack.allow_nodes))

    def _refuse(self, strangers: list[str]) -> None:
        if strangers:
            raise IsolationError(
                f"the {self.name} arm's ROS domain {self._ros.domain} holds nodes that are not the stack's: "
                f"{', '.join(strangers)}; stop them, choose another domain, "
                "or list them in allow_nodes of the stack file"
            )
