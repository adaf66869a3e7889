# SPDX-License-Identifier: Apache-2.0
"""Statistics of stores and readers: numbers of relations by kind, and the quality of readings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mt_nodes.base.errors import UsageError
from mt_nodes.base.yaml_files import read
from mt_nodes.engine.entries import mapping, text, texts
from mt_nodes.rules.ontology import Ontology
from mt_nodes.rules.parser import read_rule
from mt_nodes.rules.rule_sets import load_rule_set, shipped_rule_sets
from mt_nodes.rules.statement import Statement
from mt_nodes.rules.store_entry import PARSER, Entry

GROUPS = ("region", "behaviour", "origin")
#: A person's reading of rules, by the rule's id or text: ``road verb element behaviour``.
Golden = Mapping[str, frozenset[str]]


@dataclass(frozen=True)
class Score:
    """Agreement of readings with a person's: correct ones, all ones read, and all ones of the person."""

    right: int
    read: int
    expected: int

    @property
    def precision(self) -> float | None:
        """Share of read statements that are correct, None if nothing was read."""
        return self.right / self.read if self.read else None

    @property
    def recall(self) -> float | None:
        """Share of the person's statements that were read, None if there are none."""
        return self.right / self.expected if self.expected else None

    def as_plain(self) -> dict[str, Any]:
        """Return it in the form of JSON."""
        counts = {"right": self.right, "read": self.read, "meant": self.expected}
        return {**counts, "precision": self.precision, "recall": self.recall}


def counts(entries: Iterable[Entry]) -> dict[str, dict[str, int]]:
    """Return the number of relations by region, behaviour and origin, largest first."""
    rows = [(e.region or "(none)", e.statement.behaviour, e.origin) for e in entries]
    return {name: dict(Counter(row[i] for row in rows).most_common()) for i, name in enumerate(GROUPS)}


def score(got: Golden, golden: Golden) -> Score:
    """Compare readings of rules with a person's readings of all of them."""
    right = sum(len(says & got.get(rule, frozenset())) for rule, says in golden.items())
    read_in = sum(len(got.get(rule, ())) for rule in golden)
    return Score(right, read_in, sum(map(len, golden.values())))


def golden_files(directory: Path) -> dict[str, Path]:
    """Return the files of a golden set by name; none if there is no such directory."""
    return {path.stem: path for path in sorted(directory.glob("*.yaml"))}


def load_golden(path: Path) -> Golden:
    """Read a person's readings of a rule set, by id, or of rules in the same file, by text. Raises UsageError."""
    data = read(path)
    if not isinstance(data, (dict, list)) or not data:
        raise UsageError(
            f"{path}: got {type(data).__name__}, expected rules by id, or a list of texts and what they say"
        )
    named = list(data.items()) if isinstance(data, dict) else list(enumerate(data, 1))
    rows = [(str(name), mapping(row, f"{path}: {name}", "{says: [some words]}")) for name, row in named]
    key = {name: name if isinstance(data, dict) else text(row, "text", f"{path}: {name}", None) for name, row in rows}
    return {key[name]: frozenset(texts(row, "says", f"{path}: {name}")) for name, row in rows}


def parser_score(name: str, golden: Golden, ontology: Ontology) -> Score:
    """Return the parser's score on a golden set: of a shipped region's rules by name, else of texts.

    The parser reads strictly where the set has behaviours of a strict reading.
    """
    named = {one.split()[-1] for says in golden.values() for one in says}
    strict = any(one.reads_as for name, one in ontology.behaviours.items() if name in named)
    rules = load_rule_set(name).rules if name in shipped_rule_sets() else {}
    texts = {key: rules[key].text if key in rules else key for key in golden}
    got = {
        key: frozenset(map(words, read_rule(text, ontology, strict=strict).statements)) for key, text in texts.items()
    }
    return score(got, golden)


def origin_scores(entries: Sequence[Entry], golden: Mapping[str, Golden]) -> dict[str, dict[str, Score]]:
    """Return the models' scores on golden regions, of a store's relations: origin -> region -> score."""
    found: dict[str, dict[str, Score]] = {}
    for origin, region in sorted({(e.origin, e.region) for e in entries}):
        if origin != PARSER and region in golden:
            statements = [e.statement for e in entries if (e.origin, e.region) == (origin, region)]
            got = {
                rule: frozenset(words(statement) for statement in statements if rule in statement.rules)
                for rule in golden[region]
            }
            found.setdefault(origin, {})[region] = score(got, golden[region])
    return found


def words(statement: Statement) -> str:
    """Return a statement in the form of golden sets."""
    return f"{statement.road} {statement.verb} {statement.element} {statement.behaviour}"
