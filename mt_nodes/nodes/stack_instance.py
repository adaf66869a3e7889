# SPDX-License-Identifier: Apache-2.0
"""The process that the stack of an arm runs in, and what its state says of the arm."""

from __future__ import annotations

from mt_nodes.base.errors import ExitCode, IsolationError, StackError, UsageError
from mt_nodes.base.processes import Child, Process, uninterrupted
from mt_nodes.stacks.stack import Stack


class StackInstance:
    """Starts and ends one instance of a stack; of an external one there is nothing to start, and all else is void.

    ``arm``: name of the arm, for messages. ``process``: how the stack starts; None for an external one.
    """

    def __init__(self, arm: str, stack: Stack, process: Process | None) -> None:
        self._arm, self._stack, self._process = arm, stack, process
        self._child: Child | None = None

    @property
    def external(self) -> bool:
        """Whether somebody else starts the stack."""
        return self._process is None

    @property
    def tail(self) -> str:
        """The end of its log, or what to do about an external one."""
        return self._child.tail() if self._child else "start it, or mend its topics and domain in the stack file"

    def start(self) -> None:
        """Start the stack."""
        if self._process is not None:
            with uninterrupted():
                self._child = Child(self._process)

    def ask_to_end(self) -> None:
        """Tell the stack to end, without waiting; :meth:`end` is to follow."""
        if self._child is not None:
            self._child.ask_to_end()

    def end(self) -> None:
        """End the stack's whole process group."""
        if self._child is not None:
            self._child.stop(self._stack.stop_timeout_s)
            self._child = None

    def refuse_unmade(self) -> None:
        """Refuse a callable that could not be made. Raises UsageError: with the end of its log."""
        child = self._child
        if child is not None and self._stack.callable and child.code == ExitCode.USAGE:
            raise UsageError(f"{child.process.name} cannot start; {child.tail()}")

    def check(self) -> None:
        """Refuse to go on without it.

        Raises IsolationError: it ended because others are in its domain. StackError: it died.
        """
        if self._child is None:
            return
        if self._child.code == ExitCode.ISOLATION:
            raise IsolationError(f"{self._child.process.name}: {self._child.tail()}")
        self._child.check()

    def refuse_stopped(self) -> None:
        """Refuse silence whose reason is that a process of the stack was stopped. Raises StackError."""
        if stopped := self._child.stopped() if self._child else []:
            raise StackError(
                f"stack '{self._stack.name}' ({self._arm} arm) stands still: a process of it was stopped (SIGSTOP); "
                f"let it go on (kill -CONT {stopped[0]}) and start anew"
            )
