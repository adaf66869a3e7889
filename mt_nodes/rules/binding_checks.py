# SPDX-License-Identifier: Apache-2.0
"""Whether relations can be run: each bound to mutations that make its change, and to the check of its behaviour."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mt_nodes.base import plugins
from mt_nodes.base.errors import UsageError
from mt_nodes.relations.relation import Relation
from mt_nodes.rules.ontology import Ontology
from mt_nodes.rules.shipped_rules import Born
from mt_nodes.rules.store_entry import sentence


@dataclass(frozen=True, eq=False)
class Checked:
    """One relation: what it is bound to, or, with ``relation`` None, ``why`` it is bound to nothing."""

    born: Born
    relation: Relation | None
    why: str = ""

    def as_plain(self) -> dict[str, object]:
        """Return it as JSON can hold it."""
        made = self.relation
        return {
            "id": self.born.id,
            "text": sentence(self.born.statement),
            "rules": list(self.born.statement.rules),
            "mutate": [plugins.name_of(type(m)) for m in made.mutate] if made else [],
            "check": plugins.name_of(type(made.check)) if made else None,
            "why": self.why,
        }


def checked(relations: Iterable[Born], ontology: Ontology) -> list[Checked]:
    """Bind each relation, in their order."""
    return [_checked(one, ontology) for one in relations]


def _checked(one: Born, ontology: Ontology) -> Checked:
    try:
        made = one.relation(ontology)
    except UsageError as error:
        return Checked(one, None, str(error))
    return Checked(one, made)
