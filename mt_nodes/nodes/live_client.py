# SPDX-License-Identifier: Apache-2.0
"""Tells a run beside a live stack what to do, and prints its reply as one JSON line.

Started by ``mt live VERB`` in the control domain of the run: ``{"ok": …, "text": …}``, or null when no run answers.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import rclpy
from rcl_interfaces.srv import SetParameters
from rclpy.node import Node
from rclpy.parameter import Parameter
from std_srvs.srv import Trigger

from mt_nodes.base.environment import use_enclave
from mt_nodes.base.processes import wait_until
from mt_nodes.base.yaml_files import parse
from mt_nodes.nodes.live_control import NAME, RELATIONS
from mt_nodes.nodes.query_process import default_context, json_output
from mt_nodes.runs.live.commands import Reply

#: How long a run is looked for.
FIND_S = 10.0
#: A reply may be lost while the two have not quite found each other: what is asked here may be asked again.
ANSWER_S, ATTEMPTS = 2.0, 5


def main() -> None:
    """Do what the command line says."""
    answer = json_output()
    use_enclave("live_client")
    with default_context():
        node = Node("mt_live_client", enable_rosout=False, start_parameter_services=False)
        reply = command(node, sys.argv[1], sys.argv[2:])
        answer(None if reply is None else {"ok": reply.ok, "text": reply.text})


def command(node: Node, verb: str, words: Sequence[str]) -> Reply | None:
    """Have a run do what a verb says: a service of :data:`SERVICES`, relations, or set; None when no run answers."""
    if verb == "relations":
        return _set(node, RELATIONS, words[0].split(","))
    if verb == "set":
        return _set(node, words[0], parse(words[1], words[0]))
    response = _call(node, Trigger, f"/{NAME}/{verb}", Trigger.Request())
    return None if response is None else Reply(response.success, response.message)


def _set(node: Node, name: str, value: Any) -> Reply | None:
    request = SetParameters.Request(parameters=[Parameter(name, value=value).to_parameter_msg()])
    response = _call(node, SetParameters, f"/{NAME}/set_parameters", request)
    if response is None:
        return None
    [result] = response.results
    shown = ", ".join(value) if isinstance(value, list) else value
    return Reply(result.successful, f"{name}: {shown}" if result.successful else result.reason)


def _named(node: Node, service: str) -> list[str]:
    """Return the services of that name: the run may be in a namespace."""
    return sorted(name for name, _ in node.get_service_names_and_types() if name.endswith(service))


def _call(node: Node, kind: Any, service: str, request: Any) -> Any:
    found = wait_until(lambda: bool(_named(node, service)), FIND_S)
    client = node.create_client(kind, _named(node, service)[0]) if found else None
    if client is None or not client.wait_for_service(FIND_S):
        return None
    for _ in range(ATTEMPTS):
        answer = client.call_async(request)
        rclpy.spin_until_future_complete(node, answer, timeout_sec=ANSWER_S)
        if answer.done():
            return answer.result()
    return None


if __name__ == "__main__":
    main()
