# SPDX-License-Identifier: Apache-2.0
"""Relations that no rule of a shipped set gave: made of a statement, written to a file, to be run like any other."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mt_nodes.base.directories import cannot_write
from mt_nodes.engine.compatibility import incompatibility
from mt_nodes.relations.mutations.camera.diffusion_edit import ImageInstructed
from mt_nodes.relations.relation import Relation
from mt_nodes.rules.ontology import Ontology
from mt_nodes.rules.rule_sets import Rule, RuleSet
from mt_nodes.rules.statement import REPLACES, Statement
from mt_nodes.rules.statement_binding import bind
from mt_nodes.rules.store_entry import words_of
from mt_nodes.rules.store_import import write_relation
from mt_nodes.stacks.stack import Stack


@dataclass(frozen=True)
class RelationShop:
    """Makes relations ready to run, for all methods alike.

    Attributes:
        sensors: that all bags have. stacks: that all relations are run on. directory: of the files of relations.
        edit_model: diffusion model that makes the changes, in place of geometry-true mutations; empty: none.
    """

    ontology: Ontology
    sensors: Collection[str]
    stacks: Sequence[Stack]
    directory: Path
    edit_model: str = ""

    def made(self, relation: Relation, statement: Statement) -> Relation:
        """Return a relation with the changes of this experiment."""
        return instructed(relation, statement, self.edit_model) if self.edit_model else relation

    def why_not(self, relation: Relation) -> str:
        """Return why a relation cannot be run on all bags and stacks, empty where it can."""
        lacking = [sensor for sensor in relation.requires if sensor not in self.sensors]
        if lacking:
            return f"it needs a {lacking[0]}, which a bag has not"
        return next((why for stack in self.stacks if (why := incompatibility(relation, stack))), "")

    def written(self, relation: Relation) -> str:
        """Write a relation and return the path of its file from where the directory lies.

        Raises InfrastructureError: it cannot be written.
        """
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            return f"{self.directory.name}/{write_relation(self.directory, relation).name}"
        except OSError as error:
            raise cannot_write(self.directory, error) from error


def own_relation(name: str, statement: Statement, text: str, title: str, region: str, ontology: Ontology) -> Relation:
    """Return a statement as a relation of this id; ``text`` and ``title`` say what it says, and who says so.

    Raises UsageError: nothing shows its element in the region.
    """
    rules = RuleSet(region, title, {name: Rule(name, text)}, Path(title))
    return replace(bind(replace(statement, rules=(name,)), ontology, rules), id=name)


def instructed(relation: Relation, statement: Statement, model: str) -> Relation:
    """Return a relation whose change a diffusion model paints, as AutoMT's public code asks for it in a sentence."""
    edit = ImageInstructed(instruction=instruction(statement), model=model)
    return replace(relation, id=f"{relation.id}_edited", mutate=(edit,), baseline=(), requires=("camera",), path=None)


def instruction(statement: Statement) -> str:
    """Return the sentence that asks for a change."""
    words = words_of(statement.element)
    if statement.verb == REPLACES:
        return f"change the weather, light or road of this picture to {words}"
    return f"add one {words} {statement.place or 'where it usually stands'}"
