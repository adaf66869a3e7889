# SPDX-License-Identifier: Apache-2.0
"""An instance of the stack in a box: what is started inside, and which topics go through its wall.

Inside is a ROS graph of its own, on loopback; the bridge inside and the one outside are joined by an inherited socket.
Outside, in the domain of the arm, the bridge has the endpoints of the stack, so that an arm finds one as ever.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mt_nodes.base.environment import ros_environment
from mt_nodes.base.processes import Process
from mt_nodes.base.safety_settings import Actuators, BoxSettings
from mt_nodes.engine.plan import ReplayedTopic
from mt_nodes.stacks.stack import Stack

#: Node of both bridges.
NODE = "mt_box"


@dataclass(frozen=True)
class Passing:
    """A topic that goes through the wall; ``required``: a stack that is ready has an endpoint of it."""

    topic: str
    type: str
    latched: bool = False
    required: bool = True


@dataclass(frozen=True)
class BoxedStack:
    """What the two bridges are told.

    ``inputs``, ``outputs``: what goes in, and what comes out; nothing else does. ``nodes``: full names of those who may
    be inside; empty: not known, nobody is a stranger.
    """

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    log: str
    domain: int
    inputs: tuple[Passing, ...]
    outputs: tuple[Passing, ...]
    nodes: tuple[str, ...]
    actuators: Actuators
    observers: tuple[str, ...]
    ready_timeout_s: float
    stop_timeout_s: float
    box: BoxSettings

    @property
    def process(self) -> Process:
        """The stack itself, inside."""
        return Process(self.name, self.argv, self.env, Path(self.log))

    def save(self, path: Path) -> None:
        """Write it for the bridges."""
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> BoxedStack:
        """Read what :meth:`save` wrote."""
        data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        topics = {name: tuple(Passing(**row) for row in data[name]) for name in ("inputs", "outputs")}
        lists = {name: tuple(data[name]) for name in ("argv", "nodes", "observers")}
        parts = {name: cls_(**_tuples(data[name])) for name, cls_ in (("actuators", Actuators), ("box", BoxSettings))}
        return cls(**{**data, **topics, **lists, **parts})


def _tuples(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}


def boxed_stack(
    process: Process,
    stack: Stack,
    domain: int,
    topics: Mapping[str, ReplayedTopic],
    required: Sequence[str],
    box: BoxSettings,
    actuators: Actuators,
    observers: tuple[str, ...],
) -> BoxedStack:
    """Return what is told of an instance.

    ``process``: that would be started without a box. ``topics``: topic outside -> how the stack is given it.
    ``required``: those that it must subscribe to.
    """
    needed = set(required)
    return BoxedStack(
        name=process.name,
        argv=tuple(process.argv),
        env=dict(process.env),
        log=str(process.log),
        domain=domain,
        inputs=tuple(Passing(row.topic, row.type, row.latched, topic in needed) for topic, row in topics.items()),
        outputs=tuple(Passing(row.topic, row.type) for row in stack.published),
        nodes=(*stack.nodes, *stack.allow_nodes) if stack.nodes else (),
        actuators=actuators,
        observers=observers,
        ready_timeout_s=stack.ready_timeout_s,
        stop_timeout_s=stack.stop_timeout_s,
        box=box,
    )


def bridge_process(boxed: BoxedStack, spec: Path, base_env: Mapping[str, str]) -> Process:
    """Return the process that stands outside for a boxed stack, and starts it; ``spec`` is written for it."""
    boxed.save(spec)
    log = Path(boxed.log)
    argv = (sys.executable, "-m", "mt_nodes.nodes.box_outside", "--spec", str(spec))
    return Process(boxed.name, argv, ros_environment(base_env, boxed.domain), log.with_name(f"box_{log.name}"))
