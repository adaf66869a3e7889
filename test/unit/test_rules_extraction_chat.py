# SPDX-License-Identifier: Apache-2.0
"""Asking a language model: which one, and what becomes of limits, stalls, cut and unreadable answers."""

from __future__ import annotations

import sys
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from model_server import completion, cut, forms, needs_openai, refuses, says, sends, serving, stalls, trickles

from mt_nodes.base.errors import MtError, UsageError
from mt_nodes.rules.chat import Chat
from mt_nodes.rules.models import (
    DEFAULTS,
    KEY,
    MODEL,
    URL,
    LanguageModel,
    load_models,
    models_named,
    models_of_environment,
)
from mt_nodes.rules.service import NoAnswer

pytestmark = needs_openai

ASKED = (("system", "Read."), ("user", "A rule."))
SCHEMA = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
SECRET = "sk-very-secret"


class Time:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now, self.slept = 1000.0, []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def clock(self) -> float:
        return self.now


def chat(url: str, attempts: int = 5, time: Time | None = None, **more: Any) -> Chat:
    time = time or Time()
    return Chat(LanguageModel("tester", url, "m", SECRET, **more), attempts, time.sleep, time.clock)


def test_an_answer_comes_with_what_it_took_and_the_request_has_all_that_was_named() -> None:
    with serving(says("yes")) as server:
        reply = chat(server.url, parameters={"temperature": 0.5, "top_k": 7}).ask(ASKED, SCHEMA)
    assert (reply.text, reply.finish, reply.tokens_in, reply.tokens_out, reply.attempts) == (
        "yes",
        "stop",
        1000,
        100,
        1,
    )
    (body,) = server.requests
    assert body["model"] == "m" and body["temperature"] == 0.5 and body["top_k"] == 7
    assert body["messages"] == [{"role": "system", "content": "Read."}, {"role": "user", "content": "A rule."}]
    assert body["response_format"]["json_schema"] == {"name": "answer", "strict": True, "schema": SCHEMA}
    assert server.keys == [f"Bearer {SECRET}"]


def test_without_a_key_none_is_taken_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-somebody-else")
    with serving(says("yes")) as server:
        Chat(LanguageModel("tester", server.url, "m")).ask(ASKED, SCHEMA)
    assert server.keys == ["Bearer none"]


def test_waits_double_and_retry_after_is_heeded_in_seconds_and_as_a_date() -> None:
    date = format_datetime(datetime.now(timezone.utc) + timedelta(seconds=30), usegmt=True)
    time = Time()
    bad = [refuses(500), refuses(429, Retry_After="7"), refuses(503, Retry_After=date), refuses(408, Retry_After="x")]
    with serving(*bad, says("at last")) as server:
        reply = chat(server.url, time=time).ask(ASKED, SCHEMA)
    assert (reply.text, reply.attempts) == ("at last", 5)
    first, second, third, fourth = time.slept
    assert (first, second, fourth) == (1, 7, 8) and 20 < third <= 30


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (refuses(500, "out of order"), "500: .*out of order"),
        (refuses(429, "too many"), "429: .*too many"),
        (cut, "RemoteProtocolError"),
        (sends(b'{"choices": ['), r"got no completion but application/json: b'\{\"choices"),
        (sends(b"<html>busy</html>", "text/html"), "got no completion but text/html: b'<html>"),
        (sends(b'{"choices": []}'), "got no completion"),
        (sends(b'{"choices": [{"message": null}]}'), "got no completion"),
        (sends(b"[]"), "got no completion"),
        (sends(b"\xff\xfe\x00"), "got no completion"),
        (sends(b"[" * 100_000), "got no completion"),
        (sends(completion(["a", "list"])), "content of list"),
        (sends(b" " * 1_100_000), "larger than 1 MB"),
    ],
)
def test_what_is_no_answer_is_asked_for_again_and_then_said(bad: Any, why: str) -> None:
    time = Time()
    with serving(bad, says("fine")) as server:
        made = chat(server.url, 2, time)
        assert made.ask(ASKED, SCHEMA).attempts == 2
        server.answers[:] = [bad]
        with pytest.raises(NoAnswer, match=f"model 'tester' at .*no answer in 2 attempts.*{why}"):
            made.ask(ASKED, SCHEMA)
    assert len(server.requests) == 4 and time.slept == [1, 1]


