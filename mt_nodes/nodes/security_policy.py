# SPDX-License-Identifier: Apache-2.0
"""The SROS 2 policy of our nodes: what each enclave may publish, subscribe, answer and ask.

``python -m mt_nodes.nodes.security_policy my_stack.yaml`` prints that for a stack; ``config/sros2/policy.xml`` is that
for default topics. Format: ``policy.xsd`` of ros2/sros2, version 0.2.0. A test compares it with the graph.
"""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from mt_nodes.base.environment import TAP_ENCLAVE
from mt_nodes.data.stack_topics import DEFAULT_INPUTS, DEFAULT_OUTPUTS
from mt_nodes.nodes import clock_echo, failed_calls, live_control
from mt_nodes.nodes.isolation import OWN_NODES
from mt_nodes.nodes.node_interfaces import NODES
from mt_nodes.stacks.stack import Stack, load_stack

#: Enclaves are below it, one for each executable.
ROOT = "/mt_nodes"
#: The node of a live run in the live domain, which publishes nothing there.
TAP = "mt_tap"
_PARAMETERS = (
    *("describe_parameters", "get_parameter_types", "get_parameters", "list_parameters"),
    *("set_parameters", "set_parameters_atomically"),
)
_LIFE_CYCLE = ("change_state", "get_state", "get_available_states", "get_available_transitions", "get_transition_graph")
_TYPES = "get_type_description"
#: What a node asks others, to know that they know it: see mt_nodes.nodes.introduction.
_QUESTIONS = (f"/*/{_TYPES}", "/*/get_parameters")
#: Come beside what the stack names.
_TRANSFORMS = ("/tf", "/tf_static")


@dataclass(frozen=True)
class Profile:
    """What one node may do: topics, and services with ``~`` for its own name; ``*`` stands for any text."""

    node: str
    publishes: tuple[str, ...] = ()
    subscribes: tuple[str, ...] = ()
    replies: tuple[str, ...] = ()
    requests: tuple[str, ...] = ()


@dataclass(frozen=True)
class StackTopics:
    """Topics of the stack under test: what it takes, what else it needs of a bag, and what it says."""

    inputs: tuple[str, ...] = tuple(DEFAULT_INPUTS.values())
    outputs: tuple[str, ...] = tuple(row["topic"] for row in DEFAULT_OUTPUTS.values())
    needs: tuple[str, ...] = field(default=_TRANSFORMS)
    reset: str = ""

    @classmethod
    def of(cls, stack: Stack) -> StackTopics:
        """Return those of a stack."""
        inputs = tuple(name for names in stack.topics.values() for name in names)
        outputs = tuple(row.topic for output in stack.outputs.values() for row in output.rows)
        reset = stack.reset if stack.reset.startswith("/") else ""
        return cls(inputs, outputs, (*stack.needs, *_TRANSFORMS), reset)


def profiles(stack: StackTopics) -> dict[str, tuple[Profile, ...]]:
    """Return what the nodes of each executable may do; the tap of a live run has an enclave of its own."""
    arms = _arms(stack)
    suite = _plain(Profile("mt_suite", publishes=_published("suite")))
    echo = Profile("clock_echo", (clock_echo.PONG,), (clock_echo.PING,))
    control = Profile("mt_live", (clock_echo.PING,), (clock_echo.PONG,), tuple(f"~/{s}" for s in live_control.SERVICES))
    client = tuple(f"/{live_control.NAME}/{name}" for name in (*live_control.SERVICES, *_PARAMETERS))
    hosted = Profile("callable_stack", (*stack.outputs, failed_calls.TOPIC), (*stack.inputs, *stack.needs))
    return {
        "replayer": (_managed(Profile("replayer", (*stack.inputs, *stack.needs, "/clock"))),),
        "simulator": (
            _managed(Profile("simulator", (*_published("simulator"), *stack.inputs, *_TRANSFORMS), stack.outputs)),
        ),
        "mutator": (
            _managed(Profile("mutator", ("/mt/ledger", *_followups(stack)), (*stack.inputs, *stack.needs))),
            _plain(Profile("mt_mutator", _followups(stack))),
        ),
        "monitor": (
            _managed(Profile("monitor", ("/mt/verdicts",), ("/mt/ledger", *stack.outputs, *_TRANSFORMS))),
            *(_plain(Profile(f"mt_monitor_{arm}", (), stack.outputs)) for arm in OWN_NODES),
        ),
        "watch_suite": (Profile(TAP, (), (*stack.inputs, *stack.outputs, *stack.needs)),),
        "callable_stack": (_with_parameters(_plain(hosted)),),
        "suite": (suite, *arms),
        "live_suite": (suite, _managed(control), *arms),
        TAP_ENCLAVE: (Profile(TAP, (), (*stack.inputs, *stack.outputs, *stack.needs, "/clock")),),
        "live_client": (_plain(Profile("mt_live_client", requests=client)),),
        "clock_echo": (_plain(echo),),
    }


