# SPDX-License-Identifier: Apache-2.0
"""Append-only file of all questions to language models and their answers: no question is asked twice.

Two kinds of lines (:mod:`mt_nodes.base.jsonl`): ``{"kind": "text", "id", "text"}`` for each message and schema, once,
and ``{"kind": "answer", "key", "prompt_id", "name", "model", "parameters", "sample", "messages": [[role, id], …],
"schema": id, "text", "finish", "tokens_in", "tokens_out", "seconds", "attempts"}``. Ids are SHA-256, 16 digits of it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any

from mt_nodes.base.errors import InfrastructureError
from mt_nodes.base.jsonl import LineFile, read_lines
from mt_nodes.rules.chat import Content, Message, ModelReply
from mt_nodes.rules.models import LanguageModel

_DIGITS = 16


@dataclass(frozen=True)
class Question:
    """A question to a model; ``sample`` distinguishes repetitions of one question."""

    model: LanguageModel
    messages: Sequence[Message]
    schema: Mapping[str, Any]
    sample: int = 0

    @property
    def key(self) -> str:
        """Id of everything that an answer depends on: model, messages, schema, parameters, sample."""
        model = self.model
        return _id(_plain([model.name, model.model, model.parameters, self.sample, self.prompt_id]))

    @property
    def prompt_id(self) -> str:
        """Id of messages and schema."""
        return _id(_plain([self.messages, self.schema]))


@dataclass(frozen=True)
class ModelAnswer:
    """An answer, its id and that of its question; ``cached``: it was in the file already."""

    id: str
    prompt_id: str
    reply: ModelReply
    cached: bool


class Answers:
    """The answers of a file; a context manager. Thread-safe; only one process may write."""

    def __init__(self, path: Path) -> None:
        """Open or create the file.

        Raises UsageError: another process is writing to it. InfrastructureError: it is damaged, or cannot be written.
        """
        self._lock = Lock()
        self._texts: set[str] = set()
        self._replies: dict[str, ModelReply] = {}
        try:
            self._file = LineFile(path)
            for line in read_lines(path):
                self._take(line, path)
        except OSError as error:
            raise InfrastructureError(f"{path}: cannot be opened: {error.strerror}") from error

    def __enter__(self) -> Answers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def __len__(self) -> int:
        return len(self._replies)

    def find(self, question: Question) -> ModelAnswer | None:
        """Return the answer to an earlier question, None if there is none."""
        reply = self._replies.get(question.key)
        return None if reply is None else ModelAnswer(question.key, question.prompt_id, reply, cached=True)

    def add(self, question: Question, reply: ModelReply) -> ModelAnswer:
        """Store an answer. Raises InfrastructureError: the file cannot be written."""
        model = question.model
        with self._lock:
            try:
                line = {
                    "kind": "answer",
                    "key": question.key,
                    "prompt_id": question.prompt_id,
                    "name": model.name,
                    "model": model.model,
                    "parameters": model.parameters,
                    "sample": question.sample,
                    "messages": [[role, self._store_text(content)] for role, content in question.messages],
                    "schema": self._store_text(_plain(question.schema)),
                    **asdict(reply),
                }
                self._file.append(line)
            except OSError as error:
                raise InfrastructureError(
                    f"{self._file.path}: cannot be written: {error.strerror}; what was answered before is kept"
                ) from error
            self._replies[question.key] = reply
        return ModelAnswer(question.key, question.prompt_id, reply, cached=False)

    def _store_text(self, content: Content) -> str:
        """Store a text, or the parts of a message, unless it is there, and return its id."""
        text = content if isinstance(content, str) else _plain(content)
        name = _id(text)
        if name not in self._texts:
            self._file.append({"kind": "text", "id": name, "text": text})
            self._texts.add(name)
        return name

    def _take(self, line: Mapping[str, Any], path: Path) -> None:
        try:
            if line["kind"] == "text":
                self._texts.add(line["id"])
            else:
                self._replies[line["key"]] = ModelReply(
                    **{field.name: line[field.name] for field in fields(ModelReply)}
                )
        except KeyError as error:
            raise InfrastructureError(f"{path}: got a line without {error}, expected a file of answers") from error


def _plain(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _id(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
