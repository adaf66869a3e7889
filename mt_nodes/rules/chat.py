# SPDX-License-Identifier: Apache-2.0
"""Asks one language model over the OpenAI chat protocol, through everything that servers do: limits, stalls, rubbish.

A request is tried again after 429, 408, 409, 5xx, a stall, a cut or unreadable answer: after what ``Retry-After`` says,
else after 1, 2, 4 … seconds. Answers are asked for in a JSON schema, where the server has none of that (it says 400 or
422) in plain JSON, else in words; whoever reads them checks them anyway.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from importlib import import_module
from threading import Lock
from typing import Any

from mt_nodes.errors import InfrastructureError, UsageError
from mt_nodes.rules.models import Model

#: Role (``system``, ``user``, ``assistant``) and what is said.
Message = tuple[str, str]
ATTEMPTS = 5
#: No answer of ours is longer than some kilobytes; whoever asks for a longer wait is asked again another day.
LARGEST_BYTES, LONGEST_WAIT_S = 1_000_000, 300.0
_FIRST_WAIT_S = 1.0
_AGAIN = frozenset({408, 409, 429})
_OTHER_FORM = frozenset({400, 422})
#: A spent budget comes back by no waiting, though it is told as 429.
_SPENT = "insufficient_quota"
_FORMS = ("schema", "json", "words")


class NoAnswer(InfrastructureError):
    """The server gave no usable answer, however often it was asked."""


class _Failed(Exception):
    """One try failed; ``wait_s``: what the server asks to wait."""

    def __init__(self, why: str, wait_s: float | None = None) -> None:
        super().__init__(why)
        self.wait_s = wait_s


@dataclass(frozen=True)
class Reply:
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
        model: Model,
        attempts: int = ATTEMPTS,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Make a client; nothing is sent yet.

        Raises:
            UsageError: the extra ``llm`` is not installed.
        """
        try:
            self._library = import_module("openai")
        except ImportError as error:
            raise UsageError(f"language models need the extra: pip install 'mt_nodes[llm]' ({error})") from error
        # Older versions speak through httpx, newer ones through httpx2.
        self._transport = import_module(self._library.DefaultHttpxClient.__base__.__module__.partition(".")[0])
        # A key must be given, or the library takes one from the environment that is meant for somebody else.
        self._client = self._library.OpenAI(
            base_url=model.url, api_key=model.key or "none", timeout=model.timeout_s, max_retries=0
        )
        self.model = model
        self._attempts, self._sleep, self._clock = attempts, sleep, clock
        self._form, self._next_at, self._lock = 0, 0.0, Lock()

    def ask(self, messages: Sequence[Message], schema: Mapping[str, Any]) -> Reply:
        """Return what the model says to messages.

        Raises:
            NoAnswer: every try failed; says how the last did.
            UsageError: the server refuses the request or the key.
        """
        began, wait_s, why = self._clock(), _FIRST_WAIT_S, ""
        for attempt in range(1, self._attempts + 1):
            self._wait_turn()
            try:
                text, finish, usage = self._in_some_form(messages, schema)
                return Reply(text, finish, *usage, self._clock() - began, attempt)
            except _Failed as failed:
                why = str(failed)
                pause = wait_s if failed.wait_s is None else failed.wait_s
                if pause > LONGEST_WAIT_S:
                    why += f"; asks to wait {pause:.0f} s, at most {LONGEST_WAIT_S:.0f} s are waited"
                    raise NoAnswer(self._says(f"no answer: {why}")) from failed
                if attempt < self._attempts:
                    self._sleep(pause)
                wait_s *= 2
        raise NoAnswer(self._says(f"no answer in {self._attempts} attempts, the last: {why}"))

    def _wait_turn(self) -> None:
        if not self.model.per_minute:
            return
        with self._lock:
            now = self._clock()
            at = max(now, self._next_at)
            self._next_at = at + 60.0 / self.model.per_minute
        if at > now:
            self._sleep(at - now)

    def _in_some_form(self, messages: Sequence[Message], schema: Mapping[str, Any]) -> _Told:
        for form in range(self._form, len(_FORMS)):
            try:
                told = self._once(messages, _response_format(_FORMS[form], schema))
            except self._library.APIStatusError as error:
                if error.status_code not in _OTHER_FORM or form + 1 == len(_FORMS):
                    raise self._refused(error) from error
            else:
                self._form = form
                return told
        raise AssertionError("unreachable: the last form returns or raises")

    def _once(self, messages: Sequence[Message], response_format: Mapping[str, Any]) -> _Told:
        said = [{"role": role, "content": content} for role, content in messages]
        # Not as arguments of the library: servers have parameters of their own.
        body = {**self.model.parameters, **response_format}
        with self._trouble():
            asking = self._client.chat.completions.with_streaming_response
            with asking.create(model=self.model.model, messages=said, extra_body=body) as response:
                data = self._read(response)
                kind = response.headers.get("content-type", "no content type")
        return _told(data, kind)

    @contextmanager
    def _trouble(self) -> Iterator[None]:
        try:
            yield
        except self._library.APIStatusError as error:
            if (error.status_code in _AGAIN and error.code != _SPENT) or error.status_code >= 500:
                why = f"the server says {error.status_code}: {_short(error)}"
                raise _Failed(why, _retry_after(error.response.headers)) from error
            raise
        except (self._library.APIConnectionError, self._transport.HTTPError) as error:
            raise _Failed(f"{type(error).__name__}: {_short(error.__cause__ or error)}") from error

    def _read(self, response: Any) -> bytes:
        """Return the body; the library's timeout is one of each part, so a trickle has to be ended here."""
        until, data = self._clock() + self.model.timeout_s, b""
        for chunk in response.iter_bytes():
            data += chunk
            if len(data) > LARGEST_BYTES:
                raise _Failed(f"the answer is larger than {LARGEST_BYTES / 1e6:g} MB")
            if self._clock() > until:
                raise _Failed(f"the answer was not complete after {self.model.timeout_s:g} s")
        return data

    def _refused(self, error: Any) -> UsageError:
        hints = {401: "check the key", 403: "check the key", 404: "check the URL and the model's name"}
        hint = hints.get(error.status_code, "check the model's parameters")
        return UsageError(self._says(f"the server says {error.status_code}: {_short(error)}; {hint}"))

    def _says(self, what: str) -> str:
        told = f"model '{self.model.name}' at {self.model.url}: {what}"
        return told.replace(self.model.key, "***") if self.model.key else told


