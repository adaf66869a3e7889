# SPDX-License-Identifier: Apache-2.0
"""Asks one language model over the OpenAI chat protocol, as insistently as :mod:`mt_nodes.rules.service` does.

Answers are asked for in a JSON schema, where the server has none of that (it says 400 or 422) in plain JSON, else in
words; whoever reads them checks them anyway.
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

#: What is said: a text, or parts of the protocol, texts and pictures.
Content = str | tuple[Mapping[str, Any], ...]
#: Role (``system``, ``user``, ``assistant``) and what is said.
Message = tuple[str, Content]
#: No answer of ours is longer than some kilobytes.
LARGEST_BYTES = 1_000_000
_OTHER_FORM = frozenset({400, 422})
_FORMS = ("schema", "json", "words")


@dataclass(frozen=True)
class ModelReply:
    """What a model said, why it ended (``stop``, ``length``, ``refusal`` …), what it took; tokens None: not told."""

    text: str
    finish: str
    tokens_in: int | None = None
    tokens_out: int | None = None
    seconds: float = 0.0
    attempts: int = 1


class Chat:
    """One model; may be asked by several threads."""

    def __init__(
        self,
        model: LanguageModel,
        attempts: int = ATTEMPTS,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Make a client; nothing is sent yet.

        Raises:
            UsageError: the extra ``llm`` is not installed.
        """
        self._service = Service(model, attempts, sleep, clock)
        self.model = model
        self._form = 0

    def ask(self, messages: Sequence[Message], schema: Mapping[str, Any]) -> ModelReply:
        """Return what the model says to messages.

        Raises:
            NoAnswer: every try failed; says how the last did.
            UsageError: the server refuses the request or the key.
        """
        told, seconds, attempts = self._service.insist(lambda: self._in_some_form(messages, schema))
        text, finish, usage = told
        return ModelReply(text, finish, *usage, seconds, attempts)

    def _in_some_form(self, messages: Sequence[Message], schema: Mapping[str, Any]) -> _Told:
        for form in range(self._form, len(_FORMS)):
            try:
                told = self._once(messages, _response_format(_FORMS[form], schema))
            except self._service.refusal as error:
                if getattr(error, "status_code", None) not in _OTHER_FORM or form + 1 == len(_FORMS):
                    raise self._service.refused(error) from error
            else:
                self._form = form
                return told
        raise AssertionError("unreachable: the last form returns or raises")

    def _once(self, messages: Sequence[Message], response_format: Mapping[str, Any]) -> _Told:
        said = [{"role": role, "content": content} for role, content in messages]
        # Not as arguments of the library: servers have parameters of their own.
        body = {**self.model.parameters, **response_format}
        create = self._service.client.chat.completions.with_streaming_response.create
        asking = partial(create, model=self.model.model, messages=said, extra_body=body)
        return _told(*self._service.body(asking, LARGEST_BYTES))


_Told = tuple[str, str, tuple["int | None", "int | None"]]


def _response_format(form: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    if form == "schema":
        told = {"name": "answer", "strict": True, "schema": schema}
        return {"response_format": {"type": "json_schema", "json_schema": told}}
    return {"response_format": {"type": "json_object"}} if form == "json" else {}


def _told(data: bytes, kind: str) -> _Told:
    """Return text, reason of its end and tokens of a completion.

    Raises:
        Failed: it is none.
    """
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
    # A lone surrogate, which JSON can hold, has no UTF-8.
    return str(refusal or text).encode("utf-8", "replace").decode(), finish, counts


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
