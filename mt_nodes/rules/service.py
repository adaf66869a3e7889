# SPDX-License-Identifier: Apache-2.0
"""Client for one server with the OpenAI protocol that copes with rate limits, stalls and invalid answers.

A request is repeated after 429, 408, 409, 5xx, a stall, or a cut or unreadable answer: after ``Retry-After``, else
after 1, 2, 4 … seconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from importlib import import_module
from threading import Lock
from typing import Any, TypeVar

from mt_nodes.base.errors import InfrastructureError, UsageError, needs_extra
from mt_nodes.rules.models import LanguageModel

_T = TypeVar("_T")
ATTEMPTS = 5
#: A server that asks for a longer wait counts as failed.
LONGEST_WAIT_S = 300.0
_FIRST_WAIT_S = 1.0
_RETRY_STATUSES = frozenset({408, 409, 429})
#: A spent budget does not come back by waiting, although the status is 429.
_SPENT = "insufficient_quota"


class NoAnswer(InfrastructureError):
    """The server gave no usable answer, after all attempts."""


class ServiceFailure(Exception):
    """One attempt failed; ``wait_s``: the server's requested wait."""

    def __init__(self, why: str, wait_s: float | None = None) -> None:
        super().__init__(why)
        self.wait_s = wait_s


class Service:
    """Client for one model of a server; thread-safe."""

    def __init__(
        self,
        model: LanguageModel,
        attempts: int = ATTEMPTS,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Make a client; nothing is sent yet. Raises UsageError: the extra ``llm`` is not installed."""
        with needs_extra("llm", "language models need the extra"):
            self._library = import_module("openai")
        # Older versions use httpx, newer ones httpx2.
        self._transport = import_module(self._library.DefaultHttpxClient.__base__.__module__.partition(".")[0])
        # A key must be given, or the library takes one from the environment that is meant for another server.
        self.client: Any = self._library.OpenAI(
            base_url=model.url, api_key=model.key or "none", timeout=model.timeout_s, max_retries=0
        )
        self.refusal: type[Exception] = self._library.APIStatusError
        self.model = model
        self._attempts, self._sleep, self._clock = attempts, sleep, clock
        self._next_at, self._lock = 0.0, Lock()

    def insist(self, try_once: Callable[[], _T]) -> tuple[_T, float, int]:
        """Return the first successful result of a function, the seconds that it took, and the number of tries.

        Raises NoAnswer: every try failed; the message gives the last error.
        """
        began, wait_s, why = self._clock(), _FIRST_WAIT_S, ""
        for attempt in range(1, self._attempts + 1):
            self._wait_turn()
            try:
                return try_once(), self._clock() - began, attempt
            except ServiceFailure as failed:
                why = str(failed)
                pause = wait_s if failed.wait_s is None else failed.wait_s
                if pause > LONGEST_WAIT_S:
                    why += f"; asks to wait {pause:.0f} s, at most {LONGEST_WAIT_S:.0f} s are waited"
                    raise NoAnswer(self.says(f"no answer: {why}")) from failed
                if attempt < self._attempts:
                    self._sleep(pause)
                wait_s *= 2
        raise NoAnswer(self.says(f"no answer in {self._attempts} attempts, the last: {why}"))

    def body(self, asking: Callable[[], AbstractContextManager[Any]], largest: int) -> tuple[bytes, str]:
        """Send one request; return the body of the answer, at most ``largest`` bytes, and its content type.

        Raises Failed: the answer is incomplete; a retry may succeed. Exception: of the type :attr:`refusal`: the server
        refuses the request or the key.
        """
        with self._trouble(), asking() as response:
            # A server that repeats what it is sent would have its key in errors, of which a cut leaves a part, and in
            # answers that are kept.
            data = self._read(response, largest).replace(*_masking(self.model.key))
            return data, response.headers.get("content-type", "no content type")

    def refused(self, error: Any) -> UsageError:
        """Return the message for an error of the type :attr:`refusal`."""
        hints = {401: "check the key", 403: "check the key", 404: "check the URL and the model's name"}
        hint = hints.get(error.status_code, "check the model's parameters")
        return UsageError(self.says(f"the server says {error.status_code}: {self._short(error)}; {hint}"))

    def says(self, what: str) -> str:
        """Return a message about the server, without its key."""
        text = f"model '{self.model.name}' at {self.model.url}: {what}"
        return text.replace(self.model.key, "***") if self.model.key else text

    def _short(self, error: Any) -> str:
        """Return the beginning of an error without the key: a cut would leave a part of it."""
        text = " ".join(str(getattr(error, "message", "") or error).split())
        return (text.replace(self.model.key, "***") if self.model.key else text)[:300] or type(error).__name__

    def _wait_turn(self) -> None:
        if not self.model.per_minute:
            return
        with self._lock:
            now = self._clock()
            at = max(now, self._next_at)
            self._next_at = at + 60.0 / self.model.per_minute
        if at > now:
            self._sleep(at - now)

    @contextmanager
    def _trouble(self) -> Iterator[None]:
        try:
            yield
        except self._library.APIStatusError as error:
            if (error.status_code in _RETRY_STATUSES and error.code != _SPENT) or error.status_code >= 500:
                why = f"the server says {error.status_code}: {self._short(error)}"
                raise ServiceFailure(why, _retry_after(error.response.headers)) from error
            raise
        except (self._library.APIConnectionError, self._transport.HTTPError) as error:
            raise ServiceFailure(f"{type(error).__name__}: {self._short(error.__cause__ or error)}") from error

    def _read(self, response: Any, largest: int) -> bytes:
        """Read the body, with a limit on the total time; the library's timeout covers only each part."""
        until, data = self._clock() + self.model.timeout_s, bytearray()
        for chunk in response.iter_bytes():
            data += chunk
            if len(data) > largest:
                raise ServiceFailure(f"the answer is larger than {largest / 1e6:g} MB")
            if self._clock() > until:
                raise ServiceFailure(f"the answer was not complete after {self.model.timeout_s:g} s")
        return bytes(data)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds in ``Retry-After``, given as a number or a date (RFC 9110, 10.2.3)."""
    value = headers.get("retry-after", "").strip()
    if value.isascii() and value.isdigit():
        return float(value)
    try:
        until = parsedate_to_datetime(value)
    except ValueError:
        return None
    return max(0.0, (until - datetime.now(timezone.utc)).total_seconds()) if until.tzinfo else None


def _masking(key: str) -> tuple[bytes, bytes]:
    """Return what a key is replaced by; without one, nothing is replaced."""
    return (key.encode(), b"***") if key else (b"***", b"***")