_Told = tuple[str, str, tuple["int | None", "int | None"]]


def _response_format(form: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    if form == "schema":
        told = {"name": "answer", "strict": True, "schema": schema}
        return {"response_format": {"type": "json_schema", "json_schema": told}}
    return {"response_format": {"type": "json_object"}} if form == "json" else {}


def _told(data: bytes, kind: str) -> _Told:
    """Return text, reason of its end and tokens of a completion.

    Raises:
        _Failed: it is none.
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
        raise _Failed(f"got no completion but {kind}: {data[:80]!r}") from error
    if not isinstance(text, str):
        raise _Failed(f"got content of {type(text).__name__}, expected a text")
    # A lone surrogate, which JSON can hold, has no UTF-8.
    return str(refusal or text).encode("utf-8", "replace").decode(), finish, counts


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that ``Retry-After`` asks for, as a number or until a date (RFC 9110, 10.2.3)."""
    told = headers.get("retry-after", "").strip()
    if told.isascii() and told.isdigit():
        return float(told)
    try:
        until = parsedate_to_datetime(told)
    except ValueError:
        return None
    return max(0.0, (until - datetime.now(timezone.utc)).total_seconds()) if until.tzinfo else None


def _short(error: Any) -> str:
    return " ".join(str(getattr(error, "message", "") or error).split())[:300] or type(error).__name__
