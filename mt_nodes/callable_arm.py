# SPDX-License-Identifier: Apache-2.0
"""An arm without topics: it calls the stack, a Python callable, in this very process."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from mt_nodes.arms import Unasked
from mt_nodes.engine import Answer, Heard
from mt_nodes.errors import InfrastructureError, MtError
from mt_nodes.frames import Bundle
from mt_nodes.hosting import CallableHost
from mt_nodes.joining import lacking
from mt_nodes.stacks import Stack
from mt_nodes.transforms import UnknownTransform


class CallableArm:
    """An arm in this very process: no topics, no clock but the instants of what is sent; the call is the answer."""

    _now_ns = 0

    def __init__(self, name: str, stack: Stack, topics: Mapping[str, str] | frozenset[str]) -> None:
        """Make the callable.

        Args:
            name: of the arm.
            stack: what is called.
            topics: topic of a bag -> topic of the stack that it is given as; a set are all the leading one.
        """
        self.name = name
        self._stack = stack
        self._inputs = topics if isinstance(topics, Mapping) else dict.fromkeys(topics, stack.leading_topic)
        self._host = CallableHost.make(stack)

    def start(self) -> None:
        """Nothing to do: the callable was made."""

    def ready(self) -> None:
        """Nothing to wait for."""

    def begin_episode(self) -> None:
        """Say that time starts anew."""
        self._now_ns = 0

    def last_words(self) -> None:
        """Nothing: a callable tells all with its answers."""

    def pass_time(self, stamp_ns: int) -> None:
        """Nothing to do: a callable has no clock."""

    def stop(self) -> None:
        """Nothing to free."""

    def restart(self) -> None:
        """Make the callable anew."""
        self._host = CallableHost.make(self._stack)

    def send(
        self,
        bundle: Bundle,
        changed: frozenset[str],
        source_ns: int | None = None,
        delay_ns: int = 0,
        late: Sequence[Bundle] = (),
    ) -> Bundle | Unasked:
        """Keep the bundle, and when it comes: the call happens in :meth:`wait`."""
        self._now_ns = max(self._now_ns, (bundle.stamp_ns if source_ns is None else source_ns) + delay_ns)
        whole = bundle.joined_with(late)
        reason = lacking(self._stack, self._inputs, whole.messages)
        return whole if reason is None else Unasked(reason)

    def pass_by(
        self,
        bundle: Bundle,
        changed: frozenset[str] = frozenset(),
        source_ns: int | None = None,
        delay_ns: int = 0,
    ) -> None:
        """Let time go on: a callable sees whole inputs only."""
        self._now_ns = max(self._now_ns, (bundle.stamp_ns if source_ns is None else source_ns) + delay_ns)

    def wait(self, ticket: Bundle | Unasked, until_s: float | None = None) -> Answer:
        """Call, and time the call.

        Raises:
            InfrastructureError: the callable raised; that is the death of an in-process stack.
            UsageError: no transform leads to the frame it asks for.
        """
        if isinstance(ticket, Unasked):
            return ticket.answer
        sensors = {self._inputs[m.topic]: m for m in ticket.messages if m.topic in self._inputs}
        lead = sensors[self._stack.leading_topic]
        began = time.monotonic()
        try:
            output = self._host(sensors if self._stack.joins else lead, ticket.transforms, self._now_ns)
        except UnknownTransform as error:
            where = f"{lead.topic} of bundle {ticket.index} at {ticket.stamp_ns} ns"
            raise UnknownTransform(f"{where}: {error}") from error
        except MtError:
            raise
        except (Exception, SystemExit) as error:  # a stack's exit is the stack's, not ours
            raise InfrastructureError(f"stack '{self._stack.name}' raised {type(error).__name__}: {error}") from error
        if output.silent:
            return Answer.nothing(Heard.SILENT, "the callable returned None")
        return Answer(Heard.ANSWERED, replace(output, answer_ms=1e3 * (time.monotonic() - began)))
