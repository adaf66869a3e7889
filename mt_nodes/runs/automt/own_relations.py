# SPDX-License-Identifier: Apache-2.0
"""Relations that no rule of a shipped set gave: made of a statement, written to a file, to be run like any other."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from mt_nodes.base.directories import cannot_write
from mt_nodes.engine.compatibility import incompatibility
from mt_nodes.relations.relation import Relation
from mt_nodes.rules.ontology import Ontology
from mt_nodes.rules.rule_sets import Rule, RuleSet
from mt_nodes.rules.statement import Statement
from mt_nodes.rules.statement_binding import bind
from mt_nodes.rules.store_import import write_relation
from mt_nodes.stacks.stack import Stack


def own_relation(name: str, statement: Statement, text: str, title: str, region: str, ontology: Ontology) -> Relation:
    """Return a statement as a relation of this id; ``text`` and ``title`` say what it says, and who says so.

    Raises UsageError: nothing shows its element in the region.
    """
    rules = RuleSet(region, title, {name: Rule(name, text)}, Path(title))
    return replace(bind(replace(statement, rules=(name,)), ontology, rules), id=name)


def why_not(relation: Relation, sensors: Collection[str], stacks: Sequence[Stack]) -> str:
    """Return why a relation cannot be run on all bags and stacks, empty where it can.

    ``sensors``: that all bags have.
    """
    lacking = [sensor for sensor in relation.requires if sensor not in sensors]
    if lacking:
        return f"it needs a {lacking[0]}, which a bag has not"
    return next((why for stack in stacks if (why := incompatibility(relation, stack))), "")


def write_own_relation(relation: Relation, directory: Path) -> str:
    """Write a relation to a directory and return the path of its file from where that directory lies.

    Raises InfrastructureError: it cannot be written.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        return f"{directory.name}/{write_relation(directory, relation).name}"
    except OSError as error:
        raise cannot_write(directory, error) from error
