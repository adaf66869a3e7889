# SPDX-License-Identifier: Apache-2.0
"""An arm without topics: it calls the stack, a Python callable, in a process of the stack's own."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from mt_nodes.base.errors import InfrastructureError, StackCallError, StackError
from mt_nodes.data.messages import Bundle
from mt_nodes.data.outputs import Output
from mt_nodes.data.transforms import UnknownTransform
from mt_nodes.engine.arm import UnansweredInput
from mt_nodes.engine.judging import Answer, AnswerStatus
from mt_nodes.stacks.stack import Stack
from mt_nodes.stacks.stack_host import StackCall, StackReply
from mt_nodes.stacks.stack_process import StackProcess
from mt_nodes.stacks.topic_sync import lacking


@dataclass(eq=False)
class CallTicket:
    """The ticket of an input that was sent: where it is from, and the answer, None until that was waited for."""

    where: str
    reply: StackReply | None = None


class CallableArm:
    """An arm that calls a process of its own: no topics, no clock but the instants of what is sent.

    The stack works on an input from the moment that it is sent, one input at a time.
    """

    _now_ns = 0
    _process: StackProcess | None = None
    _ticket: CallTicket | None = None

    def __init__(
        self,
        name: str,
        stack: Stack,
        topics: Mapping[str, str] | frozenset[str],
        log: Path = Path(os.devnull),
        alone: bool = False,
    ) -> None:
        """Take in what is called; :meth:`start` starts it.

        Args:
            topics: topic of a bag -> topic of the stack that it is given as; a set are all the leading one.
            log: file that the stack's output goes to.
            alone: whether it serves both arms, so that what is told of it names neither.
        """
        self.name = name
        self._label = f"stack '{stack.name}'" if alone else f"stack '{stack.name}' ({name} arm)"
        self._stack, self._log = stack, log
        self._inputs = topics if isinstance(topics, Mapping) else dict.fromkeys(topics, stack.leading_topic)

    def start(self) -> None:
        """Start the process and have the callable made."""
        self._process = StackProcess(self._label, self._stack, self._log)
        self._ticket = CallTicket("")

    def ready(self) -> None:
        """Wait until the callable is made.

        Raises UsageError: it cannot be made as the stack file says. StackError: the process died or did not get ready
        in time.
        """
        self._settle()

    def begin_episode(self) -> None:
        """Say that time starts anew."""
        self._now_ns = 0

    def final_diagnostics(self) -> None:
        """Nothing: a callable tells all with its answers."""

    def pass_time(self, stamp_ns: int) -> None:
        """Nothing to do: a callable has no clock."""

    def stop(self) -> None:
        """End the process. Raises StackError: it has died since its last answer."""
        if self._process is not None:
            self._process.stop()

    def restart(self) -> None:
        """Have the callable made anew, in the process that has imported it."""
        self._settle()
        self._running.make()
        self._ticket = CallTicket("")

    def send(
        self,
        bundle: Bundle,
        changed: frozenset[str],
        source_ns: int | None = None,
        delay_ns: int = 0,
        late: Sequence[Bundle] = (),
    ) -> CallTicket | UnansweredInput:
        """Have the callable called with the bundle."""
        self._now_ns = max(self._now_ns, (bundle.stamp_ns if source_ns is None else source_ns) + delay_ns)
        whole = bundle.joined_with(late)
        reason = lacking(self._stack, self._inputs, whole.messages)
        if reason is not None:
            return UnansweredInput(reason)
        sensors = {self._inputs[m.topic]: m for m in whole.messages if m.topic in self._inputs}
        lead = sensors[self._stack.leading_topic]
        self._settle()
        self._running.call(StackCall(sensors if self._stack.joins else lead, whole.transforms.given, self._now_ns))
        self._ticket = CallTicket(f"{lead.topic} of bundle {whole.index} at {whole.stamp_ns} ns")
        return self._ticket

    def publish_only(
        self, bundle: Bundle, changed: frozenset[str] = frozenset(), source_ns: int | None = None, delay_ns: int = 0
    ) -> None:
        """Let time go on: a callable sees whole inputs only."""
        self._now_ns = max(self._now_ns, (bundle.stamp_ns if source_ns is None else source_ns) + delay_ns)

    def wait(self, ticket: CallTicket | UnansweredInput, until_s: float | None = None) -> Answer:
        """Return the answer to an input; FAILED if the callable raised an exception, which it survives.

        Raises StackError: the callable exited, its process died, or it has not answered within the stack's deadline.
        UsageError: no transform leads to the frame it asks for.
        """
        if isinstance(ticket, UnansweredInput):
            return ticket.answer
        if ticket.reply is None:
            self._settle()
        assert ticket.reply is not None, "the ticket is of another arm"
        if ticket.reply.error is not None:
            return Answer.nothing(AnswerStatus.FAILED, ticket.reply.error)
        output = ticket.reply.output or Output()
        if output.silent:
            return Answer.nothing(AnswerStatus.SILENT, "the callable returned None")
        output = replace(output, answer_ms=1e3 * ticket.reply.took_s)
        return Answer(AnswerStatus.ANSWERED, output, cpu_s=ticket.reply.cpu_s)

    @property
    def _running(self) -> StackProcess:
        assert self._process is not None, "the arm was not started"
        return self._process

    def _settle(self) -> None:
        """Wait for what was asked last."""
        if self._ticket is None:
            return
        ticket, self._ticket = self._ticket, None
        ticket.reply = self._running.reply()
        _refuse(ticket.reply, ticket.where)


def _refuse(reply: StackReply, where: str) -> None:
    """Raise the error that a reply tells of, if any; one that ends only the call is the answer."""
    if reply.error is None or reply.kind is StackCallError:
        return
    if reply.kind is UnknownTransform and where:
        raise UnknownTransform(f"{where}: {reply.error}")
    raise (reply.kind if reply.kind is not InfrastructureError else StackError)(reply.error)


def in_process_arms(
    stack: Stack, topics: Mapping[str, str], mode: str, out: Path, ending: ExitStack
) -> tuple[CallableArm, CallableArm]:
    """Return arms that call the stack's callable; a stateless one serves both.

    ``stack``: what is called. ``topics``: see :class:`CallableArm`. ``mode``: of the run. ``out``: results directory;
    what the stack prints goes to the log there. ``ending``: their end is put there.
    """

    two = mode == "twin" and not stack.stateless

    def arm(name: str) -> CallableArm:
        callable_arm = CallableArm(name, stack, topics, out / "console.log", alone=not two)
        ending.callback(callable_arm.stop)
        return callable_arm

    source = arm("source")
    return source, arm("followup") if two else source
