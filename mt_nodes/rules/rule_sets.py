# SPDX-License-Identifier: Apache-2.0
"""Sets of traffic rules: ``config/rules``, and the user's own as YAML of the same form or one rule per line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from mt_nodes.base import resources
from mt_nodes.base.errors import UsageError, suggest
from mt_nodes.base.yaml_files import read_mapping, read_text, refuse_unknown
from mt_nodes.engine.entries import mapping, text

FOLDER = "rules"
SOURCES = ("checked", "recalled", "own")
_TEXT_SUFFIX = ".txt"
_REGION = re.compile(r"[a-z0-9_]+")
_ID = re.compile(r"[A-Za-z0-9_.:-]+")


@dataclass(frozen=True)
class Rule:
    """A single duty.

    Attributes:
        id: without spaces. text: its wording. section: its place in the regulations.
        source: ``checked`` (read in ``seen_in``), ``recalled``, or ``own`` for a user's rule. same_as: id of the rule
            with the same content.
    """

    id: str
    text: str
    section: str = ""
    source: str = "own"
    seen_in: str = ""
    same_as: str = ""

    @property
    def reference(self) -> str:
        """Section and source in words."""
        reference = f"checked in {self.seen_in}" if self.seen_in else self.source
        return ", ".join(part for part in (self.section, reference) if part)


@dataclass(frozen=True)
class RuleSet:
    """The rules of a region by id, in their order; ``title``: of the regulations."""

    region: str
    title: str
    rules: Mapping[str, Rule]
    path: Path


def load_rule_set(name: str) -> RuleSet:
    """Read a shipped set by its region, or a user's own by path (``.yaml``, ``.yml`` or ``.txt``).

    Raises UsageError: naming file, key or line, what was got and what was expected.
    """
    if name in shipped_rule_sets():
        return _shipped(name)
    path = resources.find(FOLDER, name, (".yaml", ".yml", _TEXT_SUFFIX))
    return _from_lines(path) if path.suffix == _TEXT_SUFFIX else _from_yaml(path)


def shipped_rule_sets() -> tuple[str, ...]:
    """Names of the sets that ship."""
    return tuple(resources.shipped(FOLDER))


@lru_cache
def _shipped(region: str) -> RuleSet:
    """Read a set, cached: the matching of relations needs it repeatedly."""
    return _from_yaml(resources.shipped(FOLDER)[region])


def _from_lines(path: Path) -> RuleSet:
    region = re.sub(r"[^a-z0-9]+", "_", path.stem.lower()).strip("_") or "own"
    lines = (line.strip() for line in read_text(path).splitlines())
    texts = [line for line in lines if line and not line.startswith("#")]
    if not texts:
        raise UsageError(f"{path}: got no rule, expected one a line")
    ids = [f"{region}-{n}" for n in range(1, len(texts) + 1)]
    return RuleSet(region, path.stem, {i: Rule(i, text) for i, text in zip(ids, texts, strict=True)}, path)


def _from_yaml(path: Path) -> RuleSet:
    data = read_mapping(path)
    refuse_unknown(data, ("region", "title", "texts", "rules"), str(path))
    region = text(data, "region", str(path), None)
    if not _REGION.fullmatch(region):
        raise UsageError(f"{path}: region: got '{region}', expected small letters, digits and '_'")
    texts = mapping(data.get("texts") or {}, f"{path}: texts")
    entries = mapping(data.get("rules"), f"{path}: rules")
    rules = {str(i): _rule(str(i), row, texts, f"{path}: rules.{i}") for i, row in entries.items()}
    if not rules:
        raise UsageError(f"{path}: rules: got none, expected at least one")
    for rule in rules.values():
        if rule.same_as and rule.same_as not in rules.keys() - {rule.id}:
            raise UsageError(f"{path}: rules.{rule.id}.same_as: no rule '{rule.same_as}'{suggest(rule.same_as, rules)}")
    return RuleSet(region, text(data, "title", str(path), region), rules, path)


def _rule(name: str, data: Any, texts: Mapping[str, Any], where: str) -> Rule:
    if not _ID.fullmatch(name):
        raise UsageError(f"{where}: got id '{name}', expected letters, digits, '-', '_', '.' and ':'")
    row = {"text": data} if isinstance(data, str) else mapping(data, where)
    refuse_unknown(row, ("text", "section", "source", "seen_in", "same_as"), where)
    source, seen_in = text(row, "source", where, "own"), text(row, "seen_in", where)
    if source not in SOURCES:
        raise UsageError(f"{where}.source: got '{source}', expected {', '.join(SOURCES)}")
    if (source == "checked") != bool(seen_in):
        raise UsageError(
            f"{where}: got source '{source}' and seen_in '{seen_in}'; checked needs it, nothing else has it"
        )
    if seen_in and seen_in not in texts:
        raise UsageError(f"{where}.seen_in: no text '{seen_in}'{suggest(seen_in, map(str, texts))}")
    rule_text = text(row, "text", where, None)
    checked_in = str(texts[seen_in]) if seen_in else ""
    return Rule(name, rule_text, text(row, "section", where), source, checked_in, text(row, "same_as", where))
