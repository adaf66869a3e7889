# SPDX-License-Identifier: Apache-2.0
"""The process of an in-process stack, seen from outside: sends requests, waits, and detects death and hangs."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import pickle
import select
import signal
import socket
import sys
import weakref
from pathlib import Path
from typing import Any

from mt_nodes.base.environment import without_secrets
from mt_nodes.base.errors import StackError
from mt_nodes.base.process_clock import process_time_s
from mt_nodes.base.process_limits import ProcessLimits
from mt_nodes.base.processes import Child, Process, how_it_ended, is_stopped, tail_of, uninterrupted
from mt_nodes.stacks.shared_channel import SharedChannel, shared_memory
from mt_nodes.stacks.stack import Stack
from mt_nodes.stacks.stack_host import Make, ProcessContext, StackCall, StackReply
from mt_nodes.stacks.stack_server import MESSAGE_BYTES

#: Interval at which a silent process is checked, and time for a process that closed its channel to end.
CHECK_EVERY_S, GONE_S = 0.5, 5.0


class StackProcess:
    """A process that makes and calls a stack's callable, so that it can die, hang and exit without the suite.

    ``name``: of the process, for error texts. ``stack``: its stack. ``log``: file for its output.
    """

    def __init__(self, name: str, stack: Stack, log: Path) -> None:
        process_time_s.start_watching()
        self._name, self._stack, self._log = name, stack, log
        self._offset = log.stat().st_size if log.is_file() else 0
        self._request_s: float | None = None
        self._limit_s, self._limit = 0.0, ""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        to, from_ = shared_memory("to_stack"), shared_memory("from_stack")
        with theirs, log.open("ab") as output:
            module = stack.callable.partition(":")[0]
            self._server = _server(log, stack.limits)
            self._pid, self._handle = self._server.fork(module, (theirs.fileno(), from_, to, output.fileno()))
        self._channel = SharedChannel(ours, to, from_, restricted=True)
        self._close = weakref.finalize(self, _close, self._channel, self._handle)
        self.make()

    @property
    def over(self) -> bool:
        """Whether its end was noticed."""
        return not self._close.alive

    def make(self) -> None:
        """Have the callable made, again if there is one; :meth:`reply` waits for it."""
        limit_s = self._stack.ready_timeout_s
        self._ask(
            Make(self._stack, ProcessContext.current()), limit_s, f"was not ready after {limit_s:g} s (ready_timeout_s)"
        )

    def call(self, call: StackCall) -> None:
        """Have the callable called; :meth:`reply` waits for its output."""
        limit_s = self._stack.deadline_s
        self._ask(call, limit_s, f"has not answered within {limit_s:g} s (deadline_s)")

    def reply(self) -> StackReply:
        """Wait for the reply to the last request.

        Raises StackError: the process died, or did not answer in time and was killed.
        """
        assert self._request_s is not None, "there is no request"
        until_s = self._request_s + self._limit_s
        while not self._readable(self._channel.fileno(), min(CHECK_EVERY_S, until_s - process_time_s())):
            if self._dead():
                raise self._died()
            if process_time_s() >= until_s:
                raise self._hung()
        try:
            reply = self._channel.receive()
        except EOFError:
            raise self._died() from None
        except pickle.UnpicklingError as error:
            raise StackError(f"{self._name} returned an object that cannot be read: {error}") from error
        self._request_s = None
        assert isinstance(reply, StackReply)
        return reply

    def stop(self) -> None:
        """Stop the process; an idle one exits by itself. Raises StackError: it has died since its last reply."""
        if self.over:
            return
        if self._request_s is None and self._dead():
            raise self._died()
        patience_s = 0.0 if self._request_s is not None else self._stack.stop_timeout_s
        self._channel.close_socket()
        self._end(patience_s)

    def _ask(self, what: Make | StackCall, limit_s: float, limit: str) -> None:
        self._limit_s, self._limit = limit_s, limit
        try:
            self._channel.send(what)
        except OSError:
            raise self._died() from None
        self._request_s = process_time_s()

    def _readable(self, number: int, timeout_s: float) -> bool:
        """Return whether the descriptor is readable; wait for that or for the end of the process."""
        waiting = select.poll()
        for each in {number, self._handle}:
            waiting.register(each, select.POLLIN)
        return any(ready == number for ready, _ in waiting.poll(1e3 * max(0.0, timeout_s)))

    def _dead(self, within_s: float = 0.0) -> bool:
        return self._readable(self._handle, within_s)

    def _died(self) -> StackError:
        """Return the error for its death."""
        how = "" if self._dead(GONE_S) else "closed its connection and "
        code = self._end(0.0)
        return StackError(f"{self._name} {how}{how_it_ended(code)}; {self._tail()}")

    def _hung(self) -> StackError:
        stopped = ": it was stopped (SIGSTOP)" if is_stopped(self._pid) else ""
        self._end(0.0)
        return StackError(
            f"{self._name} {self._limit}{stopped} and was killed; raise that limit in the stack file if it needs "
            f"longer; {self._tail()}"
        )

    def _end(self, patience_s: float) -> int:
        """Wait for its end, then kill it and its process group; return the exit code."""
        if not self._dead(patience_s):
            signal.pidfd_send_signal(self._handle, signal.SIGKILL)
            self._dead(GONE_S)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._pid, signal.SIGKILL)
        code = self._server.code(self._pid)
        self._close()
        return code

    def _tail(self) -> str:
        return tail_of(self._log, self._offset)


class _Server:
    """The process that forks the processes of stacks; see :mod:`mt_nodes.stacks.stack_server`.

    ``ended_cpu_s``: processor time of those that have ended, of all servers.
    """

    ended_cpu_s = 0.0

    def __init__(self, log: Path, limits: ProcessLimits) -> None:
        self.owner, self.limits = os.getpid(), limits
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            number = theirs.fileno()
            command = (sys.executable, "-m", "mt_nodes.stacks.stack_server", str(number))
            env = {**without_secrets(os.environ), "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
            with uninterrupted():
                self._child = Child(Process("the process that starts stacks", command, env, log, limits), (number,))

    @property
    def alive(self) -> bool:
        """Whether it can take requests."""
        return self.owner == os.getpid() and self._child.code is None

    def fork(self, module: str, descriptors: tuple[int, int, int, int]) -> tuple[int, int]:
        """Start a process with these descriptors; return its id, and a descriptor that is readable when it ends."""
        data, handles = self._request({"module": module}, descriptors)
        return int(data), handles[0]

    def code(self, pid: int) -> int:
        """Return how a process ended: exit code, or (negative) the signal; note what processor time it took."""
        code, cpu_s = self._request({"pid": pid})[0]
        _Server.ended_cpu_s += float(cpu_s)
        return int(code)

    def close(self) -> None:
        """Stop it and all processes that it forked; does nothing in a fork of this process."""
        if self.owner == os.getpid():
            self._control.close()
            self._child.stop(GONE_S)

    def _request(self, what: dict[str, Any], descriptors: tuple[int, ...] = ()) -> tuple[Any, list[int]]:
        data, handles = b"", list[int]()
        with contextlib.suppress(OSError), uninterrupted():  # request and reply stay together
            socket.send_fds(self._control, [json.dumps(what).encode()], descriptors)
            data, handles, _, _ = socket.recv_fds(self._control, MESSAGE_BYTES, 1, socket.MSG_CMSG_CLOEXEC)
        if not data:
            self._child.stop(GONE_S)
            self._child.check()
        return json.loads(data), handles


_servers: dict[ProcessLimits, _Server] = {}


def ended_stacks_cpu_s() -> float:
    """Return the processor time of all stack processes of this process that have ended, which are not its children."""
    return _Server.ended_cpu_s


def _server(log: Path, limits: ProcessLimits) -> _Server:
    """Return the server of this process for these limits; start one if there is none alive."""
    server = _servers.get(limits)
    if server is None or not server.alive:
        server = _servers[limits] = _Server(log, limits)
        atexit.register(server.close)
    return server


def _close(channel: SharedChannel, handle: int) -> None:
    channel.close()
    os.close(handle)
