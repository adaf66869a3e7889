# SPDX-License-Identifier: Apache-2.0
"""An arm that records every topic of its stack, and knows who publishes and who subscribes to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatch
from typing import Any

from rclpy.node import Node, NodeNameNonExistentError
from rclpy.qos import QoSProfile, ReliabilityPolicy

from mt_nodes.base.errors import StackError
from mt_nodes.base.processes import wait_until
from mt_nodes.data.messages import Bundle
from mt_nodes.nodes import failed_calls, qos
from mt_nodes.nodes.introduction import Introduction
from mt_nodes.nodes.isolation import HARMLESS, NOT_KNOWN_YET, OWN_NODES
from mt_nodes.nodes.message_classes import available
from mt_nodes.nodes.message_contents import stamp_reader
from mt_nodes.nodes.raw_subscription import subscribe_raw
from mt_nodes.nodes.ros_arm import RosArm
from mt_nodes.runs.blame.stack_graph import StackGraph
from mt_nodes.runs.blame.tape import Tape

#: Topics that every node has, or that are the suite's own.
NO_DATA = frozenset({"/rosout", "/parameter_events", "/clock", failed_calls.TOPIC})
#: How long the graph must stay as it is, and may change, before it is taken to be whole.
STEADY_LOOKS, WHOLE_S = 10, 15.0

_OWN = frozenset({*OWN_NODES.values(), *(f"mt_monitor_{name}" for name in OWN_NODES)})


class TappedArm(RosArm):
    """Takes the arguments of :class:`~mt_nodes.nodes.ros_arm.RosArm`; ``topics``: patterns of what is recorded."""

    def __init__(self, *args: Any, patterns: Sequence[str] = (), **kwargs: Any) -> None:
        self._patterns = tuple(patterns)
        self._types: dict[str, str] = {}
        self._taps: dict[str, Any] = {}
        self.tape = Tape(stamp_reader(lambda: self._types))
        self._graph = StackGraph({}, {})
        super().__init__(*args, **kwargs)
        self._met = Introduction(self.monitor)

    def ready(self) -> None:
        """Wait until the stack is ready, its graph is whole, and its publishers know of the taps.

        Raises StackError: they do not in time; and as :meth:`RosArm.ready`.
        """
        super().ready()
        looks: list[StackGraph] = [self._graph] if self._graph.publishes else []
        # After a restart it is the one that is known already.
        needed = 2 if looks else STEADY_LOOKS

        def steady() -> bool:
            looks.append(self._look())
            last = looks[-needed:]
            return len(last) == needed and all(graph == last[0] for graph in last) and bool(last[0].publishes)

        if not wait_until(steady, WHOLE_S):
            raise StackError(f"{self.name} arm: the graph of the stack still changes after {WHOLE_S:g} s")
        self._graph = looks[-1]
        for topic, type_name in self._graph.types.items():
            if topic not in self._taps:
                self._taps[topic] = self._tap(topic, type_name)
        if not wait_until(self._taps_known, WHOLE_S):
            lost = [topic for topic, tap in self._taps.items() if not tap.get_publisher_count()]
            raise StackError(f"{self.name} arm: nobody publishes {', '.join(lost) or 'to the taps'} any more")

    def restart(self) -> None:
        """Start the stack anew; its new publishers have to find the taps."""
        self._met.forget()
        super().restart()

    def graph(self) -> StackGraph:
        """Return the nodes and topics of the stack, of which those with types are recorded."""
        return self._graph

    def send(self, bundle: Bundle, *args: Any, **kwargs: Any) -> Any:
        """Publish a bundle, of which the recording takes note."""
        self.tape.instant(bundle.index, bundle.stamp_ns)
        return super().send(bundle, *args, **kwargs)

    def _taps_known(self) -> bool:
        if not all(tap.get_publisher_count() for tap in self._taps.values()):
            return False
        infos = [info for topic in self._taps for info in self.monitor.get_publishers_info_by_topic(topic)]
        return self._met.over(info for info in infos if info.node_name not in _OWN)

    def _tap(self, topic: str, type_name: str) -> Any:
        self._types[topic] = type_name
        infos = self.monitor.get_publishers_info_by_topic(topic)
        best_effort = any(info.qos_profile.reliability == ReliabilityPolicy.BEST_EFFORT for info in infos)
        profile: QoSProfile = qos.ANSWERS_BEST_EFFORT if best_effort else qos.ANSWERS
        return subscribe_raw(self.monitor, type_name, topic, self._received(topic), profile)

    def _received(self, topic: str) -> Callable[[bytes], None]:
        return lambda data: self.tape.put(topic, data)

    def _look(self) -> StackGraph:
        """Return the graph as it is known now; empty as long as a name is not."""
        named = self.monitor.get_node_names_and_namespaces()
        stack = [n for n in named if n[0] not in _OWN and not f"/{n[0]}".startswith(HARMLESS)]
        stack = [n for n in stack if _full(n) not in self._stack.allow_nodes]
        if any(name == NOT_KNOWN_YET for name, _ in named):
            return StackGraph({}, {})
        try:
            says = {_full(n): _data(self.monitor.get_publisher_names_and_types_by_node(*n)) for n in stack}
            hears = {_full(n): _data(self.monitor.get_subscriber_names_and_types_by_node(*n)) for n in stack}
        except NodeNameNonExistentError:  # it has just gone
            return StackGraph({}, {})
        given = tuple(sorted(_data(_own_topics(self.monitor, OWN_NODES[self.name])).keys() & _all(hears)))
        types = {t: kind for rows in (*says.values(), *hears.values()) for t, kind in rows.items()}
        tapped = {
            t: kind for t, kind in sorted(types.items()) if (t in _all(says) or t in given) and self._wanted(t, kind)
        }
        return StackGraph(
            {node: tuple(sorted(rows)) for node, rows in says.items()},
            {node: tuple(sorted(rows)) for node, rows in hears.items()},
            tapped,
            given,
        )

    def _wanted(self, topic: str, type_name: str) -> bool:
        chosen = not self._patterns or any(fnmatch(topic, pattern) for pattern in self._patterns)
        outputs = {row.topic for row in self._stack.published}
        inputs = {name for names in self._stack.topics.values() for name in names}
        return (chosen or topic in outputs | inputs) and available(type_name)


def _own_topics(node: Node, name: str) -> list[tuple[str, list[str]]]:
    return node.get_publisher_names_and_types_by_node(name, "/")


def _full(node: tuple[str, str]) -> str:
    name, namespace = node
    return f"{namespace.rstrip('/')}/{name}"


def _data(rows: Sequence[tuple[str, Sequence[str]]]) -> dict[str, str]:
    return {
        topic: kinds[0] for topic, kinds in rows if topic not in NO_DATA and not topic.endswith("/transition_event")
    }


def _all(by_node: dict[str, dict[str, str]]) -> set[str]:
    return {topic for rows in by_node.values() for topic in rows}
