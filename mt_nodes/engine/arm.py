# SPDX-License-Identifier: Apache-2.0
"""An arm gives inputs to one instance of the stack and hears its answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from mt_nodes.data.messages import Bundle
from mt_nodes.data.outputs import Diagnostics
from mt_nodes.engine.judging import Answer, AnswerStatus


@dataclass(frozen=True)
class UnansweredInput:
    """The ticket of an input that no answer can be expected to, and why."""

    reason: str

    @property
    def answer(self) -> Answer:
        """What is heard of it."""
        return Answer.nothing(AnswerStatus.NO_ANSWER_EXPECTED, self.reason)


class Arm(Protocol):
    """One instance of the stack under test. A ticket is what :meth:`send` returns and :meth:`wait` takes."""

    name: str

    def start(self) -> None:
        """Start the stack; several arms start side by side."""

    def restart(self) -> None:
        """Make the stack forget all it has seen, by starting it anew."""

    def ready(self) -> None:
        """Wait until a stack that was started can answer."""

    def begin_episode(self) -> None:
        """Say that time starts anew."""

    def final_diagnostics(self) -> Diagnostics | None:
        """Return what was told of errors since the last answer; None where nobody tells any. Nothing is waited for."""

    def pass_time(self, stamp_ns: int) -> None:
        """Let the stack's time go on to an instant, at the pace ``realtime``."""

    def send(
        self,
        bundle: Bundle,
        changed: frozenset[str],
        source_ns: int | None = None,
        delay_ns: int = 0,
        late: Sequence[Bundle] = (),
    ) -> Any:
        """Give the stack a bundle; topics not in ``changed`` go out as recorded.

        The stack's time goes on to ``delay_ns`` after the instant of the recording, ``source_ns`` (the bundle's own
        stamp where it is not given); it never goes back. What is ``late`` of the same input comes with
        :meth:`publish_only`. An input that lacks what the stack needs for an answer has no answer to come: its ticket
        is an :class:`UnansweredInput`.
        """

    def publish_only(
        self, bundle: Bundle, changed: frozenset[str] = frozenset(), source_ns: int | None = None, delay_ns: int = 0
    ) -> None:
        """Let the stack's time go on, as :meth:`send` does, and publish a bundle; no answer is expected."""

    def wait(self, ticket: Any, until_s: float | None = None) -> Answer | None:
        """Return the answer, or silence at its deadline; None when monotonic ``until_s`` comes before both.

        Without ``until_s`` the run waits for the stack, so the stack's time goes on meanwhile.
        """

    def stop(self) -> None:
        """End the stack and free what it held."""


def start(*arms: Arm) -> None:
    """Start arms side by side (each once) and wait until all can answer."""
    launch(*arms)
    await_ready(*arms)


def launch(*arms: Arm) -> None:
    """Start arms side by side, each once; :func:`await_ready` is to follow."""
    for arm in dict.fromkeys(arms):
        arm.start()


def await_ready(*arms: Arm) -> None:
    """Wait until arms that were started can answer."""
    for arm in dict.fromkeys(arms):
        arm.ready()


def restart(*arms: Arm) -> None:
    """Start arms anew, side by side, and wait until all can answer."""
    for arm in dict.fromkeys(arms):
        arm.restart()
    for arm in dict.fromkeys(arms):
        arm.ready()