@pytest.mark.parametrize(("bad", "why"), [(stalls, "Timeout"), (trickles, "not complete after 0.4 s")])
def test_who_stalls_or_trickles_is_not_waited_for(bad: Any, why: str) -> None:
    with serving(bad) as server, pytest.raises(NoAnswer, match=why):
        Chat(LanguageModel("tester", server.url, "m", timeout_s=0.4), 1).ask(ASKED, SCHEMA)


def test_nobody_there_is_said() -> None:
    with serving(says("")) as server:
        url = server.url
    with pytest.raises(NoAnswer, match=r"no answer in 2 attempts.*refused"):
        chat(url, 2).ask(ASKED, SCHEMA)


def test_longer_waits_than_anybody_waits_end_it() -> None:
    time = Time()
    with serving(refuses(429, Retry_After="86400")) as server, pytest.raises(NoAnswer, match="asks to wait 86400 s"):
        chat(server.url, time=time).ask(ASKED, SCHEMA)
    assert time.slept == []


@pytest.mark.parametrize(
    "echo",
    [
        sends(b"x" * 70 + SECRET.encode(), "text/html"),
        refuses(404, "x" * 290 + SECRET),
        sends(completion(f"Authorization: Bearer {SECRET}")),
    ],
)
def test_a_server_that_repeats_the_key_puts_no_part_of_it_into_errors_or_answers(echo: Any) -> None:
    with serving(echo) as server:
        try:
            said = chat(server.url, attempts=1).ask(ASKED, SCHEMA).text
        except MtError as error:
            said = str(error)
    assert SECRET[:6] not in said and len(server.requests) >= 1


@pytest.mark.parametrize(
    ("status", "code", "hint"),
    [(401, None, "check the key"), (404, None, "check the URL"), (429, "insufficient_quota", "check the model's")],
)
def test_refusals_are_not_asked_again_and_show_no_key(status: int, code: str | None, hint: str) -> None:
    time = Time()
    bad = refuses(status, f"wrong: {SECRET}", code)
    with serving(bad) as server, pytest.raises(UsageError, match=rf"{status}: .*wrong: \*\*\*.*{hint}") as caught:
        chat(server.url, time=time).ask(ASKED, SCHEMA)
    assert SECRET not in str(caught.value) and len(server.requests) == 1 and time.slept == []


@pytest.mark.parametrize(
    ("known", "asked"),
    [
        (("json_object", "text"), ["json_schema", "json_object", "json_object"]),
        (("text",), ["json_schema", "json_object", "", ""]),
    ],
)
def test_servers_without_schemas_are_asked_for_json_or_in_words_and_it_is_remembered(
    known: tuple[str, ...], asked: list[str]
) -> None:
    with serving(forms(*known)(says("{}"))) as server:
        made = chat(server.url)
        assert made.ask(ASKED, SCHEMA).text == made.ask(ASKED, SCHEMA).text == "{}"
    assert [body.get("response_format", {}).get("type", "") for body in server.requests] == asked


def test_a_request_that_is_wrong_in_every_form_is_said() -> None:
    with (
        serving(refuses(400, "max_tokens is unknown")) as server,
        pytest.raises(UsageError, match=r"400: .*max_tokens"),
    ):
        chat(server.url).ask(ASKED, SCHEMA)


def test_no_more_requests_a_minute_than_allowed() -> None:
    time = Time()
    with serving(says("yes")) as server:
        made = chat(server.url, time=time, per_minute=30)
        for _ in range(3):
            made.ask(ASKED, SCHEMA)
    assert time.slept == [2, 2]


