# SPDX-License-Identifier: Apache-2.0
"""Has others show that they know of our endpoints: what they have discovered, our own graph does not tell.

Two participants discover each other in two directions, and one may be a second ahead of the other (DDS-RPC 1.0,
7.6.2.2, as cited in ros2/rmw_connextdds#132, has the same of services). What is sent in between is lost: its publisher
has no reader yet, or the best-effort reader no publisher. So whoever matters is asked something harmless through a
service that nodes have anyway. His reply comes only when he has discovered both endpoints of our client. Publishers,
and subscriptions, are announced reliably and each kind in the order in which it was made (Fast DDS's simple discovery);
so with the client made last he knows of all the others, too. See docs/decisions/0020-who-knows-whom-at-the-start.md.
"""

from __future__ import annotations

import importlib
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rcl_interfaces.srv import GetParameters
from rclpy.client import Client
from rclpy.node import Node, NodeNameNonExistentError
from rclpy.task import Future
from rclpy.topic_endpoint_info import TopicEndpointInfo

from mt_nodes.base.process_clock import process_time_s
from mt_nodes.nodes.bundle_publisher import DISCOVERY_S

#: For those who can be asked, but are busy with something else; it is not known what, and the run goes on.
REPLY_S = 5.0
#: A question or a reply that was lost is asked for again after so long.
ASK_AGAIN_S = 0.2
#: Bytes of an endpoint's id that are its participant's: DDS's guidPrefix.
PARTICIPANT_BYTES = 12


def _no_parameters(theirs: TopicEndpointInfo) -> tuple[Any, Any]:
    """Ask for the values of no parameters."""
    return GetParameters, GetParameters.Request()


def _its_type(theirs: TopicEndpointInfo) -> tuple[Any, Any]:
    """Ask what the type of a topic is that the node has: of others it would log that it does not know them."""
    kind = importlib.import_module("type_description_interfaces.srv").GetTypeDescription  # not there before Jazzy
    named = {"type_name": theirs.topic_type, "type_hash": str(theirs.topic_type_hash)}
    return kind, kind.Request(**named, include_type_sources=False)


#: What a node can be asked without that anything changes, by type of its service: class and request.
QUESTIONS: Mapping[str, Callable[[TopicEndpointInfo], tuple[Any, Any]]] = {
    "rcl_interfaces/srv/GetParameters": _no_parameters,
    "type_description_interfaces/srv/GetTypeDescription": _its_type,
}


class Introduction:
    """Asks participants whether they know of us; to be begun when all our endpoints have been made."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._questions: dict[bytes, _Question] = {}

    def forget(self) -> None:
        """Ask everybody anew from now on."""
        for question in self._questions.values():
            question.close()
        self._questions.clear()

    def over(self, endpoints: Iterable[TopicEndpointInfo]) -> bool:
        """Go on asking those whom these endpoints belong to; whether all have replied, or had their time.

        Never waits: to be called again and again, while ``node`` is spun.
        """
        theirs: dict[bytes, list[TopicEndpointInfo]] = {}
        for info in endpoints:
            theirs.setdefault(bytes(info.endpoint_gid[:PARTICIPANT_BYTES]), []).append(info)
        for participant in theirs.keys() - self._questions.keys():
            self._questions[participant] = _Question(self._node)
        over = [self._questions[participant].over(rows) for participant, rows in theirs.items()]  # all side by side
        return all(over)


class _Question:
    """What one participant is asked, time and again, until it replies."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._client: Client | None = None
        self._request: Any = None
        self._replies: list[Future] = []
        self._began_s, self._question_s = process_time_s(), -math.inf
        self._over = False

    def over(self, theirs: Sequence[TopicEndpointInfo]) -> bool:
        """Ask if it is time to; whether it has replied, or has had its time."""
        if not self._over:
            self._ask(theirs)
            limit_s = DISCOVERY_S if self._client is None else REPLY_S
            self._over = any(reply.done() for reply in self._replies) or process_time_s() - self._began_s >= limit_s
            if self._over:
                self.close()
        return self._over

    def close(self) -> None:
        """Leave nothing in the graph."""
        if self._client is not None:
            self._node.destroy_client(self._client)
            self._client = None

    def _ask(self, theirs: Sequence[TopicEndpointInfo]) -> None:
        if self._client is None:
            self._client = self._found(theirs)
        now_s = process_time_s()
        if self._client is not None and now_s - self._question_s >= ASK_AGAIN_S and self._client.service_is_ready():
            self._question_s = now_s
            self._replies.append(self._client.call_async(self._request))

    def _found(self, theirs: Sequence[TopicEndpointInfo]) -> Client | None:
        """Make a client of a service of one of its nodes; None as long as none is known."""
        names = Counter(self._node.get_node_names_and_namespaces())
        for info in theirs:
            who = (info.node_name, info.node_namespace)
            if names[who] != 1:  # not known yet; or there are two, and the other one might reply
                continue
            try:
                services = self._node.get_service_names_and_types_by_node(*who)
            except NodeNameNonExistentError:  # it has just gone
                continue
            for kind in QUESTIONS:
                for name in (name for name, kinds in services if kind in kinds):
                    service, self._request = QUESTIONS[kind](info)
                    return self._node.create_client(service, name)
        return None
