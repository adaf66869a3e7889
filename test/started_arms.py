# SPDX-License-Identifier: Apache-2.0
"""Arms without topics for tests of run loops: started, and ended when nobody has them any more."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from mt_nodes.data.transforms import UnknownTransform
from mt_nodes.engine import callable_arm
from mt_nodes.engine.arm import start
from mt_nodes.engine.callable_arm import CallableArm, CallTicket
from mt_nodes.stacks.callable_host import CallableHost
from mt_nodes.stacks.stack import Stack
from mt_nodes.stacks.stack_host import StackCall, StackReply

#: Faults of what a process remembers: they get one of their own.
REMEMBERED = {"passed_are_remembered"}


def started_arm(name: str, stack: Stack, topics: Mapping[str, str] | frozenset[str]) -> CallableArm:
    """Make an arm whose callable is ready, in a process of its own."""
    arm = CallableArm(name, stack, topics)
    start(arm)
    return arm


def arm_here(name: str, stack: Stack, topics: Mapping[str, str] | frozenset[str]) -> CallableArm:
    """Make an arm whose callable is ready, in this process: for reference stacks, which leave nothing behind.

    Half of the time of a process of its own is that of sending messages and answers.
    """
    arm = ArmHere(name, stack, topics)
    start(arm)
    return arm


class ArmHere(CallableArm):
    """An arm that calls the stack in this process."""

    def start(self) -> None:
        self._process = StackHere(self._stack)  # type: ignore[assignment]
        self._ticket = CallTicket("")


class StackHere:
    """The callable, asked as its process is: an answer is there at once."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self.make()

    def make(self) -> None:
        self._callable, self._reply = CallableHost.make(self._stack), StackReply()

    def call(self, call: StackCall) -> None:
        began_s = time.process_time()  # others may use this machine
        try:
            output = self._callable(call.sensor, call.transforms, call.now_ns)
            self._reply = StackReply(output, time.process_time() - began_s)
        except UnknownTransform as error:
            self._reply = StackReply(error=str(error), kind=UnknownTransform)

    def reply(self) -> StackReply:
        return self._reply

    def stop(self) -> None:
        """It ends with whoever has it."""


@contextmanager
def reference_stacks_here() -> Iterator[None]:
    """Have runs without topics call reference stacks in this process; stacks of a test's own stay in theirs."""

    def arm(name: str, stack: Stack, topics: Mapping[str, str], *log: Path, alone: bool = False) -> CallableArm:
        ours = stack.callable.startswith("mt_nodes.stacks.reference.") and not REMEMBERED.intersection(faults_of(stack))
        return (ArmHere if ours else CallableArm)(name, stack, topics, *log, alone=alone)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(callable_arm, "CallableArm", arm)
        yield


def faults_of(stack: Stack) -> Iterator[str]:
    """Yield the names of the faults that are planted in a stack."""
    for fault in stack.params.get("faults", ()):
        yield from [fault] if isinstance(fault, str) else fault
