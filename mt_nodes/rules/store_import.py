# SPDX-License-Identifier: Apache-2.0
"""Reads rule sets into a store, rule by rule; an interrupted import can be continued."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml

from mt_nodes.base.directories import cannot_write, write_whole
from mt_nodes.base.errors import UsageError
from mt_nodes.relations.relation import Relation
from mt_nodes.rules.extraction import Extraction, Reader, SelfCheck, extract
from mt_nodes.rules.ontology import Ontology
from mt_nodes.rules.rule_sets import RuleSet, load_rule_set
from mt_nodes.rules.rule_store import Store
from mt_nodes.rules.statement import Statement
from mt_nodes.rules.statement_binding import bind, bind_all
from mt_nodes.rules.world_binding import bind_in_world

Taken = tuple[RuleSet, Extraction]


def load_sets(names: Sequence[str]) -> list[RuleSet]:
    """Read rule sets, each of its own region.

    Raises UsageError: one cannot be read, or two have the same region and their rules could be confused.
    """
    sets = {}
    for name in names:
        rules = load_rule_set(name)
        if rules.region in sets:
            raise UsageError(f"{rules.path}: got a second set of region '{rules.region}', expected one; join the files")
        sets[rules.region] = rules
    return list(sets.values())


def take_in(
    sets: Sequence[RuleSet], readers: Sequence[Reader], check: SelfCheck | None = None, store: Store | None = None
) -> Iterator[Taken]:
    """Yield the readings of every rule; a rule's statements are in the store before it is yielded.

    Rules without all models' answers are not stored: the next run may choose another reading. What the judge rejects is
    stored with its mark, if nothing else was read.
    Raises MtError: the store cannot be written, or a model fails repeatedly; earlier readings are stored.
    """
    for rules in sets:
        for found in extract(rules.rules.values(), readers, check):
            if store is not None and found.complete:
                store.add(found.entries(rules.region))
            yield rules, found


def statements_of(found: Sequence[Taken], rules: RuleSet) -> list[Statement]:
    """Return the chosen statements of a rule set."""
    chosen = [one.chosen for of, one in found if of is rules and one.chosen]
    return [statement for one in chosen for statement in one.reading.statements]


def write_relations(
    directory: Path, rules: RuleSet, statements: Sequence[Statement], ontology: Ontology, in_world: bool = False
) -> tuple[list[str], list[str]]:
    """Write relations of a set as files for ``mt replay --relations``; return their ids, and why others have none.

    ``in_world``: closed-loop relations, for ``mt scenario --relations``.
    Raises InfrastructureError: they cannot be written.
    """
    bound, unbound = bind_all(statements, ontology, rules, bind_in_world if in_world else bind)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for relation in bound:
            write_relation(directory, relation)
    except OSError as error:
        raise cannot_write(directory, error) from error
    return [relation.id for relation in bound], [why for _, why in unbound]


def write_relation(directory: Path, relation: Relation) -> Path:
    """Write one relation as a file and return its path; raises ``OSError`` if that fails."""
    path = directory / f"{relation.id}.yaml"
    write_whole(path, yaml.safe_dump(relation.as_plain(), sort_keys=False, allow_unicode=True, width=120))
    return path