def test_tokens_that_are_not_told_are_not_known_and_refusals_and_surrogates_are_text() -> None:
    odd = sends(completion("a\ud800b", usage={"prompt_tokens": "many"}))
    with serving(odd, says(None, refusal="I will not")) as server:
        made = chat(server.url)
        reply, refusal = made.ask(ASKED, SCHEMA), made.ask(ASKED, SCHEMA)
    assert (reply.text, reply.tokens_in, reply.tokens_out) == ("a?b", None, None)
    assert (refusal.text, refusal.finish) == ("I will not", "refusal")


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(UsageError, match=r"pip install 'mt_nodes\[llm\]'"):
        chat("http://localhost:1/v1")


def test_models_of_the_environment() -> None:
    made = models_of_environment({URL: "http://localhost:8000/v1/", MODEL: "a, b,,a", KEY: SECRET})
    assert [(one.name, one.model, one.url, one.key) for one in made] == [
        ("a", "a", "http://localhost:8000/v1", SECRET),
        ("b", "b", "http://localhost:8000/v1", SECRET),
    ]
    assert SECRET not in repr(made)


@pytest.mark.parametrize(
    ("environ", "why"),
    [
        ({}, f"{MODEL} is not set; type such as {URL}="),
        ({MODEL: "a"}, f"{URL} is not set"),
        ({MODEL: "a", URL: "localhost:8000"}, f"{URL}: got no usable URL"),
        ({MODEL: "a", URL: "http://me:secret@host/v1"}, "without a password"),
        ({MODEL: "parser", URL: "http://host/v1"}, "call the model something else"),
    ],
)
def test_environments_that_say_too_little(environ: dict[str, str], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        models_of_environment(environ)


def test_a_file_of_models_names_where_keys_are_and_has_none(tmp_path: Path) -> None:
    path = tmp_path / "models.yaml"
    path.write_text(
        "models:\n  local: {url: http://localhost:1/v1}\n"
        "  hosted: {url: https://host/v1, model: big, key_from: BIG_KEY, price_in: 2, price_out: 8, per_minute: 60,\n"
        "           parameters: {max_tokens: null, max_completion_tokens: 500}}\n"
    )
    local, hosted = load_models(path, {"BIG_KEY": SECRET, KEY: "another"})
    assert (local.model, local.key, local.parameters, local.price_in) == ("local", "", DEFAULTS, None)
    assert (hosted.model, hosted.key, hosted.price_in, hosted.per_minute) == ("big", SECRET, 2, 60)
    assert hosted.parameters == {"temperature": 0.1, "max_completion_tokens": 500}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("models: {}", "models: got none"),
        ("models: {a: {url: http://h/v1, keys: b}}", r"models.a: unknown key 'keys'; known: key_from"),
        ("models: {a: {url: http://h/v1, key_from: NO_KEY}}", "the environment has no NO_KEY"),
        ("models: {a: {model: b}}", r"models.a.url: got None, expected a text"),
        ("models: {a: {url: http://h/v1, timeout_s: 0}}", "timeout_s: got 0, expected a number above 0"),
        ("models: {a: {url: http://h/v1, price_in: .inf}}", "price_in: got inf, expected a number from 0"),
        ("models: {manual: {url: http://h/v1}}", "call the model something else"),
    ],
)
def test_wrong_files_of_models(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "models.yaml"
    path.write_text(text)
    with pytest.raises(UsageError, match=why):
        load_models(path, {})


def test_models_by_name_and_those_of_the_environment() -> None:
    environ = {URL: "http://localhost:1/v1", MODEL: "a, b"}
    assert [one.name for one in models_named(["c"], environ)] == ["c"]
    assert [one.name for one in models_named(["c", "env"], environ)] == ["c", "a", "b"]
    with pytest.raises(UsageError, match=f"{MODEL} is not set"):
        models_named(["env"], {URL: environ[URL]})
