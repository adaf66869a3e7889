# SPDX-License-Identifier: Apache-2.0
"""Finds in ROS graphs by which way a test could reach an actuator. Pure: what a graph holds is given.

Discovery is eventually consistent, so this is the second layer: it notices what a box
(:mod:`mt_nodes.runs.vehicle.box`) makes impossible, and what comes from outside of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from mt_nodes.base.safety_settings import Actuators

#: What a node can have on a name, and what it does with it.
PUBLISHER, SUBSCRIPTION, SERVER, CLIENT = "publishes", "subscribes to", "serves", "calls"
ACTION_SERVER, ACTION_CLIENT = "carries out", "asks for"


@dataclass(frozen=True, order=True)
class GraphEndpoint:
    """What one node has: ``role`` is one of the six above, ``name`` that of a topic, service or action.

    Nodes may be called alike, as those of two instances of one stack are: ``number`` counts what would be the same.
    """

    node: str
    role: str
    name: str
    type: str
    number: int = 1

    def __str__(self) -> str:
        return f"{self.node} {self.role} {self.name} ({self.type})"


@dataclass(frozen=True)
class LeakQuery:
    """What is looked for.

    ``actuators``: endpoints that move the vehicle. ``observers``: nodes that only look on; names may end in ``*``.
    ``outputs``: topics on which the stack under test answers.
    """

    actuators: Actuators
    observers: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()

    def moves(self, one: GraphEndpoint) -> bool:
        """Whether something on this endpoint moves the vehicle, by its name or its type."""
        names = {
            PUBLISHER: self.actuators.topics,
            SUBSCRIPTION: self.actuators.topics,
            SERVER: self.actuators.services,
            CLIENT: self.actuators.services,
            ACTION_SERVER: self.actuators.actions,
            ACTION_CLIENT: self.actuators.actions,
        }[one.role]
        return _named(one.name, names) or one.type in self.actuators.types

    def concerns(self, name: str, kind: str) -> bool:
        """Whether an endpoint of this name and type can be a leak at all, whatever its role."""
        moving = self.actuators
        names = (*moving.topics, *moving.services, *moving.actions, *self.outputs)
        return kind in moving.types or _named(name, names)

    def is_observer(self, node: str) -> bool:
        """Whether a node only looks on, as the user says."""
        return _named(node, self.observers)


def _named(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def leaks_in_arm(found: Collection[GraphEndpoint], watched: LeakQuery, ours: Collection[str]) -> list[str]:
    """Return who, in the domain of an arm, would carry a test's commands out, the stack's own nodes among them.

    A stack publishes commands there, as it is meant to; whoever takes them would act on them.
    ``ours``: nodes that hear what the stack says.
    """
    acts = (SUBSCRIPTION, SERVER, ACTION_SERVER)
    leaks = [
        one
        for one in found
        if one.role in acts and watched.moves(one) and one.node not in ours and not watched.is_observer(one.node)
    ]
    # Whoever only looks on does not serve.
    leaks += [one for one in found if one.role in acts[1:] and watched.moves(one) and watched.is_observer(one.node)]
    return [f"{one}: it would act on what a test commands" for one in sorted(set(leaks))]


def leaks_in_live(
    found: Collection[GraphEndpoint], before: Collection[GraphEndpoint], watched: LeakQuery, ours: Collection[str]
) -> list[str]:
    """Return who came into the live domain since it was looked at first, and could bring a test's commands there.

    ``before``: what was there before the first test. ``ours``: nodes of the suite, which may have subscriptions alone.
    """
    commands = (PUBLISHER, CLIENT, ACTION_CLIENT)
    new = [one for one in found if one.role in commands and one not in set(before)]
    leaks = [one for one in new if watched.moves(one) or (one.role == PUBLISHER and one.name in watched.outputs)]
    findings = [f"{one}: {_which(one)} was not there before the first test" for one in sorted(set(leaks))]
    own = [one for one in found if one.node in ours and one.role != SUBSCRIPTION]
    return findings + [f"{one}: a node of ours may listen only" for one in sorted(set(own))]


def _which(one: GraphEndpoint) -> str:
    return "it" if one.number == 1 else f"number {one.number} of that name"
