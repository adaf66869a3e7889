# SPDX-License-Identifier: Apache-2.0
"""The process of an in-process stack: makes the callable and answers requests until the channel closes."""

from __future__ import annotations

import faulthandler
import os
import sys
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.random  # which NumPy imports late: in each process forked anew

from mt_nodes.base import plugins
from mt_nodes.base.environment import keep_freed_memory, without_secrets
from mt_nodes.base.errors import InfrastructureError, MtError, StackCallError, UsageError
from mt_nodes.data.messages import Message
from mt_nodes.data.outputs import Output
from mt_nodes.data.transforms import TransformTree, UnknownTransform
from mt_nodes.stacks.callable_host import CallableHost
from mt_nodes.stacks.callables import describe_raise
from mt_nodes.stacks.shared_channel import SharedChannel
from mt_nodes.stacks.stack import Stack


@dataclass(frozen=True)
class ProcessContext:
    """Environment, directories and module path that the process takes over from the suite."""

    env: Mapping[str, str]
    directory: str
    path: tuple[str, ...]
    plugins: tuple[Path, ...]

    @classmethod
    def current(cls) -> ProcessContext:
        """Return the context of this process."""
        return cls(without_secrets(os.environ), str(Path.cwd()), tuple(sys.path), tuple(plugins.directories()))


@dataclass(frozen=True)
class Make:
    """Request to make the callable, again if there is one."""

    stack: Stack
    context: ProcessContext


@dataclass(frozen=True)
class StackCall:
    """Request to call the callable; fields: see :class:`~mt_nodes.stacks.callable_host.CallableHost`."""

    sensor: Message | Mapping[str, Message]
    transforms: TransformTree
    now_ns: int


@dataclass(frozen=True)
class StackReply:
    """The reply: the output, the time it took and the processor time of this process meanwhile, or an error.

    ``error``: its text; None without. ``kind``: of the error; ``InfrastructureError`` is one of the stack,
    ``StackCallError`` one that ends only the call.
    """

    output: Output | None = None
    took_s: float = 0.0
    cpu_s: float = 0.0
    error: str | None = None
    kind: type[MtError] = InfrastructureError


def serve(channel: SharedChannel) -> None:
    """Answer requests until the other side is gone."""
    _set_up()
    host = _Host()
    while True:
        try:
            request = channel.receive()
        except EOFError:
            return
        reply = host.do(request)
        try:
            channel.send(reply)
        except OSError:
            return
        except Exception as error:  # noqa: BLE001 - what a callable returned may hold anything
            why = f"stack '{host.name}' returned an object that cannot be sent: {type(error).__name__}: {error}"
            channel.send(StackReply(error=why))


class _Host:
    """The callable, once it is made."""

    name = ""
    _callable: CallableHost | None = None

    def do(self, request: Make | StackCall) -> StackReply:
        """Return the reply; any exception of the stack, even SystemExit, becomes an error."""
        try:
            return self._make(request) if isinstance(request, Make) else self._call(request)
        except (UnknownTransform, UsageError, InfrastructureError) as error:
            kind = next(k for k in (UnknownTransform, UsageError, InfrastructureError) if isinstance(error, k))
            return StackReply(error=str(error), kind=kind)
        except BaseException as error:  # noqa: BLE001
            traceback.print_exc()
            survives = isinstance(request, StackCall) and isinstance(error, Exception)
            return StackReply(
                error=describe_raise(self.name, error), kind=StackCallError if survives else InfrastructureError
            )

    def _make(self, request: Make) -> StackReply:
        self.name, self._callable = request.stack.name, None  # the old one is freed first
        _enter(request.context, request.stack)
        self._callable = CallableHost.make(request.stack)
        return StackReply()

    def _call(self, request: StackCall) -> StackReply:
        assert self._callable is not None, "called before it was made"
        began_s, cpu_began_s = time.monotonic(), time.process_time()
        output = self._callable(request.sensor, request.transforms, request.now_ns)
        return StackReply(output, time.monotonic() - began_s, time.process_time() - cpu_began_s)


def _set_up() -> None:
    faulthandler.enable()
    keep_freed_memory()
    np.random.seed()  # forks share the state, and two arms would draw the same noise


def _enter(context: ProcessContext, stack: Stack) -> None:
    os.environ.clear()
    os.environ.update({**context.env, **stack.env})
    os.chdir(context.directory)
    sys.path[:] = [*context.path, *(p for p in sys.path if p not in context.path)]
    plugins.add_directories(context.plugins)
