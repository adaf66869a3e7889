# SPDX-License-Identifier: Apache-2.0
"""The two methods that a language model carries out alone: it invents a relation, or takes one from a region's rules.

As in AutoMT's comparison (arXiv 2510.19438, tables 4 and 5 of its supplement), in our own words. The model is told the
scene and the ego-vehicle's state, no ontology; it answers in free words. What the ontology lacks makes the case invalid
and is no error: that is what the comparison is about. Other than in the public code each region is given its own rules,
in their place, and the state of the ego-vehicle in its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from mt_nodes.base.errors import UsageError
from mt_nodes.rules.answer_statements import BadAnswer, json_in
from mt_nodes.rules.case_planning import CaseFrames
from mt_nodes.rules.chat import Message
from mt_nodes.rules.model_queries import Asker
from mt_nodes.rules.nouns import nouns_in
from mt_nodes.rules.ontology import ANY_ROAD, Ontology
from mt_nodes.rules.prompts import Prompts, Templates
from mt_nodes.rules.rule_sets import load_rule_set
from mt_nodes.rules.statement import ADDS, ON_ROAD, ON_ROADSIDE, REPLACES, Statement
from mt_nodes.rules.store_entry import sentence
from mt_nodes.runs.automt.automt_request import ASKING
from mt_nodes.runs.automt.own_relations import RelationShop, own_relation
from mt_nodes.runs.automt.proposals import Proposal

INVENTED, FROM_RULES = ASKING
BEHAVIOURS = ("slow_down", "keep_current", "turn_left", "turn_right")
PLACES = ("", ON_ROAD, ON_ROADSIDE)
_USER = "case.user"
_FREE = ("road_type", "manipulation", "rule")
_CLOSED: Mapping[str, Sequence[str]] = {"change": (ADDS, REPLACES), "place": PLACES, "behaviour": BEHAVIOURS}
_ORDER = ("road_type", "change", "manipulation", "place", "behaviour", "rule")
#: What stands in no ontology because it excludes nothing.
_ANY = re.compile(r"any(?: type of)? (?:road|street)s?|all roads", re.IGNORECASE)
_LONGEST = 200

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        key: {"type": "string", **({"enum": list(_CLOSED[key])} if key in _CLOSED else {})} for key in _ORDER
    },
    "required": list(_ORDER),
    "additionalProperties": False,
}


@dataclass(frozen=True)
class Baselines:
    """Asks one model for relations of cases."""

    asker: Asker
    shop: RelationShop

    def proposals(
        self,
        method: str,
        cases: Sequence[CaseFrames],
        region: str,
        rounds: int,
        progress: Callable[[int], None] = lambda count: None,
    ) -> list[Proposal]:
        """Return what the model proposes for each case and round.

        ``progress``: is told how many have been asked for.
        Raises InfrastructureError: the server gives no answers; those so far are kept. UsageError: the server refuses
        the request or the key.
        """
        rules = load_rule_set(region).rules if method == FROM_RULES else {}
        system = Templates((f"{method}.system", _USER))
        retries = Prompts(self.shop.ontology)
        head = system.render(f"{method}.system", behaviours=BEHAVIOURS, region=region, rules=list(rules.values()))
        found = []
        for turn in range(rounds):
            for case in cases:
                messages = _messages(head, system, case)
                answer, _ = self.asker.ask_until(retries, messages, SCHEMA, read, turn)
                source = partial(Proposal, method, region, turn, case.name)
                found.append(self._proposal(answer, source, rules))
                progress(len(found))
        return found

    def _proposal(
        self, answer: Mapping[str, str] | BadAnswer, source: Callable[..., Proposal], rules: Collection[str]
    ) -> Proposal:
        if isinstance(answer, BadAnswer):
            return source(why="no usable answer", lacking={"logical": f"no answer passed, the last: {answer}"})
        return proposal_of_words(answer, source, f"proposed by {self.asker.name}", self.shop, rules)


def proposal_of_words(
    answer: Mapping[str, str],
    source: Callable[..., Proposal],
    why: str,
    shop: RelationShop,
    rules: Collection[str] = (),
) -> Proposal:
    """Return what a model says in free words as a proposal, with a relation where one can be made of it.

    ``source``: makes the proposal of a method, region, round and case. ``rules``: as for :func:`understood`.
    """
    statement, lacking = understood(answer, shop.ontology, rules)
    proposal = source(statement, why=why, told=answer)
    if statement is None or lacking:
        return replace(proposal, lacking=lacking)
    place = statement.place.replace(" ", "_")
    parts = (proposal.method, proposal.region, statement.road, statement.element, place, statement.behaviour)
    name = "_".join(filter(None, parts))
    try:
        own = own_relation(name, statement, sentence(statement), proposal.method, proposal.region, shop.ontology)
        relation = shop.made(own, statement)
        refused = shop.why_not(relation)
    except UsageError as error:
        refused = str(error)
    if refused:
        return replace(proposal, lacking={"manipulation": f"cannot be run: {refused}"})
    return replace(proposal, relation=relation.id, file=shop.written(relation))


def read(answer: str) -> dict[str, str]:
    """Return an answer as :data:`SCHEMA` has it.

    Raises BadAnswer: it is none; what is said in free words is not looked at.
    """
    values = json_in(answer)
    if set(values) != set(_ORDER) or not all(isinstance(value, str) for value in values.values()):
        raise BadAnswer(f"expected an object of texts with exactly the keys {', '.join(_ORDER)}")
    for key, known in _CLOSED.items():
        if values[key] not in known:
            raise BadAnswer(f"{key}: got '{values[key][:60]}', expected {' or '.join(repr(one) for one in known)}")
    for key in _FREE:
        if len(values[key]) > _LONGEST:
            raise BadAnswer(f"{key}: got {len(values[key])} characters, expected at most {_LONGEST}")
    return values


def understood(
    answer: Mapping[str, str], ontology: Ontology, rules: Collection[str] = ()
) -> tuple[Statement | None, dict[str, str]]:
    """Return an answer in words of the ontology, None where it has none for the change, and by factor what it lacks.

    ``rules``: ids that the answer must name one of; none: it is free to invent.
    """
    lacking = {}
    road, element = _road(answer["road_type"], ontology), _element(answer["manipulation"], ontology)
    if road is None:
        lacking["scenario"] = f"road '{answer['road_type']}' is not of the ontology"
    if element is None:
        lacking["manipulation"] = f"'{answer['manipulation']}' is not of the ontology"
    if rules and answer["rule"] not in rules:
        lacking["logical"] = f"rule '{answer['rule']}' is none of the region's"
    if element is None:
        return None, lacking
    one = ontology.elements[element]
    place = answer["place"] if one.category == "objects" else ""
    return Statement(road or ANY_ROAD, one.verb, element, answer["behaviour"], place), lacking


def _road(words: str, ontology: Ontology) -> str | None:
    name = _name(words)
    if name in ontology.roads:
        return name
    if _ANY.fullmatch(words.strip()):
        return ANY_ROAD
    places = nouns_in(ontology.lexicon.tokens(words), ontology).places
    return places[0].road.name if places else None


def _element(words: str, ontology: Ontology) -> str | None:
    if (name := _name(words)) in ontology.elements:
        return name
    things = nouns_in(ontology.lexicon.tokens(words), ontology).things
    return things[0].element.name if things else None


def _name(words: str) -> str:
    return re.sub(r"[\s-]+", "_", words.strip().lower())


def _messages(head: str, templates: Templates, case: CaseFrames) -> tuple[Message, ...]:
    scene = case.scene.as_paper()
    ego = scene.pop("EgoVehicle")
    plain = {
        name: "; ".join(f"{key}: {value}" for key, value in row.items())
        for name, row in (("scene", scene), ("ego", ego))
    }
    return ("system", head), ("user", templates.render(_USER, **plain))
