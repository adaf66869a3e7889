# SPDX-License-Identifier: Apache-2.0
"""The language models of an experiment: their answers in one file, the cost of each counted by what it is asked for."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from mt_nodes.rules.chat import Chat
from mt_nodes.rules.model_answers import Answers
from mt_nodes.rules.model_queries import Asker
from mt_nodes.rules.models import LanguageModel, model_named
from mt_nodes.rules.nearest_texts import Index, Indexer


class ModelPool:
    """Opens models when they are needed; a context manager.

    Args:
        models_file: YAML file of models; empty: all are on the server of the environment.
        answers: file of stored answers, created with the first model.
    """

    def __init__(self, models_file: str, answers: Path) -> None:
        self._models_file, self._path = models_file, answers
        self._ending = ExitStack()
        self._answers: Answers | None = None
        self._askers: list[tuple[str, Asker]] = []

    def __enter__(self) -> ModelPool:
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.close()

    def asker(self, model: LanguageModel, task: str) -> Asker:
        """Return what asks a model for one task, such as ``scenes``."""
        if self._answers is None:
            self._answers = self._ending.enter_context(Answers(self._path))
        asker = Asker(Chat(model), self._answers)
        self._askers.append((task, asker))
        return asker

    def named(self, name: str, task: str) -> Asker:
        """Return what asks the model of a name. Raises UsageError: there is no such model."""
        return self.asker(model_named(name, self._models_file, os.environ), task)

    def indexer(self, name: str) -> Indexer:
        """Return what compares meanings: an embedding model's vectors, stored beside the answers; empty: without one.

        Raises UsageError: there is no such model. InfrastructureError: the file of vectors is damaged.
        """
        if not name:
            return Index
        from mt_nodes.rules.embeddings import Embeddings, FaissIndex
        from mt_nodes.rules.service import Service
        from mt_nodes.rules.vector_file import VectorFile

        model = model_named(name, self._models_file, os.environ)
        vectors = self._ending.enter_context(VectorFile(self._path.with_name("vectors.jsonl")))
        embeddings = Embeddings(model.name, vectors, lambda: Service(model))
        return lambda texts: FaissIndex(texts, embeddings.vectors)

    def usage(self) -> list[dict[str, Any]]:
        """Return what every task took, in the order in which they began."""
        return [
            {"task": task, "model": one.name, **one.usage.as_plain(), "cost": one.cost} for task, one in self._askers
        ]


def summed(rows: Sequence[Mapping[str, Any]], more: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the counts of two parts of an experiment, tasks of the same model added."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in (*rows, *more):
        key = row["task"], row["model"]
        before = found.get(key)
        found[key] = dict(row) if before is None else {name: _added(before[name], row[name]) for name in row}
    return list(found.values())


def _added(one: Any, other: Any) -> Any:
    if isinstance(one, str) or one is None or other is None:
        return one if isinstance(one, str) else None
    return one + other
