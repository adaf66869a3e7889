# SPDX-License-Identifier: Apache-2.0
"""A relation of the store, in plain data and in the words of AutoMT's tables."""

from __future__ import annotations

from dataclasses import dataclass

from mt_nodes.rules.gherkin import TOOL
from mt_nodes.rules.statement import Statement

#: Origin of a relation that no language model made: by grammar, by the classifier of rules, by a person.
PARSER, CLASSIFIER, MANUAL = "parser", "classifier", "manual"
#: Default of the least agreement: most votes are "yes". Assumed; the paper has no threshold.
LEAST_AGREEMENT = 0.5
#: Default of how sure the classifier must be of a reading. By cross-validation on 545 rules 0.86 of such readings are
#: right, and 0.35 of the rules have one; at 0.5 it is 0.73 and 0.48, and of the grammar 0.56 and 0.46.
LEAST_SURE = 0.7


@dataclass(frozen=True)
class Entry:
    """One relation of the store.

    Attributes:
        region: of its rules. origin: its reader: :data:`PARSER`, :data:`MANUAL` or the name of a model.
        prompt_id, answer_id: of a model's question and answer, empty without one.
        index: number in the store, 0 before it is there. executions: how often it was chosen for a case.
        agreement: of the judge, 0 to 1; None: not judged. rejected: it is below the threshold; no suite runs it.
    """

    statement: Statement
    region: str = ""
    origin: str = PARSER
    prompt_id: str = ""
    answer_id: str = ""
    index: int = 0
    executions: int = 0
    agreement: float | None = None
    rejected: bool = False

    @property
    def text(self) -> str:
        """The relation as a sentence, in AutoMT's wording."""
        return sentence(self.statement)

    @property
    def road_type(self) -> str:
        """Column of the paper."""
        return words_of(self.statement.road)

    @property
    def manipulation(self) -> str:
        """Column of the paper: ``adds red light on the roadside``."""
        return _change(self.statement)

    @property
    def expected_behaviour(self) -> str:
        """Column of the paper."""
        return words_of(self.statement.behaviour)


def words_of(name: str) -> str:
    """Return a name of the ontology as words."""
    return name.replace("_", " ")


def sentence(statement: Statement) -> str:
    """Return a statement in one sentence of the paper's form."""
    given = f", and {statement.condition}" if statement.condition else ""
    return (
        f"Given the ego-vehicle approaches to {words_of(statement.road)}{given}, when {TOOL} {_change(statement)}, "
        f"then ego-vehicle should {words_of(statement.behaviour)}"
    )


def _change(statement: Statement) -> str:
    return " ".join(part for part in (statement.verb, words_of(statement.element), statement.place) if part)
