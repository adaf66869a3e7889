# SPDX-License-Identifier: Apache-2.0
"""Who is in an arm's domain, and who publishes there beside the arm and its stack."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial

from rclpy.node import Node

from mt_nodes.base.errors import IsolationError
from mt_nodes.base.processes import wait_until
from mt_nodes.engine.plan import ArmPlan
from mt_nodes.stacks.stack import Stack

OWN_NODES = {"source": "mt_replayer", "followup": "mt_mutator"}
#: Neither plays, steers nor listens to what an arm is given: the suite's own node and the daemon of the ros2 command;
#: and the bridge that stands for a stack in a box, which looks itself who is in there.
HARMLESS = ("/mt_suite", "/_ros2cli_daemon_", "/mt_box")
#: How a node is called whose endpoints were discovered before its name.
NOT_KNOWN_YET = "_NODE_NAME_UNKNOWN_"
#: Names come up to a second after endpoints (measured with Fast DDS 2.14).
NAMES_S = 2.0


class Isolation:
    """Looks at the domain of one arm through a node of it."""

    def __init__(self, node: Node, domain: int, plan: ArmPlan, stack: Stack) -> None:
        self._node, self._plan, self._stack = node, plan, stack
        self._where = f"the {plan.name} arm's ROS domain {domain}"
        self._ours = Counter([f"/{OWN_NODES[plan.name]}"])

    def unexpected_nodes(self) -> list[str]:
        """Name the nodes that are neither ours, the stack's, nor allowed."""
        names = self._node.get_node_names_and_namespaces()
        others = Counter(f"{namespace.rstrip('/')}/{name}" for name, namespace in names)
        # Once each: a second one is another run's, which would play into the same stack.
        arms = OWN_NODES if self._plan.prefix else (self._plan.name,)
        others -= Counter(f"/{node}" for arm in arms for node in (OWN_NODES[arm], f"mt_monitor_{arm}"))
        allowed = {*self._stack.nodes, *self._stack.allow_nodes}
        return sorted(name for name in others if name not in allowed and not name.startswith(HARMLESS))

    def refuse_unexpected_nodes(self) -> None:
        """Raise when there are any. Raises IsolationError: naming them."""
        if unexpected := self.unexpected_nodes():
            raise IsolationError(
                f"{self._where} holds nodes that are not the stack's: {', '.join(unexpected)}; "
                "stop them, choose another domain, or list them in allow_nodes of the stack file"
            )

    def refuse_second_publishers(self, played: Iterable[str], received: Iterable[str]) -> None:
        """Raise when somebody beside us publishes what the arm plays, or more than one what it hears.

        Raises IsolationError: naming topic and nodes.
        """
        for topic in played:
            self._refuse(topic, partial(self._other_publishers, topic), "nobody but this arm")
        for topic in received:
            self._refuse(topic, partial(self._several, topic), "one node of the stack")

    def _refuse(self, topic: str, look: Callable[[], Counter[str]], expected: str) -> None:
        if look():
            # Endpoints are discovered before the name of their node is; people need the name.
            wait_until(lambda: not any(name.endswith(NOT_KNOWN_YET) for name in look()), NAMES_S)
        if names := sorted(look()):
            raise IsolationError(
                f"in {self._where} {topic} is published by {', '.join(names)}, expected {expected}; "
                "stop those that are not the stack's, or list them in allow_nodes of the stack file"
            )

    def _publishers(self, topic: str) -> Counter[str]:
        """Count by node who publishes a topic, those left out who may."""
        found = self._node.get_publishers_info_by_topic(topic)
        names = [f"{info.node_namespace.rstrip('/')}/{info.node_name}" for info in found]
        may = self._stack.allow_nodes
        return Counter(n for n in names if not may or (n not in may and not n.endswith(NOT_KNOWN_YET)))

    def _other_publishers(self, topic: str) -> Counter[str]:
        return self._publishers(topic) - self._ours

    def _several(self, topic: str) -> Counter[str]:
        names = self._publishers(topic)
        return names if len(names) > 1 else Counter()
