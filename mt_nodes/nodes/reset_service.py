# SPDX-License-Identifier: Apache-2.0
"""Makes a stack that somebody else started forget what it was given: by the service that its file names."""

from __future__ import annotations

from rclpy.client import Client
from rclpy.node import Node
from std_srvs.srv import Empty, Trigger

from mt_nodes.base.errors import StackError, UsageError
from mt_nodes.base.process_clock import process_time_s
from mt_nodes.base.processes import wait_until
from mt_nodes.stacks.stack import Stack

#: Services that make a stack forget, by type.
RESETS = {"std_srvs/srv/Trigger": Trigger, "std_srvs/srv/Empty": Empty}
#: A reply that is lost is asked for again after so long.
ASK_AGAIN_S = 2.0


class ResetService:
    """``reset: /its/service`` of an external stack, in the domain that a node is in."""

    def __init__(self, node: Node, stack: Stack, domain: int) -> None:
        self._node, self._stack = node, stack
        self._name, self._limit_s = stack.reset, stack.ready_timeout_s
        self._where = f"reset service {stack.reset} of the external stack (domain {domain})"
        self._client: Client | None = None

    def ask(self) -> None:
        """Have the stack forget. It is taken to have said by then whatever it says of what it was given before.

        Raises StackError: its file names no service, nobody offers it, answers, or it was refused. UsageError: it is of
        another type.
        """
        if not self._stack.forgets:
            raise StackError(
                f"stack '{self._stack.name}' is external and cannot be restarted, but has not answered everything: "
                "what it says late would be taken for its next answers; let reset: in its file name the service that "
                "makes it forget"
            )
        client = self._client = self._client or self._found()
        reply = None
        until_s = process_time_s() + self._limit_s
        # May be asked twice: what has forgotten has nothing left to forget.
        while reply is None and process_time_s() < until_s:
            call = client.call_async(client.srv_type.Request())
            reply = call.result() if wait_until(call.done, ASK_AGAIN_S) else None
        if reply is None:
            raise StackError(f"{self._where} has not answered within {self._limit_s:g} s; see what its node does")
        if not getattr(reply, "success", True):
            raise StackError(f"{self._where} refused: {reply.message}; the stack remembers what it was given")

    def _found(self) -> Client:
        def types() -> list[str]:
            return dict(self._node.get_service_names_and_types()).get(self._name, [])

        if not wait_until(lambda: bool(types()), self._limit_s):
            raise StackError(f"nobody offers {self._where}; start it, or mend reset in the stack file")
        kind = next((RESETS[each] for each in types() if each in RESETS), None)
        if kind is None:
            raise UsageError(f"{self._where} is of type {', '.join(types())}, expected {' or '.join(RESETS)}")
        return self._node.create_client(kind, self._name)
