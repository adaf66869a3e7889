# SPDX-License-Identifier: Apache-2.0
"""The shipped store: the parser's readings of the shipped rules, as relations with ids.

It is built on demand, so it never differs from rules, ontology and parser. Statements that no mutation shows are not in
it; :func:`born` includes them, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

from mt_nodes.base.errors import UsageError, suggest
from mt_nodes.relations.relation import Relation
from mt_nodes.rules.nearest_texts import Index, Indexer
from mt_nodes.rules.ontology import Ontology, load_ontology
from mt_nodes.rules.parser import Reading, read_rule
from mt_nodes.rules.rule_sets import Rule, RuleSet, load_rule_set, shipped_rule_sets
from mt_nodes.rules.rule_store import Store
from mt_nodes.rules.statement import Statement, merged
from mt_nodes.rules.statement_binding import bind, gap, relation_id
from mt_nodes.rules.store_entry import Entry
from mt_nodes.rules.world_binding import bind_in_world, gap_in_world


@dataclass(frozen=True, eq=False)
class RuleStatement:
    """A statement and the rule set of its first rule: the basis of a relation.

    ``id``: of the relation. ``nth``: index of the statement within its rule.
    """

    id: str
    statement: Statement
    rules: RuleSet
    nth: int = 1

    @property
    def rule(self) -> Rule:
        """Its first rule."""
        return self.rules.rules[self.statement.rules[0]]

    def gap(self, ontology: Ontology) -> str:
        """Return why no mutation shows it, empty if one does."""
        return gap(self.statement, ontology, self.rules.region)

    def relation(self, ontology: Ontology) -> Relation:
        """Return its relation. Raises UsageError: it cannot be bound to mutations and a check."""
        return replace(bind(self.statement, ontology, self.rules, self.nth), id=self.id)

    def gap_in_world(self, ontology: Ontology) -> str:
        """Return why no closed-loop world shows it, empty if one does."""
        return gap_in_world(self.statement, ontology, self.rules.region)

    def in_world(self, ontology: Ontology) -> Relation:
        """Return its closed-loop relation.

        Raises UsageError: it cannot be bound to changes of a world and a check of drives.
        """
        return replace(bind_in_world(self.statement, ontology, self.rules, self.nth), id=self.id)


@lru_cache(maxsize=1)
def readings() -> Mapping[str, tuple[tuple[Rule, Reading], ...]]:
    """Return the parser's readings of all shipped rules, by region."""
    ontology = load_ontology()
    return {
        region: tuple((r, read_rule(r.text, ontology, r.id)) for r in load_rule_set(region).rules.values())
        for region in shipped_rule_sets()
    }


@lru_cache(maxsize=1)
def born() -> Mapping[str, RuleStatement]:
    """Return every statement of the shipped rules by the id of its relation, including those that nothing shows."""
    return {
        (name := relation_id(region, rule.id, nth)): RuleStatement(name, statement, load_rule_set(region), nth)
        for region, rows in readings().items()
        for rule, reading in rows
        for nth, statement in enumerate(reading.statements, 1)
    }


@lru_cache(maxsize=1)
def in_store() -> Mapping[str, RuleStatement]:
    """Return the statements of the shipped store, by id."""
    ontology = load_ontology()
    return {name: one for name, one in born().items() if not one.gap(ontology)}


@lru_cache(maxsize=1)
def in_loop() -> Mapping[str, RuleStatement]:
    """Return the statements with a closed-loop relation, by id."""
    ontology = load_ontology()
    return {name: one for name, one in in_store().items() if not one.gap_in_world(ontology)}


def section_of(name: str) -> str:
    """Return the section of a relation's rule; empty for a relation without one."""
    return in_store()[name].rule.section if name in in_store() else ""


@lru_cache(maxsize=256)
def load_rule_relation(name: str, loop: bool = False) -> Relation:
    """Return a relation of the shipped store by its id, ``loop``: in its closed-loop form.

    Raises UsageError: there is none of this id, or nothing shows it.
    """
    if name not in born():
        hint = suggest(name, in_store(), "see `mt rules list`")
        raise UsageError(f"no relation '{name}'{hint}")
    one = born()[name]
    return one.in_world(load_ontology()) if loop else one.relation(load_ontology())


def shipped_entries() -> list[Entry]:
    """Return the relations of the shipped store, each once, with all of their rules."""
    return [
        Entry(statement, region)
        for region in readings()
        for statement in merged(one.statement for one in in_store().values() if one.rules.region == region)
    ]


def ids_of(entry: Entry) -> tuple[str, ...]:
    """Return the ids of the shipped relations with the same content for the same region."""
    return _ids().get((entry.region, replace(entry.statement, rules=())), ())


@lru_cache(maxsize=1)
def _ids() -> Mapping[tuple[str, Statement], tuple[str, ...]]:
    found: dict[tuple[str, Statement], tuple[str, ...]] = {}
    for name, one in in_store().items():
        key = (one.rules.region, replace(one.statement, rules=()))
        found[key] = (*found.get(key, ()), name)
    return found


def of_entry(entry: Entry) -> RuleStatement:
    """Return the basis of a store entry's relation; a rule that does not ship is quoted by its text."""
    named = entry.statement.rules or (f"relation_{entry.index}",)
    if entry.region in shipped_rule_sets() and named[0] in (shipped := load_rule_set(entry.region)).rules:
        rules = shipped
    else:
        region = entry.region or "own"
        rules = RuleSet(region, region, {named[0]: Rule(named[0], entry.text)}, Path("the store"))
    return RuleStatement(f"relation {entry.index}", replace(entry.statement, rules=named), rules)


@contextmanager
def scratch_store(entries: list[Entry], ontology: Ontology | None = None, indexer: Indexer = Index) -> Iterator[Store]:
    """Yield a temporary store of some relations, numbered in order."""
    with (
        TemporaryDirectory(prefix="mt_rules_") as place,
        Store(Path(place) / "rules.sqlite", ontology=ontology, indexer=indexer) as store,
    ):
        store.add(entries)
        yield store
