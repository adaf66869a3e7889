# SPDX-License-Identifier: Apache-2.0
"""Figures of stores and readers: how many relations of which kind, and how well rules are read."""

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

BY = ("region", "behaviour", "origin")
#: What a person reads in rules, by the id of the rule or its text: ``road verb element behaviour``.
Golden = Mapping[str, frozenset[str]]


@dataclass(frozen=True)
class Score:
    """How many statements were read as a person reads them, of those read, and of those a person reads."""

    right: int
    read: int
    meant: int

    @property
    def precision(self) -> float | None:
        """Share of what was read that is right, None where nothing was read."""
        return self.right / self.read if self.read else None

    @property
    def recall(self) -> float | None:
        """Share of what a person reads that was read, None where a person reads nothing."""
        return self.right / self.meant if self.meant else None

    def as_plain(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        return {**vars(self), "precision": self.precision, "recall": self.recall}


def counts(entries: Iterable[Entry]) -> dict[str, dict[str, int]]:
    """Return how many relations there are of each region, behaviour and origin, the most first."""
    rows = [(e.region or "(none)", e.statement.behaviour, e.origin) for e in entries]
    return {name: dict(Counter(row[i] for row in rows).most_common()) for i, name in enumerate(BY)}


def score(got: Golden, golden: Golden) -> Score:
    """Compare what was read in rules with what a person reads in all of them."""
    right = sum(len(says & got.get(rule, frozenset())) for rule, says in golden.items())
    read_in = sum(len(got.get(rule, ())) for rule in golden)
    return Score(right, read_in, sum(map(len, golden.values())))


def golden_files(directory: Path) -> dict[str, Path]:
    """Return the files of a golden set by name; none where there is no such directory."""
    return {path.stem: path for path in sorted(directory.glob("*.yaml"))}


def load_golden(path: Path) -> Golden:
    """Read what a person reads in the rules of a set, by id, or in rules that stand beside it, by text.

    Raises:
        UsageError: naming the file, the entry, what was got and what was expected.
    """
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
    """Return how well the parser reads a golden set: of a shipped region's rules by name, else of texts."""
    rules = load_rule_set(name).rules if name in shipped_rule_sets() else {}
    told = {key: rules[key].text if key in rules else key for key in golden}
    got = {key: frozenset(map(words, read_rule(said, ontology).statements)) for key, said in told.items()}
    return score(got, golden)


def origin_scores(entries: Sequence[Entry], golden: Mapping[str, Golden]) -> dict[str, dict[str, Score]]:
    """Return how well models read the rules of golden regions: origin -> region -> score, of what is in a store."""
    found: dict[str, dict[str, Score]] = {}
    for origin, region in sorted({(e.origin, e.region) for e in entries}):
        if origin != PARSER and region in golden:
            mine = [e.statement for e in entries if (e.origin, e.region) == (origin, region)]
            got = {rule: frozenset(words(said) for said in mine if rule in said.rules) for rule in golden[region]}
            found.setdefault(origin, {})[region] = score(got, golden[region])
    return found


def words(said: Statement) -> str:
    """Return a statement as golden sets have it."""
    return f"{said.road} {said.verb} {said.element} {said.behaviour}"
