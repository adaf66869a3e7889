# SPDX-License-Identifier: Apache-2.0
"""The one place that knows which processes and domains a run needs."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from mt_nodes import plugins
from mt_nodes.environment import ros_environment, user_environment
from mt_nodes.errors import UsageError
from mt_nodes.processes import Process, filled
from mt_nodes.relations import DEFAULT
from mt_nodes.stacks import Stack

MODES = ("twin", "alternate", "two_pass")
PACES = ("lockstep", "realtime")
TRANSPORTS = ("ros", "inprocess")


@dataclass(frozen=True)
class ReplayRequest:
    """What the user asked of ``mt replay``; everything a run depends on, kept in ``run.json``."""

    bags: tuple[str, ...]
    relations: tuple[str, ...] = DEFAULT
    stack: str = "reference_detector"
    mode: str = "twin"
    pace: str = "lockstep"
    transport: str = "ros"
    limit: int | None = None
    seed: int = 0
    faults: tuple[str, ...] = ()
    topics: Mapping[str, str] = field(default_factory=dict)
    transforms: str = ""
    rate: float = 1.0
    plugins: tuple[str, ...] = ()

    def as_plain(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        return asdict(self)

    @classmethod
    def from_plain(cls, data: Mapping[str, Any]) -> ReplayRequest:
        """Read what :meth:`as_plain` made."""
        names = {f.name for f in fields(cls)}
        values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in data.items() if k in names}
        return cls(**values)


@dataclass(frozen=True)
class ArmPlan:
    """One arm: its name, its ROS domain (None: a free one is leased), and the prefix of its topics when remapped."""

    name: str
    domain: int | None
    prefix: str = ""

    def topic(self, name: str) -> str:
        """Return a topic's name in this arm."""
        return self.prefix + name


def check_request(request: ReplayRequest, stack: Stack) -> None:
    """Refuse what cannot run.

    Raises:
        UsageError: saying what to type instead.
    """
    for name, value, known in (
        ("--mode", request.mode, MODES),
        ("--pace", request.pace, PACES),
        ("--transport", request.transport, TRANSPORTS),
    ):
        if value not in known:
            hint = "; shadow needs a live stack" if value == "shadow" else ""
            raise UsageError(f"{name}: got '{value}', expected {', '.join(known)}{hint}")
    if request.mode == "alternate" and not stack.stateless:
        raise UsageError(f"--mode alternate: stack '{stack.name}' remembers (stateless: false); use twin or two_pass")
    if request.transport == "inprocess" and not stack.callable:
        raise UsageError(f"--transport inprocess: stack '{stack.name}' is not a Python callable; use --transport ros")
    if request.pace == "realtime" and (request.transport == "inprocess" or request.mode != "twin"):
        raise UsageError("--pace realtime: needs --transport ros and --mode twin")
    if stack.external and (request.mode == "two_pass" or not stack.stateless):
        raise UsageError(
            f"stack '{stack.name}' is external: it cannot be restarted, so only a stateless one can be replayed"
        )
    if request.rate <= 0:
        raise UsageError(f"--rate: got {request.rate:g}, expected more than 0")


def arm_plans(request: ReplayRequest, stack: Stack) -> tuple[ArmPlan, ...]:
    """Return the arms of a run: two in ``twin``, one (named source) otherwise."""
    names = ("source", "followup") if request.mode == "twin" else ("source",)
    if stack.isolation == "remap":
        shared = stack.domain.get("source")
        return tuple(ArmPlan(n, shared, f"/mt/{n}") for n in names)
    return tuple(ArmPlan(n, stack.domain.get(n)) for n in names)


def stack_process(stack: Stack, arm: ArmPlan, domain: int, out: Path, base_env: Mapping[str, str]) -> Process | None:
    """Return the process of the stack in one arm; None when somebody else starts it."""
    if stack.external:
        return None
    log = out / f"stack_{arm.name}.log"
    name = f"stack '{stack.name}' ({arm.name} arm)"
    if stack.callable:
        argv = (
            *(sys.executable, "-m", "mt_nodes.nodes.callable_stack"),
            *("--stack", str(out / "stack.yaml"), "--transforms", str(out / "transforms.yaml")),
            *("--prefix", arm.prefix),
            *(word for directory in plugins.directories() for word in ("--plugins", str(directory))),
        )
        return Process(name, argv, {**ros_environment(base_env, domain), **stack.env}, log)
    remap = [word for topic in _topics(stack) for word in ("-r", f"{topic}:={arm.topic(topic)}")] if arm.prefix else []
    values = {"arm": [arm.name], "domain": [str(domain)], "remap": remap}
    env = {**user_environment(base_env), "ROS_DOMAIN_ID": str(domain), **stack.env}
    return Process(name, filled(stack.command, values), env, log)


def suite_process(out: Path, base_env: Mapping[str, str]) -> Process:
    """Return the process that replays, mutates and judges; what it prints goes to the console log."""
    argv = (sys.executable, "-m", "mt_nodes.nodes.suite", "--run", str(out))
    return Process("suite", argv, ros_environment(base_env, None), out / "console.log")


def _topics(stack: Stack) -> list[str]:
    return [*stack.inputs.values(), *(row.topic for row in stack.outputs.values()), "/clock"]
