# SPDX-License-Identifier: Apache-2.0
"""What the process of an in-process stack does: it makes the callable and answers inputs until nobody asks any more."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import sys
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mt_nodes.base import plugins
from mt_nodes.base.environment import keep_freed_memory
from mt_nodes.base.errors import InfrastructureError, MtError, UsageError
from mt_nodes.data.messages import Message
from mt_nodes.data.outputs import Output
from mt_nodes.data.transforms import TransformTree, UnknownTransform
from mt_nodes.stacks.callable_host import CallableHost
from mt_nodes.stacks.callables import raised_at
from mt_nodes.stacks.shared_channel import SharedChannel
from mt_nodes.stacks.stack import Stack

#: Where memory runs out, the kernel is to end the stack rather than the process that tells of it.
_OOM_SCORE = "500"


@dataclass(frozen=True)
class ProcessPlace:
    """What the process takes over from the one that asks: its environment, directories and module path."""

    env: Mapping[str, str]
    directory: str
    path: tuple[str, ...]
    plugins: tuple[Path, ...]

    @classmethod
    def here(cls) -> ProcessPlace:
        """Return that of this process."""
        return cls(dict(os.environ), str(Path.cwd()), tuple(sys.path), tuple(plugins.directories()))


@dataclass(frozen=True)
class Make:
    """Asks for the callable to be made, anew where there is one."""

    stack: Stack
    place: ProcessPlace


@dataclass(frozen=True)
class StackCall:
    """Asks for the callable's answer; fields: see :class:`~mt_nodes.stacks.callable_host.CallableHost`."""

    sensor: Message | Mapping[str, Message]
    transforms: TransformTree
    now_ns: int


@dataclass(frozen=True)
class StackReply:
    """What came of it: the output and how long that took, or an error by kind.

    Attributes:
        error: the text, None where there is none.
        kind: of the error; ``InfrastructureError`` is one of the stack.
    """

    output: Output | None = None
    took_s: float = 0.0
    error: str | None = None
    kind: type[MtError] = InfrastructureError


def serve(channel: SharedChannel) -> None:
    """Do what is asked until the other side is gone."""
    _settle_in()
    host = _Host()
    while True:
        try:
            asked = channel.receive()
        except EOFError:
            return
        reply = host.do(asked)
        try:
            channel.send(reply)
        except OSError:
            return
        except Exception as error:  # noqa: BLE001 - what a callable returned may hold anything
            why = f"stack '{host.name}' returned what cannot be handed over: {type(error).__name__}: {error}"
            channel.send(StackReply(error=why))


class _Host:
    """The callable, once it is made."""

    name = ""
    _callable: CallableHost | None = None

    def do(self, asked: Make | StackCall) -> StackReply:
        """Return what comes of it, or the error: that of a stack which wants to exit, too, is its own and not ours."""
        try:
            return self._make(asked) if isinstance(asked, Make) else self._call(asked)
        except (UnknownTransform, UsageError, InfrastructureError) as error:
            kind = next(k for k in (UnknownTransform, UsageError, InfrastructureError) if isinstance(error, k))
            return StackReply(error=str(error), kind=kind)
        except BaseException as error:  # noqa: BLE001
            traceback.print_exc()
            return StackReply(error=f"stack '{self.name}' raised {type(error).__name__}: {error}{raised_at(error)}")

    def _make(self, asked: Make) -> StackReply:
        self.name, self._callable = asked.stack.name, None  # what is replaced is freed before there is another
        _move_to(asked.place, asked.stack)
        self._callable = CallableHost.make(asked.stack)
        return StackReply()

    def _call(self, asked: StackCall) -> StackReply:
        assert self._callable is not None, "asked before it was made"
        began_s = time.monotonic()
        output = self._callable(asked.sensor, asked.transforms, asked.now_ns)
        return StackReply(output, time.monotonic() - began_s)


def _settle_in() -> None:
    faulthandler.enable()
    keep_freed_memory()
    np.random.seed()  # forked processes begin with one state, and two arms would draw the same noise
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(_OOM_SCORE)


def _move_to(place: ProcessPlace, stack: Stack) -> None:
    os.environ.clear()
    os.environ.update({**place.env, **stack.env})
    os.chdir(place.directory)
    sys.path[:] = [*place.path, *(p for p in sys.path if p not in place.path)]
    plugins.add_directories(place.plugins)
