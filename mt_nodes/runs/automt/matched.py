# SPDX-License-Identifier: Apache-2.0
"""Our method: the matcher gives each case a relation that was read from the rules of a region."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from mt_nodes.base.errors import UsageError
from mt_nodes.relations.relation import Relation
from mt_nodes.rules.case_planning import CaseFrames, choose
from mt_nodes.rules.matching import Choice, Matcher
from mt_nodes.rules.nearest_texts import Index, Indexer
from mt_nodes.rules.shipped_rules import ids_of, of_entry, scratch_store
from mt_nodes.rules.statement_binding import edit_facts
from mt_nodes.rules.store_entry import Entry
from mt_nodes.runs.automt.own_relations import RelationShop
from mt_nodes.runs.automt.proposals import Proposal


@dataclass(frozen=True)
class EntryRelations:
    """Relations of the store's entries as an experiment runs them.

    ``method``: begins the ids of those that do not ship.
    """

    shop: RelationShop
    method: str
    _refusals: dict[Entry, str] = field(default_factory=dict)

    def why_not(self, entry: Entry) -> str:
        """Return why an entry's relation cannot be run, empty if it can."""
        key = replace(entry, executions=0)
        if key not in self._refusals:
            try:
                self._refusals[key] = self.shop.why_not(self._relation(entry))
            except UsageError as error:
                self._refusals[key] = str(error)
        return self._refusals[key]

    def named(self, entry: Entry) -> tuple[str, str]:
        """Return id and file of an entry's relation; one that ships has no file.

        Raises InfrastructureError: the file cannot be written.
        """
        if (ids := ids_of(entry)) and not self.shop.edit_model:
            return ids[0], ""
        relation = self._relation(entry)
        return relation.id, self.shop.written(relation)

    def _relation(self, entry: Entry) -> Relation:
        bound = of_entry(entry).relation(self.shop.ontology)
        ids = ids_of(entry)
        name = ids[0] if ids else f"{self.method}_{entry.region}_{entry.index}"
        return self.shop.made(replace(bound, id=name), entry.statement)


def matched(
    cases: Sequence[CaseFrames],
    region: str,
    rounds: int,
    seed: int,
    entries: Sequence[Entry],
    relations: EntryRelations,
    *,
    nearest: int = 0,
    indexer: Indexer = Index,
) -> list[Proposal]:
    """Return what the matcher gives each case and round; it goes on counting over cases and rounds.

    ``nearest``: consider only so many relations, the nearest to the scene; 0: all. ``indexer``: compares meanings.
    """
    ontology = relations.shop.ontology
    chooses = Matcher(
        seed=seed,
        limit=nearest,
        region=region,
        refuse=relations.why_not,
        edit_facts=lambda entry: edit_facts(entry.statement, ontology, entry.region),
    )
    matchers = [chooses] * (1 + max(case.bag for case in cases))
    with scratch_store(list(entries), ontology, indexer) as store:
        stored = {entry.index: entry for entry in store.entries()}
        return [
            _proposal(one, region, turn, stored, relations) for _, turn, one in choose(cases, store, matchers, rounds)
        ]


def _proposal(choice: Choice, region: str, turn: int, entries: dict[int, Entry], relations: EntryRelations) -> Proposal:
    method = relations.method
    if choice.index is None:
        return Proposal(method, region, turn, choice.case, why=choice.why, lacking={"logical": choice.why})
    entry = entries[choice.index]
    name, file = relations.named(entry)
    return Proposal(method, region, turn, choice.case, entry.statement, name, file, why=choice.why)
