# SPDX-License-Identifier: Apache-2.0
"""Asks models questions without a stored answer, counts the cost, and repeats a question after an invalid answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from mt_nodes.base.errors import InfrastructureError
from mt_nodes.rules.answer_statements import BadAnswer
from mt_nodes.rules.chat import Chat, Message, ModelReply
from mt_nodes.rules.model_answers import Answers, ModelAnswer, Question
from mt_nodes.rules.models import LanguageModel
from mt_nodes.rules.prompts import Prompts
from mt_nodes.rules.service import NoAnswer

_T = TypeVar("_T")
#: How often an invalid answer is asked for again; after how many successive failures a server is given up.
TRIES, MOST_FAILURES = 3, 3
#: How many characters of an answer are shown to the model again.
_QUOTED_CHARACTERS = 4000
_ENDS = {"length": "it was cut off at max_tokens", "refusal": "it was refused", "content_filter": "it was filtered"}


@dataclass
class Usage:
    """Cost of one model. ``cached``: stored answers, which cost nothing this time.

    ``untold``: answers without reported tokens, for which counts and cost are too low.
    """

    requests: int = 0
    cached: int = 0
    failed: int = 0
    retries: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    untold: int = 0
    seconds: float = 0.0

    def add(self, reply: ModelReply) -> None:
        """Count a new answer and its cost."""
        self.requests += 1
        self.retries += reply.attempts - 1
        self.seconds += reply.seconds
        self.tokens_in += reply.tokens_in or 0
        self.tokens_out += reply.tokens_out or 0
        self.untold += reply.tokens_in is None or reply.tokens_out is None

    def as_plain(self) -> dict[str, float]:
        """Return the counts by the names that result files have for them."""
        return {"asked" if name == "requests" else name: value for name, value in vars(self).items()}


class Asker:
    """One model, and the stored answers."""

    def __init__(self, chat: Chat, answers: Answers) -> None:
        """Create without sending a request."""
        self._chat, self._answers = chat, answers
        self._in_a_row = 0
        self.usage = Usage()

    @property
    def model(self) -> LanguageModel:
        """The model."""
        return self._chat.model

    @property
    def name(self) -> str:
        """The user's name of the model."""
        return self.model.name

    @property
    def cost(self) -> float | None:
        """Cost of this run's answers, in the currency of the model's prices; None if unknown."""
        model, usage = self._chat.model, self.usage
        if model.price_in is None or model.price_out is None or usage.untold:
            return None
        return (usage.tokens_in * model.price_in + usage.tokens_out * model.price_out) / 1e6

    def ask(self, messages: Sequence[Message], schema: Mapping[str, Any], sample: int = 0) -> ModelAnswer:
        """Return the stored answer, else ask and store it.

        Raises NoAnswer: the server gave none; another question may succeed. InfrastructureError: it failed
        :data:`MOST_FAILURES` times in a row, or the file failed. UsageError: the server refuses the request or the key.
        """
        question = Question(self._chat.model, messages, schema, sample)
        stored = self._answers.find(question)
        if stored:
            self.usage.cached += 1
            return stored
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
        """Return the result of ``read`` for an answer, asking again with its error; after the last try, the error.

        ``turn``: number of the repetition, for several answers to one question.
        Raises NoAnswer, InfrastructureError, UsageError: as for :meth:`ask`.
        """
        conversation = messages
        for nth in range(TRIES):
            # After the same bad answer the question is the same: it needs another sample.
            answer = self.ask(conversation, schema, turn * TRIES + nth)
            try:
                return read(whole(answer.reply)), answer
            except BadAnswer as error:
                if nth + 1 == TRIES:
                    return error, answer
                conversation = prompts.retry(messages, answer.reply.text[:_QUOTED_CHARACTERS], str(error))
        raise AssertionError("unreachable: the last try returns")


def whole(reply: ModelReply) -> str:
    """Return the text of a complete answer. Raises BadAnswer: it was cut off."""
    if reply.finish in _ENDS:
        raise BadAnswer(f"{_ENDS[reply.finish]}: '{reply.text[:80]}'")
    return reply.text
