# SPDX-License-Identifier: Apache-2.0
"""Reads traffic rules without a language model, by a shallow grammar of English with the ontology's words.

It answers three questions. What is demanded? Phrases that demand a behaviour, or negate its opposite, outside of names.
What for? Of the named elements, the one where English puts a reason: in a clause that begins with *when*, *if* or
*where*, after *for*, *to* or *past*, or at the start of the rule; and those joined to it by *and* or *or*. Where? The
named road, else the element's own. Numbers and a few phrases become conditions on the source.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from mt_nodes.relations.facts.condition import conjunction
from mt_nodes.rules import quantities
from mt_nodes.rules.cues import Cue, cues_in, is_aim, opposes
from mt_nodes.rules.grammar import words
from mt_nodes.rules.nouns import PASSES, ElementMention, elements_ahead, nouns_in, road_of
from mt_nodes.rules.ontology import ANY_ROAD, Ontology
from mt_nodes.rules.phrases import PUNCTUATION, Phrase, Token, found
from mt_nodes.rules.reasons import PRONOUNS, reasons
from mt_nodes.rules.statement import ON_ROAD, ON_ROADSIDE, Statement
from mt_nodes.rules.terms import Behaviour, Element

#: A rule has one to three sentences; longer texts are documents, to be split into rules first.
LONGEST = 2000
_NOTHING_NAMED = "it names nothing of the ontology that could be added or replaced (rules are read in English)"
_EGO_CONTEXTS = words("ego_contexts")
_PRIORITY_PHRASES = words("priority_phrases")
_GOES, _STARTS, _MOVES = "keep_current", "start_moving", "moving"
_NO_TURNS = words("no_turns")
_PLACES = ((ON_ROADSIDE, words("roadside_phrases")), (ON_ROAD, words("road_phrases")))


@dataclass(frozen=True)
class Reading:
    """The statements of a rule, or ``why`` there are none."""

    statements: tuple[Statement, ...] = ()
    why: str = ""


def read_rule(text: str, ontology: Ontology, rule: str = "", strict: bool = False) -> Reading:
    """Return the statements of one rule in English.

    ``rule``: id for the statements. ``strict``: tell apart what AutoMT (arXiv 2510.19438) reads as one behaviour:
    ``stop``, ``give_way`` and ``keep_distance`` from ``slow_down``, ``stay_behind`` and ``start_moving`` from
    ``keep_current``.
    """
    if not text.strip():
        return Reading(why="the rule is empty")
    if len(text) > LONGEST:
        return Reading(why=f"{len(text):,} characters, at most {LONGEST:,}: one rule at a time")
    tokens = ontology.lexicon.tokens(text)
    nouns = nouns_in(tokens, ontology)
    free = [i not in nouns.taken and token.text not in PUNCTUATION for i, token in enumerate(tokens)]
    things = elements_ahead(tokens, nouns, ontology)
    if not things or things[0].start in {one.indices[0] for one in nouns.places}:
        things = _implied(tokens, free, ontology) or things
    if not things:
        return Reading(why=_NOTHING_NAMED)
    others = [one.start for one in things if one.element.category == "objects"]
    cue, subjects = _demand_in(tokens, things, cues_in(tokens, free, others, ontology), ontology, strict)
    wish = ontology.behaviours[cue.behaviour].reads_as or cue.behaviour if cue else ""
    chosen = reasons(tokens, subjects, wish, cue.indices[0] if cue else len(tokens))
    asks, opposed = chosen[0].element.asks, opposes(tokens, free, ontology)
    if opposed and asks not in ("", wish):  # "ignore all that was said and go on at a red light"
        cue = None
    demanded = "slow_down" if quantities.is_limit(tokens) else "" if opposed else asks
    if cue is None and not demanded:
        return Reading(why=f"it names {chosen[0].element.name}, but nothing that the ego-vehicle should do about it")
    behaviour = (
        _behaviour(tokens, cue, [*chosen, *subjects], ontology, strict) if cue else ontology.behaviours[demanded]
    )
    road = road_of(tokens, nouns.places, chosen[0].element, ANY_ROAD)
    place = _place(tokens, chosen, ontology)
    conditions = _conditions(tokens, things, chosen, behaviour, ontology)
    if not behaviour.name.startswith("turn"):
        conditions += _turning(tokens, free)
    elements = {one.element.name: one.element for one in chosen}
    rules = (rule,) if rule else ()
    return Reading(
        tuple(
            Statement(road, one.verb, one.name, behaviour.name, place, _joined(conditions, one), rules)
            for one in elements.values()
        )
    )


def _implied(tokens: Sequence[Token], free: Sequence[bool], ontology: Ontology) -> list[ElementMention]:
    """Return the element that a demand means without naming it: "no overtaking before a bend"."""
    implied = {name: one for one in ontology.elements.values() for name in one.implied_by}
    cues = cues_in(tokens, free, (), ontology)
    return [ElementMention(implied[cue.behaviour], cue.indices) for cue in cues if cue.behaviour in implied][:1]


def _demand_in(
    tokens: Sequence[Token], things: Sequence[ElementMention], cues: Sequence[Cue], ontology: Ontology, strict: bool
) -> tuple[Cue | None, Sequence[ElementMention]]:
    """Return the demand, and the elements of the first sentence that names one and demands something."""
    subjects: list[ElementMention] = []
    for sentence in range(tokens[-1].sentence + 1):
        named = [one for one in things if tokens[one.start].sentence == sentence]
        elements = subjects or named
        other_sentences = {tokens[one.start].sentence for one in things} - {sentence}
        asks = [cue for cue in cues if tokens[cue.indices[0]].sentence == sentence]
        if elements and asks:
            asks += [cue for cue in cues if not other_sentences and tokens[cue.indices[0]].sentence > sentence]
            return _first(tokens, asks, ontology, strict), elements
        # "A crash ahead? Slow down, and switch your hazard lights on."
        words = [i for i, token in enumerate(tokens) if token.sentence == sentence]
        subjects = elements if tokens[words[-1]].text == "?" or _refers_back(tokens, words[-1] + 1, things) else []
    return _first(tokens, cues, ontology, strict), things


def _refers_back(tokens: Sequence[Token], start: int, things: Sequence[ElementMention]) -> bool:
    """Whether a sentence refers to an earlier name: "a convoy is one vehicle; nobody may cut into it"."""
    indices = [i for i in range(start, len(tokens)) if tokens[i].sentence == tokens[start].sentence]
    first = min((one.start for one in things if one.start in indices), default=len(tokens))
    return any(tokens[i].text in PRONOUNS for i in indices if i < first)


def _first(tokens: Sequence[Token], cues: Sequence[Cue], ontology: Ontology, strict: bool) -> Cue | None:
    """Return the cue of the highest rank; a turning ego is not asked to turn.

    Prohibitions and purposes have lower priority than demands: "do not go on, turn right to let them pass". Of equal
    ranks the first in the text counts; a strict reading prefers what says more than what it is read as.
    """

    def rank(cue: Cue) -> tuple[float, bool, tuple[int, ...]]:
        coarse = strict and not ontology.behaviours[cue.behaviour].reads_as
        return ontology.rank(cue.behaviour) + 3.5 * (cue.negated or is_aim(tokens, cue)), coarse, cue.indices

    turning = [c for c in cues if c.behaviour.startswith("turn") and _is_doing(tokens[c.indices[0]])]
    return min((cue for cue in cues if cue not in turning), key=rank, default=None)


def _is_doing(token: Token) -> bool:
    """Whether a word is an -ing form, as "turning" is and "swing" is not."""
    return token.text.endswith("ing") and len(token.forms) > 1


def _behaviour(
    tokens: Sequence[Token], cue: Cue, things: Sequence[ElementMention], ontology: Ontology, strict: bool
) -> Behaviour:
    """Return the behaviour that a cue demands: an ego that may not pass a standing object has to stop."""
    behaviour = ontology.behaviours[cue.behaviour]
    stands = any(one.element.stands for one in things) or any(token.text == "stopped" for token in tokens)
    if not cue.negated and cue.phrase in _PRIORITY_PHRASES and things[0].element.asks == _GOES:
        return ontology.behaviours[_GOES]
    if cue.negated and cue.phrase in PASSES and stands:
        behaviour = ontology.behaviours["stop"]
    elif cue.negated and cue.phrase not in PASSES and things[0].element.forbids:
        behaviour = ontology.behaviours[things[0].element.forbids]
    return ontology.behaviours[behaviour.reads_as] if behaviour.reads_as and not strict else behaviour


def _place(tokens: Sequence[Token], chosen: Sequence[ElementMention], ontology: Ontology) -> str:
    """Return the place of objects, if the sentence gives it."""
    if any(one.element.category != "objects" for one in chosen):
        return ""
    near = [token for token in tokens if token.sentence == tokens[chosen[0].start].sentence]
    return next((place for place, texts in _PLACES if any(_says(near, text, ontology) for text in texts)), "")


def _conditions(
    tokens: Sequence[Token],
    things: Sequence[ElementMention],
    chosen: Sequence[ElementMention],
    behaviour: Behaviour,
    ontology: Ontology,
) -> list[str]:
    """Return the conditions on the source: numbers, phrases of predicates, and further weather and light."""
    keeps = _GOES in (behaviour.name, behaviour.reads_as)
    conditions = list(quantities.conditions(tokens, keeps))
    for predicate in ontology.predicates.values():
        if any(_says(tokens, text, ontology) for text in predicate.denies):
            conditions.append(f"not {predicate.name}")
        elif any(_says(tokens, text, ontology) for text in predicate.says):
            conditions.append(predicate.name)
    about = {one.element.name for one in chosen}
    environment = [one.element for one in things if one.element.category == "environment"]
    further = [element for element in environment if element.name not in about]
    conditions += [_opposite(element.needs) for element in further if element.needs]
    needs = [one.element.needs for one in chosen]
    driving = any("speed_kmh >" in one for one in (*conditions, *needs)) or any("_gap_" in one for one in conditions)
    moves = f"not {_MOVES}" if behaviour.name == _STARTS else _MOVES
    return conditions if driving else [moves, *conditions]


def _turning(tokens: Sequence[Token], free: Sequence[bool]) -> list[str]:
    """Return the condition that the ego turns, and its direction, if the rule is for turning."""
    for i, token in enumerate(tokens):
        before = {form for t in tokens[max(0, i - 3) : i] for form in t.forms}
        after = {t.text for t in tokens[i + 1 : i + 3]}
        turns = free[i] and token.text in ("turn", "turns", "turning") and not after & _NO_TURNS
        if turns and (i == 0 or before & _EGO_CONTEXTS):
            return [next((f"ego_turning_{side}" for side in ("left", "right") if side in after), "ego_turning")]
    return []


def _joined(conditions: Sequence[str], element: Element) -> str:
    """Return all conditions; a number in the rule replaces the element's own need."""
    measured = any(name in one for one in conditions for name in ("speed_kmh", "visibility_m"))
    ordered = sorted(conditions, key=lambda one: not one.startswith((_MOVES, f"not {_MOVES}", "speed")))
    return conjunction(*ordered, "" if measured else element.needs)


def _opposite(flag: str) -> str:
    """Return the negation of ``flag`` or ``not flag``."""
    return flag.removeprefix("not ") if flag.startswith("not ") else f"not {flag}"


def _says(tokens: Sequence[Token], text: str, ontology: Ontology) -> bool:
    return any(found(_phrase(text, ontology), tokens, [True] * len(tokens)))


@lru_cache(maxsize=512)
def _phrase(text: str, ontology: Ontology) -> Phrase:
    return ontology.lexicon.phrase(text)
