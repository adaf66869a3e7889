# SPDX-License-Identifier: Apache-2.0
"""Our method with one part taken out, which shows what that part is worth.

``without_retrieval``: each case gets a relation by lot, whatever its scene. ``without_self_check``: no judge sees the
readings of the rules (:meth:`mt_nodes.runs.automt.rule_reading.RuleReaders.entries`). ``without_ontology``: a model
reads the rules in free words; without a vocabulary nothing can say whether a relation applies, so that of those run
least often the nearest in meaning to the scene is taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from mt_nodes.base.seeds import generator
from mt_nodes.rules.answer_statements import BadAnswer
from mt_nodes.rules.case_planning import CaseFrames
from mt_nodes.rules.model_queries import Asker
from mt_nodes.rules.nearest_texts import Indexer
from mt_nodes.rules.prompts import Prompts, Templates
from mt_nodes.rules.rule_sets import Rule, load_rule_set
from mt_nodes.rules.store_entry import Entry
from mt_nodes.runs.automt.automt_request import WITHOUT_ONTOLOGY, WITHOUT_RETRIEVAL
from mt_nodes.runs.automt.matched import EntryRelations
from mt_nodes.runs.automt.model_baselines import BEHAVIOURS, SCHEMA, proposal_of_words, read
from mt_nodes.runs.automt.own_relations import RelationShop
from mt_nodes.runs.automt.proposals import Proposal
from mt_nodes.runs.automt.rule_reading import Progress

_SYSTEM, _USER = "free.system", "free.user"


def drawn_by_lot(
    cases: Sequence[CaseFrames],
    region: str,
    rounds: int,
    seed: int,
    entries: Sequence[Entry],
    relations: EntryRelations,
) -> list[Proposal]:
    """Return for each case and round one of the relations that can be run, by lot from the seed alone."""
    runnable = [entry for entry in entries if not relations.why_not(entry)]
    found = []
    for turn in range(rounds):
        for case in cases:
            source = partial(Proposal, WITHOUT_RETRIEVAL, region, turn, case.name)
            if not runnable:
                why = f"none of {len(entries)} relations can be run"
                found.append(source(why=why, lacking={"logical": why}))
                continue
            lot = generator(seed, f"automt_{WITHOUT_RETRIEVAL}_{region}", case.bag, case.first, turn)
            entry = runnable[int(lot.integers(len(runnable)))]
            name, file = relations.named(entry)
            why = f"drawn by lot of {len(runnable)}, whatever the scene"
            found.append(source(entry.statement, name, file, why=why))
    return found


class FreeReadings:
    """Rules of a region as a model reads them in free words, and the choice among them."""

    def __init__(self, asker: Asker, shop: RelationShop, region: str, indexer: Indexer, progress: Progress) -> None:
        """Read the rules."""
        self._shop, self._region, self._by = shop, region, asker.name
        rules = list(load_rule_set(region).rules.values())
        self._read = list(_free_answers(asker, Prompts(shop.ontology), rules, region, progress))
        self._index = indexer([_text_of(answer) for answer in self._read]) if self._read else None
        self._executions = [0] * len(self._read)

    def proposals(self, cases: Sequence[CaseFrames], rounds: int) -> list[Proposal]:
        """Return the choice for each case and round."""
        return [self._proposal(case, turn) for turn in range(rounds) for case in cases]

    def _proposal(self, case: CaseFrames, turn: int) -> Proposal:
        source = partial(Proposal, WITHOUT_ONTOLOGY, self._region, turn, case.name)
        if self._index is None:
            why = f"model '{self._by}' could read no rule"
            return source(why=why, lacking={"logical": why})
        near = dict(self._index.nearest(case.scene.query, len(self._read)))
        row = min(near, key=lambda one: (self._executions[one], -near[one], one))
        self._executions[row] += 1
        why = f"read by {self._by} in free words; of {len(self._read)} the least often run, then the nearest"
        return proposal_of_words(self._read[row], source, why, self._shop)


def _free_answers(
    asker: Asker, prompts: Prompts, rules: Sequence[Rule], region: str, progress: Progress
) -> list[Mapping[str, Any]]:
    """Return the usable answers; a rule that the model cannot read is left out, as in the method with an ontology."""
    templates = Templates((_SYSTEM, _USER))
    head = templates.render(_SYSTEM, behaviours=BEHAVIOURS)
    found: list[Mapping[str, Any]] = []
    for done, rule in enumerate(rules, 1):
        user = templates.render(_USER, id=rule.id, rule=rule.text)
        answer, _ = asker.ask_until(prompts, (("system", head), ("user", user)), SCHEMA, read)
        if not isinstance(answer, BadAnswer):
            found.append({**answer, "rule": rule.id})
        progress(f"reading the rules of {region} in free words", done)
    return found


def _text_of(answer: Mapping[str, Any]) -> str:
    return " ".join(str(answer[key]) for key in ("road_type", "manipulation", "place", "behaviour"))
