# SPDX-License-Identifier: Apache-2.0
"""Client for one language model with the OpenAI chat protocol; retries as :mod:`mt_nodes.rules.service` does.

Answers are requested with a JSON schema, or, if the server refuses that (400 or 422), as plain JSON, else in words;
callers validate them anyway.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from mt_nodes.rules.models import LanguageModel
from mt_nodes.rules.service import ATTEMPTS, Service, ServiceFailure

#: Content of a message: a text, or parts of the protocol (texts and pictures).
Content = str | tuple[Mapping[str, Any], ...]
#: Role (``system``, ``user``, ``assistant``) and content.
Message = tuple[str, Content]
#: Our answers have a few kilobytes at most.
LARGEST_BYTES = 1_000_000
_OTHER_FORM = frozenset({400, 422})
_FORMS = ("schema", "json", "words")


@dataclass(frozen=True)
class ModelReply:
    """A model's reply, why it ended (``stop``, ``length``, ``refusal`` …), and its cost; tokens None if unknown."""

    text: str
    finish: str
    tokens_in: int | None = None
    tokens_out: int | None = None
    seconds: float = 0.0
    attempts: int = 1


class Chat:
    """Client for one model; thread-safe."""

    def __init__(
        self,
        model: LanguageModel,
        attempts: int = ATTEMPTS,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Make a client; nothing is sent yet. Raises UsageError: the extra ``llm`` is not installed."""
        self._service = Service(model, attempts, sleep, clock)
        self.model = model
        self._form = 0

    def ask(self, messages: Sequence[Message], schema: Mapping[str, Any]) -> ModelReply:
        """Return the model's reply to messages.

        Raises NoAnswer: every attempt failed; says how the last did. UsageError: the server refuses the request or the
        key.
        """
        completion, seconds, attempts = self._service.insist(lambda: self._in_some_form(messages, schema))
        text, finish, usage = completion
        return ModelReply(text, finish, *usage, seconds, attempts)

    def _in_some_form(self, messages: Sequence[Message], schema: Mapping[str, Any]) -> _Completion:
        for form in range(self._form, len(_FORMS)):
            try:
                completion = self._request(messages, _response_format(_FORMS[form], schema))
            except self._service.refusal as error:
                if getattr(error, "status_code", None) not in _OTHER_FORM or form + 1 == len(_FORMS):
                    raise self._service.refused(error) from error
            else:
                self._form = form
                return completion
        raise AssertionError("unreachable: the last form returns or raises")

    def _request(self, messages: Sequence[Message], response_format: Mapping[str, Any]) -> _Completion:
        plain = [{"role": role, "content": content} for role, content in messages]
        # In the body, not as arguments of the library: servers have parameters of their own.
        body = {**self.model.parameters, **response_format}
        create = self._service.client.chat.completions.with_streaming_response.create
        asking = partial(create, model=self.model.model, messages=plain, extra_body=body)
        return _read_completion(*self._service.body(asking, LARGEST_BYTES))


_Completion = tuple[str, str, tuple["int | None", "int | None"]]


def _response_format(form: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    if form == "schema":
        definition = {"name": "answer", "strict": True, "schema": schema}
        return {"response_format": {"type": "json_schema", "json_schema": definition}}
    return {"response_format": {"type": "json_object"}} if form == "json" else {}


def _read_completion(data: bytes, kind: str) -> _Completion:
    """Return text, finish reason and tokens of a completion. Raises Failed: it is invalid."""
    try:
        completion = json.loads(data)
        choice = completion["choices"][0]
        message = choice["message"]
        text, refusal = message.get("content") or "", message.get("refusal") or ""
        finish = "refusal" if refusal else str(choice.get("finish_reason") or "stop")
        usage = completion.get("usage") or {}
        counts = (_count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens")))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ServiceFailure(f"got no completion but {kind}: {data[:80]!r}") from error
    if not isinstance(text, str):
        raise ServiceFailure(f"got content of {type(text).__name__}, expected a text")
    # A lone surrogate, which JSON allows, cannot be encoded in UTF-8.
    return str(refusal or text).encode("utf-8", "replace").decode(), finish, counts


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
