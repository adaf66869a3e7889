# SPDX-License-Identifier: Apache-2.0
"""Keys of language models: in no answer, error, log or record, and in the environment of no stack."""

from __future__ import annotations

import json
import os
import traceback
from typing import Any

import pytest
from model_server import Handler, Respond, completion, serving

from mt_nodes.base.environment import SECRET_VARIABLES, user_environment, without_secrets
from mt_nodes.rules.chat import Chat
from mt_nodes.rules.models import KEY, LanguageModel
from mt_nodes.stacks.stack_host import ProcessContext

SECRET = "sk-this-must-not-be-seen"


def quotes(make: Any, status: int = 200) -> Respond:
    """Answer with something that has the request's own key in it, as some servers and proxies do."""

    def respond(handler: Handler) -> None:
        handler.send(make(f"your key is {handler.headers['Authorization']}"), status)

    return respond


@pytest.mark.parametrize(
    "respond",
    [
        quotes(completion),
        quotes(lambda text: completion("", refusal=text)),
        quotes(lambda text: json.dumps({"error": {"message": text}}).encode(), 401),
        quotes(lambda text: json.dumps({"error": {"message": text}}).encode(), 500),
        quotes(lambda text: f"<html>{text}</html>".encode()),
        quotes(lambda text: json.dumps({"choices": [{"message": {"content": [text]}}]}).encode()),
    ],
)
def test_a_server_that_quotes_the_key_does_not_get_it_into_results(respond: Respond) -> None:
    """Answers are stored, errors printed."""
    with serving(respond) as server:
        model = LanguageModel("tester", server.url, "m", SECRET)
        try:
            said = repr(Chat(model, attempts=1).ask([("user", "A rule.")], {}))
        except Exception as error:  # noqa: BLE001 - whatever it says
            said = "".join(traceback.format_exception(error, chain=False))
        assert server.keys == [f"Bearer {SECRET}"] * len(server.keys) and server.keys
    assert SECRET not in said + repr(model) + str(model)


def test_a_stack_does_not_get_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may print its environment, and its log is in the results."""
    monkeypatch.setenv(KEY, SECRET)
    assert KEY in SECRET_VARIABLES
    for environment in (user_environment(os.environ), without_secrets(os.environ), ProcessContext.current().env):
        assert SECRET not in environment.values() and environment["PATH"] == os.environ["PATH"]
