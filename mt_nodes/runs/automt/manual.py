# SPDX-License-Identifier: Apache-2.0
"""The nine relations that were written by hand, to compare with: of each case one is drawn by lot, whatever its scene.

``config/experiments/published/automt_manual.yaml`` has them (arXiv 2510.19438, table 7 of its supplement).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mt_nodes.base import resources
from mt_nodes.base.errors import UsageError
from mt_nodes.base.seeds import generator
from mt_nodes.base.yaml_files import read_mapping, refuse_unknown
from mt_nodes.engine.entries import mapping, text
from mt_nodes.relations.relation import Relation
from mt_nodes.rules.case_planning import CaseFrames
from mt_nodes.rules.ontology import ANY_ROAD, Ontology
from mt_nodes.rules.statement import Statement
from mt_nodes.runs.automt.automt_request import MANUAL
from mt_nodes.runs.automt.own_relations import RelationShop, own_relation
from mt_nodes.runs.automt.proposals import Proposal

FILE = "experiments/published/automt_manual.yaml"
_KEYS = ("text", "element", "place", "behaviour", "origin")


def manual_relations(region: str, ontology: Ontology) -> dict[str, tuple[Statement, Relation]]:
    """Return the nine as they look in a region, by id.

    Raises UsageError: the file is none, or one of them cannot be shown; names it.
    """
    path = resources.config_dir() / FILE
    data = read_mapping(path)
    refuse_unknown(data, ("title", "relations"), str(path))
    relations = {}
    for name, row in mapping(data.get("relations"), f"{path}: relations").items():
        where = f"{path}: relations.{name}"
        entry = mapping(row, where)
        refuse_unknown(entry, _KEYS, where)
        statement = _statement(entry, where, ontology)
        relation = own_relation(
            f"{MANUAL}_{region}_{name}",
            statement,
            text(entry, "text", where, None),
            str(data["title"]),
            region,
            ontology,
        )
        relations[relation.id] = (statement, relation)
    return relations


def manual(cases: Sequence[CaseFrames], region: str, rounds: int, seed: int, shop: RelationShop) -> list[Proposal]:
    """Return one of the nine for each case and round, by lot from the seed, of those that can be run.

    Raises UsageError: none can.
    """
    every = {
        name: (one, shop.made(relation, one))
        for name, (one, relation) in manual_relations(region, shop.ontology).items()
    }
    known = {name: one for name, one in every.items() if not shop.why_not(one[1])}
    if not known:
        raise UsageError(f"--methods {MANUAL}: none of its relations can be run on these bags and stacks; leave it out")
    return [_drawn(case, region, turn, seed, known, shop) for turn in range(rounds) for case in cases]


def _drawn(
    case: CaseFrames,
    region: str,
    turn: int,
    seed: int,
    known: Mapping[str, tuple[Statement, Relation]],
    shop: RelationShop,
) -> Proposal:
    names = sorted(known)
    name = names[int(generator(seed, f"automt_{MANUAL}_{region}", case.bag, case.first, turn).integers(len(names)))]
    statement, relation = known[name]
    return Proposal(
        MANUAL, region, turn, case.name, statement, relation.id, shop.written(relation), f"drawn by lot of {len(names)}"
    )


def _statement(entry: Mapping[str, object], where: str, ontology: Ontology) -> Statement:
    element, behaviour = text(entry, "element", where, None), text(entry, "behaviour", where, None)
    if element not in ontology.elements:
        raise UsageError(f"{where}.element: no element '{element}'")
    verb = ontology.elements[element].verb
    statement = Statement(ANY_ROAD, verb, element, behaviour, text(entry, "place", where))
    ontology.refuse_unknown(statement, where)
    return statement
