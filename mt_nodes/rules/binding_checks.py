# SPDX-License-Identifier: Apache-2.0
"""Whether relations can be run: binds each to mutations and to the check of its behaviour."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mt_nodes.base import plugins
from mt_nodes.base.errors import UsageError
from mt_nodes.relations.relation import Relation
from mt_nodes.rules.ontology import Ontology
from mt_nodes.rules.shipped_rules import RuleStatement
from mt_nodes.rules.store_entry import sentence


@dataclass(frozen=True, eq=False)
class BindingResult:
    """A relation's binding, or, with ``relation`` None, the reason ``why`` there is none."""

    born: RuleStatement
    relation: Relation | None
    why: str = ""

    def as_plain(self) -> dict[str, object]:
        """Return it in the form of JSON."""
        relation = self.relation
        return {
            "id": self.born.id,
            "text": sentence(self.born.statement),
            "rules": list(self.born.statement.rules),
            "mutate": [plugins.name_of(type(m)) for m in relation.mutate] if relation else [],
            "check": plugins.name_of(type(relation.check)) if relation else None,
            "why": self.why,
        }


def checked(relations: Iterable[RuleStatement], ontology: Ontology) -> list[BindingResult]:
    """Bind each relation, in order."""
    return [_checked(one, ontology) for one in relations]


def _checked(one: RuleStatement, ontology: Ontology) -> BindingResult:
    try:
        relation = one.relation(ontology)
    except UsageError as error:
        return BindingResult(one, None, str(error))
    return BindingResult(one, relation)
