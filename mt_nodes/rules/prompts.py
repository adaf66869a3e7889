# SPDX-License-Identifier: Apache-2.0
"""Prompts for language models: templates (Jinja) and worked examples of ``config/prompts``, or of a similar folder.

The steps follow table III of AutoMT (arXiv 2510.19438), the questions its table IV; the words are our own. A rule goes
into a prompt as a JSON string, so that its content cannot end the string.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mt_nodes.base import resources
from mt_nodes.base.errors import UsageError
from mt_nodes.base.yaml_files import read_list, read_text
from mt_nodes.engine.entries import mapping, text
from mt_nodes.rules.chat import Message
from mt_nodes.rules.ontology import CATEGORIES, Ontology

FOLDER = "prompts"
EXAMPLES = "examples.yaml"
_TEMPLATES = ("extract.system", "extract.user", "again.user", "self_check.system", "self_check.user")


@dataclass(frozen=True)
class Example:
    """A rule and its answer."""

    rule: str
    answer: str


class Templates:
    """The templates of one folder."""

    def __init__(self, names: Iterable[str], folder: Path | None = None) -> None:
        """Read them; by default the shipped ones. Raises UsageError: one is missing, unreadable or invalid."""
        from jinja2 import Environment, StrictUndefined, TemplateSyntaxError

        self.folder = folder or resources.config_dir() / FOLDER
        jinja = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False)
        jinja.filters["quoted"] = _quoted
        self._templates = {}
        for name in names:
            path = self.folder / f"{name}.md"
            try:
                self._templates[name] = jinja.from_string(read_text(path))
            except TemplateSyntaxError as error:
                raise UsageError(f"{path}:{error.lineno}: no valid template: {error.message}") from error

    def render(self, name: str, **values: Any) -> str:
        """Return a filled-in template. Raises UsageError: it uses an unknown variable."""
        from jinja2 import TemplateError

        try:
            return self._templates[name].render(values).strip()
        except (TemplateError, TypeError) as error:  # a filter of what is unknown raises the second
            raise UsageError(f"{self.folder / name}.md: cannot be filled in: {error}") from error


class Prompts:
    """The prompts for one ontology."""

    def __init__(self, ontology: Ontology, folder: Path | None = None) -> None:
        """Read templates and examples. Raises UsageError: one is missing, unreadable or invalid."""
        templates = Templates(_TEMPLATES, folder)
        self._render = templates.render
        self.examples = read_examples(templates.folder / EXAMPLES)
        elements = {kind: [e.name for e in ontology.elements.values() if e.category == kind] for kind in CATEGORIES}
        self._system = self._render("extract.system", ontology=ontology, elements=elements, examples=self.examples)

    def extract(self, rule: str) -> tuple[Message, ...]:
        """Return the messages for a rule."""
        return ("system", self._system), ("user", self._render("extract.user", rule=rule))

    def retry(self, messages: Iterable[Message], answer: str, why: str) -> tuple[Message, ...]:
        """Return the messages after an invalid answer."""
        text = self._render("again.user", why=why)
        return (*messages, ("assistant", answer or "(nothing)"), ("user", text))

    def self_check(self, rule: str, sentences: Iterable[str]) -> tuple[Message, ...]:
        """Return the questions about statements of a rule."""
        text = self._render("self_check.user", rule=rule, sentences=list(sentences))
        return ("system", self._render("self_check.system")), ("user", text)


def read_examples(path: Path) -> tuple[Example, ...]:
    """Read a list of ``{rule, answer}``. Raises UsageError."""
    examples = []
    for number, row in enumerate(read_list(path), 1):
        where = f"{path}[{number}]"
        example = mapping(row, where, "{rule: …, answer: {…}}")
        answer = mapping(example.get("answer"), f"{where}.answer")
        examples.append(Example(text(example, "rule", where, None), json.dumps(answer, ensure_ascii=False)))
    return tuple(examples)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
