# SPDX-License-Identifier: Apache-2.0
"""Asks a model what is not answered yet, counts what that takes, and asks again when an answer does not pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from mt_nodes.base.errors import InfrastructureError
from mt_nodes.rules.chat import Chat, Message, ModelReply
from mt_nodes.rules.model_answers import Answers, ModelAnswer, Question
from mt_nodes.rules.prompts import Prompts
from mt_nodes.rules.service import NoAnswer
from mt_nodes.rules.told_statements import BadAnswer

_T = TypeVar("_T")
#: An answer that does not pass is asked for again so often; a server that fails so often in a row is given up.
TRIES, MOST_FAILURES = 3, 3
#: So many characters of it are shown to the model again.
_SHOWN = 4000
_ENDS = {"length": "it was cut off at max_tokens", "refusal": "it was refused", "content_filter": "it was filtered"}


@dataclass
class Usage:
    """What one model took. ``cached``: answers that were there already and took nothing this time.

    Attributes:
        untold: answers whose tokens the server did not tell, so that the counts and the cost are too low.
    """

    asked: int = 0
    cached: int = 0
    failed: int = 0
    retries: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    untold: int = 0
    seconds: float = 0.0

    def add(self, reply: ModelReply) -> None:
        """Count an answer that was asked for."""
        self.asked += 1
        self.retries += reply.attempts - 1
        self.seconds += reply.seconds
        self.tokens_in += reply.tokens_in or 0
        self.tokens_out += reply.tokens_out or 0
        self.untold += reply.tokens_in is None or reply.tokens_out is None


class Asker:
    """One model, and the answers that are kept."""

    def __init__(self, chat: Chat, answers: Answers) -> None:
        """Ask nothing yet."""
        self._chat, self._answers = chat, answers
        self._in_a_row = 0
        self.usage = Usage()

    @property
    def name(self) -> str:
        """What the user calls the model."""
        return self._chat.model.name

    @property
    def cost(self) -> float | None:
        """What was asked for this time costs, in the currency of the model's prices; None where that is not known."""
        model, usage = self._chat.model, self.usage
        if model.price_in is None or model.price_out is None or usage.untold:
            return None
        return (usage.tokens_in * model.price_in + usage.tokens_out * model.price_out) / 1e6

    def ask(self, messages: Sequence[Message], schema: Mapping[str, Any], sample: int = 0) -> ModelAnswer:
        """Return the answer that is kept, else ask and keep it.

        Raises:
            NoAnswer: the server gave none; another question may do better.
            InfrastructureError: it gave none for the :data:`MOST_FAILURES`-th time in a row, or the file failed.
            UsageError: the server refuses the request or the key.
        """
        question = Question(self._chat.model, messages, schema, sample)
        kept = self._answers.find(question)
        if kept:
            self.usage.cached += 1
            return kept
        try:
            reply = self._chat.ask(messages, schema)
        except NoAnswer as error:
            self.usage.failed += 1
            self._in_a_row += 1
            if self._in_a_row >= MOST_FAILURES:
                raise InfrastructureError(
                    f"{error}; given up after {self._in_a_row} questions; all answers so far are kept, run it again"
                ) from error
            raise
        self._in_a_row = 0
        self.usage.add(reply)
        return self._answers.add(question, reply)

    def ask_until(
        self,
        prompts: Prompts,
        messages: Sequence[Message],
        schema: Mapping[str, Any],
        read: Callable[[str], _T],
        turn: int = 0,
    ) -> tuple[_T | BadAnswer, ModelAnswer]:
        """Return what ``read`` makes of an answer, asking again with its error; after the last try, the error.

        Args:
            turn: which time this is asked, of those who want several answers to one question.

        Raises:
            NoAnswer, InfrastructureError, UsageError: as :meth:`ask` does.
        """
        asked = messages
        for nth in range(TRIES):
            # The same bad answer once more makes the same question: it is another sample of it.
            answer = self.ask(asked, schema, turn * TRIES + nth)
            try:
                return read(whole(answer.reply)), answer
            except BadAnswer as error:
                if nth + 1 == TRIES:
                    return error, answer
                asked = prompts.again(messages, answer.reply.text[:_SHOWN], str(error))
        raise AssertionError("unreachable: the last try returns")


def whole(reply: ModelReply) -> str:
    """Return the text of a complete answer.

    Raises:
        BadAnswer: it ended before its end.
    """
    if reply.finish in _ENDS:
        raise BadAnswer(f"{_ENDS[reply.finish]}: '{reply.text[:80]}'")
    return reply.text
