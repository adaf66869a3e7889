# SPDX-License-Identifier: Apache-2.0
"""A server on this machine that speaks the OpenAI protocol as a test tells it to: well, badly, or not at all."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from typing import Any

import pytest

#: Importing it would take half a second of each worker that collects tests.
needs_openai = pytest.mark.skipif(find_spec("openai") is None, reason="the extra llm is not installed")

#: Writes an answer to a request; the last of a server's answers goes on for ever.
Respond = Callable[["Handler"], None]


@dataclass
class Server:
    """What is asked is in ``requests`` (bodies), ``paths`` and ``keys``; ``over`` is set when the test ends."""

    url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    answers: list[Respond] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def next(self) -> Respond:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # head and body are two writes
    server_state: Server
    body: dict[str, Any]

    def do_POST(self) -> None:
        self.body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        state = self.server_state
        with state.lock:
            state.requests.append(self.body)
            state.paths.append(self.path)
            state.keys.append(self.headers.get("Authorization", ""))
            respond = state.next()
        respond(self)

    def send(self, data: bytes, status: int = 200, kind: str = "application/json", **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        for name, value in {"Content_Length": str(len(data)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def serving(*answers: Respond) -> Iterator[Server]:
    """Serve on a port of the system's choice until the block ends."""
    state = Server(answers=list(answers))
    handler = type("Bound", (Handler,), {"server_state": state})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        server.block_on_close = False
        state.url = f"http://127.0.0.1:{server.server_port}/v1"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield state
        finally:
            state.over.set()
            server.shutdown()
            thread.join()


def completion(text: Any, finish: str = "stop", usage: Mapping[str, Any] | None = None, **message: Any) -> bytes:
    """A completion of one choice, as the protocol has it."""
    told = {"role": "assistant", "content": text, **message}
    tokens = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100} if usage is None else usage
    made = {"id": "x", "object": "chat.completion", "created": 0, "model": "m", "usage": tokens}
    return json.dumps({**made, "choices": [{"index": 0, "message": told, "finish_reason": finish}]}).encode()


def says(text: Any, finish: str = "stop", **more: Any) -> Respond:
    """Answer properly with a text."""
    return lambda handler: handler.send(completion(text, finish, **more))


def answers(make: Callable[[str], str]) -> Respond:
    """Answer with what a function makes of the last message."""
    return lambda handler: handler.send(completion(make(handler.body["messages"][-1]["content"])))


def vectors(rows: list[Any], served: str = "m") -> bytes:
    """Vectors, in order, as the protocol has them."""
    data = [{"object": "embedding", "index": row, "embedding": values} for row, values in enumerate(rows)]
    return json.dumps({"object": "list", "data": data, "model": served, "usage": {"prompt_tokens": 1}}).encode()


def embeds(make: Callable[[str], list[float]], served: str = "m") -> Respond:
    """Answer with what a function makes of each text, the last first: the order is told by the index alone."""

    def respond(handler: Handler) -> None:
        told = json.loads(vectors([make(text) for text in handler.body["input"]], served))
        handler.send(json.dumps({**told, "data": told["data"][::-1]}).encode())

    return respond


def refuses(status: int, message: str = "no", code: str | None = None, **headers: str) -> Respond:
    """Answer with an error of the protocol."""
    error = json.dumps({"error": {"message": message, "type": "error", "code": code}}).encode()
    return lambda handler: handler.send(error, status, **headers)


def sends(data: bytes, kind: str = "application/json") -> Respond:
    """Answer with these bytes."""
    return lambda handler: handler.send(data, kind=kind)


def stalls(handler: Handler) -> None:
    """Never answer."""
    handler.server_state.over.wait(10)
    handler.close_connection = True


def trickles(handler: Handler) -> None:
    """Begin to answer, and send a space now and then for ever."""
    handler.send(b"", Content_Length="1000000")
    while not handler.server_state.over.wait(0.02):
        try:
            handler.wfile.write(b" ")
        except OSError:
            break
    handler.close_connection = True


def cut(handler: Handler) -> None:
    """Close the connection in the middle of an answer."""
    handler.send(completion("half")[:60], Content_Length="5000")
    handler.close_connection = True


def forms(*known: str) -> Callable[[Respond], Respond]:
    """Know these types of ``response_format`` only, as older servers do; others are refused with 400."""

    def wrapped(respond: Respond) -> Respond:
        def one(handler: Handler) -> None:
            form = handler.body.get("response_format", {}).get("type", "text")
            (respond if form in known else refuses(400, f"response_format {form} is not supported"))(handler)

        return one

    return wrapped