def policy(stack: StackTopics) -> str:
    """Return the policy as the text of an XML file."""
    root = ET.Element("policy", version="0.2.0")
    enclaves = ET.SubElement(root, "enclaves")
    for name, rows in profiles(stack).items():
        parent = ET.SubElement(ET.SubElement(enclaves, "enclave", path=f"{ROOT}/{name}"), "profiles")
        for row in rows:
            profile = ET.SubElement(parent, "profile", ns="/", node=row.node)
            _list(profile, "topic", {"publish": row.publishes, "subscribe": row.subscribes})
            _list(profile, "service", {"reply": row.replies, "request": row.requests})
    ET.indent(root)
    head = '<?xml version="1.0" encoding="UTF-8"?>\n<!-- SPDX-License-Identifier: Apache-2.0 -->'
    return f"{head}\n{ET.tostring(root, encoding='unicode')}\n"


def _list(profile: ET.Element, kind: str, rows: Mapping[str, Iterable[str]]) -> None:
    for qualifier, names in rows.items():
        unique = sorted(set(names))
        if unique:
            parent = ET.SubElement(profile, f"{kind}s", {qualifier: "ALLOW"})
            for name in unique:
                ET.SubElement(parent, kind).text = name


def _published(executable: str) -> tuple[str, ...]:
    return tuple(row.topic for row in NODES[executable].endpoints if row.does == "publishes" and row.topic[0] == "/")


def _followups(stack: StackTopics) -> tuple[str, ...]:
    return tuple(f"/mt/followup{topic}" for topic in stack.inputs)


def _arms(stack: StackTopics) -> tuple[Profile, ...]:
    """Return the nodes in the domains of the two arms: one plays, the other hears."""
    played = (*stack.inputs, *stack.needs, "/clock")
    reset = (stack.reset,) if stack.reset else ()
    return tuple(
        _plain(row)
        for arm, player in OWN_NODES.items()
        for row in (
            Profile(player, played),
            Profile(f"mt_monitor_{arm}", (), (*stack.outputs, failed_calls.TOPIC), requests=(*reset, *_QUESTIONS)),
        )
    )


def _plain(row: Profile) -> Profile:
    """Return it with what rclpy gives every node."""
    return replace(row, publishes=(*row.publishes, "/parameter_events"), replies=(*row.replies, f"~/{_TYPES}"))


def _with_parameters(row: Profile) -> Profile:
    replies = (*row.replies, *(f"~/{name}" for name in _PARAMETERS))
    return replace(row, publishes=(*row.publishes, "/rosout"), replies=replies)


def _managed(row: Profile) -> Profile:
    """Return it with what a node with a life cycle has."""
    full = _with_parameters(_plain(row))
    replies = (*full.replies, *(f"~/{name}" for name in _LIFE_CYCLE))
    return replace(full, publishes=(*full.publishes, "~/transition_event"), replies=replies)


def main() -> None:
    """Print the policy for the stack that is named, or for default topics."""
    sys.stdout.write(policy(StackTopics.of(load_stack(sys.argv[1])) if sys.argv[1:] else StackTopics()))


if __name__ == "__main__":
    main()
